"""Measurements of possible cuts and transitions: vectors of frames, regions that change, and camera motion."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.band import BAND_LAGS
from vidkin.shots.between import PARTS, REACH, SHIFTS, SMALL, search_blocks
from vidkin.shots.contract import Transition

GRID = (128, 128)

"""Rows and columns of sampled luma: four samples for each pixel that the encoder sees."""

# Rows and columns of luma used by the band.
_BAND = (36, 64)

_BATCH = 16


class VectorNetwork(Protocol):
    """A network from squares to vectors (`vidkin.features.sessions.SquareEncoder`)."""

    def encode(self, squares: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors of unit length [N, D] of squares [N, 3, 64, 64] in 0..255."""
        ...


class BandGrid:
    """Selects the samples of the band from the finer samples of the encoder."""

    def __init__(self) -> None:
        self._luma = _places(_BAND, GRID)
        self._chroma = _places((_BAND[0] // 2, _BAND[1] // 2), (GRID[0] // 2, GRID[1] // 2))

    def thin(self, planes: FramePlanes) -> FramePlanes:
        """The frames at 36 x 64."""
        luma = planes.luma.reshape(len(planes), -1).take(self._luma, axis=1)
        chroma = planes.chroma.reshape(2 * len(planes), -1).take(self._chroma, axis=1)
        return FramePlanes(
            luma.reshape(-1, *_BAND),
            chroma.reshape(-1, 2, _BAND[0] // 2, _BAND[1] // 2),
            planes.timestamps,
            planes.end,
        )


class FrameVectors:
    """Vectors of frames by number; only the last ``room`` frames are available.

    Args:
        network: The encoder.
        room: Number of frames held in memory, 24 KiB each.

    Attributes:
        count: Number of frames pushed.
        encoded: Number of frames that went through the network so far.
    """

    def __init__(self, network: VectorNetwork, room: int) -> None:
        self.count = 0
        self.encoded = 0
        self._network, self._room = network, room
        # Pieces as they were pushed, and the number of the first frame of each: copying them would cost as much as
        # comparing their frames.
        self._pieces: list[FramePlanes] = []
        self._starts: list[int] = []
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._blocks: dict[int, PictureBlocks] = {}

    @property
    def first(self) -> int:
        """The first frame still in memory."""
        return max(0, self.count - self._room)

    def push(self, planes: FramePlanes) -> None:
        """Add the next frames, which must not be changed afterwards."""
        self._pieces.append(planes)
        self._starts.append(self.count)
        self.count += len(planes)
        gone = bisect_right(self._starts, self.first) - 1
        del self._pieces[:gone], self._starts[:gone]
        held: dict[int, Any]
        for held in (self._vectors, self._blocks):
            for frame in [frame for frame in held if frame < self.first]:
                del held[frame]

    def encode(self, frames: Iterable[int]) -> None:
        """Compute at once the missing vectors of these frames, as far as the frames are in memory."""
        wanted = sorted({f for f in frames if self.first <= f < self.count} - self._vectors.keys())
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            places = [self._place(frame) for frame in part]
            luma = np.stack([piece.luma[row] for piece, row in places])
            chroma = np.stack([piece.chroma[row] for piece, row in places])
            vectors = self._network.encode(squares_of_planes(luma, chroma))
            self._vectors.update(zip(part, vectors, strict=True))
            self.encoded += len(part)

    def hold(self, frame: int) -> int:
        """The nearest frame in memory."""
        return min(max(frame, self.first), self.count - 1)

    def luma(self, frame: int) -> NDArray[np.uint8]:
        """Luma [128, 128] of the frame, or of the nearest one in memory."""
        piece, row = self._place(self.hold(frame))
        luma: NDArray[np.uint8] = piece.luma[row]
        return luma

    def blocks(self, frame: int) -> PictureBlocks:
        """Blocks of the frame's luma, or of that of the nearest one in memory; computed once a frame."""
        frame = self.hold(frame)
        if frame not in self._blocks:
            self._blocks[frame] = PictureBlocks(self.luma(frame))
        return self._blocks[frame]

    def distance(self, one: int, other: int) -> float:
        """1 - cosine of two frames; for frames no longer in memory, the nearest one is used."""
        one, other = self.hold(one), self.hold(other)
        vectors = self._vectors
        if one not in vectors or other not in vectors:
            self.encode((one, other))
        return max(0.0, 1.0 - float(vectors[one] @ vectors[other]))

    def _place(self, frame: int) -> tuple[FramePlanes, int]:
        """The piece that holds a frame in memory, and its row there."""
        number = bisect_right(self._starts, frame) - 1
        return self._pieces[number], frame - self._starts[number]


def squares_of_planes(luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Squares [N, 3, 64, 64] RGB in 0..255 from samples [N, 128, 128] and [N, 2, 64, 64] in limited range."""
    squares = np.empty((len(luma), 3, GRID[0] // 2, GRID[1] // 2), np.float32)
    bright = halved_sums(luma).astype(np.float32)
    # 219 steps of luma and 224 of chroma are the whole range.
    bright *= np.float32(255 / 219 / 4)
    bright -= np.float32(16 * 255 / 219)
    color = chroma.astype(np.float32)
    color -= np.float32(128)
    color *= np.float32(255 / 224)
    blue, red = color[:, 0], color[:, 1]
    np.multiply(red, np.float32(1.402), out=squares[:, 0])
    np.multiply(blue, np.float32(-0.344136), out=squares[:, 1])
    np.multiply(blue, np.float32(1.772), out=squares[:, 2])
    red *= np.float32(0.714136)
    squares[:, 1] -= red
    squares += bright[:, None]
    np.maximum(squares, np.float32(0), out=squares)
    return np.minimum(squares, np.float32(255), out=squares)


def halved_sums(luma: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """[..., H / 2, W / 2] sums of 2 x 2 samples."""
    # Pairs of samples in a row are one number of 16 bits: both bytes are read at once.
    pairs = np.ascontiguousarray(luma).view(np.uint16)
    sums = pairs & np.uint16(0xFF)
    sums += pairs >> np.uint16(8)
    total: NDArray[np.uint16] = sums[..., ::2, :] + sums[..., 1::2, :]
    return total


def _places(few: tuple[int, int], many: tuple[int, int]) -> NDArray[np.intp]:
    rows, columns = (
        ((np.arange(count) + 0.5) * whole / count).astype(np.intp) for count, whole in zip(few, many, strict=True)
    )
    return (rows[:, None] * many[1] + columns).ravel()


# Blocks across and down, and pixels per block side, for luma averaged to 64 x 64.
_BLOCKS, _SIDE = 8, 8

_MEAN = np.full(_SIDE * _SIDE, 1 / (_SIDE * _SIDE), np.float32)

# Deviation of luma that counts as noise, and the change of a block's mean, relative to all blocks, that counts as
# none.
_NOISE, _SAME = 4.0, 8.0

_LIKE = 0.6

# Rows and columns belong to a rectangle if they have this share of the largest number of differing pixels in any.
_SIDES = 0.5

RegionChange = tuple[float, float]

"""Share of blocks that stay, and how well the others fill the rectangle around them; both in 0..1."""


class PictureBlocks:
    """A frame's luma in blocks, with what its comparisons with other frames share.

    Args:
        luma: [128, 128].

    Attributes:
        means: [64] mean of each block.
        centered: [64, 64] pixels of each block, without its mean.
        variances: [64] variance of each block.
    """

    __slots__ = ("centered", "means", "variances")

    def __init__(self, luma: NDArray[np.uint8]) -> None:
        cut = halved_sums(luma).reshape(_BLOCKS, _SIDE, _BLOCKS, _SIDE).swapaxes(1, 2)
        self.centered = cut.astype(np.float32, order="C").reshape(_BLOCKS * _BLOCKS, _SIDE * _SIDE)
        self.centered *= np.float32(0.25)
        self.means = self.centered @ _MEAN
        self.centered -= self.means[:, None]
        self.variances = _mean_products(self.centered, self.centered)


def compare_regions(one: PictureBlocks, other: PictureBlocks) -> RegionChange:
    """Compare two frames block by block; changes of overall brightness are ignored."""
    return region_change(changed_blocks(one, other))


def region_change(changed: NDArray[np.bool_]) -> RegionChange:
    """What stays and what is filled if these blocks [8, 8] differ."""
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    if not len(rows):
        return 1.0, 0.0
    area = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    count = np.count_nonzero(changed)
    return float(1 - count / changed.size), float(count / area)


def changed_blocks(one: PictureBlocks, other: PictureBlocks) -> NDArray[np.bool_]:
    """Whether each of the blocks [8, 8] differs between two frames."""
    means = other.means - one.means
    noise = np.float32(_NOISE**2)
    like = (2 * _mean_products(one.centered, other.centered) + noise) / (one.variances + other.variances + noise)
    # The median, without the detours of NumPy's.
    ranked = np.sort(means)
    middle = (ranked[len(ranked) // 2 - 1] + ranked[len(ranked) // 2]) / 2
    stays = (like > _LIKE) & (np.abs(means - middle) < _SAME)
    changed: NDArray[np.bool_] = ~stays.reshape(_BLOCKS, _BLOCKS)
    return changed


def _mean_products(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """[64] means over pixels of the products of blocks [64, 64]."""
    products: NDArray[np.float32] = np.einsum("bp,bp->b", one, other)
    products /= np.float32(one.shape[1])
    return products


def measure_rectangle(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """How well differing pixels, of luma [128, 128], fill one upright rectangle and nothing else, in -1..1.

    A graphic that pops up is a rectangle with straight sides; a person who moved is not.
    """
    return _filled_rectangle(_PictureStep(one, other))


class _PictureStep:
    """Two frames at half their size as whole numbers [64, 64], and how far each pixel changes beyond the median."""

    def __init__(self, one: NDArray[np.uint8], other: NDArray[np.uint8]) -> None:
        self.old, self.new = one[::2, ::2].astype(np.int16), other[::2, ::2].astype(np.int16)
        step = self.new - self.old
        # Half of the pixels change at most by the lower median, half at least by the upper one; all are whole numbers.
        counts = np.bincount((step + 255).ravel(), minlength=511).cumsum()
        low, high = np.searchsorted(counts, [step.size // 2, step.size // 2 + 1])
        self.beyond = np.abs(step - int((int(low) + int(high) - 510) / 2))


def _filled_rectangle(step: _PictureStep) -> float:
    return _filled((step.beyond > _SAME).astype(np.float32))


def _filled(changed: NDArray[np.float32]) -> float:
    """How well what changed [rows, columns], 1 or 0, fills one upright rectangle and nothing else."""
    # Whole numbers as floats, which are added up many times faster.
    down, across = changed.sum(1), changed.sum(0)
    rows, columns = ((sums > _SIDES * sums.max()).astype(np.float32) for sums in (down, across))
    inside = float(rows.sum() * columns.sum())
    if not inside:
        return 0.0
    filled = float(rows @ changed @ columns)
    return (2 * filled - float(down.sum())) / inside


# Luma of black bars beside a narrow picture, at most.
_BLACK_BAR = 30.0

# Change of luma of a pixel that letters cover, the largest share of the picture that they cover, and the least
# deviation of luma of the picture around them.
_COVERED, _MOST_LETTERS, _AROUND_LETTERS = 20, 0.6, 12.0


def measure_letters(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """How uniform the pixels are that change, in the frame where they are more so; 0 means all alike, 1 and more not.

    Letters that appear over a picture, or leave it, have one color, and the picture around them stays. Where too much
    or nothing changes, or around it is no picture, the number is 1.

    Args:
        one, other: Luma [128, 128] before and after.
    """
    return _uniform_change(_PictureStep(one, other))


def _uniform_change(step: _PictureStep) -> float:
    covered = step.beyond > _COVERED
    size, count = covered.size, int(np.count_nonzero(covered))
    if not 0.005 < count / size < _MOST_LETTERS:
        return 1.0
    # Sums over all pixels and over those covered, of both frames and of their squares; all are exact whole numbers.
    values = np.stack([step.old.ravel(), step.new.ravel()]).astype(float)
    chosen = np.ones((2, size))
    chosen[1] = covered.ravel()
    totals, squares = chosen @ values.T, chosen @ (values * values).T
    if _deviation(size - count, totals[0, 0] - totals[1, 0], squares[0, 0] - squares[1, 0]) < _AROUND_LETTERS:
        return 1.0
    whole, own = (
        [_deviation(number, totals[row, frame], squares[row, frame]) for frame in (0, 1)]
        for row, number in enumerate((size, count))
    )
    return min(own) / max(whole)


def _deviation(count: int, total: float, squares: float) -> float:
    """Standard deviation of so many numbers from their sum and that of their squares."""
    return math.sqrt(count * squares - total * total) / count


HARD_NUMBERS = (
    "distance", "contrast", "network", "across", "share", "structure", "brightness", "steady", "beside",
    "quiet", "gradual", "others", "motion", "stays", "stayed", "filled", "picture", "before", "after",
    "again", "alive", "rectangle", "frozen", "letters", "beside_it", "anew", "anew_filled",
)  # fmt: skip

"""Names of the numbers of `measure_cut`."""

SIDE = 3

"""Number of frames compared on either side of a cut."""

AROUND = 8

"""Number of frames to either side whose rows and answers count."""

# Frames in which movement before and after a cut is measured, at the places that change at the cut.
_MOVING = 6

# Columns of the band's rows.
_STRUCTURE, _CONTRAST, _BRIGHTNESS_CHANGE = 0, 4 * len(BAND_LAGS) + 1, 4 * len(BAND_LAGS) + 4

# Distances below this count as zero.
_LITTLE = 4e-3

# Answer of the network above which blocks are looked for in the other frame.
_CAN_BE = 0.02


def measure_cut(
    frame: int,
    vectors: FrameVectors,
    rows: NDArray[np.float32],
    answers: NDArray[np.float32],
    *,
    first_row: int,
    side: int,
) -> tuple[float, ...]:
    """Measure `HARD_NUMBERS` of a cut before this frame.

    Args:
        frame: First frame of the new shot, at least 1.
        vectors: Vectors of the film's last frames.
        rows: [N, 48] band features from frame ``first_row`` on.
        answers: [T, 5] answers of the network for all frames so far.
        first_row: Frame of the first row.
        side: Number of frames examined before and after; 0 assumes that nothing moves there.
    """
    count, place = vectors.count, frame - first_row
    distance = vectors.distance(frame - 1, frame)

    def step(one: int) -> float:
        return vectors.distance(one - 1, one) if 1 <= one < count else np.nan

    steps = np.array([step(one) for one in range(frame - side, frame + side + 1)])
    usual = usual_distance(np.r_[np.nan, steps], side + 1)
    before = range(max(0, frame - max(1, side)), frame)
    after = range(frame, min(count, frame + max(1, side)))
    across = min(vectors.distance(one, other) for one in before for other in after)
    # How far the shots themselves change before and after the cut, if they last three frames.
    steady = max(vectors.distance(before[0], before[-1]), vectors.distance(after[0], after[-1]))
    beside = np.nan_to_num([step(frame - 1), step(frame + 1)]) if side else np.zeros(2)
    others = np.delete(steps, side)
    others = np.sort(others[~np.isnan(others)])
    # The largest is left out because it can be the next cut.
    quiet = float(np.median(others)) + float(others[-2]) / 2 if len(others) > 1 else 0.0
    motion = np.r_[rows[max(1, place - AROUND) : place, _STRUCTURE], rows[place + 1 : place + 1 + AROUND, _STRUCTURE]]
    beyond = np.r_[answers[max(0, frame - 6) : frame - 1, 0], answers[frame + 2 : frame + 7, 0]]
    # Repeated or shaking frames change just as much again soon after.
    apart = [range(max(1, place - AROUND), max(1, place - 1)), range(place + 2, place + 1 + AROUND)]
    nearby = np.concatenate([rows[part.start : part.stop, _STRUCTURE] for part in apart])
    old, new = vectors.blocks(frame - 1), vectors.blocks(frame)
    changed = changed_blocks(old, new)
    stays, filled = region_change(changed)
    moving = changed_blocks(vectors.blocks(max(0, frame - 1 - _MOVING)), old)
    moving = moving | changed_blocks(new, vectors.blocks(frame + _MOVING))
    stayed = min(
        compare_regions(vectors.blocks(one - 1), vectors.blocks(one))[0] if 1 <= one < count else 1.0
        for one in (frame - 1, frame + 1)
    )
    graphic = _PictureStep(vectors.luma(frame - 1), vectors.luma(frame))
    numbers = (
        np.log(distance + 1e-4),
        np.log(distance / usual + 1e-2),
        logit(answers[frame, 0]),
        np.log(across + 1e-3),
        across / distance,
        rows[place, _STRUCTURE],
        abs(rows[place, _BRIGHTNESS_CHANGE]) / 8,
        np.log((across + 1e-3) / (steady + _LITTLE)),
        np.log(distance / (beside.max() + _LITTLE)),
        np.log(distance / (quiet + _LITTLE)),
        logit(answers[frame, 1]),
        logit(beyond.max(initial=0.0)),
        np.log(np.median(motion) + 1e-2) if len(motion) else np.log(1e-2),
        stays,
        stayed,
        filled,
        np.log(rows[place - 1 : place + 1, _CONTRAST].min() * 128 + 1.0),
        np.log(beside[0] + 1e-3),
        np.log(beside[1] + 1e-3),
        np.log((rows[place, _STRUCTURE] + 0.02) / (nearby.max(initial=0.0) + 0.02)),
        (moving & changed).sum() / (changed.sum() + 1),
        _filled_rectangle(graphic),
        # A frame that was repeated is followed by all the motion that it left out.
        np.log((rows[max(0, place - 1), _STRUCTURE] + 2e-3) / (np.median(motion) + 2e-3)) if len(motion) else 0.0,
        _uniform_change(graphic),
        float((((old.variances > _NOISE**2) | (old.means > _BLACK_BAR)) & ~changed.ravel()).mean()),
        *(_measure_anew(vectors, frame) if answers[frame, 0] > _CAN_BE else (1.0, 0.0)),
    )
    return tuple(float(number) for number in numbers)


def stands_out(
    distances: NDArray[np.float64], frames: NDArray[np.intp], times: float, floor: float
) -> NDArray[np.bool_]:
    """Which of these frames have a distance above `usual_distance`; at every frame but 0 the distance is known.

    The same for many frames at once, [N]: NumPy's median takes longer than all the rest of a frame's measurements.
    """
    outside = (frames < SIDE + 1) | (frames >= len(distances) - SIDE)
    above = np.zeros(len(frames), bool)
    for place in np.flatnonzero(outside):
        frame = int(frames[place])
        above[place] = distances[frame] > usual_distance(distances, frame, times, floor)
    inside = frames[~outside, None]
    beside = np.array([*range(-SIDE, 0), *range(1, SIDE + 1)])
    around = np.sort(distances[inside + beside], axis=1)
    usual = times * ((around[:, SIDE - 1] + around[:, SIDE]) / 2 + around[:, -1] / 2 + floor)
    above[~outside] = distances[inside[:, 0]] > usual
    return above


def usual_distance(distances: NDArray[np.float64], frame: int, times: float = 2.0, floor: float = 0.004) -> float:
    """Reference for a distance: ``times * (median + maximum / 2 + floor)`` over three distances to either side.

    Near the ends fewer distances are used; NaN means an unknown distance.
    """
    around = np.concatenate([distances[max(1, frame - SIDE) : frame], distances[frame + 1 : frame + 1 + SIDE]])
    around = around[~np.isnan(around)]
    if not len(around):
        return times * floor
    return times * (float(np.median(around)) + float(around.max()) / 2 + floor)


def logit(share: float | np.floating) -> float:
    """Logarithm of the odds of a probability, which is limited to .001 through .999."""
    share = min(max(float(share), 1e-3), 1 - 1e-3)
    return float(np.log(share / (1 - share)))


GRADUAL_NUMBERS = (
    "ends", "before", "after", "network", "peak", "length", "picture", "dark", "middle", "excess", "hold",
    "dissolve", "wipe", "hard", "steps", "stays", "stayed", "filled", "ramp", "differ", "divided", "swept",
    "appears", "least", "shifts", "appeared", "shifted",
)  # fmt: skip

"""Names of the numbers of `measure_transition`."""

# Frames beyond a stretch at which the shots are examined, and how far the shots themselves are followed.
_BEYOND, _FOLLOWED = 2, 6

# Places in the stretch whose vectors are compared: quarters of the way.
_MARKS = 5


def frames_of_transition(first: int, last: int) -> tuple[int, ...]:
    """The frames whose vectors `measure_transition` compares."""
    one, *_, other = marks = _marks(first, last)
    return (*marks, one - _FOLLOWED, other + _FOLLOWED, (first + last) // 2)


def _marks(first: int, last: int) -> list[int]:
    inside = (first + round((last - first) * part / (_MARKS - 1)) for part in range(_MARKS))
    return [first - _BEYOND, *inside, last + _BEYOND]


def measure_transition(
    first: int,
    last: int,
    vectors: FrameVectors,
    answers: NDArray[np.float32],
    seen: NDArray[np.float32],
    *,
    follow: bool = False,
) -> tuple[float, ...]:
    """Measure `GRADUAL_NUMBERS` of a transition.

    Args:
        first, last: First and last frame of the transition.
        vectors: Vectors of the film's last frames.
        answers: [T, 5] answers of the network for all frames so far.
        seen: [T, 2] change of structure, and contrast, of all frames so far.
        follow: Whether what moves is followed (`measure_motion`), which tells both from a camera; otherwise the last
            five numbers are 0.
    """
    one, *_, other = marks = _marks(first, last)
    middle = (first + last) // 2
    vectors.encode(frames_of_transition(first, last))
    ends = vectors.distance(one, other)
    before, after = vectors.distance(one - _FOLLOWED, one), vectors.distance(other, other + _FOLLOWED)
    to_middle = min(vectors.distance(one, middle), vectors.distance(middle, other))
    # A transition progresses from place to place, away from one shot and toward the other.
    steps = [vectors.distance(*pair) for pair in itertools.pairwise(marks)]
    way = [vectors.distance(one, mark) - vectors.distance(mark, other) for mark in marks[1:-1]]
    own = answers[first : last + 1]
    inside, around = seen[first : last + 1], seen[max(0, first - 3) : last + 4, 1] * 128
    stays, filled = compare_regions(vectors.blocks(one), vectors.blocks(other))
    stayed = min(
        compare_regions(vectors.blocks(start), vectors.blocks(start + _FOLLOWED))[0]
        for start in (one - _FOLLOWED, other)
    )
    kinds = own[:, 2:].mean(0)
    wiped = measure_wipe([vectors.blocks(mark) for mark in marks])
    numbers = (
        np.log(ends + 1e-3),
        np.log(before + 1e-3),
        np.log(after + 1e-3),
        logit(own[:, 1].mean()),
        logit(own[:, 1].max()),
        np.log(last - first + 1),
        np.log(around.max() + 1.0),
        np.log(inside[:, 1].min() * 128 + 1.0),
        np.log(to_middle + 1e-3),
        np.log((ends + 1e-3) / (before + after + 1e-2)),
        inside[:, 0].max(),
        kinds[0],
        kinds[2],
        logit(own[:, 0].max()),
        max(steps) / (sum(steps) + 1e-2),
        stays,
        stayed,
        filled,
        (way[-1] - way[0]) / (_MARKS - 1),
        *wiped,
        *(measure_motion(vectors, first, last) if follow else (0.0,) * 5),
    )
    return tuple(float(number) for number in numbers)


def measure_wipe(frames: Sequence[PictureBlocks]) -> tuple[float, float, float]:
    """How far frames within a transition are divided into blocks of either shot, as in a wipe; values in 0..1.

    Args:
        frames: The shot before, the transition's first frame, frames within it, its last frame, and the shot after.

    Returns:
        The share of blocks that differ between the shots; the share of these that match exactly one of the shots in
        frames within the transition; and how many more match the shot after in its last frame than in its first.
    """
    before, after = frames[0], frames[-1]
    differ = changed_blocks(before, after)
    if not differ.any():
        return 0.0, 0.0, 0.0
    old, new = (np.array([~changed_blocks(shot, frame)[differ] for frame in frames[2:-2]]) for shot in (before, after))
    over = (new & ~old).mean(1)
    return float(differ.mean()), float((new ^ old).mean()), float(max(0.0, over[-1] - over[0]))


# Steps within a stretch in which blocks are followed, the part of it that a step takes, and its fewest and most
# frames: a camera that goes over a photograph must not go farther than blocks are looked for.
_FOLLOWED_STEPS, _STEP_PART, _STEP_FRAMES = 5, 10, (2, 4)

# Variance of noise in a picture of 32 x 32: what fades in slowly or moves little shows at all, and what a screen shows
# is another picture.
_LITTLE_NOISE, _MUCH_NOISE = 6.0, 36.0


def measure_motion(vectors: FrameVectors, first: int, last: int) -> tuple[float, float, float, float, float]:
    """How much of the picture's inside comes from nowhere in a stretch and beside it, and how far it moves.

    A camera that goes over a photograph brings new things in at an edge of the picture alone; a wipe shows them
    anywhere, and what is pushed away moves faster than before and after.

    Args:
        vectors: The film's last frames.
        first, last: First and last frame of the stretch.

    Returns:
        The mean and the least share, over steps of two to four frames, of inner blocks that are not found in the frame
        before, and how far all blocks move in a step, in shares of the picture; then the mean share and the
        largest movement over the steps just before and after the stretch.
    """
    span = last - first + 1
    step = min(max(_STEP_FRAMES[0], round(span / _STEP_PART)), _STEP_FRAMES[1])
    starts = np.linspace(first - 1, max(first - 1, last - step), _FOLLOWED_STEPS).round().astype(int)
    inside = [_follow(vectors, start, start + step) for start in np.unique(starts).tolist()]
    outside = [_follow(vectors, start, start + step) for start in (first - _BEYOND - step, last + _BEYOND)]
    lost, moved = np.array(inside).T
    return (
        float(lost.mean()),
        float(lost.min()),
        float(moved.mean()),
        float(np.mean([share for share, _ in outside])),
        max(way for _, way in outside),
    )


def _measure_anew(vectors: FrameVectors, frame: int) -> tuple[float, float]:
    """The share of blocks that are nowhere near in the frame before or after a cut, and how well they fill one upright
    rectangle: however the camera moves, a screen in the picture is one, and the rest is found again."""
    old, new = (_small_picture(vectors.luma(one)) for one in (frame - 1, frame))
    gone, come = (search_blocks(*pair, noise=_MUCH_NOISE) for pair in ((new, old), (old, new)))
    anew = ~(gone.found & come.found)
    return float(anew.mean()), _filled(anew.astype(np.float32))


def _follow(vectors: FrameVectors, one: int, other: int) -> tuple[float, float]:
    """The share of inner blocks of a frame that are nowhere near in an earlier one, and the way that most blocks went,
    in shares of the picture."""
    one, other = vectors.hold(one), vectors.hold(other)
    if one == other:
        return 0.0, 0.0
    search = search_blocks(*(_small_picture(vectors.luma(frame)) for frame in (one, other)), noise=_LITTLE_NOISE)
    lost = float(1 - search.found[1:-1, 1:-1].mean())
    # Blocks that show something, are found again and do not fit where they were.
    if np.count_nonzero(search.moved) < PARTS // 2:
        return lost, 0.0
    best = search.best[search.moved]
    down, across = np.median(best // SHIFTS) - REACH, np.median(best % SHIFTS) - REACH
    return lost, float(np.hypot(down, across)) / SMALL


def _small_picture(luma: NDArray[np.uint8]) -> NDArray[np.float32]:
    """[32, 32] means of luma [128, 128]."""
    sums = halved_sums(luma)
    quarter = sums[::2, ::2] + sums[::2, 1::2] + sums[1::2, ::2] + sums[1::2, 1::2]
    return quarter.astype(np.float32) / np.float32(16)


# Seconds that a dissolve takes at most: what changes for longer is a camera that moves. From so many seconds on, what
# is found again nearly whole, where little stays and the camera moves before or after, is one as well.
_LONGEST_DISSOLVE, _NOT_SHORT = 4.6, 0.8

_HARDLY_APPEARS, _HARDLY_STAYED, _MOVES_BESIDE = 0.055, 0.35, 0.015


def can_be_a_transition(kind: Transition, numbers: Sequence[float], seconds: float) -> bool:
    """Whether a proposal of a gradual transition is more than what a moving camera shows.

    Args:
        kind: Its kind.
        numbers: Its `GRADUAL_NUMBERS`.
        seconds: How long it takes.
    """
    if kind == "fade":
        return True
    appears, stayed, shifted = (numbers[GRADUAL_NUMBERS.index(name)] for name in ("appears", "stayed", "shifted"))
    is_camera = appears < _HARDLY_APPEARS and stayed < _HARDLY_STAYED and shifted > _MOVES_BESIDE
    return not (is_camera and seconds > _NOT_SHORT) and not (kind == "dissolve" and seconds > _LONGEST_DISSOLVE)
