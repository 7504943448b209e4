"""``vidkin train``: check a recipe, train a model from a recipe, or learn from review verdicts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import meter, note, say, table, wrote
from vidkin.cli.evaluate import measure_model, print_evaluation
from vidkin.cli.options import (
    DEFAULT_INDEX,
    IndexOption,
    JsonFormat,
    JsonOption,
    open_index,
    parse_setting,
    toml_or_text,
)
from vidkin.errors import InvalidArgumentError, MissingPartError, VidkinError, WeightsUnavailableError
from vidkin.rendering.text import command_line, number, print_json, printable

if TYPE_CHECKING:
    from vidkin.cli.console import Meter
    from vidkin.review import CutReview, MeasureReview
    from vidkin.training import (
        ClassifierEvaluation,
        Evaluation,
        Recipe,
        RecipePreview,
        TrainingProgress,
        TrainingReport,
    )

_PREVIEW_FILE = "first-batch.png"

# Subcategories in the table.
_MOST_ROWS = 30


def check_recipe(recipe: Recipe, folder: Path, *, json: bool) -> int:
    """Show items, labels, split and network, and draw the first batch into the folder; the number of broken items."""
    from vidkin._base.files import create_output_folder
    from vidkin.rendering.training import draw_first_batch
    from vidkin.training import preview_recipe

    with meter("reading the first batch") as bar:
        preview = preview_recipe(recipe, on_item=bar.update)
        picture = create_output_folder(folder) / _PREVIEW_FILE
        bar.update(0, None, detail="drawing it")
        drawn = draw_first_batch(preview.batch, picture, source=f"first batch of {recipe.name}")
    if json:
        print_json(
            {
                "recipe": recipe.name,
                "data": preview.name,
                "kind": preview.kind,
                "splits": preview.splits,
                "labels": preview.labels,
                "notes": preview.notes,
                "parameters": preview.parameters,
                "dimension": preview.dimension,
                "picture": picture,
                "broken": [{"path": error.path, "cause": error.cause} for error in preview.batch.broken],
            }
        )
        return len(preview.batch.broken)
    _print_preview(preview, picture, drawn)
    return len(preview.batch.broken)


def _print_preview(preview: RecipePreview, picture: Path, drawn: int) -> None:
    recipe, batch = preview.recipe, preview.batch
    splits = ", ".join(f"{count:,} {name}" for name, count in preview.splits.items())
    items = f"{printable(preview.name)}: {number(sum(preview.splits.values()), 'item')} ({preview.kind})"
    if preview.labels:
        categories = {label.category for label in preview.labels}
        say(
            f"{items}, {number(len(categories), 'category', 'categories')}, "
            f"{number(len(preview.labels), 'subcategory', 'subcategories')}; {splits}"
        )
        # Zeros are left out, so that a part without items has no column.
        rows = [
            [
                printable(label.category),
                printable(label.subcategory),
                *(f"{count:,}" if count else "" for count in (label.train, label.validation, label.test)),
            ]
            for label in preview.labels[:_MOST_ROWS]
        ]
        columns = [("category", "left"), ("subcategory", "left")]
        columns += [(name, "right") for name in ("train", "validation", "test")]
        table(None, columns, rows)
        if len(preview.labels) > len(rows):
            more = number(len(preview.labels) - len(rows), "more subcategory", "more subcategories")
            note(f"{more} not shown; --format json lists all.")
    else:
        say(f"{items}, no labels; {splits}")
    if recipe.data.excerpts > 1:
        say(f"Each training video becomes {recipe.data.excerpts} excerpts (data.excerpts).")
    vectors = "descriptors" if recipe.is_comparator else "embeddings"
    objectives = " + ".join(part.name for part in recipe.objectives)
    schedule = f"{number(recipe.schedule.steps, 'step')} of {number(len(batch.items), 'item')}"
    network = recipe.model.get("extractor" if recipe.is_comparator else "backbone")
    on = "" if recipe.model["kind"] == "frame_encoder" else f" on {network}"
    say(
        f"{recipe.model['kind']}{on}, {preview.parameters:,} weights to train, {vectors} of "
        f"{preview.dimension} values; {objectives}, {schedule}"
    )
    rules = recipe.validation
    say(f"Validation: {rules.measure}, every {rules.every} steps" if rules.every else "No validation")
    for text in preview.notes:
        note(f"Note: {text}", style="yellow")
    for error in batch.broken:
        note(f"Cannot be read: {error}", style="yellow")
    wrote(picture, f"{drawn} of the {number(len(batch.items), 'item')} of the first batch")
    note("Nothing was trained. The same command without --check trains.")


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
        if use is False:
            use_measure(collection.place, use=False)
            use_detector(collection.place, use=False)
            if json:
                print_json({"index": index, "use": False, "runs": {}})
            else:
                say("Searches and shots use what they used before any review.")
            return
        labels = Labels.open(collection.path)
        if not labels.pairs and not labels.cuts:
            raise InvalidArgumentError(
                f"{index} has no verdicts; judge pairs on the page Review of `vidkin serve --index {index}`"
            )
        runs: dict[str, CutReview | MeasureReview] = {}
        problems: dict[str, str] = {}
        kind: type[VidkinError] = InvalidArgumentError
        with meter("training on verdicts") as bar:
            for name, given, train in (
                ("measure", labels.pairs, train_measure),
                ("cuts", labels.cuts, train_cuts),
            ):
                if given:
                    try:
                        runs[name] = train(collection, on_progress=bar.update)
                    except (InvalidArgumentError, MissingPartError) as error:
                        problems[name] = str(error)
                        kind = type(error)
    if not runs:
        raise kind("; ".join(problems.values()))
    if use:
        for name, switch in (("measure", use_measure), ("cuts", use_detector)):
            if name in runs:
                switch(collection.place, use=True)
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
            "scorer" if name == "measure" else name,
            *map(str, (run.trained_on, run.held_back)),
            f"{run.before:.3f}",
            f"{run.after:.3f}",
            run.judgment,
        ]
        for name, run in runs.items()
    ]
    table(None, [*columns, ("is it better?", "left")], rows)
    note(
        "Figures are of verdicts that the training did not see: of a scorer the share of pairs of verdicts in the "
        "right order, of cuts F1."
    )
    missing = max(run.missing for run in runs.values())
    if missing:
        note(f"{number(missing, 'verdict')} left out: the videos are not in the index, or their files are gone.")


_PICTURE_FILE = "quadlets.png"

_EXAMPLE = "schedule.steps=100"

# For the encoder that comes with vidkin: after 100 steps on 180 flowers of three kinds it is right on 72 %, with the
# .002 of the large backbones on 56 %.
_SHIPPED_RATE = 0.01


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A TOML file, the name of a recipe that comes with vidkin, or `review` for verdicts on an index.",
            metavar="RECIPE",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the model.", show_default="<name>-model", file_okay=False),
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
    reduced: Annotated[
        bool,
        typer.Option("--reduced", hidden=True),
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the recipe with every default and exit.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Print items, labels and split, draw the first batch into first-batch.png, and exit.",
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume/--restart", hidden=True)] = True,
    picture: Annotated[bool, typer.Option("--picture/--no-picture", hidden=True)] = True,
    evaluate: Annotated[bool, typer.Option("--evaluate/--no-evaluate", hidden=True)] = True,
    index: IndexOption = DEFAULT_INDEX,
    use: Annotated[
        bool | None,
        typer.Option(
            "--use/--no-use",
            help="With `review`: use the trained result, or go back to the previous one.",
            show_default=False,
        ),
    ] = None,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Train a model from RECIPE, a TOML file with data, model, objective and schedule.

    Run the same command again to resume after an interruption; the weights at the end are the same. --restart begins
    again. Without RECIPE the recipes that come with vidkin are listed.
    """
    is_json = format == "json"
    if recipe == "review":
        if not is_helper():
            train_on_review(index, use=use, json=is_json)
        return
    with meter("starting"):
        from vidkin.training import available_recipes, show_recipe

    if recipe is None and not show:
        hint = "`vidkin train NAME` trains one; `vidkin train --show NAME` prints it as a file to edit."
        files = resources.files("vidkin.training") / "recipes"
        list_recipes({name: files / f"{name}.toml" for name in available_recipes()}, hint, json=is_json)
        return
    chosen = _chosen(recipe or available_recipes()[0], data or [], settings or [], reduced=reduced)
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
        if check_recipe(chosen, folder, json=is_json):
            raise typer.Exit(Status.SOME_FAILED)
        return
    from vidkin.training import train as train_model

    if recipe is not None and not reduced:
        _tell_without_gpu(recipe, chosen)
    with meter(f"training {chosen.name}") as bar:

        def show_progress(progress: TrainingProgress) -> None:
            terms = [f"{name} {value:.3f}" for name, value in progress.terms.items() if name != "gradient"]
            detail = "reading items" if progress.phase == "reading" else "  ".join(terms)
            bar.update(progress.done, progress.total, detail=detail)

        try:
            report = train_model(chosen, output=folder, resume=resume, on_progress=show_progress)
        except WeightsUnavailableError:
            offline = _without_network(recipe, chosen)
            if offline is None:
                raise
            note(
                f"The weights of {chosen.model['backbone']} are not in the local cache and cannot be downloaded. "
                "Training with the encoder that comes with vidkin instead; it is smaller, so expect less accuracy. "
                f"To resume once there is a network, add --set model.backbone=vidkin --set "
                f"schedule.learning_rate={offline.schedule.learning_rate:g}.",
                style="yellow",
            )
            chosen = offline
            report = train_model(chosen, output=folder, resume=resume, on_progress=show_progress)
        labeled = chosen.data.kind == "labeled"
        # A classifier has classes and no quadlets.
        is_classifier = chosen.model.get("kind") == "two_head"
        drawn = _draw(bar, chosen, folder) if picture and labeled and not is_classifier else None
        figures = _measure(bar, folder, labeled=labeled) if evaluate else None
    measured = None if isinstance(figures, str) else figures
    if is_json:
        why_not = figures if isinstance(figures, str) else None
        print_json(
            {
                "recipe": chosen.name,
                "picture": drawn,
                **report.to_dict(),
                "evaluation": measured and measured.to_dict(),
                "not_evaluated": why_not,
            }
        )
    else:
        _print(report, drawn, figures, labeled=labeled, is_classifier=is_classifier)
    if report.broken or (measured is not None and measured.broken):
        raise typer.Exit(Status.SOME_FAILED)


def _tell_without_gpu(name: str, chosen: Recipe) -> None:
    """Say that a recipe for a GPU is about to train on a CPU."""
    from vidkin.training.recipe_file import has_reduced_form
    from vidkin.training.state import choose_device

    if has_reduced_form(name) and choose_device(chosen.schedule).type == "cpu":
        note(
            f"{name} is made for a GPU, and there is none here: it will take very long. --reduced trains it at a size "
            "for a CPU. Stopping is safe: the same command resumes.",
            style="yellow",
        )


def _without_network(name: str | None, chosen: Recipe) -> Recipe | None:
    """The recipe with the encoder that comes with vidkin; None unless a recipe of vidkin itself chose the backbone."""
    from vidkin.training import available_recipes, load_recipe
    from vidkin.training.recipe_file import recipe_tables

    if chosen.model.get("kind") != "two_head" or chosen.weights or name not in available_recipes():
        return None
    shipped = load_recipe(name)
    if chosen.model.get("backbone") != shipped.model.get("backbone"):
        return None
    tables = recipe_tables(chosen)
    tables["model"]["backbone"] = "vidkin"
    if chosen.schedule.learning_rate == shipped.schedule.learning_rate:
        tables["schedule"]["learning_rate"] = _SHIPPED_RATE
    return load_recipe(tables)


def is_helper() -> bool:
    """Whether `torchrun` started this process beside a first one, which does the talking."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0"


def _chosen(source: str, data: Sequence[str], settings: Sequence[str], *, reduced: bool) -> Recipe:
    """The recipe with the settings of the command line."""
    from vidkin.training import load_recipe
    from vidkin.training.recipe_file import recipe_tables

    recipe = load_recipe(source, reduced=reduced)
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
    rows = [[name, file.read_text("utf-8").splitlines()[0].removeprefix("# ")] for name, file in recipes.items()]
    table("Recipes that come with vidkin", [("name", "left"), ("what it is", "left")], rows)
    note(hint)


def _draw(bar: Meter, recipe: Recipe, folder: Path) -> Path | None:
    """Draw quadlets of the test items, or of the training items if the test has none; None if that fails."""
    from vidkin.datasets import open_labelled, read_split
    from vidkin.models import load_model
    from vidkin.rendering.training import draw_quadlets
    from vidkin.training.division import can_measure

    data = recipe.data
    try:
        labelled = open_labelled(data.source, reader=data.reader, **data.options)
        split = data.split or (folder / "split.json" if "train" not in labelled.split_counts() else "")
        labelled = read_split(labelled, split) if split else labelled
        part = labelled.part("train")
        if "test" in labelled.split_counts() and can_measure("qp", test := labelled.part("test"), part):
            part = test
        path, source = folder / _PICTURE_FILE, "quadlets of the run in this folder"
        bar.update(0, None, detail="drawing quadlets")
        draw_quadlets(load_model(folder), part, path, cache=folder / "features", threads=data.threads, source=source)
    except VidkinError as error:
        note(f"Quadlets were not drawn: {error}", style="yellow")
        return None
    return path


def _measure(bar: Meter, folder: Path, *, labeled: bool) -> Evaluation | ClassifierEvaluation | str:
    """The figures of the test split, or the sentence why there are none."""
    from vidkin.training import open_evaluation_set

    if not labeled:
        return "No figures of a test split: the training used no labels."
    bar.update(0, None, detail="evaluating")
    try:
        labelled = open_evaluation_set(folder)
        if not labelled.split_counts().get("test"):
            return "No figures of a test split: all items are in other splits (data.test)."
        return measure_model(folder, labelled, on_item=bar.update)[0]
    except VidkinError as error:
        return f"No figures of the test split: {error}"


def _print(
    report: TrainingReport,
    drawn: Path | None,
    figures: Evaluation | ClassifierEvaluation | str | None,
    *,
    labeled: bool,
    is_classifier: bool,
) -> None:
    rows = [[name, f"{value:.4f}"] for name, value in report.terms.items()]
    if report.best is not None:
        best = f"{100 * report.best:.1f} %" if is_classifier else f"{report.best:.4f}"
        rows.append([f"validation {report.measure}, step {report.best_step}", best])
    table("Last steps", [("term", "left"), ("value", "right")], rows)
    ended = " (stopped early: validation did not improve)" if report.stopped_early else ""
    resumed = f", {report.resumed_from} of them earlier" if report.resumed_from else ""
    wrote(report.output, f"{number(report.steps, 'step')}{resumed}{ended}")
    if report.collapsed:
        note(
            f"The embeddings collapsed at step {report.collapsed_at}: this model cannot tell anything apart.",
            style="bold yellow",
        )
    for file, cause in report.broken:
        note(f"Left out: {file}: {cause}", style="yellow")
    if drawn is not None:
        wrote(drawn, "sampled quadlets")
    if isinstance(figures, str):
        note(printable(figures), style="yellow" if labeled else "dim")
    elif figures is not None:
        print_evaluation(figures)
        for file, cause in figures.broken:
            note(f"Left out of the test: {file}: {cause}", style="yellow")
    model = command_line([printable(os.fspath(report.output))])
    index = f"`vidkin index FOLDER --model {model}`"
    if is_classifier:
        if report.best is not None:
            figure, share = report.measure.replace("_", " ").capitalize(), 100 * report.best
            say(f"{figure} {share:.1f} % on the validation split, by which the step was chosen.")
        note(f"Next: `vidkin classify {model} FILE`, `vidkin evaluate {model} DATA` for other data, or {index}.")
    else:
        note(f"Next: `vidkin evaluate {model} DATA` for other data, or {index}." if labeled else f"Next: {index}.")
