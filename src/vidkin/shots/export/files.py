"""Files made of shots: a thumbnail of each, and pieces of the video."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidkin._base.outputs import create_folder, open_output
from vidkin.media import SplitReport, iter_frames, split_video

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["iter_shot_images", "split_shots", "write_thumbnails"]

PathLike = str | os.PathLike[str]

_JPEG_QUALITY = 88


def write_thumbnails(
    detection: ShotDetection, folder: PathLike, *, short_side: int = 160
) -> tuple[Path, ...]:
    """Save the middle frame of every shot as ``<name>-0001.jpg`` and so on, in one pass over the video.

    Args:
        detection: The shots.
        folder: Where to write; created if it does not exist.
        short_side: Pixels at the shorter side (never more than the video has).

    Returns:
        The images, in order of the shots.

    Raises:
        MediaError: The video cannot be read, or an image cannot be written.
    """
    from PIL import Image

    target = create_folder(folder)
    digits = max(4, len(str(len(detection.shots))))
    paths: list[Path] = []
    for number, image in iter_shot_images(detection, short_side=short_side):
        paths.append(target / f"{Path(detection.path).stem}-{number:0{digits}d}.jpg")
        with open_output(paths[-1]) as partial:
            Image.fromarray(image).save(partial, quality=_JPEG_QUALITY)
    return tuple(paths)


def iter_shot_images(
    detection: ShotDetection, *, short_side: int = 160
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Number (from 1) and middle frame [H, W, 3] of every shot, in one pass over the video.

    Raises:
        MediaError: The video cannot be read.
    """
    shots_at: dict[int, list[int]] = {}  # frame -> numbers of the shots that it is the middle of
    for number, shot in enumerate(detection.shots, start=1):
        shots_at.setdefault((shot.start_frame + shot.end_frame - 1) // 2, []).append(number)
    frame = 0
    for batch in iter_frames(detection.path, rate=None, short_side=short_side):
        for image in batch.images:
            for number in shots_at.get(frame, ()):
                yield number, image
            frame += 1


def split_shots(detection: ShotDetection, folder: PathLike) -> SplitReport:
    """Split the video before its shots without re-encoding, see `vidkin.media.split_video`.

    ``parts`` of the pieces are indices of ``detection.shots``.
    """
    return split_video(detection.path, folder, [shot.start for shot in detection.shots])
