"""Coverage of a video as text and as files: a table, JSON, and an edit decision list of its sources.

To add a format, write its function and add a row to `COVERAGE_FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vidkin._base.values import replace_controls, write_csv_rows
from vidkin.rendering.text import FileFormat, clock_range, json_text, number, percent, printable

if TYPE_CHECKING:
    from vidkin.index import Coverage, SharedStretch

_HEADINGS = (
    "start",
    "end",
    "path",
    "other_start",
    "other_end",
    "score",
    "speed",
    "mirrored",
    "exact",
    "source",
)
# Maximum number of files or unique segments listed in a sentence.
_MAX_NAMED = 8
# Relative tolerance for matching a frame rate to a standard one, because containers store rounded averages.
_SAME_RATE = 0.002


def describe_coverage(coverage: Coverage) -> list[str]:
    """Describe how much of a video other files contain, the smallest set of such files, and the unique parts.

    Each entry is a sentence: ``These 4 files together have 97.0 % of this video, missing 0:40.0 - 1:02.0: a.mp4, ...``
    """
    if not coverage.stretches:
        return ["No part of this video was found in other files."]
    steps = coverage.fewest
    names = ", ".join(printable(os.path.basename(step.path)) for step in steps[:_MAX_NAMED])
    more = f" and {len(steps) - _MAX_NAMED} more" if len(steps) > _MAX_NAMED else ""
    missing = coverage.only_here
    spans = ", ".join(clock_range(start, end) for start, end in missing[:_MAX_NAMED])
    rest = f" and {number(len(missing) - _MAX_NAMED, 'more segment')}"
    spans += rest if len(missing) > _MAX_NAMED else ""
    share = f"{percent(coverage.share)} % of this video"
    lacking = f", missing {spans}" if missing else ""
    if len(steps) == 1:
        return [f"This file alone has {share}{lacking}: {names}"]
    return [f"These {len(steps)} files together have {share}{lacking}: {names}{more}"]


def coverage_cells(coverage: Coverage) -> Iterator[tuple[str, ...]]:
    """Yield rows for CSV and tab-separated files: the headings, then the segments by start; ``source`` is ``yes`` if
    the file is the best source of that segment."""
    yield _HEADINGS
    sources = {(piece.path, _offset(piece)) for piece in coverage.sources}
    for each in coverage.stretches:
        is_source = (each.path, _offset(each)) in sources
        yield (
            f"{each.start:.3f}",
            f"{each.end:.3f}",
            replace_controls(each.path),
            f"{each.other_start:.3f}",
            f"{each.other_end:.3f}",
            f"{each.score:.4f}",
            f"{each.speed:.4f}",
            *("yes" if value else "no" for value in (each.mirrored, each.exact, is_source)),
        )


def _offset(stretch: SharedStretch) -> float:
    """Seconds that a stretch and all of its parts have in common."""
    if stretch.backwards:
        return round(stretch.other_end + stretch.speed * stretch.start, 6)
    return round(stretch.other_start - stretch.speed * stretch.start, 6)


def _write_csv(coverage: Coverage, file: IO[str]) -> None:
    write_csv_rows(file, coverage_cells(coverage))


def _write_json(coverage: Coverage, file: IO[str]) -> None:
    file.write(json_text(coverage, indent=2) + "\n")


def _write_edl(coverage: Coverage, file: IO[str]) -> None:
    """Write the sources in order as a CMX 3600 edit decision list, with one event per piece and one reel per file; gaps
    stay empty.

    Times are rounded to frames at the video's rate. A source that runs at a different speed has an ``M2`` line with its
    playback rate in frames per second.
    """
    # Imported here because the command's help lists the formats, and must not load NumPy or a decoder.
    from vidkin.media.time_code import frame_at, timecode

    rate = _timeline_rate(coverage.path)
    reels: dict[str, str] = {}
    lines = [f"TITLE: {printable(Path(coverage.path).stem)}", "FCM: NON-DROP FRAME", ""]
    event = 0
    for piece in coverage.sources:
        record = frame_at(piece.start, rate), frame_at(piece.end, rate)
        source = frame_at(piece.other_start, rate), frame_at(piece.other_end, rate)
        if record[1] <= record[0] or source[1] <= source[0]:
            continue
        event += 1
        reel = reels.setdefault(piece.path, f"R{len(reels) + 1:03d}")
        is_unchanged = abs(piece.speed - 1) < 0.01
        if is_unchanged:  # rounding must not make one side a frame longer
            source = source[0], source[0] + record[1] - record[0]
        codes = " ".join(timecode(frame, rate) for frame in (*source, *record))
        lines += [f"{event:03d}  {reel:8} V     C        {codes}"]
        if not is_unchanged:
            lines.append(f"M2   {reel:8} {float(rate) * piece.speed:05.1f}                {timecode(source[0], rate)}")
        lines += [f"* FROM CLIP NAME: {printable(Path(piece.path).name)}", f"* VIDKIN: score {piece.score:.2f}"]
        if piece.mirrored:
            lines.append("* VIDKIN: mirrored")
    file.write("\n".join([*lines, ""]))


def _timeline_rate(path: str) -> Fraction:
    """Return the standard frame rate closest to the video's average rate, or a rounded rate if none is close."""
    from vidkin.media.probing import probe
    from vidkin.media.time_code import STANDARD_RATES

    rate = probe(path).frame_rate
    near = min(STANDARD_RATES, key=lambda standard: abs(float(standard) / rate - 1))
    return near if abs(float(near) / rate - 1) <= _SAME_RATE else Fraction(max(1, round(rate)))


COVERAGE_FORMATS: Mapping[str, FileFormat[Coverage]] = {
    "csv": FileFormat(".csv", "table of segments", _write_csv),
    "json": FileFormat(".json", "all results", _write_json),
    "edl": FileFormat(".edl", "sources as an edit decision list", _write_edl),
}
"""Formats by name, as listed by the command's help, the README and the guide."""


def strip_of(coverage: Coverage) -> list[tuple[float, float, bool]]:
    """Split the video into consecutive spans (start, end, whether other files contain it), as fractions of its
    duration."""
    if coverage.duration <= 0:
        return []
    spans = sorted([(*span, True) for span in coverage.elsewhere] + [(*span, False) for span in coverage.only_here])
    # Gaps of a few frames that neither list covers are added to the following span.
    ends = [end / coverage.duration for _, end, _ in spans[:-1]]
    edges = [0.0, *ends, 1.0]
    return [(*edge, span[2]) for edge, span in zip(pairwise(edges), spans, strict=True)]
