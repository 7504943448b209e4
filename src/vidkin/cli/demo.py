"""``vidkin demo``: the main commands on a few made videos or one's own, a film cut into shots, and a short training."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin._base.install import install_command
from vidkin._base.outputs import describe_source
from vidkin.cli.commands import Status
from vidkin.cli.console import meter, note, path_text, plain_text, print_matches, print_segments, say, table, wrote
from vidkin.cli.duplicates import find_groups, print_groups
from vidkin.cli.index import fill, print_report
from vidkin.cli.options import open_index_for_writing
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, MediaError, MissingPartError
from vidkin.rendering.text import clock, number, percent, printable
from vidkin.similarity.scale import SURE

if TYPE_CHECKING:
    from vidkin.index import Index, VideoRecord

# Enough to learn, few enough for the demonstration.
_STEPS = 60

_CLIPS = {"train": 6, "validation": 1, "test": 3}

_RECIPE = "photographs"


def say_command(*words: str | Path, quote: bool = True) -> None:
    """Print the command line that repeats a step."""
    line = " ".join(shlex.quote(printable(os.fspath(word))) if quote else str(word) for word in words)
    say(plain_text(f"$ {_program()} {line}", style="bold cyan"))


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
    say("A similarity of your own: a small network learns to tell 14 photographs of 5 kinds apart, from moving clips.")
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
        build_labelled_samples(folder / "labeled", **_CLIPS, on_progress=lambda done, total, _: bar.update(done, total))
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
    note(f"These were {_STEPS} steps; `vidkin train {_RECIPE}` takes all {plain.schedule.steps} and learns more.")
    say("")
    say("What to try next, with your own labels, category/subcategory/file:", style="bold")
    say_command("train", "clips", "--data", "~/Labels", "--check", quote=False)


def _program() -> str:
    """How this program was called, so that the lines can be copied."""
    called = sys.argv[0]
    if os.path.basename(called) != "vidkin":
        return "vidkin"
    on_path = shutil.which("vidkin")
    if on_path is not None and os.path.realpath(on_path) == os.path.realpath(called):
        return "vidkin"
    return shlex.quote(os.path.relpath(called))


_FOLDER = Path("vidkin-demo")
# What the pictures are made of, whichever videos they show.
_PICTURES = "pictures of the demonstration"

_CLIP_SECONDS = 5.0

_CLIP_EDIT = "logo"

# Of the made videos: it finds the cropped ones, too.
_EXTRACTOR = "vidkin"

# Commands to try with one's own videos.
_NEXT = (
    ("index", "~/Videos"),
    ("search", "clip.mp4"),
    ("duplicates", "-o page.html"),
    ("shots", "film.mp4", "-o sheet.html"),
)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the demonstration runs on.

    Attributes:
        index: Folder of the index.
        clip: The query.
        source: The video that the query was made from.
        answers: Files that show the same as ``source``: any of them may come first.
        story: One sentence: what the query is.
    """

    index: Path
    clip: Path
    source: Path
    answers: frozenset[str]
    story: str


def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for all generated files; a second run reuses it.")] = _FOLDER,
    videos: Annotated[Path | None, typer.Option("--videos", help="Use your own folder of videos instead.")] = None,
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
        show_training(folder)
        return
    scene = _made_videos(folder) if videos is None else _own_videos(folder, videos.expanduser())
    with open_index_for_writing(scene.index) as collection:
        say("")
        say(scene.story)
        say_command("search", scene.clip, "--index", scene.index)
        matches = collection.search(os.fspath(scene.clip), limit=5)
        print_matches(matches)
        _show_match(collection, scene, folder)
        say("")
        say("Which files are copies of each other?")
        say_command("duplicates", "--index", scene.index)
        print_groups(find_groups(collection, SURE))
    came_first = bool(matches) and os.path.realpath(matches[0].path) in scene.answers
    if videos is None:
        show_shots(folder)
    say("")
    if not came_first:
        note("The source of the clip did not come first; see above.", style="bold yellow")
        raise typer.Exit(Status.SOME_FAILED)
    say("What to try next, with your own videos:", style="bold")
    for words in _NEXT:
        say_command(*words, quote=False)
    say("")
    say("See all of it in a browser:", style="bold")
    say_command("serve", "--index", scene.index, "--open")
    say("")
    say("Train a similarity of your own:", style="bold")
    say(plain_text(f"$ {install_command('train')}", style="bold cyan"))
    say_command("demo", *(() if folder == _FOLDER else (folder,)), "--training")


def _show_match(collection: Index, scene: _Scene, folder: Path) -> None:
    """Where clip and source match: times, and pictures if there is what draws them."""
    from vidkin.rendering.matches import frame_pairs
    from vidkin.rendering.pictures import draw_map, draw_pairs

    map_file, pairs_file = folder / "map.png", folder / "pairs.png"
    say("")
    say("Where do they match? The map of frame similarities as a picture:")
    options = ("-o", f"map={map_file}", "-o", pairs_file, "--index", scene.index)
    say_command("match", scene.clip, scene.source, *options)
    comparison = collection.match(os.fspath(scene.clip), os.fspath(scene.source))
    print_segments(comparison.segments)
    try:
        draw_map(comparison, map_file, query=scene.clip, target=scene.source, source=_PICTURES)
        wrote(map_file, "the frame map")
        pairs = frame_pairs(comparison)
        if pairs:
            draw_pairs(pairs, pairs_file, query=scene.clip, target=scene.source, source=_PICTURES)
            wrote(pairs_file, "matching frames")
    except MissingPartError as error:
        note(f"Without the pictures: {error}")


def _index(paths: tuple[Path, ...], index: Path, extractor: str | None = None) -> list[VideoRecord]:
    """Index the paths and show it; the videos that can be searched."""
    say("")
    options = () if extractor is None else ("--extractor", extractor)
    say_command("index", *paths, "--index", index, *options)
    try:
        return _fill(paths, index, extractor)
    except CollectionMismatchError:
        # An older vidkin made it with other features. The index belongs to the demonstration and is quickly rebuilt.
        note("The index of an earlier demonstration was made by another version of vidkin; rebuilding it.")
        shutil.rmtree(index)
        return _fill(paths, index, extractor)


def _fill(paths: tuple[Path, ...], index: Path, extractor: str | None) -> list[VideoRecord]:
    with open_index_for_writing(index, extractor=extractor, create=True) as collection:
        print_report(fill(collection, paths))
        return [record for record in collection.videos() if record.status == "ok" and record.windows > 0]


def _made_videos(folder: Path) -> _Scene:
    from vidkin.datasets import build_samples

    say("Photographs turned into moving clips, and edited copies of them:", style="bold")
    with meter("building samples") as bar:
        samples = build_samples(folder, on_progress=lambda done, total, path: bar.update(done, total, detail=path.name))
    made = f"{len(samples.videos)} videos, {len(samples.copies)} copies"
    say(path_text(folder).append(f": {made}{'' if samples.built else ' (already there)'}"))
    index = folder / "collection.vidkin"
    _index((samples.videos_folder, samples.copies_folder), index, _EXTRACTOR)
    query = samples.query
    start, clip_start = query.source_start, query.start
    end, clip_end = start + query.seconds, clip_start + query.seconds
    answers = {query.source, *(copy for copy, source in samples.copies if source == query.source)}
    return _Scene(
        index,
        query.path,
        query.source,
        frozenset(os.path.realpath(path) for path in answers),
        f"{query.path.name} is footage of something else, but {clock(clip_start)} - {clock(clip_end)} shows "
        f"{query.source.name} {clock(start)} - {clock(end)}. Which videos show it?",
    )


def _own_videos(folder: Path, videos: Path) -> _Scene:
    from vidkin.datasets import write_copy

    name = re.sub(r"\W+", "-", printable(videos.resolve().name)).strip("-") or "videos"
    digest = hashlib.blake2b(os.fsencode(videos.resolve()), digest_size=4).hexdigest()
    index = folder / f"{name}-{digest}.vidkin"
    say("Your own videos:", style="bold")
    records = _index((videos,), index)
    if not records:
        raise MediaError(videos, "has no video that can be searched; choose another folder with --videos")
    # The first by name among those that are long enough to cut from, otherwise the longest.
    long_enough = [record for record in records if record.duration >= 2 * _CLIP_SECONDS]
    source = min(long_enough, key=lambda r: r.path) if long_enough else max(records, key=lambda r: r.duration)
    start = max(0.0, source.duration / 2 - _CLIP_SECONDS / 2)
    end = min(source.duration, start + _CLIP_SECONDS)
    # Of another video it is another file.
    made_of = hashlib.blake2b(os.fsencode(describe_source("clip", source.path)), digest_size=4).hexdigest()
    clip = folder / f"clip-{made_of}.mp4"
    with meter("cutting a clip"):
        write_copy(source.path, clip, _CLIP_EDIT, start=start, end=end)
    answers = {record.path for record in records if record.content_hash == source.content_hash}
    return _Scene(
        index,
        clip,
        Path(source.path),
        frozenset(os.path.realpath(path) for path in answers),
        f"{clip.name} is {printable(Path(source.path).name)} from {clock(start)} to {clock(end)}, with a logo "
        "on it and encoded again. Which videos show it?",
    )
