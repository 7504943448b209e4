"""Recurring segments as text and as files: tables, chapters and skip lists for players, an HTML page, and cut or
joined videos."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import safe_name
from vidkin._base.values import Result, replace_controls, write_csv_rows
from vidkin.index import Occurrence, RecurringGroup
from vidkin.media import Piece, iter_planes, join_spans, probe, split_exactly
from vidkin.media.frames import first_at
from vidkin.media.pieces import piece_paths
from vidkin.rendering.moments import frame_strip
from vidkin.rendering.text import FileFormat, clock, json_text, number, printable

KIND_NAMES = {
    "opening": "Opening",
    "recap": "Recap",
    "closing": "Credits",
    "inside": "Repeated part",
    "copy": "Copies",
}
"""Chapter title for each kind of group."""

_HEADINGS = (
    "group",
    "kind",
    "path",
    "start",
    "end",
    "score",
    "speed",
    "shorter",
    "titled",
    "other_sound",
    "source",
    "files",
    "name",
    "picture",
    "sound",
    "without_middle",
    "found_by",
)
_SPEED_TOLERANCE = 0.005
_MAX_NAME = 240  # bytes of a file name without its extension
_MIN_PART = 0.5  # seconds of a chapter between two recurring parts


@check_arguments
def describe_group(position: int, group: RecurringGroup) -> str:
    """Describe a group in one line: ``A: opening, 0:28.0 long, in 11 of 12 files``.

    If the group was found by sound, ``, matched by sound`` is appended.
    """
    name = f"{group_name(position)}: {group.name}" if group.name else group_name(position)
    by_sound = ", matched by sound" if group.found_by == "sound" else ""
    files = f"in {len(group.paths)} of {number(group.files, 'file')}{by_sound}"
    if group.kind == "copy":
        return f"{name}: copies of one video, {files}; only the first was compared with the other files"
    if group.kind == "recap":
        words = f"recap, {clock(group.occurrences[0].duration)} long, of footage in {_earlier_files(group)}"
        return f"{name}: {words}{by_sound}"
    if len(group.paths) == 1:
        return f"{name}: repeated {number(len(group.occurrences), 'time')}, {clock(group.duration)} long"
    kind = {"inside": "repeated part"}.get(group.kind, group.kind)
    return f"{name}: {kind}, {clock(group.duration)} long, {files}"


def _earlier_files(group: RecurringGroup) -> str:
    sources = {occurrence.path for occurrence in group.occurrences if occurrence.source}
    return number(len(sources), "earlier file")


def group_name(position: int) -> str:
    """Return the letters for a group at this position: A, B, ... Z, AA, AB, ... for 0, 1, ...

    >>> [group_name(position) for position in (0, 25, 26)]
    ['A', 'Z', 'AA']
    """
    name = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


@check_arguments
def describe_difference(occurrence: Occurrence) -> str:
    """Describe how an occurrence differs from the rest of its group: ``0:05.0 shorter, 0.96x, different titles``.

    The text is empty if there is no difference.
    """
    words = []
    if occurrence.source:
        words.append("repeated in the recap")
    if occurrence.shorter:
        words.append(f"{clock(occurrence.shorter)} shorter")
    if occurrence.without_middle:
        words.append(f"different edit ({clock(occurrence.without_middle)} cut from the middle)")
    if abs(occurrence.speed - 1) > _SPEED_TOLERANCE:
        words.append(f"{occurrence.speed:.2f}x")
    if occurrence.titled:
        words.append("different titles")
    if occurrence.other_sound:
        words.append("different sound")
    return ", ".join(words)


def recurring_cells(groups: Sequence[RecurringGroup]) -> Iterator[tuple[str, ...]]:
    """Yield rows for CSV and tab-separated files: the headings, then one row per occurrence; control characters in
    paths are replaced."""
    yield _HEADINGS
    for position, group in enumerate(groups):
        for one in group.occurrences:
            yield (
                group_name(position),
                group.kind,
                replace_controls(one.path),
                f"{one.start:.3f}",
                f"{one.end:.3f}",
                f"{one.score:.4f}",
                f"{one.speed:.4f}",
                f"{one.shorter:.3f}",
                *("yes" if flag else "no" for flag in (one.titled, one.other_sound, one.source)),
                str(group.files),
                replace_controls(group.name),
                *("" if score is None else f"{score:.4f}" for score in (one.picture, one.sound)),
                f"{one.without_middle:.3f}",
                group.found_by,
            )


class NamedPart(NamedTuple):
    """A titled part of a file.

    Attributes:
        name: Title of the part.
        start, end: Times in seconds.
        recurs: Whether the part recurs; other parts fill the gaps.
    """

    name: str
    start: float
    end: float
    recurs: bool


def parts_of_file(
    groups: Sequence[RecurringGroup], path: str, duration: float, *, left_out: Collection[Occurrence] = ()
) -> list[NamedPart]:
    """Split a file into its recurring parts and the parts between them, named ``Part 1``, ``Part 2``, etc.

    Copies, and footage that is repeated by another file's recap, do not count as recurring. If parts overlap, the first
    takes precedence.

    Args:
        groups: Result of :meth:`vidkin.Index.recurring`.
        path: The file.
        duration: Duration of the file in seconds.
        left_out: Occurrences that are not marked as recurring.
    """
    marked = sorted(
        (occurrence.start, min(occurrence.end, duration), group.name or KIND_NAMES[group.kind])
        for group in groups
        if group.kind != "copy"
        for occurrence in group.occurrences
        if occurrence.path == path and not occurrence.source and occurrence not in left_out
    )
    parts: list[NamedPart] = []
    last, count = 0.0, 0
    for start, end, name in [*marked, (duration, duration, "")]:
        start = max(start, last)
        if start - last >= _MIN_PART:
            count += 1
            parts.append(NamedPart(f"Part {count}", last, start, False))
        elif parts:
            parts[-1] = parts[-1]._replace(end=start)
        elif name:
            start = last
        if end > start:
            parts.append(NamedPart(name, start, end, True))
            last = end
    return parts


@dataclass(frozen=True, slots=True)
class PlayerFormat:
    """A file format for players, with one or more files per video.

    Attributes:
        label: Label shown to users.
        files: Function that formats the parts of a video, for each file extension.
    """

    label: str
    files: Mapping[str, Callable[[Sequence[NamedPart]], str]]


def matroska_chapters(parts: Sequence[NamedPart]) -> str:
    """Format parts as Matroska chapters (``mkvpropedit film.mkv --chapters FILE``)."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<Chapters>", "  <EditionEntry>"]
    for part in parts:
        lines += [
            "    <ChapterAtom>",
            f"      <ChapterTimeStart>{_long_clock(part.start)}</ChapterTimeStart>",
            f"      <ChapterTimeEnd>{_long_clock(part.end)}</ChapterTimeEnd>",
            "      <ChapterDisplay>",
            f"        <ChapterString>{escape(part.name)}</ChapterString>",
            "        <ChapterLanguage>eng</ChapterLanguage>",
            "      </ChapterDisplay>",
            "    </ChapterAtom>",
        ]
    return "\n".join([*lines, "  </EditionEntry>", "</Chapters>", ""])


def _long_clock(seconds: float) -> str:
    """Format seconds as ``hh:mm:ss.nnnnnnnnn``."""
    whole, rest = divmod(round(seconds * 1_000_000_000), 1_000_000_000)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{rest:09d}"


def ffmetadata_chapters(parts: Sequence[NamedPart]) -> str:
    """Format parts as FFmpeg metadata (``ffmpeg -i film.mp4 -i FILE -map_metadata 1 -codec copy out.mp4``)."""
    lines = [";FFMETADATA1"]
    for part in parts:
        times = f"START={round(part.start * 1000)}", f"END={round(part.end * 1000)}"
        lines += ["[CHAPTER]", "TIMEBASE=1/1000", *times, f"title={_metadata_text(part.name)}"]
    return "\n".join([*lines, ""])


def _metadata_text(text: str) -> str:
    """Escape special characters for FFmpeg's metadata format with backslashes."""
    return re.sub(r"([=;#\\])", r"\\\1", text)


def skip_list(parts: Sequence[NamedPart]) -> str:
    """Format recurring parts as an MPlayer edit decision list (start, end, action 3) for Kodi and Jellyfin plugins.

    Action 3 marks a commercial break, which players skip once but viewers can return to; action 0 would always cut it.
    """
    return "".join(f"{part.start:.3f}\t{part.end:.3f}\t3\n" for part in parts if part.recurs)


_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td { padding: .3rem .6rem .3rem 0; vertical-align: top; }
td.pictures { white-space: nowrap; }
img { height: 4.5rem; border-radius: 3px; margin-right: .2rem; }
@media (max-width: 60rem) {
 table, tbody, tr, td { display: block; } td.pictures { white-space: normal; padding-bottom: 0; }
}
.path { overflow-wrap: anywhere; } small { opacity: .75; }
"""
# Positions of the frames shown for an occurrence, as fractions of its length. The first and last frames show whether
# its boundaries are correct.
_MOMENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_BEFORE_END = 0.06  # seconds
_SHORT_SIDE = 120  # pixels


def _strip(occurrence: Occurrence) -> str:
    last = max(occurrence.start, occurrence.end - _BEFORE_END)
    times = (occurrence.start + fraction * (last - occurrence.start) for fraction in _MOMENTS)
    return frame_strip(occurrence.path, times, short_side=_SHORT_SIDE)


@dataclass(frozen=True, slots=True)
class GroupsToWrite:
    """Recurring groups to write to a file.

    Attributes:
        groups: Result of :meth:`vidkin.Index.recurring`.
        index: Name of the index; None if the files are not in an index.
        on_progress: Callback that receives (groups written, total number of groups).
    """

    groups: Sequence[RecurringGroup]
    index: str | None = None
    on_progress: Callable[[int, int], None] | None = None


def _write_csv(report: GroupsToWrite, file: IO[str]) -> None:
    write_csv_rows(file, recurring_cells(report.groups))


def _write_json(report: GroupsToWrite, file: IO[str]) -> None:
    file.write(json_text({"index": report.index, "groups": report.groups}))


def _write_page(report: GroupsToWrite, file: IO[str]) -> None:
    """Write a page of all groups, with one row per occurrence and a strip of frames from its start to its end; if a
    video cannot be read, the row shows the cause."""
    file.write(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Recurring segments</title>\n'
        f"<style>{_STYLE}</style></head><body>\n"
        f"<h1>Recurring segments</h1>\n<p>{number(len(report.groups), 'group')}</p>\n"
    )
    for position, group in enumerate(report.groups):
        file.write(f"<h2>{html.escape(describe_group(position, group))}</h2>\n<table>\n")
        for one in group.occurrences:
            facts = f"{clock(one.start, digits=2)} - {clock(one.end, digits=2)}, score {one.score:.2f}"
            difference = describe_difference(one)
            facts += f", {difference}" if difference else ""
            strip = "" if group.kind == "copy" else _strip(one)
            file.write(
                f'<tr><td class="pictures">{strip}</td><td><span class="path">'
                f"{html.escape(printable(Path(one.path).name))}</span><br><small>{html.escape(facts)}</small></td>"
                "</tr>\n"
            )
        file.write("</table>\n")
        if report.on_progress is not None:
            report.on_progress(position + 1, len(report.groups))
    file.write("</body></html>\n")


RECURRING_FORMATS: Mapping[str, FileFormat[GroupsToWrite]] = {
    "csv": FileFormat(".csv", "Table (CSV)", _write_csv, "text/csv"),
    "json": FileFormat(".json", "JSON", _write_json, "application/json"),
    "html": FileFormat(".html", "Strips of frames", _write_page, "text/html", reads_video=True),
}
"""Formats for all recurring groups, by name; the source of the lists in the command, web page, API and guide."""

PLAYER_FORMATS: Mapping[str, PlayerFormat] = {
    "chapters": PlayerFormat("Chapters", {".chapters.xml": matroska_chapters, ".chapters.txt": ffmetadata_chapters}),
    "edl": PlayerFormat("Skip lists (EDL)", {".edl": skip_list}),
}
"""Formats for players, by name, for the parts of each video."""


# Containers that support H.264 with AAC; others are replaced by MP4. Higher frame rates are errors in the container.
_JOIN_SUFFIXES, _MAX_RATE, _QUALITY = (".mp4", ".mkv", ".mov"), 240.0, 18


class _FrameSpan(NamedTuple):
    """A time span of a video and its frame range; see :class:`vidkin.media.Span`."""

    start: float
    end: float
    start_frame: int
    end_frame: int


def split_parts(
    path: str, parts: Sequence[NamedPart], folder: str | os.PathLike[str], *, name: str = ""
) -> list[Piece]:
    """Write each part of a video to a frame-accurate file, named ``<file>-01-Opening`` etc.

    Args:
        path: The video.
        parts: Parts in order of time; parts without frames are omitted.
        folder: Output folder; created if missing.
        name: Prefix of the file names; "" for the name of the video.

    Raises:
        MediaError: The video cannot be read, or a part cannot be written.
        InvalidArgumentError: The folder contains the video and already has a file with the name of a part.
    """
    times = _frame_times(path)
    stem = name or safe_name(Path(path).stem)
    spans, names = [], []
    for part_number, part, span in _spans_of(parts, times):
        spans.append(span)
        names.append(safe_name(f"{stem}-{part_number:02d}-{part.name.replace(' ', '-')}", longest=_MAX_NAME))
    return list(split_exactly(path, folder, spans, times=times, names=names).pieces) if spans else []


@dataclass(frozen=True, slots=True)
class JoinedParts(Result):
    """A file that joins the remaining parts of a video.

    Attributes:
        path: The file.
        source: The video.
        parts: Start and end of each part in the video in seconds, in order.
        frames: Number of frames in the file, all of them re-encoded.
    """

    path: str
    source: str
    parts: tuple[tuple[float, float], ...]
    frames: int


def join_parts(
    path: str,
    parts: Sequence[NamedPart],
    folder: str | os.PathLike[str],
    *,
    name: str = "",
    on_progress: Callable[[int, int], None] | None = None,
) -> JoinedParts | None:
    """Join parts of a video into one frame-accurate file, ``<file>-without-recurring``.

    Frames are re-encoded, and of the other streams only the first audio track is kept; see
    :func:`vidkin.media.join_spans`.

    Args:
        path: The video.
        parts: Parts in order of time; parts without frames are omitted.
        folder: Output folder; created if missing.
        name: Prefix of the file name; "" for the name of the video.
        on_progress: Callback that receives (parts started, total number of parts).

    Returns:
        The file; None if no part has frames.

    Raises:
        MediaError: The video cannot be read, or the file cannot be written.
        InvalidArgumentError: The folder contains the video and already has a file of this name.
    """
    spans = [span for _, _, span in _spans_of(parts, _frame_times(path))]
    if not spans:
        return None
    suffix = Path(path).suffix.lower()
    stem = safe_name(f"{name or safe_name(Path(path).stem)}-without-recurring", longest=_MAX_NAME)
    (target,) = piece_paths(path, folder, [stem], suffix if suffix in _JOIN_SUFFIXES else ".mp4")
    rate = min(probe(path).frame_rate or 25.0, _MAX_RATE)
    join_spans(path, target, spans, rate=rate, crf=_QUALITY, on_progress=on_progress)
    frames = sum(span.end_frame - span.start_frame for span in spans)
    return JoinedParts(str(target), path, tuple((span.start, span.end) for span in spans), frames)


def _frame_times(path: str) -> NDArray[np.float64]:
    return np.concatenate([block.timestamps for block in iter_planes(path, height=2, width=2)])


def _spans_of(parts: Sequence[NamedPart], times: NDArray[np.float64]) -> Iterator[tuple[int, NamedPart, _FrameSpan]]:
    """Yield (number from 1, part, frame span) for each part that has frames."""
    interval = float(np.median(np.diff(times))) if len(times) > 1 else 1 / 25
    for count, part in enumerate(parts, start=1):
        first, last = first_at(times, np.array([part.start, part.end])).tolist()
        if last > first:
            end = float(times[last]) if last < len(times) else max(part.end, float(times[-1]) + interval)
            yield count, part, _FrameSpan(float(times[first]), end, first, last)
