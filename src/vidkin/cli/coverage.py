"""``vidkin coverage``: which stretches of a video are in other files, and what is only in it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    is_roomy,
    meter,
    note,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
    wrote,
)
from vidkin.cli.options import (
    DEFAULT_INDEX,
    IndexOption,
    MirrorOption,
    check_inputs,
    check_targets,
    has_index,
    open_index,
    output_option,
    parse_outputs,
    threshold_option,
)
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.rendering.coverage import COVERAGE_FORMATS, coverage_cells, describe_coverage
from vidkin.rendering.text import clock_range, describe_formats, print_json, write_format
from vidkin.similarity.scale import EXCERPT

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import Coverage, Index


def coverage(
    film: Annotated[Path, typer.Argument(help="The video; it need not be in the index.", metavar="FILM")],
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Only look at videos in this folder; they are read now if they are not in the index.",
            metavar="FOLDER",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    output: Annotated[
        list[Path] | None, output_option(f"Write this file: {describe_formats(COVERAGE_FORMATS)}.")
    ] = None,
    threshold: Annotated[float, threshold_option("Lowest score of a match that counts.")] = EXCERPT,
    index: IndexOption = DEFAULT_INDEX,
    mirror: MirrorOption = True,
    cluster: str | None = None,
    format: FormatOption = OutputFormat.TABLE,
) -> None:
    """List the stretches of FILM that other videos show, in order, and what is only in it.

    Of a compilation these are its sources; of a film, the excerpts of it that there are.
    """
    check_inputs(film)
    targets = parse_outputs(output, {name: (form.suffix,) for name, form in COVERAGE_FORMATS.items()})
    sources = check_targets(targets, "coverage", film, inputs=[film])
    with _opened(index, folder, cluster) as (collection, within), meter("comparing") as bar:
        found = collection.coverage(film, within=within, threshold=threshold, mirrored=mirror, on_progress=bar.update)
    for name, path in targets.items():
        write_format(COVERAGE_FORMATS[name], found, path, source=sources[name])
        wrote(path)
    if format is OutputFormat.JSON:
        print_json(found)
        return
    if format is OutputFormat.TSV:
        for line in coverage_cells(found):
            write_tsv(line)
        return
    _print(found, format)


@contextmanager
def _opened(index: str, folder: Path | None, cluster: str | None) -> Iterator[tuple[Index, Path | None]]:
    """The index; where it has nothing of the folder, a temporary one of the videos there."""
    if folder is None:
        with open_index(index, cluster=cluster) as collection:
            yield collection, None
        return
    if has_index(index):
        from vidkin._base.files import is_within

        with open_index(index, cluster=cluster) as collection:
            if any(is_within(record.path, folder) for record in collection.videos()):
                yield collection, folder
                return
    if cluster is not None:
        raise InvalidArgumentError(f"a cluster needs an index; add the videos of {folder} with `vidkin index` first")
    from vidkin.index import Index

    with tempfile.TemporaryDirectory(prefix="vidkin-") as place, Index.open(Path(place, "c"), create=True) as made:
        with meter("reading the folder") as bar:
            made.add(folder, on_progress=lambda progress: bar.update(progress.done, progress.total))
        if not len(made):
            raise NotIndexedError(f"{folder}: there is no video that can be read; name a folder with videos")
        yield made, None


def _print(found: Coverage, format: OutputFormat) -> None:
    rows: list[list[str | Text]] = []
    for piece in found.sources:
        here, there = clock_range(piece.start, piece.end), clock_range(piece.other_start, piece.other_end)
        remarks = [f"{piece.speed:.2f}x"] if abs(piece.speed - 1) >= 0.03 else []
        remarks += ["mirrored"] if piece.mirrored else []
        if format is OutputFormat.PLAIN:
            facts = f"{here}  {there}  {', '.join(remarks)}  "
            say(plain_text(facts).append_text(path_text(piece.path)))
        else:
            rows.append([here, there, ", ".join(remarks) if is_roomy() else "", path_text(piece.path)])
    if rows:
        columns = (("in this video", "right"), ("in the other file", "right"), ("edits", "left"), ("file", "left"))
        table(None, [*columns], rows)
    for sentence in describe_coverage(found):
        say(sentence)
    others = len({each.path for each in found.stretches}) - len({each.path for each in found.sources})
    if others:
        note(f"{others} more of the files have some of it, too; --format tsv lists every stretch.")
