"""Matches for display: pairs of matching frames, the frame map in few cells, and two recordings on one timeline."""

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

# A segment's line runs between sampled frames, so a frame's partner can lie this many seconds away from it.
_NEAR_LINE = 1.0
_WHOLE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class FramePair:
    """Two frames that match, or that a proof found to differ.

    Attributes:
        query_time: Seconds in the query.
        target_time: Seconds in the target.
        similarity: Calibrated similarity of the two frames, in [0, 1]; None where they differ.
        mirrored: The query's frame must be flipped left to right.
        query_box, target_box: Matching parts of the frames; for the query, before it is flipped.
    """

    query_time: float
    target_time: float
    similarity: float | None
    mirrored: bool
    query_box: Box
    target_box: Box


def pairs_of_findings(proof: Proof, *, count: int = 6) -> tuple[FramePair, ...]:
    """A pair of frames for each finding of a proof with a time: the removed file's frame and the kept file's."""
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
    """Choose pairs of compared frames, spread evenly over the matching segments, in the order of the query.

    Args:
        comparison: Result of :meth:`vidkin.index.Index.match` or :func:`vidkin.compare`.
        count: At most this many pairs. Each segment gets a share by its length and at least one pair while any are
            left; short segments have fewer frames and so fewer pairs.
    """
    segments = comparison.segments[:count]
    if not segments:
        return ()
    lengths = np.array([_query_length(segment) for segment in segments])
    shares = np.maximum(1, np.floor(lengths / lengths.sum() * count)).astype(int)
    while shares.sum() > count:
        shares[int(np.argmax(shares))] -= 1
    pairs = {
        pair
        for segment, share in zip(segments, shares.tolist(), strict=True)
        for step in range(share)
        if (pair := _pair(comparison, segment, (step + 0.5) / share)) is not None
    }
    return tuple(sorted(pairs, key=lambda pair: (pair.query_time, pair.target_time)))


def _query_length(segment: Segment) -> float:
    """Seconds of the query in a segment, always above 0, so that callers can divide by it."""
    return max(segment.query_end - segment.query_start, SAME_TIME)


def _pair(comparison: Comparison, segment: Segment, share: float) -> FramePair | None:
    """The compared frames nearest to a point of a segment: a query frame inside it, and the most similar target frame
    around the segment's line."""
    point = segment.query_start + share * (segment.query_end - segment.query_start)
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


# No screen shows more cells; maps of hour-long videos are pooled to this many per side.
_MAX_CELLS = 1000


@check_arguments
def pool_map(
    comparison: Comparison,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """The frame map with at most 1,000 cells a side, pooled by maxima, so that thin diagonals stay visible.

    Returns:
        The cells [rows, columns] in [0, 1], and the times at which rows (query) and columns (target) start, seconds.
    """
    values = comparison.map
    rows, columns = (
        times.astype(np.float64, copy=False) for times in (comparison.query_times, comparison.target_times)
    )
    row_starts = np.arange(0, len(rows), -(-len(rows) // _MAX_CELLS))
    column_starts = np.arange(0, len(columns), -(-len(columns) // _MAX_CELLS))
    pooled = np.maximum.reduceat(np.maximum.reduceat(values, row_starts, axis=0), column_starts, axis=1)
    return pooled, rows[row_starts], columns[column_starts]


# The timeline counts milliseconds: the offset is known more precisely than a frame of either recording.
_TIMELINE_RATE = 1000.0


def write_map(comparison: Comparison, path: PathLike, *, source: str | None = None) -> None:
    """Write the frame map as an npz file: arrays ``map`` [Tq, Tt], ``query_times`` and ``target_times`` in seconds.

    Raises:
        MediaError: The file cannot be written.
    """
    # Pass an open file: given a name, savez would append its own extension.
    with open_output(path, source=source) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file, map=comparison.map, query_times=comparison.query_times, target_times=comparison.target_times
        )


def write_sync(offset: SoundOffset, path: PathLike, *, source: str | None = None) -> None:
    """Write an OpenTimelineIO file with one track for each recording, placed so that both run together.

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
            "OpenTimelineIO files need the package opentimelineio, which is not installed; "
            f"install it with: {install_command('otio')}"
        ) from error

    def span(seconds: float) -> Any:
        time = otio.opentime.RationalTime
        return otio.opentime.TimeRange(time(0, _TIMELINE_RATE), time(round(seconds * _TIMELINE_RATE), _TIMELINE_RATE))

    if offset.offset is None:
        raise InvalidArgumentError("offset must be known, but no shared sound was found in these recordings")
    timeline = otio.schema.Timeline(name="synchronized")
    # A time in the second recording is speed * time in the first + offset.
    starts = max(offset.offset, 0.0), max(-offset.offset, 0.0)
    files = (offset.query, offset.query_length), (offset.target, offset.target_length)
    for start, (file, length) in zip(starts, files, strict=True):
        name = os.fsencode(Path(file).name).decode("utf-8", "replace")
        track = otio.schema.Track(name=name, kind=otio.schema.TrackKind.Video)
        if start > 0:
            track.append(otio.schema.Gap(source_range=span(start)))
        whole = span(length)
        address = otio.schema.ExternalReference(target_url=Path(file).absolute().as_uri(), available_range=whole)
        clip = otio.schema.Clip(name=name, media_reference=address, source_range=whole)
        clip.metadata["vidkin"] = {"offset": offset.offset, "speed": offset.speed, "score": offset.score}
        track.append(clip)
        timeline.tracks.append(track)
    with open_output(path, source=source or describe_source("timeline", offset.query, offset.target)) as partial:
        partial.write_text(timeline.to_json_string(indent=2) + "\n", encoding="utf-8")
