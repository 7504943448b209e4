"""``vidkin info``: what an index holds."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from vidkin.cli.console import path_text, table
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.paths import open_index
from vidkin.cli.tables import print_facts
from vidkin.rendering.json_values import print_json
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
    from vidkin.index import is_gone

    with open_index(index) as collection:
        facts = collection.info()
        records = collection.videos() if videos else []
    missing = {record.path for record in records if is_gone(record.path)}
    if json:
        files = [{**record.to_dict(), "missing": record.path in missing} for record in records]
        print_json({"index": index, **facts.to_dict(), **({"files": files} if videos else {})})
        return
    print_facts(facts)
    if videos:
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
