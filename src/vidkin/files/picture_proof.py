"""Prove that the frames of one video show everything in another video, moment by moment and block by block.

The videos are aligned using the match. Remaining differences are compared with the typical difference of this pair,
which compression and scaling cause.

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
from vidkin.files.frame_alignment import IDENTITY, FrameAlignment, align_frames, find_borders
from vidkin.files.small_frames import MATRICES, REMOVED_RATE, SmallFrames, Stills, pool, stretch
from vidkin.files.stretches import TimeStretch
from vidkin.files.time_path import LAG_STEP, MatchLine, candidate_times, find_path, match_lines
from vidkin.match.pose import PLAIN, Pose
from vidkin.similarity import Segment

Values = NDArray[np.float32]
_Number = TypeVar("_Number", bound=np.generic)

# Seconds between compared moments; any half second contains two of them.
_STEP = 1 / REMOVED_RATE
# Blocks along the longer and the shorter side.
_LONG, _SHORT = 16, 9
# Number of moments at which the frames are aligned.
_MOMENTS = 12
# Minimum fraction of a block inside the kept frame for the block to be compared.
_MIN_COVERED = 0.3
# Frames whose sizes differ by less than the first fraction have the same pixels. Otherwise, both are reduced to the
# second fraction of the smaller size.
_SAME_PIXELS, _COARSE_RATIO = 0.02, 0.67
# Minimum width of a border as a fraction of the side, and maximum gradient of a blurred or plain border, as fractions
# of the mean gradient and of the clearest edges inside.
_BORDER, _BLURRED, _EDGE = 0.02, 0.2, 0.5
# Fraction of the moments, the most similar ones, that calibrates the comparison. It is below one half because more than
# half of a file may be footage that only it contains.
_AGREEING_FRACTION = 0.4
# Minimum agreement of aligned frames for them to be the same footage.
_MIN_AGREEMENT = 0.8
# A block shows something else if it differs by this factor more than similar blocks of the pair, and by at least this
# many gray levels (smaller differences are invisible). Colors are encoded more coarsely, so their limit is higher; a
# difference above the last value is always another color, however much the rest differs.
_FACTOR, _LEVELS, _COLOR_LEVELS, _OTHER_COLOR = 6.0, 7.0, 20.0, 60.0
# Differences that every encoder causes: in gray levels, and per gray level of the gradient.
_NOISE, _SLOPE = 0.7, 0.05
# Standard deviation in gray levels below which a frame has no content.
_MAX_PLAIN = 2.5
# Mean color in gray levels below which a video is gray, and the same limit as a fraction of the color of its copy.
_NO_COLOR, _MAX_FADED = 2.5, 0.3
# Frames of the kept file within this many seconds of a moment are its neighbors.
_NEIGHBOR = 0.35
# Seconds that the time in the kept file may step back; a larger step means that the removed file repeats or reorders
# footage.
_MAX_STEP_BACK = 0.5
# Minimum fraction of the changes over time that the kept file must also show; less means another recording of the
# scene.
_MIN_EXPLAINED = 0.5
# Difference in gray levels between moments below which nothing changes, as in a slide.
_MAX_STILL = 0.12
# Change of contrast above which a still may show the same scene in different light.
_OTHER_LIGHT = 0.05
# Seconds by which a kept file may begin later or end earlier.
_END_TOLERANCE = 0.3
# A conversion to another color matrix is assumed if undoing it reduces the differences to at most this fraction.
_CONVERTED = 0.8
# Fraction of differing blocks above which the whole frame shows something else.
_WHOLE_FRAME = 0.5
# Maximum number of seconds in which every frame is decoded again, and maximum distance of such a frame from its moment.
_MAX_RECHECK, _RECHECK_REACH = 20.0, 0.25
# Upper limits on the cost of a moment, so that moments missing from the kept file do not distort the path.
_MAX_COST, _MAX_LEVELS = 6.0, 40.0
# Number of moments from which the typical differences of a pair are estimated; medians do not need every moment of a
# long file.
_SAMPLE = 4000
# Number of frames compared at a time, which takes a few megabytes.
_BATCH = 64


@dataclass(frozen=True, slots=True)
class PictureProof:
    """Result of comparing the frames of a removed file with a kept file.

    Attributes:
        findings: Footage in the removed file that the kept file does not show; empty if nothing is lost.
        stretches: Map from times in the removed file to times in the kept file, in order.
        alignment: Position of the removed frames in the kept frames, after rotation and mirroring.
        pose: Rotation and mirroring that bring the removed frames into the orientation of the kept file.
        is_still: Whether nothing moves in the removed file. After encoders have removed all noise, two recordings of
            one scene look the same, so frames alone prove nothing.
    """

    findings: tuple[Finding, ...]
    stretches: tuple[TimeStretch, ...] = ()
    alignment: FrameAlignment = IDENTITY
    pose: Pose = PLAIN
    is_still: bool = False


def prove_picture(kept: SmallFrames, removed: SmallFrames, segments: Sequence[Segment]) -> PictureProof:
    """Compare the whole removed file with the kept file, at about five moments per second.

    Args:
        kept, removed: Frames of the two files.
        segments: Matching segments, with the removed file as the query.
    """
    by_pose: dict[Pose, list[Segment]] = {}
    for segment in segments:
        if not segment.backwards:
            by_pose.setdefault(Pose(segment.mirrored, segment.turned // 90), []).append(segment)
    if not by_pose:
        what = "the kept file shows it backwards" if segments else "no match between the files is known"
        return PictureProof((Finding("picture", what),))
    pose = max(by_pose, key=lambda each: sum(one.query_end - one.query_start for one in by_pose[each]))
    return _Comparison(kept, removed, pose).prove(by_pose[pose])


class _Comparison:
    """Comparison of two aligned videos."""

    def __init__(self, kept: SmallFrames, removed: SmallFrames, pose: Pose) -> None:
        self.kept, self.removed, self.pose = kept, removed, pose
        # If frames are further apart than moments, the last frame stays on screen as long as the others.
        self.length = float(removed.times[-1]) + (removed.period if removed.period > 1.5 * _STEP else _STEP / 2)
        # The frames on screen at the moments, without duplicates, because a slide may stay for minutes.
        moments = np.arange(0.0, self.length, _STEP) + 1e-6
        self.rows = np.unique(np.maximum(np.searchsorted(removed.times, moments, side="right") - 1, 0))
        self.times = removed.times[self.rows]
        self.full: tuple[int, int] = removed.size[::-1] if pose.quarter % 2 else removed.size
        self.blocks = (_SHORT, _LONG) if self.full[1] >= self.full[0] else (_LONG, _SHORT)
        self.alignment = IDENTITY
        # Conversion of the kept file's colors; None if they are not converted.
        self.matrix: Values | None = None
        self._set_size(self.full, (0.0, 0.0, 1.0, 1.0))
        self.has_borders = False
        self.gain, self.lift = 1.0, 0.0
        self.is_still = False
        self.kept_times: NDArray[np.float64] = self.times
        # Difference of each moment from the kept file, relative to the contrast of the moment.
        self.differences: NDArray[np.floating] = np.zeros(len(self.rows))

    def prove(self, segments: Sequence[Segment]) -> PictureProof:
        """Align the videos and collect all findings."""
        lines = match_lines(segments, self.length)
        self.kept_times = lines[0].at(self.times)
        # A match can be off by half a second, in which content moves, so refine times before the alignment.
        found = self._align()
        guess = self.kept_times
        self._find_times(lines)
        other = self._align()
        if not other[1] > found[1]:
            self.kept_times, other = guess, found
        self.alignment, agreement = other
        for _ in range(2):
            self._set_alignment()
            if self.matrix is None:
                self._set_matrix()
            before = self.kept_times
            self._find_times(lines)
            if np.abs(self.kept_times - before).max() < 1.5 * LAG_STEP:
                break
            self.alignment, agreement = self._align()
        if agreement < _MIN_AGREEMENT:
            return self._result((Finding("picture", "its frames do not align with the kept file", certainty=0.9),))
        differ, changes, is_plain = self._measure()
        findings = [*self._find_outside(), *self._find_differing(differ, is_plain)]
        if self._has_color() and self._is_gray():
            findings.append(Finding("picture", "the kept file is gray, this one has color", certainty=0.95))
        if self.has_borders:
            findings.append(Finding("borders", "the kept file has borders around the frame", certainty=0.9))
        if not findings and (np.diff(self.kept_times) < -_MAX_STEP_BACK).any():
            text = "it repeats or reorders parts of the kept file"
            findings.append(Finding("picture", text, certainty=0.7))
        if not findings and (doubt := self._check_motion(changes)):
            findings.append(doubt)
        return self._result(tuple(findings))

    def _align(self) -> tuple[FrameAlignment, float]:
        """Align the moments that agree best; return the alignment and its agreement at these moments."""
        moments = self._find_agreeing()
        picked = moments[np.unique(np.linspace(0, len(moments) - 1, _MOMENTS).astype(np.intp))]
        own = self._turn(self.removed.read(self.rows[picked]).luma)
        return align_frames(own, self._read_kept(self._kept_rows(self.kept_times[picked])).luma)

    def _find_agreeing(self) -> NDArray[np.intp]:
        """Return the moments that agree best, to ignore footage that only one of the files contains."""
        return np.flatnonzero(self.differences <= np.quantile(self.differences, _AGREEING_FRACTION))

    def _set_alignment(self) -> None:
        """Set the size of the comparison, and exclude borders of the kept frames."""
        rows = self._kept_rows(self.kept_times[np.linspace(0, len(self.kept_times) - 1, _MOMENTS).astype(np.intp)])
        box = find_borders(self._read_kept(rows).luma)
        self._set_size(self._choose_size(), box)
        left, top, right, bottom = self.alignment.covered_box
        around = left, top, 1 - right, 1 - bottom
        bars = box[0], box[1], 1 - box[2], 1 - box[3]
        # Outside the removed frame, the kept frame has only a border, whose edge is known to within two pixels.
        self.has_borders = any(
            beyond > _BORDER and bar > max(beyond / 2, beyond - 2 / min(self.kept.size))
            for beyond, bar in zip(around, bars, strict=True)
        )

    def _set_matrix(self) -> None:
        """Convert the kept file's colors if the files use different color matrices."""
        found = [self._measure_difference()]
        for self.matrix in MATRICES:
            found.append(self._measure_difference())
        best = int(np.argmin(found))
        self.matrix = MATRICES[best - 1] if best and found[best] < _CONVERTED * found[0] else None

    def _measure_difference(self) -> float:
        """Compute the mean difference in levels and colors at some well-matching moments, in gray levels."""
        alike = self._find_agreeing()
        picked = alike[np.linspace(0, len(alike) - 1, _MOMENTS).astype(np.intp)]
        covered = self._find_covered()
        rows = self._kept_rows(self.kept_times[picked])
        own = self._measure_means(self.removed, self.rows[picked], IDENTITY, covered).astype(np.float32)
        other = self._measure_means(self.kept, rows, self.alignment, covered).astype(np.float32)
        if not own.size:
            return 0.0
        gain, lift = _fit_line(other.ravel(), own.ravel())
        ones, others = self._read_colors()
        # A gray copy has only the levels of its source; its missing colors say nothing about the matrix.
        apart = np.abs(ones - others).mean() if self._has_color() and not self._is_gray() else 0.0
        return float(np.abs(own - gain * other - lift).mean() + apart)

    def _result(self, findings: tuple[Finding, ...]) -> PictureProof:
        return PictureProof(findings, self._list_stretches(), self.alignment, self.pose, self.is_still)

    def _choose_size(self) -> tuple[int, int]:
        """Return H, W for the comparison: the size of the removed frames if the kept frames have the same pixels.

        Otherwise, both are resampled to fewer pixels than either has, because the sharper one would differ at every
        edge.
        """
        kept = [self.alignment.scale[1] * self.kept.size[0], self.alignment.scale[0] * self.kept.size[1]]
        if all(abs(there - own) < _SAME_PIXELS * own for there, own in zip(kept, self.full, strict=True)):
            return self.full
        fewer = [min(there, own) * _COARSE_RATIO for there, own in zip(kept, self.full, strict=True)]
        return max(round(fewer[0]), self.blocks[0]), max(round(fewer[1]), self.blocks[1])

    def _set_size(self, size: tuple[int, int], box: tuple[float, float, float, float]) -> None:
        self.size = size
        self.inside = self.alignment.find_inside(size, self.kept.size, box)
        self.colored = self.alignment.find_inside(self.blocks, self.kept.color_size, box)
        self.down, self.across = pool(size[0], self.blocks[0]), pool(size[1], self.blocks[1])

    def _read_kept(self, rows: NDArray[np.intp]) -> Stills:
        """Read kept frames, with colors converted to the matrix of the removed file."""
        return self._convert(self.kept.read(rows))

    def _convert(self, stills: Stills) -> Stills:
        return stills if self.matrix is None else stills.by_matrix(self.matrix)

    def _turn(self, images: Values) -> Values:
        return np.ascontiguousarray(self.pose.apply(images[..., None])[..., 0], np.float32)

    def _kept_rows(self, times: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the rows of the kept frames on screen at these times."""
        # Containers round times differently.
        rows = np.searchsorted(self.kept.times, times + 0.25 * max(self.kept.period, 0.01), side="right") - 1
        return np.clip(rows, 0, len(self.kept) - 1)

    def _find_times(self, lines: Sequence[MatchLine]) -> None:
        """Find the time in the kept file for each compared moment, and the brightness gain and offset between files."""
        covered = self._find_covered()
        if not covered.any():
            return
        own = self._measure_means(self.removed, self.rows, IDENTITY, covered)
        other = self._measure_means(self.kept, np.arange(len(self.kept)), self.alignment, covered)
        if self.differences.any():
            alike = self._find_agreeing()
            pairs = _subsample(other[self._kept_rows(self.kept_times[alike])], own[alike])
            self.gain, self.lift = _fit_line(*(part.astype(np.float32).ravel() for part in pairs))
        else:
            # The brightness relation between the files is not known yet.
            own -= own.mean(axis=1, keepdims=True)
            other -= other.mean(axis=1, keepdims=True)
        costs = np.concatenate([self._measure_costs(own, other, lines, rows) for rows in _batches(np.arange(len(own)))])
        apart = costs.min(axis=1)
        seen = own.astype(np.float32).std(axis=1)
        self.differences = (apart + 1.0) / (seen + 1.0)
        costs /= np.quantile(apart, _AGREEING_FRACTION) + 0.5
        costs = np.minimum(costs, _MAX_COST)
        candidates = candidate_times(lines, self.times)
        costs[(candidates < -_END_TOLERANCE) | (candidates > self._end() + _END_TOLERANCE)] = _MAX_COST
        path = find_path(costs, len(lines))
        self.kept_times = candidates[np.arange(len(path)), path]

    def _find_covered(self) -> NDArray[np.bool_]:
        """Return whether enough of each block lies inside the kept frames, [rows, columns]."""
        return np.asarray(self.down @ self.inside.astype(np.float32) @ self.across.T > _MIN_COVERED)

    def _measure_means(
        self, frames: SmallFrames, rows: NDArray[np.intp], alignment: FrameAlignment, covered: NDArray[np.bool_]
    ) -> NDArray[np.float16]:
        """Compute the means of the covered blocks, [T, B]; half precision resolves an eighth of a gray level."""
        is_sideways = frames is self.removed and self.pose.quarter % 2
        height, width = frames.size[::-1] if is_sideways else frames.size
        down = self.down @ stretch(height, self.size[0], alignment.scale[1], alignment.shift[1])
        across = self.across @ stretch(width, self.size[1], alignment.scale[0], alignment.shift[0])
        means = np.empty((len(rows), int(covered.sum())), np.float16)
        for first, batch in zip(range(0, len(rows), _BATCH), _batches(rows), strict=True):
            is_removed = frames is self.removed
            images = self._turn(frames.read(batch).luma) if is_removed else self._read_kept(batch).luma
            means[first : first + _BATCH] = (down @ images @ across.T)[:, covered]
        return means

    def _measure_costs(
        self, own: NDArray[np.float16], other: NDArray[np.float16], lines: Sequence[MatchLine], rows: NDArray[np.intp]
    ) -> Values:
        """Compute the mean difference of each of these moments from each candidate, [T, L], in gray levels."""
        wanted = own[rows].astype(np.float32)
        columns = []
        for times in candidate_times(lines, self.times[rows]).T:
            aligned = self.gain * other[self._kept_rows(times)].astype(np.float32) + np.float32(self.lift)
            columns.append(np.minimum(np.abs(wanted - aligned), _MAX_LEVELS).mean(axis=1))
        return np.stack(columns, axis=1).astype(np.float32)

    def _end(self) -> float:
        """Return the end of the kept file in seconds."""
        return float(self.kept.times[-1]) + self.kept.period

    def _list_stretches(self) -> tuple[TimeStretch, ...]:
        """List runs of moments with one lag; each moment extends to the next."""
        speeds = np.diff(self.kept_times) / np.maximum(np.diff(self.times), 1e-6)
        speed = float(np.median(speeds)) if len(speeds) else 1.0
        lag = self.kept_times - speed * self.times
        starts = [0, *(np.flatnonzero(np.abs(np.diff(lag)) > 0.05) + 1).tolist(), len(lag)]
        found = []
        for first, last in pairwise(starts):
            begin = 0.0 if first == 0 else float(self.times[first])
            end = self.length if last == len(lag) else float(self.times[last])
            if end > begin:
                kept = float(self.kept_times[first]) - speed * (float(self.times[first]) - begin)
                found.append(TimeStretch(begin, end, kept, speed))
        return tuple(found)

    def _measure(self) -> tuple[NDArray[np.bool_], tuple[float, float], NDArray[np.bool_]]:
        """Find the blocks [T, B] that differ by more than is typical for this pair. Also return the energy of changes
        over time, the part of it that the kept file does not show, and which moments [T] have no content."""
        has_color = self._has_color()
        count = self.blocks[0] * self.blocks[1]
        # Use half precision, so that hours of video fit into memory.
        levels, slopes, colors = (np.empty((len(self.rows), count), np.float16) for _ in range(3))
        plain = np.empty(len(self.rows), np.bool_)
        covered = self._find_covered().ravel()
        colored = self.colored.ravel() & covered
        energy, before, moving = np.zeros(2), None, 0
        for part in self._iter_slices():
            found = self._compare_kept(self.rows[part], self.kept_times[part], has_color)
            levels[part], slopes[part], colors[part], plain[part] = (*found[:3], found[4])
            # Fades from and to black are not motion.
            means = found[3][~plain[part]][:, covered]
            run = means if before is None else np.concatenate([before, means])
            if len(run) > 1 and covered.any():
                energy += np.square(np.diff(run, axis=0)).mean(axis=1).sum(axis=0)
                moving += len(run) - 1
            before = run[-1:]
        energy /= max(moving, 1)
        usual, steep, tinted = (one.astype(np.float32) for one in _subsample(levels, slopes, colors))
        usual, steep, tinted = usual[:, covered], steep[:, covered], tinted[:, colored]
        noise = max(_NOISE, float(np.median(usual)) if usual.size else 0.0)
        relative = (usual / np.maximum(steep, 1.0))[steep > 2 * noise]
        slope = max(_SLOPE, float(np.median(relative)) if relative.size else 0.0)
        color_noise = max(_NOISE, float(np.median(tinted)) if tinted.size else 0.0)
        other_color = min(max(_FACTOR * color_noise, _COLOR_LEVELS), _OTHER_COLOR)

        def find_differing(part: slice) -> NDArray[np.bool_]:
            expected = np.sqrt(noise**2 + (slope * slopes[part].astype(np.float32)) ** 2)
            luma = (levels[part] > np.maximum(_FACTOR * expected, _LEVELS)) & covered
            return np.asarray(luma | ((colors[part] > other_color) & colored))

        differ = np.concatenate([find_differing(part) for part in self._iter_slices()])
        for first, last in self._find_runs_to_recheck(differ):
            part = slice(first, last)
            found = self._compare_every(self.rows[part], self.kept_times[part], has_color)
            levels[part], colors[part] = np.minimum(levels[part], found[0]), np.minimum(colors[part], found[2])
            differ[part] = find_differing(part)
        beyond = (self.kept_times < -_END_TOLERANCE) | (self.kept_times > self._end() + _END_TOLERANCE)
        differ[beyond & ~plain] = True
        return differ, (float(energy[0]), float(energy[1])), plain

    def _iter_slices(self) -> Iterator[slice]:
        for first in range(0, len(self.rows), _BATCH):
            yield slice(first, min(first + _BATCH, len(self.rows)))

    def _find_runs_to_recheck(self, differ: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield runs of moments with partly differing frames, which fast motion between sampled frames can cause.

        Runs in which the whole frame differs, and runs that would take too long to decode again, are skipped."""
        left = _MAX_RECHECK
        for first, last in _find_runs(np.asarray(_keep_lasting(differ).any(axis=1))):
            seconds = float(self.times[min(last, len(self.times) - 1)] - self.times[first])
            if differ[first:last].mean(axis=1).max() <= _WHOLE_FRAME and seconds <= left:
                left -= seconds
                yield first, last

    def _compare_kept(self, rows: NDArray[np.intp], at: NDArray[np.float64], has_color: bool) -> tuple[Values, ...]:
        """Compare removed frames with the sampled kept frames at these times; see `_compare`."""
        shown = self._kept_rows(at)
        # The time may lie between two frames or be off by one frame; the next slide is not a neighbor.
        near = np.clip(shown[:, None] + np.arange(-1, 3), 0, len(self.kept) - 1)
        is_near = self.kept.times[near] < at[:, None] + _NEIGHBOR
        is_near[:, 0] = self.kept.times[shown] > at - _NEIGHBOR
        near = np.where(is_near, near, shown[:, None])
        needed = np.unique(near)
        sides = np.searchsorted(needed, near).T
        return self._compare(self.removed.read(rows), self._read_kept(needed), sides, has_color)

    def _compare_every(self, rows: NDArray[np.intp], at: NDArray[np.float64], has_color: bool) -> tuple[Values, ...]:
        """Compare removed frames with the most similar of all kept frames around these times; see `_compare`."""
        times, stills = self.kept.read_every(float(at.min()) - _RECHECK_REACH, float(at.max()) + _RECHECK_REACH)
        stills = self._convert(stills)
        own = self.removed.read(rows)
        luma = IDENTITY.resample(self._turn(own.luma), self.size)
        aligned = self.gain * self.alignment.resample(stills.luma, self.size) + self.lift
        best = []
        for one, moment in zip(luma, at, strict=True):
            apart = np.minimum(np.abs(aligned - one), _MAX_LEVELS)[:, self.inside].mean(axis=1)
            apart[np.abs(times - moment) > _RECHECK_REACH] = np.inf
            best.append(int(np.argmin(apart)))
        near = np.clip(np.array(best) + np.arange(-1, 3)[:, None], 0, len(times) - 1)
        return self._compare(own, stills, near, has_color)

    def _compare(self, own: Stills, stills: Stills, near: NDArray[np.intp], has_color: bool) -> tuple[Values, ...]:
        """Compare removed frames with kept frames.

        Args:
            own: T removed frames.
            stills: Kept frames.
            near: [4, T] rows of kept frames: the frame before the expected one, the expected one, and the next two.
            has_color: Whether colors are compared.

        Returns:
            Differences of blocks in gray levels [T, B], their gradients [T, B], color differences [T, B], mean levels
            and their residuals [T, B, 2], and whether the frame has no content [T].
        """
        inside = self.inside.astype(np.float32)
        share = np.maximum(self.down @ inside @ self.across.T, 1e-3)
        luma = IDENTITY.resample(self._turn(own.luma), self.size)
        aligned = self.gain * self.alignment.resample(stills.luma, self.size) + self.lift
        # The time may lie between two frames or be off by one frame: use the nearest mix of any two adjacent frames.
        nearest = [self._measure_distance(luma, aligned[one], aligned[two], inside) for one, two in pairwise(near)]
        levels = np.stack([level for level, _ in nearest])
        best = np.argmin(levels, axis=0)[None]
        level = np.take_along_axis(levels, best, axis=0)[0]
        apart = np.take_along_axis(np.stack([mean for _, mean in nearest]), best, axis=0)[0]
        down, across = np.gradient(aligned[near[1]], axis=(1, 2))
        slope = self._pool((down * down + across * across) * inside) / share
        hue = np.zeros_like(level)
        if has_color:
            color = IDENTITY.resample(self._turn(own.color), self.blocks)
            others = self.alignment.resample(stills.color, self.blocks)
            hue = np.min([np.square(color - others[side]).sum(axis=1) for side in near], axis=0)
        means = np.stack([self._pool(luma * inside) / share, apart / share], axis=-1)
        count = len(luma)
        return (
            np.sqrt(level / share).reshape(count, -1),
            np.sqrt(slope).reshape(count, -1),
            np.sqrt(hue).reshape(count, -1),
            means.reshape(count, -1, 2),
            luma.std(axis=(1, 2)) < _MAX_PLAIN,
        )

    def _pool(self, images: Values) -> Values:
        return np.asarray(self.down @ images @ self.across.T, np.float32)

    def _measure_distance(self, own: Values, one: Values, two: Values, inside: Values) -> tuple[Values, Values]:
        """Compute the squared distance of each block from the line between two frames, and the mean residual, both
        [T, rows, columns]."""
        step, apart = (two - one) * inside, (own - one) * inside
        shared, length = self._pool(step * apart), self._pool(step * step)
        along = np.clip(shared / np.maximum(length, 1e-3), 0.0, 1.0)
        squared = np.maximum(self._pool(apart * apart) - 2 * along * shared + along * along * length, np.float32(0.0))
        return np.asarray(squared, np.float32), np.asarray(self._pool(apart) - along * self._pool(step), np.float32)

    def _has_color(self) -> bool:
        """Whether the removed file has color."""
        return float(np.abs(self._read_colors()[0]).mean()) > _NO_COLOR

    def _is_gray(self) -> bool:
        """Whether the kept file has almost no color compared with the removed file."""
        own, other = self._read_colors()
        return bool(np.abs(other).mean() < _MAX_FADED * np.abs(own).mean())

    def _read_colors(self) -> tuple[Values, Values]:
        """Return the colors at some moments of the removed file, and at the same moments of the kept file."""
        picked = np.linspace(0, len(self.rows) - 1, 32).astype(np.intp)
        own = IDENTITY.resample(self._turn(self.removed.read(self.rows[picked]).color), self.blocks)
        other = self.alignment.resample(self._read_kept(self._kept_rows(self.kept_times[picked])).color, self.blocks)
        inside = self.colored if self.colored.any() else np.ones_like(self.colored)
        return own[..., inside], other[..., inside]

    def _find_outside(self) -> Iterator[Finding]:
        """Report footage outside the kept frame, ignoring plain and blurred borders."""
        left, top, right, bottom = self.alignment.inside_box
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
            # Use gradients along the side, because those across it include the edge of the frame, two pixels wide.
            lines = np.moveaxis(images if side > 0 else images[:, ::-1, ::-1], abs(side), 1)
            slopes = np.abs(np.diff(lines, axis=2))
            outer, inner = slopes[:, : max(1, int(strip - 2))], slopes[:, int(strip) + 1 :]
            # A night scene has little detail anywhere, so also compare the clearest edges.
            edge, edge_inside = (float(np.quantile(part, 0.99)) for part in (outer, inner))
            if outer.mean() > max(_BLURRED * inner.mean(), 0.5) or edge > max(_EDGE * edge_inside, 4.0):
                names.append(name)
        if names:
            where = "all around" if len(names) == len(strips) else f"at {' and '.join(names)}"
            yield Finding("picture", f"more of the scene {where}", certainty=0.8)

    def _find_differing(self, differ: NDArray[np.bool_], plain: NDArray[np.bool_]) -> Iterator[Finding]:
        """Report runs of moments in which the same blocks differ at two consecutive moments."""
        lasting = _keep_lasting(differ)
        # A frame that stays on screen for two moments counts on its own.
        stays = np.diff([*self.times.tolist(), self.length]) > 1.9 * _STEP
        if len(stays) > 1:
            stays[-1] |= stays[-2]  # the duration of the last slide is unknown
        lasting[stays] = differ[stays]
        lasting[plain & (differ.mean(axis=1) > _WHOLE_FRAME)] = False
        end = self._end()
        edges = [*self.times.tolist(), self.length]
        for first, last in _find_runs(np.asarray(lasting.any(axis=1))):
            blocks = np.asarray(lasting[first:last].any(axis=0)).reshape(self.blocks)
            share = float(lasting[first:last].mean(axis=1).max())
            start, stop = edges[first] if first else 0.0, edges[last]
            when = f"{_format_time(start)}-{_format_time(stop)}"
            certainty = 0.95 if share > _WHOLE_FRAME else 0.8
            if share <= _WHOLE_FRAME:
                where = _describe_area(blocks)
                text = "throughout" if last - first >= len(differ) - 2 else when
                yield Finding("picture", f"{text}, {where} differs: text, a logo or a cover?", start, stop, certainty)
            elif first == 0 and self.kept_times[last - 1] < 0.5 and self.kept_times[0] < -_END_TOLERANCE:
                yield Finding("ends", f"its first {stop:.1f} s are not in the kept file", start, stop, certainty)
            elif last == len(differ) and self.kept_times[-1] > end - 0.5:
                yield Finding("ends", f"its last {stop - start:.1f} s are not in the kept file", start, stop, certainty)
            else:
                yield Finding("picture", f"{when} shows something else", start, stop, certainty)

    def _check_motion(self, changes: tuple[float, float]) -> Finding | None:
        """Report files that change so little that they may be different recordings of one scene."""
        energy, unexplained = changes
        if len(self.rows) < 2:
            return None
        self.is_still = energy < _MAX_STILL**2
        is_same = abs(self.gain - 1) < _OTHER_LIGHT if self.is_still else unexplained <= (1 - _MIN_EXPLAINED) * energy
        if is_same:
            return None
        return Finding("picture", "with so little motion, it may be another recording of the same scene", certainty=0.6)


def _batches(values: NDArray[_Number]) -> Iterator[NDArray[_Number]]:
    for first in range(0, len(values), _BATCH):
        yield values[first : first + _BATCH]


def _subsample(*arrays: NDArray[_Number]) -> tuple[NDArray[_Number], ...]:
    """Take evenly spaced rows from arrays of equal length, at most about `_SAMPLE`."""
    return tuple(array[:: max(1, len(array) // _SAMPLE)] for array in arrays)


def _fit_line(values: NDArray[np.floating], wanted: NDArray[np.floating]) -> tuple[float, float]:
    """Fit the gain and lift that map `values` to `wanted`, by robust least squares."""
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


def _keep_lasting(differ: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep differences that occur at two consecutive moments; if there is only one moment, keep all."""
    if len(differ) < 2:
        return differ.copy()
    twice = differ[:-1] & differ[1:]
    lasting = np.zeros_like(differ)
    lasting[:-1] |= twice
    lasting[1:] |= twice
    return lasting


def _find_runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the start and end (exclusive) of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _describe_area(blocks: NDArray[np.bool_]) -> str:
    """Name the part of the frame that contains these blocks."""
    rows, columns = (np.flatnonzero(blocks.any(axis=axis)) for axis in (1, 0))
    top, bottom = rows[0] / blocks.shape[0], (rows[-1] + 1) / blocks.shape[0]
    left, right = columns[0] / blocks.shape[1], (columns[-1] + 1) / blocks.shape[1]
    down = "upper" if bottom <= 0.55 else "lower" if top >= 0.45 else ""
    across = "left" if right <= 0.55 else "right" if left >= 0.45 else ""
    if not down and not across:
        return "part of the frame"
    return f"the {' '.join(filter(None, (down, across)))} part"


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds, 1), 60)
    return f"{int(minutes)}:{rest:04.1f}"
