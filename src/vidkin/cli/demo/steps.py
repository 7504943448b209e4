"""Steps of ``vidkin demo`` beside search: a film cut into shots, and the training of a small similarity."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.rendering.text import clock, number, percent, printable

__all__ = ["say_command", "show_shots", "show_training"]

# Enough to learn, few enough for the demonstration.
_STEPS = 60
_CLIPS = {"train": 6, "validation": 1, "test": 3}
_RECIPE = "photographs"


def say_command(*words: str | Path, quote: bool = True) -> None:
    """Print the command line that repeats a step."""
    line = " ".join(shlex.quote(printable(os.fspath(word))) if quote else str(word) for word in words)
    say(Text(f"$ {_program()} {line}", style="bold cyan"))


def show_shots(folder: Path) -> None:
    """Write a film of five shots and print where it is cut."""
    from vidkin.datasets import SAMPLE_SHOTS, write_sample_film
    from vidkin.shots import detect_shots

    film = folder / "film.mp4"
    say("")
    say(f"A film of {number(len(SAMPLE_SHOTS), 'shot')}, the last one dissolved in. Where is it cut?")
    say_command("shots", film)
    with meter("finding shots"):
        if not film.exists():
            write_sample_film(film)
        shots = detect_shots(film)
    rows = [
        [str(position), clock(shot.start), clock(shot.end), "" if shot.kind == "start" else shot.kind]
        for position, shot in enumerate(shots, start=1)
    ]
    table(None, [("#", "right"), ("start", "right"), ("end", "right"), ("cut in by", "left")], rows)


def show_training(folder: Path) -> None:
    """Train the small recipe of the package for a few steps and print what it learned."""
    from vidkin.datasets import build_labelled_samples
    from vidkin.training import evaluate, load_recipe, train

    output = folder / "model"
    settings = (f"data.source={folder / 'labeled'}", f"schedule.steps={_STEPS}", "validation.every=0")
    say("")
    say(
        "A similarity of your own: a small network learns to tell 14 photographs of 5 kinds apart, from moving clips."
    )
    options = (word for setting in settings for word in ("--set", setting))
    say_command("train", _RECIPE, *options, "-o", output)
    plain = load_recipe(_RECIPE)
    recipe = replace(
        plain,
        data=replace(plain.data, source=os.fspath(folder / "labeled")),
        schedule=replace(plain.schedule, steps=_STEPS),
        validation=replace(plain.validation, every=0),
    )
    with meter("making clips") as bar:
        build_labelled_samples(
            folder / "labeled", **_CLIPS, on_progress=lambda done, total, _: bar.update(done, total)
        )
    with meter("training") as bar:
        report = train(
            recipe,
            output=output,
            on_progress=lambda progress: bar.update(
                progress.done, progress.total, detail="reading clips" if progress.phase == "reading" else ""
            ),
        )
    say(path_text(output).append(f": {number(report.steps, 'step')}"))
    say_command("evaluate", output)
    with meter("evaluating") as bar:
        evaluation = evaluate(
            output, on_item=lambda done, total: bar.update(done, total, detail="clips it has not seen")
        )
    quadlets = number(evaluation.quadlets, "quadlet")
    say(
        f"With clips that it has not seen, {percent(evaluation.qp)} % of {quadlets} are in order: the same thing "
        "before the same kind before something else. By chance it would be 17 %."
    )
    note(
        f"These were {_STEPS} steps; `vidkin train {_RECIPE}` takes all {plain.schedule.steps} and learns more."
    )


def _program() -> str:
    """How this program was called, so that the lines can be copied."""
    called = sys.argv[0]
    if os.path.basename(called) != "vidkin":
        return "vidkin"
    on_path = shutil.which("vidkin")
    if on_path is not None and os.path.realpath(on_path) == os.path.realpath(called):
        return "vidkin"
    return shlex.quote(os.path.relpath(called))
