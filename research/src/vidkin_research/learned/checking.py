"""Check labeled shots before training: count shots, cuts and critical shots, and report problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vidkin._base.values import Result
from vidkin.errors import MediaError
from vidkin.media import probe
from vidkin.shots import VideoAnnotation

# Tolerance in frames, because the frame count is estimated from the duration.
_UNSURE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledVideo(Result):
    """A labeled video.

    Attributes:
        video: Path of the file.
        shots: Number of labeled shots.
        hard: Number of hard cuts between them.
        gradual: Number of gradual transitions between them.
        critical: Number of critical shots.
        is_held_out: Whether it is held out to fit the thresholds.
        problem: Why it cannot be used for training; "" if it can.
    """

    video: str
    shots: int
    hard: int
    gradual: int
    critical: int
    is_held_out: bool
    problem: str = ""


def check_labels(annotations: Sequence[VideoAnnotation], *, fit_every: int | None) -> list[LabeledVideo]:
    """Check every labeled video and decode its first frame.

    Args:
        annotations: The labels.
        fit_every: Every n-th video is held out; None holds out none.
    """
    found = []
    for number, annotation in enumerate(annotations, start=1):
        cuts = annotation.cuts
        gradual = sum(isinstance(cut, tuple) for cut in cuts)
        found.append(
            LabeledVideo(
                video=str(annotation.video),
                shots=len(annotation.shots),
                hard=len(cuts) - gradual,
                gradual=gradual,
                critical=sum(shot.critical is not None for shot in annotation.shots),
                is_held_out=fit_every is not None and number % fit_every == 0,
                problem=_find_problem(annotation),
            )
        )
    return found


def _find_problem(annotation: VideoAnnotation) -> str:
    try:
        info = probe(annotation.video)
    except MediaError as error:
        return error.cause
    end = annotation.shots[-1].end if annotation.shots else 0
    frames = round(info.duration * info.frame_rate)
    if end > frames + _UNSURE:
        return f"a shot ends at frame {end}, but the video has about {frames} frames"
    return ""
