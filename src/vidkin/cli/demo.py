"""``vidkin demo``: everything once, on videos made on the spot or on one's own."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from vidkin.cli.console import meter, note, path_text, say
from vidkin.cli.exit import Status
from vidkin.cli.paths import open_index_for_writing
from vidkin.cli.tables import print_matches, print_segments
from vidkin.cli.videos.duplicates import find_groups, print_groups
from vidkin.cli.videos.index import fill, print_report
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, MediaError
from vidkin.rendering.text import clock, printable

if TYPE_CHECKING:
    from vidkin.index import Index, VideoRecord

__all__ = ["demo"]

_THRESHOLD = 0.7
_CLIP_SECONDS = 5.0
_CLIP_EDIT = "logo"


@dataclass(frozen=True, slots=True)
class _Show:
    """What the demonstration runs on.

    Attributes:
        paths: What is indexed.
        index: Where the index goes.
        clip: The query.
        source: The video that the query was made from.
        kin: Files that show the same as ``source``: any of them may come first.
        truth: One sentence: what the query is.
    """

    paths: tuple[Path, ...]
    index: Path
    clip: Path
    source: Path
    kin: frozenset[str]
    truth: str


def demo(
    folder: Annotated[
        Path, typer.Argument(help="Where to put everything; a second run uses it again.")
    ] = Path("vidkin-demo"),
    videos: Annotated[
        Path | None, typer.Option("--videos", help="Show it on your own folder of videos instead.")
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold", min=0.0, max=1.0, help="For duplicates: pairs from this score on are copies."
        ),
    ] = _THRESHOLD,
) -> None:
    """Build a small collection, then index, search, match and find duplicates in it. Works offline."""
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{folder} is a file; give a folder for the demonstration")
    folder.mkdir(parents=True, exist_ok=True)
    show = _samples(folder) if videos is None else _own(folder, videos.expanduser())
    found = _run(show, folder, threshold)
    say("")
    if not found:
        note("The source of the clip did not come first: see above.", style="bold yellow")
        raise typer.Exit(Status.SOME_FAILED)
    say("Now with your own videos:", style="bold")
    _command("index", "~/Videos", quote=False)
    _command("search", "clip.mp4")


def _run(show: _Show, folder: Path, threshold: float) -> bool:
    """All steps; whether the search found what the clip was made from first."""
    from vidkin.rendering.pictures import draw_map, draw_pairs, frame_pairs

    with open_index_for_writing(show.index) as collection:
        say("")
        say(show.truth)
        _command("search", show.clip, "--index", show.index)
        matches = collection.search(os.fspath(show.clip), limit=5)
        print_matches(matches)
        picture, pairs_picture = folder / "map.png", folder / "pairs.png"
        say("")
        say("Where do they match? The map of frame similarities as a picture:")
        _command(
            *("match", show.clip, show.source, "--picture", picture, "--frames", pairs_picture),
            *("--index", show.index),
        )
        comparison = collection.match(os.fspath(show.clip), os.fspath(show.source))
        draw_map(comparison, picture, query=show.clip, target=show.source)
        print_segments(comparison.segments)
        say(path_text(picture).append(": the frame map"))
        pairs = frame_pairs(comparison)
        if pairs:
            draw_pairs(pairs, pairs_picture, query=show.clip, target=show.source)
            say(path_text(pairs_picture).append(": matching frames"))
        say("")
        say("Which files are copies of each other?")
        chosen = () if threshold == _THRESHOLD else ("--threshold", f"{threshold:g}")
        _command("duplicates", *chosen, "--index", show.index)
        print_groups(find_groups(collection, threshold))
    return bool(matches) and os.path.realpath(matches[0].path) in show.kin


def _index(paths: tuple[Path, ...], index: Path) -> list[VideoRecord]:
    """Step one, shown; the videos that can be used."""
    say("")
    _command("index", *paths, "--index", index)
    try:
        return _fill(paths, index)
    except CollectionMismatchError:
        # Made by an older vidkin with other features. The index is the demonstration's own: a new one costs seconds.
        note("The index of an earlier demonstration does not fit this vidkin; it is made anew.")
        shutil.rmtree(index)
        return _fill(paths, index)


def _fill(paths: tuple[Path, ...], index: Path) -> list[VideoRecord]:
    with open_index_for_writing(index, create=True) as collection:
        print_report(fill(collection, paths))
        return _usable(collection)


def _samples(folder: Path) -> _Show:
    from vidkin.datasets import build_samples

    say("Photographs turned into moving clips, and edited copies of them:", style="bold")
    with meter("building samples") as bar:
        samples = build_samples(
            folder, on_progress=lambda done, total, path: bar.update(done, total, detail=path.name)
        )
    made = f"{len(samples.videos)} videos, {len(samples.copies)} copies"
    say(path_text(folder).append(f": {made}{'' if samples.built else ' (already there)'}"))
    paths = (samples.videos_folder, samples.copies_folder)
    index = folder / "collection.vidkin"
    _index(paths, index)
    query = samples.query
    start, end, clip_start, clip_end = query.segments[0]
    kin = {query.source, *(copy.path for copy in samples.copies if copy.source == query.source)}
    return _Show(
        paths,
        index,
        query.path,
        query.source,
        frozenset(os.path.realpath(path) for path in kin),
        f"{query.path.name} is footage of something else, but {clock(clip_start)} - {clock(clip_end)} shows "
        f"{query.source.name} {clock(start)} - {clock(end)}. Which videos have it?",
    )


def _own(folder: Path, videos: Path) -> _Show:
    from vidkin.media import apply_edit

    place = re.sub(r"\W+", "-", printable(videos.resolve().name)).strip("-") or "videos"
    digest = hashlib.blake2b(os.fsencode(videos.resolve()), digest_size=4).hexdigest()
    index = folder / f"{place}-{digest}.vidkin"
    say("Your own videos:", style="bold")
    usable = _index((videos,), index)
    if not usable:
        raise MediaError(videos, "holds no video that can be used; give another folder to --videos")
    source = _pick(usable)
    start = max(0.0, source.duration / 2 - _CLIP_SECONDS / 2)
    end = min(source.duration, start + _CLIP_SECONDS)
    clip = folder / f"clip-{digest}.mp4"
    with meter("cutting a clip"):
        apply_edit(source.path, clip, _CLIP_EDIT, start=start, end=end)
    same = {record.path for record in usable if record.content_hash == source.content_hash}
    return _Show(
        (videos,),
        index,
        clip,
        Path(source.path),
        frozenset(os.path.realpath(path) for path in same),
        f"{clip.name} is {printable(Path(source.path).name)} from {clock(start)} to {clock(end)}, with a logo "
        "over it and encoded again. Which videos have it?",
    )


def _usable(collection: Index) -> list[VideoRecord]:
    return [record for record in collection.videos() if record.status == "ok" and record.windows > 0]


def _pick(records: list[VideoRecord]) -> VideoRecord:
    """The first by name among those that are long enough to cut from, otherwise the longest."""
    long_enough = [record for record in records if record.duration >= 2 * _CLIP_SECONDS]
    return min(long_enough, key=lambda r: r.path) if long_enough else max(records, key=lambda r: r.duration)


def _command(*words: str | Path, quote: bool = True) -> None:
    """The command line that repeats a step."""
    line = " ".join(shlex.quote(printable(os.fspath(word))) if quote else str(word) for word in words)
    say(Text(f"$ {_program()} {line}", style="bold cyan"))


def _program() -> str:
    """How this very program was called, so that the lines can be copied."""
    called = sys.argv[0]
    if os.path.basename(called) != "vidkin":
        return "vidkin"
    on_path = shutil.which("vidkin")
    if on_path is not None and os.path.realpath(on_path) == os.path.realpath(called):
        return "vidkin"
    return shlex.quote(os.path.relpath(called))
