"""Pictures and frames in memory as queries."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from vidkin.errors import InvalidArgumentError
from vidkin.media import Frames, write_video

__all__ = ["FrameQuery", "QuerySource", "query_file"]

FrameQuery = Image.Image | NDArray[np.uint8] | Frames
"""A picture, an array [H, W, 3] or [T, H, W, 3] of RGB, or frames with their times."""

QuerySource = str | os.PathLike[str] | FrameQuery
"""What can be searched for: a file, or frames in memory."""


@contextmanager
def query_file(query: QuerySource, frame_rate: float | None = None) -> Iterator[str | os.PathLike[str]]:
    """Yield a file for the query: its own, or a temporary lossless one.

    Frames are thus sampled and described exactly as a file with them would be.

    Args:
        query: A file, a picture, an array of uint8 RGB, or frames.
        frame_rate: Frames per second of an array of several frames.

    Raises:
        InvalidArgumentError: The query is none of these, or an array of several frames has no rate.
    """
    if isinstance(query, str | os.PathLike):
        yield query
        return
    images, times = _frames(query, frame_rate)
    with tempfile.TemporaryDirectory(prefix="vidkin-") as folder:
        if len(images) == 1:
            path = Path(folder) / "query.png"
            Image.fromarray(images[0]).save(path, compress_level=1)
        else:
            path = Path(folder) / "query.mkv"
            write_video(
                path,
                images,
                rate=frame_rate or 25,
                times=times,
                codec="ffv1",
                crf=None,
                preset=None,
                pixel_format="bgr0",
            )
        yield path


def _frames(query: FrameQuery, frame_rate: float | None) -> tuple[NDArray[np.uint8], list[float] | None]:
    """Images [T, H, W, 3], and their times from the first one on; None if they are evenly spaced."""
    if isinstance(query, Frames):
        if len(query) == 0:
            raise InvalidArgumentError("query must have at least one frame, got none")
        return query.images, (query.timestamps - query.timestamps[0]).tolist()
    if isinstance(query, Image.Image):
        return np.asarray(ImageOps.exif_transpose(query).convert("RGB"))[None], None
    images: Any = query
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape[-1:] != (3,):
        kind = (
            f"{list(query.shape)} {query.dtype}" if isinstance(images, np.ndarray) else type(query).__name__
        )
        raise InvalidArgumentError(
            f"query must be a file, a PIL image, Frames, or an array [H, W, 3] or [T, H, W, 3] uint8, got {kind}"
        )
    if images.ndim == 3:
        images = images[None]
    if images.ndim != 4 or 0 in images.shape:
        raise InvalidArgumentError(
            f"query must be [H, W, 3] or [T, H, W, 3] with at least one frame, got {list(query.shape)}"
        )
    if len(images) > 1 and (frame_rate is None or not 0 < frame_rate < float("inf")):
        raise InvalidArgumentError(
            f"frame_rate must be the frames per second of the array [T, H, W, 3], above 0, got {frame_rate}"
        )
    return images, None
