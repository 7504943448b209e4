"""Convert the network's per-frame predictions to transitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from vidkin.shots.contract import SUDDEN, DetectedCut, Transition
from vidkin.shots.network import CONTRAST, HARD, INSIDE, JUMP, KINDS, SINCE, TIME, UNTIL, Answers, Numbers

# Quiet frames required on both sides of a split point, and the length above which a part is split in any case.
_QUIET, _LONGEST = 16, 1024

# A cut within this many frames of either end of a transition is kept if the transition has at least this many frames.
_EDGE, _EDGED = 2, 6


class _Candidate(NamedTuple):
    """A transition in frames of a part; empty (first == end) for a hard cut or a jump."""

    first: int
    end: int
    kind: Transition
    sure: float
    kind_sure: float
    is_to_ground: bool = False
    is_from_ground: bool = False


class Finisher:
    """Finds the transitions of a video in pushed rows of predictions, each as soon as no later row can change it.

    Args:
        numbers: Thresholds.
    """

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._first = 0
        self._rows: Answers = np.zeros((0, TIME + 1))

    def push(self, rows: Answers, *, is_last: bool = False) -> list[DetectedCut]:
        """Process the predictions for the next frames, see `vidkin.shots.network`; return the transitions that are now
        final, in order."""
        rows, first = np.concatenate([self._rows, rows]), self._first
        until = len(rows) if is_last else self._find_split(rows)
        self._first, self._rows = first + until, rows[until:]
        transitions = self._join(rows[:until], self._find(rows[:until]), is_first=first == 0, is_last=is_last)
        return [
            DetectedCut(
                frame=max(1, first + (one.first + one.end) // 2),
                kind=one.kind,
                confidence=one.sure,
                start_frame=None if one.kind in SUDDEN else first + one.first,
                end_frame=None if one.kind in SUDDEN else first + one.end - 1,
                kind_confidence=one.kind_sure,
                is_to_ground=one.is_to_ground,
                is_from_ground=one.is_from_ground,
            )
            for one in transitions
        ]

    def _find_split(self, rows: Answers) -> int:
        """Find the last frame far from any possible transition; without one, the end of a long part, or else 0."""
        numbers = self._numbers
        busy = (rows[:, HARD] >= numbers.hard) | (rows[:, INSIDE] >= numbers.inside)
        busy |= rows[:, CONTRAST] < numbers.plain
        quiet = np.flatnonzero(np.convolve(busy, np.ones(2 * _QUIET + 1), "same")[:-_QUIET] < 0.5)
        return int(quiet[-1]) if len(quiet) else len(rows) if len(rows) > _LONGEST else 0

    def _find(self, rows: Answers) -> list[_Candidate]:
        """Find cuts and gradual transitions, in order; where both are possible, keep the more probable one."""
        hard = rows[:, HARD]
        neighbors = np.maximum(np.r_[0, hard[:-1]], np.r_[hard[1:], 0])
        peaks = set(np.flatnonzero((hard >= self._numbers.hard) & (hard >= neighbors)).tolist()) - {0}
        candidates = []
        for one in self._find_gradual(rows):
            edge = _EDGE if one.end - one.first >= _EDGED else 0
            inner = {frame for frame in peaks if one.first + edge < frame < one.end - edge}
            if max(hard[list(inner)], default=0) < one.sure:
                peaks -= inner
                candidates.append(one)
        for frame in peaks:
            jump = float(rows[frame, JUMP])
            kind: Transition = "jump" if jump > 0.5 else "hard"
            candidates.append(_Candidate(frame, frame, kind, float(hard[frame]), max(jump, 1 - jump)))
        return sorted(candidates)

    def _find_gradual(self, rows: Answers) -> Iterator[_Candidate]:
        """Find gradual transitions: runs of frames whose predictions vote for the transition's ends."""
        numbers, contrasts = self._numbers, rows[:, CONTRAST]
        frames, free = np.flatnonzero(rows[:, INSIDE] >= numbers.inside), 0
        # Two transitions are adjacent where a frame predicted as the last precedes one predicted as the first.
        is_new = (np.diff(frames) > 1) | ((rows[frames[:-1], UNTIL] < 1) & (rows[frames[1:], SINCE] < 1))
        for own in np.split(frames, np.flatnonzero(is_new) + 1) if len(frames) else ():
            first = max(free, round(float(np.median(own - rows[own, SINCE]))))
            end = min(len(rows), round(float(np.median(own + rows[own, UNTIL]))) + 1)
            sure = float(rows[own, INSIDE].mean())
            # A change of brightness between plain colors is not a transition.
            shown = contrasts[max(0, first - 2) : end + 2].max(initial=0) >= 2 * numbers.plain
            if shown and sure >= numbers.gradual and end - first > 2:
                kinds = rows[own][:, list(KINDS.values())].mean(0)
                name = list(KINDS)[int(kinds.argmax())] if contrasts[first:end].min() >= numbers.plain else "fade"
                yield _Candidate(first, end, name, sure, float(kinds[list(KINDS).index(name)]))
                free = end

    def _join(self, rows: Answers, candidates: list[_Candidate], *, is_first: bool, is_last: bool) -> list[_Candidate]:
        """Merge two fades, or two cuts, separated only by a moment of plain background; the start and end of the video
        count as fades. Mark a cut and a fade that belong together."""
        numbers, plain = self._numbers, rows[:, CONTRAST] < self._numbers.plain
        times = np.append(rows[:, TIME], rows[-1:, TIME])
        opening, closing = (_Candidate(frame, frame, "fade", 1.0, 1.0) for frame in (0, len(rows)))
        joined: list[_Candidate] = []
        for one in [*[opening] * is_first, *candidates, *[closing] * is_last] if candidates else ():
            before = joined[-1] if joined else one
            kinds = {before.kind, one.kind}
            if before.end < one.first and plain[before.end : one.first].all():
                gap = times[one.first] - times[before.end]
                is_pair = "fade" in kinds and kinds & SUDDEN and before is not opening and one is not closing
                if gap <= (numbers.fade_gap if kinds == {"fade"} else numbers.cut_gap if kinds <= SUDDEN else -1):
                    sure = min(before.sure, one.sure), min(before.kind_sure, one.kind_sure)
                    one = _Candidate(joined.pop().first, one.end, "fade", *sure)
                elif is_pair and gap <= numbers.fade_gap:
                    joined[-1] = before._replace(is_to_ground=before.kind != "fade")
                    one = one._replace(is_from_ground=one.kind != "fade")
            joined.append(one)
        return [one for one in joined if one.kind in SUDDEN or one.end > one.first]
