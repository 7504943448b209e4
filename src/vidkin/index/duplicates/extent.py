"""How much of the picture two files share: crops, insets and split screens.

A crop can be removed if what it was cut from stays. A film and a split screen that has it in one quarter must both
stay: the one is sharper, the other shows more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vidkin.index.duplicates.comparisons import PairResult
from vidkin.index.duplicates.files import FileRecord
from vidkin.index.duplicates.pictures import Pictures, read_pictures
from vidkin.similarity import Box

__all__ = ["Extent", "extent_of", "find_missing_picture"]

_WHOLE_PICTURE = 0.8
"""A box with at least this share of the content is all of it: boxes of parts are on a coarse grid."""

_SHARPER = 1.3
"""A file is sharper if it has this many times the pixels of the same part."""

_MOMENTS = 3


@dataclass(frozen=True, slots=True)
class Extent:
    """Share of their content that two files have in common, without borders.

    Attributes:
        first, second: Shared part of their content, in (0, 1].
        first_pixels, second_pixels: Number of pixels of their content.
    """

    first: float
    second: float
    first_pixels: int
    second_pixels: int

    @property
    def missing(self) -> str:
        """What part of the picture would be lost without the first file; empty if nothing."""
        if self.first < _WHOLE_PICTURE:
            return "shows more of the picture"
        if self.second < _WHOLE_PICTURE and self.first_pixels > _SHARPER * self.second * self.second_pixels:
            return "sharper than the part that shows it"
        return ""

    @property
    def is_small_part(self) -> bool:
        """Whether a part of the first picture shows all of the second, with clearly fewer pixels."""
        is_part = self.first < _WHOLE_PICTURE <= self.second
        return is_part and self.second_pixels > _SHARPER * self.first * self.first_pixels


def extent_of(result: PairResult, first: Pictures, second: Pictures) -> Extent:
    """Shared extent of two files, by the boxes of the best segment.

    Args:
        result: Result for the two videos, with the first as the query.
        first, second: Pictures of the two videos.
    """
    shares = [1.0, 1.0]
    if result.segments:
        boxes = result.segments[0].query_box, result.segments[0].target_box
        shares = [min(1.0, _area(box) / side.share) for box, side in zip(boxes, (first, second), strict=True)]
    return Extent(shares[0], shares[1], first.pixels, second.pixels)


def find_missing_picture(first: FileRecord, second: FileRecord, result: PairResult) -> tuple[str, str]:
    """Say what part of the picture would be lost without the first file, and without the second; empty if nothing.

    The files are read only if a part of one picture is all that matches.

    Args:
        first, second: The files.
        result: Result for the two videos, with the first as the query.

    Raises:
        MediaError: One of the files cannot be read.
    """
    if not result.segments:
        return "", ""
    best = result.segments[0]
    if min(_area(best.query_box), _area(best.target_box)) >= _WHOLE_PICTURE:
        return "", ""
    steps = (np.arange(_MOMENTS) + 0.5) / _MOMENTS
    sides: Sequence[tuple[FileRecord, float, float]] = (
        (first, best.query_start, best.query_end),
        (second, best.target_start, best.target_end),
    )
    one, other = (
        read_pictures(file.record.path, [float(start + step * (end - start)) for step in steps])
        for file, start, end in sides
    )
    return extent_of(result, one, other).missing, extent_of(result.swapped(), other, one).missing


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])
