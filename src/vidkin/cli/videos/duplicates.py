"""``vidkin duplicates``: groups of copies in an index."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption, MirrorOption
from vidkin.cli.paths import open_index, open_index_for_writing
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import clock, file_size, number

if TYPE_CHECKING:
    from vidkin.index import DuplicateGroup, Index

__all__ = ["duplicates", "find_groups", "print_groups"]

_HEADINGS = ("group", "best", "score", "path", "width", "height", "duration", "size")


def duplicates(
    index: IndexOption = DEFAULT_INDEX,
    threshold: Annotated[
        float,
        typer.Option("--threshold", "-t", min=0.0, max=1.0, help="Lowest score of two copies."),
    ] = 0.7,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", help="Also write the groups to this CSV file.", dir_okay=False)
    ] = None,
    not_a_match: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--not-a-match", metavar="A B", help="Mark these two videos as not duplicates and exit."
        ),
    ] = None,
    is_a_match: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--is-a-match", metavar="A B", help="Mark these two videos as duplicates and exit."),
    ] = None,
    parts: Annotated[
        bool, typer.Option("--parts", help="Also group excerpts with the video that they are from.")
    ] = False,
    mirror: MirrorOption = True,
    json: JsonOption = False,
) -> None:
    """List groups of copies in the index; the best copy of each group is marked.

    Pairs in doubt are read again. What was compared is kept in the index, so that the next run is fast.
    """
    if not_a_match is not None or is_a_match is not None:
        _decide(index, not_a_match, is_a_match, json=json)
        return
    with open_index(index) as collection:
        groups = find_groups(collection, threshold, parts=parts, mirrored=mirror)
    if csv_file is not None:
        _write_csv(groups, csv_file)
    if json:
        print_json({"index": index, "threshold": threshold, "groups": groups})
        return
    print_groups(groups)
    if csv_file is not None:
        say(path_text(csv_file).append(": the groups as CSV"))
    if groups:
        note("A wrong pair? `vidkin duplicates --not-a-match A B` keeps it out of the groups.")


def find_groups(
    collection: Index, threshold: float, *, parts: bool = False, mirrored: bool = True
) -> list[DuplicateGroup]:
    """The groups of copies; shows a progress bar."""
    with meter("comparing") as bar:
        return collection.duplicates(
            threshold=threshold, parts=parts, mirrored=mirrored, on_progress=bar.update
        )


def print_groups(groups: Sequence[DuplicateGroup]) -> None:
    """Print all groups in one table, with an empty line between them."""
    if not groups:
        say("No duplicates found.")
        return
    rows: list[list[str | Text]] = []
    for place, group in enumerate(groups, start=1):
        if rows:
            rows.append([""] * 6)
        for member in sorted(group.members, key=lambda member: not member.best):
            size = f"{member.width}x{member.height}"
            facts = [f"{member.score:.2f}", size, clock(member.duration), file_size(member.size)]
            name = path_text(member.path, style="bold green" if member.best else "")
            rows.append([str(place), name.append("  best copy" if member.best else ""), *facts])
    columns = [
        ("group", "right"),
        ("file", "left"),
        *((name, "right") for name in ("score", "size", "length", "file size")),
    ]
    table(None, columns, rows)
    copies = sum(len(group.members) - 1 for group in groups)
    say(f"{number(len(groups), 'group')}, {number(copies, 'copy', 'copies')} besides the best ones")


def _decide(
    index: Path, rejected: tuple[Path, Path] | None, confirmed: tuple[Path, Path] | None, *, json: bool
) -> None:
    with open_index_for_writing(index) as collection:
        if rejected is not None:
            collection.reject(os.fspath(rejected[0]), os.fspath(rejected[1]))
        if confirmed is not None:
            collection.confirm(os.fspath(confirmed[0]), os.fspath(confirmed[1]))
    if json:
        print_json({"index": index, "not_a_match": rejected, "is_a_match": confirmed})
        return
    for pair, words in ((rejected, "not duplicates"), (confirmed, "duplicates")):
        if pair is not None:
            say(
                path_text(pair[0])
                .append(" and ")
                .append_text(path_text(pair[1]))
                .append(f": marked as {words}")
            )


def _write_csv(groups: Sequence[DuplicateGroup], path: Path) -> None:
    """Write one line for each file; names that are not valid Unicode keep their bytes."""
    try:
        with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            writer = csv.writer(file)
            writer.writerow(_HEADINGS)
            for place, group in enumerate(groups, start=1):
                for member in group.members:
                    score, duration = f"{member.score:.4f}", f"{member.duration:.3f}"
                    facts = (member.width, member.height, duration, member.size)
                    writer.writerow((place, "yes" if member.best else "no", score, member.path, *facts))
    except OSError as error:
        raise InvalidArgumentError(
            f"{path}: cannot be written ({error.strerror}); choose another file for --csv"
        ) from error
