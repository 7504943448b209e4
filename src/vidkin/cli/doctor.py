"""``vidkin doctor``: whether everything works here, and the health of an index."""

from __future__ import annotations

from typing import Annotated

import typer

from vidkin._base.values import as_json
from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import meter, note, path_text, plain_text, print_data, say, table
from vidkin.cli.info import print_facts
from vidkin.cli.options import IndexOption, JsonFormat, JsonOption, open_index, rare_option
from vidkin.errors import CollectionDamagedError, CollectionNotFoundError
from vidkin.rendering.text import printable

_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(
    index: IndexOption = DEFAULT_INDEX,
    recall: Annotated[bool, rare_option("--recall")] = False,
    repair: Annotated[bool, typer.Option("--repair")] = False,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Check that every part works on this machine, and the health of the index.

    --recall also measures what the first stage of search misses in this index. Exit status 1 if a part that vidkin
    needs does not work, the model that made the index is gone, or a part of the index is missing.

    Args:
        repair: Read the whole index and remove damaged parts so that `vidkin index` can rebuild them.
    """
    with meter("starting"):
        from vidkin.index import open_place
        from vidkin.index import repair as repair_index
        from vidkin.rendering.machine import INDEX_FILES, inspect_index, inspect_machine

    removed = None
    if repair:
        with meter("reading the index") as bar:
            removed = repair_index(open_place(index), on_progress=bar.update)
    with meter("checking this machine"):
        findings = [*inspect_machine(), *inspect_index(index)]
    health = measured = None
    try:
        with open_index(index) as collection, meter("checking the index") as bar:
            health = collection.info()
            measured = collection.recall(on_progress=bar.update) if recall else None
    except (CollectionNotFoundError, CollectionDamagedError):
        if recall:
            raise
        # There is no index, or a finding reports the problem with it.
    document = {
        "parts": findings,
        "taken_out": removed,
        "index": None if health is None else {"path": index, **as_json(health)},
        "recall": None if measured is None else {**as_json(measured), "recall": measured.recall},
    }
    if not print_data(format, document):
        table(
            None,
            [("part", "left"), ("state", "left"), ("details", "left")],
            [(each.name, plain_text(each.state, style=_STYLES[each.state]), each.detail) for each in findings],
        )
        if removed:
            parts = [(path_text(part.part), printable(part.cause)) for part in removed]
            table(None, [("removed", "left"), ("cause", "left")], parts)
            note("Run `vidkin index` with the folders of these videos to rebuild the removed parts.")
        elif repair:
            say("Read the whole index: nothing is damaged.", style="bold")
        if health is not None:
            print_facts(health, title=f"index {index}")
        elif not any(finding.name == INDEX_FILES for finding in findings):
            say(path_text(index), ": there is no index here")
        if measured is not None:
            say(
                f"First-stage recall@{measured.limit}: {measured.recall:.3f} ({measured.found:,} of "
                f"{measured.relevant:,} matches of at least {measured.threshold:g} that an exhaustive search of "
                f"{measured.queries:,} queries finds)",
                style="bold",
            )
            if not measured.relevant:
                note("No video of this index matches another one, so there was nothing to miss.")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(Status.SOME_FAILED)
