"""Split a video into pieces without encoding: every packet goes to one piece, unchanged."""

from __future__ import annotations

import math
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.decoding.container import open_video
from vidkin.media.encode import open_media_output
from vidkin.media.split_plan import SplitPlan, iter_packets, plan_split

if TYPE_CHECKING:
    from av.container import InputContainer, OutputContainer
    from av.stream import Stream
    from av.video.stream import VideoStream

__all__ = ["Piece", "SplitReport", "split_video"]

# Used if the format of the source cannot be written; it holds nearly everything.
_FALLBACK = ".mkv"
_KEPT_KINDS = ("video", "audio", "subtitle")


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a split video.

    Attributes:
        path: The file.
        start: Where it really begins, in seconds of the source: at a key frame, at or before the requested start.
        end: Where it ends, in seconds of the source: the start of the next piece, or the end of the video.
        parts: Which of the requested starts are in it (places in their list). Usually one; several if there is no
            key frame between them, none for the piece before the first of them.
        packets: Packets of all its streams.
    """

    path: str
    start: float
    end: float
    parts: tuple[int, ...]
    packets: int


@dataclass(frozen=True, slots=True)
class SplitReport:
    """What `split_video` wrote.

    Attributes:
        pieces: In order of time; together they hold every packet of the streams that are kept.
        left_out: Streams that are in no piece, in words (cover pictures, data, what the format cannot hold).
    """

    pieces: tuple[Piece, ...]
    left_out: tuple[str, ...]


def split_video(
    source: str | os.PathLike[str], folder: str | os.PathLike[str], starts: Sequence[float]
) -> SplitReport:
    """Split a video before given times, with sound and subtitles, without encoding.

    A compressed picture needs those before it back to the last key frame, so a piece can only begin at a key frame:
    the last one at or before the requested time. A piece may therefore begin with the end of the part before (which
    that part's own piece then lacks); `Piece.start` is where it really begins. Parts without a key frame between them
    share a piece. Key frames that later pictures refer back across (open groups of pictures) are not used, as the
    pictures between two pieces would be lost. Sound and subtitles belong to the piece in which they start.

    Pieces are called ``<name>-001.mp4`` and so on, in the format of the source, or in Matroska if that cannot be
    written. They appear together when all are complete. Existing files with these names are replaced, but not in the
    folder of the source, because recordings are often numbered in this way.

    Args:
        source: The video.
        folder: Where to write; created if missing.
        starts: Times at which parts begin, in seconds from the first frame, increasing. What comes before the first
            one is part of the first piece.

    Raises:
        InvalidArgumentError: ``starts`` is empty or does not increase from 0 s on, or a file beside the source has the
            name of a piece.
        MediaError: The source cannot be read or has no times, or the pieces cannot be written.
    """
    _check(starts)
    name = os.fspath(source)
    with open_video(name, threads=1) as (container, stream):
        suffix, kept, left_out = _form(name, container, stream)
        plan = plan_split(name, container, stream, kept, starts)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(target, f"the folder cannot be created: {error.strerror or error}") from error
    digits = max(3, len(str(len(plan.entries))))
    names = [f"{Path(name).stem}-{number:0{digits}d}{suffix}" for number in range(1, len(plan.entries) + 1)]
    if target.samefile(Path(name).parent):
        for each in names:
            if os.path.lexists(target / each):
                raise InvalidArgumentError(
                    f"a piece would replace {each!r} next to the video; choose another folder for the pieces"
                )
    with ExitStack() as stack:
        partials = [stack.enter_context(open_media_output(target / each)) for each in names]
        with open_video(name, threads=1) as (container, _):
            _write(name, container, kept, plan, partials)
    counts = Counter(plan.pieces)
    borders = [*plan.starts(), float((plan.end - plan.base) * plan.tick)]
    pieces = tuple(
        Piece(
            path=str(target / each),
            start=borders[number],
            end=borders[number + 1],
            parts=tuple(place for place, owner in enumerate(plan.owners) if owner == number),
            packets=counts[number],
        )
        for number, each in enumerate(names)
    )
    return SplitReport(pieces, tuple(left_out))


def _check(starts: Sequence[float]) -> None:
    if not starts:
        raise InvalidArgumentError("times to split at must not be empty; the start of the video is 0")
    previous = -1.0
    for start in starts:
        if not (math.isfinite(start) and start >= 0 and start > previous):
            raise InvalidArgumentError(
                f"times to split at must increase and be at least 0 s, got {', '.join(f'{s:g}' for s in starts)}"
            )
        previous = start


def _form(name: str, container: InputContainer, main: VideoStream) -> tuple[str, set[int], list[str]]:
    """Extension of the pieces, numbers of the streams that they hold, and the other streams in words."""
    candidates, left_out = [], []
    for stream in container.streams:
        cover = bool(stream.disposition & av.stream.Disposition.attached_pic)
        if stream.index == main.index or (stream.type in _KEPT_KINDS and not cover):
            candidates.append(stream)
        else:
            left_out.append(f"stream {stream.index}: {'cover picture' if cover else stream.type}")
    # A trial is the only way to ask a muxer; it writes only an empty file.
    with tempfile.TemporaryDirectory() as trials:
        for suffix in dict.fromkeys((Path(name).suffix.lower(), _FALLBACK)):
            fit = _holdable(f"file:{trials}/trial{suffix}", candidates)
            if main.index in fit:
                left_out += [
                    f"stream {stream.index}: {stream.type}, which {suffix} files cannot hold"
                    for stream in candidates
                    if stream.index not in fit
                ]
                return suffix, fit, left_out
    raise MediaError(name, f"its {main.codec_context.name} video cannot be written to a file of pieces")


def _holdable(trial: str, streams: Sequence[Stream]) -> set[int]:
    """Numbers of the streams that a file of this name can hold."""
    fit = set()
    try:
        with av.open(trial, "w") as output:
            for stream in streams:
                with suppress(ValueError):  # from PyAV, if the format cannot hold it
                    # Opaque: the name of the codec is enough, as a decoder may have no encoder of the same name.
                    output.add_stream_from_template(stream, opaque=True)
                    fit.add(stream.index)
    except ValueError:  # from PyAV, if the extension is of no format
        return set()
    return fit


def _write(
    name: str, container: InputContainer, kept: set[int], plan: SplitPlan, paths: Sequence[Path]
) -> None:
    """Second pass: copy every packet into its piece, with times from the beginning of the piece."""
    waiting = Counter(plan.pieces)
    shifts = [time * plan.tick for time in plan.entries]
    with ExitStack() as stack:
        outputs: dict[int, tuple[OutputContainer, dict[int, Stream]]] = {}
        copied = 0
        for packet, piece in zip(iter_packets(container, kept), plan.pieces, strict=False):
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
            copied += 1
            waiting[piece] -= 1
            if not waiting[piece]:  # so that few are open at the same time
                output.close()
    if copied != len(plan.pieces):
        raise MediaError(name, "the file changed while it was being split")
