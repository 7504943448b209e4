"""``vidkin match``: two videos compared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli import options
from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import meter, note, path_text, print_data, say, table, wrote
from vidkin.cli.matches import print_plain, print_segments
from vidkin.cli.options import OutputFormat, ScoreBasis
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.rendering.text import MATCH_HEADINGS, clock, clock_range, match_cells

if TYPE_CHECKING:
    from vidkin.files.proof_record import Proof
    from vidkin.index import Comparison
    from vidkin.rendering.matches import FramePair

# Fields of a comparison that only -o FILE.npz writes.
_OF_THE_MAP = ("map", "query_times", "target_times")
_ENDINGS = {
    "frames": (".png", ".jpg", ".jpeg", ".webp", ".pdf"),
    "map": (".svg",),
    "npz": (".npz",),
    "timeline": (".otio",),
}


def match(
    first: Annotated[Path, typer.Argument(metavar="A")],
    second: Annotated[Path, typer.Argument(metavar="B")],
    output: Annotated[list[Path] | None, options.output_option()] = None,
    prove: Annotated[bool, typer.Option("--prove")] = False,
    offset: Annotated[bool, typer.Option("--offset")] = False,
    index: options.IndexOption = DEFAULT_INDEX,
    extractor: options.ExtractorOption = None,
    model: options.ModelOption = None,
    weights: options.WeightsOption = None,
    whitening: options.WhiteningOption = None,
    device: options.DeviceOption = "auto",
    by: options.RareByOption = ScoreBasis.PICTURE,
    format: options.FormatOption = OutputFormat.TABLE,
) -> None:
    """Score two videos and show which segments match.

    Times are exact: both files are decoded around them.

    If there is an index, its extractor is used, and the stored features of B if B is in it. Options --extractor and
    --model compare the files without an index.

    Args:
        first: The query, a video or an image.
        second: The video to find it in.
        output: Write this file: matching frames side by side (.png, .webp), the map of frame similarities (.svg, or
            map=FILE.png; .npz has its numbers), or with --offset both recordings, placed (.otio). Repeatable.
        prove: Decode both files to show whether everything in A is in B; pictures are of the moments that differ.
        offset: Only find, by their sound, how two recordings of one event lie in time.
    """
    targets = options.parse_outputs(output, _ENDINGS)
    _check_targets(targets, offset=offset)
    inputs = [first, second, weights, whitening]
    sources = options.check_targets(targets, "comparison", first, second, inputs=inputs)
    options.check_inputs(first, second)
    if offset:
        _show_offset(first, second, targets.get("timeline"), format, sources.get("timeline"))
        return
    from vidkin.index import Match
    from vidkin.index.query.exact_times import refine_segments
    from vidkin.rendering.matches import frame_pairs, pairs_of_findings

    name = options.extractor_name(extractor, model)
    with meter("comparing"):
        result = _compare(first, second, index, name, weights, whitening)
        result = replace(result, segments=refine_segments(first, second, result.segments))
    picture_score = result.score
    result = _score_by(by, result)
    proof = _prove(first, second, result) if prove else None
    pairs = frame_pairs(result) if proof is None or proof.holds else pairs_of_findings(proof)
    if "frames" in targets and not pairs:
        del targets["frames"]
        note("No segment matches, so there are no matching frames to draw.", style="yellow")
    _write(targets, result, pairs, sources, first, second)
    facts = {name: value for name, value in result.to_dict().items() if name not in _OF_THE_MAP}
    facts |= {"by": by.value, "picture_score": picture_score, "frame_pairs": pairs, "proof": proof, "outputs": targets}
    by_sound = result.sound, result.sound_segments
    matches = [Match(os.fspath(second), result.score, result.segments, -1, False, picture_score, *by_sound)]
    cells = [MATCH_HEADINGS, *match_cells(first, matches)]
    if print_data(format, {"query": first, "target": second, **facts}, cells):
        return
    if format is OutputFormat.PLAIN:
        print_plain(matches)
        return
    say(path_text(first), " and ", path_text(second), f": score {result.score:.2f}")
    if result.segments:
        print_segments(result.segments)
    elif not result.has_segments:
        note("Scores are specific to this model: higher means more of the same kind, 1 identical.")
    else:
        say(f"No segment of the query (0:00.0 - {clock(float(result.query_times[-1]))}) matches.")
    if by is not ScoreBasis.PICTURE:
        say(f"Picture: {picture_score:.2f}")
    if result.sound is not None:
        say(f"Sound: {result.sound:.2f}" + (":" if result.sound_segments else ", nothing in common"))
        if result.sound_segments:
            print_segments(result.sound_segments)
    else:
        _name_silent(first, second)
    if proof is not None:
        _print_proof(proof)


def _name_silent(*videos: Path) -> None:
    """Name the files whose sound tracks are silent."""
    from vidkin.index.query.sound import hear

    for video in videos:
        if (tracks := hear(video)) and not any(map(len, tracks)):
            say("Sound: ", path_text(video), " is silent")


def _check_targets(targets: Mapping[str, Path], *, offset: bool) -> None:
    """Raise an error before any work if an output does not go with --offset, or cannot be drawn."""
    if any((name == "timeline") != offset for name in targets):
        raise InvalidArgumentError(
            "with --offset the output is a timeline (.otio), which needs two recordings of one event"
        )
    for name in targets.keys() & {"map", "frames"}:
        from vidkin.rendering.pictures import require_picture_name

        require_picture_name(targets[name])


def _write(
    targets: Mapping[str, Path],
    result: Comparison,
    pairs: Sequence[FramePair],
    sources: Mapping[str, str],
    first: Path,
    second: Path,
) -> None:
    for name, path in targets.items():
        if name == "npz":
            from vidkin.rendering.matches import write_map

            write_map(result, path, source=sources[name])
        else:
            from vidkin.rendering.pictures import draw_map, draw_pairs

            if name == "map":
                draw_map(result, path, query=first, target=second, source=sources[name])
            else:
                draw_pairs(pairs, path, query=first, target=second, source=sources[name])
        wrote(path)


def _prove(first: Path, second: Path, result: Comparison) -> Proof:
    """Whether everything in the first file is in the second."""
    from vidkin.files.proof import prove

    with meter("decoding both files") as bar:
        return prove(second, first, result.segments, on_progress=lambda share: bar.update(round(100 * share), 100))


def _print_proof(proof: Proof) -> None:
    kept, removed = path_text(proof.kept), path_text(proof.removed)
    if proof.holds:
        say("Everything in ", removed, " is in ", kept, ".")
        return
    say(removed, " has something that ", kept, " lacks:")
    rows = [(each.kind, clock_range(each.start or 0.0, each.end or 0.0), each.text) for each in proof.findings]
    table(None, [("what", "left"), ("time in A", "left"), ("how it differs", "left")], rows)


def _score_by(by: ScoreBasis, result: Comparison) -> Comparison:
    """The comparison with the score by picture, sound or both."""
    from vidkin.index.query.sound import ADD_SOUND, check_by, score_by

    if by is ScoreBasis.PICTURE:
        return result
    if result.sound is None:
        needed = f"--by {by.value} needs the sound of both files, and one has none or is silent"
        raise InvalidArgumentError(f"{needed}; of an index without sound, {ADD_SOUND}")
    return replace(result, score=score_by(check_by(by.value), result.score, result.sound))


def _show_offset(first: Path, second: Path, timeline: Path | None, format: OutputFormat, source: str | None) -> None:
    """How two recordings lie in time; ends with status 3 if that cannot be found."""
    from vidkin.index.query.sound import find_offset

    with meter("comparing"):
        result = find_offset(os.fspath(first), os.fspath(second))
    shift = result.offset
    if timeline is not None and shift is not None:
        from vidkin.rendering.matches import write_sync

        write_sync(result, timeline, source=source)
        wrote(timeline)
    if format is OutputFormat.JSON:
        print_data(format, {**result.to_dict(), "timeline": timeline if shift is not None else None})
    elif shift is None:
        say(path_text(first), " and ", path_text(second), ": their sound is not the same")
    elif format is OutputFormat.TABLE:
        rows = [
            (path_text(first), clock(max(shift, 0.0), digits=3), clock(result.query_length)),
            (path_text(second), clock(max(-shift, 0.0), digits=3), clock(result.target_length)),
        ]
        table(None, [("file", "left"), ("begins at", "right"), ("length", "right")], rows)
        speed = "" if result.speed == 1.0 else f", at {result.speed:.3f} times the speed"
        say(f"Offset {shift:+.3f} s: moment t of the first is {shift:+.3f} s + t of the second{speed}.")
        for path, track in ((first, result.query_track), (second, result.target_track)):
            if track:
                say(path_text(path), f": by its sound track {track + 1}")
    else:
        say(f"{shift:+.3f}")
    if shift is None:
        raise typer.Exit(Status.NOTHING_USABLE)


def _compare(
    first: Path,
    second: Path,
    index: str,
    extractor: str | None,
    weights: options.PathLike | None,
    whitening: options.PathLike | None,
) -> Comparison:
    """Compare two files with the extractor of the index, or with the named one."""
    from vidkin.index import compare

    rate = 1.0
    if extractor is None and whitening is None and options.has_index(index):
        with options.open_index(index, weights=weights) as collection:
            try:
                return collection.match(os.fspath(first), os.fspath(second))
            except NotIndexedError:
                # The second file is not in the index: read both with the extractor of the index.
                made = collection.manifest
        extractor, weights, whitening = made.extractor, weights or made.weights, made.whitening
        rate = made.sampling_rate
    return compare(first, second, extractor=extractor, weights=weights, whitening=whitening, rate=rate)
