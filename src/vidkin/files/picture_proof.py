"""Prove that everything in the frames of one video is in another one, moment by moment and block by block.

Both are laid on each other as their match says, and what is left of the removed one is measured against how much
compression and scaling change these two files everywhere else.

Shapes: T moments; H, W pixels; B blocks of a frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin.files.findings import Finding
from vidkin.files.laying import AS_IT_IS, FramePlace, find_borders, lay_frames, turn
from vidkin.files.small_frames import MATRICES, REMOVED_RATE, SmallFrames, Stills, pool, stretch
from vidkin.files.stretches import TimeStretch
from vidkin.files.time_path import LAG_STEP, MatchLine, candidate_times, find_path, lines_of
from vidkin.similarity import Segment

Values = NDArray[np.float32]
_Number = TypeVar("_Number", bound=np.generic)

# Seconds between moments that are compared: two of them are within any half second.
_STEP = 1 / REMOVED_RATE
# Blocks along the longer and the shorter side.
_LONG, _SHORT = 16, 9
# Moments that decide where one frame lies in the other.
_MOMENTS = 12
# Blocks of which a smaller share lies inside the kept frame are not compared.
_COVERED = 0.3
# Frames whose sizes differ by less have the same pixels; others are compared with this share of the fewer ones.
_SAME_PIXELS, _COARSER = 0.02, 0.67
# Share of a side from which on something is around the kept frame, and the share of its gradient that blurred or plain
# borders have at most on average, and of its clearest edges.
_BORDER, _BLURRED, _EDGE = 0.02, 0.2, 0.5
# Share of the moments that tells how both relate: more than half of a file may be its own.
_ALIKE = 0.4
# Frames agree at least this well where they are laid on each other, or they are not the same footage.
_AGREE = 0.8
# A block shows something else if it differs by more than this many times what blocks like it differ by in this pair,
# by at least so many gray levels: less is not seen. Colors are coded coarser, and a difference of the last number is
# another color, however the rest was changed.
_TIMES, _LEVELS, _COLOR_LEVELS, _OTHER_COLOR = 6.0, 7.0, 20.0, 60.0
# Differences that every encoder makes, in gray levels, and for each level of the gradient.
_NOISE, _SLOPE = 0.7, 0.05
# Frames whose gray levels deviate by less show nothing; a border is a stretch of such a frame.
_PLAIN = 2.5
# Frames with less color than this have none, and so have those with less than this share of the color of a copy.
_NO_COLOR, _FADED = 2.5, 0.3
# Frames of the kept file that are on screen within so many seconds of a moment are its neighbors.
_NEIGHBOR = 0.35
# A kept file that goes back by more seconds shows something once that the removed one shows twice, or elsewhere.
_BACK = 0.5
# Share of the changes over time that the kept file must show as well: otherwise it is another recording of the scene.
_EXPLAINED = 0.5
# Below this many gray levels from one moment to another nothing changes at all, as in a slide.
_STILL = 0.12
# A still whose contrast differs by a larger share may be the same scene in another light.
_OTHER_LIGHT = 0.05
# A kept file may begin later or end earlier by less than half a second.
_ENDS = 0.3
# Colors by another matrix differ by a smaller share than as they are: it was converted.
_CONVERTED = 0.8
# Share of the blocks from which on the whole frame shows something else.
_MOST = 0.5
# Seconds that are decoded again at most, every frame of them, and how far from its moment a frame may be.
_LOOK_AGAIN, _NEAR = 20.0, 0.25
# Mean differences of a moment are counted up to this, so that a moment that is nowhere does not bend the path.
_MAX_COST, _MAX_LEVELS = 6.0, 40.0
# Moments that tell what is usual for a pair: medians of hours need not all of them.
_SAMPLE = 4000
# Frames that are worked on at the same time: some megabytes.
_BATCH = 64


@dataclass(frozen=True, slots=True)
class PictureProof:
    """How the frames of a removed file lie on those of the kept one.

    Attributes:
        findings: Footage of the removed file that the kept one does not show; empty if all of it stays.
        stretches: The moments of the removed file in the kept one, in order.
        place: Where its frames lie in those of the kept file, after it was turned and mirrored.
        mirrored, turned: The pose: degrees clockwise, then left to right.
        is_still: Nothing moves in the removed file: where encoders have removed all noise, two recordings of one scene
            look the same, and frames alone are no proof.
    """

    findings: tuple[Finding, ...]
    stretches: tuple[TimeStretch, ...] = ()
    place: FramePlace = AS_IT_IS
    mirrored: bool = False
    turned: int = 0
    is_still: bool = False

    def pose(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A frame [H, W] or [H, W, 3] of the removed file, turned and mirrored like the kept one."""
        image = np.rot90(image, -self.turned // 90 % 4)
        return image[:, ::-1] if self.mirrored else image


def prove_picture(kept: SmallFrames, removed: SmallFrames, segments: Sequence[Segment]) -> PictureProof:
    """Compare all of the removed file with the kept one, about five moments a second.

    Args:
        kept, removed: Their frames.
        segments: Where they match, with the removed file as the query.
    """
    if not segments:
        return PictureProof((Finding("picture", "no match between them is known"),))
    poses: dict[tuple[bool, int], float] = {}
    for segment in segments:
        pose = segment.mirrored, segment.turned
        poses[pose] = poses.get(pose, 0.0) + segment.query_end - segment.query_start
    mirrored, turned = max(poses, key=lambda pose: poses[pose])
    chosen = [segment for segment in segments if (segment.mirrored, segment.turned) == (mirrored, turned)]
    return _Comparison(kept, removed, mirrored, turned).prove(chosen)


class _Comparison:
    """Two videos that are laid on each other."""

    def __init__(self, kept: SmallFrames, removed: SmallFrames, mirrored: bool, turned: int) -> None:
        self.kept, self.removed, self.mirrored, self.turned = kept, removed, mirrored, turned
        # The last frame stays as long as the others do, if these are all there are.
        self.length = float(removed.times[-1]) + (removed.period if removed.period > 1.5 * _STEP else _STEP / 2)
        # Every frame that is on screen at one of the moments, once: a slide may stay for minutes.
        moments = np.arange(0.0, self.length, _STEP) + 1e-6
        self.rows = np.unique(np.maximum(np.searchsorted(removed.times, moments, side="right") - 1, 0))
        self.times = removed.times[self.rows]
        self.full: tuple[int, int] = removed.size if turned % 180 == 0 else removed.size[::-1]
        self.blocks = (_SHORT, _LONG) if self.full[1] >= self.full[0] else (_LONG, _SHORT)
        self.place = AS_IT_IS
        # By which the colors of the kept file are compared; None as they are.
        self.matrix: Values | None = None
        self._set_size(self.full, (0.0, 0.0, 1.0, 1.0))
        self.framed = False
        self.gain, self.lift = 1.0, 0.0
        self.is_still = False
        self.at: NDArray[np.float64] = self.times
        # How much each moment differs from the one it shows, in shares of what there is to see in it.
        self.apart: NDArray[np.floating] = np.zeros(len(self.rows))

    def prove(self, segments: Sequence[Segment]) -> PictureProof:
        """All findings."""
        lines = lines_of(segments, self.length)
        self.at = lines[0].at(self.times)
        # A match can be wrong by half a second, in which frames move: the moments have to be found before the place.
        found = self._lay()
        guess = self.at
        self._find_times(lines)
        other = self._lay()
        if not other[1] > found[1]:
            self.at, other = guess, found
        self.place, agreement = other
        for _ in range(2):
            self._set_place()
            if self.matrix is None:
                self._set_matrix()
            before = self.at
            self._find_times(lines)
            if np.abs(self.at - before).max() < 1.5 * LAG_STEP:
                break
            self.place, agreement = self._lay()
        if agreement < _AGREE:
            return self._result((Finding("picture", "its frames do not lie on those of the kept file", certainty=0.9),))
        differ, changes, is_plain = self._measure()
        findings = [*self._outside(), *self._differing(differ, is_plain)]
        if self._has_color() and self._is_gray():
            findings.append(Finding("picture", "the kept file is gray, this one has colors", certainty=0.95))
        if self.framed:
            findings.append(Finding("borders", "the kept file has borders around the frame", certainty=0.9))
        if not findings and (np.diff(self.at) < -_BACK).any():
            text = "it shows parts of the kept file again or in another order"
            findings.append(Finding("picture", text, certainty=0.7))
        if not findings and (doubt := self._doubt_moments(changes)):
            findings.append(doubt)
        return self._result(tuple(findings))

    def _lay(self) -> tuple[FramePlace, float]:
        """The place of the removed frames, and how well those agree there that agree best."""
        moments = self._alike()
        picked = moments[np.unique(np.linspace(0, len(moments) - 1, _MOMENTS).astype(np.intp))]
        ones = self._turn(self.removed.read(self.rows[picked]).luma)
        return lay_frames(ones, self._read_kept(self._shown(self.at[picked])).luma)

    def _alike(self) -> NDArray[np.intp]:
        """The moments that agree best: footage that only one of both has decides nothing."""
        return np.flatnonzero(self.apart <= np.quantile(self.apart, _ALIKE))

    def _set_place(self) -> None:
        """Compare at the size of the place, and without borders of the kept frames."""
        rows = self._shown(self.at[np.linspace(0, len(self.at) - 1, _MOMENTS).astype(np.intp)])
        box = find_borders(self._read_kept(rows).luma)
        self._set_size(self._common_size(), box)
        left, top, right, bottom = self.place.seen
        around = left, top, 1 - right, 1 - bottom
        bars = box[0], box[1], 1 - box[2], 1 - box[3]
        # Beyond the removed frame the kept one has nothing but a border, whose edge lies within two pixels.
        self.framed = any(
            beyond > _BORDER and bar > max(beyond / 2, beyond - 2 / min(self.kept.size))
            for beyond, bar in zip(around, bars, strict=True)
        )

    def _set_matrix(self) -> None:
        """Give the colors of the kept file by the matrix of the removed one, if a copy was converted."""
        found = [self._unlike()]
        for self.matrix in MATRICES:
            found.append(self._unlike())
        best = int(np.argmin(found))
        self.matrix = MATRICES[best - 1] if best and found[best] < _CONVERTED * found[0] else None

    def _unlike(self) -> float:
        """How much levels and colors of some moments that agree well differ, in gray levels."""
        alike = self._alike()
        picked = alike[np.linspace(0, len(alike) - 1, _MOMENTS).astype(np.intp)]
        covered = self._covered_blocks()
        rows = self._shown(self.at[picked])
        own = self._means(self.removed, self.rows[picked], AS_IT_IS, covered).astype(np.float32)
        other = self._means(self.kept, rows, self.place, covered).astype(np.float32)
        if not own.size:
            return 0.0
        gain, lift = _fit_line(other.ravel(), own.ravel())
        ones, others = self._colors()
        # A gray copy has the levels of its source, whose colors it cannot have.
        apart = np.abs(ones - others).mean() if self._has_color() and not self._is_gray() else 0.0
        return float(np.abs(own - gain * other - lift).mean() + apart)

    def _result(self, findings: tuple[Finding, ...]) -> PictureProof:
        return PictureProof(findings, self._stretches(), self.place, self.mirrored, self.turned, self.is_still)

    def _common_size(self) -> tuple[int, int]:
        """H, W at which both are compared: that of the removed frames where the kept ones have the same pixels.

        Otherwise both are resampled, to fewer pixels than either has, or the sharper one would differ at every edge.
        """
        kept = [self.place.scale[1] * self.kept.size[0], self.place.scale[0] * self.kept.size[1]]
        if all(abs(there - own) < _SAME_PIXELS * own for there, own in zip(kept, self.full, strict=True)):
            return self.full
        fewer = [min(there, own) * _COARSER for there, own in zip(kept, self.full, strict=True)]
        return max(round(fewer[0]), self.blocks[0]), max(round(fewer[1]), self.blocks[1])

    def _set_size(self, size: tuple[int, int], box: tuple[float, float, float, float]) -> None:
        self.size = size
        self.inside = self.place.covered(size, self.kept.size, box)
        self.colored = self.place.covered(self.blocks, self.kept.color_size, box)
        self.down, self.across = pool(size[0], self.blocks[0]), pool(size[1], self.blocks[1])

    def _read_kept(self, rows: NDArray[np.intp]) -> Stills:
        """Kept frames, their colors by the matrix of the removed file."""
        return self._converted(self.kept.read(rows))

    def _converted(self, stills: Stills) -> Stills:
        return stills if self.matrix is None else stills.by_matrix(self.matrix)

    def _turn(self, images: Values) -> Values:
        return turn(images, mirrored=self.mirrored, turned=self.turned)

    def _own(self, rows: NDArray[np.intp]) -> Values:
        """Removed frames, turned, at the size at which both are compared."""
        return AS_IT_IS.lay(self._turn(self.removed.read(rows).luma), self.size)

    def _shown(self, times: NDArray[np.float64]) -> NDArray[np.intp]:
        """Positions of the kept frames that are on screen at these seconds."""
        # Times of two containers differ by rounding.
        rows = np.searchsorted(self.kept.times, times + 0.25 * max(self.kept.period, 0.01), side="right") - 1
        return np.clip(rows, 0, len(self.kept) - 1)

    def _find_times(self, lines: Sequence[MatchLine]) -> None:
        """Find the moment of the kept file that each compared moment shows, and how its brightness relates."""
        covered = self._covered_blocks()
        if not covered.any():
            return
        own = self._means(self.removed, self.rows, AS_IT_IS, covered)
        other = self._means(self.kept, np.arange(len(self.kept)), self.place, covered)
        if self.apart.any():
            alike = self._alike()
            pairs = _sampled(other[self._shown(self.at[alike])], own[alike])
            self.gain, self.lift = _fit_line(*(part.astype(np.float32).ravel() for part in pairs))
        else:
            # Nothing is known of their brightness yet.
            own -= own.mean(axis=1, keepdims=True)
            other -= other.mean(axis=1, keepdims=True)
        costs = np.concatenate([self._costs(own, other, lines, rows) for rows in _batches(np.arange(len(own)))])
        apart = costs.min(axis=1)
        seen = own.astype(np.float32).std(axis=1)
        self.apart = (apart + 1.0) / (seen + 1.0)
        costs /= np.quantile(apart, _ALIKE) + 0.5
        costs = np.minimum(costs, _MAX_COST)
        candidates = candidate_times(lines, self.times)
        costs[(candidates < -_ENDS) | (candidates > self._end() + _ENDS)] = _MAX_COST
        path = find_path(costs, len(lines))
        self.at = candidates[np.arange(len(path)), path]

    def _covered_blocks(self) -> NDArray[np.bool_]:
        """[rows, columns] the blocks of which most lies inside the kept frames."""
        return np.asarray(self.down @ self.inside.astype(np.float32) @ self.across.T > _COVERED)

    def _means(
        self, frames: SmallFrames, rows: NDArray[np.intp], place: FramePlace, covered: NDArray[np.bool_]
    ) -> NDArray[np.float16]:
        """[T, B] means of the covered blocks; half precision is an eighth of a gray level."""
        turned = frames is self.removed and self.turned % 180 != 0
        height, width = frames.size[::-1] if turned else frames.size
        down = self.down @ stretch(height, self.size[0], place.scale[1], place.shift[1])
        across = self.across @ stretch(width, self.size[1], place.scale[0], place.shift[0])
        means = np.empty((len(rows), int(covered.sum())), np.float16)
        for first, batch in zip(range(0, len(rows), _BATCH), _batches(rows), strict=True):
            is_removed = frames is self.removed
            images = self._turn(frames.read(batch).luma) if is_removed else self._read_kept(batch).luma
            means[first : first + _BATCH] = (down @ images @ across.T)[:, covered]
        return means

    def _costs(
        self, own: NDArray[np.float16], other: NDArray[np.float16], lines: Sequence[MatchLine], rows: NDArray[np.intp]
    ) -> Values:
        """[T, L] mean differences of some moments from each candidate, in gray levels."""
        wanted = own[rows].astype(np.float32)
        columns = []
        for times in candidate_times(lines, self.times[rows]).T:
            laid = self.gain * other[self._shown(times)].astype(np.float32) + np.float32(self.lift)
            columns.append(np.minimum(np.abs(wanted - laid), _MAX_LEVELS).mean(axis=1))
        return np.stack(columns, axis=1).astype(np.float32)

    def _end(self) -> float:
        """Seconds at which the kept file ends."""
        return float(self.kept.times[-1]) + self.kept.period

    def _stretches(self) -> tuple[TimeStretch, ...]:
        """The runs of moments at one lag; a moment stands for the time until the next one."""
        speeds = np.diff(self.at) / np.maximum(np.diff(self.times), 1e-6) if len(self.at) > 1 else np.ones(0)
        speed = float(np.median(speeds)) if len(speeds) else 1.0
        lag = self.at - speed * self.times
        starts = [0, *(np.flatnonzero(np.abs(np.diff(lag)) > 0.05) + 1).tolist(), len(lag)]
        found = []
        for first, last in pairwise(starts):
            begin = 0.0 if first == 0 else float(self.times[first])
            end = self.length if last == len(lag) else float(self.times[last])
            if end > begin:
                kept = float(self.at[first]) - speed * (float(self.times[first]) - begin)
                found.append(TimeStretch(begin, end, kept, speed))
        return tuple(found)

    def _measure(self) -> tuple[NDArray[np.bool_], tuple[float, float], NDArray[np.bool_]]:
        """Which blocks [T, B] differ by more than this pair does elsewhere; how much changes over time, and how much of
        it the kept file does not show; which moments [T] show nothing."""
        has_color = self._has_color()
        count = self.blocks[0] * self.blocks[1]
        # Half precision, or the numbers of hours would not fit.
        levels, slopes, colors = (np.empty((len(self.rows), count), np.float16) for _ in range(3))
        plain = np.empty(len(self.rows), np.bool_)
        covered = self._covered_blocks().ravel()
        colored = self.colored.ravel() & covered
        energy, before, moving = np.zeros(2), None, 0
        for part in self._batched():
            found = self._compare_kept(self.rows[part], self.at[part], has_color)
            levels[part], slopes[part], colors[part], plain[part] = (*found[:3], found[4])
            # From and to black nothing moves.
            means = found[3][~plain[part]][:, covered]
            run = means if before is None else np.concatenate([before, means])
            if len(run) > 1 and covered.any():
                energy += np.square(np.diff(run, axis=0)).mean(axis=1).sum(axis=0)
                moving += len(run) - 1
            before = run[-1:]
        energy /= max(moving, 1)
        usual, steep, tinted = (one.astype(np.float32) for one in _sampled(levels, slopes, colors))
        usual, steep, tinted = usual[:, covered], steep[:, covered], tinted[:, colored]
        noise = max(_NOISE, float(np.median(usual)) if usual.size else 0.0)
        relative = (usual / np.maximum(steep, 1.0))[steep > 2 * noise]
        slope = max(_SLOPE, float(np.median(relative)) if relative.size else 0.0)
        color_noise = max(_NOISE, float(np.median(tinted)) if tinted.size else 0.0)
        other_color = min(max(_TIMES * color_noise, _COLOR_LEVELS), _OTHER_COLOR)

        def find_differing(part: slice) -> NDArray[np.bool_]:
            expected = np.sqrt(noise**2 + (slope * slopes[part].astype(np.float32)) ** 2)
            luma = (levels[part] > np.maximum(_TIMES * expected, _LEVELS)) & covered
            return np.asarray(luma | ((colors[part] > other_color) & colored))

        differ = np.concatenate([find_differing(part) for part in self._batched()])
        for first, last in self._runs_to_look_at_again(differ):
            part = slice(first, last)
            found = self._compare_every(self.rows[part], self.at[part], has_color)
            levels[part], colors[part] = np.minimum(levels[part], found[0]), np.minimum(colors[part], found[2])
            differ[part] = find_differing(part)
        beyond = (self.at < -_ENDS) | (self.at > self._end() + _ENDS)
        differ[beyond & ~plain] = True
        return differ, (float(energy[0]), float(energy[1])), plain

    def _batched(self) -> Iterator[slice]:
        for first in range(0, len(self.rows), _BATCH):
            yield slice(first, min(first + _BATCH, len(self.rows)))

    def _runs_to_look_at_again(self, differ: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Runs of moments in which parts of the frame differ: quick movement between the frames that were read looks
        like that, too. What differs throughout, or for longer than is worth a decoding, is left."""
        left = _LOOK_AGAIN
        for first, last in _runs(np.asarray(_lasting(differ).any(axis=1))):
            seconds = float(self.times[min(last, len(self.times) - 1)] - self.times[first])
            if differ[first:last].mean(axis=1).max() <= _MOST and seconds <= left:
                left -= seconds
                yield first, last

    def _compare_kept(self, rows: NDArray[np.intp], at: NDArray[np.float64], has_color: bool) -> tuple[Values, ...]:
        """Removed frames against the kept frames that were read at these seconds, see `_compare`."""
        shown = self._shown(at)
        # The moment may lie between two frames, and be off by one; the next slide is no neighbor.
        near = np.clip(shown[:, None] + np.arange(-1, 3), 0, len(self.kept) - 1)
        is_near = self.kept.times[near] < at[:, None] + _NEIGHBOR
        is_near[:, 0] = self.kept.times[shown] > at - _NEIGHBOR
        near = np.where(is_near, near, shown[:, None])
        needed = np.unique(near)
        sides = np.searchsorted(needed, near).T
        return self._compare(self.removed.read(rows), self._read_kept(needed), sides, has_color)

    def _compare_every(self, rows: NDArray[np.intp], at: NDArray[np.float64], has_color: bool) -> tuple[Values, ...]:
        """The same against every frame of the kept file around these seconds: the one that is most alike."""
        times, stills = self.kept.read_every(float(at.min()) - _NEAR, float(at.max()) + _NEAR)
        stills = self._converted(stills)
        own = self.removed.read(rows)
        luma = AS_IT_IS.lay(self._turn(own.luma), self.size)
        laid = self.gain * self.place.lay(stills.luma, self.size) + self.lift
        best = []
        for one, moment in zip(luma, at, strict=True):
            apart = np.minimum(np.abs(laid - one), _MAX_LEVELS)[:, self.inside].mean(axis=1)
            apart[np.abs(times - moment) > _NEAR] = np.inf
            best.append(int(np.argmin(apart)))
        near = np.clip(np.array(best) + np.arange(-1, 3)[:, None], 0, len(times) - 1)
        return self._compare(own, stills, near, has_color)

    def _compare(self, own: Stills, stills: Stills, near: NDArray[np.intp], has_color: bool) -> tuple[Values, ...]:
        """Compare removed frames with kept ones.

        Args:
            own: T removed frames.
            stills: Kept frames.
            near: [4, T] positions among these: the one before, the one that is meant and the two after it.
            has_color: Whether colors are compared.

        Returns:
            Differences of blocks in gray levels [T, B], their gradients [T, B], differences in color [T, B], mean
            levels and what is left of them [T, B, 2], and whether the frame shows nothing [T].
        """
        inside = self.inside.astype(np.float32)
        share = np.maximum(self.down @ inside @ self.across.T, 1e-3)
        luma = AS_IT_IS.lay(self._turn(own.luma), self.size)
        laid = self.gain * self.place.lay(stills.luma, self.size) + self.lift
        # The moment may lie between two frames, and be off by one: the nearest point between any two neighbors.
        nearest = [self._between(luma, laid[one], laid[two], inside) for one, two in pairwise(near)]
        levels = np.stack([level for level, _ in nearest])
        best = np.argmin(levels, axis=0)[None]
        level = np.take_along_axis(levels, best, axis=0)[0]
        apart = np.take_along_axis(np.stack([mean for _, mean in nearest]), best, axis=0)[0]
        down, across = np.gradient(laid[near[1]], axis=(1, 2))
        slope = self._pool((down * down + across * across) * inside) / share
        hue = np.zeros_like(level)
        if has_color:
            color = AS_IT_IS.lay(self._turn(own.color), self.blocks)
            others = self.place.lay(stills.color, self.blocks)
            hue = np.min([np.square(color - others[side]).sum(axis=1) for side in near], axis=0)
        means = np.stack([self._pool(luma * inside) / share, apart / share], axis=-1)
        count = len(luma)
        return (
            np.sqrt(level / share).reshape(count, -1),
            np.sqrt(slope).reshape(count, -1),
            np.sqrt(hue).reshape(count, -1),
            means.reshape(count, -1, 2),
            luma.std(axis=(1, 2)) < _PLAIN,
        )

    def _pool(self, images: Values) -> Values:
        return np.asarray(self.down @ images @ self.across.T, np.float32)

    def _between(self, own: Values, one: Values, two: Values, inside: Values) -> tuple[Values, Values]:
        """Squared distance of each block from the line between two frames, and its mean, [T, rows, columns]."""
        step, apart = (two - one) * inside, (own - one) * inside
        shared, length = self._pool(step * apart), self._pool(step * step)
        along = np.clip(shared / np.maximum(length, 1e-3), 0.0, 1.0)
        squared = np.maximum(self._pool(apart * apart) - 2 * along * shared + along * along * length, np.float32(0.0))
        return np.asarray(squared, np.float32), np.asarray(self._pool(apart) - along * self._pool(step), np.float32)

    def _has_color(self) -> bool:
        """Whether the removed file has colors at all."""
        return float(np.abs(self._colors()[0]).mean()) > _NO_COLOR

    def _is_gray(self) -> bool:
        """Whether the kept file has hardly any of the colors of the removed one."""
        own, other = self._colors()
        return bool(np.abs(other).mean() < _FADED * np.abs(own).mean())

    def _colors(self) -> tuple[Values, Values]:
        """Colors of some moments of the removed file, and those that the kept one has there."""
        picked = np.linspace(0, len(self.rows) - 1, 32).astype(np.intp)
        own = AS_IT_IS.lay(self._turn(self.removed.read(self.rows[picked]).color), self.blocks)
        other = self.place.lay(self._read_kept(self._shown(self.at[picked])).color, self.blocks)
        inside = self.colored if self.colored.any() else np.ones_like(self.colored)
        return own[..., inside], other[..., inside]

    def _outside(self) -> Iterator[Finding]:
        """Footage around what the kept file shows; plain and blurred borders are nothing."""
        left, top, right, bottom = self.place.shown
        height, width = self.full
        strips = {
            "the left": (2, left * width),
            "the top": (1, top * height),
            "the right": (-2, (1 - right) * width),
            "the bottom": (-1, (1 - bottom) * height),
        }
        rows = self.rows[np.unique(np.linspace(0, len(self.rows) - 1, _MOMENTS).astype(np.intp))]
        images = self._turn(self.removed.read(rows).luma)
        names = []
        for name, (side, strip) in strips.items():
            if strip <= _BORDER * self.full[abs(side) - 1]:
                continue
            # Along the side: across it is the edge between the frame and what is around it, two pixels wide.
            lines = np.moveaxis(images if side > 0 else images[:, ::-1, ::-1], abs(side), 1)
            slopes = np.abs(np.diff(lines, axis=2))
            outer, inner = slopes[:, : max(1, int(strip - 2))], slopes[:, int(strip) + 1 :]
            # A scene at night has little detail anywhere: its clearest edges count as well.
            edge, edge_inside = (float(np.quantile(part, 0.99)) for part in (outer, inner))
            if outer.mean() > max(_BLURRED * inner.mean(), 0.5) or edge > max(_EDGE * edge_inside, 4.0):
                names.append(name)
        if names:
            where = "all around" if len(names) == len(strips) else f"at {' and '.join(names)}"
            yield Finding("picture", f"more of the scene {where}", certainty=0.8)

    def _differing(self, differ: NDArray[np.bool_], plain: NDArray[np.bool_]) -> Iterator[Finding]:
        """Findings for runs of moments with blocks that differ at two moments in a row."""
        lasting = _lasting(differ)
        # A frame that stays for as long as two moments needs no other one.
        stays = np.diff([*self.times.tolist(), self.length]) > 1.9 * _STEP
        if len(stays) > 1:
            stays[-1] |= stays[-2]  # how long the last slide stays is not known
        lasting[stays] = differ[stays]
        lasting[plain & (differ.mean(axis=1) > _MOST)] = False
        end = self._end()
        edges = [*self.times.tolist(), self.length]
        for first, last in _runs(np.asarray(lasting.any(axis=1))):
            blocks = np.asarray(lasting[first:last].any(axis=0)).reshape(self.blocks)
            share = float(lasting[first:last].mean(axis=1).max())
            start, stop = edges[first] if first else 0.0, edges[last]
            when = f"{_clock(start)}-{_clock(stop)}"
            certainty = 0.95 if share > _MOST else 0.8
            if share <= _MOST:
                where = _where(blocks)
                text = "throughout" if last - first >= len(differ) - 2 else when
                yield Finding("picture", f"{text}, {where} differs: text, a logo or a cover?", start, stop, certainty)
            elif first == 0 and self.at[last - 1] < 0.5 and self.at[0] < -_ENDS:
                yield Finding("ends", f"its first {stop:.1f} s are not in the kept file", start, stop, certainty)
            elif last == len(differ) and self.at[-1] > end - 0.5:
                yield Finding("ends", f"its last {stop - start:.1f} s are not in the kept file", start, stop, certainty)
            else:
                yield Finding("picture", f"{when} shows something else", start, stop, certainty)

    def _doubt_moments(self, changes: tuple[float, float]) -> Finding | None:
        """A finding where so little changes that the two may be different recordings of one scene."""
        energy, unexplained = changes
        if len(self.rows) < 2:
            return None
        self.is_still = energy < _STILL**2
        is_same = abs(self.gain - 1) < _OTHER_LIGHT if self.is_still else unexplained <= (1 - _EXPLAINED) * energy
        if is_same:
            return None
        return Finding("picture", "too little moves to tell it from another recording of the same scene", certainty=0.6)


def _batches(values: NDArray[_Number]) -> Iterator[NDArray[_Number]]:
    for first in range(0, len(values), _BATCH):
        yield values[first : first + _BATCH]


def _sampled(*arrays: NDArray[_Number]) -> tuple[NDArray[_Number], ...]:
    """Rows of arrays of equal length, evenly spread: all of them, or as many as are enough."""
    return tuple(array[:: max(1, len(array) // _SAMPLE)] for array in arrays)


def _fit_line(values: NDArray[np.floating], wanted: NDArray[np.floating]) -> tuple[float, float]:
    """Gain and lift that turn values into the wanted ones, by least squares that leave out what differs much."""
    gain, lift = 1.0, 0.0
    weights = np.ones_like(values)
    for _ in range(5):
        middle, goal = np.average(values, weights=weights), np.average(wanted, weights=weights)
        spread = np.average((values - middle) ** 2, weights=weights)
        gain = float(np.average((values - middle) * (wanted - goal), weights=weights) / spread) if spread > 1 else 1.0
        gain = float(np.clip(gain, 0.2, 5.0))
        lift = float(goal - gain * middle)
        apart = np.abs(wanted - gain * values - lift)
        weights = 1 / (1 + (apart / (2 + 2 * np.median(apart))) ** 2) ** 2
    return gain, lift


def _lasting(differ: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What differs at two moments in a row, or at the only one."""
    if len(differ) < 2:
        return differ.copy()
    twice = differ[:-1] & differ[1:]
    lasting = np.zeros_like(differ)
    lasting[:-1] |= twice
    lasting[1:] |= twice
    return lasting


def _runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and one past the last position of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _where(blocks: NDArray[np.bool_]) -> str:
    """The part of a frame in which blocks are, in words."""
    rows, columns = (np.flatnonzero(blocks.any(axis=axis)) for axis in (1, 0))
    top, bottom = rows[0] / blocks.shape[0], (rows[-1] + 1) / blocks.shape[0]
    left, right = columns[0] / blocks.shape[1], (columns[-1] + 1) / blocks.shape[1]
    down = "upper" if bottom <= 0.55 else "lower" if top >= 0.45 else ""
    across = "left" if right <= 0.55 else "right" if left >= 0.45 else ""
    if not down and not across:
        return "part of the frame"
    return f"the {' '.join(filter(None, (down, across)))} part"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds, 1), 60)
    return f"{int(minutes)}:{rest:04.1f}"
