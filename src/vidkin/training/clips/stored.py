"""Data computed once from the videos and stored: views as descriptors, and vectors of a teacher."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from vidkin.errors import InvalidArgumentError
from vidkin.features import FrameExtractor
from vidkin.media import Frames
from vidkin.training.clips.squares import VideoSquares, stored_tensors
from vidkin.training.clips.views import ClipFeatures, ViewMaker
from vidkin.training.clips.windows import Window

__all__ = ["store_views", "teacher_vectors"]

OnVideo = Callable[[int, int], None]

# Part of the caches' keys: increment it when the same videos would give different numbers.
_REVISION = 1
_FRAMES_A_PASS = 64


def store_views(
    windows: Sequence[Window],
    maker: ViewMaker,
    *,
    cache: Path | None,
    most_bytes: int,
    on_video: OnVideo | None = None,
) -> dict[int, list[ClipFeatures]]:
    """Make the weak view and ``maker.settings.views`` strong views of each window, by window number, in memory.

    Footage inserted into a strong view comes from other videos among the windows.

    Args:
        windows: All windows from which to make views.
        maker: Makes the views.
        cache: Folder for one file per video; None stores nothing.
        most_bytes: Maximum size of all descriptors in bytes.
        on_video: Callback that receives (videos done, total number of videos) after each video.

    Raises:
        InvalidArgumentError: The descriptors are larger than ``most_bytes``.
    """
    facts = [_REVISION, maker.extractor.fingerprint, maker.seed, asdict(maker.settings)]
    facts += [
        (window.number, maker.videos[window.video].key, window.start, window.stop) for window in windows
    ]
    run = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    by_video: dict[int, list[Window]] = defaultdict(list)
    for window in windows:
        by_video[window.video].append(window)
    stored: dict[int, list[ClipFeatures]] = {}
    held = 0
    for done, (video, own) in enumerate(by_video.items(), 1):
        path = None if cache is None else cache / run / f"{maker.videos[video].key}.safetensors"
        others = [window for window in windows if window.video != video]
        tensors = stored_tensors(path, lambda own=own, others=others: _views(own, others, maker))  # type: ignore[misc]
        lengths, counts = tensors["lengths"].tolist(), tensors["counts"].tolist()
        parts = (torch.split(tensors["values"], lengths), torch.split(tensors["sources"], lengths))
        views = [
            ClipFeatures(values, sources, tuple(seen[:, 0].tolist()), tuple(seen[:, 1].tolist()))
            for values, sources, seen in zip(*parts, torch.split(tensors["seen"], counts), strict=True)
        ]
        held += sum(view.values.nbytes for view in views)
        if held > most_bytes:
            raise InvalidArgumentError(
                f"the descriptors of {done} of {len(by_video)} videos take {held / 2**30:.1f} GiB, more than "
                "data.memory; raise it, lower data.options.views, or set it to 0"
            )
        count = 1 + maker.settings.views
        for position, window in enumerate(own):
            stored[window.number] = views[position * count : (position + 1) * count]
        if on_video is not None:
            on_video(done, len(by_video))
    return stored


def teacher_vectors(
    videos: Sequence[VideoSquares],
    teacher: FrameExtractor,
    *,
    cache: Path | None,
    on_video: OnVideo | None = None,
) -> list[torch.Tensor]:
    """Unit vectors [T, D] of each video's frames: the means of their regions.

    Args:
        videos: Frames of the videos.
        teacher: A frozen extractor.
        cache: Folder for one file per video; None stores nothing.
        on_video: Callback that receives (videos done, total number of videos) after each video.
    """
    vectors = []
    label = hashlib.sha256(f"{_REVISION} {teacher.fingerprint}".encode()).hexdigest()[:16]
    for done, video in enumerate(videos, 1):
        path = None if cache is None else cache / label / f"{video.key}.safetensors"
        stored = stored_tensors(path, lambda video=video: {"vectors": _vectors(video, teacher)})  # type: ignore[misc]
        vectors.append(stored["vectors"])
        if on_video is not None:
            on_video(done, len(videos))
    return vectors


def _views(own: Sequence[Window], others: Sequence[Window], maker: ViewMaker) -> dict[str, torch.Tensor]:
    """Views of the windows of one video, concatenated."""
    views = []
    for window in own:
        generator = torch.Generator().manual_seed(maker.seed * 1_000_003 + window.number)
        for number in [0, *range(1, 2 * maker.settings.views, 2)]:
            lent = torch.randperm(len(others), generator=generator)[:3].tolist()
            views.append(maker.describe(maker.edit(window, number, [others[position] for position in lent])))
    seen = [torch.tensor([view.windows, view.videos]).T for view in views]
    return {
        "values": torch.cat([view.values for view in views]),
        "sources": torch.cat([view.sources for view in views]),
        "lengths": torch.tensor([len(view.values) for view in views]),
        "seen": torch.cat(seen),
        "counts": torch.tensor([len(pairs) for pairs in seen]),
    }


def _vectors(video: VideoSquares, teacher: FrameExtractor) -> torch.Tensor:
    parts = []
    for start in range(0, video.count, _FRAMES_A_PASS):
        squares = video.read(start, min(video.count, start + _FRAMES_A_PASS))
        images = np.ascontiguousarray(squares.permute(0, 2, 3, 1).numpy())
        features = teacher.extract(Frames(images, np.arange(len(images), dtype=np.float64)))
        parts.append(functional.normalize(features.whole.float().mean(1), dim=-1))
    return torch.cat(parts)
