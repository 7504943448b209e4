"""``vidkin info`` and ``vidkin remove``: what an index holds, and removing videos from it."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    choose_format,
    path_text,
    print_facts,
    say,
    table,
    write_tsv,
    yes_no,
)
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.paths import open_index, open_index_for_writing
from vidkin.rendering.text import clock, number, print_json, printable

if TYPE_CHECKING:
    from vidkin.index import IndexInfo, VideoRecord

_COLUMNS = (
    ("length", "right"),
    ("resolution", "right"),
    ("codec or cause", "left"),
    ("damage", "left"),
    ("file", "left"),
)
_TSV_COLUMNS = (
    *("path", "status", "duration", "width", "height", "codec", "frames", "windows", "damage", "cause"),
    "missing",
)


def info(
    index: IndexOption = DEFAULT_INDEX,
    videos: Annotated[bool, typer.Option("--videos", help="Also list every video.")] = False,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
) -> None:
    """Show what the index holds and which extractor made it."""
    from vidkin.index import is_gone

    form = choose_format(format, json=json)
    with open_index(index) as collection:
        facts = collection.info()
        records = collection.videos() if videos else None
    missing = {record.path for record in records or () if is_gone(record.path)}
    if form is OutputFormat.JSON:
        files = [{**record.to_dict(), "missing": record.path in missing} for record in records or ()]
        print_json({"index": index, **facts.to_dict(), **({"files": files} if videos else {})})
        return
    if form is not OutputFormat.TABLE:
        _print_lines(facts, records, missing, form)
        return
    print_facts(_facts_for_people(facts))
    if records is not None:
        rows: list[list[str | Text]] = []
        for record in records:
            name = path_text(record.path, style="" if record.status == "ok" else "red")
            if record.path in missing:
                name.append(" (missing)", style="red")
            if record.status != "ok":
                rows.append(["", "", printable(record.cause), "", name])
            else:
                cells = [clock(record.duration), f"{record.width}x{record.height}", record.codec]
                rows.append([*cells, printable(record.damage), name])
        table(None, _COLUMNS, rows)


def _facts_for_people(facts: IndexInfo) -> dict[str, Any]:
    """What a person asks: without what only programs compare, and scores in words. ``--json`` has all."""
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
    facts: IndexInfo, records: Sequence[VideoRecord] | None, missing: Set[str], form: OutputFormat
) -> None:
    """The videos, one a line; without any the facts, a name and a value a line."""
    if records is None:
        if form is OutputFormat.TSV:
            write_tsv(("name", "value"))
        for name, value in facts.to_dict().items():
            text = "" if value is None else str(value)
            if form is OutputFormat.TSV:
                write_tsv((name, text))
            else:
                say(f"{name}: {printable(text)}")
    elif form is OutputFormat.PLAIN:
        for record in records:
            state = "missing" if record.path in missing else record.status
            say(Text(f"{state:<7}  {clock(record.duration):>9}  ").append_text(path_text(record.path)))
    else:
        write_tsv(_TSV_COLUMNS)
        for record in records:
            facts_of_video = [getattr(record, name) for name in _TSV_COLUMNS[:-1]]
            write_tsv((*(f"{value}" for value in facts_of_video), yes_no(record.path in missing)))


def remove(
    paths: Annotated[list[Path], typer.Argument(help="Videos, or folders for all videos below them.", metavar="PATH")],
    index: IndexOption = DEFAULT_INDEX,
    json: JsonOption = False,
) -> None:
    """Remove videos from the index. The files themselves are not touched.

    What is removed stays removed when its folder is indexed again, until `vidkin index` names it.
    """
    with open_index_for_writing(index) as collection:
        before = collection.info()
        records = collection.remove([os.fspath(path) for path in paths])
        left = collection.info().videos
    videos = before.videos - left
    if json:
        print_json({"index": index, "removed": videos, "removed_broken": records - videos, "videos": left})
        return
    broken = f" and {number(records - videos, 'broken file')}" if records > videos else ""
    say(path_text(index).append(f": {number(videos, 'video')}{broken} removed, {left:,} left"))
