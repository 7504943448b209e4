"""``vidkin match``: two videos compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    choose_format,
    meter,
    note,
    path_text,
    print_plain,
    print_segments,
    print_tsv,
    print_tsv_header,
    say,
)
from vidkin.cli.options import (
    DEFAULT_INDEX,
    ExtractorOption,
    IndexOption,
    JsonOption,
    MirrorOption,
    ModelOption,
    RayOption,
    WeightsOption,
    WhiteningOption,
    extractor_name,
)
from vidkin.cli.paths import check_inputs, check_output_path, has_index, open_index
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.rendering.text import clock, print_json

if TYPE_CHECKING:
    from vidkin.index import Comparison


def match(
    first: Annotated[Path, typer.Argument(help="The query, a video or an image.", metavar="A")],
    second: Annotated[Path, typer.Argument(help="The video to find it in.", metavar="B")],
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Draw the map of frame similarities into this file (.png, .svg)."),
    ] = None,
    frames: Annotated[
        Path | None, typer.Option("--frames", help="Draw matching frames side by side into this file.")
    ] = None,
    index: IndexOption = DEFAULT_INDEX,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    mirror: MirrorOption = True,
    ray: RayOption = None,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
) -> None:
    """Score two videos and show which segments match.

    Times are exact: both files are decoded around them.

    If there is an index, its extractor is used, and the stored features of B if B is in it. Options --extractor and
    --model compare the files without an index.
    """
    from vidkin.index.query.exact_times import refine_segments
    from vidkin.rendering.matches import frame_pairs

    form = choose_format(format, json=json)
    _check_pictures(picture, frames, inputs=[first, second, weights, whitening])
    name = extractor_name(extractor, model)
    check_inputs(first, second)
    with meter("comparing"):
        result = _compare(
            first, second, index, extractor=name, weights=weights, whitening=whitening, mirrored=mirror, ray=ray
        )
        result = replace(result, segments=refine_segments(first, second, result.segments))
    pairs = frame_pairs(result)
    if picture is not None or (frames is not None and pairs):
        from vidkin.rendering.pictures import draw_map, draw_pairs

        if picture is not None:
            draw_map(result, picture, query=first, target=second)
        if frames is not None and pairs:
            draw_pairs(pairs, frames, query=first, target=second)
    if form is OutputFormat.JSON:
        print_json(
            {
                "query": first,
                "target": second,
                **result.to_dict(),
                "frame_pairs": pairs,
                "picture": picture,
                "frames": frames if pairs else None,
            }
        )
        return
    if form is not OutputFormat.TABLE:
        from vidkin.index import Match

        matches = [Match(os.fspath(second), result.score, result.segments)]
        if form is OutputFormat.PLAIN:
            print_plain(matches)
        else:
            print_tsv_header()
            print_tsv(first, matches, first_rank=1)
        return
    say(path_text(first).append(" and ").append_text(path_text(second)).append(f": score {result.score:.2f}"))
    if result.segments:
        print_segments(result.segments)
    elif not result.has_segments:
        note("Scores are specific to this model: higher means more of the same kind, 1 identical.")
    else:
        say(f"No segment of the query (0:00.0 - {clock(float(result.query_times[-1]))}) matches.")
    if picture is not None:
        say(path_text(picture).append(": the frame map"))
    if frames is not None and pairs:
        say(path_text(frames).append(": matching frames"))
    elif frames is not None:
        note("No segment matches, so there are no matching frames to draw.", style="yellow")


def _check_pictures(picture: Path | None, frames: Path | None, *, inputs: Sequence[Path | None]) -> None:
    if picture is None and frames is None:
        return
    from vidkin.rendering.pictures import require_picture_name

    for path in (picture, frames):
        if path is not None:
            require_picture_name(path)
            check_output_path(path, inputs=inputs)
    if picture is not None and frames is not None and picture.absolute() == frames.absolute():
        raise InvalidArgumentError(f"--picture and --frames must be different files, got {picture} for both")


def _compare(
    first: Path,
    second: Path,
    index: str,
    *,
    extractor: str | None = None,
    weights: Path | None = None,
    whitening: Path | None = None,
    mirrored: bool = True,
    ray: str | None = None,
) -> Comparison:
    """Compare two files with the extractor of the index, or the one that is named."""
    from vidkin.index import compare

    if extractor is None and whitening is None and has_index(index):
        with open_index(index, weights=weights, ray=ray) as collection:
            try:
                return collection.match(os.fspath(first), os.fspath(second), mirrored=mirrored)
            except NotIndexedError:
                # The second file is not in the index: read both with the extractor of the index.
                manifest = collection.manifest
                return compare(
                    first,
                    second,
                    extractor=manifest.extractor,
                    weights=weights or manifest.weights,
                    whitening=manifest.whitening,
                    mirrored=mirrored,
                    rate=manifest.sampling_rate,
                )
    return compare(
        first,
        second,
        extractor=extractor,
        weights=weights,
        whitening=whitening,
        mirrored=mirrored,
    )
