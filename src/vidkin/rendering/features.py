"""Frame features of videos as a single file."""

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
    """Write the concatenated whole-frame features of videos as safetensors, or as ``.npz`` for NumPy.

    Args:
        videos: Videos and their features.
        path: Output file; the extension determines the format.
        extractor: The extractor that computed the features.
        source: Description of the inputs, see :func:`vidkin._base.outputs.open_output`.

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
            # Pass an open file, because savez would append .npz to the temporary name.
            with partial.open("wb") as file:
                np.savez(file, **arrays)
        else:
            from safetensors.numpy import save

            partial.write_bytes(save(arrays, metadata={**texts, "paths": json.dumps(names)}))
