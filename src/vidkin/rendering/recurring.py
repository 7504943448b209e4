"""Recurring segments as text and as files: tables, chapters and skip lists for players, a page, cut or joined
videos."""

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
_MAX_NAME = 240  # bytes of a name without its ending
_MIN_PART = 0.5  # seconds of a chapter between two others


@check_arguments
def describe_group(position: int, group: RecurringGroup) -> str:
    """A group in one line: ``A: opening, 0:28.0 long, in 11 of 12 files``; plus ``, by its sound`` if found that
    way."""
    name = f"{group_name(position)}: {group.name}" if group.name else group_name(position)
    by_sound = ", by its sound" if group.found_by == "sound" else ""
    files = f"in {len(group.paths)} of {number(group.files, 'file')}{by_sound}"
    if group.kind == "copy":
        return f"{name}: copies of one video, {files}; only the first was compared with others"
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
    """A, B, ... Z, AA, AB, ... for 0, 1, ...

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
    """Describe how an occurrence differs from the rest of its group: ``0:05.0 shorter, 0.96x, other titles``, or
    nothing."""
    words = []
    if occurrence.source:
        words.append("shown again by the recap")
    if occurrence.shorter:
        words.append(f"{clock(occurrence.shorter)} shorter")
    if occurrence.without_middle:
        words.append(f"another cut ({clock(occurrence.without_middle)} left out inside)")
    if abs(occurrence.speed - 1) > _SPEED_TOLERANCE:
        words.append(f"{occurrence.speed:.2f}x")
    if occurrence.titled:
        words.append("other titles")
    if occurrence.other_sound:
        words.append("other sound")
    return ", ".join(words)


def recurring_cells(groups: Sequence[RecurringGroup]) -> Iterator[tuple[str, ...]]:
    """Rows for CSV and tab-separated files: the headings, then one row an occurrence; paths without control
    characters."""
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
                *("yes" if said else "no" for said in (one.titled, one.other_sound, one.source)),
                str(group.files),
                replace_controls(group.name),
                *("" if said is None else f"{said:.4f}" for said in (one.picture, one.sound)),
                f"{one.without_middle:.3f}",
                group.found_by,
            )


class NamedPart(NamedTuple):
    """A part of a file.

    Attributes:
        name: Its title.
        start, end: Seconds.
        recurs: Whether it recurs; otherwise it lies between such parts.
    """

    name: str
    start: float
    end: float
    recurs: bool


def parts_of_file(
    groups: Sequence[RecurringGroup], path: str, duration: float, *, left_out: Collection[Occurrence] = ()
) -> list[NamedPart]:
    """A file from its start to its end as parts that recur and parts between them, named ``Part 1``, ``Part 2``...

    Copies, and footage that the recap of another file repeats, are not parts. The first of overlapping parts wins.

    Args:
        groups: Result of :meth:`vidkin.Index.recurring`.
        path: The file.
        duration: Its length in seconds.
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
    """A file format for players; each video gets one or more files.

    Attributes:
        label: Description for users.
        files: Content of each file as a function of the parts of the video, by the ending of its name.
    """

    label: str
    files: Mapping[str, Callable[[Sequence[NamedPart]], str]]


def matroska_chapters(parts: Sequence[NamedPart]) -> str:
    """Parts as a chapter file of Matroska (``mkvpropedit film.mkv --chapters FILE``), times in nanoseconds."""
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
    """``hh:mm:ss.nnnnnnnnn``"""
    parts = round(seconds * 1_000_000_000)
    whole, rest = divmod(parts, 1_000_000_000)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{rest:09d}"


def ffmetadata_chapters(parts: Sequence[NamedPart]) -> str:
    """Parts in FFmpeg's metadata format (``ffmpeg -i film.mp4 -i FILE -map_metadata 1 -codec copy out.mp4``)."""
    lines = [";FFMETADATA1"]
    for part in parts:
        times = f"START={round(part.start * 1000)}", f"END={round(part.end * 1000)}"
        lines += ["[CHAPTER]", "TIMEBASE=1/1000", *times, f"title={_metadata_text(part.name)}"]
    return "\n".join([*lines, ""])


def _metadata_text(text: str) -> str:
    """Escape text as a value of FFmpeg's metadata format: a backslash before each special character."""
    return re.sub(r"([=;#\\])", r"\\\1", text)


def skip_list(parts: Sequence[NamedPart]) -> str:
    """Recurring parts as an MPlayer edit decision list, as Kodi and Jellyfin plugins read it: start, end, action 3.

    Action 3 marks a commercial break: a player skips it once, and the viewer can go back into it. Action 0 would always
    cut it.
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
# Frames shown of an occurrence, as shares of its length; the first and the last show whether the ends are right.
_MOMENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_BEFORE_END = 0.06  # seconds
_SHORT_SIDE = 120  # pixels


def _strip(occurrence: Occurrence) -> str:
    last = max(occurrence.start, occurrence.end - _BEFORE_END)
    times = (occurrence.start + share * (last - occurrence.start) for share in _MOMENTS)
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


def _write_csv(found: GroupsToWrite, file: IO[str]) -> None:
    write_csv_rows(file, recurring_cells(found.groups))


def _write_json(found: GroupsToWrite, file: IO[str]) -> None:
    file.write(json_text({"index": found.index, "groups": found.groups}))


def _write_page(found: GroupsToWrite, file: IO[str]) -> None:
    """Write a page with every group: one file a row, with a strip of frames from start to end, or the cause of a
    failure."""
    file.write(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Recurring segments</title>\n'
        f"<style>{_STYLE}</style></head><body>\n"
        f"<h1>Recurring segments</h1>\n<p>{number(len(found.groups), 'group')}</p>\n"
    )
    for position, group in enumerate(found.groups):
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
        if found.on_progress is not None:
            found.on_progress(position + 1, len(found.groups))
    file.write("</body></html>\n")


RECURRING_FORMATS: Mapping[str, FileFormat[GroupsToWrite]] = {
    "csv": FileFormat(".csv", "Table (CSV)", _write_csv, "text/csv"),
    "json": FileFormat(".json", "JSON", _write_json, "application/json"),
    "html": FileFormat(".html", "Strips of frames", _write_page, "text/html", reads_video=True),
}
"""Formats for all recurring groups, by name; the command, page, API and guide read this table and the next one."""

PLAYER_FORMATS: Mapping[str, PlayerFormat] = {
    "chapters": PlayerFormat("Chapters", {".chapters.xml": matroska_chapters, ".chapters.txt": ffmetadata_chapters}),
    "edl": PlayerFormat("Skip lists (EDL)", {".edl": skip_list}),
}
"""Formats for players: files with the parts of each video."""


# Containers that hold H.264 with AAC; others become MP4. Containers that claim a higher frame rate are wrong.
_JOIN_SUFFIXES, _MAX_RATE, _QUALITY = (".mp4", ".mkv", ".mov"), 240.0, 18


class _FrameSpan(NamedTuple):
    """A part of a video and its frames, see :class:`vidkin.media.Span`."""

    start: float
    end: float
    start_frame: int
    end_frame: int


def split_parts(
    path: str, parts: Sequence[NamedPart], folder: str | os.PathLike[str], *, name: str = ""
) -> list[Piece]:
    """Write each part of a video as a file with exactly its frames, named ``<file>-01-Opening``...

    Args:
        path: The video.
        parts: Parts in order of time; parts without a frame are left out.
        folder: Where to write; created if missing.
        name: Start of the file names; "" means the name of the video.

    Raises:
        MediaError: The video cannot be read, or a part cannot be written.
        InvalidArgumentError: The folder is the video's own and already has a file with the name of a part.
    """
    times = _frame_times(path)
    stem = name or safe_name(Path(path).stem)
    spans, names = [], []
    for number_of_part, part, span in _spans_of(parts, times):
        spans.append(span)
        ending = f"-{number_of_part:02d}-{part.name.replace(' ', '-')}"
        names.append(safe_name(f"{stem}{ending}", longest=_MAX_NAME))
    return list(split_exactly(path, folder, spans, times=times, names=names).pieces) if spans else []


@dataclass(frozen=True, slots=True)
class JoinedParts(Result):
    """The remaining parts of a video, joined into one file.

    Attributes:
        path: The file.
        source: The video.
        parts: Start and end of each part of it in seconds of the video, in order.
        frames: Number of its frames, all encoded again.
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
    """Join parts of a video into one file, ``<file>-without-recurring``, exact to the frame.

    Frames are encoded again; of the other streams only the first audio track is kept, see
    :func:`vidkin.media.join_spans`.

    Args:
        path: The video.
        parts: Parts in order of time; parts without a frame are left out.
        folder: Where to write; created if missing.
        name: Start of the file name; "" means the name of the video.
        on_progress: Callback that receives (parts begun, total number of parts).

    Returns:
        The file; None if no part has a frame.

    Raises:
        MediaError: The video cannot be read, or the file cannot be written.
        InvalidArgumentError: The folder is the video's own and already has a file of this name.
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
    """Yield each part that has frames, with its number, from 1, and its frames."""
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 1 / 25
    for count, part in enumerate(parts, start=1):
        first, last = first_at(times, np.array([part.start, part.end])).tolist()
        if last > first:
            end = float(times[last]) if last < len(times) else max(part.end, float(times[-1]) + usual)
            yield count, part, _FrameSpan(float(times[first]), end, first, last)
