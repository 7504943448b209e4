"""``vidkin search``: the videos of an index that match a clip, and where."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.console import meter, note, path_text, say
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
from vidkin.cli.tables import UNRELATED, print_matches
from vidkin.rendering.json_values import matches_as_json, print_json
from vidkin.rendering.text import printable

__all__ = ["search"]


def search(
    query: Annotated[Path, typer.Argument(help="A video or an image.", metavar="QUERY")],
    index: IndexOption = DEFAULT_INDEX,
    start: Annotated[
        float | None,
        typer.Option(
            "--start", parser=parse_time, metavar="TIME", help="Use the query from this time on: 90, 1:30."
        ),
    ] = None,
    end: Annotated[
        float | None,
        typer.Option("--end", parser=parse_time, metavar="TIME", help="Use the query up to this time."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Number of matches to show, at most.")
    ] = 10,
    threshold: Annotated[
        float, typer.Option("--threshold", "-t", min=0.0, max=1.0, help="Lowest score to show.")
    ] = 0.0,
    mirror: MirrorOption = True,
    model: ModelOption = None,
    weights: WeightsOption = None,
    json: JsonOption = False,
) -> None:
    """List the videos that match QUERY, best first, with the matching times."""
    with open_index(index, extractor=extractor_name(None, model), weights=weights) as collection:
        measure, is_empty = collection.manifest.measure, collection.store.count() == 0
        extractor = collection.manifest.extractor
        with meter("searching"):
            matches = collection.search(
                os.fspath(query), start=start, end=end, limit=limit, threshold=threshold, mirrored=mirror
            )
        similar = measure == "kinds" or any(match.score >= UNRELATED for match in matches)
        paths = [] if similar else [video.path for video in collection.videos()]
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
    elif is_empty:
        say(path_text(index).append(": the index is empty; add videos with `vidkin index PATH`"))
    else:
        if not matches or not similar:
            say(path_text(query).append(": nothing similar found"))
        if matches:
            print_matches(matches)
        if measure == "kinds":
            note("Scores are specific to this model: only their order is meaningful; 1 means identical.")
        elif matches:
            note(f"Scores: 1 means identical, below {UNRELATED:g} unrelated (dim).")
        elif threshold:
            note(f"No video has a score of at least {threshold:g} (--threshold).")
        if extractor == "classical" and not similar:
            _suggest_features(query, os.path.commonpath([os.path.dirname(path) for path in paths]))


def _suggest_features(query: Path, folder: str) -> None:
    """The two commands that search again with features that see parts of the picture."""
    words = ["--index", "views.vidkin"]
    note(
        "Crops, borders, split screens and insets are found with the features of --extractor vidkin:\n"
        f"`vidkin {shlex.join(['index', printable(folder), *words, '--extractor', 'vidkin'])}`\n"
        f"`vidkin {shlex.join(['search', printable(os.fspath(query)), *words])}`"
    )
