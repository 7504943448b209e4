"""``vidkin info`` and ``vidkin remove``: what an index holds, whether files are whole, and removing videos."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin._base.values import as_json
from vidkin.cli.commands import Status
from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    meter,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
    yes_no,
)
from vidkin.cli.index import count_files
from vidkin.cli.options import (
    DEFAULT_INDEX,
    IndexOption,
    JsonFormat,
    JsonOption,
    check_inputs,
    open_index,
    open_index_for_writing,
)
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import clock, file_size, number, print_json, printable

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import Index, IndexInfo, VideoRecord
    from vidkin.similarity.sound import SoundFeatures

_COLUMNS = (
    ("length", "right"),
    ("resolution", "right"),
    ("codec or cause", "left"),
    ("damage", "left"),
    ("sound", "left"),
    ("file", "left"),
)
_TSV_COLUMNS = (
    "path",
    "status",
    "duration",
    "width",
    "height",
    "codec",
    "frames",
    "windows",
    "damage",
    "cause",
    "missing",
    "sound",
)


def info(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files to decode with --check.", metavar="FILE", show_default=False)
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Decode each FILE completely and report every error; exit status 1 if any."),
    ] = False,
    index: IndexOption = DEFAULT_INDEX,
    videos: Annotated[bool, typer.Option("--videos", help="Also list every video.")] = False,
    format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show what the index holds and which extractor made it, or check files for damage.

    With --check no index is used: each FILE is decoded from its first frame to its last with strict error detection,
    its sound included, and the first errors are listed with their times in seconds.
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
        records = collection.videos() if videos else None
        tracks = _read_tracks(collection, records or ())
    missing = {record.path for record in records or () if is_gone(record.path)}
    if format is OutputFormat.JSON:
        listed = [
            {**record.to_dict(), "missing": record.path in missing, "sound": _tracks_as_json(tracks[record.path])}
            for record in records or ()
        ]
        print_json({"index": index, **facts.to_dict(), **({"files": listed} if videos else {})})
        return
    if format is not OutputFormat.TABLE:
        _print_lines(facts, records, missing, tracks, format)
        return
    print_facts(_facts_for_people(facts))
    if records is not None:
        rows: list[list[str | Text]] = []
        for record in records:
            name = path_text(record.path, style="" if record.status == "ok" else "red")
            if record.path in missing:
                name.append(" (missing)", style="red")
            if record.status != "ok":
                rows.append(["", "", printable(record.cause), "", "", name])
            else:
                cells = [clock(record.duration), f"{record.width}x{record.height}", record.codec]
                rows.append([*cells, printable(record.damage), _words(tracks[record.path]), name])
        # A column that says nothing leaves its room to the names.
        sounds = [] if any(row[4] for row in rows) else [4]
        columns = [column for place, column in enumerate(_COLUMNS) if place not in sounds]
        table(None, columns, [[cell for place, cell in enumerate(row) if place not in sounds] for row in rows])


def _check_files(files: Sequence[Path], format: OutputFormat) -> None:
    """Decode files and print what is wrong with them; exit status 1 if anything is."""
    from vidkin.media.checking import check_file

    check_inputs(*files)
    checks = []
    for file in files:
        with meter(f"Checking {file.name}"):
            checks.append(check_file(file))
    if format is OutputFormat.JSON:
        print_json({"files": [{**check.to_dict(), "is_whole": check.is_whole} for check in checks]})
    elif format is OutputFormat.TSV:
        write_tsv(("path", "is_whole", "frames", "duration", "stated_duration", "errors", "seconds", "cause"))
        for check in checks:
            first = check.errors[0] if check.errors else None
            measured = str(check.frames), f"{check.duration:.3f}", f"{check.stated_duration:.3f}"
            seconds = "" if first is None or first.seconds is None else f"{first.seconds:.3f}"
            cause = "" if first is None else printable(first.cause)
            write_tsv((check.path, yes_no(check.is_whole), *measured, str(check.error_count), seconds, cause))
    else:
        for check in checks:
            if check.is_whole:
                say(path_text(check.path).append(f": whole, {number(check.frames, 'frame')} in {check.duration:.1f} s"))
                continue
            say(path_text(check.path).append(f": damaged, {number(check.error_count, 'error')}"), style="red")
            for error in check.errors:
                when = "in the first seconds" if error.seconds is None else f"at {error.seconds:.1f} s"
                say(f"  {when}: {printable(error.cause)}")
            if check.error_count > len(check.errors):
                say(f"  and {number(check.error_count - len(check.errors), 'more error')}")
    if not all(check.is_whole for check in checks):
        raise typer.Exit(Status.SOME_FAILED)


def _read_tracks(collection: Index, records: Sequence[VideoRecord]) -> dict[str, tuple[SoundFeatures, ...] | None]:
    """The sound tracks of every video, by its path; None where they are not known."""
    from vidkin.errors import CollectionDamagedError

    if not (records and collection.manifest.sound):
        return dict.fromkeys(record.path for record in records)
    from vidkin.index.storage.sound_files import SoundFiles

    files = SoundFiles(collection.place)
    found: dict[str, tuple[SoundFeatures, ...] | None] = {}
    for record in records:
        try:
            found[record.path] = files.read(record.content_hash) if record.content_hash else None
        except CollectionDamagedError:
            found[record.path] = None  # `vidkin doctor` says so
    return found


def _words(tracks: Sequence[SoundFeatures] | None) -> str:
    from vidkin.index.query.sound import describe_tracks

    return printable(describe_tracks(tracks))


def _tracks_as_json(tracks: Sequence[SoundFeatures] | None) -> list[dict[str, Any]] | None:
    if tracks is None:
        return None
    return [
        {"language": one.language, "is_default": one.is_default, "length": one.length, "landmarks": len(one)}
        for one in tracks
    ]


def _facts_for_people(facts: IndexInfo) -> dict[str, Any]:
    """What a person asks: without what only programs compare, and scores in words. ``--format json`` has all."""
    table_of = {name: value for name, value in facts.to_dict().items() if name not in ("fingerprint", "windows")}
    meanings = {
        "copies": "identify copies and where they match",
        "kinds": "order videos by kind; they do not tell copies",
    }
    scores = table_of.pop("measure")
    return {name: value for name, value in table_of.items() if name != "frames"} | {
        "frames with features": table_of["frames"],
        "scores": meanings.get(scores, scores),
    }


def _print_lines(
    facts: IndexInfo,
    records: Sequence[VideoRecord] | None,
    missing: Set[str],
    tracks: Mapping[str, Sequence[SoundFeatures] | None],
    format: OutputFormat,
) -> None:
    """The videos, one a line; without any the facts, a name and a value a line."""
    if records is None:
        if format is OutputFormat.TSV:
            write_tsv(("name", "value"))
        for name, value in facts.to_dict().items():
            text = "" if value is None else str(value)
            if format is OutputFormat.TSV:
                write_tsv((name, text))
            else:
                say(f"{name}: {printable(text)}")
    elif format is OutputFormat.PLAIN:
        for record in records:
            state = "missing" if record.path in missing else record.status
            say(plain_text(f"{state:<7}  {clock(record.duration):>9}  ").append_text(path_text(record.path)))
    else:
        write_tsv(_TSV_COLUMNS)
        for record in records:
            facts_of_video = [getattr(record, name) for name in _TSV_COLUMNS[:-2]]
            said = yes_no(record.path in missing), _words(tracks[record.path])
            write_tsv((*(f"{value}" for value in facts_of_video), *said))


def remove(
    paths: Annotated[list[Path], typer.Argument(help="Videos, or folders for all videos below them.", metavar="PATH")],
    index: IndexOption = DEFAULT_INDEX,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Remove videos from the index. The files themselves are not touched.

    What is removed stays removed when its folder is indexed again, until `vidkin index` names it.
    """
    with open_index_for_writing(index) as collection:
        before = collection.info()
        records = collection.remove([os.fspath(path) for path in paths])
        after = collection.info()
    left = after.videos + after.photographs
    videos, photographs = before.videos - after.videos, before.photographs - after.photographs
    broken = records - videos - photographs
    if format == "json":
        print_json({"index": index, "removed": videos + photographs, "removed_broken": broken, "videos": left})
        return
    more = f" and {number(broken, 'broken file')}" if broken else ""
    say(path_text(index).append(f": {count_files(videos, photographs)}{more} removed, {left:,} left"))


_LABELS = {
    "bytes": "size on disk",
    "missing": "files that are gone",
    "seconds": "length of all videos",
    "sampling_rate": "frames per second of video",
}


def print_facts(facts: object, *, title: str | None = None) -> None:
    """The fields of a result in two columns, names and values in words; empty fields are dropped."""
    rows: list[list[str | Text]] = [
        [_LABELS.get(name, name.replace("_", " ")), plain_text(_in_words(name, value), overflow="fold")]
        for name, value in as_json(facts).items()
        if value is not None and value != ""
    ]
    table(title, [("fact", "left"), ("value", "left")], rows)


def _in_words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name == "bytes":
        return file_size(value)
    if isinstance(value, float) and name == "seconds":
        return clock(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,g}"
    return printable(str(value))
