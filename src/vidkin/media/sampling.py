"""Choose the frames on screen at the sample times, and decode only the packets that they need.

Packets come in decoding order and carry presentation times, so the frame on screen at a sample time is known before
decoding, as soon as no later packet can have a nearer time. A frame needs the packets from the last key frame before
it; earlier packets that no sample needs are dropped. Among the remaining packets, the decoder skips frames that are
neither sampled nor referenced. The result includes every sampled frame, so the `Sampler` after it chooses the same
frames as it would from all frames.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import av.error

from vidkin.media.frames import Ticks, earliest, is_before
from vidkin.media.reader import has_hole

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from vidkin.media.reader import PictureReader

# No format decodes as many frames as this ahead of a frame that is shown before them (H.264 and HEVC: 16).
MAX_REORDERED = 17

# Upper limits on packets that wait for a decision; beyond them, packets are decoded.
MAX_WAITING_PACKETS = 1024

MAX_WAITING_BYTES = 48 * 2**20

# Codecs whose decoders can skip unreferenced frames without changing the others.
SKIPPING_CODECS = frozenset({"h264", "hevc", "mpeg1video", "mpeg2video"})

# Formats with an index of key frames, which makes seeking reliable.
SEEKABLE = ("mov", "matroska")

# Seconds that justify a seek, and seconds by which to seek early, because indices may be sorted by decoding time.
MIN_SEEK = 5.0

SEEK_MARGIN = 1.0


class SkippingDecoder:
    """Feeds the decoder of a `PictureReader` with the packets that the samples need.

    Args:
        reader: Reader of the file, from which nothing has been read.
        samples: Function that returns the samples, called after the first frame.
        every: Whether all frames are sampled, from sample 0 on.
    """

    def __init__(self, reader: PictureReader, samples: Callable[[], Samples], *, every: bool) -> None:
        self._reader = reader
        self._samples = samples
        self._every = every
        self._decoder = reader.stream.codec_context
        self._can_skip = self._decoder.codec.canonical_name in SKIPPING_CODECS
        self._is_intact = find_packet_check(self._decoder)
        # Times of damaged packets that were not decoded.
        self._dropped_failures: list[int] = []
        self._packets = reader.packets()
        self._waiting: deque[tuple[int, Packet[VideoStream]]] = deque()
        self._bytes = 0
        # Times of the frames fed to the decoder: the latest at or before the last sample, and all after it.
        self._fed: list[int] = []
        self._decoding_time: int | None = None
        self._restart = False
        # Time of the key frame at which decoding was resumed, until that frame is decoded.
        self._entry: int | None = None
        self._has_ended = False
        self._is_predictable = True

    def pictures(self) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (time in units of the stream, frame) for every sampled frame, and some others."""
        yield from self._reader.timed(self._frames())
        self.close()

    def close(self) -> None:
        """Report damage, including packets that were not decoded, or raise `MediaError` if there was no frame."""
        if self._has_ended:
            self._drop_waiting()  # packets after the last sample
        for time in self._dropped_failures:
            self._reader.count_failure(time)
        self._reader.close()

    def _frames(self) -> Iterator[VideoFrame]:
        try:
            # Decode up to the first frame, from which times are counted.
            for packet in self._packets:
                self._is_predictable = self._is_predictable and packet.pts is not None
                if packet.pts is not None:
                    self._fed.append(packet.pts)
                frames = self._reader.feed(packet)
                yield from frames
                if frames:
                    break
            if self._reader.base is not None:
                samples = self._samples()
                self._seek(samples.limit_of(0))
                index = 0
                while self._is_predictable and (limit := samples.limit_of(index)) is not None:
                    yield from self._reach(limit)
                    following = [time for time, _ in self._waiting if time > limit]
                    following += [time for time in self._fed if time > limit]
                    if self._every or not following:
                        break
                    # Samples before the next frame show the same frame.
                    index = samples.index_after(index + 1, min(following))
                if self._every or not self._is_predictable:
                    while self._waiting:
                        time, packet = self._waiting[0]
                        self._take()
                        yield from self._feed(time, packet, needed=True)
                    for packet in self._packets:
                        yield from self._reader.feed(packet)
            yield from self._drain()
        except _NoEntryError:
            # For example in video with a periodic intra refresh. Decode everything; no frame is returned twice.
            self._decoder.skip_frame = "DEFAULT"
            self._dropped_failures.clear()
            yield from self._reader.again()

    def _seek(self, limit: int | None) -> None:
        """Jump ahead if the first sample is far away."""
        reader = self._reader
        base = reader.base or 0
        if limit is None or reader.ticks.seconds(limit) < MIN_SEEK:
            return
        if not self._is_predictable or not reader.container.format.name.startswith(SEEKABLE):
            return
        try:
            reader.container.seek(limit - int(SEEK_MARGIN / reader.tick), stream=reader.stream)
            self._packets = reader.packets()
            first = next(self._packets, None)
            if first is None or first.pts is None or not first.is_keyframe or first.pts > limit:
                reader.container.seek(min(0, base), stream=reader.stream)
                self._packets = reader.packets()
            else:
                self._wait(first.pts, first)
                self._entry = first.pts
            self._fed.clear()
        except av.error.FFmpegError:
            self._packets = reader.packets()  # the position is unchanged: continue from here

    def _reach(self, limit: int) -> Iterator[VideoFrame]:
        """Read on until the frame on screen at ``limit`` is certain, and decode it."""
        later = sum(time > limit for time, _ in self._waiting)
        while later < MAX_REORDERED and not self._has_ended:
            packet = next(self._packets, None)
            if packet is None:
                self._has_ended = True
                break
            before, self._decoding_time = self._decoding_time, packet.dts
            steps_back = before is not None and packet.dts is not None and packet.dts < before
            if packet.pts is None or steps_back or self._reader.failures:
                # Nothing can be predicted without times, across joined recordings, or after damage.
                self._is_predictable = False
                self._wait(packet.pts or 0, packet)
                return
            if packet.pts > limit:
                later += 1
            elif (
                packet.is_keyframe
                and not packet.is_discard
                and self._waiting
                and all(time < packet.pts for time, _ in self._waiting)
            ):
                # Packets before a key frame that is not after the sample are not needed.
                if self._is_intact is not None:
                    self._dropped_failures += [
                        time for time, waiting in self._waiting if not (waiting.is_corrupt or self._is_intact(waiting))
                    ]
                self._waiting.clear()
                self._bytes = 0
                self._restart = True
                if not self._fed:
                    self._entry = None  # the key frame of the seek was never decoded
            self._wait(packet.pts, packet)
            if len(self._waiting) > MAX_WAITING_PACKETS or self._bytes > MAX_WAITING_BYTES:
                yield from self._decode_until(self._latest(limit), whole=False)
        if self._has_ended and limit >= self._reader.end:
            return  # no further sample shows the last frame
        yield from self._decode_until(self._latest(limit), whole=True)
        reached = [time for time in self._fed if time <= limit]
        self._fed = [*([max(reached)] if reached else []), *(time for time in self._fed if time > limit)]

    def _drop_waiting(self) -> None:
        if self._is_intact is not None:
            self._dropped_failures += [
                time for time, waiting in self._waiting if not (waiting.is_corrupt or self._is_intact(waiting))
            ]
        self._waiting.clear()

    def _latest(self, limit: int) -> int | None:
        """Time of the frame on screen at ``limit`` if it has not been decoded."""
        times = [time for time, packet in self._waiting if time <= limit and not packet.is_discard]
        given = [time for time in self._fed if time <= limit]
        if not times or (given and max(given) > max(times)):
            return None
        return max(times)

    def _decode_until(self, target: int | None, *, whole: bool) -> Iterator[VideoFrame]:
        """Decode waiting packets up to the target, including it if ``whole``."""
        if target is None:
            return
        while self._waiting:
            time, packet = self._waiting[0]
            if time == target and not whole:
                return
            self._take()
            yield from self._feed(time, packet, needed=time >= target)
            if time == target:
                return

    def _wait(self, time: int, packet: Packet[VideoStream]) -> None:
        self._waiting.append((time, packet))
        self._bytes += packet.size

    def _take(self) -> None:
        self._bytes -= self._waiting.popleft()[1].size

    def _feed(self, time: int, packet: Packet[VideoStream], *, needed: bool) -> Iterator[VideoFrame]:
        if self._restart:
            # The decoder must not predict new frames from old ones.
            yield from self._drain()
            self._decoder.flush_buffers()
            self._restart = False
            self._entry = time
        if self._can_skip:
            self._decoder.skip_frame = "DEFAULT" if needed or time == self._entry else "NONREF"
        self._fed.append(time)
        frames = self._reader.feed(packet)
        if any(frame.interlaced_frame for frame in frames):
            # The two fields of a frame can be separate, with only one of them referenced.
            self._can_skip = False
            self._decoder.skip_frame = "DEFAULT"
        yield from self._check_entry(frames)

    def _drain(self) -> Iterator[VideoFrame]:
        yield from self._check_entry(self._reader.feed(None))
        if self._entry is not None and self._is_predictable:
            raise _NoEntryError

    def _check_entry(self, frames: list[VideoFrame]) -> Iterator[VideoFrame]:
        """Yield these frames, after checking that the first ones after a jump are the key frame and its successors."""
        for frame in frames:
            if self._entry is not None and frame.pts is not None:
                if frame.pts < self._entry:
                    continue  # shown before the key frame, predicted from skipped frames
                if frame.pts > self._entry:
                    raise _NoEntryError
                self._entry = None
            yield frame


class _NoEntryError(Exception):
    """Decoding cannot start at a key frame of this file."""


# The functions below check whether packets are complete without decoding them.
#
# In MP4 and Matroska, units of H.264 and HEVC are preceded by their lengths (ISO/IEC 14496-15), so damage to a packet
# nearly always shows. OBUs of AV1 and frames of ProRes state their lengths, too; for VP8 and VP9, only the first bytes
# and the sizes stated there can be checked.


# Offset in the decoder configuration record of the number of bytes in a length.
_LENGTH_OFFSETS = {"h264": 4, "hevc": 21}

# First byte of the AV1 record: marker and version.
_AV1_RECORD = b"\x81"

_PRORES_MARK = b"icpf"
_VP8_START, _VP9_SYNC = b"\x9d\x01\x2a", b"\x49\x83\x42"


def find_packet_check(decoder: VideoCodecContext) -> Callable[[Packet[VideoStream]], bool] | None:
    """Return a function that checks whether a packet of this stream is complete; None if there is no such check."""
    name, record = decoder.codec.canonical_name, decoder.extradata or b""
    check = {"vp8": _is_vp8, "vp9": _is_vp9, "prores": _is_prores}.get(name)
    offset = _LENGTH_OFFSETS.get(name)
    if offset is not None and len(record) > offset and record[0] == 1:
        check = partial(_has_complete_units, size=(record[offset] & 3) + 1)
    elif name == "av1" and record.startswith(_AV1_RECORD):
        check = _has_complete_obus
    if check is None:
        return None
    return lambda packet: check(memoryview(packet))


def _has_complete_units(content: memoryview, *, size: int) -> bool:
    """Whether units preceded by lengths of ``size`` bytes, as in H.264 and HEVC, end exactly with the packet.

    Long runs of zeros are damage as well, because units never contain three zeros in a row.
    """
    offset = 0
    while offset + size <= len(content):
        offset += size + int.from_bytes(content[offset : offset + size], "big")
    return offset <= len(content) and not has_hole(content)


def _has_complete_obus(content: memoryview) -> bool:
    """Whether the OBUs of AV1 (AV1 bitstream specification, 5.3) end exactly with the packet."""
    offset = 0
    while offset < len(content):
        header = content[offset]
        if header & 0x81:
            return False  # forbidden or reserved bit
        offset += 2 if header & 4 else 1
        if not header & 2:
            return True  # an OBU without a size takes the rest of the packet
        length = 0
        for shift in range(0, 56, 7):
            if offset >= len(content):
                return False
            length |= (content[offset] & 0x7F) << shift
            offset += 1
            if content[offset - 1] < 0x80:
                break
        offset += length
    return offset == len(content)


def _is_vp8(content: memoryview) -> bool:
    """Whether the first partition stated in the frame tag (RFC 6386, 9.1) fits, and a key frame has its start code."""
    if not content:
        return True  # an omitted frame
    tag = int.from_bytes(content[:3], "little")
    head = 3 if tag & 1 else 10
    return len(content) >= head + (tag >> 5) and (head == 3 or content[3:6] == _VP8_START)


def _is_prores(content: memoryview) -> bool:
    """Whether a frame has its identifier and a stated length that fits (SMPTE RDD 36, 5.1)."""
    return bytes(content[4:8]) == _PRORES_MARK and int.from_bytes(content[:4], "big") <= len(content)


def _is_vp9(content: memoryview) -> bool:
    """Whether each frame of the packet has its marker (VP9 bitstream specification, 6.2), and key frames the sync
    code."""
    for frame in _split_vp9_frames(content):
        if frame is None or frame[0] >> 6 != 2:
            return False
        is_profile_3, is_key = frame[0] & 0x30 == 0x30, frame[0] & 0x0C == 0
        if is_key and not is_profile_3 and frame[1:4] != _VP9_SYNC:
            return False
    return True


def _split_vp9_frames(content: memoryview) -> Iterator[memoryview | None]:
    """Yield the frames of a packet; None for frames that extend beyond it, according to its index (Annex B)."""
    if not content:
        return
    marker = content[-1]
    width, count = (marker >> 3 & 3) + 1, (marker & 7) + 1
    end = len(content) - 2 - count * width
    if marker & 0xE0 != 0xC0 or end < 0 or content[end] != marker:
        yield content
        return
    offset = 0
    for at in range(end + 1, len(content) - 1, width):
        size = int.from_bytes(content[at : at + width], "little")
        if offset + size > end:
            yield None
        elif size:
            yield content[offset : offset + size]
        offset += size


TimedFrame = tuple[int, "VideoFrame"]


class Sampler:
    """Receives frames in order and returns the sampled ones, see `vidkin.media.iter_frames`.

    Args:
        rate: Samples per second; None samples every frame.
        start: Time of the first sample, in seconds from the first frame.
        end: Time in seconds before which samples are taken; None for the end of the video.
        tick: Seconds per unit of time.
        base: Time of the first frame in units.
    """

    def __init__(self, rate: float | None, start: float, end: float | None, *, tick: float, base: int) -> None:
        self._rate = rate
        self._start = start
        self._end = math.inf if end is None else end
        self._ticks = Ticks(tick, base)
        self._index = 0
        self._held: TimedFrame | None = None
        self._returned: int | None = None
        self.done = False

    def limit_of(self, index: int) -> int | None:
        """Latest time, in units, of the frame on screen at a sample; None for samples at or after the end."""
        return self._limit(index) if self._time(index) < self._end else None

    def index_after(self, index: int, time: int) -> int:
        """Number of the first sample, at or after this one, at which a frame of this time may be on screen.

        This takes constant time, even if a damaged timestamp is years away.
        """
        if self._rate is None:
            return index
        passed = earliest(self._ticks.seconds(time)) - self._start
        index = max(index, math.floor(passed * self._rate) - 1)
        while self._limit(index) < time:
            index += 1
        return index

    def push(self, frame: TimedFrame) -> list[TimedFrame]:
        """Return the sampled frames that this frame makes certain; after the last, ``done`` is set."""
        if self._rate is None:
            seconds = self._ticks.seconds(frame[0])
            if is_before(seconds, self._start):
                self._held = frame
                return []
            if seconds >= self._end:
                self.done = True
                # No frame begins in the range, so the one on screen at its start is the only sample.
                return self._take() if self._returned is None and self._held is not None else []
            self._held = frame
            return self._take()
        sampled: list[TimedFrame] = []
        if self._held is not None and self._limit(self._index) < frame[0]:
            sampled = self._take()
            self._index = self.index_after(self._index, frame[0])
            self.done = self._time(self._index) >= self._end
        self._held = frame
        return sampled

    def finish(self, video_end: int) -> list[TimedFrame]:
        """The last frame, if a sample falls on it before the video ends (in units)."""
        if self.done or self._limit(self._index) >= video_end or self._time(self._index) >= self._end:
            return []
        if self._rate is None and self._returned is not None:
            return []
        return self._take()

    def _time(self, index: int) -> float:
        return self._start if self._rate is None else self._start + index / self._rate

    def _limit(self, index: int) -> int:
        return self._ticks.latest(self._time(index))

    def _take(self) -> list[TimedFrame]:
        if self._held is None or self._held[0] == self._returned:
            return []
        self._returned = self._held[0]
        return [self._held]


class ChosenSampler:
    """Receives frames in order and returns the ones on screen at given times.

    Args:
        times: Times in seconds from the first frame, increasing.
        tick: Seconds per unit of time.
        base: Time of the first frame in units.
    """

    def __init__(self, times: Sequence[float], *, tick: float, base: int) -> None:
        ticks = Ticks(tick, base)
        self._limits = [ticks.latest(time) for time in times]
        self._index = 0
        self._held: TimedFrame | None = None
        self.done = False

    def limit_of(self, index: int) -> int | None:
        """Latest possible time, in units, of the frame on screen at a sample; None if there is no such sample."""
        return self._limits[index] if index < len(self._limits) else None

    def index_after(self, index: int, time: int) -> int:
        """Number of the first sample, at or after this one, at which a frame of this time may be on screen."""
        return max(index, bisect_left(self._limits, time))

    def push(self, frame: TimedFrame) -> list[TimedFrame]:
        """Return the sampled frame that this frame makes certain; after the last, ``done`` is set."""
        before, self._held = self._held, frame
        if before is None or self.done or self._limits[self._index] >= frame[0]:
            return []
        self._index = self.index_after(self._index, frame[0])
        self.done = self._index >= len(self._limits)
        return [before]

    def finish(self, video_end: int) -> list[TimedFrame]:
        """The last frame, if a sample falls on it before the video ends (in units)."""
        if self._held is None or self.done or self._limits[self._index] >= video_end:
            return []
        return [self._held]


Samples = Sampler | ChosenSampler
"""The times at which frames are sampled, by number from 0."""
