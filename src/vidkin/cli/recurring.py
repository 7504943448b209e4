"""``vidkin recurring``: openings, recaps, bumpers and closings that videos share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli import options
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import end_with_failures, meter, note, path_text, print_data, say, table, wrote
from vidkin.cli.index import index_in_cache
from vidkin.cli.options import OutputFormat, ScoreBasis, rare_option
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import clock, name_scores, number, score_cells, write_format

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import Companion, Index, RecurringGroup, VideoRecord
    from vidkin.rendering.recurring_files import CutVideos

_CUT = ("parts", "recurring", "rest")
# Formats that fill a folder have no ending.
_ENDINGS = {"csv": (".csv",), "json": (".json",), "html": (".html",), "chapters": (), **dict.fromkeys(_CUT, ())}


def recurring(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="FOLDER", show_default=False)] = None,
    only: Annotated[list[Path] | None, options.folder_option("--only")] = None,
    least: Annotated[int, rare_option("--least", min=2)] = 2,
    shortest: Annotated[float, typer.Option("--shortest", min=2.0)] = 3.0,
    longest: Annotated[float | None, rare_option("--longest", min=2.0)] = None,
    inside: Annotated[bool, typer.Option("--inside")] = False,
    by: options.RareByOption = ScoreBasis.PICTURE,
    output: Annotated[list[Path] | None, options.output_option()] = None,
    write_edl: Annotated[bool, typer.Option("--write-edl")] = False,
    pad_start: Annotated[float, typer.Option("--pad-start", min=0.0)] = 0.0,
    pad_end: Annotated[float, typer.Option("--pad-end", min=0.0)] = 0.0,
    keep_first: Annotated[bool, typer.Option("--keep-first")] = False,
    index: options.IndexOption = DEFAULT_INDEX,
    device: options.DeviceOption = "auto",
    cluster: str | None = None,
    format: options.FormatOption = OutputFormat.TABLE,
) -> None:
    """Find what videos share, such as openings, recaps and closings, and where it is in each file.

    Stored features are compared; only the ends are read again, for times that are exact to the frame. Results are
    stored in the index, so that a new episode is only compared once.

    Args:
        paths: Folders and files to read without the index; default: all videos of the index.
        only: Only videos of the index in this folder. Repeatable.
        shortest: Shortest length in seconds.
        inside: Find what one file shows more than once, such as advertisements in a recording.
        output: Write this file: a table (.csv, .json), a page with strips of frames (.html), a format of an installed
            package; or fill a folder: chapters=FOLDER for Matroska and FFmpeg, and cut to the frame parts=FOLDER,
            recurring=FOLDER (only what recurs) and rest=FOLDER (each video without it). Repeatable.
        write_edl: Write a skip list (.edl) for Kodi and Jellyfin next to each file.
        pad_start: Seconds of a segment to play before a skip.
        pad_end: Seconds of a segment to play after a skip.
        keep_first: Skip no segment where it is shown first: the first episode keeps its opening.
    """
    if paths and only:
        raise InvalidArgumentError("use FOLDER, which is read without the index, or --only, not both")
    if paths and cluster is not None:
        raise InvalidArgumentError("a cluster needs an index that it sees: use --only FOLDER in place of FOLDER")
    from vidkin.index import write_companions
    from vidkin.rendering.recurring import RECURRING_FORMATS, GroupsToWrite, recurring_cells
    from vidkin.rendering.recurring_files import chapter_files, cut_videos, skip_lists
    from vidkin.rendering.reports import recurring_reports

    reports = {name: form for name, form in recurring_reports().items() if name not in _ENDINGS} if output else {}
    endings = {**_ENDINGS, **{name: (form.suffix,) for name, form in reports.items()}}
    targets = options.parse_outputs(output, endings)
    files = {name: path for name, path in targets.items() if endings[name]}
    sources = options.check_targets(files, "what recurs", *(paths or (index,)), inputs=paths or ())
    chapters = targets.get("chapters")
    failures: list[str] = []
    with _open_videos(paths, index, failures, writing=write_edl or chapters is not None) as collection:
        if cluster is not None:
            collection.on_cluster(cluster)
        with meter("comparing") as bar:
            groups = collection.recurring(
                only,
                least=least,
                shortest=shortest,
                longest=longest,
                inside=inside,
                by=by.value,
                on_progress=bar.update,
            )
        lengths = {record.path: record.duration for record in _select(collection, only) if record.status == "ok"}
        contents: dict[str, str] = {}
        refused: list[Companion] = []
        if write_edl:
            contents, refused = skip_lists(groups, lengths, pad_start=pad_start, pad_end=pad_end, keep_first=keep_first)
        if chapters is not None:
            contents |= chapter_files(groups, lengths, chapters)
        companions = [*write_companions(contents, None if paths else collection.place), *refused]
    cut = {}
    for name in _CUT:
        if name in targets:
            with meter("splitting") as bar:
                cut[name] = cut_videos(groups, lengths, targets[name], name, on_progress=bar.update)
    for name, path in files.items():
        with meter("writing") as bar:
            if name in reports:
                write_format(reports[name], groups, path, source=sources[name])
            else:
                content = GroupsToWrite(groups, index, bar.update)
                write_format(RECURRING_FORMATS[name], content, path, source=sources[name])
    facts = {
        "index": None if paths else index,
        "by": by.value,
        "groups": groups,
        "companions": companions,
        "pieces": [piece for each in cut.values() for piece in each.pieces],
        "joined": [joined for each in cut.values() for joined in each.joined],
        "outputs": targets,
    }
    if not print_data(format, facts, recurring_cells(groups)):
        _print_groups(groups, len(lengths), plain=format is OutputFormat.PLAIN, inside=inside)
    _list_files(companions, cut, targets)
    causes = [f"{each.path}: {each.cause}" for each in companions if not each.written]
    end_with_failures([*failures, *causes, *(cause for each in cut.values() for cause in each.failures)])


@contextmanager
def _open_videos(paths: Sequence[Path] | None, index: str, failures: list[str], *, writing: bool) -> Iterator[Index]:
    """The index, or the cached one of the named files; unreadable files are added to ``failures``."""
    if not paths:
        with options.open_index(index, writing=writing) as collection:
            yield collection
        return
    with index_in_cache(paths) as (collection, report):
        failures += [f"{broken.path}: {broken.cause}" for broken in report.broken]
        if not report.usable:
            end_with_failures(failures or ["no videos found; name folders or files with videos"], some_usable=False)
        yield collection


def _select(collection: Index, only: Sequence[Path] | None) -> list[VideoRecord]:
    """The records of the index, or those in some folders of it, each once."""
    if not only:
        return collection.videos()
    from vidkin.index.storage.decisions import find_records

    return list({record.path: record for folder in only for record in find_records(collection.store, folder)}.values())


def _print_groups(groups: Sequence[RecurringGroup], files: int, *, plain: bool, inside: bool) -> None:
    from vidkin.rendering.recurring import describe_difference, describe_group, group_name

    if not groups:
        words = f"Nothing recurs in {number(files, 'video')}." if files else "There are no videos."
        is_alone = files == 1 and not inside
        say("There is only one video; --inside looks for what recurs in it." if is_alone else words)
        return
    scores = name_scores([each for group in groups for each in group.occurrences])
    numbers = [(name, "right") for name in ("start", "end", *scores)]
    columns = [*numbers, ("differs by", "left"), ("file", "left")]
    for position, group in enumerate(groups):
        rows: list[Sequence[str | Text]] = []
        for each in group.occurrences:
            start, end = clock(each.start, digits=2), clock(each.end, digits=2)
            if plain:
                times = f"{start} - {end}"
                say(f"{group_name(position)}  {group.kind:<8}  {times:<19}  ", path_text(each.path))
            facts = [start, end, *score_cells(each, scores), describe_difference(each)]
            rows.append([*facts, path_text(each.path)])
        if not plain:
            table(describe_group(position, group), columns, rows)


def _list_files(companions: Sequence[Companion], cut: Mapping[str, CutVideos], targets: Mapping[str, Path]) -> None:
    """Report which files and folders were written."""
    lists = [each.path for each in companions if each.written and each.path.endswith(".edl")]
    for file in lists:
        wrote(file)
    if lists:
        note("Kodi skips these parts once; going back into one plays it.")
    for name, path in targets.items():
        if name == "chapters":
            count = sum(each.written for each in companions) - len(lists)
            wrote(path, f"chapters, {number(count, 'file')}")
        elif name not in cut:
            wrote(path)
        elif cut[name].joined:
            wrote(path, number(len(cut[name].joined), "video"))
        elif cut[name].pieces:
            wrote(path, number(len(cut[name].pieces), "part"))
