"""``vidkin recurring``: openings, recaps, bumpers and closings that videos share."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from vidkin._base.outputs import check_outputs, describe_source
from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    choose_format,
    end_with_failures,
    meter,
    note,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
)
from vidkin.cli.index import fill
from vidkin.cli.options import (
    DEFAULT_INDEX,
    ByOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    Witness,
    goes_to_output,
    open_index,
    open_index_for_writing,
    write_csv,
)
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import clock, number, print_json, printable, write_format

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import Companion, Index, RecurringGroup, VideoRecord
    from vidkin.media import Piece
    from vidkin.rendering.recurring import JoinedParts

_LEFT_OUT = ("recurring", "rest")


def recurring(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders and files to look at without the index; default: all of the index.",
            metavar="[FOLDER]...",
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        list[Path] | None,
        typer.Option("--within", metavar="FOLDER", help="Only videos of the index in this folder; repeatable."),
    ] = None,
    least: Annotated[int, typer.Option("--least", min=2, help="Number of files that share it, at least.")] = 2,
    shortest: Annotated[float, typer.Option("--shortest", min=2.0, help="Shortest length in seconds.")] = 3.0,
    longest: Annotated[
        float | None, typer.Option("--longest", min=2.0, help="Longest length in seconds.", show_default="any")
    ] = None,
    inside: Annotated[
        bool, typer.Option("--inside", help="What one file shows again, such as advertisements in a recording.")
    ] = False,
    by: ByOption = Witness.PICTURE,
    csv_file: Annotated[
        Path | None,
        typer.Option("--csv", help="Also write a CSV file; - writes it instead of the table.", dir_okay=False),
    ] = None,
    chapters: Annotated[
        Path | None,
        typer.Option("--chapters", metavar="FOLDER", help="Write chapters of each file, for Matroska and FFmpeg."),
    ] = None,
    write_edl: Annotated[
        bool, typer.Option("--write-edl", help="Write a skip list (.edl) for Kodi and Jellyfin beside each file.")
    ] = False,
    split: Annotated[
        Path | None,
        typer.Option("--split", metavar="FOLDER", help="Write the parts of each file as files, exact to the frame."),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(
            "--without",
            metavar="PARTS",
            help="What --split leaves out: recurring, which writes the remainder of each video as one file, or rest.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page with a strip of frames for each file.", dir_okay=False),
    ] = None,
    index: IndexOption = DEFAULT_INDEX,
    device: DeviceOption = "auto",
    cluster: str | None = None,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
) -> None:
    """Find what videos share: openings, recaps, bumpers and closings, and where they begin and end in each file.

    Stored features are compared; only the ends are read again, and given to the frame. What was found is kept in the
    index, so that a new episode is only compared once.
    """
    form = choose_format(format, json=json)
    if without is not None and (split is None or without not in _LEFT_OUT):
        raise InvalidArgumentError(f"--without must be {' or '.join(_LEFT_OUT)}, and needs --split FOLDER")
    if paths and within:
        raise InvalidArgumentError("use FOLDER, which is read without the index, or --within, not both")
    if paths and cluster is not None:
        raise InvalidArgumentError("a cluster needs an index that it sees: use --within FOLDER in place of FOLDER")
    to_output = goes_to_output(csv_file, form)
    sources = {
        name: describe_source(f"recurring --{name}", *(paths if paths else (index,))) for name in ("csv", "html")
    }
    check_outputs(
        {"--csv": (None if to_output else csv_file, sources["csv"]), "--html": (html, sources["html"])},
        inputs=paths or (),
    )
    failures: list[str] = []
    with _videos(paths, index, failures, writing=write_edl or chapters is not None) as collection:
        if cluster is not None:
            collection.on_cluster(cluster)
        with meter("comparing") as bar:
            groups = collection.recurring(
                within,
                least=least,
                shortest=shortest,
                longest=longest,
                inside=inside,
                by=by.value,
                on_progress=bar.update,
            )
        lengths = {record.path: record.duration for record in _looked_at(collection, within) if record.status == "ok"}
        companions = _write_companions(groups, lengths, collection, chapters, write_edl, is_index=not paths)
    parts = _SplitFiles() if split is None else _split(groups, lengths, split, without)
    if csv_file is not None:
        from vidkin.rendering.recurring import recurring_cells

        write_csv(csv_file, recurring_cells(groups), sources["csv"])
    if html is not None:
        from vidkin.rendering.recurring import RECURRING_FORMATS, GroupsToWrite

        with meter("pictures") as bar:
            write_format(
                RECURRING_FORMATS["html"], GroupsToWrite(groups, index, bar.update), html, source=sources["html"]
            )
    if form is OutputFormat.JSON:
        written = {"companions": companions, "pieces": parts.pieces, "joined": parts.joined, "html": html}
        print_json({"index": None if paths else index, "by": by.value, "groups": groups, **written})
    elif form is OutputFormat.TSV:
        from vidkin.rendering.recurring import recurring_cells

        for line in recurring_cells(groups):
            write_tsv(line)
    elif not to_output:
        _print_groups(groups, len(lengths), plain=form is OutputFormat.PLAIN, inside=inside)
        _print_files(companions, parts, [(csv_file, "what recurs as CSV"), (html, "what recurs with pictures")])
    causes = [f"{one.path}: {one.cause}" for one in companions if not one.written]
    end_with_failures([*failures, *causes, *parts.failures])


@contextmanager
def _videos(paths: Sequence[Path] | None, index: str, failures: list[str], *, writing: bool) -> Iterator[Index]:
    """The index, or for named files one that exists as long as the command; what cannot be read is a failure."""
    if not paths:
        with open_index_for_writing(index) if writing else open_index(index) as collection:
            yield collection
        return
    with (
        tempfile.TemporaryDirectory(prefix="vidkin-") as folder,
        open_index_for_writing(os.path.join(folder, DEFAULT_INDEX), create=True) as collection,
    ):
        report = fill(collection, paths)
        failures += [f"{broken.path}: {broken.cause}" for broken in report.broken]
        if not report.usable:
            end_with_failures(failures or ["no videos found; name folders or files with videos"], some_usable=False)
        yield collection


def _looked_at(collection: Index, within: Sequence[Path] | None) -> list[VideoRecord]:
    """The records of the index, or those of some folders of it, each once."""
    if not within:
        return collection.videos()
    from vidkin.index.storage.decisions import find_records

    return list(
        {record.path: record for folder in within for record in find_records(collection.store, folder)}.values()
    )


def _write_companions(
    groups: Sequence[RecurringGroup],
    lengths: dict[str, float],
    collection: Index,
    chapters: Path | None,
    write_edl: bool,
    *,
    is_index: bool,
) -> list[Companion]:
    """Write skip lists beside videos and chapters into a folder; files of others stay as they are."""
    if chapters is None and not write_edl:
        return []
    from vidkin._base.files import create_folder, safe_name
    from vidkin.index import Companion, write_companions
    from vidkin.rendering.recurring import PLAYER_FORMATS, parts_of_file

    contents: dict[str, str] = {}
    names = _names_in_one_folder(lengths)
    shared: list[Companion] = []
    for path, duration in lengths.items():
        parts = parts_of_file(groups, path, duration)
        if not any(part.recurs for part in parts):
            continue
        if write_edl:
            for ending, write in PLAYER_FORMATS["edl"].files.items():
                beside, text = os.path.splitext(path)[0] + ending, write(parts)
                if contents.setdefault(beside, text) != text:
                    cause = f"{Path(path).name} needs other parts skipped than the other video of this name; rename one"
                    shared.append(Companion(beside, False, cause))
        if chapters is not None:
            name = os.path.join(os.path.abspath(create_folder(chapters)), safe_name(names[path] + Path(path).suffix))
            contents |= {name + ending: write(parts) for ending, write in PLAYER_FORMATS["chapters"].files.items()}
    for companion in shared:
        contents.pop(companion.path, None)
    return [*write_companions(contents, collection.place if is_index else None), *shared]


def _names_in_one_folder(paths: Iterable[str]) -> dict[str, str]:
    """A name for what is written about each video: its own without the ending, numbered where two have the same."""
    from vidkin._base.files import safe_name

    names: dict[str, str] = {}
    taken: set[str] = set()
    for path in sorted(paths):
        stem = safe_name(Path(path).stem)
        numbered = (stem if count == 1 else f"{stem} ({count})" for count in itertools.count(1))
        names[path] = next(name for name in numbered if name.casefold() not in taken)
        taken.add(names[path].casefold())
    return names


class _SplitFiles(NamedTuple):
    """What --split wrote, and what it could not."""

    pieces: Sequence[Piece] = ()
    joined: Sequence[JoinedParts] = ()
    failures: Sequence[str] = ()


def _split(
    groups: Sequence[RecurringGroup], lengths: dict[str, float], folder: Path, without: str | None
) -> _SplitFiles:
    """Write the parts of each file in which something recurs, those left without it as one file; a file that cannot be
    read is a failure of its own."""
    from vidkin.rendering.recurring import join_parts, parts_of_file, split_parts

    pieces: list[Piece] = []
    joined: list[JoinedParts] = []
    failures = []
    names = _names_in_one_folder(lengths)
    with meter("splitting") as bar:
        for count, (path, duration) in enumerate(lengths.items(), start=1):
            parts = parts_of_file(groups, path, duration)
            kept = [part for part in parts if without != ("recurring" if part.recurs else "rest")]
            try:
                if not any(part.recurs for part in parts):
                    pass  # nothing to leave out
                elif without != "recurring":
                    pieces += split_parts(path, kept, folder, name=names[path])
                elif (left := join_parts(path, kept, folder, name=names[path])) is not None:
                    joined.append(left)
            except MediaError as error:
                failures.append(str(error))
            bar.update(count, len(lengths))
    return _SplitFiles(pieces, joined, failures)


def _print_groups(groups: Sequence[RecurringGroup], files: int, *, plain: bool, inside: bool) -> None:
    from vidkin.rendering.recurring import describe_difference, describe_group, group_name

    if not groups:
        words = f"Nothing recurs in {number(files, 'video')}." if files else "There are no videos."
        is_alone = files == 1 and not inside
        say("There is only one video; --inside looks for what recurs in it." if is_alone else words)
        return
    # What both say, where the sound decides.
    occurrences = [one for group in groups for one in group.occurrences]
    is_by_ear = any(one.sound is not None and one.score != one.picture for one in occurrences)
    for position, group in enumerate(groups):
        if plain:
            for one in group.occurrences:
                times = f"{clock(one.start, digits=2)} - {clock(one.end, digits=2)}"
                facts = f"{group_name(position)}  {group.kind:<8}  {times:<19}  "
                say(plain_text(facts).append_text(path_text(one.path)))
            continue
        rows: list[list[str | Text]] = [
            [
                clock(one.start, digits=2),
                clock(one.end, digits=2),
                f"{one.score:.2f}",
                *("" if value is None else f"{value:.2f}" for value in ((one.picture, one.sound) if is_by_ear else ())),
                describe_difference(one),
                path_text(one.path),
            ]
            for one in group.occurrences
        ]
        numbers = ("start", "end", "score", *(("picture", "sound") if is_by_ear else ()))
        columns = [*((name, "right") for name in numbers), ("", "left"), ("file", "left")]
        table(describe_group(position, group), columns, rows)


def _print_files(companions: Sequence[Companion], parts: _SplitFiles, files: Sequence[tuple[Path | None, str]]) -> None:
    written = [one.path for one in companions if one.written]
    if written:
        say(f"{number(len(written), 'file')} written, the first is {printable(written[0])}")
    if parts.pieces:
        say(f"{number(len(parts.pieces), 'part')} written, the first is {printable(parts.pieces[0].path)}")
    if parts.joined:
        words = f"{number(len(parts.joined), 'video')} written without what recurs"
        say(f"{words}, the first is {printable(parts.joined[0].path)}")
    for path, words in files:
        if path is not None:
            say(path_text(path).append(f": {words}"))
    if any(path.endswith(".edl") for path in written):
        note("Kodi skips these parts once; going back into one plays it.")
