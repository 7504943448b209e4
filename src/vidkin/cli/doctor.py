"""``vidkin doctor``: whether everything works here, and how healthy an index is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.collection import opened
from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.drawing import print_facts
from vidkin.cli.exit import Status
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption
from vidkin.cli.output import as_json, print_json
from vidkin.errors import VidkinError

if TYPE_CHECKING:
    from vidkin.cli.parts import Finding
    from vidkin.index import IndexInfo, RecallReport

__all__ = ["doctor"]


def doctor(
    index: IndexOption = DEFAULT_INDEX,
    recall: Annotated[
        bool, typer.Option("--recall", help="Measure what the first stage of search misses in this index.")
    ] = False,
    queries: Annotated[int, typer.Option("--queries", min=1, help="For --recall: queries drawn.")] = 50,
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, help="For --recall: candidates kept.")
    ] = 100,
    json: JsonOption = False,
) -> None:
    """Try every part of this machine's set-up, and look at the health of the index.

    Exit status 1 if a part that vidkin needs does not work, or the index was made with a model that is gone.
    """
    from vidkin.cli.parts import inspect_machine

    findings = [*inspect_machine(), *_model_of(index)]
    health, measured = _examine(index, recall=recall, queries=queries, candidates=candidates)
    if json:
        print_json(
            {
                "parts": findings,
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
        if health is None:
            say(path_text(index).append(": no index here"))
        else:
            print_facts(health, title=f"index {index}")
        if measured is not None:
            _say_recall(measured)
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(Status.SOME_FAILED)


def _examine(
    index: Path, *, recall: bool, queries: int, candidates: int
) -> tuple[IndexInfo | None, RecallReport | None]:
    if not recall and not index.expanduser().exists():
        return None, None
    with opened(index) as collection:
        health = collection.info()
        if not recall:
            return health, None
        with meter("measuring recall") as bar:
            measured = collection.recall(
                queries=queries, limit=candidates, on_progress=lambda done, total: bar.update(done, total)
            )
        return health, measured


def _model_of(index: Path) -> list[Finding]:
    """Whether the trained model that an index was made with is still there, and still the same."""
    from vidkin.cli.parts import Finding

    if not index.expanduser().exists():
        return []
    with opened(index) as collection:
        if not collection.extractor_name.startswith("model:"):
            return []
        try:
            fingerprint = collection.extractor.fingerprint
        except VidkinError as error:
            return [Finding("model of the index", "broken", str(error))]
    return [Finding("model of the index", "ok", fingerprint)]


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
