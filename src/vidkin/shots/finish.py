"""From the network's answers for each frame to transitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin._base.values import read_json
from vidkin.errors import InvalidArgumentError
from vidkin.shots.contract import DetectedCut, Transition

Rows = NDArray[np.float32]

# In the order of the answers.
_KINDS: tuple[Transition, ...] = ("dissolve", "fade", "wipe")

# Frames around a place without any transition, where a film can be divided, and the longest part that is not divided.
_QUIET, _LONGEST = 16, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishNumbers:
    """All numbers by which transitions are read from answers; those of the shipped network are in ``shots.json``.

    Attributes:
        hard: Least probability of a cut, in (0, 1).
        gradual: Least mean probability of frames inside a gradual transition, in (0, 1).
        inside: Probability from which a frame can be inside one.
        plain: Contrast of luma (deviation, of 255) below which a frame shows a plain background.
        fade_gap: Seconds of such a background up to which two fades, or a cut and a fade, belong together.
        cut_gap: The same for a cut to it and a cut away from it.
    """

    hard: float
    gradual: float
    inside: float
    plain: float
    fade_gap: float
    cut_gap: float

    def __post_init__(self) -> None:
        for name in ("hard", "gradual"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} must be above 0 and below 1, got {getattr(self, name)}")

    @classmethod
    def load(cls, network: PathLike, **changes: float | None) -> FinishNumbers:
        """The numbers in the JSON file next to a network, with changes that are not None.

        Raises:
            InvalidArgumentError: There is no such file, or a number is missing or out of range.
        """
        path = Path(network).with_suffix(".json")
        try:
            own = {field.name: float(read_json(path)["numbers"][field.name]) for field in fields(cls)}
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{path} must have the numbers of the network next to it: {error}") from error
        return cls(**own | {name: value for name, value in changes.items() if value is not None})


class Finisher:
    """Finds the transitions of one film whose answers are pushed, each as soon as no later answer can change it.

    Args:
        numbers: Thresholds.
    """

    def __init__(self, numbers: FinishNumbers) -> None:
        self._numbers = numbers
        self._first = 0
        self._answers = np.zeros((0, 8), np.float32)
        self._contrasts, self._times = np.zeros(0, np.float32), np.zeros(0)

    def push(
        self, answers: Rows, contrasts: Rows, times: NDArray[np.float64], *, is_last: bool = False
    ) -> list[DetectedCut]:
        """Take the next frames; the transitions known by them, in order.

        Args:
            answers: [T, 8] in the order of `vidkin.shots.network.OUTPUTS`.
            contrasts: [T] deviation of luma, of 255.
            times: [T] times in seconds.
            is_last: Whether the film ends with them.
        """
        self._answers = np.concatenate([self._answers, answers])
        self._contrasts = np.concatenate([self._contrasts, contrasts])
        self._times = np.concatenate([self._times, times])
        until = count = len(self._times)
        if not is_last:
            numbers = self._numbers
            busy = (self._answers[:, 0] >= numbers.hard) | (self._answers[:, 2] >= numbers.inside)
            busy |= self._contrasts < numbers.plain
            quiet = np.flatnonzero(np.convolve(busy, np.ones(2 * _QUIET + 1), "same")[:-_QUIET] == 0)
            until = int(quiet[-1]) if quiet.size else count if count > _LONGEST else 0
        part, rest = slice(until), slice(until, None)
        found = find_transitions(
            self._answers[part],
            self._contrasts[part],
            self._times[part],
            self._numbers,
            is_first=not self._first,
            is_last=is_last,
        )
        moved = [_shift(cut, self._first) for cut in found]
        self._first += until
        self._answers, self._contrasts, self._times = self._answers[rest], self._contrasts[rest], self._times[rest]
        return moved


def find_transitions(
    answers: Rows,
    contrasts: Rows,
    times: NDArray[np.float64],
    numbers: FinishNumbers,
    *,
    is_first: bool = True,
    is_last: bool = True,
) -> list[DetectedCut]:
    """The transitions of a part of a film in order of frames; see `Finisher.push`, `is_first`: it begins the film."""
    hard = answers[:, 0]
    beside = np.maximum(np.r_[0, hard[:-1]], np.r_[hard[1:], 0])
    peaks = set(np.flatnonzero((hard >= numbers.hard) & (hard >= beside)).tolist()) - {0}
    cuts: dict[int, DetectedCut] = {}
    for one, first, last in _find_gradual(answers, contrasts, numbers):
        # A cut at the very start or end of a longer transition stays next to it.
        edge = 2 if last - first >= 5 else 0
        inner = {frame for frame in peaks if first + edge < frame <= last - edge}
        if max(hard[list(inner)], default=0) < one.confidence:
            peaks -= inner
            cuts[one.frame] = one
    for frame in peaks:
        same = float(answers[frame, 1])
        sure = max(same, 1 - same)
        cuts[frame] = DetectedCut(frame, "jump" if same > 0.5 else "hard", float(hard[frame]), kind_confidence=sure)
    joined = _join_fades([cuts[frame] for frame in sorted(cuts)], contrasts < numbers.plain, times, numbers)
    for place in (0, -1) if joined else ():
        cut, (first, last) = joined[place], _span(joined[place])
        is_near = times[first] - times[0] if place == 0 else times[-1] - times[last - 1]
        outside = slice(first) if place == 0 else slice(last, None)
        if (
            cut.kind == "fade"
            and (is_first, is_last)[place]
            and is_near <= numbers.fade_gap
            and (contrasts[outside] < numbers.plain).all()
        ):
            joined[place] = _stretch(cut, 0 if place == 0 else first, last if place == 0 else len(times))
    return joined


def _find_gradual(answers: Rows, contrasts: Rows, numbers: FinishNumbers) -> Iterator[tuple[DetectedCut, int, int]]:
    """Stretches whose frames vote for their ends, with their first and last frame."""
    frames, free = np.flatnonzero(answers[:, 2] >= numbers.inside), 0
    # Two stretches touch where a frame that calls itself the last comes before one that calls itself the first.
    is_new = (np.diff(frames) > 1) | ((answers[frames[:-1], 7] < 1) & (answers[frames[1:], 6] < 1))
    for own in np.split(frames, np.flatnonzero(is_new) + 1) if len(frames) else ():
        votes = answers[own]
        first = max(free, round(float(np.median(own - votes[:, 6]))))
        last = min(len(answers) - 1, round(float(np.median(own + votes[:, 7]))))
        shown = contrasts[max(0, first - 2) : last + 3]
        sure = float(votes[:, 2].mean())
        if sure < numbers.gradual or last - first < 2 or shown.max() < 2 * numbers.plain:
            continue
        kinds = votes[:, 3:6].mean(0)
        kind = int(kinds.argmax()) if contrasts[first : last + 1].min() >= numbers.plain else 1
        free = last + 1
        middle = max(1, (first + last + 1) // 2)
        yield DetectedCut(middle, _KINDS[kind], sure, first, last, float(kinds[kind])), first, last


def _join_fades(
    cuts: list[DetectedCut], plain: NDArray[np.bool_], times: NDArray[np.float64], numbers: FinishNumbers
) -> list[DetectedCut]:
    """Two fades, or two cuts, with nothing but a moment of a plain background between are one fade; a cut and a fade
    say that they belong together."""
    joined: list[DetectedCut] = []
    for cut in cuts:
        if joined:
            before = joined[-1]
            (begin, end), (first, last) = _span(before), _span(cut)
            gap = times[first] - times[end] if end < first and plain[end:first].all() else np.inf
            sudden, fades = not (before.is_gradual or cut.is_gradual), (before.kind == "fade", cut.kind == "fade")
            if gap <= (numbers.cut_gap if sudden else numbers.fade_gap if all(fades) else -1):
                sure = min(before.confidence, cut.confidence)
                joined[-1] = _stretch(DetectedCut(1, "fade", sure), begin, last)
                continue
            if gap <= numbers.fade_gap and any(fades):
                joined[-1] = replace(before, is_to_ground=not before.is_gradual)
                cut = replace(cut, is_from_ground=not cut.is_gradual)
        joined.append(cut)
    return joined


def _span(cut: DetectedCut) -> tuple[int, int]:
    """The first frame of a transition, and the first one after it."""
    if cut.start_frame is None or cut.end_frame is None:
        return cut.frame, cut.frame
    return cut.start_frame, cut.end_frame + 1


def _stretch(cut: DetectedCut, first: int, end: int) -> DetectedCut:
    return replace(cut, frame=max(1, (first + end) // 2), start_frame=first, end_frame=end - 1)


def _shift(cut: DetectedCut, frames: int) -> DetectedCut:
    if cut.start_frame is None or cut.end_frame is None:
        return replace(cut, frame=cut.frame + frames)
    moved = replace(cut, start_frame=cut.start_frame + frames, end_frame=cut.end_frame + frames)
    return replace(moved, frame=cut.frame + frames)
