"""``vidkin coverage``: which parts of a video occur in other files, and which are unique."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli import options
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import is_roomy, meter, note, path_text, print_data, say, table
from vidkin.cli.index import index_in_cache
from vidkin.cli.options import OutputFormat
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.rendering.coverage import COVERAGE_FORMATS, coverage_cells, describe_coverage
from vidkin.rendering.text import clock_range, describe_formats, number
from vidkin.similarity.scale import EXCERPT

if TYPE_CHECKING:
    from vidkin.index import Coverage, Index


def coverage(
    film: Annotated[Path, typer.Argument(metavar="FILM")],
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", exists=True, file_okay=False)] = None,
    output: Annotated[
        list[Path] | None, options.output_option(f"Write this file: {describe_formats(COVERAGE_FORMATS)}. Repeatable.")
    ] = None,
    threshold: Annotated[float, options.threshold_option()] = EXCERPT,
    index: options.IndexOption = DEFAULT_INDEX,
    cluster: str | None = None,
    format: options.FormatOption = OutputFormat.TABLE,
) -> None:
    """Show which parts of FILM occur in other videos and which are unique.

    Of a compilation these are its sources; of a film, its excerpts in other files.

    Args:
        film: The video; it need not be in the index.
        folder: Only look at videos in this folder; they are read now if they are not in the index.
        threshold: Lowest score of a match that counts.
    """
    options.check_inputs(film)
    targets = options.parse_outputs(output, {name: (form.suffix,) for name, form in COVERAGE_FORMATS.items()})
    sources = options.check_targets(targets, "coverage", film, inputs=[film])
    with _open_gallery(index, folder, cluster) as (collection, within), meter("comparing") as bar:
        result = collection.coverage(film, within=within, threshold=threshold, on_progress=bar.update)
    options.write_targets(targets, sources, COVERAGE_FORMATS, result)
    if not print_data(format, result, coverage_cells(result)):
        _print_sources(result, is_plain=format is OutputFormat.PLAIN)


@contextmanager
def _open_gallery(index: str, folder: Path | None, cluster: str | None) -> Iterator[tuple[Index, Path | None]]:
    """The index and the folder in it; the cached index of the folder if the index has no video there."""
    if folder is None or options.has_index(index):
        from vidkin._base.files import is_within

        with options.open_index(index, cluster=cluster) as collection:
            if folder is None or any(is_within(record.path, folder) for record in collection.videos()):
                yield collection, folder
                return
    if cluster is not None:
        raise InvalidArgumentError(f"a cluster needs an index; add the videos of {folder} with `vidkin index` first")
    with index_in_cache([folder]) as (collection, _):
        if not len(collection):
            raise NotIndexedError(f"{folder}: there is no video that can be read; name a folder with videos")
        yield collection, None


def _print_sources(coverage: Coverage, *, is_plain: bool) -> None:
    rows = []
    for piece in coverage.sources:
        here, there = clock_range(piece.start, piece.end), clock_range(piece.other_start, piece.other_end)
        edits = [f"{piece.speed:.2f}x"] if abs(piece.speed - 1) >= 0.03 else []
        edits += ["mirrored"] if piece.mirrored else []
        if is_plain:
            say(f"{here}  {there}  {', '.join(edits)}  ", path_text(piece.path))
        else:
            rows.append((here, there, ", ".join(edits) if is_roomy() else "", path_text(piece.path)))
    if rows:
        columns = (("in this video", "right"), ("in the other file", "right"), ("edits", "left"), ("file", "left"))
        table(None, columns, rows)
    for sentence in describe_coverage(coverage):
        say(sentence)
    others = len({each.path for each in coverage.stretches}) - len({each.path for each in coverage.sources})
    if others:
        note(f"Parts of it are also in {number(others, 'more file')}; --format tsv lists every stretch.")
