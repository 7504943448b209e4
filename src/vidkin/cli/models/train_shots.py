"""``vidkin train-shots``: a detector of cuts and critical shots from videos with labeled shots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.options import JsonOption
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.cli.console import Meter
    from vidkin.shots.train import ShotTrainingProgress

__all__ = ["train_shots"]


def train_shots(
    labels: Annotated[
        Path,
        typer.Argument(help="Labeled shots: JSON with video, fps, shots, critical.", metavar="LABELS.json"),
    ],
    recipe: Annotated[Path, typer.Option("--recipe", "-r", help="A TOML file with [shots] and [model].")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the model.", file_okay=False)
    ] = Path("shots-model"),
    show: Annotated[
        bool, typer.Option("--show", help="Print the recipe with every default and exit.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train a metric on labeled shots and fit what counts as a cut and as critical.

    Every fourth video is held out from training, and the thresholds are fitted on these. The folder is a detector for
    `vidkin shots VIDEO --detector FOLDER`.
    """
    from vidkin.shots.learned import load_shot_recipe, show_shot_recipe
    from vidkin.shots.train import train_shots as train

    plan = load_shot_recipe(recipe)
    if show:
        say(show_shot_recipe(plan).rstrip("\n"))
        return
    with meter("training") as bar:
        report = train(labels, plan, output=output, on_progress=lambda progress: _show(bar, progress))
    if report.collapsed:
        note(
            "All embeddings are nearly equal, so the model is of no use: choose another loss (radial_detached, "
            "quadlet) or a lower learning rate.",
            style="yellow",
        )
    if json:
        print_json(
            {
                "model": report.output,
                "videos": {"trained": report.trained_videos, "fitted": report.fitted_videos},
                "loss": report.loss,
                "distance": report.distance,
                "collapsed": report.collapsed,
                "critical": report.has_critical,
                "gradual": report.has_gradual,
                "seconds": report.seconds,
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
    say(path_text(report.output).append(": use it with vidkin shots --detector"))


def _show(bar: Meter, progress: ShotTrainingProgress) -> None:
    terms = (f"{name} {value:.3f}" for name, value in progress.terms.items() if name != "gradient")
    bar.update(progress.done, progress.total, detail=progress.video or "  ".join(terms))
