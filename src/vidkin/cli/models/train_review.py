"""``vidkin train review``: what verdicts of people teach the scores of an index and its shot detector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vidkin.cli.console import meter, note, say, table
from vidkin.cli.paths import open_index
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.review import CutReview, MeasureReview

__all__ = ["train_on_review"]


def train_on_review(index: str, *, use: bool | None, json: bool) -> None:
    """Train on all verdicts of an index that there are enough of, and print what came of it.

    Args:
        index: Folder of the index; it must be on this machine.
        use: Use what was trained; False goes back to what was there before and trains nothing.
        json: Print a document instead of a table.
    """
    with meter("starting"):
        from vidkin.review import Labels, train_cuts, train_measure, use_detector, use_measure

    with open_index(index) as collection:
        folder = collection.path
        if use is False:
            use_measure(folder, use=False)
            use_detector(folder, use=False)
            if json:
                print_json({"index": index, "use": False, "runs": {}})
            else:
                say("Searches and shots use what they used before any review.")
            return
        labels = Labels.open(folder)
        if not labels.pairs and not labels.cuts:
            raise InvalidArgumentError(
                f"{index} has no verdicts; judge pairs on the page Review of `vidkin serve {index}`"
            )
        runs: dict[str, CutReview | MeasureReview] = {}
        problems: dict[str, str] = {}
        with meter("training on verdicts") as bar:
            for name, given, train in (
                ("measure", labels.pairs, train_measure),
                ("cuts", labels.cuts, train_cuts),
            ):
                if given:
                    try:
                        runs[name] = train(collection, on_progress=bar.update)
                    except InvalidArgumentError as error:
                        problems[name] = str(error)
    if not runs:
        raise InvalidArgumentError("; ".join(problems.values()))
    if use:
        for name, switch in (("measure", use_measure), ("cuts", use_detector)):
            if name in runs:
                switch(folder, use=True)
    if json:
        print_json({"index": index, "use": bool(use), "runs": runs, "problems": problems})
        return
    _print_reviews(runs)
    for problem in problems.values():
        note(problem, style="yellow")
    if use is None:
        note("`vidkin train review --use` makes searches and shots use it, --no-use goes back.")


def _print_reviews(runs: Mapping[str, CutReview | MeasureReview]) -> None:
    """A table, what its figures are of, and how many verdicts were left out."""
    columns = [("trained", "left"), *((name, "right") for name in ("on", "held back", "before", "after"))]
    rows = [
        [
            name,
            *map(str, (run.trained_on, run.held_back)),
            f"{run.before:.3f}",
            f"{run.after:.3f}",
            run.judgment,
        ]
        for name, run in runs.items()
    ]
    table(None, [*columns, ("is it better?", "left")], rows)
    note(
        "Figures are of verdicts that the training did not see: of a measure the share of pairs of verdicts in the "
        "right order, of cuts F1."
    )
    missing = max(run.missing for run in runs.values())
    if missing:
        note(
            f"{number(missing, 'verdict')} left out: the videos are not in the index, or their files are gone."
        )
