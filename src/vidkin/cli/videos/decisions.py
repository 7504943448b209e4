"""``vidkin decisions``: the pairs that a person marked, and how to take it back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from vidkin.cli.console import path_text, say, table
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.paths import open_index, open_index_for_writing
from vidkin.rendering.json_values import print_json

__all__ = ["decisions"]


def decisions(
    index: IndexOption = DEFAULT_INDEX,
    undo: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--undo", metavar="A B", help="Forget what you decided on these two videos."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the pairs that you marked as duplicates or not, or undo one."""
    if undo is not None:
        with open_index_for_writing(index) as collection:
            collection.forget_decision(os.fspath(undo[0]), os.fspath(undo[1]))
        if json:
            print_json({"index": index, "undone": undo})
            return
        say(path_text(undo[0]).append(" and ").append_text(path_text(undo[1])).append(": decision undone"))
        return
    with open_index(index) as collection:
        decided = collection.decisions()
    if json:
        print_json({"index": index, "decisions": decided})
        return
    if not decided:
        say("No decisions; `vidkin duplicates --not-a-match A B` and --is-a-match make some.")
        return
    rows: list[list[str | Text]] = []
    for decision in decided:
        words = "duplicates" if decision.verdict == "match" else "not duplicates"
        rows.append([words, _names(decision.first), _names(decision.second)])
    table(None, [("marked as", "left"), ("file", "left"), ("file", "left")], rows)


def _names(paths: tuple[str, ...]) -> Text:
    """The files of one content, one a line."""
    return (
        Text("\n").join(map(path_text, paths)) if paths else Text("(not in the index any more)", style="dim")
    )
