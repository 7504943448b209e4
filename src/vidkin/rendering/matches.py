"""Matches for display: matching frame pairs, a downsampled frame map, and two recordings on one timeline."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.install import install_command
from vidkin._base.outputs import describe_source, open_output
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.media.frames import SAME_TIME

if TYPE_CHECKING:
    from vidkin.files.proof_record import Proof
    from vidkin.index import Comparison, SoundOffset
    from vidkin.similarity import Box, Segment

# Matching frames can be this many seconds off the segment's line, which runs between sampled frames.
_NEAR_LINE = 1.0
_WHOLE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class FramePair:
    """Two frames that match, or that differ according to a proof.

    Attributes:
        query_time: Time in the query in seconds.
        target_time: Time in the target in seconds.
        similarity: Calibrated similarity of the two frames, in [0, 1]; None where they differ.
        mirrored: Whether to flip the query frame horizontally for display.
        query_box, target_box: Matching parts of the frames; ``query_box`` applies before flipping.
    """

    query_time: float
    target_time: float
    similarity: float | None
    mirrored: bool
    query_box: Box
    target_box: Box


def pairs_of_findings(proof: Proof, *, count: int = 6) -> tuple[FramePair, ...]:
    """Return a pair of frames, from the removed and the kept file, for each finding of a proof that has a time."""
    pairs: list[FramePair] = []
    for finding in proof.findings:
        if finding.start is None or finding.end is None or not proof.stretches or len(pairs) == count:
            continue
        time = (finding.start + finding.end) / 2
        before = [stretch for stretch in proof.stretches if stretch.removed_start <= time]
        there = (before[-1] if before else proof.stretches[0]).kept_time(time)
        pairs.append(FramePair(time, max(there, 0.0), None, False, _WHOLE, _WHOLE))
    return tuple(pairs)


@check_arguments
def frame_pairs(comparison: Comparison, *, count: int = 6) -> tuple[FramePair, ...]:
    """Choose compared frame pairs, spaced evenly over the matching segments, in query order.

    Args:
        comparison: Result of :meth:`vidkin.index.Index.match` or :func:`vidkin.compare`.
        count: Maximum number of pairs. They are distributed over the segments in proportion to length, with at least
            one per segment as far as possible; short segments may have fewer frames and therefore fewer pairs.
    """
    segments = comparison.segments[:count]
    if not segments:
        return ()
    lengths = np.array([_query_length(segment) for segment in segments])
    counts = np.maximum(1, np.floor(lengths / lengths.sum() * count)).astype(int)
    while counts.sum() > count:
        counts[int(np.argmax(counts))] -= 1
    pairs = {
        pair
        for segment, pair_count in zip(segments, counts.tolist(), strict=True)
        for step in range(pair_count)
        if (pair := _pair(comparison, segment, (step + 0.5) / pair_count)) is not None
    }
    return tuple(sorted(pairs, key=lambda pair: (pair.query_time, pair.target_time)))


def _query_length(segment: Segment) -> float:
    """Return the segment's duration in the query in seconds; always positive, so that callers can divide by it."""
    return max(segment.query_end - segment.query_start, SAME_TIME)


def _pair(comparison: Comparison, segment: Segment, fraction: float) -> FramePair | None:
    """Find the query frame closest to this fraction of a segment, and the most similar target frame near the segment's
    line; None if the segment contains no compared query frame."""
    point = segment.query_start + fraction * (segment.query_end - segment.query_start)
    times, target_times = comparison.query_times, comparison.target_times
    inside = np.flatnonzero((times >= segment.query_start) & (times <= segment.query_end))
    if not len(inside):
        return None
    row = int(inside[np.abs(times[inside] - point).argmin()])
    distance = np.abs(target_times - segment.target_time(float(times[row])))
    near = distance <= max(_NEAR_LINE, float(distance.min()))
    column = int(np.where(near, comparison.map[row], -1.0).argmax())
    similarity = min(max(float(comparison.map[row, column]), 0.0), 1.0)
    return FramePair(
        float(times[row]),
        float(target_times[column]),
        similarity,
        segment.mirrored,
        segment.query_box,
        segment.target_box,
    )


# Maximum number of cells per side, as screens do not show more; the maps of hour-long videos are pooled to this size.
_MAX_CELLS = 1000


@check_arguments
def pool_map(
    comparison: Comparison,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Max-pool the frame map to at most 1,000 cells per side, so that thin diagonals stay visible.

    Returns:
        The cells [rows, columns] in [0, 1], and the start times of the rows (query) and columns (target) in seconds.
    """
    values = comparison.map
    rows, columns = (
        times.astype(np.float64, copy=False) for times in (comparison.query_times, comparison.target_times)
    )
    row_starts = np.arange(0, len(rows), -(-len(rows) // _MAX_CELLS))
    column_starts = np.arange(0, len(columns), -(-len(columns) // _MAX_CELLS))
    pooled = np.maximum.reduceat(np.maximum.reduceat(values, row_starts, axis=0), column_starts, axis=1)
    return pooled, rows[row_starts], columns[column_starts]


# The timeline is in milliseconds, because the offset is more precise than the frames of the recordings.
_TIMELINE_RATE = 1000.0


def write_map(comparison: Comparison, path: PathLike, *, source: str | None = None) -> None:
    """Write the frame map as an npz file with arrays ``map`` [Tq, Tt], ``query_times`` and ``target_times`` (seconds).

    Raises:
        MediaError: The file cannot be written.
    """
    # Pass an open file, because savez would append .npz to the temporary name.
    with open_output(path, source=source) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file, map=comparison.map, query_times=comparison.query_times, target_times=comparison.target_times
        )


def write_sync(offset: SoundOffset, path: PathLike, *, source: str | None = None) -> None:
    """Write an OpenTimelineIO file with one track per recording, aligned so that the recordings are in sync.

    Args:
        offset: Result of :func:`vidkin.index.query.sound.find_offset`.
        path: Output file; readers expect ``.otio``.
        source: Description of the inputs, see :func:`vidkin._base.outputs.open_output`; default: both recordings.

    Raises:
        MissingPartError: opentimelineio is not installed.
        MediaError: The file cannot be written.
    """
    try:
        otio = importlib.import_module("opentimelineio")
    except ImportError as error:
        raise MissingPartError(
            "OpenTimelineIO files require the opentimelineio package, which is not installed; "
            f"install it with: {install_command('otio')}"
        ) from error

    def span(seconds: float) -> Any:
        time = otio.opentime.RationalTime
        return otio.opentime.TimeRange(time(0, _TIMELINE_RATE), time(round(seconds * _TIMELINE_RATE), _TIMELINE_RATE))

    if offset.offset is None:
        raise InvalidArgumentError("the offset is unknown, because the recordings have no sound in common")
    timeline = otio.schema.Timeline(name="synchronized")
    # Time in the second recording = speed * time in the first + offset.
    starts = max(offset.offset, 0.0), max(-offset.offset, 0.0)
    files = (offset.query, offset.query_length), (offset.target, offset.target_length)
    for start, (file, length) in zip(starts, files, strict=True):
        name = os.fsencode(Path(file).name).decode("utf-8", "replace")
        track = otio.schema.Track(name=name, kind=otio.schema.TrackKind.Video)
        if start > 0:
            track.append(otio.schema.Gap(source_range=span(start)))
        whole = span(length)
        media = otio.schema.ExternalReference(target_url=Path(file).absolute().as_uri(), available_range=whole)
        clip = otio.schema.Clip(name=name, media_reference=media, source_range=whole)
        clip.metadata["vidkin"] = {"offset": offset.offset, "speed": offset.speed, "score": offset.score}
        track.append(clip)
        timeline.tracks.append(track)
    with open_output(path, source=source or describe_source("timeline", offset.query, offset.target)) as partial:
        partial.write_text(timeline.to_json_string(indent=2) + "\n", encoding="utf-8")
