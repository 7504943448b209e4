"""``vidkin demo``: the main commands on a few made videos or one's own, a film cut into shots, and a short training."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from vidkin._base.install import install_command
from vidkin._base.outputs import describe_source
from vidkin.cli.commands import is_quiet
from vidkin.cli.console import meter, note, path_text, plain_text, say
from vidkin.cli.options import open_index
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, MediaError, MissingPartError
from vidkin.rendering.text import clock, number, printable

_FOLDER = Path("vidkin-demo")
_CLIP_SECONDS, _CLIP_EDIT = 5.0, "logo"

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
    folder: Annotated[Path, typer.Argument(help="Folder for all generated files; a second run reuses it.")] = _FOLDER,
    videos: Annotated[
        Path | None, typer.Option("--videos", metavar="FOLDER", help="Use your own videos instead.")
    ] = None,
    training: Annotated[
        bool, typer.Option("--training", help="Show a short training instead; it needs the extra `train`.")
    ] = False,
) -> None:
    """Build a small collection, then index, search, match, find duplicates and cut a film.

    Works offline. With --videos only the steps on an index are shown, with --training only how a model is trained.
    """
    if training and videos is not None:
        raise typer.BadParameter("use --training or --videos, not both: the training makes its own clips")
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{folder}: is a file; choose a folder for the demonstration")
    folder.mkdir(parents=True, exist_ok=True)
    if training:
        _show_training(context, folder)
        return
    if videos is None:
        _show_index(context, folder, *_make_videos(context, folder))
        _show_shots(context, folder)
    else:
        _show_index(context, folder, *_cut_clip(context, folder, videos.expanduser()))
    say("")
    say("What to try next, with your own videos:", style="bold")
    for words in _NEXT:
        say_command(*words, quote=False)
    say("")
    say("See all of it in a browser:", style="bold")
    say_command("serve", "--index", _index_of(folder, videos), "--open")
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


def _index_of(folder: Path, videos: Path | None) -> Path:
    """The index of the made videos, or of a folder of one's own."""
    if videos is None:
        return folder / "collection.vidkin"
    real = videos.expanduser().resolve()
    name = re.sub(r"\W+", "-", printable(real.name)).strip("-") or "videos"
    return folder / f"{name}-{_digest(os.fspath(real))}.vidkin"


def _digest(text: str) -> str:
    return hashlib.blake2b(os.fsencode(text), digest_size=4).hexdigest()


def _fill_index(context: typer.Context, index: Path, *paths: Path) -> None:
    """Show how videos are added to an index; one that another version of vidkin made is rebuilt."""
    try:
        with open_index(index, writing=True, create=True) as collection:
            _ = collection.extractor  # raises if another one made the index
    except CollectionMismatchError:
        # It belongs to the demonstration, and is quickly rebuilt.
        note("The index of an earlier demonstration was made by another version of vidkin; rebuilding it.")
        shutil.rmtree(index)
    say("")
    _run_command(context, "index", *paths, "--index", index)


def _make_videos(context: typer.Context, folder: Path) -> tuple[Path, Path, Path, str]:
    """Make and index videos; the index, the query, the video it is from, and a sentence about the query."""
    from vidkin.datasets import build_samples

    say("Photographs turned into moving clips, and edited copies of them:", style="bold")
    with meter("building samples") as bar:
        samples = build_samples(folder, on_progress=lambda done, total, path: bar.update(done, total, detail=path.name))
    made = f"{len(samples.videos)} videos, {len(samples.copies)} copies"
    say(path_text(folder), f": {made}{'' if samples.built else ' (already there)'}")
    index = _index_of(folder, None)
    _fill_index(context, index, samples.videos_folder, samples.copies_folder)
    query = samples.query
    here = f"{clock(query.start)} - {clock(query.start + query.seconds)}"
    there = f"{clock(query.source_start)} - {clock(query.source_start + query.seconds)}"
    story = f"{query.path.name} is footage of something else, but {here} shows {query.source.name} {there}."
    return index, query.path, query.source, story


def _cut_clip(context: typer.Context, folder: Path, videos: Path) -> tuple[Path, Path, Path, str]:
    """Index a folder and cut a clip of one of its videos; what `_make_videos` returns."""
    from vidkin.datasets import write_copy

    say("Your own videos:", style="bold")
    index = _index_of(folder, videos)
    _fill_index(context, index, videos)
    with open_index(index) as collection:
        records = [record for record in collection.videos() if record.status == "ok" and record.windows > 0]
    if not records:
        raise MediaError(videos, "has no video that can be searched; choose another folder with --videos")
    # The first by name among those that are long enough to cut from, otherwise the longest.
    long_enough = [record for record in records if record.duration >= 2 * _CLIP_SECONDS]
    source = min(long_enough, key=lambda r: r.path) if long_enough else max(records, key=lambda r: r.duration)
    start = max(0.0, source.duration / 2 - _CLIP_SECONDS / 2)
    end = min(source.duration, start + _CLIP_SECONDS)
    # A clip of another video gets another name.
    clip = folder / f"clip-{_digest(describe_source('clip', source.path))}.mp4"
    if not clip.exists():
        with meter("cutting a clip"):
            write_copy(source.path, clip, _CLIP_EDIT, start=start, end=end)
    name = printable(Path(source.path).name)
    story = f"{clip.name} is {name} from {clock(start)} to {clock(end)}, with a logo on it and encoded again."
    return index, clip, Path(source.path), story


def _show_index(context: typer.Context, folder: Path, index: Path, clip: Path, source: Path, story: str) -> None:
    """Search for the clip, compare it with its source, and find copies."""
    say("")
    say(f"{story} Which videos show it?")
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
