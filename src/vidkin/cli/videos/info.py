"""``vidkin info``: what an index holds."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from vidkin.cli.console import path_text, table
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.paths import open_index
from vidkin.cli.tables import print_facts
from vidkin.rendering.json_values import as_json, print_json
from vidkin.rendering.text import clock, printable

__all__ = ["info"]

_COLUMNS = (
    ("length", "right"),
    ("resolution", "right"),
    ("codec or cause", "left"),
    ("damage", "left"),
    ("file", "left"),
)


def info(
    index: IndexOption = DEFAULT_INDEX,
    videos: Annotated[bool, typer.Option("--videos", help="Also list every video.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what the index holds and which extractor made it."""
    with open_index(index) as collection:
        facts = collection.info()
        records = collection.videos() if videos else []
    if json:
        print_json({"index": index, **as_json(facts), **({"files": records} if videos else {})})
        return
    print_facts(facts)
    if videos:
        rows: list[list[str | Text]] = []
        for record in records:
            if record.status != "ok":
                rows.append(["", "", printable(record.cause), "", path_text(record.path, style="red")])
            else:
                cells = [clock(record.duration), f"{record.width}x{record.height}", record.codec]
                rows.append([*cells, printable(record.damage), path_text(record.path)])
        table(None, _COLUMNS, rows)
