"""Split a video into pieces without encoding: every packet goes unchanged to one piece."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.decoding.container import open_video
from vidkin.media.encode import open_media_output
from vidkin.media.splitting.at_keys_plan import SplitPlan, iter_packets, plan_split
from vidkin.media.splitting.pieces import Piece, SplitReport, piece_paths
from vidkin.media.splitting.streams import choose_form

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from av.container import InputContainer, OutputContainer
    from av.stream import Stream

__all__ = ["split_video"]


def split_video(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    starts: Sequence[float],
    *,
    names: Sequence[str | None] | None = None,
) -> SplitReport:
    """Split a video before given times, with sound and subtitles, without encoding.

    A compressed picture needs those before it back to the last key frame, so a piece can only begin at a key frame:
    the last one at or before the requested time. A piece can therefore begin with the end of the part before (which
    that part's own piece then lacks); `Piece.start` is where it really begins. Parts without a key frame between them
    share a piece. Key frames that later pictures refer back across (open groups of pictures) are not used, as the
    pictures between two pieces would be lost. Sound and subtitles belong to the piece in which they start.

    The format is that of the source, or Matroska if that cannot be written. Pieces appear together when all are
    complete. Existing files with their names are replaced, but not in the folder of the source, because recordings are
    often numbered in this way.

    Args:
        source: The video.
        folder: Where to write; created if missing.
        starts: Times at which parts begin, in seconds from the first frame, increasing. Everything before the first is
            part of the first piece.
        names: For each part, the name of a piece that begins with it, without extension; None for an unwanted part,
            which is left out as far as key frames allow. Default: ``<name>-001``, ``<name>-002``, ...

    Raises:
        InvalidArgumentError: ``starts`` is empty or does not increase from 0 s, the number of names differs from the
            number of parts, or a file beside the source has the name of a piece.
        MediaError: The source cannot be read or has no times, or the pieces cannot be written.
    """
    if names is not None and len(names) != len(starts):
        raise InvalidArgumentError(f"names must be one per part, {len(starts)}, got {len(names)}")
    if not starts:
        raise InvalidArgumentError("times to split at must not be empty; the start of the video is 0")
    previous = -1.0
    for start in starts:
        if not (math.isfinite(start) and start >= 0 and start > previous):
            raise InvalidArgumentError(
                f"times to split at must increase and be at least 0 s, got {', '.join(f'{s:g}' for s in starts)}"
            )
        previous = start
    name = os.fspath(source)
    with open_video(name, threads=1) as (container, stream):
        form = choose_form(name, container, stream)
        unwanted = [part for part, given in enumerate(names or ()) if given is None]
        plan = plan_split(name, container, stream, form.kept, starts, unwanted)
    # Each piece has the name of the first part in it.
    named: dict[int, str] = {}
    if names is None:
        digits = max(3, len(str(len(plan.entries))))
        named = {n: f"{Path(name).stem}-{n + 1:0{digits}d}" for n in range(len(plan.entries))}
    else:
        for owner, given in zip(plan.owners, names, strict=True):
            if given is not None:
                named.setdefault(owner, given)
    paths = dict(zip(named, piece_paths(name, folder, list(named.values()), form.suffix), strict=True))
    with ExitStack() as stack:
        partials = {number: stack.enter_context(open_media_output(path)) for number, path in paths.items()}
        with open_video(name, threads=1) as (container, _):
            _write(name, container, form.kept, plan, partials)
    counts = Counter(plan.pieces)
    borders = [*plan.starts(), float((plan.end - plan.base) * plan.tick)]
    pieces = tuple(
        Piece(
            path=str(path),
            start=borders[number],
            end=borders[number + 1],
            parts=tuple(place for place, owner in enumerate(plan.owners) if owner == number),
            packets=counts[number],
        )
        for number, path in paths.items()
    )
    return SplitReport(pieces, form.left_out)


def _write(
    name: str,
    container: InputContainer,
    kept: AbstractSet[int],
    plan: SplitPlan,
    paths: Mapping[int, Path],
) -> None:
    """Second pass: copy every packet into its piece, with times counted from the start of the piece."""
    waiting = Counter(plan.pieces)
    shifts = [time * plan.tick for time in plan.entries]
    with ExitStack() as stack:
        outputs: dict[int, tuple[OutputContainer, dict[int, Stream]]] = {}
        copied = 0
        for packet, piece in zip(iter_packets(container, kept), plan.pieces, strict=False):
            copied += 1
            if piece not in paths:
                continue
            if piece not in outputs:
                output = stack.enter_context(av.open(f"file:{paths[piece]}", "w"))
                streams = {
                    stream.index: output.add_stream_from_template(stream, opaque=True)
                    for stream in container.streams
                    if stream.index in kept
                }
                outputs[piece] = output, streams
            output, streams = outputs[piece]
            shift = round(shifts[piece] / Fraction(packet.time_base))
            packet.pts = None if packet.pts is None else packet.pts - shift
            packet.dts = None if packet.dts is None else packet.dts - shift
            packet.stream = streams[packet.stream_index]
            output.mux_one(packet)
            waiting[piece] -= 1
            if not waiting[piece]:  # so that few files are open at the same time
                output.close()
    if copied != len(plan.pieces):
        raise MediaError(name, "the file changed while it was being split")
