"""``vidkin train-shots``: train a shot detector on labeled shots."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, meter, note, path_text, say, table, wrote
from vidkin.cli.options import DeviceOption, JsonFormat, JsonOption, parse_setting, toml_or_text
from vidkin.cli.train import is_helper, list_recipes
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import resolve_device
from vidkin.rendering.text import number, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin_research.learned.recipes import ShotMethod
    from vidkin_research.learned.train import ShotTrainingProgress, ShotTrainingReport

_EXAMPLE = "shots.steps=100"


def train_shots(
    labels: Annotated[
        Path | None,
        typer.Argument(help="Labeled shots: a JSON file with video, fps, shots and critical.", metavar="[LABELS.json]"),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            "-r",
            help="Recipe: a TOML file with [shots] or [segments] and [model], or the name of a built-in recipe.",
            show_default="extended; deepsbd for that method",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="Training method: learned, or one from an installed package, such as deepsbd.",
            show_default="as in the recipe",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output folder for the model.", file_okay=False)
    ] = Path("shots-model"),
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Frames per second to sample.", show_default="as in the recipe"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Override a setting, for example shots.steps=100; repeatable."
        ),
    ] = None,
    reduced: Annotated[
        bool,
        typer.Option("--reduced", help="Train a GPU recipe at a reduced size that a CPU can manage."),
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the recipe with all defaults and exit.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="List the labeled videos and their problems, and exit."),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume/--restart", help="Resume from the checkpoint in the folder, or start over."),
    ] = True,
    device: DeviceOption = "auto",
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Train a shot detector on labeled shots: a learned metric with a fitted rule, or DeepSBD.

    Use the result with `vidkin shots VIDEO --detector FOLDER`. For a learned metric, every fourth video is held out to
    fit the thresholds. Run the same command again to resume after an interruption. Without LABELS.json, the built-in
    recipes are listed.
    """
    from vidkin_research.learned.recipes import (
        LEARNED,
        available_shot_recipes,
        has_reduced_shot_form,
        load_shot_recipe,
        shot_method_of,
        shot_recipe_tables,
        show_shot_recipe,
    )

    if labels is None and not show:
        hint = "`vidkin train-shots LABELS.json --recipe NAME` trains one; `--show` prints it for editing."
        list_recipes(available_shot_recipes(), hint, json=format == "json")
        return
    plan = load_shot_recipe(recipe, method=method, reduced=reduced)
    trained = shot_method_of(plan)
    if rate is not None and trained is not LEARNED:
        raise InvalidArgumentError(
            f"--rate is only for recipes with [shots]; method {trained.name} reads every frame. Leave out --rate or "
            "choose another recipe"
        )
    changes = [*(settings or []), *([f"shots.rate={rate}"] if rate is not None else [])]
    if changes:
        plan = load_shot_recipe(_override(shot_recipe_tables(plan), changes), method=method)
    if show or labels is None:
        say(show_shot_recipe(plan).rstrip("\n"))
        return
    if check:
        if not is_helper():
            _check(trained, labels, json=format == "json")
        return
    from vidkin_research.learned.train import train_shots as train

    if is_helper():
        with suppress(KeyboardInterrupt):
            (trained.train or train)(labels, plan, output=output, resume=resume, device=device)
        return
    if not reduced and has_reduced_shot_form(recipe or trained.default) and resolve_device(device) == "cpu":
        note(
            f"{recipe or trained.default} is for a GPU and takes very long on the CPU; use --reduced to train at a "
            "smaller size. You can interrupt the run and resume it with the same command.",
            style="yellow",
        )
    if trained.train is not None:
        _train_other(trained, labels, plan, output, resume, device, format == "json")
        return
    with meter("training") as bar:

        def show_progress(progress: ShotTrainingProgress) -> None:
            terms = (f"{name} {value:.3f}" for name, value in progress.terms.items() if name != "gradient")
            bar.update(progress.done, progress.total, detail=progress.video or "  ".join(terms))

        report = train(labels, plan, output=output, resume=resume, device=device, on_progress=show_progress)
    _print(report, format == "json")


def _check(method: ShotMethod, labels: Path, *, json: bool) -> None:
    """List the labeled videos and exit with status 1 if any of them cannot be used for training."""
    from vidkin.shots import read_shot_annotations
    from vidkin_research.learned.checking import check_labels

    with meter("reading labels"):
        videos = check_labels(read_shot_annotations(labels), fit_every=method.fit_every)
    if json:
        print_json({"labels": labels, "videos": [video.to_dict() for video in videos]})
    else:
        rows: list[list[str | Text]] = [
            [
                path_text(video.video),
                str(video.shots),
                str(video.hard),
                str(video.gradual),
                str(video.critical),
                "fitting the thresholds (held out)" if video.is_held_out else "training",
            ]
            for video in videos
        ]
        columns = [(title, "right") for title in ("shots", "hard cuts", "gradual", "critical")]
        table(None, [("video", "left"), *columns, ("used for", "left")], rows)
    problems = [video for video in videos if video.problem]
    for video in problems:
        error_line(f"{video.video}: {video.problem}")
    if problems:
        raise typer.Exit(Status.SOME_FAILED)


def _print(report: ShotTrainingReport, json: bool) -> None:
    if report.collapsed:
        note(
            "All embeddings have nearly the same value, so the model is useless. Choose another loss "
            "(radial_detached, quadlet) or a lower learning rate.",
            style="yellow",
        )
    if json:
        print_json(
            {
                "model": report.output,
                "videos": {"trained": report.trained_videos, "fitted": report.fitted_videos},
                "critical": report.has_critical,
                "gradual": report.has_gradual,
                **report.to_dict(),
            }
        )
        return
    row = [
        number(report.trained_videos, "video"),
        number(report.fitted_videos, "video"),
        f"{report.loss:.4f}",
        "yes" if report.has_gradual else "not fitted",
        "yes" if report.has_critical else "not fitted",
    ]
    columns = [(title, "right") for title in ("trained on", "fitted on", "loss")]
    columns += [(title, "left") for title in ("gradual", "critical")]
    table(None, columns, [row])
    wrote(report.output, "use it with vidkin shots --detector")


def _train_other(
    method: ShotMethod, labels: Path, plan: Any, output: Path, resume: bool, device: str, json: bool
) -> None:
    """Train with a method from another package and print its report."""
    assert method.train is not None
    with meter(method.title) as bar:
        report = method.train(
            labels,
            plan,
            output=output,
            resume=resume,
            device=device,
            on_progress=lambda what, done, total: bar.update(done, total, detail=what),
        )
    if json:
        print_json({"model": report.output, **report.to_dict()})
        return
    row = method.row(report) if method.row is not None else {}
    if row:
        columns = [(title, "left" if cell.isalpha() else "right") for title, cell in row.items()]
        table(None, columns, [list(row.values())])
    wrote(report.output, "use it with vidkin shots --detector")


def _override(content: dict[str, dict[str, Any]], settings: list[str]) -> dict[str, Any]:
    """Return the recipe's content with these settings overridden."""
    for setting in settings:
        name, value = parse_setting(setting, "--set", _EXAMPLE)
        where, _, field = name.partition(".")
        if not field or where not in content:
            raise InvalidArgumentError(
                f"--set {setting}: the recipe has the tables {', '.join(content)}; use the form {_EXAMPLE}"
            )
        content[where][field] = toml_or_text(value)
    return content
