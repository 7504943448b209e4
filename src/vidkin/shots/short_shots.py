"""Shots that are too short to be useful are left out, or joined to their neighbors."""

from __future__ import annotations

from dataclasses import replace

from vidkin._base.checks import check_not_negative
from vidkin.media.time import is_before
from vidkin.shots.shot import Shot, ShotDetection

__all__ = ["drop_short_shots", "merge_short_shots"]


def drop_short_shots(detection: ShotDetection, min_length: float) -> ShotDetection:
    """The detection without shots of less than ``min_length`` seconds; the transitions stay.

    Raises:
        InvalidArgumentError: The length is negative.
    """
    check_not_negative(min_length=min_length)
    shots = tuple(shot for shot in detection.shots if not _is_short(shot, min_length))
    return replace(detection, shots=shots)


def merge_short_shots(detection: ShotDetection, min_length: float) -> ShotDetection:
    """The detection with shots of less than ``min_length`` seconds joined to a neighbor, the shortest first.

    The less certain of the two transitions around such a shot is dropped. A joined shot is as critical as its last
    part. At least one shot remains, however short.

    Raises:
        InvalidArgumentError: The length is negative.
    """
    check_not_negative(min_length=min_length)
    shots = list(detection.shots)
    while len(shots) > 1:
        place = min(range(len(shots)), key=lambda place: shots[place].end - shots[place].start)
        if not _is_short(shots[place], min_length):
            break
        is_first, is_last = place == 0, place == len(shots) - 1
        goes_back = is_last or (not is_first and shots[place].confidence <= shots[place + 1].confidence)
        first = place - 1 if goes_back else place
        one, two = shots[first : first + 2]
        joined = replace(one, end=two.end, end_frame=two.end_frame, critical=two.critical)
        shots[first : first + 2] = [joined]
    opened = {shot.start_frame for shot in shots}
    cuts = tuple(cut for cut in detection.cuts if cut.frame in opened)
    return replace(detection, shots=tuple(shots), cuts=cuts)


def _is_short(shot: Shot, min_length: float) -> bool:
    return is_before(shot.end - shot.start, min_length)
