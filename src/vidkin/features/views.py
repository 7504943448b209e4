"""Views: which boxes of a picture are described beside the whole.

A copy may show a part of the original (a crop, a 9:16 reframe), or the original may be a part of the copy (blurred
borders, split screens, insets). A frame is therefore seen in several views, and two frames are compared by the best
pair of views in which one side is the whole picture: views of the query find what was put around it, views of what is
stored find what was cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.features.information import frame_information
from vidkin.similarity import WHOLE, FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

__all__ = ["GRID", "Views", "check_views", "crop_box", "features_of_views"]

Views = Literal["none", "query", "both"]
"""Which side is described in views: nobody, the query alone, or what is stored as well."""

_THIRDS = ((0.0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1.0))
_CORNER = 0.57

GRID: tuple[tuple[float, float, float, float], ...] = (
    WHOLE,
    (0.075, 0.075, 0.925, 0.925),
    (0.15, 0.15, 0.85, 0.85),
    *((left, 0.0, right, 1.0) for left, right in _THIRDS),
    *((0.0, top, 1.0, bottom) for top, bottom in _THIRDS),
    (0.0, 0.0, 0.5, 1.0),
    (0.5, 0.0, 1.0, 1.0),
    (0.0, 0.0, 1.0, 0.5),
    (0.0, 0.5, 1.0, 1.0),
    *(
        (left, top, left + _CORNER, top + _CORNER)
        for top in (0.0, 1.0 - _CORNER)
        for left in (0.0, 1.0 - _CORNER)
    ),
)
"""The fixed views: left, top, right, bottom as shares of the picture, the whole picture first."""


def check_views(name: str) -> Views:
    """The name itself, if it is one of ``none``, ``query``, ``both``.

    Raises:
        InvalidArgumentError: It is not.
    """
    for views in get_args(Views):
        if name == views:
            return views  # type: ignore[no-any-return]
    raise InvalidArgumentError(f"views must be one of {', '.join(get_args(Views))}, got {name!r}")


def crop_box(images: NDArray[np.uint8], box: tuple[float, float, float, float]) -> NDArray[np.uint8]:
    """The part of images [T, H, W, 3] inside a box of shares (left, top, right, bottom), at least one pixel wide."""
    height, width = images.shape[1:3]
    left, top = min(round(box[0] * width), width - 1), min(round(box[1] * height), height - 1)
    right, bottom = max(round(box[2] * width), left + 1), max(round(box[3] * height), top + 1)
    return images[:, top:bottom, left:right]


def features_of_views(
    describe: Callable[[NDArray[np.uint8]], torch.Tensor],
    frames: Frames,
    fingerprint: str,
    *,
    mirror: bool = False,
    boxes: torch.Tensor | None = None,
) -> FrameFeatures:
    """Features of frames in every view, for extractors that know only whole images.

    Args:
        describe: Images [T, H, W, 3] to descriptors [T, R, D].
        frames: T frames.
        fingerprint: Of the extractor.
        mirror: Flip the frames first.
        boxes: [V, 4] shares of the (flipped) picture, the whole first; None for the whole alone.
    """
    images = np.ascontiguousarray(frames.images[:, :, ::-1]) if mirror else frames.images
    timestamps, information = torch.from_numpy(frames.timestamps.copy()), frame_information(frames.images)
    if boxes is None:
        return FrameFeatures.of_whole(describe(images), timestamps, information, fingerprint)
    views = [describe(np.ascontiguousarray(crop_box(images, tuple(box)))) for box in boxes.tolist()]
    return FrameFeatures(torch.stack(views, dim=1), timestamps, information, fingerprint, boxes=boxes)
