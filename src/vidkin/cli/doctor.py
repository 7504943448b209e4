"""``vidkin doctor``: whether everything works here, and how healthy an index is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.paths import open_index
from vidkin.cli.tables import print_facts
from vidkin.errors import CollectionDamagedError, CollectionNotFoundError, VidkinError
from vidkin.rendering.json_values import as_json, print_json
from vidkin.rendering.text import number, printable

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import DamagedPart, Index, IndexInfo, RecallReport
    from vidkin.rendering.machine import Finding

__all__ = ["doctor"]

_FILES = "files of the index"


def doctor(
    index: IndexOption = DEFAULT_INDEX,
    recall: Annotated[
        bool, typer.Option("--recall", help="Measure what the first stage of search misses in this index.")
    ] = False,
    queries: Annotated[int, typer.Option("--queries", min=1, help="For --recall: queries drawn.")] = 50,
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, help="For --recall: candidates kept.")
    ] = 100,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Read back all of this index and take out what is damaged, so that it is made anew.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Try every part of this machine's set-up, and look at the health of the index.

    Exit status 1 if a part that vidkin needs does not work, the index was made with a model that is gone, or a part
    of the index is missing.
    """
    from vidkin.rendering.machine import inspect_machine

    taken_out = _repaired(index) if repair else ()
    findings = [*inspect_machine(), *_of_index(index)]
    health, measured = _examine(index, recall=recall, queries=queries, candidates=candidates)
    if json:
        print_json(
            {
                "parts": findings,
                "taken_out": taken_out if repair else None,
                "index": None if health is None else {"path": index, **as_json(health)},
                "recall": None if measured is None else _recall_as_json(measured),
            }
        )
    else:
        styles = {"ok": "green", "missing": "yellow", "broken": "bold red"}
        rows = [
            [finding.name, _styled(finding.state, styles[finding.state]), finding.detail]
            for finding in findings
        ]
        table(None, [("part", "left"), ("state", "left"), ("", "left")], rows)
        if repair:
            _say_repaired(taken_out)
        if health is not None:
            print_facts(health, title=f"index {index}")
        elif not any(finding.name == _FILES for finding in findings):
            say(path_text(index).append(": no index here"))
        if measured is not None:
            _say_recall(measured)
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(Status.SOME_FAILED)


def _examine(
    index: Path, *, recall: bool, queries: int, candidates: int
) -> tuple[IndexInfo | None, RecallReport | None]:
    if not recall:
        try:
            with open_index(index) as collection:
                return collection.info(), None
        except (CollectionNotFoundError, CollectionDamagedError):
            return None, None  # there is none, or a finding says what is wrong with it
    with open_index(index) as collection:
        health = collection.info()
        with meter("measuring recall") as bar:
            measured = collection.recall(
                queries=queries, limit=candidates, on_progress=lambda done, total: bar.update(done, total)
            )
        return health, measured


def _of_index(index: Path) -> list[Finding]:
    """Whether the index is whole, and the model that it was made with (if any) still there and the same."""
    from vidkin.rendering.machine import Finding

    if not index.expanduser().exists():
        return []
    try:
        with open_index(index) as collection:
            return [_files_of(collection), *_model_of(collection)]
    except CollectionDamagedError as error:
        return [Finding(_FILES, "broken", str(error))]


def _files_of(collection: Index) -> Finding:
    from vidkin.rendering.machine import Finding

    collection.check_small_files()
    missing = collection.store.missing()
    if not missing:
        return Finding(_FILES, "ok", "nothing is missing (--repair reads all of it)")
    first, cause = next(iter(missing.items()))
    return Finding(
        _FILES,
        "broken",
        f"parts of {number(len(missing), 'video')} are missing, the first is {collection.store.get(first).path}: "
        f"{cause}; `vidkin index` with these files makes them anew",
    )


def _model_of(collection: Index) -> list[Finding]:
    from vidkin.rendering.machine import Finding

    if not collection.extractor_name.startswith("model:"):
        return []
    try:
        fingerprint = collection.extractor.fingerprint
    except VidkinError as error:
        return [Finding("model of the index", "broken", str(error))]
    return [Finding("model of the index", "ok", fingerprint)]


def _repaired(index: Path) -> tuple[DamagedPart, ...]:
    from vidkin.index import repair

    with meter("reading the index") as bar:
        return repair(index, on_progress=lambda done, total: bar.update(done, total))


def _say_repaired(taken_out: tuple[DamagedPart, ...]) -> None:
    if not taken_out:
        say("Read all of the index: nothing is damaged.", style="bold")
        return
    rows: list[list[str | Text]] = [[path_text(part.part), printable(part.cause)] for part in taken_out]
    table(None, [("taken out", "left"), ("cause", "left")], rows)
    note("Now run `vidkin index` with the folders of these videos: what was taken out is made anew.")


def _recall_as_json(measured: RecallReport) -> dict[str, Any]:
    facts: dict[str, Any] = as_json(measured)
    return {**facts, "recall": measured.recall}


def _say_recall(measured: RecallReport) -> None:
    say(
        f"First-stage recall@{measured.limit}: {measured.recall:.3f} ({measured.found:,} of {measured.relevant:,} "
        f"matches from {measured.threshold:g} on that an exhaustive search of {measured.queries:,} queries finds)",
        style="bold",
    )
    if not measured.relevant:
        note("No video of this index matches another, so there was nothing to miss.")


def _styled(text: str, style: str) -> Any:
    from rich.text import Text

    return Text(text, style=style)
