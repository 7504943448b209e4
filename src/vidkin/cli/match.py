"""``vidkin match``: two videos compared."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin._base.outputs import check_outputs, describe_source
from vidkin.cli.commands import Status
from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
    choose_format,
    meter,
    note,
    path_text,
    plain_text,
    print_plain,
    print_segments,
    print_tsv,
    print_tsv_header,
    say,
    table,
)
from vidkin.cli.options import (
    DEFAULT_INDEX,
    ByOption,
    DeviceOption,
    ExtractorOption,
    IndexOption,
    JsonOption,
    MirrorOption,
    ModelOption,
    WeightsOption,
    WhiteningOption,
    Witness,
    check_inputs,
    extractor_name,
    has_index,
    open_index,
)
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.rendering.text import clock, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.files.proof_record import Proof
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
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Decode both files to show whether everything in A is in B; --frames draws the moments that differ.",
        ),
    ] = False,
    offset: Annotated[
        bool,
        typer.Option("--offset", help="Only find, by their sound, how two recordings of one event lie in time."),
    ] = False,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", help="With --offset: write both recordings, placed, into this file (.otio)."),
    ] = None,
    index: IndexOption = DEFAULT_INDEX,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    device: DeviceOption = "auto",
    mirror: MirrorOption = True,
    by: ByOption = Witness.PICTURE,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
) -> None:
    """Score two videos and show which segments match.

    Times are exact: both files are decoded around them.

    If there is an index, its extractor is used, and the stored features of B if B is in it. Options --extractor and
    --model compare the files without an index.
    """
    from vidkin.index.query.exact_times import refine_segments
    from vidkin.rendering.matches import frame_pairs, pairs_of_findings

    form = choose_format(format, json=json)
    map_source, frames_source = (describe_source(what, first, second) for what in ("frame map", "matching frames"))
    _check_picture_names(picture, frames)
    check_outputs(
        {"--picture": (picture, map_source), "--frames": (frames, frames_source)},
        inputs=[first, second, weights, whitening],
    )
    if timeline is not None:
        if not offset:
            raise InvalidArgumentError("--timeline needs --offset: it places two recordings of one event")
        timeline_source = describe_source("timeline", first, second)
        check_outputs({"--timeline": (timeline, timeline_source)}, inputs=[first, second])
    if offset:
        check_inputs(first, second)
        _show_offset(first, second, timeline, form)
        return
    name = extractor_name(extractor, model)
    check_inputs(first, second)
    with meter("comparing"):
        result = _compare(first, second, index, extractor=name, weights=weights, whitening=whitening, mirrored=mirror)
        result = replace(result, segments=refine_segments(first, second, result.segments))
    picture_score = result.score
    result = _scored_by(by, result)
    proof = _prove(first, second, result) if prove else None
    pairs = frame_pairs(result) if proof is None or proof.holds else pairs_of_findings(proof)
    if picture is not None or (frames is not None and pairs):
        from vidkin.rendering.pictures import draw_map, draw_pairs

        if picture is not None:
            draw_map(result, picture, query=first, target=second, source=map_source)
        if frames is not None and pairs:
            draw_pairs(pairs, frames, query=first, target=second, source=frames_source)
    if form is OutputFormat.JSON:
        print_json(
            {
                "query": first,
                "target": second,
                **result.to_dict(),
                "by": by.value,
                "picture_score": picture_score,
                "frame_pairs": pairs,
                "picture": picture,
                "frames": frames if pairs else None,
                "proof": proof,
            }
        )
        return
    if form is not OutputFormat.TABLE:
        from vidkin.index import Match

        heard = result.sound, result.sound_segments
        matches = [Match(os.fspath(second), result.score, result.segments, -1, False, picture_score, *heard)]
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
    if by is not Witness.PICTURE:
        say(f"Picture: {picture_score:.2f}")
    if result.sound is not None:
        say(f"Sound: {result.sound:.2f}" + (":" if result.sound_segments else ", nothing in common"))
        if result.sound_segments:
            print_segments(result.sound_segments)
    if proof is not None:
        _show_proof(proof)
    if picture is not None:
        say(path_text(picture).append(": the frame map"))
    if frames is not None and pairs:
        what = "matching frames" if proof is None or proof.holds else "the moments that differ"
        say(path_text(frames).append(f": {what}"))
    elif frames is not None:
        note("No segment matches, so there are no matching frames to draw.", style="yellow")


def _prove(first: Path, second: Path, result: Comparison) -> Proof:
    """Whether everything in the first file is in the second."""
    from vidkin.files.proof import prove

    with meter("decoding both files") as bar:
        return prove(second, first, result.segments, on_progress=lambda share: bar.update(round(100 * share), 100))


def _show_proof(proof: Proof) -> None:
    kept, removed = path_text(proof.kept), path_text(proof.removed)
    if proof.holds:
        say(plain_text("Everything in ").append_text(removed).append(" is in ").append_text(kept).append("."))
        return
    say(removed.append(" has something that ").append_text(kept).append(" lacks:"))
    rows: list[list[str | Text]] = []
    for finding in proof.findings:
        when = "" if finding.start is None or finding.end is None else f"{clock(finding.start)} - {clock(finding.end)}"
        rows.append([finding.kind, when, finding.text])
    table(None, [("what", "left"), ("time in A", "left"), ("", "left")], rows)


def _scored_by(by: Witness, result: Comparison) -> Comparison:
    """The comparison with the score of a rule."""
    from vidkin.index.query.sound import ADD_SOUND, check_by, score_by

    if by is Witness.PICTURE:
        return result
    if result.sound is None:
        needed = f"--by {by.value} needs the sound of both files, and one has none"
        raise InvalidArgumentError(f"{needed}; of an index without sound, {ADD_SOUND}")
    return replace(result, score=score_by(check_by(by.value), result.score, result.sound))


def _show_offset(first: Path, second: Path, timeline: Path | None, form: OutputFormat) -> None:
    """How two recordings lie in time; exits with 3 if that cannot be told."""
    from vidkin.index.query.sound import find_offset

    with meter("comparing"):
        found = find_offset(os.fspath(first), os.fspath(second))
    if timeline is not None and found.offset is not None:
        from vidkin.rendering.matches import write_sync

        write_sync(found, timeline)
    written = timeline if found.offset is not None else None
    if form is OutputFormat.JSON:
        print_json({**found.to_dict(), "timeline": written})
    elif found.offset is None:
        say(path_text(first).append(" and ").append_text(path_text(second)).append(": their sound is not the same"))
    elif form is OutputFormat.TABLE:
        columns = [("file", "left"), ("begins at", "right"), ("length", "right")]
        starts = max(found.offset, 0.0), max(-found.offset, 0.0)
        lengths = found.query_length, found.target_length
        table(
            None,
            columns,
            [
                [path_text(path), clock(start, digits=3), clock(length)]
                for path, start, length in zip((first, second), starts, lengths, strict=True)
            ],
        )
        speed = "" if found.speed == 1.0 else f", at {found.speed:.3f} times the speed"
        say(f"Offset {found.offset:+.3f} s: moment t of the first is {found.offset:+.3f} s + t of the second{speed}.")
        for path, track in ((first, found.query_track), (second, found.target_track)):
            if track:
                say(path_text(path).append(f": by its sound track {track + 1}"))
        if written is not None:
            say(path_text(written).append(": both recordings, placed"))
    else:
        say(f"{found.offset:+.3f}")
    if found.offset is None:
        raise typer.Exit(Status.NOTHING_USABLE)


def _check_picture_names(picture: Path | None, frames: Path | None) -> None:
    if picture is None and frames is None:
        return
    from vidkin.rendering.pictures import require_picture_name

    for path in (picture, frames):
        if path is not None:
            require_picture_name(path)


def _compare(
    first: Path,
    second: Path,
    index: str,
    *,
    extractor: str | None = None,
    weights: Path | None = None,
    whitening: Path | None = None,
    mirrored: bool = True,
) -> Comparison:
    """Compare two files with the extractor of the index, or the one that is named."""
    from vidkin.index import compare

    if extractor is None and whitening is None and has_index(index):
        with open_index(index, weights=weights) as collection:
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
