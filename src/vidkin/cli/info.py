"""``vidkin info`` and ``vidkin remove``: what an index holds, whether files are whole, and removing videos."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import meter, path_text, plain_text, print_data, say, table
from vidkin.cli.options import (
    FormatOption,
    IndexOption,
    JsonFormat,
    OutputFormat,
    RareJsonOption,
    check_inputs,
    open_index,
)
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.rendering.facts import RECORD_HEADINGS, check_cells, fact_cells, record_cells, select_facts
from vidkin.rendering.ingest import count_files
from vidkin.rendering.text import clock, number, printable

if TYPE_CHECKING:
    from vidkin.index import Index, VideoRecord
    from vidkin.similarity.sound import SoundFeatures

_COLUMNS = (
    *(("length", "right"), ("resolution", "right"), ("codec or cause", "left")),
    *(("damage", "left"), ("sound", "left"), ("file", "left")),
)


def info(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE", show_default=False)] = None,
    check: Annotated[bool, typer.Option("--check")] = False,
    index: IndexOption = DEFAULT_INDEX,
    videos: Annotated[bool, typer.Option("--videos")] = False,
    format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show what the index holds and which extractor made it, or check files for damage.

    With --check no index is used: each FILE is decoded from its first frame to its last with strict error detection,
    its sound included, and the first errors are listed with their times in seconds.

    Args:
        files: Files to decode with --check.
        check: Decode each FILE completely and report every error; exit status 1 if any.
        videos: Also list every video.
    """
    if check or files:
        if not check and (folder := next(filter(os.path.isdir, files or ()), None)) is not None:
            raise InvalidArgumentError(f"{folder}: --index names an index: vidkin info --index {folder}")
        if not (check and files):
            raise InvalidArgumentError("FILE and --check need each other: vidkin info FILE... --check")
        _check_files(files, format)
        return
    from vidkin.index import is_gone

    with open_index(index) as collection:
        facts = collection.info()
        records = collection.videos() if videos else []
        tracks = _read_tracks(collection, records)
    missing = {record.path for record in records if is_gone(record.path)}
    document = {"index": index, **facts.to_dict()}
    names = [(name, "" if value is None else str(value)) for name, value in facts.to_dict().items()]
    cells: list[Sequence[str]] = [("name", "value"), *names]
    if videos:
        document["files"] = [
            {**each.to_dict(), "missing": each.path in missing, "sound": _tracks_as_json(tracks[each.path])}
            for each in records
        ]
        cells = [RECORD_HEADINGS]
        for each in records:
            sound = _describe_tracks(tracks[each.path])
            cells.append(record_cells(each, is_missing=each.path in missing, sound=sound))
    if print_data(format, document, cells):
        return
    if format is OutputFormat.PLAIN:
        for each in records:
            state = "missing" if each.path in missing else each.status
            say(f"{state:<7}  {clock(each.duration):>9}  ", path_text(each.path))
        for name, value in () if videos else names:
            say(f"{name}: {printable(value)}")
        return
    print_facts(select_facts(facts))
    if not videos:
        return
    rows = []
    for each in records:
        is_ok = each.status == "ok"
        file = path_text(each.path, style="" if is_ok else "red")
        if each.path in missing:
            file.append(" (missing)", style="red")
        length, size = (clock(each.duration), f"{each.width}x{each.height}") if is_ok else ("", "")
        damage, sound = (printable(each.damage), _describe_tracks(tracks[each.path])) if is_ok else ("", "")
        rows.append((length, size, each.codec if is_ok else printable(each.cause), damage, sound, file))
    table(None, _COLUMNS, rows)


def _check_files(files: Sequence[Path], format: OutputFormat) -> None:
    """Decode files and print what is wrong with them; exit status 1 if anything is."""
    from vidkin.media.checking import check_file

    check_inputs(*files)
    checks = []
    for file in files:
        with meter(f"Checking {file.name}"):
            checks.append(check_file(file))
    document = {"files": [{**check.to_dict(), "is_whole": check.is_whole} for check in checks]}
    if not print_data(format, document, check_cells(checks)):
        for check in checks:
            if check.is_whole:
                say(path_text(check.path), f": whole, {number(check.frames, 'frame')} in {check.duration:.1f} s")
                continue
            say(path_text(check.path), f": damaged, {number(check.error_count, 'error')}", style="red")
            for error in check.errors:
                when = "in the first seconds" if error.seconds is None else f"at {error.seconds:.1f} s"
                say(f"  {when}: {printable(error.cause)}")
            if check.error_count > len(check.errors):
                say(f"  and {number(check.error_count - len(check.errors), 'more error')}")
    if not all(check.is_whole for check in checks):
        raise typer.Exit(Status.SOME_FAILED)


def _read_tracks(collection: Index, records: Sequence[VideoRecord]) -> Mapping[str, Sequence[SoundFeatures] | None]:
    """The sound tracks of every video, by its path; None where they are not known."""
    if not (records and collection.manifest.sound):
        return dict.fromkeys(record.path for record in records)
    from vidkin.index.storage.sound_files import SoundFiles

    files = SoundFiles(collection.place)
    tracks: dict[str, Sequence[SoundFeatures] | None] = {}
    for record in records:
        try:
            tracks[record.path] = files.read(record.content_hash) if record.content_hash else None
        except CollectionDamagedError:
            tracks[record.path] = None  # `vidkin doctor` reports it
    return tracks


def _describe_tracks(tracks: Sequence[SoundFeatures] | None) -> str:
    from vidkin.index.query.sound import describe_tracks

    return printable(describe_tracks(tracks))


def _tracks_as_json(tracks: Sequence[SoundFeatures] | None) -> list[dict[str, Any]] | None:
    if tracks is None:
        return None
    names = ("language", "is_default", "length")
    return [{**{name: getattr(one, name) for name in names}, "landmarks": len(one)} for one in tracks]


def remove(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH")],
    index: IndexOption = DEFAULT_INDEX,
    format: RareJsonOption = JsonFormat.TABLE,
) -> None:
    """Remove videos from the index. The files themselves are not touched.

    Removed videos stay out of the index when their folder is indexed again, until `vidkin index` names them.

    Args:
        paths: Videos, or folders for all videos below them.
    """
    with open_index(index, writing=True) as collection:
        before = collection.info()
        records = collection.remove([os.fspath(path) for path in paths])
        after = collection.info()
    left = after.videos + after.photographs
    videos, photographs = before.videos - after.videos, before.photographs - after.photographs
    removed = videos + photographs
    broken = records - removed
    if not print_data(format, {"index": index, "removed": removed, "removed_broken": broken, "videos": left}):
        more = f" and {number(broken, 'broken file')}" if broken else ""
        say(path_text(index), f": {count_files(videos, photographs)}{more} removed, {left:,} left")


def print_facts(facts: object, *, title: str | None = None) -> None:
    """The fields of a result in two columns, names and values as text; empty fields are dropped."""
    rows = [(name, plain_text(value)) for name, value in fact_cells(facts)]
    table(title, [("fact", "left"), ("value", "left")], rows)
