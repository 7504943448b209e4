"""Where and when a copy shows the picture of another video, measured on a few frames of both.

The boxes of a match are rough, and its times those of sampled frames. What kind of copy it is shows only in the exact
place.

Shapes: N moments; H, W pixels.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.index.duplicates.pictures import find_bars, read_moments
from vidkin.index.duplicates.template_search import find_part
from vidkin.match.pose import PLAIN, Pose
from vidkin.similarity import WHOLE, Box, Segment

# Moments that are compared, and the shorter side of their pictures in pixels. They are among so many evenly spread ones
# of the other video, so that all its copies are compared with the same frames of it, which are read once.
_MOMENTS, _SHORT_SIDE = 4, 288
_SPREAD = 8
# Bytes of frames that are held for the next copy of the same video: of two videos, which are looked at at a time.
_MOST_HELD = 160 << 20
# The shorter side of pictures that are only compared in a known place.
_GLANCE_SIDE = 144
# Frames of the other video that may be the same moment: so many seconds around it, so many a second.
_REACH, _RATE = 0.6, 25.0
# Sizes (H, W) of the pictures by which moments are told apart, and by which the place is refined, coarse to fine.
_GLANCE = (36, 48)
_STEPS = ((36, 48), (72, 96))
_LAST_STEP, _LAST_ROUNDS = (132, 176), 2
# Pictures of these sizes are cut from frames that are so many times smaller, unless these have fewer lines than this.
_SMALLER_FOR = {_STEPS[0]: 4, _STEPS[1]: 2, _LAST_STEP: 1}
# Boxes whose pictures of the smallest size are held for the next copy.
_MOST_GLANCES = 4
# A refinement ends where it moves no edge by this share of a side or by this share of a pixel. Less is rounding.
_STILL, _STILL_PIXELS, _ROUNDING = 2e-4, 0.03, 1e-9
_SMALLEST_SIDE = 64
_ROUNDS = 6
# From this correlation on, nothing is searched for.
_SURE = 0.95
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
# Frames on each side of the best one that are looked at again once the place is better known.
_NEARBY = 3
# Frames around a moment that tell where black bars are.
_FRAMES_FOR_BARS = 4
# Below this agreement, all moments are moved by one lag at a time, in seconds.
_CLOSE, _LAGS = 0.99, np.arange(-6, 7) / 10
# The place is fitted for so many of the lags, those that agree best in the place at hand: roughly, and finely for
# those of them that then agree best.
_LAGS_FITTED, _LAGS_FITTED_FINELY = 4, 2
# Speeds this close to 1, and lines on which the moments found lie with at most so many seconds between.
_USUAL_SPEED, _SAME_LINE = 0.01, 0.06
# Seconds by which moments may be off, by two frames at ten a second, while both videos run at one speed.
_OFF_BY_FRAMES = 0.21
# A speed must differ by this from 1 to be believed where the moments do not show it.
_OTHER_SPEED = 0.15
# Largest change of the scale in one refinement.
_TURN = 0.1


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

    Four frames of the first and those within .6 s of the same moments of the second are read; these are held for the
    next copy. Candidates for the place are the pictures without bars, the boxes of the segment and, if these agree
    badly, the best place of a template search at many sizes, in both directions. Moments and place are refined in turn:
    the place by least squares (Lucas and Kanade) with weights that ignore what only one of them has.

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
    # A frame may stand for several moments, or lie a little before its own.
    middles = segment.target_start + segment.speed * (times - segment.query_start)
    parts = _HELD.read(second, moments[np.abs(moments - middles[:, None]).argmin(axis=1)], lengths[1])
    return _PlaceSearch(_Frames(np.asarray(pose.apply(images), np.uint8), times), parts, segment, pose).run()


def pose_of(segment: Segment) -> Pose:
    """How the frames of the query of a segment are brought into the orientation of its target."""
    return Pose(segment.mirrored, segment.turned // 90)


def _moments(segment: Segment, length: float) -> NDArray[np.float64]:
    """Seconds of the target that are compared."""
    spread = length * (np.arange(_SPREAD) + 0.5) / _SPREAD
    inside = spread[(spread >= segment.target_start) & (spread <= segment.target_end)]
    if len(inside) >= _MOMENTS:
        places: NDArray[np.float64] = inside[np.rint(np.linspace(0, len(inside) - 1, _MOMENTS)).astype(np.int64)]
        return places
    steps = (np.arange(_MOMENTS) + 0.5) / _MOMENTS
    return segment.target_start + steps * (segment.target_end - segment.target_start)


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
        upright = np.asarray(pose.apply(images), np.uint8)
        grays = [Image.fromarray(image).convert("L") for image in upright]
        canvases = [_canvas(gray, box, _STEPS[1]) for gray in grays]
        sides.append([canvases[row] for row in rows.tolist()])
    return _agreements(*(np.stack(side) for side in sides))


class _Frames:
    """Frames [T, H, W, 3] and their times [T] in seconds; gray ones are made when they are needed."""

    def __init__(self, images: NDArray[np.uint8], times: NDArray[np.float64]) -> None:
        self.images, self.times = images, times
        self._grays: dict[int, dict[int, Image.Image]] = {}
        self._glances: dict[Box, NDArray[np.float32]] = {}
        self._extremes: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.images)

    @property
    def nbytes(self) -> int:
        """About what is held: a gray picture takes a third, and smaller ones a little more."""
        return self.images.nbytes + self.images.nbytes // 2

    def gray(self, row: int, smaller: int = 1) -> Image.Image:
        """One frame in gray, or about this many times smaller, which is faster to cut small parts from."""
        made = self._grays.setdefault(row, {})
        if smaller not in made:
            whole = Image.fromarray(self.images[row]).convert("L") if smaller == 1 else self.gray(row, smaller // 2)
            made[smaller] = whole.reduce(2) if smaller > 1 and min(whole.size) >= 2 * _SMALLEST_SIDE else whole
        return made[smaller]

    def extremes(self) -> NDArray[np.uint8]:
        """The brightest and the darkest values [2, H, W, 3] of some of the frames, which tell where bars are."""
        if self._extremes is None:
            some = self.images[:: max(1, len(self) // _FRAMES_FOR_BARS)]
            self._extremes = np.stack([some.max(axis=0), some.min(axis=0)])
        return self._extremes

    def canvas(self, row: int, box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
        """A part of one frame in gray."""
        return _canvas(self.gray(row, _SMALLER_FOR[size]), box, size)

    def canvases(self, rows: Sequence[int], box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
        """The same part of several frames, [rows, *size]."""
        return np.stack([self.canvas(row, box, size) for row in rows])

    def glances(self, box: Box) -> NDArray[np.float32]:
        """The same part of all frames at the smallest size; those of the boxes asked for first are held, as most copies
        ask for the whole picture."""
        if box in self._glances:
            return self._glances[box]
        made = self.canvases(range(len(self)), box, _GLANCE)
        if len(self._glances) < _MOST_GLANCES:
            self._glances[box] = made
        return made


# Path, bytes and time of change of a file.
_FileKey = tuple[str, int, int]


class _HeldFrames:
    """Frames around moments of the videos that copies were compared with last."""

    def __init__(self) -> None:
        self._files: OrderedDict[_FileKey, dict[float, _Frames]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, path: str, moments: NDArray[np.float64], length: float) -> list[_Frames]:
        """The frames within .6 s of each moment; those that are not held are read in one pass.

        Raises:
            MediaError: The file cannot be read.
        """
        status = os.stat(path)
        file, keys = (path, status.st_size, status.st_mtime_ns), [round(moment, 3) for moment in moments.tolist()]
        with self._lock:
            found = dict(self._files.get(file, {}))
            if found:
                self._files.move_to_end(file)
        missing = [place for place, key in enumerate(keys) if key not in found]
        if missing:
            grid = np.arange(-round(_REACH * _RATE), round(_REACH * _RATE) + 1) / _RATE
            images, times = read_moments(path, (moments[missing, None] + grid).ravel(), length, short_side=_SHORT_SIDE)
            for place in missing:
                apart = np.abs(times - moments[place])
                rows = np.flatnonzero(apart <= _REACH + 1 / _RATE)
                if not len(rows):
                    rows = np.array([apart.argmin()])
                # Parts of one array, which is held as long as one of them: all of a file go together.
                near = slice(int(rows[0]), int(rows[-1]) + 1)
                found[keys[place]] = _Frames(images[near], times[near])
            self._hold(file, found)
        return [found[key] for key in keys]

    def _hold(self, file: _FileKey, found: Mapping[float, _Frames]) -> None:
        with self._lock:
            self._files[file] = {**self._files.get(file, {}), **found}
            self._files.move_to_end(file)
            sizes = [sum(frames.nbytes for frames in held.values()) for held in self._files.values()]
            while sum(sizes) > _MOST_HELD and self._files:
                sizes.pop(0)
                self._files.popitem(last=False)


_HELD = _HeldFrames()


@dataclass(frozen=True, slots=True, eq=False)
class _BestMoments:
    """For each frame of the first video the frame of the second that agrees best.

    Attributes:
        rows: [N] its place among all frames of the second.
        agreements: [N] how much they agree.
        ahead: [N] how much better than the others do in the middle.
    """

    rows: NDArray[np.int64]
    agreements: NDArray[np.float64]
    ahead: NDArray[np.float64]

    @classmethod
    def of(cls, found: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]]) -> _BestMoments:
        """The best of the rows that were compared with each frame, and of their agreements."""
        rows = [int(near[values.argmax()]) for near, values in found]
        best = [float(values.max()) for _, values in found]
        ahead = [float(values.max() - np.median(values)) for _, values in found]
        return cls(np.array(rows), np.array(best), np.array(ahead))


class _PlaceSearch:
    """The best moments and place so far.

    Args:
        frames: Frames of the first video.
        parts: For each of them, the frames of the second that may show the same.
        segment: Where the videos match.
        pose: Of the frames of the first.
    """

    def __init__(self, frames: _Frames, parts: Sequence[_Frames], segment: Segment, pose: Pose) -> None:
        self._frames, self._segment, self._pose = frames, segment, pose
        counts = [len(part) for part in parts]
        firsts = np.cumsum([0, *counts])
        self._near = [np.arange(first, first + count) for first, count in zip(firsts.tolist(), counts, strict=False)]
        self._times, self._other_times = frames.times, np.concatenate([part.times for part in parts])
        self._parts = parts
        self._canvases: dict[tuple[int, int, Box, tuple[int, int]], NDArray[np.float32]] = {}
        self._others = [(part, row) for part in parts for row in range(len(part))]
        some = np.concatenate([part.extremes() for part in parts])
        self._pictures = _box_of_bars(frames.images), _box_of_bars(some)

    def run(self) -> PlacedFrames | None:
        """The frames in their places; None if nothing agrees."""
        own, other = self._pictures
        # The boxes of a segment are in the pictures as they are, bars and all.
        boxes = self._pose.apply_to_box(self._segment.query_box), self._segment.target_box
        parts = (picture if box == WHOLE else box for box, picture in zip(boxes, self._pictures, strict=True))
        best = self._best_of([Placement.between(own, other), Placement(), Placement.between(*parts)])
        # A logo or a caption may be all that disagrees, and misleads a search for the whole picture.
        for part in _PARTS:
            if best.agreement >= _SURE:
                break
            found = self._best_of(list(self._searched(part)))
            if found.agreement > best.agreement + _MORE:
                best = found
        return best if best.agreement >= _LEAST_AGREEMENT else None

    def _best_of(self, guesses: Sequence[Placement]) -> PlacedFrames:
        """The placement that agrees best of the refinements of the two best guesses."""
        ranked = [(self._first_moments(guess), guess) for guess in dict.fromkeys(guesses)]
        ranked.sort(key=lambda item: -float(item[0].agreements.mean()))
        best: PlacedFrames | None = None
        # The best guess before refinement need not be the best after it.
        for moments, guess in ranked[:2]:
            found = self._refined(moments, guess)
            if best is None or found.agreement > best.agreement + _MORE:
                best = found
            if best.agreement >= _SURE:
                break
        assert best is not None  # there is at least one guess
        return best

    def _first_moments(self, placement: Placement) -> _BestMoments:
        """The best moments in a place among all that may be meant, by small pictures."""
        ones, seen = self._frames.glances(placement.shown), placement.seen
        sides = zip(ones, self._near, self._parts, strict=True)
        return _BestMoments.of([(near, _agreements(one[None], part.glances(seen))) for one, near, part in sides])

    def _near_moments(self, placement: Placement, around: NDArray[np.int64]) -> _BestMoments:
        """The best moments in a place near those that are known, by larger pictures."""
        seen, shown = placement.seen, placement.shown
        found = []
        for place, near in enumerate(self._near):
            near = near[np.abs(near - around[place]) <= _NEARBY]
            one = self._own_canvases([place], shown, _STEPS[1])
            found.append((near, _agreements(one, self._other_canvases(near.tolist(), seen, _STEPS[1]))))
        return _BestMoments.of(found)

    def _searched(self, part: Box) -> Iterator[Placement]:
        """The best place of (a part of) the first picture inside the second, and the other way round, by template
        search."""
        own, other = self._pictures
        # The most textured frame tells most.
        place = int(np.argmax([np.asarray(self._frames.gray(row)).std() for row in range(len(self._frames))]))
        own_gray = self._frames.gray(place)
        near = self._near[place]
        moments = {int(near[len(near) // 2]), *near[:: max(1, len(near) // 4)].tolist()}
        own_part, other_part = _inside(own, part), _inside(other, part)
        best: list[tuple[float, Placement]] = [(-1.0, Placement()), (-1.0, Placement())]
        for row in moments:
            other_gray = self._others[row][0].gray(self._others[row][1])
            inside = find_part(_upright(other_gray, other), _upright(own_gray, own_part))
            around = find_part(_upright(own_gray, own), _upright(other_gray, other_part))
            if inside[0] > best[0][0]:
                best[0] = inside[0], Placement.between(own_part, _inside(other, inside[1]))
            if around[0] > best[1][0]:
                best[1] = around[0], Placement.between(_inside(own, around[1]), other_part)
        yield from (placement for _, placement in best)

    def _refined(self, moments: _BestMoments, placement: Placement) -> PlacedFrames:
        """Refine the place and the moments in turn."""
        for size in (*_STEPS, _STEPS[-1]):
            fitted = self._fitted(moments.rows, placement, size)
            found = self._near_moments(fitted, moments.rows)
            if float(found.agreements.mean()) < float(moments.agreements.mean()) - _MORE:
                break  # what only one of them has led away
            is_settled = size == _STEPS[-1] and np.array_equal(found.rows, moments.rows)
            moments, placement = found, fitted
            if is_settled:
                break
        rows = moments.rows
        if float(moments.agreements.mean()) < _CLOSE:
            rows, placement = self._at_one_lag(rows, placement, float(moments.agreements.mean()))
        placement = self._finished(rows, placement)
        agreements = self._agreements(rows, placement)
        kept = np.flatnonzero(agreements >= max(_LEAST_AGREEMENT, _OF_BEST * float(agreements.max())))
        chosen = kept if len(kept) else np.arange(len(rows))
        own, other = self._pictures
        return PlacedFrames(
            self._frames.images[chosen],
            np.stack([part.images[row] for part, row in (self._others[row] for row in rows[chosen].tolist())]),
            self._times[chosen],
            self._other_times[rows[chosen]],
            placement,
            float(agreements[chosen].mean()) if len(kept) else float(agreements.max()),
            own,
            other,
            bool((moments.ahead[chosen] >= _DISTINCT).all()),
            self._pose,
        )

    def _at_one_lag(
        self, rows: NDArray[np.int64], placement: Placement, agreement: float
    ) -> tuple[NDArray[np.int64], Placement]:
        """Moments that lie on one line, and the place that fits them, where that agrees better: a camera that zooms
        shows a slightly other crop a moment later."""
        expected = self._segment.target_start + self._segment.speed * (self._times - self._segment.query_start)
        lagging = [np.abs(self._other_times[:, None] - (expected + lag)).argmin(axis=0) for lag in _LAGS]
        # A place that fits another moment is no worse a guess for any of them.
        promising = np.argsort([-self._mean_agreement(moments, placement) for moments in lagging], kind="stable")
        best = agreement, rows, placement
        roughly = []
        for place in promising[:_LAGS_FITTED].tolist():
            fitted = self._fitted(lagging[place], placement, _STEPS[0])
            roughly.append((self._mean_agreement(lagging[place], fitted), lagging[place], fitted))
        roughly.sort(key=lambda item: -item[0])
        for _, moments, rough in roughly[:_LAGS_FITTED_FINELY]:
            fitted = self._fitted(moments, rough, _STEPS[1])
            found = self._mean_agreement(moments, fitted)
            if found > best[0]:
                best = found, moments, fitted
        return best[1], best[2]

    def _finished(self, rows: NDArray[np.int64], placement: Placement) -> Placement:
        """The place by larger pictures, unless they lead away."""
        fitted = self._fitted(rows, placement, _LAST_STEP, _LAST_ROUNDS)
        is_worse = self._mean_agreement(rows, fitted) < self._mean_agreement(rows, placement) - _MORE
        return placement if is_worse else fitted

    def _mean_agreement(self, rows: NDArray[np.int64], placement: Placement) -> float:
        return float(np.mean(self._agreements(rows, placement)))

    def _agreements(self, rows: NDArray[np.int64], placement: Placement) -> NDArray[np.float64]:
        """How well each frame of the first video agrees with one of the second in a place."""
        ones = self._own_canvases(range(len(rows)), placement.shown, _STEPS[1])
        return _agreements(ones, self._other_canvases(rows.tolist(), placement.seen, _STEPS[1]))

    def _own_canvases(self, rows: Sequence[int], box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
        """The same part of some frames of the first video."""
        return np.stack([self._canvas(self._frames, row, box, size) for row in rows])

    def _other_canvases(self, rows: Sequence[int], box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
        """The same part of some frames of the second video."""
        return np.stack([self._canvas(*self._others[row], box, size) for row in rows])

    def _canvas(self, frames: _Frames, row: int, box: Box, size: tuple[int, int]) -> NDArray[np.float32]:
        """A part of one frame; those of one place are asked for again and again."""
        key = id(frames), row, box, size
        if key not in self._canvases:
            self._canvases[key] = frames.canvas(row, box, size)
        return self._canvases[key]

    def _fitted(
        self, rows: NDArray[np.int64], placement: Placement, size: tuple[int, int], rounds: int = _ROUNDS
    ) -> Placement:
        """Move the edges of what is seen of the second picture so that it agrees best with the first."""
        height, width = size
        across = (np.arange(width, dtype=np.float32) + 0.5) / width
        down = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None]
        cut: Box | None = None
        for _ in range(rounds):
            shown, seen = placement.shown, placement.seen
            spans = seen[2] - seen[0], seen[3] - seen[1]
            # What is shown of the first picture changes only where the edges of the second are reached.
            if cut is None or max(abs(now - then) for now, then in zip(shown, cut, strict=True)) > _ROUNDING:
                cut, ones = shown, self._frames.canvases(range(len(rows)), shown, size)
            others = np.stack([part.canvas(row, seen, size) for part, row in (self._others[row] for row in rows)])
            gains, residual, weights = _robust_fits(ones, others)
            slope_down, slope_across = np.gradient(gains[:, None, None] * others, axis=(1, 2))
            slope_across *= np.float32(width / spans[0])
            slope_down *= np.float32(height / spans[1])
            moved = np.stack(
                [slope_across * (1 - across), slope_down * (1 - down), slope_across * across, slope_down * down]
            ).reshape(4, -1)
            normal = ((moved * weights.reshape(-1)) @ moved.T).astype(np.float64)
            right = (moved @ (weights * residual).reshape(-1)).astype(np.float64)
            change = np.linalg.solve(normal + 1e-3 * np.trace(normal) / 4 * np.eye(4) + 1e-9 * np.eye(4), right)
            change = np.clip(change, -_TURN, _TURN)
            edges = np.array(seen) + change
            if edges[2] - edges[0] < 0.05 or edges[3] - edges[1] < 0.05:
                break
            left, top, right_edge, bottom = edges.tolist()
            placement = Placement.between(shown, (left, top, right_edge, bottom))
            if np.abs(change).max() < max(_STILL, _STILL_PIXELS / width):
                break
        return placement


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


def _box_of_bars(images: NDArray[np.uint8]) -> Box:
    top, bottom, left, right = find_bars(images)
    height, width = images.shape[1:3]
    return left / width, top / height, right / width, bottom / height


def _inside(outer: Box, inner: Box) -> Box:
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
