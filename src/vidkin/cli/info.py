"""``vidkin info``: what an index holds."""

from __future__ import annotations

from typing import Annotated

import typer

from vidkin.cli.collection import opened
from vidkin.cli.console import clock, path_text, table
from vidkin.cli.drawing import print_facts
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.output import as_json, print_json

__all__ = ["info"]


def info(
    index: IndexOption = DEFAULT_INDEX,
    videos: Annotated[bool, typer.Option("--videos", help="List every video too.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what the index holds and what made it."""
    with opened(index) as collection:
        found = collection.info()
        records = collection.videos() if videos else []
    if json:
        print_json({"index": index, **as_json(found), **({"files": records} if videos else {})})
        return
    print_facts(found)
    if videos:
        rows = [
            [path_text(record.path), clock(record.duration), f"{record.width}x{record.height}", record.codec]
            if record.status == "ok"
            else [path_text(record.path, style="red"), "", "", record.cause]
            for record in records
        ]
        table(
            None, [("file", "left"), ("length", "right"), ("size", "right"), ("codec or cause", "left")], rows
        )
