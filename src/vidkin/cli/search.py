"""``vidkin search``: the videos of an index that match a clip, and where."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli import options
from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import error_line, meter, note, path_text, print_data, say, write_tsv
from vidkin.cli.matches import print_matches, print_plain
from vidkin.cli.options import OutputFormat, ScoreBasis, rare_option, time_option
from vidkin.errors import MediaError
from vidkin.rendering.text import MATCH_HEADINGS, command_line, match_cells, matches_as_json, printable
from vidkin.similarity.scale import UNRELATED

if TYPE_CHECKING:
    from vidkin.index import Match


def search(
    queries: Annotated[list[Path], typer.Argument(metavar="QUERY")],
    index: options.IndexOption = DEFAULT_INDEX,
    start: Annotated[str | None, time_option("--start")] = None,
    end: Annotated[str | None, time_option("--end")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1)] = 10,
    offset: Annotated[int, rare_option("--offset", min=0)] = 0,
    threshold: Annotated[
        float | None, options.threshold_option(show_default=f"{UNRELATED:g}, below which nothing is related")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact")] = False,
    by: Annotated[ScoreBasis | None, typer.Option("--by", show_default="picture; sound is shown, too")] = None,
    model: options.ModelOption = None,
    weights: options.WeightsOption = None,
    device: options.DeviceOption = "auto",
    format: options.FormatOption = OutputFormat.TABLE,
    cluster: str | None = None,
) -> None:
    """List the videos that match each QUERY, best first, with the matching times.

    An image matches at the moment of the video that it shows; it has no times of its own. A file that has only sound
    is searched for by its sound.

    Args:
        queries: Videos, images or sounds.
        start: Use the query from this time on: 90, 1:30, or a frame number, 250f.
        end: Use the query up to this time.
        limit: Number of matches to show, at most.
        threshold: Lowest score to show; 0 shows everything, the query itself too.
        exact: Decode around the matches, for times that are exact to the frame.
        by: What the score is made of; either is the higher one, both the lower one.
    """
    options.check_stretch(start, end)
    if len(queries) == 1:  # of several, those that can be read are searched for
        options.check_inputs(*queries)
    from vidkin.media import time_in

    settings: dict[str, Any] = {"start": _as_number(start), "end": _as_number(end), "index": index}
    settings["by"] = "picture" if by is None else by.value
    documents: list[dict[str, Any]] = []
    extractor = options.extractor_name(None, model)
    with options.open_index(index, extractor=extractor, weights=weights, cluster=cluster) as collection:
        settings["measure"], is_empty = collection.manifest.scorer_name, len(collection) == 0
        # Scores of models that order kinds have no such limit.
        usual = UNRELATED if collection.manifest.has_segments else 0.0
        settings["threshold"] = lowest = usual if threshold is None else threshold
        if format is OutputFormat.TSV:
            write_tsv([MATCH_HEADINGS])
        for query in queries:
            try:
                options.check_stretch(start, end, query)
                with meter("searching"):
                    first, last = (None if each is None else time_in(query, each) for each in (start, end))
                    found = collection.search(
                        os.fspath(query),
                        start=first,
                        end=last,
                        limit=offset + limit + 1,
                        threshold=lowest,
                        by=None if by is None else by.value,
                    )
                    shown = found if threshold == 0 else [each for each in found if not is_file(each.path, query)]
                    matches = type(found)(shown[offset : offset + limit])
                    if exact:
                        matches = type(matches)(_refine(query, match, first, last) for match in matches)
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
                write_tsv(match_cells(query, matches, first_rank=offset + 1))
            elif format is not OutputFormat.JSON and not is_empty:
                if len(queries) > 1 and matches:
                    say(path_text(query, style="bold"), ":")
                _print(documents[-1], matches, format, offset, threshold)
        paths = [video.path for video in collection.videos()] if any(map(_is_unmatched, documents)) else []
    if format is OutputFormat.JSON:
        print_data(format, documents[0] if len(queries) == 1 else {"searches": documents})
    elif is_empty and format is not OutputFormat.TSV:
        say(path_text(index), ": the index is empty; add videos with `vidkin index PATH`")
    elif format is OutputFormat.TABLE and any(document["matches"] for document in documents):
        if collection.manifest.has_segments:
            note(f"Scores: 1 means identical; -t 0 also shows what is unrelated, below {UNRELATED:g}.")
        else:
            note("Scores are specific to this model: only their order is meaningful; 1 means identical.")
    if format is OutputFormat.TABLE and not offset and collection.manifest.extractor == "classical":
        unmatched = [document["query"] for document in documents if _is_unmatched(document)]
        if unmatched and paths:
            _suggest_encoder(paths, unmatched[0])
    failed = sum("error" in document for document in documents)
    if failed:
        raise typer.Exit(Status.SOME_FAILED if failed < len(queries) else Status.NOTHING_USABLE)


def is_file(path: str, query: Path) -> bool:
    """Whether a file of the index is the query itself."""
    return os.path.realpath(path) == os.path.realpath(query)


def _as_number(moment: str | None) -> float | str | None:
    """Seconds, or the number of a frame as it was typed: its time depends on the file."""
    from vidkin.media.frames import Time, is_frame_number

    return moment if moment is None or is_frame_number(moment) else float(Time.parse(moment))


def _refine(query: Path, match: Match, start: float | None, end: float | None) -> Match:
    """The match with times that are exact to the frame, within these times of the query; unchanged if its file is
    gone."""
    from vidkin.index.query.exact_times import refine_segments

    exact = refine_segments(query, match.path, match.segments)
    return replace(match, segments=tuple(segment.within(start, end) for segment in exact))


def _print(
    document: Mapping[str, Any], matches: list[Match], format: OutputFormat, offset: int, threshold: float | None
) -> None:
    query = document["query"]
    if not matches:
        besides = " besides the file itself" if document["query_is_indexed"] else ""
        rest = "no more matches" if offset else f"nothing similar found{besides}"
        lowest = f" with a score of at least {threshold:g}" if threshold else ""
        say(path_text(query), f": {rest}{lowest}")
        _explain_short_sound(query)
        return
    if max(match.score for match in matches) < UNRELATED and not offset:
        say(path_text(query), ": nothing similar found")
    if format is OutputFormat.PLAIN:
        print_plain(matches)
    else:
        print_matches(matches, first_rank=offset + 1)


def _explain_short_sound(query: Path) -> None:
    """Report if a file with only sound was not found because it is short."""
    from vidkin.index.query.sound import SHORTEST_SOUND, has_only_sound, hear

    if not has_only_sound(query):
        return
    length = max((track.length for track in hear(query)), default=0.0)
    if length < SHORTEST_SOUND:
        note(f"Its sound lasts {length:.1f} s; at least {SHORTEST_SOUND:g} s are needed to match reliably.")


def _suggest_encoder(paths: Sequence[str], query: Path) -> None:
    """Name the commands that make and search an index which also finds edited copies."""
    name = ["--index", "views.vidkin"]
    folder = printable(os.path.commonpath([os.path.dirname(path) for path in paths]))
    note("Crops, borders, split screens and insets are found with the features of --extractor vidkin:")
    note(f"`vidkin {command_line(['index', folder, *name, '--extractor', 'vidkin'])}`")
    note(f"`vidkin {command_line(['search', printable(os.fspath(query)), *name])}`")


def _is_unmatched(document: Mapping[str, Any]) -> bool:
    """Whether a search found nothing similar."""
    is_usual = "error" not in document and not document["query_is_indexed"]
    return is_usual and all(match["score"] < UNRELATED for match in document["matches"])
