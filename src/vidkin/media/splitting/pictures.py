"""The stored pictures of a video: which packet is which frame, and where copying can begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin.media.splitting.h264 import ParameterSets, free_number, is_instant_refresh, split_units
from vidkin.media.time import SAME_TIME

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

__all__ = ["StoredPictures", "read_stored_pictures"]

# Formats whose packets carry the times at which pictures are shown.
_WITH_TIMES = ("mov,", "matroska,", "mpegts", "flv")
# Profiles of H.264 as x264 names them.
_PROFILES = {66: "baseline", 77: "main", 100: "high", 110: "high10", 122: "high422", 244: "high444"}


@dataclass(frozen=True, slots=True, eq=False)
class StoredPictures:
    """The packets of a video, one per frame, in the order of decoding.

    Attributes:
        ordinals: [T] int64, place of each packet among all packets of the video (some are never shown).
        stamps: [T] int64, presentation times in units of the stream.
        ranks: [T] int64, number of each packet's frame in order of presentation.
        entries: Frames at which copying can begin, increasing. The packets from there on hold exactly the frames from
            there on.
        barriers: Frames, increasing, preceded by packets that are never shown but would be shown if copied.
        is_mixable: Whether encoded and copied pictures can follow each other in one stream.
        sets: Parameter sets of H.264 in MP4 and Matroska.
        profile: H.264 profile as x264 names it.
        number: A free number for H.264 parameter sets.
    """

    ordinals: NDArray[np.int64]
    stamps: NDArray[np.int64]
    ranks: NDArray[np.int64]
    entries: NDArray[np.int64]
    barriers: NDArray[np.int64]
    is_mixable: bool
    sets: ParameterSets | None = None
    profile: str | None = None
    number: int | None = None

    def __len__(self) -> int:
        return len(self.ranks)

    def times(self) -> NDArray[np.int64]:
        """Presentation times [T] of the frames, increasing."""
        times: NDArray[np.int64] = np.sort(self.stamps)
        return times

    def last_end(self, start: int, end: int) -> int:
        """The last frame, at most ``end``, up to which frames can be copied from ``start`` on: their packets come
        first, and need none that come later."""
        later = self.barriers[self.barriers > start]
        end = min(end, int(later[0])) if len(later) else end
        latest = np.maximum.accumulate(self.ranks[start:end])
        closed = np.flatnonzero(latest == np.arange(start, start + len(latest)))
        return start + int(closed[-1]) + 1 if len(closed) else start


def read_stored_pictures(
    container: InputContainer, main: VideoStream, times: NDArray[np.float64]
) -> StoredPictures | None:
    """Read all packets of a video.

    Args:
        container: The open file.
        main: The file's video stream.
        times: [T] times in seconds of the decoded frames, from the first one on; later frames can be missing.

    Returns:
        The pictures; None if packets cannot be matched to frames: separate fields, pictures that are not shown,
        damage, or a format that stores only decoding times.
    """
    form = _Form.of(main)
    ordinals: list[int] = []
    stamps: list[int] = []
    keys: list[int] = []  # places in both lists
    hidden: list[int] = []  # places preceded by a packet that is not shown
    for ordinal, packet in enumerate(packet for packet in container.demux(main) if packet.size):
        if packet.has_sidedata("new_extradata") or packet.is_corrupt:
            return None
        if packet.is_discard:
            hidden.append(len(stamps))
            continue
        stamp = packet.pts if container.format.name.startswith(_WITH_TIMES) else packet.dts
        if stamp is None:
            return None
        if packet.is_keyframe and form.can_begin(packet):
            keys.append(len(stamps))
        ordinals.append(ordinal)
        stamps.append(stamp)
    shown = np.array(stamps, np.int64)
    order = np.argsort(shown, kind="stable")
    seconds = (shown[order] - shown[order[:1]]) * float(main.time_base or Fraction(1, 90_000))
    if len(times) > len(shown) or not np.allclose(seconds[: len(times)], times, rtol=0, atol=SAME_TIME):
        return None
    if not container.format.name.startswith(_WITH_TIMES) and len(keys) < len(shown):
        return None
    ranks = np.empty(len(shown), np.int64)
    ranks[order] = np.arange(len(shown))
    latest = np.maximum.accumulate(ranks)
    candidates = np.array(keys, np.int64)
    clean = (ranks[candidates] == candidates) & (np.append(-1, latest)[candidates] == candidates - 1)
    return StoredPictures(
        np.array(ordinals, np.int64),
        shown,
        ranks,
        candidates[clean],
        np.unique(np.array(hidden, np.int64)),
        form.is_mixable,
        form.sets,
        form.profile,
        form.number,
    )


class _Form:
    """How a codec stores pictures, as far as it matters for copying and mixing."""

    def __init__(self) -> None:
        self.is_mixable = False
        self.sets: ParameterSets | None = None
        self.profile: str | None = None
        self.number: int | None = None
        self._is_h264 = False

    @staticmethod
    def of(main: VideoStream) -> _Form:
        """The form of a stream."""
        form = _Form()
        codec = main.codec_context.codec.canonical_name
        # A key frame of these codecs needs nothing outside itself.
        form.is_mixable = codec in ("vp8", "vp9")
        if codec == "h264":
            form._is_h264 = True
            extra = main.codec_context.extradata or b""
            form.sets = ParameterSets.parse(extra)
            if form.sets is not None:
                form._use([*form.sets.sequences, *form.sets.pictures])
                form.is_mixable = form.is_mixable and form.sets.length_size == 4
        return form

    def can_begin(self, packet: Packet[Any]) -> bool:
        """Whether copying can begin at this key frame."""
        if not self._is_h264:
            return True
        size = None if self.sets is None else self.sets.length_size
        units = list(split_units(bytes(packet), size))
        refreshes = is_instant_refresh(units, with_sets=self.sets is None)
        if refreshes and self.number is None:
            self._use(units)
        return refreshes

    def _use(self, units: list[bytes]) -> None:
        sequences = [unit for unit in units if unit[0] & 31 == 7]
        self.number = free_number(units)
        self.profile = _PROFILES.get(sequences[0][1]) if sequences else None
        self.is_mixable = self.number is not None and self.profile is not None
