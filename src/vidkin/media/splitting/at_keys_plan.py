"""Where a video can be split without encoding: the usable key frames, and the piece of every packet."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from vidkin.errors import MediaError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

__all__ = ["SplitPlan", "iter_packets", "plan_split"]


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Which packet belongs to which piece.

    Attributes:
        tick: Seconds of one unit of the video's times.
        base: Time of the first picture, in units.
        end: Time at which the last picture leaves the screen, in units.
        entries: Presentation times, in units, of the key frames at which the pieces begin; the first is ``base``.
        owners: For every requested part, the number of its piece.
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
        kept: Numbers of the streams to keep in the pieces.
        starts: Start of each part in seconds from the first picture, increasing.
        unwanted: Parts to leave out, unless they must be in the piece of a neighbor.

    Raises:
        MediaError: The pictures have no times, or there are none.
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
            raise MediaError(
                name, "its pictures have no times, so it cannot be split; put it into a container first"
            )
        if packet.is_keyframe:
            keys.append(len(times))
        times.append(stamp)
        if not packet.is_discard:
            shown.append(stamp)
            lengths.append(packet.duration or 0)
    if not shown:
        raise MediaError(name, "there are no pictures in it")
    base, tick = min(shown), Fraction(main.time_base or Fraction(1, 90_000))
    # Some formats have no durations, especially for the last picture; then it is assumed to be on screen for the usual
    # time.
    usual = int(median(after - before for before, after in pairwise(sorted(shown)))) if len(shown) > 1 else 0
    end = max(stamp + (length or usual) for stamp, length in zip(shown, lengths, strict=True))
    serving = [(base, 0), *((times[key], key) for key in _serving_keys(times, keys))]
    # Half a unit of tolerance, because times in seconds are rounded.
    units = [Fraction(start) / tick + base + Fraction(1, 2) for start in starts]
    places = [max(0, bisect_right(serving, (unit, math.inf)) - 1) for unit in units]
    for part in sorted(unwanted, reverse=True):
        # The part before is whole if this one begins at the key frame after its start, provided there is one.
        later = bisect_left(serving, (units[part] - 1, 0))
        following = places[part + 1] if part + 1 < len(places) else len(serving)
        places[part] = later if later < following else places[max(0, part - 1)]
    chosen = sorted({0, *places})
    entries = [serving[place] for place in chosen]
    pieces = _pieces(container, main.index, stamps, entries, tick)
    owners = [chosen.index(place) for place in places]
    return SplitPlan(tick, base, end, [time for time, _ in entries], owners, pieces)


def iter_packets(container: InputContainer, kept: AbstractSet[int]) -> Iterator[Packet[Any]]:
    """The nonempty packets of the kept streams, in the order of the file."""
    for packet in container.demux([stream for stream in container.streams if stream.index in kept]):
        if packet.size:
            yield packet


def _serving_keys(times: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Key frames, except the first, at which a file can be split: all pictures stored before are shown before, all
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
    """The piece of every packet: pictures by their place in the file, other packets by time."""
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
