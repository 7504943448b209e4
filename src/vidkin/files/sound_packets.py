"""Find audio tracks whose compressed packets are all in another file at the same times, without decoding."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import av.error
import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin.files.stretches import TimeStretch
from vidkin.media.reader import MAX_TRACKS, demux
from vidkin.media.sound import open_sound

# Seconds to read first from each file; re-encoded files have no packets in common and need no further reading.
_TRIAL = 20.0
# Maximum offset of a packet relative to the frames in seconds, as for decoded audio.
_MAX_DELAY = 0.4
# Seconds at the ends of a file or stretch in which packets may be missing, because cuts are made between packets.
_MARGIN = 0.25

Packets = tuple[NDArray[np.uint64], NDArray[np.float64]]
"""Digests and times of the packets of a track."""


def find_same_packets(
    kept: PathLike, removed: PathLike, pieces: Sequence[tuple[float, float, TimeStretch]]
) -> dict[int, int]:
    """Find the tracks of one file whose packets are all in a track of another file, at the times given by the frames.

    Args:
        kept: The file that stays.
        removed: The file that may be removed.
        pieces: Stretches of the removed file in the kept file; see `extend_stretches`.

    Returns:
        Index of the kept track by index of the removed track; empty if packets cannot be read.

    Raises:
        MediaError: One of the files cannot be opened, or has no audio.
    """
    starts = [max(stretch.removed_start, 0.0) for _, _, stretch in pieces[:1]]
    try:
        head = _read_packets(removed, starts[0], starts[0] + _TRIAL)
        begin = pieces[0][2].kept_time(starts[0])
        kept_head = _read_packets(kept, begin, begin + _TRIAL)
        known = np.concatenate([digests for digests, _ in kept_head.values()])
        if not any(np.isin(digests, known).any() for digests, _ in head.values()):
            return {}
        ours, theirs = _read_packets(removed), _read_packets(kept)
    except av.error.FFmpegError:
        return {}  # decoding reports the damage
    same = {}
    for number, packets in ours.items():
        other = next((other for other, kept_packets in theirs.items() if _has_all(kept_packets, packets, pieces)), None)
        if other is not None:
            same[number] = other
    return same


def _read_packets(path: PathLike, start: float = float("-inf"), end: float = float("inf")) -> dict[int, Packets]:
    """Read the packets of each track, by index, between two times in seconds from the first frame."""
    with open_sound(os.fspath(path)) as (container, origin):
        streams = container.streams.audio[:MAX_TRACKS]
        digests: dict[int, list[int]] = {stream.index: [] for stream in streams}
        times: dict[int, list[float]] = {stream.index: [] for stream in streams}
        for packet in demux(container, *streams):
            if not packet.size or packet.pts is None or packet.time_base is None:
                continue
            time = float(packet.pts * packet.time_base) - origin
            if time > end:
                break
            if time >= start:
                digest = hashlib.blake2b(memoryview(packet), digest_size=8).digest()
                digests[packet.stream_index].append(int.from_bytes(digest, "little"))
                times[packet.stream_index].append(time)
        return {
            number: (np.array(digests[stream.index], np.uint64), np.array(times[stream.index], np.float64))
            for number, stream in enumerate(streams)
        }


def _has_all(kept: Packets, removed: Packets, pieces: Sequence[tuple[float, float, TimeStretch]]) -> bool:
    digests, times = removed
    if not len(digests) or not len(kept[0]) or any(stretch.speed != 1.0 for _, _, stretch in pieces):
        return False
    expected = np.empty_like(times)
    is_edge = (times < times[0] + _MARGIN) | (times > times[-1] - _MARGIN)
    for start, end, stretch in pieces:
        inside = (times >= start) & (times < end)
        expected[inside] = times[inside] + stretch.kept_start - stretch.removed_start
        is_edge |= (np.abs(times - start) < _MARGIN) | (np.abs(times - end) < _MARGIN)
    # Packets of silence repeat, so compare with the packet nearest in time among those with the same digest.
    names = np.unique(kept[0])
    codes = np.searchsorted(names, digests)
    is_known = names[np.minimum(codes, len(names) - 1)] == digests
    scale = float(max(times.max(), kept[1].max(), expected.max())) + 1e3
    kept_keys = np.sort(np.searchsorted(names, kept[0]) * scale + kept[1])
    keys = codes * scale + expected
    after = np.minimum(np.searchsorted(kept_keys, keys), len(kept_keys) - 1)
    nearest = np.minimum(np.abs(kept_keys[after] - keys), np.abs(kept_keys[np.maximum(after - 1, 0)] - keys))
    return bool((is_edge | (is_known & (nearest <= _MAX_DELAY))).all())
