"""Views: which boxes of a picture are described beside the whole.

A copy may show a part of the original (a crop, a 9:16 reframe), or the original may be a part of the copy (blurred
borders, split screens, insets). A frame is therefore seen in several views, and two frames are compared by the best
pair of views in which one side is the whole picture: views of the query detect material that was added around the
original, views of stored videos detect material that was cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import short_digest
from vidkin.errors import InvalidArgumentError
from vidkin.features.content_boxes import MOST_BOXES, find_content_boxes, overlap
from vidkin.features.contracts import FrameExtractor, Views
from vidkin.features.information import bar_boxes, frame_information, look_at, remember_look
from vidkin.similarity import WHOLE, Box, FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Least intersection over union at which a box counts as one found before.
_SAME = 0.8

_THIRDS = (0.0, 1 / 3, 2 / 3)
_BETWEEN_THIRDS = (1 / 6, 1 / 2)
_CORNERS = (0.57, 0.8)
_CENTERS = (0.85, 0.7)


def _column(left: float) -> Box:
    return (left, 0.0, left + 1 / 3, 1.0)


def _row(top: float) -> Box:
    return (0.0, top, 1.0, top + 1 / 3)


_FIXED: tuple[Box, ...] = (
    WHOLE,
    *(((1 - side) / 2, (1 - side) / 2, (1 + side) / 2, (1 + side) / 2) for side in _CENTERS),
    *(
        (left, top, left + side, top + side)
        for side in _CORNERS[::-1]
        for top in (0.0, 1.0 - side)
        for left in (0.0, 1.0 - side)
    ),
    *map(_column, _THIRDS),
    *map(_row, _THIRDS),
    (0.0, 0.0, 0.5, 1.0),
    (0.5, 0.0, 1.0, 1.0),
    (0.0, 0.0, 1.0, 0.5),
    (0.0, 0.5, 1.0, 1.0),
)
GRID: tuple[Box, ...] = (*_FIXED, *map(_column, _BETWEEN_THIRDS))
"""The fixed views of a wide picture: left, top, right, bottom as shares of it, the whole picture first.

Centers and corners are the parts a crop keeps; columns are where the window of an upright reframe can be (five places
along which it moves); halves and small corners are the parts of a split screen.
"""
_TALL_GRID: tuple[Box, ...] = (*_FIXED, *map(_row, _BETWEEN_THIRDS))
# Views of mirrored frames besides the boxes found: the whole and the parts a crop keeps.
_MIRRORED = 1 + len(_CENTERS) + 4
DISTINCT_VIEWS: tuple[Box, ...] = (WHOLE, *GRID[_MIRRORED:])
"""The views of the grid, except those that are nearly the whole picture."""


# What fingerprints without a suffix stand for: change nothing here when the grid changes.
_FIRST_GRID = "906c8e64dcde"


def grid_suffix(views: Views) -> str:
    """What an extractor with views adds to its fingerprint, so that features in other boxes are never mixed.

    Empty for the grid of the first version, with which existing indexes were made, and without views.
    """
    if views == "none":
        return ""
    grid = short_digest([GRID, _TALL_GRID, _MIRRORED, MOST_BOXES])
    return "" if grid == _FIRST_GRID else f"-grid-{grid}"


def check_views(name: str) -> Views:
    """Return the name if it is ``none``, ``query`` or ``both``.

    Raises:
        InvalidArgumentError: The name is not one of these.
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


def mirror_boxes(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Boxes [N, 4] in the picture flipped left to right."""
    return np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], axis=1)


def place_boxes(boxes: NDArray[np.float32], pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """Convert boxes [V, 4] from shares of the pictures inside frames to shares of the frames, [T, V, 4].

    Args:
        boxes: [V, 4] left, top, right, bottom.
        pictures: [T, 4], where the picture is in each frame: the whole frame, or the part between black bars.
    """
    corner = pictures[:, None, [0, 1, 0, 1]]
    size = (pictures[:, 2:] - pictures[:, :2])[:, None, [0, 1, 0, 1]]
    return corner + size * boxes


def shares_of_edges(edges: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The pictures of :func:`vidkin.features.bar_boxes` as boxes: left, top, right, bottom as shares, [T, 4] float32.

    Args:
        edges: [T, 4] top, bottom, left, right in pixels.
        shape: Shape of the frames, (T, H, W, 3).
    """
    height, width = shape[1:3]
    return (edges[:, [2, 0, 3, 1]] / [width, height, width, height]).astype(np.float32)


def features_of_views(
    describe: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    frames: Frames,
    fingerprint: str,
    *,
    mirror: bool = False,
    boxes: NDArray[np.float32] | None = None,
) -> FrameFeatures:
    """Features of frames in every view, for extractors that know only whole images.

    Views are cut from the picture between black bars; the whole is described as the extractor sees it.

    Args:
        describe: Function from images [T, H, W, 3] to descriptors [T, R, D].
        frames: T frames.
        fingerprint: Fingerprint of the extractor.
        mirror: Flip the frames first.
        boxes: [V, 4] shares of the (flipped) picture, the whole first; None describes only the whole.

    Returns:
        Features with the boxes as shares of every frame.
    """
    images = np.ascontiguousarray(frames.images[:, :, ::-1]) if mirror else frames.images
    timestamps = frames.timestamps.copy()
    if boxes is None:
        return FrameFeatures.of_whole(describe(images), timestamps, frame_information(frames.images), fingerprint)
    whole = describe(images)
    values = np.zeros((len(images), len(boxes), *whole.shape[1:]), whole.dtype)
    values[:, 0] = whole
    look = look_at(frames.images)
    edges = bar_boxes(images) if mirror else look.edges
    for top, bottom, left, right in np.unique(edges, axis=0).tolist():
        rows = np.flatnonzero((edges == (top, bottom, left, right)).all(axis=1))
        pictures = images[rows, top:bottom, left:right]
        for view, box in enumerate(boxes.tolist()[1:], start=1):
            values[rows, view] = describe(np.ascontiguousarray(crop_box(pictures, tuple(box))))
    placed = place_boxes(boxes, shares_of_edges(edges, images.shape))
    return FrameFeatures(values, timestamps, look.information, fingerprint, boxes=placed)


class ViewPlan:
    """Boxes in which consecutive stretches of a video are described: the grid, then up to four found in the frames.

    A box found again in the next stretch keeps its place, so that a view means the same throughout the video.
    """

    def __init__(self) -> None:
        self._found: list[tuple[float, ...] | None] = [None] * MOST_BOXES
        self._grid: tuple[Box, ...] | None = None

    def boxes(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Boxes [V, 4] for frames [T, H, W, 3] that follow those of the last call; zeros where there is no box.

        Shares of the picture between black bars.
        """
        if self._grid is None:
            top, bottom, left, right = look_at(images).edges[0].tolist() if len(images) else (0, 0, 0, 0)
            self._grid = GRID if right - left >= bottom - top else _TALL_GRID
        boxes = [tuple(box) for box in find_content_boxes(images, between_bars=True).tolist()]
        places: list[tuple[float, ...] | None] = [None] * MOST_BOXES
        for place, before in enumerate(self._found):
            again = next((box for box in boxes if before is not None and overlap(box, before) >= _SAME), None)
            if again is not None:
                places[place] = again
                boxes.remove(again)
        # New boxes prefer places without a box, so that earlier boxes are not mixed with others.
        free = sorted(
            (at for at in range(MOST_BOXES) if places[at] is None), key=lambda at: self._found[at] is not None
        )
        for place, box in zip(free, boxes, strict=False):
            places[place] = box
        self._found = [box or before for box, before in zip(places, self._found, strict=True)]
        return np.array([*self._grid, *(box or (0.0, 0.0, 0.0, 0.0) for box in places)], dtype=np.float32)


def describe_views(
    extractor: FrameExtractor,
    frames: Frames,
    boxes: NDArray[np.float32],
    *,
    mirrors: tuple[bool, ...] = (False,),
    begun: int = 0,
    stride: int = 1,
) -> tuple[FrameFeatures, ...]:
    """Features of frames in the boxes of a :class:`ViewPlan`; mirrored frames in the whole, the crops and the found
    boxes.

    The whole picture is described in every frame, its parts in every ``stride``-th frame of a video; their features
    are zero in the other frames.

    Args:
        extractor: An extractor of frames.
        frames: T frames.
        boxes: [V, 4] shares of the unflipped picture between black bars; zeros where there is no box.
        mirrors: Orientations to describe: unchanged (False), flipped left to right (True).
        begun: Number of frames of the video before these frames.
        stride: Distance of frames whose parts are described; 1 describes them in every frame.

    Returns:
        Features [T, V, R, D] for each of ``mirrors``; the boxes are shares of the unflipped frame, bars included.
    """
    seen = (np.arange(len(frames)) + begun) % stride == 0
    stretches = [(rows, _chosen(frames, rows), parts) for rows, parts in ((seen, True), (~seen, False)) if rows.any()]
    results = []
    for mirror in mirrors:
        places = np.concatenate([boxes[:_MIRRORED], boxes[len(GRID) :]]) if mirror else boxes
        there = np.flatnonzero(places.any(axis=1))
        cut = places[there]
        if mirror:
            cut = mirror_boxes(cut)
        described = [
            (
                np.flatnonzero(rows)[:, None],
                parts,
                extractor.extract(stretch, mirror=mirror, boxes=cut[: None if parts else 1]),
            )
            for rows, stretch, parts in stretches
        ]
        first = described[0][2]
        values = np.zeros((len(frames), len(places), *first.values.shape[2:]), first.values.dtype)
        information = np.zeros(len(frames), np.float32)
        placed = np.tile(places, (len(frames), 1, 1))
        for rows, parts, features in described:
            information[rows[:, 0]] = features.information
            if features.boxes is not None:
                pictures = features.boxes[:, 0]
                placed[rows, there] = place_boxes(places[there], mirror_boxes(pictures) if mirror else pictures)
            values[rows, there if parts else there[:1]] = features.values
        results.append(FrameFeatures(values, frames.timestamps.copy(), information, first.fingerprint, boxes=placed))
    return tuple(results)


def _chosen(frames: Frames, rows: NDArray[np.bool_]) -> Frames:
    """Some of the frames, of which the same is known."""
    if rows.all():
        return frames
    chosen = frames[rows]
    remember_look(chosen.images, look_at(frames.images).of(rows))
    return chosen
