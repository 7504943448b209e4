"""``vidkin train``: check a recipe, train a model from a recipe, or learn from review verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli import options
from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import meter, note, print_data, say, table, wrote
from vidkin.cli.evaluate import measure_model, print_evaluation
from vidkin.cli.options import JsonFormat, rare_option
from vidkin.errors import InvalidArgumentError, MissingPartError, VidkinError, WeightsUnavailableError
from vidkin.rendering import recipes as words
from vidkin.rendering.text import command_line, number, percent, print_json, printable

if TYPE_CHECKING:
    from vidkin.cli.console import Meter
    from vidkin.review import CutReview, MeasureReview
    from vidkin.training import ClassifierEvaluation, Evaluation, Recipe, TrainingProgress, TrainingReport

_PREVIEW_FILE, _QUADLETS_FILE = "first-batch.png", "quadlets.png"

# Subcategories in the table of a check.
_MAX_ROWS = 30


def train(
    recipe: Annotated[str | None, typer.Argument(metavar="RECIPE")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", show_default="<name>-model", file_okay=False)] = None,
    data: Annotated[list[str] | None, typer.Option("--data")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE")] = None,
    reduced: Annotated[bool, rare_option("--reduced")] = False,
    show: Annotated[bool, typer.Option("--show")] = False,
    check: Annotated[bool, typer.Option("--check")] = False,
    resume: Annotated[bool, rare_option("--resume/--restart")] = True,
    picture: Annotated[bool, rare_option("--picture/--no-picture")] = True,
    evaluate: Annotated[bool, rare_option("--evaluate/--no-evaluate")] = True,
    index: options.IndexOption = DEFAULT_INDEX,
    use: Annotated[bool | None, typer.Option("--use/--no-use", show_default=False)] = None,
    format: options.JsonOption = JsonFormat.TABLE,
) -> None:
    """Train a model from RECIPE, a TOML file with data, model, objective and schedule.

    Run the same command again to resume after an interruption; the final weights are the same. --restart starts
    over. Without RECIPE the recipes that come with vidkin are listed.

    Args:
        recipe: A TOML file, the name of a recipe that comes with vidkin, or `review` for verdicts on an index.
        output: Folder of the model.
        data: Folder or file of the data, instead of data.source; repeatable for recipes without labels.
        settings: Override a setting, for example schedule.steps=100; repeatable.
        show: Print the recipe with every default and exit.
        check: Print items, labels and split, draw the first batch into first-batch.png, and exit.
        use: With `review`: use the trained result, or go back to the previous one.
    """
    if recipe == "review":
        if not is_helper():
            _train_on_verdicts(index, use, format)
        return
    with meter("starting"):
        from vidkin.training import TrainingInterrupted, available_recipes, show_recipe
        from vidkin.training import train as train_model
        from vidkin.training.recipe_file import use_shipped_encoder

    if recipe is None and not show:
        hint = "`vidkin train NAME` trains one; `vidkin train --show NAME` prints it as a file to edit."
        files = resources.files("vidkin.training") / "recipes"
        list_recipes({name: files / f"{name}.toml" for name in available_recipes()}, hint, json=format == "json")
        return
    chosen = _load(recipe or available_recipes()[0], data or [], settings or [], reduced=reduced)
    if show:
        say(show_recipe(chosen).rstrip("\n"))
        return
    folder = (output or Path(f"{chosen.name}-model")).expanduser()
    if is_helper():
        with suppress(TrainingInterrupted):
            if not check:
                train_model(chosen, output=folder, resume=resume)
        return
    if check:
        _check_recipe(chosen, folder, format)
        return
    if recipe is not None and not reduced:
        _warn_without_gpu(recipe, chosen)
    with meter(f"training {chosen.name}") as bar:

        def show_progress(progress: TrainingProgress) -> None:
            terms = [f"{name} {value:.3f}" for name, value in progress.terms.items() if name != "gradient"]
            detail = "reading items" if progress.phase == "reading" else "  ".join(terms)
            bar.update(progress.done, progress.total, detail=detail)

        try:
            report = train_model(chosen, output=folder, resume=resume, on_progress=show_progress)
        except WeightsUnavailableError:
            offline = use_shipped_encoder(chosen, recipe)
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
        drawn = _draw(bar, chosen, folder) if picture else None
        figures = _measure(bar, chosen, folder) if evaluate else None
    reason, measured = (figures, None) if isinstance(figures, str) else (None, figures)
    document = {"recipe": chosen.name, "picture": drawn, **report.to_dict(), "not_evaluated": reason}
    if not print_data(format, document | {"evaluation": measured and measured.to_dict()}):
        _print(report, chosen, drawn, reason, measured)
    if report.broken or (measured is not None and measured.broken):
        raise typer.Exit(Status.SOME_FAILED)


def is_helper() -> bool:
    """Whether `torchrun` started this as a secondary process; the first one prints all messages."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0"


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
    rows = [(name, file.read_text("utf-8").splitlines()[0].removeprefix("# ")) for name, file in recipes.items()]
    table("Recipes that come with vidkin", [("name", "left"), ("what it is", "left")], rows)
    note(hint)


def _load(source: str, data: Sequence[str], settings: Sequence[str], *, reduced: bool) -> Recipe:
    """The recipe with the settings of the command line."""
    from vidkin.training import load_recipe
    from vidkin.training.recipe_file import override_setting, recipe_tables

    recipe = load_recipe(source, reduced=reduced)
    if not data and not settings:
        return recipe
    tables = recipe_tables(recipe)
    if data:
        tables["data"] |= {"source": data[0], "folders": list(data[1:])}
    for setting in settings:
        name, value = options.parse_setting(setting, "--set", "schedule.steps=100")
        override_setting(tables, name, options.toml_or_text(value))
    return load_recipe(tables)


def _warn_without_gpu(name: str, recipe: Recipe) -> None:
    """Warn that a recipe for a GPU is about to train on a CPU."""
    from vidkin.training.recipe_file import has_reduced_form
    from vidkin.training.state import choose_device

    if has_reduced_form(name) and choose_device(recipe.schedule).type == "cpu":
        note(
            f"{name} is made for a GPU, and there is none here: it will take very long. --reduced trains it at a size "
            "for a CPU. Stopping is safe: the same command resumes.",
            style="yellow",
        )


def _draw(bar: Meter, recipe: Recipe, folder: Path) -> Path | None:
    """Draw quadlets of the test items, or of the training items if the test has none; None if that fails."""
    # A classifier has classes and no quadlets.
    if recipe.data.kind != "labeled" or recipe.model.get("kind") == "two_head":
        return None
    from vidkin.models import load_model
    from vidkin.rendering.training import draw_quadlets
    from vidkin.training import open_evaluation_set
    from vidkin.training.division import can_measure

    bar.update(0, None, detail="drawing quadlets")
    path, source = folder / _QUADLETS_FILE, "quadlets of the run in this folder"
    cache, threads = folder / "features", recipe.data.threads
    try:
        labeled = open_evaluation_set(folder)
        part = labeled.part("train")
        if "test" in labeled.split_counts() and can_measure("qp", test := labeled.part("test"), part):
            part = test
        draw_quadlets(load_model(folder), part, path, cache=cache, threads=threads, source=source)
    except VidkinError as error:
        note(f"Quadlets were not drawn: {error}", style="yellow")
        return None
    return path


def _measure(bar: Meter, recipe: Recipe, folder: Path) -> Evaluation | ClassifierEvaluation | str:
    """The figures of the test split, or a sentence about why there are none."""
    if recipe.data.kind != "labeled":
        return "No figures of a test split: the training used no labels."
    from vidkin.training import open_evaluation_set

    bar.update(0, None, detail="evaluating")
    try:
        labeled = open_evaluation_set(folder)
        if not labeled.split_counts().get("test"):
            return "No figures of a test split: all items are in other splits (data.test)."
        return measure_model(folder, labeled, on_item=bar.update)[0]
    except VidkinError as error:
        return f"No figures of the test split: {error}"


def _print(
    report: TrainingReport,
    recipe: Recipe,
    drawn: Path | None,
    reason: str | None,
    figures: Evaluation | ClassifierEvaluation | None,
) -> None:
    is_labeled, is_classifier = recipe.data.kind == "labeled", recipe.model.get("kind") == "two_head"
    table("Last steps", [("term", "left"), ("value", "right")], words.report_cells(report, recipe))
    wrote(report.output, words.describe_report(report))
    if report.collapsed:
        collapsed = f"The embeddings collapsed at step {report.collapsed_at}: this model cannot distinguish anything."
        note(collapsed, style="bold yellow")
    for file, cause in report.broken:
        note(f"Left out: {file}: {cause}", style="yellow")
    if drawn is not None:
        wrote(drawn, "sampled quadlets")
    if reason is not None:
        note(printable(reason), style="yellow" if is_labeled else "dim")
    elif figures is not None:
        print_evaluation(figures)
        for file, cause in figures.broken:
            note(f"Left out of the test: {file}: {cause}", style="yellow")
    if is_classifier and report.best is not None:
        figure = report.measure.replace("_", " ").capitalize()
        say(f"{figure} {percent(report.best)} % on the validation split, by which the step was chosen.")
    model = command_line([printable(os.fspath(report.output))])
    steps = [f"`vidkin classify {model} FILE`"] if is_classifier else []
    steps += [f"`vidkin evaluate {model} DATA` for other data"] if is_labeled else []
    note(f"Next: {', '.join([*steps, f'`vidkin index FOLDER --model {model}`'])}.")


def _check_recipe(recipe: Recipe, folder: Path, format: JsonFormat) -> None:
    """Show items, labels, split and network, and draw the first batch into the folder."""
    from vidkin._base.files import create_output_folder
    from vidkin.rendering.training import draw_first_batch
    from vidkin.training import preview_recipe

    with meter("reading the first batch") as bar:
        preview = preview_recipe(recipe, on_item=bar.update)
        picture = create_output_folder(folder) / _PREVIEW_FILE
        bar.update(0, None, detail="drawing it")
        drawn = draw_first_batch(preview.batch, picture, source=f"first batch of {recipe.name}")
    broken = preview.batch.broken
    fields = ("kind", "splits", "labels", "notes", "parameters", "dimension")
    document = {"recipe": recipe.name, "data": preview.name, **{name: getattr(preview, name) for name in fields}}
    causes = [{"path": error.path, "cause": error.cause} for error in broken]
    if not print_data(format, document | {"picture": picture, "broken": causes}):
        say(words.describe_items(preview))
        rows = list(words.label_cells(preview))
        if rows:
            table(None, words.LABEL_COLUMNS, rows[:_MAX_ROWS])
        if len(rows) > _MAX_ROWS:
            more = number(len(rows) - _MAX_ROWS, "more subcategory", "more subcategories")
            note(f"{more} not shown; --format json lists all.")
        for sentence in words.describe_training(preview):
            say(sentence)
        for text in preview.notes:
            note(f"Note: {text}", style="yellow")
        for error in broken:
            note(f"Cannot be read: {error}", style="yellow")
        wrote(picture, f"{drawn} of the {number(len(preview.batch.items), 'item')} of the first batch")
        note("Nothing was trained. The same command without --check trains.")
    if broken:
        raise typer.Exit(Status.SOME_FAILED)


def _train_on_verdicts(index: str, use: bool | None, format: JsonFormat) -> None:
    """Train on all verdicts of an index that there are enough of; with ``use`` False undo that and train nothing."""
    with meter("starting"):
        from vidkin.review import Labels, train_cuts, train_measure, use_detector, use_measure

    with options.open_index(index) as collection:
        if use is False:
            use_measure(collection.place, use=False)
            use_detector(collection.place, use=False)
            if not print_data(format, {"index": index, "use": False, "runs": {}}):
                say("Searches and shots use what they used before any review.")
            return
        labels = Labels.open(collection.path)
        if not labels.pairs and not labels.cuts:
            raise InvalidArgumentError(
                f"{index} has no verdicts; judge pairs on the page Review of `vidkin serve --index {index}`"
            )
        runs: dict[str, CutReview | MeasureReview] = {}
        problems: dict[str, VidkinError] = {}
        trainers: list[tuple[str, bool, Callable[..., CutReview | MeasureReview]]] = [
            ("measure", bool(labels.pairs), train_measure),
            ("cuts", bool(labels.cuts), train_cuts),
        ]
        with meter("training on verdicts") as bar:
            for name, has_verdicts, train_on in trainers:
                try:
                    if has_verdicts:
                        runs[name] = train_on(collection, on_progress=bar.update)
                except (InvalidArgumentError, MissingPartError) as error:
                    problems[name] = error
    if not runs:
        *_, last = problems.values()
        raise type(last)("; ".join(map(str, problems.values())))
    if use:
        for name, switch in (("measure", use_measure), ("cuts", use_detector)):
            if name in runs:
                switch(collection.place, use=True)
    causes = {name: str(error) for name, error in problems.items()}
    if print_data(format, {"index": index, "use": bool(use), "runs": runs, "problems": causes}):
        return
    columns = [("trained", "left"), *((name, "right") for name in ("on", "held back", "before", "after"))]
    rows = []
    for name, run in runs.items():
        counts, figures = (str(run.trained_on), str(run.held_back)), (f"{run.before:.3f}", f"{run.after:.3f}")
        rows.append(("scorer" if name == "measure" else name, *counts, *figures, run.judgment))
    table(None, [*columns, ("is it better?", "left")], rows)
    note(
        "Figures are of verdicts that the training did not see: of a scorer the share of pairs of verdicts in the "
        "right order, of cuts F1."
    )
    missing = max(run.missing for run in runs.values())
    if missing:
        note(f"{number(missing, 'verdict')} left out: the videos are not in the index, or their files are gone.")
    for cause in causes.values():
        note(cause, style="yellow")
    if use is None:
        note("`vidkin train review --use` makes searches and shots use it, --no-use goes back.")
