"""Where and when a copy shows the picture of another video, measured on a few frames of both.

The boxes of a match are rough, and its times those of sampled frames. What kind of copy it is shows only in the exact
place.

Shapes: N moments; H, W pixels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.index.duplicates.pictures import find_bars, read_moments
from vidkin.index.duplicates.template_search import find_part
from vidkin.match.pose import PLAIN, Pose
from vidkin.similarity import WHOLE, Box, Segment

# Moments that are compared, and the shorter side of their pictures in pixels. They are among so many evenly spread ones
# of the other video, so that all its copies are compared with the same frames of it, which are read once.
_MOMENTS, _SHORT_SIDE, _SPREAD = 4, 288, 8
# The shorter side of pictures that are only compared in a known place.
_GLANCE_SIDE = 144
# Frames of the other video that may be the same moment: so many seconds around it, so many a second.
_REACH, _RATE = 0.6, 25.0
# Sizes (H, W) of the pictures by which moments and place are refined, coarse to fine, each with how many times smaller
# a frame may be that they are cut from.
_STEPS = {(36, 48): 4, (72, 96): 2, (132, 176): 1}
_COARSE, _USUAL, _ = _STEPS
# Frames that have fewer lines than twice this are not made smaller.
_SMALLEST_SIDE = 64
# Rounds of one refinement, the largest change of an edge in one of them, and the change in pixels at which it ends.
_ROUNDS, _MAX_CHANGE, _STILL = 6, 0.1, 0.03
# From this correlation on, nothing is searched for.
_SURE = 0.95
# Of the lags, every third one is tried with a place of its own.
_LAGS_APART = 3
# Lags on each side of the best one that are compared again once the place is better known.
_NEARBY = 3
# A guess must agree better than an earlier one by this much: a small part of a picture agrees with much.
_MORE = 0.02
# Parts of a picture that are searched for in the other one, one after another: captions are above or below.
_PARTS: tuple[Box, ...] = (WHOLE, (0.0, 0.0, 1.0, 0.7), (0.0, 0.3, 1.0, 1.0))
# Blocks of a picture along each side that are compared by themselves, gray levels by which one deviates that tells
# anything, and how many such blocks are needed.
_BLOCKS, _TEXTURE, _FEWEST_BLOCKS = 4, 3.0, 4
# A block is trusted from this correlation on; others count so much when the brightness is fitted.
_ALIKE, _LITTLE = 0.7, 0.01
# A moment counts if the agreement there is at least this, and at least this share of the best one.
_LEAST_AGREEMENT, _OF_BEST = 0.75, 0.85
# How much better the best moment must agree than others for its time to be exact.
_DISTINCT = 0.01
# Speeds this close to 1, and lines on which the moments found lie with at most so many seconds between.
_USUAL_SPEED, _SAME_LINE = 0.01, 0.06
# Seconds by which moments may be off, by two frames at ten a second, while both videos run at one speed.
_OFF_BY_FRAMES = 0.21
# A speed must differ by this from 1 to be believed where the moments do not show it.
_OTHER_SPEED = 0.15


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of one picture in another: in shares of the sides, second = scale * first + shift.

    Attributes:
        scale: Of x and y, above 0; below 1 if the first is a crop of the second.
        shift: Of x and y.
    """

    scale: tuple[float, float] = (1.0, 1.0)
    shift: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def between(cls, first: Box, second: Box) -> Placement:
        """The one that puts a box of the first picture on a box of the second."""
        scale = tuple((second[axis + 2] - second[axis]) / (first[axis + 2] - first[axis]) for axis in (0, 1))
        shift = tuple(second[axis] - scale[axis] * first[axis] for axis in (0, 1))
        return cls((scale[0], scale[1]), (shift[0], shift[1]))

    @property
    def seen(self) -> Box:
        """The part of the second picture that the first one shows."""
        low = [max(0.0, shift) for shift in self.shift]
        high = [min(1.0, scale + shift) for scale, shift in zip(self.scale, self.shift, strict=True)]
        return _proper(low[0], low[1], high[0], high[1])

    @property
    def shown(self) -> Box:
        """The part of the first picture that shows the second one."""
        return replace(
            self,
            scale=(1 / self.scale[0], 1 / self.scale[1]),
            shift=(-self.shift[0] / self.scale[0], -self.shift[1] / self.scale[1]),
        ).seen


@dataclass(frozen=True, slots=True, eq=False)
class PlacedFrames:
    """Frames of two videos that show the same moments, and where in the picture.

    Attributes:
        first: [N, H, W, 3] frames of the copy, flipped or turned as the other one is.
        second: [N, H', W', 3] frames of the other one.
        first_times, second_times: [N] seconds.
        placement: Place of the copy's picture in the other one.
        agreement: Correlation in [-1, 1] of the parts that both show, in most of the picture.
        first_picture, second_picture: Boxes of the pictures without black bars.
        exact: Whether the moments agree better than those just before and after, so that the times are exact.
        pose: How the frames of the copy were turned and flipped.
    """

    first: NDArray[np.uint8]
    second: NDArray[np.uint8]
    first_times: NDArray[np.float64]
    second_times: NDArray[np.float64]
    placement: Placement
    agreement: float
    first_picture: Box
    second_picture: Box
    exact: bool
    pose: Pose

    def common(self, size: tuple[int, int]) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
        """The part that both show, of each moment and of both videos, as pictures [*size, 3]."""
        boxes = self.placement.shown, self.placement.seen
        for one, other in zip(self.first, self.second, strict=True):
            sides = (
                np.asarray(_cut(Image.fromarray(image), box, size))
                for image, box in zip((one, other), boxes, strict=True)
            )
            yield next(sides), next(sides)


def place_frames(first: str, second: str, segment: Segment, lengths: tuple[float, float]) -> PlacedFrames | None:
    """Find the moments of the second video that the first one shows, and where.

    Four frames of the first and those within .6 s of the same moments of the second are read. Candidates for the place
    are the pictures without bars, the boxes of the segment and, if these agree badly, the best place of a template
    search at many sizes, in both directions. Moments and place are refined in turn: the place by least squares (Lucas
    and Kanade) with weights that ignore what only one of them has.

    Args:
        first, second: The files.
        segment: Where they match, the first as the query.
        lengths: Durations of both in seconds.

    Returns:
        None if the frames agree nowhere.

    Raises:
        MediaError: One of the files cannot be read.
    """
    moments = _moments(segment, lengths[1])
    there = segment.query_start + (moments - segment.target_start) / segment.speed
    images, times = read_moments(first, there, lengths[0], short_side=_SHORT_SIDE)
    pose = pose_of(segment)
    own = _Frames(np.asarray(pose.apply(images), np.uint8), times)
    status = os.stat(second)
    others = _read_around(second, status.st_size, status.st_mtime_ns, tuple(moments.tolist()), lengths[1])
    # The frames of the second video for each moment [N], and lag [L], along the line of the match.
    line = segment.target_start + segment.speed * (times - segment.query_start)
    lags = np.arange(-round(_REACH * _RATE), round(_REACH * _RATE) + 1) / _RATE
    rows = np.abs(others.times - (line[:, None] + lags)[..., None]).argmin(axis=2)
    best: _Guess | None = None
    for placement in _guesses(own, others, rows, segment, pose):
        found = _refine(own, others, rows, placement)
        if best is None or found.agreement > best.agreement + _MORE:
            best = found
        if best.agreement >= _SURE:
            break
    if best is None or best.agreement < _LEAST_AGREEMENT:
        return None
    kept = np.flatnonzero(best.agreements >= max(_LEAST_AGREEMENT, _OF_BEST * float(best.agreements.max())))
    kept = kept if len(kept) else np.arange(len(times))
    return PlacedFrames(
        own.images[kept],
        others.images[best.rows[kept]],
        times[kept],
        others.times[best.rows[kept]],
        best.placement,
        best.agreement,
        own.picture,
        others.picture,
        bool((best.ahead[kept] >= _DISTINCT).all()),
        pose,
    )


def pose_of(segment: Segment) -> Pose:
    """How the frames of the query of a segment are brought into the orientation of its target."""
    return Pose(segment.mirrored, segment.turned // 90)


def _moments(segment: Segment, length: float) -> NDArray[np.float64]:
    """Seconds of the target that are compared."""
    spread = length * (np.arange(_SPREAD) + 0.5) / _SPREAD
    inside = spread[(spread >= segment.target_start) & (spread <= segment.target_end)]
    if len(inside) < _MOMENTS:
        inside = np.linspace(segment.target_start, segment.target_end, 2 * _MOMENTS + 1)[1::2]
    chosen: NDArray[np.float64] = inside[np.rint(np.linspace(0, len(inside) - 1, _MOMENTS)).astype(np.int64)]
    return chosen


class _Frames:
    """Frames [T, H, W, 3] and their times [T] in seconds; gray ones are made when they are needed.

    Attributes:
        picture: The part without black bars.
    """

    def __init__(self, images: NDArray[np.uint8], times: NDArray[np.float64]) -> None:
        self.images, self.times = images, times
        height, width = images.shape[1:3]
        top, bottom, left, right = find_bars(images)
        self.picture: Box = left / width, top / height, right / width, bottom / height
        self._grays: dict[tuple[int, int], Image.Image] = {}

    def gray(self, row: int, smaller: int = 1) -> Image.Image:
        """One frame in gray, or about this many times smaller, which is faster to cut small parts from."""
        if (row, smaller) not in self._grays:
            whole = Image.fromarray(self.images[row]).convert("L") if smaller == 1 else self.gray(row, smaller // 2)
            is_large = smaller > 1 and min(whole.size) >= 2 * _SMALLEST_SIDE
            self._grays[row, smaller] = whole.reduce(2) if is_large else whole
        return self._grays[row, smaller]

    def canvases(self, rows: Sequence[int] | NDArray[np.int64], box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
        """The same part of several frames in gray, [rows, *size]."""
        return np.stack([_canvas(self.gray(int(row), _STEPS[size]), box, size) for row in rows])


@lru_cache(maxsize=2)
def _read_around(path: str, size: int, changed: int, moments: tuple[float, ...], length: float) -> _Frames:
    """The frames around some moments of a file of this size and time of change; held for its next copy.

    Raises:
        MediaError: The file cannot be read.
    """
    grid = np.arange(-round(_REACH * _RATE), round(_REACH * _RATE) + 1) / _RATE
    return _Frames(*read_moments(path, (np.array(moments)[:, None] + grid).ravel(), length, short_side=_SHORT_SIDE))


@dataclass(frozen=True, slots=True, eq=False)
class _Guess:
    """A place, and for each frame of the first video the one of the second that agrees best there.

    Attributes:
        placement: The place.
        rows: [N] the frames of the second video.
        lag: Which of the lags that were compared it is.
        agreements: [N] how much they agree.
        ahead: [N] how much better than the others do in the middle.
    """

    placement: Placement
    rows: NDArray[np.int64]
    lag: int
    agreements: NDArray[np.float64]
    ahead: NDArray[np.float64]

    @property
    def agreement(self) -> float:
        """How much the frames agree; those that agree hardly at all show something else."""
        least = max(_LEAST_AGREEMENT, _OF_BEST * float(self.agreements.max()))
        counted = self.agreements[self.agreements >= least]
        return float(counted.mean()) if len(counted) else float(self.agreements.max())


def _compare(
    own: _Frames, others: _Frames, rows: NDArray[np.int64], placement: Placement, size: tuple[int, int]
) -> _Guess:
    """The frames of the second video, of some for each moment and lag [N, L], that agree best in a place at one lag."""
    values = []
    for moment, near in enumerate(rows):
        once, back = np.unique(near, return_inverse=True)
        ones = own.canvases([moment], placement.shown, size)
        values.append(_agreements(ones, others.canvases(once, placement.seen, size))[back])
    agreements = np.stack(values)
    best = int(np.median(agreements, axis=0).argmax())  # one of the moments may be black
    ahead = agreements[:, best] - np.median(agreements, axis=1)
    return _Guess(placement, rows[:, best], best, agreements[:, best], ahead)


def _guesses(
    own: _Frames, others: _Frames, rows: NDArray[np.int64], segment: Segment, pose: Pose
) -> Iterator[Placement]:
    """Places that the pictures may have: by their bars, as they are, by the match, and by template search."""
    # The boxes of a segment are in the pictures as they are, bars and all.
    boxes = pose.apply_to_box(segment.query_box), segment.target_box
    of_match = [
        picture if box == WHOLE else box for box, picture in zip(boxes, (own.picture, others.picture), strict=True)
    ]
    yield from dict.fromkeys(
        [Placement.between(own.picture, others.picture), Placement(), Placement.between(*of_match)]
    )
    # The most textured frame tells most.
    place = int(np.argmax([np.asarray(own.gray(row)).std() for row in range(len(own.times))]))
    gray = own.gray(place)
    some = [others.gray(int(row)) for row in np.unique(rows[place, :: rows.shape[1] // 4])]
    for part in _PARTS:
        one, two = part_of(own.picture, part), part_of(others.picture, part)
        inside = [find_part(_upright(other, others.picture), _upright(gray, one)) for other in some]
        around = [find_part(_upright(gray, own.picture), _upright(other, two)) for other in some]
        yield Placement.between(one, part_of(others.picture, max(inside)[1]))
        yield Placement.between(part_of(own.picture, max(around)[1]), two)


def _refine(own: _Frames, others: _Frames, rows: NDArray[np.int64], placement: Placement) -> _Guess:
    """Refine a place and the moments in turn."""
    best = _settle(own, others, rows, _compare(own, others, rows, placement, _COARSE))
    if best.agreement >= _SURE:
        return best
    # A camera that pans or zooms shows another crop of the same a moment later: a place for each lag tells them apart.
    tried = []
    for column in range(0, rows.shape[1], _LAGS_APART):
        fitted = _fit(own, others, rows[:, column], best.placement, _COARSE)
        tried.append(_compare(own, others, rows[:, column : column + 1], fitted, _COARSE))
    tried.sort(key=lambda guess: -float(np.median(guess.agreements)))
    found = max((_settle(own, others, rows, guess) for guess in tried[:2]), key=lambda guess: guess.agreement)
    return found if found.agreement > best.agreement + _MORE else best


def _settle(own: _Frames, others: _Frames, rows: NDArray[np.int64], best: _Guess) -> _Guess:
    """Refine a place and the moments in turn, by larger and larger pictures."""
    for size in _STEPS:
        found = _compare(own, others, rows, _fit(own, others, best.rows, best.placement, size), _USUAL)
        if size != _COARSE and np.median(found.agreements) < np.median(best.agreements) - _MORE:
            break  # what only one of them has led away
        best = replace(found, ahead=np.maximum(found.ahead, best.ahead))
        rows = rows[:, max(0, found.lag - _NEARBY) : found.lag + _NEARBY + 1]
    return best


def _fit(
    own: _Frames, others: _Frames, rows: NDArray[np.int64], placement: Placement, size: tuple[int, int]
) -> Placement:
    """Move the edges of what is seen of the second picture so that it agrees best with the first."""
    height, width = size
    across = (np.arange(width, dtype=np.float32) + 0.5) / width
    down = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None]
    for _ in range(_ROUNDS):
        shown, seen = placement.shown, placement.seen
        ones, pictures = own.canvases(range(len(rows)), shown, size), others.canvases(rows, seen, size)
        gains, residual, weights = _robust_fits(ones, pictures)
        slope_down, slope_across = np.gradient(gains[:, None, None] * pictures, axis=(1, 2))
        slope_across *= np.float32(width / (seen[2] - seen[0]))
        slope_down *= np.float32(height / (seen[3] - seen[1]))
        moved = np.stack(
            [slope_across * (1 - across), slope_down * (1 - down), slope_across * across, slope_down * down]
        ).reshape(4, -1)
        normal = ((moved * weights.reshape(-1)) @ moved.T).astype(np.float64)
        right = (moved @ (weights * residual).reshape(-1)).astype(np.float64)
        change = np.linalg.solve(normal + 1e-3 * np.trace(normal) / 4 * np.eye(4) + 1e-9 * np.eye(4), right)
        change = np.clip(change, -_MAX_CHANGE, _MAX_CHANGE)
        left, top, right_edge, bottom = (np.array(seen) + change).tolist()
        if right_edge - left < 0.05 or bottom - top < 0.05:
            break
        placement = Placement.between(shown, (left, top, right_edge, bottom))
        if np.abs(change).max() < _STILL / width:
            break
    return placement


def fit_line(placed: PlacedFrames, segment: Segment) -> tuple[float, float]:
    """Offset and speed of the line between two videos: second = offset + speed * first, in seconds.

    The line through the moments found, where they tell; otherwise the speed of the segment, or 1 if that is near: in a
    scene that hardly changes, a match may run at any speed.
    """
    one, other = placed.first_times, placed.second_times
    lag = float(np.median(other - one))
    if float(np.abs(other - one - lag).max()) <= _OFF_BY_FRAMES:
        return lag, 1.0
    if placed.exact and len(one) > 2:
        speed, offset = np.polyfit(one, other, 1).tolist()
        if float(np.abs(offset + speed * one - other).max()) <= _SAME_LINE and speed > 0:
            return (offset, speed) if abs(speed - 1) >= _USUAL_SPEED else (lag, 1.0)
    speed = segment.speed if abs(segment.speed - 1) >= _OTHER_SPEED else 1.0
    return float(np.median(other - speed * one)), speed


def follow_line(
    first: str,
    second: str,
    times: NDArray[np.float64],
    line: tuple[float, float],
    placed: PlacedFrames,
    lengths: tuple[float, float],
) -> NDArray[np.float64]:
    """How well frames of two videos agree along a line, [T] in [-1, 1]: frames at ``times`` of the first with those at
    ``line[0] + line[1] * times`` of the second, in the place that was found.

    Raises:
        MediaError: One of the files cannot be read.
    """
    sides = []
    wanted = times, line[0] + line[1] * times
    boxes = placed.placement.shown, placed.placement.seen
    poses = placed.pose, PLAIN
    for path, moments, box, length, pose in zip((first, second), wanted, boxes, lengths, poses, strict=True):
        images, shown = read_moments(path, moments, length, short_side=_GLANCE_SIDE)
        rows = np.clip(np.searchsorted(shown, moments + 1e-3, side="right") - 1, 0, len(shown) - 1)
        frames = _Frames(np.asarray(pose.apply(images), np.uint8), shown)
        sides.append(np.stack([_canvas(frames.gray(row), box, _USUAL) for row in rows.tolist()]))
    return _agreements(*sides)


def _agreements(ones: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float64]:
    """For each pair of pictures [N, H, W] (or one with each of many) the median of the correlations of their 4 x 4
    blocks: what covers less than half of them does not count."""
    alike, textured = _blocks_alike(ones, others)
    counted = np.sort(np.where(textured, alike, np.inf), axis=1)
    count = textured.sum(axis=1)
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, counted.shape[1] - 1)
    rows = np.arange(len(counted))
    result: NDArray[np.float64] = ((counted[rows, low] + counted[rows, high]) / 2).astype(np.float64)
    for row in np.flatnonzero(count < _FEWEST_BLOCKS).tolist():
        result[row] = _correlation(ones[min(row, len(ones) - 1)], others[row])
    return result


def _blocks_alike(
    ones: NDArray[np.float32], others: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Correlation [N, 16] of each of 4 x 4 blocks, row by row, and whether one of the two pictures shows something
    there."""
    blocks = []
    for pictures in (ones, others):
        count, height, width = pictures.shape
        cells = pictures.reshape(count, _BLOCKS, height // _BLOCKS, _BLOCKS, width // _BLOCKS).swapaxes(2, 3)
        flat = cells.reshape(count, _BLOCKS * _BLOCKS, -1)
        blocks.append(flat - flat.mean(axis=2, keepdims=True))
    pixels = blocks[0].shape[2]
    spreads = [np.sqrt(np.vecdot(block, block) / pixels) for block in blocks]
    alike = np.vecdot(*blocks) / pixels / np.maximum(spreads[0] * spreads[1], 1.0)
    return alike, np.maximum(*spreads) > _TEXTURE


def _robust_fits(
    ones: NDArray[np.float32], others: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Gains [N] of pictures [N, H, W] over others, what they leave unexplained, and how much each pixel counts."""
    # A large caption would decide about the gain: begin with the blocks that agree.
    alike, textured = _blocks_alike(ones, others)
    trusted = np.where(textured & (alike > _ALIKE), np.float32(1.0), np.float32(_LITTLE))
    count, height, width = ones.shape
    blocks = trusted.reshape(count, _BLOCKS, _BLOCKS)
    weights = blocks.repeat(height // _BLOCKS, axis=1).repeat(width // _BLOCKS, axis=2)
    gains, residual = np.ones(count, np.float32), ones - others
    for _ in range(3):
        total = weights.sum(axis=(1, 2), keepdims=True)
        means = [(weights * pictures).sum(axis=(1, 2), keepdims=True) / total for pictures in (ones, others)]
        centered, reference = ones - means[0], others - means[1]
        weighted = weights * reference
        spread, shared = (weighted * reference).sum(axis=(1, 2)), (weighted * centered).sum(axis=(1, 2))
        gains = np.where(spread > 1, shared / np.maximum(spread, 1), np.float32(1.0)).astype(np.float32)
        residual = centered - gains[:, None, None] * reference
        # Every second pixel of every second line is enough for a median.
        scale = 2.0 + 2.0 * np.median(np.abs(residual[:, ::2, ::2]), axis=(1, 2), keepdims=True)
        weights = np.asarray(1.0 / np.square(1.0 + np.square(residual / scale)), np.float32)
    return gains, residual, weights


def _correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    first, second = one - one.mean(), other - other.mean()
    energy = float(np.sqrt(np.square(first).mean() * np.square(second).mean()))
    return float((first * second).mean()) / energy if energy > 1.0 else 0.0


def _upright(image: Image.Image, box: Box) -> NDArray[np.float32]:
    """The part of a gray picture inside a box, with square pixels."""
    width, height = round((box[2] - box[0]) * image.width), round((box[3] - box[1]) * image.height)
    return _canvas(image, box, (max(8, height), max(8, width)))


def _canvas(image: Image.Image, box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
    return np.asarray(_cut(image, box, size), dtype=np.float32)


def _cut(image: Image.Image, box: Box, size: tuple[int, int]) -> Image.Image:
    """The part of a picture inside a box of shares, which need not end at pixels, at this size."""
    edges = (box[0] * image.width, box[1] * image.height, box[2] * image.width, box[3] * image.height)
    return image.resize(size[::-1], Image.Resampling.BILINEAR, box=edges)


def part_of(outer: Box, inner: Box) -> Box:
    """A box given in shares of another one, in shares of the whole."""
    width, height = outer[2] - outer[0], outer[3] - outer[1]
    return _proper(
        outer[0] + inner[0] * width,
        outer[1] + inner[1] * height,
        outer[0] + inner[2] * width,
        outer[1] + inner[3] * height,
    )


def _proper(left: float, top: float, right: float, bottom: float) -> Box:
    """The box within the picture, at least a hundredth of it on each side."""
    low = min(max(left, 0.0), 0.99), min(max(top, 0.0), 0.99)
    return low[0], low[1], min(1.0, max(right, low[0] + 0.01)), min(1.0, max(bottom, low[1] + 0.01))
