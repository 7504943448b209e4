"""``vidkin train``: an encoder from a recipe."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.cli.options import JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.cli.console import Meter
    from vidkin.training import Recipe, TrainingProgress, TrainingReport

__all__ = ["toml_or_text", "train"]

PICTURE_FILE = "quadlets.png"


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A TOML file, or the name of a recipe that comes with vidkin.", metavar="[RECIPE]"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the model.", show_default="<name>-model", file_okay=False
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Another folder or file for data.source.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value, as schedule.steps=100; repeatable."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the recipe with every default, and stop.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--restart", help="Go on from the folder's checkpoint, or start over.")
    ] = True,
    picture: Annotated[
        bool, typer.Option("--picture/--no-picture", help="Draw sampled quadlets into quadlets.png.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Train an encoder by RECIPE: data, model, objective and schedule, as TOML.

    Interrupted or killed at any point, the same command goes on where it stopped and ends with the same weights.
    Without RECIPE the names of those that come with vidkin are listed.
    """
    from vidkin.training import available_recipes, show_recipe

    if recipe is None and not show:
        _list(available_recipes(), json)
        return
    chosen = _chosen(recipe or available_recipes()[0], data, settings or [])
    if show:
        say(show_recipe(chosen).rstrip("\n"))
        return
    folder = output or Path(f"{chosen.name}-model")
    from vidkin.training import train as follow

    with meter(f"training {chosen.name}") as bar:
        report = follow(chosen, output=folder, resume=resume, on_progress=lambda told: _tell(bar, told))
        drawn = _draw(bar, chosen, folder) if picture else None
    if json:
        print_json(
            {"recipe": chosen.name, "collapsed": report.collapsed, "picture": drawn, **vars_of(report)}
        )
    else:
        _print(report, drawn)
    if report.broken:
        raise typer.Exit(Status.SOME_FAILED)


def vars_of(report: TrainingReport) -> dict[str, Any]:
    """The fields of a report, for JSON."""
    return {name: getattr(report, name) for name in report.__dataclass_fields__}


def _chosen(source: str, data: str | None, settings: Sequence[str]) -> Recipe:
    """The recipe with what the command line says instead."""
    from vidkin.training import load_recipe, show_recipe

    recipe = load_recipe(source)
    if data is None and not settings:
        return recipe
    tables = tomllib.loads(show_recipe(recipe))
    if data is not None:
        tables["data"]["source"] = data
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InvalidArgumentError(f"--set {setting}: write NAME=VALUE, as schedule.steps=100")
        _put(tables, name.strip().split("."), toml_or_text(text.strip()), setting)
    return load_recipe(tables)


def _put(tables: dict[str, Any], path: list[str], value: Any, setting: str) -> None:
    place: Any = tables
    if path[0] == "objective":
        # The first objective, unless a number says which: objective.1.weight=0.5
        which = int(path.pop(1)) if len(path) > 2 and path[1].isdigit() else 0
        if which >= len(tables["objective"]):
            raise InvalidArgumentError(
                f"--set {setting}: the recipe has {number(len(tables['objective']), 'objective')}, counted from 0"
            )
        place, path = tables["objective"][which], path[1:]
        if path == ["name"]:
            # Another loss has other parameters.
            weight = place.get("weight", 1.0)
            place.clear()
            place["weight"] = weight
    for part in path[:-1]:
        place = place.setdefault(part, {})
        if not isinstance(place, Mapping):
            raise InvalidArgumentError(f"--set {setting}: {part} is no table")
    if not path or not path[-1]:
        raise InvalidArgumentError(f"--set {setting}: write NAME=VALUE, as schedule.steps=100")
    place[path[-1]] = value


def toml_or_text(text: str) -> Any:
    """As TOML; what is none, like a bare word, is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _list(names: Sequence[str], json: bool) -> None:
    if json:
        print_json({"recipes": list(names)})
        return
    table(
        "Recipes that come with vidkin", [("name", "left"), ("", "left")], [[n, _comment(n)] for n in names]
    )
    note("vidkin train NAME follows one; vidkin train --show NAME prints it, ready to be changed.")


def _comment(name: str) -> str:
    """The first line of a recipe's file."""
    from importlib import resources

    text = (resources.files("vidkin.training") / "recipes" / f"{name}.toml").read_text("utf-8")
    return text.splitlines()[0].removeprefix("# ")


def _tell(bar: Meter, told: TrainingProgress) -> None:
    shown = ("reading items" if told.phase == "reading" else "") or "  ".join(
        f"{name} {value:.3f}" for name, value in told.terms.items() if name != "gradient"
    )
    bar.update(told.done, told.total, detail=shown)


def _draw(bar: Meter, recipe: Recipe, folder: Path) -> Path | None:
    """Quadlets of the test items, or where there are none of the training items."""
    from vidkin.datasets import open_labelled, read_split
    from vidkin.errors import VidkinError
    from vidkin.models import load_model
    from vidkin.rendering.quadlets import draw_quadlets

    data = recipe.data
    try:
        labelled = open_labelled(data.source, reader=data.reader, **data.options)
        split = data.split or (folder / "split.json" if "train" not in labelled.split_counts() else "")
        labelled = read_split(labelled, split) if split else labelled
        part = labelled.part("test" if "test" in labelled.split_counts() else "train")
        path = folder / PICTURE_FILE
        bar.update(0, None, detail="drawing quadlets")
        draw_quadlets(load_model(folder), part, path, cache=folder / "features", threads=data.threads)
    except VidkinError as error:
        note(f"No picture of quadlets: {error}", style="yellow")
        return None
    return path


def _print(report: TrainingReport, drawn: Path | None) -> None:
    rows = [[name, f"{value:.4f}"] for name, value in report.terms.items()]
    if report.best is not None:
        rows.append([f"validation {report.measure}, step {report.best_step}", f"{report.best:.4f}"])
    table("Last steps", [("", "left"), ("", "right")], rows)
    ended = " (ended early: validation got no better)" if report.stopped_early else ""
    resumed = f", {report.resumed_from} of them earlier" if report.resumed_from else ""
    say(path_text(report.output).append(f": {number(report.steps, 'step')}{resumed}{ended}"))
    if report.collapsed:
        note(
            f"The embeddings have collapsed (step {report.collapsed_at}): this model tells nothing apart.",
            style="bold yellow",
        )
    for file, cause in report.broken:
        note(f"Left out: {file}: {cause}", style="yellow")
    if drawn is not None:
        note(f"Sampled quadlets: {drawn}")
    note(f"Next: vidkin evaluate {report.output}, or vidkin index FOLDER --model {report.output}")
