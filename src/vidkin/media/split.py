"""Splitting a video into pieces without encoding anything anew: every packet goes to one piece, unchanged."""

from __future__ import annotations

import math
import os
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import av

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.decoding.container import open_video
from vidkin.media.encode import open_media_output

if TYPE_CHECKING:
    from av.container import InputContainer, OutputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.stream import VideoStream

__all__ = ["Piece", "SplitReport", "split_video"]

# Where the format of the source cannot be written, this one holds nearly everything.
_FALLBACK = ".mkv"
_KEPT_KINDS = ("video", "audio", "subtitle")


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a split video.

    Attributes:
        path: The file.
        start: Where it really begins, in seconds of the source: at a key frame, at or before what was asked for.
        end: Where it ends, in seconds of the source: the start of the next piece, or the end of the video.
        parts: Which of the starts that were asked for lie in it (places in their list). Usually one; several where
            no key frame lies between them, none for the piece before the first of them.
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
        pieces: In the order of time; together they hold every packet of the streams that were kept.
        left_out: Streams that are in no piece, in words (cover pictures, data, what the format cannot hold).
    """

    pieces: tuple[Piece, ...]
    left_out: tuple[str, ...]


def split_video(
    source: str | os.PathLike[str], folder: str | os.PathLike[str], starts: Sequence[float]
) -> SplitReport:
    """Split a video in front of given times, with sound and subtitles, without encoding anew.

    A compressed picture needs those before it back to the last key frame, so a piece can only begin at a key frame:
    the last one at or before the time asked for. So a piece may begin with the end of the part before (and then that
    part's own piece lacks it); `Piece.start` says where it really begins. Parts between which no key frame lies
    share a piece. Key frames that later pictures reach back over (open groups of pictures) are not used, as the
    pictures between two pieces would be lost. Sound and subtitles go with the piece in which they start.

    Pieces are called ``<name>-001.mp4`` and so on, in the source's format, or as Matroska where that
    cannot be written. They appear together when all are complete; existing files of these names are replaced, but not
    in the folder of the source: recordings are often numbered in just this way.

    Args:
        source: The video.
        folder: Where to write; made if it is not there.
        starts: Times at which parts begin, in seconds from the first frame, increasing. What lies before the first
            one belongs to the first piece.

    Raises:
        InvalidArgumentError: ``starts`` is empty or does not increase from 0 s on, or a file beside the source has the
            name of a piece.
        MediaError: The source cannot be read or carries no times, or the pieces cannot be written.
    """
    _check(starts)
    name = os.fspath(source)
    with open_video(name, threads=1) as (container, stream):
        suffix, kept, left_out = _form(name, container, stream)
        plan = _plan(name, container, stream, kept, starts)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(target, f"the folder cannot be made ({error.strerror or error})") from error
    digits = max(3, len(str(len(plan.entries))))
    names = [f"{Path(name).stem}-{number:0{digits}d}{suffix}" for number in range(1, len(plan.entries) + 1)]
    if target.samefile(Path(name).parent):
        _check_neighbours(target, names)
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


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which packet goes where.

    Attributes:
        tick: Seconds of one unit of the video's times.
        base: Time of the first picture, in units.
        end: Time at which the last picture leaves the screen, in units.
        entries: Presentation times of the key frames at which the pieces begin, in units; the first is ``base``.
        owners: For every part that was asked for, the number of its piece.
        pieces: For every packet in the order of the file, the number of its piece.
    """

    tick: Fraction
    base: int
    end: int
    entries: list[int]
    owners: list[int]
    pieces: list[int]

    def starts(self) -> list[float]:
        """Where pieces begin, in seconds from the first picture."""
        return [float((time - self.base) * self.tick) for time in self.entries]


def _check(starts: Sequence[float]) -> None:
    if not starts:
        raise InvalidArgumentError("there are no times to split at; give at least one, as [0.0]")
    previous = -1.0
    for start in starts:
        if not (math.isfinite(start) and start >= 0 and start > previous):
            raise InvalidArgumentError(
                f"times to split at must increase from 0 s on, given are {', '.join(f'{s:g}' for s in starts)}"
            )
        previous = start


def _check_neighbours(folder: Path, names: Sequence[str]) -> None:
    taken = [name for name in names if os.path.lexists(folder / name)]
    if taken:
        raise InvalidArgumentError(
            f"a piece would replace {taken[0]!r}, which lies beside the video; give a folder of its own for the pieces"
        )


def _form(name: str, container: InputContainer, main: VideoStream) -> tuple[str, set[int], list[str]]:
    """Ending of the pieces, numbers of the streams that they hold, and the other streams in words."""
    wanted, left_out = [], []
    for stream in container.streams:
        cover = bool(stream.disposition & av.stream.Disposition.attached_pic)
        if stream.index == main.index or (stream.type in _KEPT_KINDS and not cover):
            wanted.append(stream)
        else:
            left_out.append(f"stream {stream.index}: {'cover picture' if cover else stream.type}")
    # Trials are the only way to ask the muxers; nothing is written but an empty file.
    with tempfile.TemporaryDirectory() as trials:
        for suffix in dict.fromkeys((Path(name).suffix.lower(), _FALLBACK)):
            fit = _holdable(f"file:{trials}/trial{suffix}", wanted)
            if main.index in fit:
                left_out += [
                    f"stream {stream.index}: {stream.type}, which {suffix} files cannot hold"
                    for stream in wanted
                    if stream.index not in fit
                ]
                return suffix, fit, left_out
    raise MediaError(name, f"its {main.codec_context.name} video cannot be written into any file of pieces")


def _holdable(trial: str, streams: Sequence[Stream]) -> set[int]:
    """Numbers of the streams that a file of this name can hold."""
    fit = set()
    try:
        with av.open(trial, "w") as output:
            for stream in streams:
                with suppress(ValueError):  # of PyAV, where the format cannot hold it
                    # Opaque: the codec's name is enough, where a decoder has no encoder of the same name.
                    output.add_stream_from_template(stream, opaque=True)
                    fit.add(stream.index)
    except ValueError:  # of PyAV, where the ending names no format
        return set()
    return fit


def _packets(container: InputContainer, kept: set[int]) -> Iterator[Packet[Any]]:
    for packet in container.demux([stream for stream in container.streams if stream.index in kept]):
        if packet.size:
            yield packet


def _plan(
    name: str, container: InputContainer, main: VideoStream, kept: set[int], starts: Sequence[float]
) -> _Plan:
    """First pass: find the key frames that serve, choose one for every start, give every packet its piece."""
    stamps: list[tuple[int, int | None]] = []
    times: list[int] = []
    keys: list[int] = []
    shown: list[int] = []
    lengths: list[int] = []
    for packet in _packets(container, kept):
        stamp = packet.pts if packet.pts is not None else packet.dts
        stamps.append((packet.stream_index, stamp))
        if packet.stream_index != main.index:
            continue
        if stamp is None:
            raise MediaError(
                name, "its pictures carry no times, so it cannot be split; put it into a container first"
            )
        if packet.is_keyframe:
            keys.append(len(times))
        times.append(stamp)
        if not packet.is_discard:
            shown.append(stamp)
            lengths.append(packet.duration or 0)
    if not shown:
        raise MediaError(name, "there is not a single picture in it")
    base, tick = min(shown), Fraction(main.time_base or Fraction(1, 90_000))
    # Some formats tell no durations, of the last picture least of all: then it stays as long as is usual.
    usual = int(median(after - before for before, after in pairwise(sorted(shown)))) if len(shown) > 1 else 0
    end = max(stamp + (length or usual) for stamp, length in zip(shown, lengths, strict=True))
    serving = [(base, 0), *((times[key], key) for key in _serving_keys(times, keys))]
    # Half a unit of grace, as times in seconds are rounded.
    units = [Fraction(start) / tick + base + Fraction(1, 2) for start in starts]
    places = [max(0, bisect_right(serving, (unit, math.inf)) - 1) for unit in units]
    chosen = sorted({0, *places})
    entries = [serving[place] for place in chosen]
    pieces = _pieces(container, main.index, stamps, entries, tick)
    owners = [chosen.index(place) for place in places]
    return _Plan(tick, base, end, [time for time, _ in entries], owners, pieces)


def _serving_keys(times: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Key frames but the first at which a file can be parted: all pictures stored before are shown before, all
    stored after are shown after."""
    serving = []
    latest = max(times[: keys[1]]) if len(keys) > 1 else 0
    for key, following in pairwise([*keys[1:], len(times)]):
        group = times[key:following]
        if times[key] > latest and min(group) == times[key]:
            serving.append(key)
        latest = max(latest, *group)
    return serving


def _pieces(
    container: InputContainer,
    main: int,
    stamps: Sequence[tuple[int, int | None]],
    entries: Sequence[tuple[int, int]],
    tick: Fraction,
) -> list[int]:
    """The piece of every packet: pictures by their place, the rest by time."""
    ordinals = [ordinal for _, ordinal in entries]
    borders = [time * tick for time, _ in entries]
    bases = {stream.index: Fraction(stream.time_base or 1) for stream in container.streams}
    pieces: list[int] = []
    ordinal = 0
    latest: dict[int, int] = {}
    for index, stamp in stamps:
        if index == main:
            pieces.append(bisect_right(ordinals, ordinal) - 1)
            ordinal += 1
            continue
        if stamp is not None:
            latest[index] = max(0, bisect_right(borders, stamp * bases[index]) - 1)
        pieces.append(latest.get(index, 0))
    return pieces


def _write(name: str, container: InputContainer, kept: set[int], plan: _Plan, paths: Sequence[Path]) -> None:
    """Second pass: copy every packet into its piece, its times counted from where the piece begins."""
    waiting = Counter(plan.pieces)
    shifts = [time * plan.tick for time in plan.entries]
    with ExitStack() as stack:
        outputs: dict[int, tuple[OutputContainer, dict[int, Stream]]] = {}
        copied = 0
        for packet, piece in zip(_packets(container, kept), plan.pieces, strict=False):
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
            if not waiting[piece]:  # so that hardly more than one is open at any time
                output.close()
    if copied != len(plan.pieces):
        raise MediaError(name, "the file changed while it was being split")
