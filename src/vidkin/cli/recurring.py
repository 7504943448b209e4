"""``vidkin recurring``: openings, recaps, bumpers and closings that videos share."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    end_with_failures,
    meter,
    note,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
    wrote,
)
from vidkin.cli.index import fill
from vidkin.cli.options import (
    DEFAULT_INDEX,
    DeviceOption,
    IndexOption,
    Witness,
    check_targets,
    folder_option,
    open_index,
    open_index_for_writing,
    output_option,
    parse_outputs,
)
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import clock, number, print_json, write_format

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import Companion, Index, RecurringGroup, VideoRecord
    from vidkin.media import Piece
    from vidkin.rendering.recurring import JoinedParts, NamedPart
    from vidkin.rendering.text import FileFormat

_CUT = ("parts", "recurring", "rest")
# What fills a folder has no ending.
_ENDINGS = {"csv": (".csv",), "json": (".json",), "html": (".html",), "chapters": (), **dict.fromkeys(_CUT, ())}


def recurring(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders and files to look at without the index; default: all of the index.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    only: Annotated[list[Path] | None, folder_option("--only", "Only videos of the index in this folder.")] = None,
    least: Annotated[int, typer.Option("--least", min=2, hidden=True)] = 2,
    shortest: Annotated[float, typer.Option("--shortest", min=2.0, help="Shortest length in seconds.")] = 3.0,
    longest: Annotated[float | None, typer.Option("--longest", min=2.0, hidden=True)] = None,
    inside: Annotated[
        bool, typer.Option("--inside", help="What one file shows again, such as advertisements in a recording.")
    ] = False,
    by: Annotated[Witness, typer.Option("--by", hidden=True)] = Witness.PICTURE,
    output: Annotated[
        list[Path] | None,
        output_option(
            "Write this file: a table (.csv, .json), a page with strips of frames (.html), a format of an installed "
            "package; or fill a folder: "
            "chapters=FOLDER for Matroska and FFmpeg, and cut to the frame parts=FOLDER, recurring=FOLDER (only what "
            "recurs) and rest=FOLDER (each video without it)."
        ),
    ] = None,
    write_edl: Annotated[
        bool, typer.Option("--write-edl", help="Write a skip list (.edl) for Kodi and Jellyfin beside each file.")
    ] = False,
    pad: Annotated[
        float, typer.Option("--pad", min=0.0, help="Seconds that skips keep at both ends of what recurs.")
    ] = 0.0,
    index: IndexOption = DEFAULT_INDEX,
    device: DeviceOption = "auto",
    cluster: str | None = None,
    format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Find what videos share, such as openings, recaps and closings, and where it is in each file.

    Stored features are compared; only the ends are read again, and given to the frame. What was found is kept in the
    index, so that a new episode is only compared once.
    """
    if paths and only:
        raise InvalidArgumentError("use FOLDER, which is read without the index, or --only, not both")
    if paths and cluster is not None:
        raise InvalidArgumentError("a cluster needs an index that it sees: use --only FOLDER in place of FOLDER")
    reports = _read_reports() if output else {}
    endings = {**_ENDINGS, **{name: (form.suffix,) for name, form in reports.items()}}
    targets = parse_outputs(output, endings)
    files = {name: path for name, path in targets.items() if endings[name]}
    sources = check_targets(files, "what recurs", *(paths or (index,)), inputs=paths or ())
    chapters = targets.get("chapters")
    failures: list[str] = []
    with _videos(paths, index, failures, writing=write_edl or chapters is not None) as collection:
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
        lengths = {record.path: record.duration for record in _looked_at(collection, only) if record.status == "ok"}
        companions = _write_companions(groups, lengths, collection, chapters, write_edl, pad, is_index=not paths)
    cut = {name: _split(groups, lengths, path, name) for name, path in targets.items() if name in _CUT}
    for name, path in files.items():
        from vidkin.rendering.recurring import RECURRING_FORMATS, GroupsToWrite

        if name in reports:
            write_format(reports[name], groups, path, source=sources[name])
            continue
        with meter("pictures") as bar:
            write_format(RECURRING_FORMATS[name], GroupsToWrite(groups, index, bar.update), path, source=sources[name])
    if format is OutputFormat.JSON:
        made = {"companions": companions, "pieces": [piece for one in cut.values() for piece in one.pieces]}
        joined = [joined for one in cut.values() for joined in one.joined]
        facts = {"index": None if paths else index, "by": by.value, "groups": groups}
        print_json({**facts, **made, "joined": joined, "outputs": targets})
    elif format is OutputFormat.TSV:
        from vidkin.rendering.recurring import recurring_cells

        for line in recurring_cells(groups):
            write_tsv(line)
    else:
        _print_groups(groups, len(lengths), plain=format is OutputFormat.PLAIN, inside=inside)
    _tell_files(companions, cut, targets)
    causes = [f"{one.path}: {one.cause}" for one in companions if not one.written]
    end_with_failures([*failures, *causes, *(cause for one in cut.values() for cause in one.failures)])


def _read_reports() -> dict[str, FileFormat[Sequence[RecurringGroup]]]:
    """The formats that installed packages add."""
    from vidkin.rendering.reports import recurring_reports

    return {name: form for name, form in recurring_reports().items() if name not in _ENDINGS}


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
    pad: float,
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
                beside, text = os.path.splitext(path)[0] + ending, write(_shortened(parts, pad))
                if contents.setdefault(beside, text) != text:
                    cause = f"{Path(path).name} needs other parts skipped than the other video of this name; rename one"
                    shared.append(Companion(beside, False, cause))
        if chapters is not None:
            name = os.path.join(os.path.abspath(create_folder(chapters)), safe_name(names[path] + Path(path).suffix))
            contents |= {name + ending: write(parts) for ending, write in PLAYER_FORMATS["chapters"].files.items()}
    for companion in shared:
        contents.pop(companion.path, None)
    return [*write_companions(contents, collection.place if is_index else None), *shared]


def _shortened(parts: Sequence[NamedPart], pad: float) -> list[NamedPart]:
    """The parts that recur without these seconds at both ends, as far as something is left of them."""
    kept = [part._replace(start=part.start + pad, end=part.end - pad) for part in parts if part.recurs]
    return [part for part in kept if part.end > part.start]


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


class _CutFiles(NamedTuple):
    """What was cut out of videos, and what could not be."""

    pieces: Sequence[Piece] = ()
    joined: Sequence[JoinedParts] = ()
    failures: Sequence[str] = ()


def _split(groups: Sequence[RecurringGroup], lengths: dict[str, float], folder: Path, kept: str) -> _CutFiles:
    """Write the parts of each file in which something recurs: all ``parts``, what is ``recurring``, or the ``rest`` as
    one file; a file that cannot be read is a failure of its own."""
    from vidkin.rendering.recurring import join_parts, parts_of_file, split_parts

    pieces: list[Piece] = []
    joined: list[JoinedParts] = []
    failures = []
    names = _names_in_one_folder(lengths)
    with meter("splitting") as bar:
        for count, (path, duration) in enumerate(lengths.items(), start=1):
            parts = parts_of_file(groups, path, duration)
            chosen = [part for part in parts if kept in ("parts", "recurring" if part.recurs else "rest")]
            try:
                if not any(part.recurs for part in parts):
                    pass  # nothing to leave out
                elif kept != "rest":
                    pieces += split_parts(path, chosen, folder, name=names[path])
                elif (left := join_parts(path, chosen, folder, name=names[path])) is not None:
                    joined.append(left)
            except MediaError as error:
                failures.append(str(error))
            bar.update(count, len(lengths))
    return _CutFiles(pieces, joined, failures)


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
    witnesses = [
        name
        for name in (("picture", "sound") if is_by_ear else ())
        if any(getattr(one, name) != one.score for one in occurrences)
    ]
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
                *("" if (value := getattr(one, name)) is None else f"{value:.2f}" for name in witnesses),
                describe_difference(one),
                path_text(one.path),
            ]
            for one in group.occurrences
        ]
        numbers = ("start", "end", "score", *witnesses)
        columns = [*((name, "right") for name in numbers), ("differs by", "left"), ("file", "left")]
        table(describe_group(position, group), columns, rows)


def _tell_files(companions: Sequence[Companion], cut: Mapping[str, _CutFiles], targets: Mapping[str, Path]) -> None:
    beside = [one.path for one in companions if one.written and one.path.endswith(".edl")]
    for file in beside:
        wrote(file)
    if beside:
        note("Kodi skips these parts once; going back into one plays it.")
    for name, path in targets.items():
        if name in cut:
            pieces, joined, _ = cut[name]
            if pieces or joined:
                wrote(path, number(len(joined), "video") if joined else number(len(pieces), "part"))
        elif name == "chapters":
            count = sum(one.written for one in companions) - len(beside)
            wrote(path, f"chapters, {number(count, 'file')}")
        else:
            wrote(path)
