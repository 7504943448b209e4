"""``vidkin search``: the videos of the index that match a clip, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import note, path_text, say
from vidkin.cli.options import (
    DEFAULT_INDEX,
    IndexOption,
    JsonOption,
    MirrorOption,
    ModelOption,
    WeightsOption,
    extractor_name,
    parse_time,
)
from vidkin.cli.paths import open_index
from vidkin.cli.tables import matches_as_json, print_matches
from vidkin.rendering.json_values import print_json

__all__ = ["search"]


def search(
    query: Annotated[Path, typer.Argument(help="A video or an image.", metavar="QUERY")],
    index: IndexOption = DEFAULT_INDEX,
    start: Annotated[
        float | None,
        typer.Option(
            "--start", parser=parse_time, metavar="TIME", help="Search with the part from here: 90, 1:30."
        ),
    ] = None,
    end: Annotated[
        float | None,
        typer.Option("--end", parser=parse_time, metavar="TIME", help="Search with the part up to here."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many matches.")] = 10,
    threshold: Annotated[
        float, typer.Option("--threshold", "-t", min=0.0, max=1.0, help="Leave out scores below this.")
    ] = 0.0,
    mirror: MirrorOption = True,
    model: ModelOption = None,
    weights: WeightsOption = None,
    json: JsonOption = False,
) -> None:
    """Find the videos that match QUERY, best first, with the matching times."""
    with open_index(index, extractor=extractor_name(None, model), weights=weights) as collection:
        measure, held = collection.manifest.measure, collection.store.count()
        matches = collection.search(
            os.fspath(query), start=start, end=end, limit=limit, threshold=threshold, mirrored=mirror
        )
    if json:
        print_json(
            {
                "query": query,
                "start": start,
                "end": end,
                "index": index,
                "threshold": threshold,
                "measure": measure,
                "matches": matches_as_json(matches),
            }
        )
    elif matches:
        print_matches(matches)
        if measure == "kinds":
            note("Scores are on the trained model's own scale: the order counts, 1 is identical.")
        else:
            note("Scores: 1 is identical, below 0.2 is unrelated (dim).")
    elif not held:
        say(path_text(index).append(": there are no videos in this index; take some in with `vidkin index`."))
    else:
        say(path_text(query).append(f": no match scores {threshold:g} or more."))
