"""Read footage for composing videos: real single-shot clips and photographs, scaled to one small size."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.errors import InvalidArgumentError
from vidkin.media import iter_planes

__all__ = ["Clip", "Footage", "read_footage"]

PathLike = str | os.PathLike[str]

_log = logging.getLogger(__name__)

# Height of photographs relative to a frame; they are larger so that a camera can move over them.
_PHOTOGRAPH = 2.25


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A clip without cuts.

    Attributes:
        name: Name of its file.
        luma: [T, H, W] uint8 luma.
        chroma: [T, 2, H/2, W/2] uint8 chroma.
    """

    name: str
    luma: NDArray[np.uint8]
    chroma: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.luma)

    def pictures(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return luma and chroma [N, 3, H, W], 0 to 255, of the frames with these numbers."""
        chroma = self.chroma[numbers].repeat(2, 2).repeat(2, 3)
        return np.concatenate([self.luma[numbers][:, None], chroma], 1).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Footage:
    """Footage for composing videos.

    Attributes:
        height: H of all clips.
        width: W of all clips.
        clips: Single shots with at least two frames each.
        photographs: [3, h, w] uint8 luma and chroma, at least twice as high as the clips; may be empty.
    """

    height: int
    width: int
    clips: tuple[Clip, ...]
    photographs: tuple[NDArray[np.uint8], ...] = ()

    def __post_init__(self) -> None:
        if not self.clips:
            raise InvalidArgumentError("clips must contain at least one clip, got none")
        for clip in self.clips:
            if clip.luma.shape[1:] != (self.height, self.width) or len(clip) < 2:
                raise InvalidArgumentError(
                    f"frames of {clip.name} must be [T, {self.height}, {self.width}] with T at least 2, got "
                    f"{list(clip.luma.shape)}"
                )


def read_footage(
    clips: Sequence[PathLike],
    photographs: Sequence[PathLike] = (),
    *,
    height: int = 72,
    width: int = 128,
    on_progress: Callable[[int, int], None] | None = None,
) -> Footage:
    """Read clips and photographs into memory.

    Args:
        clips: Videos with a single shot each.
        photographs: Images. Files that cannot be read are skipped with a warning in the log.
        height, width: Size of the composed frames, even numbers; all footage is resized to it.
        on_progress: Callback that receives (files read, total number of files).

    Raises:
        MediaError: A clip cannot be read.
        InvalidArgumentError: There are no clips.
    """
    total = len(clips) + len(photographs)
    read: list[Clip] = []
    for path in clips:
        blocks = list(iter_planes(path, height=height, width=width))
        read.append(
            Clip(
                Path(path).name,
                np.concatenate([block.luma for block in blocks]),
                np.concatenate([block.chroma for block in blocks]),
            )
        )
        if on_progress is not None:
            on_progress(len(read), total)
    pictures = []
    for number, path in enumerate(photographs, start=1):
        # Luma and chroma [3, h, w] with the requested shorter side.
        side = round(_PHOTOGRAPH * height)
        try:
            with Image.open(path) as image:
                picture = image.convert("YCbCr")
        except OSError as error:
            _log.warning("%s: skipped, not readable as an image: %s", path, error)
            continue
        scale = side / min(picture.size)
        size = (max(side, round(picture.width * scale)), max(side, round(picture.height * scale)))
        pictures.append(np.ascontiguousarray(np.asarray(picture.resize(size)).transpose(2, 0, 1)))
        if on_progress is not None:
            on_progress(len(read) + number, total)
    return Footage(height, width, tuple(read), tuple(pictures))
