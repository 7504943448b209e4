"""``vidkin match``: two videos side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.console import note, path_text, say
from vidkin.cli.options import (
    DEFAULT_INDEX,
    ExtractorOption,
    IndexOption,
    JsonOption,
    MirrorOption,
    ModelOption,
    WeightsOption,
    WhiteningOption,
    extractor_name,
)
from vidkin.cli.paths import check_output_path, open_index
from vidkin.cli.tables import print_segments
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import clock

if TYPE_CHECKING:
    from vidkin.index import Comparison

__all__ = ["compared", "match"]


def match(
    first: Annotated[Path, typer.Argument(help="The query.", metavar="A")],
    second: Annotated[Path, typer.Argument(help="The video to look for it in.", metavar="B")],
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Write the map of frame similarities as a picture (.png, .svg)."),
    ] = None,
    frames: Annotated[
        Path | None, typer.Option("--frames", help="Write matching frames side by side as a picture.")
    ] = None,
    index: IndexOption = DEFAULT_INDEX,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    mirror: MirrorOption = True,
    json: JsonOption = False,
) -> None:
    """Score two videos and show which stretches match.

    Where there is an index its extractor is used, and the features of B if B is in it; --extractor or
    --model compares the two files without an index.
    """
    from vidkin.rendering.pictures import draw_map, draw_pairs, frame_pairs, require_picture_name

    for wanted in (picture, frames):
        if wanted is not None:
            require_picture_name(wanted)
            check_output_path(wanted, inputs=[first, second, weights, whitening])
    if picture is not None and frames is not None and picture.absolute() == frames.absolute():
        raise InvalidArgumentError("--picture and --frames name one file; give each its own")
    name = extractor_name(extractor, model)
    result = compared(
        first, second, index, extractor=name, weights=weights, whitening=whitening, mirrored=mirror
    )
    pairs = frame_pairs(result)
    if picture is not None:
        draw_map(result, picture, query=first, target=second)
    if frames is not None and pairs:
        draw_pairs(pairs, frames, query=first, target=second)
    if json:
        print_json(
            {
                "query": first,
                "target": second,
                "score": result.score,
                "measure": result.measure,
                "segments": result.segments,
                "frame_pairs": pairs,
                "map": result.map,
                "query_times": result.query_times,
                "target_times": result.target_times,
                "picture": picture,
                "frames": frames if pairs else None,
            }
        )
        return
    say(path_text(first).append(" and ").append_text(path_text(second)).append(f": score {result.score:.2f}"))
    if result.segments:
        print_segments(result.segments)
    elif result.measure == "kinds":
        note("The score is on the trained model's own scale: higher is more of a kind, 1 is identical.")
    else:
        say(f"No stretch of {clock(float(result.query_times[-1]))} of the query matches.")
    if picture is not None:
        say(path_text(picture).append(": the frame map"))
    if frames is not None and pairs:
        say(path_text(frames).append(": matching frames"))
    elif frames is not None:
        note("No segment matches, so there are no frames to show side by side.", style="yellow")


def compared(
    first: Path,
    second: Path,
    index: Path,
    *,
    extractor: str | None = None,
    weights: Path | None = None,
    whitening: Path | None = None,
    mirrored: bool = True,
) -> Comparison:
    """The comparison of two files: by the extractor of the index if there is one and none is asked for."""
    from vidkin.index import compare

    if extractor is None and whitening is None and index.expanduser().is_dir():
        with open_index(index, weights=weights) as collection:
            try:
                return collection.match(os.fspath(first), os.fspath(second), mirrored=mirrored)
            except NotIndexedError:
                # The second file is not in the index: both are read, by what made the index.
                made = collection.manifest
                return compare(
                    first,
                    second,
                    extractor=made.extractor,
                    weights=weights or made.weights,
                    whitening=made.whitening,
                    mirrored=mirrored,
                    rate=made.sampling_rate,
                )
    return compare(
        first,
        second,
        extractor=extractor or "classical",
        weights=weights,
        whitening=whitening,
        mirrored=mirrored,
    )
