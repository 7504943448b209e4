"""Features of the frames of videos as one file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vidkin._base.outputs import open_output

if TYPE_CHECKING:
    from vidkin.features import FrameExtractor
    from vidkin.similarity import FrameFeatures


def write_features(
    videos: Sequence[tuple[Path, FrameFeatures]], path: Path, *, extractor: FrameExtractor, source: str | None = None
) -> None:
    """Write the whole-frame features of videos, one after the other, as safetensors, or as ``.npz`` for NumPy.

    Args:
        videos: Each video and its features.
        path: The file; its ending chooses the format.
        extractor: What made them.
        source: What they are made of, see :func:`vidkin._base.outputs.open_output`.

    Raises:
        MediaError: The file cannot be written.
    """
    arrays: dict[str, Any] = {
        "values": np.concatenate([features.whole.astype(np.float32) for _, features in videos]),
        "timestamps": np.concatenate([features.timestamps.astype(np.float64) for _, features in videos]),
        "information": np.concatenate([features.information.astype(np.float32) for _, features in videos]),
        "lengths": np.array([len(features) for _, features in videos], np.int64),
    }
    names = [os.path.abspath(video) for video, _ in videos]
    texts = {"fingerprint": extractor.fingerprint, "extractor": extractor.name}
    with open_output(path, source=source) as partial:
        if path.suffix.lower() == ".npz":
            arrays |= {"paths": np.array(names), **{name: np.array(text) for name, text in texts.items()}}
            # To an open file, because savez appends its own ending to a name.
            with partial.open("wb") as file:
                np.savez(file, **arrays)
        else:
            from safetensors.numpy import save

            partial.write_bytes(save(arrays, metadata={**texts, "paths": json.dumps(names)}))
