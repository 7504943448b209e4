"""``vidkin demo``: the main commands on a few made videos, a film cut into shots, and a short training."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from vidkin._base.install import install_command
from vidkin.cli.commands import is_quiet
from vidkin.cli.console import meter, note, path_text, plain_text, say
from vidkin.cli.options import open_index
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, MissingPartError
from vidkin.rendering.text import clock, number, printable

_FOLDER = Path("vidkin-demo")
_INDEX = "collection.vidkin"

# Enough to learn, few enough for the demonstration.
_RECIPE, _STEPS = "photographs", 60
_CLIPS = {"train": 6, "validation": 1, "test": 3}

# Commands to try with one's own videos.
_NEXT = (
    ("index", "~/Videos"),
    ("search", "clip.mp4"),
    ("duplicates", "-o page.html"),
    ("shots", "film.mp4", "-o sheet.html"),
)


def demo(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument()] = _FOLDER,
    training: Annotated[bool, typer.Option("--training")] = False,
) -> None:
    """Build a small collection, then index, search, match, find duplicates and cut a film.

    Works offline. With --training it shows only how a model is trained.

    Args:
        folder: Folder for all generated files; a second run reuses it.
        training: Show a short training instead; it needs the extra `train`.
    """
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{folder}: is a file; choose a folder for the demonstration")
    folder.mkdir(parents=True, exist_ok=True)
    if training:
        _show_training(context, folder)
        return
    _show_index(context, folder)
    _show_shots(context, folder)
    say("")
    say("What to try next, with your own videos:", style="bold")
    for words in _NEXT:
        say_command(*words, quote=False)
    say("")
    say("See all of it in a browser:", style="bold")
    say_command("serve", "--index", folder / _INDEX, "--open")
    say("")
    say("Train a similarity of your own:", style="bold")
    say(plain_text(f"$ {install_command('train')}", style="bold cyan"))
    say_command("demo", *(() if folder == _FOLDER else (folder,)), "--training")


def say_command(*words: str | Path, quote: bool = True) -> None:
    """Print a command line that can be copied."""
    line = " ".join(shlex.quote(printable(os.fspath(word))) if quote else str(word) for word in words)
    say(plain_text(f"$ {_program()} {line}", style="bold cyan"))


def _run_command(context: typer.Context, *words: str | Path) -> None:
    """Print a command line and run it; ends the demonstration if it fails."""
    say_command(*words)
    args = [*(["--quiet"] if is_quiet() else []), *map(str, words)]
    status = context.find_root().command.main(args, prog_name="vidkin", standalone_mode=False)
    if status:
        raise typer.Exit(status)


def _program() -> str:
    """The name or path of this program in a command line."""
    called = sys.argv[0]
    if os.path.basename(called) != "vidkin":
        return "vidkin"
    on_path = shutil.which("vidkin")
    if on_path is not None and os.path.realpath(on_path) == os.path.realpath(called):
        return "vidkin"
    return shlex.quote(os.path.relpath(called))


def _show_index(context: typer.Context, folder: Path) -> None:
    """Make and index videos, search for a clip, compare it with its source, and find copies."""
    from vidkin.datasets import build_samples

    say("Photographs turned into moving clips, and edited copies of them:", style="bold")
    with meter("building samples") as bar:
        samples = build_samples(folder, on_progress=lambda done, total, path: bar.update(done, total, detail=path.name))
    made = f"{len(samples.videos)} videos, {len(samples.copies)} copies"
    say(path_text(folder), f": {made}{'' if samples.built else ' (already there)'}")
    index = folder / _INDEX
    try:
        with open_index(index, writing=True, create=True) as collection:
            _ = collection.extractor  # raises if another one made the index
    except CollectionMismatchError:
        # It belongs to the demonstration, and is quickly rebuilt.
        note("The index of an earlier demonstration was made by another version of vidkin; rebuilding it.")
        shutil.rmtree(index)
    say("")
    _run_command(context, "index", samples.videos_folder, samples.copies_folder, "--index", index)
    query = samples.query
    here = f"{clock(query.start)} - {clock(query.start + query.seconds)}"
    there = f"{clock(query.source_start)} - {clock(query.source_start + query.seconds)}"
    clip, source = query.path, query.source
    say("")
    say(f"{clip.name} is footage of something else, but {here} shows {source.name} {there}. Which videos show it?")
    _run_command(context, "search", clip, "--index", index, "--limit", "5")
    say("")
    say("Where do they match?")
    pictures: list[str | Path] = []
    map_file, pairs_file = folder / f"{clip.stem}-map.png", folder / f"{clip.stem}-pairs.png"
    try:
        from vidkin.rendering.pictures import require_picture_name

        require_picture_name(map_file)
        pictures = ["-o", f"map={map_file}", "-o", pairs_file]
    except MissingPartError as error:
        note(f"Without the pictures: {error}")
    _run_command(context, "match", clip, source, *pictures, "--index", index)
    say("")
    say("Which files are copies of each other?")
    _run_command(context, "duplicates", "--index", index)


def _show_shots(context: typer.Context, folder: Path) -> None:
    """Write a film of five shots and show where it is cut."""
    from vidkin.datasets import SAMPLE_SHOTS, write_sample_film

    film = folder / "film.mp4"
    say("")
    say(f"A film of {number(len(SAMPLE_SHOTS), 'shot')}, the last one dissolved in. Where is it cut?")
    if not film.exists():
        with meter("writing a film"):
            write_sample_film(film)
    _run_command(context, "shots", film)


def _show_training(context: typer.Context, folder: Path) -> None:
    """Train the small recipe of the package for a few steps and measure what it learned."""
    from vidkin.datasets import build_labelled_samples

    say("")
    say("A similarity of your own: a small network learns to tell 14 photographs of 5 kinds apart, from moving clips.")
    with meter("making clips") as bar:
        build_labelled_samples(folder / "labeled", **_CLIPS, on_progress=lambda done, total, _: bar.update(done, total))
    settings = (f"data.source={folder / 'labeled'}", f"schedule.steps={_STEPS}", "validation.every=0")
    options = (word for setting in settings for word in ("--set", setting))
    model = folder / "model"
    _run_command(context, "train", _RECIPE, *options, "--no-evaluate", "--no-picture", "-o", model)
    say("")
    say("How well does it order clips that it has not seen?")
    _run_command(context, "evaluate", model)
    say(
        "QP is the share of quadlets in order: the same thing before the same kind before something else. By chance it "
        "would be 0.17."
    )
    note(f"These were {_STEPS} steps; `vidkin train {_RECIPE}` takes more and learns more.")
    say("")
    say("What to try next, with your own labels, category/subcategory/file:", style="bold")
    say_command("train", "clips", "--data", "~/Labels", "--check", quote=False)
