"""Split a video at usable key frames without encoding, copying each packet unchanged to one piece."""

from __future__ import annotations

import math
import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import av

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, safe_name
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.encode import open_media_output
from vidkin.media.frames import DEFAULT_TIME_BASE
from vidkin.media.pieces import (
    Piece,
    SplitReport,
    choose_form,
    describe_pieces,
    end_with_piece,
    piece_codes,
    piece_paths,
)
from vidkin.media.reader import frame_rate, open_video
from vidkin.media.time_code import read_time_code

if TYPE_CHECKING:
    from av.container import InputContainer, OutputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.stream import VideoStream


@check_arguments
def split_video(
    source: PathLike,
    folder: PathLike,
    starts: Sequence[float],
    *,
    names: Sequence[str | None] | None = None,
    stream: int | None = None,
    time_code: str | None = None,
) -> SplitReport:
    """Split a video before given times without encoding, including audio and subtitles.

    A compressed frame needs the frames before it, back to the last key frame, so a piece can only begin at a key frame:
    the last one at or before the requested time. A piece can therefore begin with the end of the previous part (which
    is then missing from the piece of that part); `Piece.start` is its actual start. Parts without a key frame between
    them share a piece. Key frames that later frames reference across (open GOPs) are not used, because frames between
    two pieces would be lost. Audio and subtitles belong to the piece in which they start.

    Pieces have the format of the source, or Matroska if that cannot be written. They all appear when all are complete.
    Existing files are replaced only if they are pieces of this video, because recordings are often numbered in the
    same way.

    Args:
        source: The video.
        folder: Folder to write to; created if missing.
        starts: Start of each part in seconds from the first frame, increasing. Frames before the first start belong to
            the first piece.
        names: For each part, the name of a piece that begins with it, without extension; None for an unwanted part,
            which is left out as far as key frames allow. Default: ``<name>-001``, ``<name>-002``, ...
        stream: Index of the video stream, as in `vidkin.media.split_by_frame`.
        time_code: Time code of the first frame, as in `vidkin.media.split_by_frame`.

    Raises:
        InvalidArgumentError: ``starts`` is empty or does not increase from 0 s, or the number of names differs from the
            number of parts.
        MediaError: The source cannot be read or has no times, a piece cannot be written, or another file has its name.
    """
    if names is not None and len(names) != len(starts):
        raise InvalidArgumentError(f"names must be one per part, {len(starts)}, got {len(names)}")
    if not starts:
        raise InvalidArgumentError("split times must not be empty; the start of the video is 0")
    previous = -1.0
    for start in starts:
        if not (math.isfinite(start) and start >= 0 and start > previous):
            raise InvalidArgumentError(
                f"split times must increase and be at least 0 s, got {', '.join(f'{s:g}' for s in starts)}"
            )
        previous = start
    name = os.fspath(source)
    with open_video(name, threads=1, stream=stream) as (container, video):
        time_code = read_time_code(container, video) if time_code is None else time_code
        form = choose_form(name, container, video, with_time_code=bool(time_code))
        unwanted = [part for part, given in enumerate(names or ()) if given is None]
        plan = plan_split(name, container, video, form.kept, starts, unwanted)
        rate = Fraction(frame_rate(video)).limit_denominator(60_060)
    # Each piece has the name of its first part.
    named: dict[int, str] = {}
    if names is None:
        digits = max(3, len(str(len(plan.entries))))
        named = {n: f"{safe_name(Path(name).stem)}-{n + 1:0{digits}d}" for n in range(len(plan.entries))}
    else:
        for owner, given in zip(plan.owners, names, strict=True):
            if given is not None:
                named.setdefault(owner, given)
    paths = dict(zip(named, piece_paths(name, folder, list(named.values()), form.suffix), strict=True))
    made_of = describe_pieces(name)
    with ExitStack() as stack:
        partials = {
            number: stack.enter_context(open_media_output(path, source=made_of)) for number, path in paths.items()
        }
        with open_video(name, threads=1, stream=stream) as (container, _):
            codes = piece_codes(time_code, rate, plan.starts())
            _write(name, container, form.kept, plan, partials, codes)
    counts = Counter(plan.pieces)
    borders = [*plan.starts(), float((plan.end - plan.base) * plan.tick)]
    pieces = tuple(
        Piece(
            path=str(path),
            start=borders[number],
            end=borders[number + 1],
            parts=tuple(position for position, owner in enumerate(plan.owners) if owner == number),
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
    codes: Sequence[str],
) -> None:
    """Copy each packet to its piece, with times counted from the start of the piece."""
    waiting = Counter(plan.pieces)
    shifts = [time * plan.tick for time in plan.entries]
    ends = [*plan.entries[1:], plan.end]
    with ExitStack() as stack:
        outputs: dict[int, tuple[OutputContainer, dict[int, Stream]]] = {}
        copied = 0
        for packet, piece in zip(iter_packets(container, kept), plan.pieces, strict=False):
            copied += 1
            if piece not in paths:
                continue
            if piece not in outputs:
                output = stack.enter_context(av.open(f"file:{paths[piece]}", "w"))
                if codes[piece]:
                    output.metadata["timecode"] = codes[piece]
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
            if packet.stream.type == "subtitle":
                end_with_piece(packet, float((ends[piece] - plan.entries[piece]) * plan.tick))
            output.mux_one(packet)
            waiting[piece] -= 1
            if not waiting[piece]:  # close completed pieces, so that only a few files are open at a time
                output.close()
    if copied != len(plan.pieces):
        raise MediaError(name, "the file changed while it was being split")


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Assignment of packets to pieces.

    Attributes:
        tick: Seconds per tick of the video's times.
        base: Time of the first frame, in ticks.
        end: End of the last frame, in ticks.
        entries: Presentation times, in ticks, of the key frames at which the pieces begin; the first is ``base``.
        owners: Index of the piece for each requested part.
        pieces: Index of the piece for each packet, in file order.
    """

    tick: Fraction
    base: int
    end: int
    entries: list[int]
    owners: list[int]
    pieces: list[int]

    def starts(self) -> list[float]:
        """Return the starts of the pieces in seconds from the first frame."""
        return [float((time - self.base) * self.tick) for time in self.entries]


def plan_split(
    name: str,
    container: InputContainer,
    main: VideoStream,
    kept: AbstractSet[int],
    starts: Sequence[float],
    unwanted: Collection[int] = (),
) -> SplitPlan:
    """Read all packets once, choose a key frame for each start, and assign every packet to a piece.

    Args:
        name: Name of the file, for messages.
        container: The open file.
        main: The file's video stream.
        kept: Indices of the streams to keep in the pieces.
        starts: Start of each part in seconds from the first frame, increasing.
        unwanted: Parts to leave out, unless they must be in the piece of an adjacent part.

    Raises:
        MediaError: There are no frames, or they have no times.
    """
    stamps: list[tuple[int, int | None]] = []
    times: list[int] = []
    keys: list[int] = []
    shown: list[int] = []
    lengths: list[int] = []
    for packet in iter_packets(container, kept):
        stamp = packet.pts if packet.pts is not None else packet.dts
        stamps.append((packet.stream_index, stamp))
        if packet.stream_index != main.index:
            continue
        if stamp is None:
            raise MediaError(name, "its frames have no times, so it cannot be split; remux it into a container first")
        if packet.is_keyframe:
            keys.append(len(times))
        times.append(stamp)
        if not packet.is_discard:
            shown.append(stamp)
            lengths.append(packet.duration or 0)
    if not shown:
        raise MediaError(name, "it has no frames")
    base, tick = min(shown), Fraction(main.time_base or DEFAULT_TIME_BASE)
    # Some formats state no durations, especially for the last frame; assume the typical duration in this case.
    usual = int(median(after - before for before, after in pairwise(sorted(shown)))) if len(shown) > 1 else 0
    end = max(stamp + (length or usual) for stamp, length in zip(shown, lengths, strict=True))
    split_points = [(base, 0), *((times[key], key) for key in _find_split_keys(times, keys))]
    # Allow a tolerance of half a tick, because times in seconds are rounded.
    units = [Fraction(start) / tick + base + Fraction(1, 2) for start in starts]
    positions = [max(0, bisect_right(split_points, (unit, math.inf)) - 1) for unit in units]
    for part in sorted(unwanted, reverse=True):
        # Let an unwanted part begin at the first key frame after its start, if any, so that the previous part is
        # complete.
        later = bisect_left(split_points, (units[part] - 1, 0))
        following = positions[part + 1] if part + 1 < len(positions) else len(split_points)
        positions[part] = later if later < following else positions[max(0, part - 1)]
    chosen = sorted({0, *positions})
    entries = [split_points[position] for position in chosen]
    pieces = _assign_packets(container, main.index, stamps, entries, tick)
    owners = [chosen.index(position) for position in positions]
    return SplitPlan(tick, base, end, [time for time, _ in entries], owners, pieces)


def iter_packets(container: InputContainer, kept: AbstractSet[int]) -> Iterator[Packet[Any]]:
    """Yield the nonempty packets of the kept streams, in file order."""
    for packet in container.demux([stream for stream in container.streams if stream.index in kept]):
        if packet.size:
            yield packet


def _find_split_keys(times: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Find the key frames after the first at which a file can be split: all frames stored before them are shown before
    them, and all frames stored after them are shown after them."""
    split_points = []
    latest = max(times[: keys[1]]) if len(keys) > 1 else 0
    for key, following in pairwise([*keys[1:], len(times)]):
        group = times[key:following]
        if times[key] > latest and min(group) == times[key]:
            split_points.append(key)
        latest = max(latest, *group)
    return split_points


def _assign_packets(
    container: InputContainer,
    main: int,
    stamps: Sequence[tuple[int, int | None]],
    entries: Sequence[tuple[int, int]],
    tick: Fraction,
) -> list[int]:
    """Assign each packet to a piece: video packets by position in the file, other packets by time."""
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
