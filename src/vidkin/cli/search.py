"""``vidkin search``: the videos of an index that match a clip, and where."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    error_line,
    meter,
    note,
    path_text,
    print_matches,
    print_plain,
    print_tsv,
    print_tsv_header,
    say,
)
from vidkin.cli.options import (
    DEFAULT_INDEX,
    DeviceOption,
    IndexOption,
    MirrorOption,
    ModelOption,
    WeightsOption,
    Witness,
    check_inputs,
    check_stretch,
    extractor_name,
    moment_text,
    open_index,
    parse_moment,
    threshold_option,
)
from vidkin.errors import MediaError
from vidkin.rendering.text import command_line, matches_as_json, print_json, printable
from vidkin.similarity.scale import UNRELATED

if TYPE_CHECKING:
    from vidkin.index import Match


def search(
    queries: Annotated[list[Path], typer.Argument(help="Videos, images or sounds.", metavar="QUERY")],
    index: IndexOption = DEFAULT_INDEX,
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            parser=moment_text,
            metavar="TIME",
            help="Use the query from this time on: 90, 1:30, or a frame number, 250f.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--end", parser=moment_text, metavar="TIME", help="Use the query up to this time."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Number of matches to show, at most.")] = 10,
    offset: Annotated[int, typer.Option("--offset", min=0, hidden=True)] = 0,
    threshold: Annotated[
        float | None,
        threshold_option(
            "Lowest score to show; 0 shows everything, the query itself too.",
            show_default=f"{UNRELATED:g}, below which nothing is related",
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Decode around the shown matches: times to the frame, and usual speeds."),
    ] = False,
    mirror: MirrorOption = True,
    by: Annotated[
        Witness | None,
        typer.Option(
            "--by",
            help="What the score is made of; either is the higher one, both the lower one.",
            show_default="picture, the sound beside it",
        ),
    ] = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
    format: FormatOption = OutputFormat.TABLE,
    cluster: str | None = None,
) -> None:
    """List the videos that match each QUERY, best first, with the matching times.

    A picture is found at the moment of the video that it is from; it has no times of its own. A file that has only
    sound is searched for by its sound.
    """
    check_stretch(start, end)
    if len(queries) == 1:  # of several, each that cannot be read costs itself only
        check_inputs(*queries)
    from vidkin.media import time_in

    first, last = (None if text is None else parse_moment(text) for text in (start, end))
    settings: dict[str, Any] = {"start": first, "end": last, "index": index}
    settings["by"] = "picture" if by is None else by.value
    documents: list[dict[str, Any]] = []
    with open_index(index, extractor=extractor_name(None, model), weights=weights, cluster=cluster) as collection:
        settings["measure"], is_empty = collection.manifest.scorer_name, len(collection) == 0
        # Scores of models that order kinds have no such limit.
        usual = UNRELATED if collection.manifest.has_segments else 0.0
        settings["threshold"] = least = usual if threshold is None else threshold
        if format is OutputFormat.TSV:
            print_tsv_header()
        for query in queries:
            try:
                check_stretch(start, end, query)
                with meter("searching"):
                    found = collection.search(
                        os.fspath(query),
                        start=None if first is None else time_in(query, first),
                        end=None if last is None else time_in(query, last),
                        limit=offset + limit + 1,
                        threshold=least,
                        mirrored=mirror,
                        by=None if by is None else by.value,
                    )
                    shown = found if threshold == 0 else [each for each in found if not is_file(each.path, query)]
                    matches = type(found)(shown[offset : offset + limit])
                    if exact:
                        matches = type(matches)(_exactly(query, match) for match in matches)
            except MediaError as error:
                if len(queries) == 1:
                    raise
                error_line(str(error))
                documents.append({"query": query, "error": str(error), "matches": []})
                continue
            rows = matches_as_json(matches, first_rank=offset + 1)
            itself = {"query_is_indexed": len(shown) < len(found)}
            documents.append({"query": query, **itself, **settings, "matches": rows})
            if format is OutputFormat.TSV:
                print_tsv(query, matches, first_rank=offset + 1)
            elif format is not OutputFormat.JSON and not is_empty:
                _print(documents[-1], matches, format, offset, threshold, is_one_of_many=len(queries) > 1)
        paths = [video.path for video in collection.videos()] if any(map(_is_unmatched, documents)) else []
    if format is OutputFormat.JSON:
        print_json(documents[0] if len(queries) == 1 else {"searches": documents})
    elif is_empty and format is not OutputFormat.TSV:
        say(path_text(index).append(": the index is empty; add videos with `vidkin index PATH`"))
    elif format is OutputFormat.TABLE and any(document["matches"] for document in documents):
        if collection.manifest.has_segments:
            note(f"Scores: 1 means identical; -t 0 also shows what is unrelated, below {UNRELATED:g}.")
        else:
            note("Scores are specific to this model: only their order is meaningful; 1 means identical.")
    if format is OutputFormat.TABLE and not offset and collection.manifest.extractor == "classical":
        unmatched = [document["query"] for document in documents if _is_unmatched(document)]
        if unmatched and paths:
            words = ["--index", "views.vidkin"]
            folder = printable(os.path.commonpath([os.path.dirname(path) for path in paths]))
            clip = printable(os.fspath(unmatched[0]))
            note(
                "Crops, borders, split screens and insets are found with the features of --extractor vidkin:\n"
                f"`vidkin {command_line(['index', folder, *words, '--extractor', 'vidkin'])}`\n"
                f"`vidkin {command_line(['search', clip, *words])}`"
            )
    failed = sum("error" in document for document in documents)
    if failed:
        raise typer.Exit(Status.SOME_FAILED if failed < len(queries) else Status.NOTHING_USABLE)


def is_file(path: str, query: Path) -> bool:
    """Whether a file of the index is the query itself."""
    return os.path.realpath(path) == os.path.realpath(query)


def _exactly(query: Path, match: Match) -> Match:
    """The match with segments whose times are right to the frame; as it was if its file is gone."""
    from vidkin.index.query.exact_times import refine_segments

    return replace(match, segments=refine_segments(query, match.path, match.segments))


def _print(
    document: Mapping[str, Any],
    matches: list[Match],
    format: OutputFormat,
    offset: int,
    threshold: float | None,
    *,
    is_one_of_many: bool,
) -> None:
    query = document["query"]
    if not matches:
        besides = " besides the file itself" if document["query_is_indexed"] else ""
        rest = "no more matches" if offset else f"nothing similar found{besides}"
        least = f" with a score of at least {threshold:g}" if threshold else ""
        say(path_text(query).append(f": {rest}{least}"))
        _explain_short_sound(query)
        return
    if is_one_of_many:
        say(path_text(query, style="bold").append(":"))
    if max(match.score for match in matches) < UNRELATED and not offset:
        say(path_text(query).append(": nothing similar found"))
    if format is OutputFormat.PLAIN:
        print_plain(matches)
    else:
        print_matches(matches, first_rank=offset + 1)


def _explain_short_sound(query: Path) -> None:
    """Say so where a file that has only sound was not found because there is little of it."""
    from vidkin.index.query.sound import SHORTEST_SOUND, has_only_sound, hear

    if not has_only_sound(query):
        return
    length = max((track.length for track in hear(query)), default=0.0)
    if length < SHORTEST_SOUND:
        note(f"Its sound lasts {length:.1f} s; from {SHORTEST_SOUND:g} s on, a recording is found surely.")


def _is_unmatched(document: Mapping[str, Any]) -> bool:
    """Whether a search found nothing similar."""
    return (
        "error" not in document
        and not document["query_is_indexed"]
        and all(match["score"] < UNRELATED for match in document["matches"])
    )
