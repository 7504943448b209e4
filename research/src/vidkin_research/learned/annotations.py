"""Merge the labels of several annotators with the rule from the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vidkin.errors import InvalidArgumentError
from vidkin.shots import ShotAnnotation, VideoAnnotation


def merge_annotators(labels: Sequence[Sequence[VideoAnnotation]]) -> list[VideoAnnotation]:
    """Merge the labels of several annotators into one per video.

    All annotators must have the same shots; their critical frames are merged.

    Args:
        labels: Labels of the same videos from each annotator, in any order.

    Raises:
        InvalidArgumentError: There are no annotators, or they differ in videos, frame rates or shots.
    """
    if not labels:
        raise InvalidArgumentError("labels must come from at least one annotator, got none")
    by_video = [{one.video.resolve(): one for one in own} for own in labels]
    for number, own in enumerate(by_video[1:], start=2):
        other = sorted(path.name for path in set(own) ^ set(by_video[0]))
        if other:
            raise InvalidArgumentError(
                f"annotators must label the same videos, but {other[0]} is missing from annotator 1 or {number}"
            )
    return [_merge(first, [own[first.video.resolve()] for own in by_video]) for first in labels[0]]


def merge_critical(shot: tuple[int, int], marked: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Merge the critical frames of a shot [start, end) with the rule from the paper.

    A shot is critical if more than half of the annotators mark it as critical. Its critical frames are those marked by
    the largest number of annotators. If there are several intervals of such frames, the longest is used, and the last
    of equally long ones, because the event ends the shot.

    Args:
        shot: [start, end) of the shot.
        marked: [start, end) of the critical frames from each annotator, or None.

    Source: Radial loss for learning fine-grained video similarity metric, Sports Dataset.
    """
    said = [interval for interval in marked if interval is not None]
    if 2 * len(said) <= len(marked):
        return None
    start, end = shot
    votes = [sum(first <= frame < last for first, last in said) for frame in range(start, end)]
    agreed = max(votes)
    runs: list[tuple[int, int]] = []
    for offset, count in enumerate(votes):
        frame = start + offset
        if count == agreed and runs and runs[-1][1] == frame:
            runs[-1] = (runs[-1][0], frame + 1)
        elif count == agreed:
            runs.append((frame, frame + 1))
    return max(runs, key=lambda run: (run[1] - run[0], run[0]))


def _merge(first: VideoAnnotation, all_labels: Sequence[VideoAnnotation]) -> VideoAnnotation:
    for number, other in enumerate(all_labels[1:], start=2):
        if other.fps != first.fps or len(other.shots) != len(first.shots):
            raise InvalidArgumentError(
                f"annotators must agree on the shots of {first.video.name}, got {len(first.shots)} at {first.fps:g} "
                f"fps from annotator 1 and {len(other.shots)} at {other.fps:g} fps from annotator {number}"
            )
        for mine, theirs in zip(first.shots, other.shots, strict=True):
            if (mine.start, mine.end) != (theirs.start, theirs.end):
                raise InvalidArgumentError(
                    f"annotators must agree on the shots of {first.video.name}, got [{mine.start}, {mine.end}) from "
                    f"annotator 1 and [{theirs.start}, {theirs.end}) from annotator {number}"
                )
    shots = tuple(
        ShotAnnotation(
            same[0].start,
            same[0].end,
            merge_critical((same[0].start, same[0].end), [shot.critical for shot in same]),
        )
        for same in zip(*(one.shots for one in all_labels), strict=True)
    )
    return replace(first, shots=shots)
