"""From the network's answers for each frame to transitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vidkin.shots import DetectedCut, Transition

__all__ = ["ReadingNumbers", "read_transitions"]

Rows = NDArray[np.float32]

# In the order of the answers.
_KINDS: tuple[Transition, ...] = ("dissolve", "fade", "wipe")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingNumbers:
    """All numbers of `read_transitions`.

    Attributes:
        hard: Least probability of a cut.
        gradual: Least mean probability of frames inside of a gradual transition.
        inside: Probability of a frame from which it can be inside of one.
        plain: Contrast of luma (deviation, of 255) below which a frame shows a plain background.
        fade_gap: Seconds of such a background up to which two fades are one.
        cut_gap: The same for a cut to it and a cut away from it.
    """

    hard: float = 0.7
    gradual: float = 0.8
    inside: float = 0.4
    plain: float = 2.0
    fade_gap: float = 1.0
    cut_gap: float = 0.5


def read_transitions(
    answers: Rows, contrasts: Rows, times: Sequence[float], numbers: ReadingNumbers
) -> tuple[DetectedCut, ...]:
    """The transitions in order of frames.

    Args:
        answers: [T, 8] answers of the network, see `vidkin_research.cut_network.network.OUTPUTS`.
        contrasts: [T] deviation of luma, of 255.
        times: [T] times of frames in seconds.
        numbers: Thresholds.
    """
    hard = answers[:, 0]
    beside = np.maximum(np.r_[0, hard[:-1]], np.r_[hard[1:], 0])
    peaks = [frame for frame in np.flatnonzero((hard >= numbers.hard) & (hard >= beside)).tolist() if frame]
    cuts: dict[int, DetectedCut] = {}
    for one in _gradual(answers, contrasts, numbers):
        first, last = one.start_frame or 0, one.end_frame or 0
        inner = [frame for frame in peaks if first < frame <= last]
        deep = [frame for frame in inner if first + 2 < frame < last - 1]
        if max((hard[frame] for frame in deep or (inner if last - first < 5 else [])), default=0) >= one.confidence:
            continue
        peaks = [frame for frame in peaks if frame not in inner or (frame not in deep and last - first >= 5)]
        cuts[one.frame] = one
    for frame in peaks:
        same = float(answers[frame, 1])
        kind: Transition = "jump" if same > 0.5 else "hard"
        cuts[frame] = DetectedCut(frame, kind, float(hard[frame]), kind_confidence=max(same, 1 - same))
    return _join_fades([cuts[frame] for frame in sorted(cuts)], contrasts, times, numbers)


def _gradual(answers: Rows, contrasts: Rows, numbers: ReadingNumbers) -> Iterator[DetectedCut]:
    """Stretches whose frames vote for their ends: the medians of where each places them."""
    inside, count = answers[:, 2], len(answers)
    frames = np.arange(count)
    begins, ends = frames - answers[:, 6], frames + answers[:, 7]
    place, free = 0, 0
    within = inside >= numbers.inside
    while (rest := np.flatnonzero(within[place:])).size:
        start = place + int(rest[0])
        stop = start + int(np.argmin(np.r_[within[start:], False]))
        own = slice(start, stop)
        # A frame that calls itself the last, before one that calls itself the first: two transitions.
        split = np.flatnonzero((answers[start : stop - 1, 7] < 1) & (answers[start + 1 : stop, 6] < 1))
        if split.size:
            own = slice(start, start + int(split[0]) + 1)
        last = min(count - 1, round(float(np.median(ends[own]))))
        first = max(free, round(float(np.median(begins[own]))))
        place = own.stop
        probability = float(inside[own].mean())
        shown = contrasts[max(0, first - 2) : last + 3]
        if probability < numbers.gradual or last - first < 2 or last < 1 or shown.max() < 2 * numbers.plain:
            continue
        kinds = answers[own, 3:6].mean(0)
        kind = int(kinds.argmax()) if contrasts[first : last + 1].min() >= numbers.plain else 1
        free = last + 1
        middle = max(1, (first + last + 1) // 2)
        yield DetectedCut(middle, _KINDS[kind], probability, first, last, float(kinds[kind]))


def _join_fades(
    cuts: Sequence[DetectedCut], contrasts: Rows, times: Sequence[float], numbers: ReadingNumbers
) -> tuple[DetectedCut, ...]:
    """Two fades, or two cuts, with nothing but a moment of a plain background between are one fade; a cut and a fade
    say that they belong together, and a fade reaches the end of a film that is this near."""
    joined: list[DetectedCut] = []
    spans: list[tuple[int, int]] = []
    for cut in cuts:
        first = cut.frame if cut.start_frame is None else cut.start_frame
        last = cut.frame - 1 if cut.end_frame is None else cut.end_frame
        if joined:
            begin, end = spans[-1]
            plain, gap = bool((contrasts[end + 1 : first] < numbers.plain).all()), times[first] - times[end + 1]
            fades = [one.kind == "fade" for one in (joined[-1], cut)]
            is_one = all(fades) and gap <= numbers.fade_gap
            is_one = is_one or (not (joined[-1].is_gradual or cut.is_gradual) and gap <= numbers.cut_gap)
            if plain and is_one and end + 1 < first:
                last = max(last, first - 1)
                sure = min(joined[-1].confidence, cut.confidence)
                joined[-1] = DetectedCut(max(1, (begin + last + 1) // 2), "fade", sure, begin, last)
                spans[-1] = begin, last
                continue
        joined.append(cut)
        spans.append((first, last))
    for place, is_first in {(0, True), (len(joined) - 1, False)} if joined else ():
        (first, last), rest = (
            spans[place],
            slice(None, spans[place][0]) if is_first else slice(spans[place][1] + 1, None),
        )
        gap = times[first] - times[0] if is_first else times[-1] - times[last]
        if joined[place].kind == "fade" and gap <= numbers.fade_gap and (contrasts[rest] < numbers.plain).all():
            spans[place] = first, last = (0, last) if is_first else (first, len(times) - 1)
            middle = max(1, (first + last + 1) // 2)
            joined[place] = replace(joined[place], start_frame=first, end_frame=last, frame=middle)
    for place, (one, other) in enumerate(pairwise(list(joined))):
        end, first = spans[place][1] + 1, spans[place + 1][0]
        if (
            end < first
            and times[first] - times[end] <= numbers.fade_gap
            and (contrasts[end:first] < numbers.plain).all()
        ):
            if not one.is_gradual and other.kind == "fade":
                joined[place] = replace(one, is_to_ground=True)
            elif one.kind == "fade" and not other.is_gradual:
                joined[place + 1] = replace(other, is_from_ground=True)
    return tuple(joined)
