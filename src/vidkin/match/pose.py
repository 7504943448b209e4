"""Orientation of a copy (quarter turns, then a mirror flip) and how to find it from thumbnails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.similarity.contracts import THUMBNAIL, Box

__all__ = ["PLAIN", "Pose", "ShownShapes", "compare_shapes", "find_pose"]


@check_constructor
@dataclass(frozen=True, slots=True)
class Pose:
    """The transform from the orientation of one frame to that of another.

    Attributes:
        flip: Whether the frame is mirrored left to right, after rotation.
        quarter: Number of clockwise quarter turns, 0 to 3.
    """

    flip: bool = False
    quarter: int = 0

    def __post_init__(self) -> None:
        if self.quarter not in range(4):
            raise InvalidArgumentError(f"quarter must be 0, 1, 2 or 3 clockwise quarter turns, got {self.quarter!r}")

    def compose(self, after: Pose) -> Pose:
        """Return this pose followed by ``after``, as one pose."""
        # A rotation after a flip equals the opposite rotation before it.
        turn = -after.quarter if self.flip else after.quarter
        return Pose(self.flip != after.flip, (self.quarter + turn) % 4)

    @property
    def inverse(self) -> Pose:
        """The pose that undoes this one."""
        return Pose(self.flip, self.quarter if self.flip else -self.quarter % 4)

    def apply(self, images: NDArray[np.generic]) -> NDArray[np.generic]:
        """Transform frames [..., H, W, C] to this pose."""
        turned = np.rot90(images, -self.quarter, axes=(-3, -2))
        return turned[..., ::-1, :] if self.flip else turned

    def apply_to_box(self, box: Box) -> Box:
        """Transform a box (left, top, right, bottom, as fractions of the frame size) along with its frame."""
        left, top, right, bottom = box
        for _ in range(self.quarter):
            left, top, right, bottom = 1 - bottom, left, 1 - top, right
        return (1 - right, top, 1 - left, bottom) if self.flip else (left, top, right, bottom)


PLAIN = Pose()
"""The identity: neither rotated nor mirrored."""
_POSES = tuple(Pose(flip, quarter) for flip in (False, True) for quarter in range(4))
# Maximum number of evenly spaced frames used to find the pose.
_MAX_FRAMES = 8
# Minimum lead of another pose's correlation over the identity. It keeps nearly all upright copies upright (except
# insets, which are matched by their own boxes) and still finds mirrored and rotated copies.
_MARGIN = 0.15
# Sizes of windows of a frame that a crop may show, as fractions of the frame size, and their positions as fractions of
# the remaining space. The whole frame is tried as well.
_SIZES, _POSITIONS = (0.8, 0.6, 0.4), (0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class ShownShapes:
    """Agreement of the thumbnails of matching frames.

    Attributes:
        pose: Transform from the orientation of the query to that of the target.
        agreement: Mean correlation of the thumbnails in this pose, over the best-matching window.
        upright: Mean correlation without a change of pose.
        change: Correlation of the changes over time; 0 for a single frame.
        query_moves, target_moves: RMS change of a thumbnail pixel over time, in gray levels.
    """

    pose: Pose
    agreement: float
    upright: float
    change: float
    query_moves: float
    target_moves: float


@check_arguments
def compare_shapes(query: NDArray[np.uint8], target: NDArray[np.uint8]) -> ShownShapes:
    """Compare the thumbnails of matching frames.

    Frame vectors are invariant to the pose, so thumbnails determine it: the pose with the highest mean correlation,
    over windows of one frame that the other may show as a crop.

    Args:
        query: [N, 8, 8] thumbnails, N at least 1.
        target: [N, 8, 8] thumbnails of the matching frames.
    """
    chosen = np.unique(np.linspace(0, len(query) - 1, _MAX_FRAMES).astype(np.intp))
    own, other = (_windows_of(side[chosen].astype(np.float32)) for side in (query, target))
    one, two, places = _normalize(own), _normalize(other), _pose_sources()
    # Correlate the transformed query with windows of the target, and vice versa.
    inside = _multiply(one[0][:, places], two) / len(chosen)
    around = _multiply(two[0][:, np.argsort(places, axis=1)], one) / len(chosen)
    best = np.maximum(inside.max(axis=1), around.max(axis=1))
    number = int(best.argmax())
    number = number if best[number] >= best[0] + _MARGIN else 0
    if inside[number].max() >= around[number].max():
        first, second = own[0], other[int(inside[number].argmax())]
    else:
        first, second = own[int(around[number].argmax())], other[0]
    first, second = first[:, places[number]] - first[:, places[number]].mean(axis=0), second - second.mean(axis=0)
    moves = float(np.sqrt((first**2).mean())), float(np.sqrt((second**2).mean()))
    change = float((first * second).mean()) / max(moves[0] * moves[1], 1e-3)
    return ShownShapes(_POSES[number], float(best[number]), float(best[0]), change, *moves)


def _multiply(posed: NDArray[np.float32], windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dot products [8, K] of thumbnails in all poses [N, 8, 64] with all windows [K, N, 64]."""
    return np.asarray(posed.transpose(1, 0, 2).reshape(len(_POSES), -1) @ windows.reshape(len(windows), -1).T)


@cache
def _pose_sources() -> NDArray[np.intp]:
    """Source pixel [8, 64] of each pixel of a transformed thumbnail, for each of `_POSES`."""
    pixels = np.arange(THUMBNAIL**2).reshape(THUMBNAIL, THUMBNAIL, 1)
    return np.stack([np.asarray(pose.apply(pixels)[..., 0], np.intp).ravel() for pose in _POSES])


@check_arguments
def find_pose(query: NDArray[np.uint8], target: NDArray[np.uint8]) -> Pose:
    """Find the pose between matching frames, see :func:`compare_shapes`; the identity if there are no frames.

    Args:
        query: [N, 8, 8] thumbnails.
        target: [N, 8, 8] thumbnails of the matching frames.

    Raises:
        InvalidArgumentError: The shapes differ or are not [N, 8, 8].
    """
    if query.shape != target.shape or query.shape[1:] != (THUMBNAIL, THUMBNAIL):
        raise InvalidArgumentError(
            f"query and target must be [N, {THUMBNAIL}, {THUMBNAIL}], got {list(query.shape)} and {list(target.shape)}"
        )
    return compare_shapes(query, target).pose if len(query) else PLAIN


def _windows_of(frames: NDArray[np.float32]) -> NDArray[np.float32]:
    """Windows [K, N, 64] of frames [N, 8, 8]."""
    rows, columns = _window_weights()
    windows = rows[:, None] @ frames[None] @ columns[:, None]
    return np.asarray(windows.reshape(*windows.shape[:2], -1), np.float32)


def _normalize(windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalize windows [K, N, 64] to zero mean and unit length."""
    flat = windows - windows.mean(axis=2, keepdims=True)
    return np.asarray(flat / (np.linalg.norm(flat, axis=2, keepdims=True) + 1e-3 * THUMBNAIL), np.float32)


@cache
def _window_weights() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights [K, 8, 8] that resample the rows, and weights that resample the columns, of each window to 8 pixels.

    The first window is the whole frame. Windows have the frame's aspect ratio, or its full height or width.
    """
    spans = [(1.0, 0.0)] + [(size, (1 - size) * position) for size in _SIZES for position in _POSITIONS]
    each = [_resampling_weights(start, start + size) for size, start in spans]
    pairs = [
        (one, other)
        for one, (height, _) in enumerate(spans)
        for other, (width, _) in enumerate(spans)
        if height == width or 1.0 in (height, width)
    ]
    rows, columns = (np.stack([each[pair[axis]] for pair in pairs]) for axis in (0, 1))
    return rows, np.ascontiguousarray(columns.transpose(0, 2, 1))


def _resampling_weights(first: float, last: float) -> NDArray[np.float32]:
    """Weights [8, 8] that resample the interval [first, last] of 8 pixels to 8 pixels by area averaging."""
    edges = (first + (last - first) * np.arange(THUMBNAIL + 1) / THUMBNAIL) * THUMBNAIL
    pixels = np.arange(THUMBNAIL)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights = np.maximum(overlap, 0.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float32)
