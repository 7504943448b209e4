"""``vidkin match``: two videos compared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import (
    FormatOption,
    OutputFormat,
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
    wrote,
)
from vidkin.cli.options import (
    DEFAULT_INDEX,
    DeviceOption,
    ExtractorOption,
    IndexOption,
    MirrorOption,
    ModelOption,
    WeightsOption,
    WhiteningOption,
    Witness,
    check_inputs,
    check_targets,
    extractor_name,
    has_index,
    open_index,
    output_option,
    parse_outputs,
)
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.rendering.text import clock, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.files.proof_record import Proof
    from vidkin.index import Comparison
    from vidkin.rendering.matches import FramePair

# Of a result, what -o FILE.npz writes.
_OF_THE_MAP = ("map", "query_times", "target_times")
_ENDINGS = {
    "frames": (".png", ".jpg", ".jpeg", ".webp", ".pdf"),
    "map": (".svg",),
    "npz": (".npz",),
    "timeline": (".otio",),
}


def match(
    first: Annotated[Path, typer.Argument(help="The query, a video or an image.", metavar="A")],
    second: Annotated[Path, typer.Argument(help="The video to find it in.", metavar="B")],
    output: Annotated[
        list[Path] | None,
        output_option(
            "Write this file: matching frames side by side (.png, .webp), the map of frame similarities (.svg, or "
            "map=FILE.png; .npz has its numbers), or with --offset both recordings, placed (.otio)."
        ),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Decode both files to show whether everything in A is in B; pictures are of the moments that differ.",
        ),
    ] = False,
    offset: Annotated[
        bool,
        typer.Option("--offset", help="Only find, by their sound, how two recordings of one event lie in time."),
    ] = False,
    index: IndexOption = DEFAULT_INDEX,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    device: DeviceOption = "auto",
    mirror: MirrorOption = True,
    by: Annotated[Witness, typer.Option("--by", hidden=True)] = Witness.PICTURE,
    format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Score two videos and show which segments match.

    Times are exact: both files are decoded around them.

    If there is an index, its extractor is used, and the stored features of B if B is in it. Options --extractor and
    --model compare the files without an index.
    """
    from vidkin.index.query.exact_times import refine_segments
    from vidkin.rendering.matches import frame_pairs, pairs_of_findings

    targets = parse_outputs(output, _ENDINGS)
    _check_targets(targets, offset=offset)
    sources = check_targets(targets, "comparison", first, second, inputs=[first, second, weights, whitening])
    check_inputs(first, second)
    if offset:
        _show_offset(first, second, targets.get("timeline"), format, sources.get("timeline"))
        return
    name = extractor_name(extractor, model)
    with meter("comparing"):
        result = _compare(first, second, index, extractor=name, weights=weights, whitening=whitening, mirrored=mirror)
        result = replace(result, segments=refine_segments(first, second, result.segments))
    picture_score = result.score
    result = _scored_by(by, result)
    proof = _prove(first, second, result) if prove else None
    pairs = frame_pairs(result) if proof is None or proof.holds else pairs_of_findings(proof)
    if "frames" in targets and not pairs:
        del targets["frames"]
        note("No segment matches, so there are no matching frames to draw.", style="yellow")
    _write(targets, result, pairs, sources, first, second)
    if format is OutputFormat.JSON:
        facts = {name: value for name, value in result.to_dict().items() if name not in _OF_THE_MAP}
        said = {"by": by.value, "picture_score": picture_score, "frame_pairs": pairs, "proof": proof}
        print_json({"query": first, "target": second, **facts, **said, "outputs": targets})
        return
    if format is not OutputFormat.TABLE:
        from vidkin.index import Match

        heard = result.sound, result.sound_segments
        matches = [Match(os.fspath(second), result.score, result.segments, -1, False, picture_score, *heard)]
        if format is OutputFormat.PLAIN:
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


def _check_targets(targets: Mapping[str, Path], *, offset: bool) -> None:
    """Raise an error before any work if an output does not go with --offset, or cannot be drawn."""
    for name in targets:
        if (name == "timeline") != offset:
            raise InvalidArgumentError(
                "with --offset the output is a timeline (.otio), which needs two recordings of one event"
            )
    if "map" in targets or "frames" in targets:
        from vidkin.rendering.pictures import require_picture_name

        for name in ("map", "frames"):
            if name in targets:
                require_picture_name(targets[name])


def _write(
    targets: Mapping[str, Path],
    result: Comparison,
    pairs: Sequence[FramePair],
    sources: Mapping[str, str],
    first: Path,
    second: Path,
) -> None:
    if "npz" in targets:
        from vidkin.rendering.matches import write_map

        write_map(result, targets["npz"], source=sources["npz"])
    if "map" in targets or "frames" in targets:
        from vidkin.rendering.pictures import draw_map, draw_pairs

        if "map" in targets:
            draw_map(result, targets["map"], query=first, target=second, source=sources["map"])
        if "frames" in targets:
            draw_pairs(pairs, targets["frames"], query=first, target=second, source=sources["frames"])
    for path in targets.values():
        wrote(path)


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
    table(None, [("what", "left"), ("time in A", "left"), ("how it differs", "left")], rows)


def _scored_by(by: Witness, result: Comparison) -> Comparison:
    """The comparison with the score of a rule."""
    from vidkin.index.query.sound import ADD_SOUND, check_by, score_by

    if by is Witness.PICTURE:
        return result
    if result.sound is None:
        needed = f"--by {by.value} needs the sound of both files, and one has none"
        raise InvalidArgumentError(f"{needed}; of an index without sound, {ADD_SOUND}")
    return replace(result, score=score_by(check_by(by.value), result.score, result.sound))


def _show_offset(first: Path, second: Path, timeline: Path | None, format: OutputFormat, source: str | None) -> None:
    """How two recordings lie in time; exits with 3 if that cannot be told."""
    from vidkin.index.query.sound import find_offset

    with meter("comparing"):
        found = find_offset(os.fspath(first), os.fspath(second))
    if timeline is not None and found.offset is not None:
        from vidkin.rendering.matches import write_sync

        write_sync(found, timeline, source=source)
        wrote(timeline)
    written = timeline if found.offset is not None else None
    if format is OutputFormat.JSON:
        print_json({**found.to_dict(), "timeline": written})
    elif found.offset is None:
        say(path_text(first).append(" and ").append_text(path_text(second)).append(": their sound is not the same"))
    elif format is OutputFormat.TABLE:
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
    else:
        say(f"{found.offset:+.3f}")
    if found.offset is None:
        raise typer.Exit(Status.NOTHING_USABLE)


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
