"""Shots of a video as text and table cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vidkin.rendering.text import clock, number

if TYPE_CHECKING:
    from vidkin.media import Piece
    from vidkin.shots import Shot, ShotDetection

SHOT_COLUMNS = (
    *(("#", "right"), ("start", "right"), ("end", "right"), ("seconds", "right"), ("frame", "right")),
    *(
        ("cut in by", "left"),
        ("transition", "left"),
        ("confidence", "right"),
        ("critical", "right"),
        ("black", "right"),
    ),
)
"""Heading and alignment of each column of :func:`shot_cells`."""

PIECE_COLUMNS = (
    *(("shots", "right"), ("begins", "right"), ("ends", "right")),
    *(("before its shot", "right"), ("encoded frames", "right")),
)
"""Heading and alignment of each column of :func:`piece_cells`."""

# Maximum number of black spans listed in a sentence.
_MAX_BLACK = 10
# A piece that begins before its shot is reported only if it begins at least this many seconds earlier.
_MIN_EARLY = 0.05


def precise_clock(seconds: float) -> str:
    """Format seconds as ``m:ss.ss``, precise enough to distinguish frames at common frame rates."""
    return clock(seconds, digits=2)


def describe_transition(shot: Shot) -> str:
    """Format the times of the transition that opens a shot; empty for a hard cut."""
    if shot.transition_start == shot.transition_end:
        return ""
    return f"{precise_clock(shot.transition_start)} - {precise_clock(shot.transition_end)}"


def describe_shots(detection: ShotDetection, *, min_length: float | None = None) -> str:
    """Describe the number of shots and transitions: ``3 shots, 2 hard cuts in 0:06.0``.

    Args:
        detection: The shots.
        min_length: Minimum duration in seconds, if shorter shots were dropped.
    """
    # A fade at the start or end of the video, or a cut to black before a fade-in, does not open a shot.
    kinds = [shot.kind for shot in detection.shots if shot.kind != "start"]
    jumps, hard = kinds.count("jump"), kinds.count("hard")
    gradual = len(kinds) - jumps - hard
    counts = [number(len(detection.shots), "shot"), number(hard, "hard cut")]
    counts += [number(jumps, "jump")] if jumps else []
    counts += [number(gradual, "gradual transition")] if gradual else []
    if min_length is None:
        length = detection.shots[-1].end - detection.shots[0].start if detection.shots else 0.0
        counts[-1] += f" in {clock(length)}"
    else:
        counts[0] += f" of at least {min_length:g} s"
    return ", ".join(counts)


def shot_cells(detection: ShotDetection) -> Iterator[tuple[str, ...]]:
    """Yield one row per shot, for a table with :data:`SHOT_COLUMNS`."""
    for count, shot in enumerate(detection.shots, start=1):
        is_first, black = shot.kind == "start", detection.black_seconds(shot)
        yield (
            str(count),
            precise_clock(shot.start),
            precise_clock(shot.end),
            f"{shot.end - shot.start:.2f}",
            str(shot.start_frame),
            "" if is_first else shot.kind,
            describe_transition(shot),
            "" if is_first else f"{shot.confidence:.2f}",
            "" if shot.critical is None else f"{shot.critical:.2f}",
            f"{black:.2f}" if black else "",
        )


def describe_ends(detection: ShotDetection) -> Iterator[str]:
    """Yield sentences about properties that the shot list does not show: a fade at the end, black spans, sound before
    the first frame."""
    last = len(detection.frame_times) - 1
    for cut in detection.cuts[-1:]:
        if cut.kind == "fade" and cut.end_frame >= last:
            yield f"The video ends with a fade from {precise_clock(cut.start)} to {precise_clock(cut.end)}."
    if detection.black:
        spans = [f"{precise_clock(one.start)} - {precise_clock(one.end)}" for one in detection.black[:_MAX_BLACK]]
        more = len(detection.black) - len(spans)
        yield f"Black: {', '.join(spans)}{f' and {more} more' if more else ''}."
    if detection.offset * float(detection.clock().rate) >= 0.5:
        yield (
            f"The video stream starts {detection.offset:.2f} s after the start of the file. Times shown here are "
            "relative to the first frame; times in exported files are relative to the start of the file."
        )


def piece_cells(detection: ShotDetection, piece: Piece) -> tuple[str, ...]:
    """Return the row for a piece of the video, for a table with :data:`PIECE_COLUMNS`."""
    parts = [part + 1 for part in piece.parts]
    shots = "" if not parts else str(parts[0]) if len(parts) == 1 else f"{parts[0]} - {parts[-1]}"
    early = detection.shots[piece.parts[0]].start - piece.start if piece.parts else 0.0
    before = f"{early:.2f} s" if early >= _MIN_EARLY else ""
    encoded = str(piece.encoded) if piece.encoded else ""
    return shots, precise_clock(piece.start), precise_clock(piece.end), before, encoded
