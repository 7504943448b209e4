"""``vidkin train``: train a model from a recipe."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin._base.toml import parse_toml
from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption, parse_setting
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number, printable

if TYPE_CHECKING:
    from vidkin.cli.console import Meter
    from vidkin.training import Recipe, TrainingProgress, TrainingReport

__all__ = ["is_helper", "list_recipes", "toml_or_text", "train"]

_PICTURE_FILE = "quadlets.png"
_EXAMPLE = "schedule.steps=100"


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A TOML file, the name of a recipe that comes with vidkin, or `review` for verdicts on an index.",
            metavar="[RECIPE]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the model.", show_default="<name>-model", file_okay=False
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="Folder or file of the data, instead of data.source; repeatable for recipes without labels.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Override a setting, for example schedule.steps=100; repeatable.",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the recipe with every default and exit.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Print items, labels and split, draw the first batch into first-batch.png, and exit.",
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume/--restart", help="Resume from the checkpoint in the folder, or start over."),
    ] = True,
    picture: Annotated[
        bool, typer.Option("--picture/--no-picture", help="Draw sampled quadlets into quadlets.png.")
    ] = True,
    index: IndexOption = DEFAULT_INDEX,
    use: Annotated[
        bool | None,
        typer.Option(
            "--use/--no-use",
            help="With `review`: use the trained result, or go back to the previous one.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Train a model from RECIPE, a TOML file with data, model, objective and schedule.

    Run the same command again to resume after an interruption; the weights at the end are the same. Without RECIPE
    the recipes that come with vidkin are listed.
    """
    if recipe == "review":
        if not is_helper():
            from vidkin.cli.models.train_review import train_on_review

            train_on_review(index, use=use, json=json)
        return
    with meter("starting"):
        from vidkin.training import available_recipes, show_recipe

    if recipe is None and not show:
        hint = "`vidkin train NAME` trains one; `vidkin train --show NAME` prints it as a file to edit."
        files = resources.files("vidkin.training") / "recipes"
        list_recipes({name: files / f"{name}.toml" for name in available_recipes()}, hint, json=json)
        return
    chosen = _chosen(recipe or available_recipes()[0], data or [], settings or [])
    if show:
        say(show_recipe(chosen).rstrip("\n"))
        return
    folder = (output or Path(f"{chosen.name}-model")).expanduser()
    if is_helper():
        if not check:
            from vidkin.training import TrainingInterrupted
            from vidkin.training import train as train_silently

            with suppress(TrainingInterrupted):
                train_silently(chosen, output=folder, resume=resume)
        return
    if check:
        from vidkin.cli.models.check_recipe import check_recipe

        if check_recipe(chosen, folder, json=json):
            raise typer.Exit(Status.SOME_FAILED)
        return
    from vidkin.training import train as train_model

    with meter(f"training {chosen.name}") as bar:

        def show_progress(progress: TrainingProgress) -> None:
            terms = [f"{name} {value:.3f}" for name, value in progress.terms.items() if name != "gradient"]
            detail = "reading items" if progress.phase == "reading" else "  ".join(terms)
            bar.update(progress.done, progress.total, detail=detail)

        report = train_model(chosen, output=folder, resume=resume, on_progress=show_progress)
        labeled = chosen.data.kind == "labeled"
        # A classifier has classes and no quadlets.
        ordered = labeled and chosen.model.get("kind") != "two_head"
        drawn = _draw(bar, chosen, folder) if picture and ordered else None
    if json:
        print_json({"recipe": chosen.name, "picture": drawn, **report.to_dict()})
    else:
        _print(report, drawn, labeled=labeled)
    if report.broken:
        raise typer.Exit(Status.SOME_FAILED)


def is_helper() -> bool:
    """Whether `torchrun` started this process beside a first one, which does the talking."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0"


def _chosen(source: str, data: Sequence[str], settings: Sequence[str]) -> Recipe:
    """The recipe with the settings of the command line."""
    from vidkin.training import load_recipe
    from vidkin.training.recipe_file import recipe_tables

    recipe = load_recipe(source)
    if not data and not settings:
        return recipe
    tables = recipe_tables(recipe)
    if data:
        tables["data"]["source"] = data[0]
        tables["data"]["folders"] = list(data[1:])
    for setting in settings:
        _override(tables, setting)
    return load_recipe(tables)


def _override(tables: dict[str, Any], setting: str) -> None:
    """Set the value at a path such as ``schedule.steps`` or ``objective.1.weight``."""
    name, value = parse_setting(setting, "--set", _EXAMPLE)
    path = name.split(".")
    target: Any = tables
    if path[0] == "objective":
        # The first objective, unless there is a number: objective.1.weight=0.5
        which = int(path.pop(1)) if len(path) > 2 and path[1].isdigit() else 0
        if which >= len(tables["objective"]):
            raise InvalidArgumentError(
                f"--set {setting}: there is no objective {which}; "
                f"the recipe has {number(len(tables['objective']), 'objective')}, counted from 0"
            )
        target, path = tables["objective"][which], path[1:]
        if path == ["name"]:
            # Another loss has different parameters.
            weight = target.get("weight", 1.0)
            target.clear()
            target["weight"] = weight
    for part in path[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, Mapping):
            raise InvalidArgumentError(f"--set {setting}: {part} is a value, not a table of settings")
    if not path or not path[-1]:
        raise InvalidArgumentError(f"--set must be NAME=VALUE, for example {_EXAMPLE}; got {setting}")
    target[path[-1]] = toml_or_text(value)


def list_recipes(recipes: Mapping[str, Traversable], hint: str, *, json: bool) -> None:
    """Print recipes with the comment in their first lines, which describes them.

    Args:
        recipes: Names of the recipes and their files.
        hint: Advice on how to use one.
        json: Print a document instead.
    """
    if json:
        print_json({"recipes": list(recipes)})
        return
    rows = [
        [name, file.read_text("utf-8").splitlines()[0].removeprefix("# ")] for name, file in recipes.items()
    ]
    table("Recipes that come with vidkin", [("name", "left"), ("", "left")], rows)
    note(hint)


def toml_or_text(text: str) -> Any:
    """The value of a TOML literal; anything else, such as a bare word, is text."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _draw(bar: Meter, recipe: Recipe, folder: Path) -> Path | None:
    """Draw quadlets of the test items, or of the training items if the test has none; None if that fails."""
    from vidkin.datasets import open_labelled, read_split
    from vidkin.errors import VidkinError
    from vidkin.models import load_model
    from vidkin.rendering.quadlets import draw_quadlets
    from vidkin.training.run.division import can_measure

    data = recipe.data
    try:
        labelled = open_labelled(data.source, reader=data.reader, **data.options)
        split = data.split or (folder / "split.json" if "train" not in labelled.split_counts() else "")
        labelled = read_split(labelled, split) if split else labelled
        part = labelled.part("train")
        if "test" in labelled.split_counts() and can_measure("qp", test := labelled.part("test"), part):
            part = test
        path = folder / _PICTURE_FILE
        bar.update(0, None, detail="drawing quadlets")
        draw_quadlets(load_model(folder), part, path, cache=folder / "features", threads=data.threads)
    except VidkinError as error:
        note(f"Quadlets were not drawn: {error}", style="yellow")
        return None
    return path


def _print(report: TrainingReport, drawn: Path | None, *, labeled: bool) -> None:
    rows = [[name, f"{value:.4f}"] for name, value in report.terms.items()]
    if report.best is not None:
        rows.append([f"validation {report.measure}, step {report.best_step}", f"{report.best:.4f}"])
    table("Last steps", [("", "left"), ("", "right")], rows)
    ended = " (stopped early: validation did not improve)" if report.stopped_early else ""
    resumed = f", {report.resumed_from} of them earlier" if report.resumed_from else ""
    say(path_text(report.output).append(f": {number(report.steps, 'step')}{resumed}{ended}"))
    if report.collapsed:
        note(
            f"The embeddings collapsed at step {report.collapsed_at}: this model cannot tell anything apart.",
            style="bold yellow",
        )
    for file, cause in report.broken:
        note(f"Left out: {file}: {cause}", style="yellow")
    if drawn is not None:
        note(f"Sampled quadlets: {drawn}")
    model = shlex.quote(printable(os.fspath(report.output)))
    index = f"`vidkin index FOLDER --model {model}`"
    note(f"Next: `vidkin evaluate {model}`, or {index}." if labeled else f"Next: {index}.")
