"""Choose the frames on screen at the sample times, and decode only the packets that these frames need.

Packets arrive in decoding order and carry presentation times, so the frame on screen at a sample time is known before
decoding, as soon as no later packet can have a closer time. A frame needs the packets since the last key frame before
it; earlier packets that no sample needs are dropped. For the remaining packets, the decoder skips frames that are
neither sampled nor referenced. The output includes every sampled frame, so the `Sampler` that follows chooses the same
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

# No format decodes this many frames ahead of a frame that is shown before them (H.264 and HEVC: 16).
MAX_REORDERED = 17

# Upper limits on packets waiting for a decision; when they are exceeded, packets are decoded.
MAX_WAITING_PACKETS = 1024

MAX_WAITING_BYTES = 48 * 2**20

# Codecs whose decoders can skip unreferenced frames without affecting others.
SKIPPING_CODECS = frozenset({"h264", "hevc", "mpeg1video", "mpeg2video"})

# Formats with an index of key frames, which makes seeking reliable.
SEEKABLE = ("mov", "matroska")

# Distance in seconds that justifies a seek, and seconds by which to seek early, because indices may be sorted by
# decoding time.
MIN_SEEK = 5.0

SEEK_MARGIN = 1.0


class SkippingDecoder:
    """Passes the packets that the samples need to the decoder of a `PictureReader`.

    Args:
        reader: Reader of the file, at its start.
        samples: Function that returns the samples; it is called after the first frame.
        every: Whether all frames from sample 0 on are sampled.
    """

    def __init__(self, reader: PictureReader, samples: Callable[[], Samples], *, every: bool) -> None:
        self._reader = reader
        self._samples = samples
        self._every = every
        self._decoder = reader.stream.codec_context
        self._can_skip = self._decoder.codec.canonical_name in SKIPPING_CODECS
        self._is_intact = find_packet_check(self._decoder)
        # Times of damaged packets that were dropped without decoding.
        self._dropped_failures: list[int] = []
        self._packets = reader.packets()
        self._waiting: deque[tuple[int, Packet[VideoStream]]] = deque()
        self._bytes = 0
        # Times of the frames passed to the decoder: the latest at or before the last sample, and all after it.
        self._fed: list[int] = []
        self._decoding_time: int | None = None
        self._restart = False
        # Time of the key frame at which decoding resumed, until that frame has been decoded.
        self._entry: int | None = None
        self._has_ended = False
        self._is_predictable = True

    def pictures(self) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (time in ticks of the stream, frame) for each sampled frame, and for some others."""
        yield from self._reader.timed(self._frames())
        self.close()

    def close(self) -> None:
        """Report damage, including packets that were not decoded, or raise `MediaError` if there were no frames."""
        if self._has_ended:
            self._drop_waiting()  # packets after the last sample
        for time in self._dropped_failures:
            self._reader.count_failure(time)
        self._reader.close()

    def _frames(self) -> Iterator[VideoFrame]:
        try:
            # Decode up to the first frame, because times are counted from it.
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
                    # All samples before the next frame show the same frame.
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
            # This happens, for example, in video with periodic intra refresh. Decode everything; `timed` drops repeated
            # frames.
            self._decoder.skip_frame = "DEFAULT"
            self._dropped_failures.clear()
            yield from self._reader.again()

    def _seek(self, limit: int | None) -> None:
        """Seek ahead if the first sample is far away."""
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
            self._packets = reader.packets()  # the position is unchanged, so continue from here

    def _reach(self, limit: int) -> Iterator[VideoFrame]:
        """Read until the frame on screen at ``limit`` is certain, and decode it."""
        later = sum(time > limit for time, _ in self._waiting)
        while later < MAX_REORDERED and not self._has_ended:
            packet = next(self._packets, None)
            if packet is None:
                self._has_ended = True
                break
            before, self._decoding_time = self._decoding_time, packet.dts
            steps_back = before is not None and packet.dts is not None and packet.dts < before
            if packet.pts is None or steps_back or self._reader.failures:
                # Prediction is impossible without times, across concatenated recordings, or after damage.
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
                # Drop packets before the last key frame at or before the sample; they are not needed.
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
        """Return the time of the frame on screen at ``limit`` if that frame has not been decoded yet."""
        times = [time for time, packet in self._waiting if time <= limit and not packet.is_discard]
        given = [time for time in self._fed if time <= limit]
        if not times or (given and max(given) > max(times)):
            return None
        return max(times)

    def _decode_until(self, target: int | None, *, whole: bool) -> Iterator[VideoFrame]:
        """Decode waiting packets up to the target, which is included if ``whole``."""
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
            # The two fields of a frame can be separate pictures, with only one of them referenced.
            self._can_skip = False
            self._decoder.skip_frame = "DEFAULT"
        yield from self._check_entry(frames)

    def _drain(self) -> Iterator[VideoFrame]:
        yield from self._check_entry(self._reader.feed(None))
        if self._entry is not None and self._is_predictable:
            raise _NoEntryError

    def _check_entry(self, frames: list[VideoFrame]) -> Iterator[VideoFrame]:
        """Yield these frames, after checking that output after a seek starts with the key frame."""
        for frame in frames:
            if self._entry is not None and frame.pts is not None:
                if frame.pts < self._entry:
                    continue  # shown before the key frame, and predicted from skipped frames
                if frame.pts > self._entry:
                    raise _NoEntryError
                self._entry = None
            yield frame


class _NoEntryError(Exception):
    """Decoding cannot start at a key frame of this file."""


# The functions below check whether packets are complete without decoding them.
#
# In MP4 and Matroska, NAL units of H.264 and HEVC are preceded by their lengths (ISO/IEC 14496-15), so damage to a
# packet can nearly always be detected. AV1 OBUs and ProRes frames also state their lengths; for VP8 and VP9, only the
# first bytes and the sizes stated there can be checked. Position, in the decoder configuration record, of the size of
# the length fields.
_LENGTH_OFFSETS = {"h264": 4, "hevc": 21}

# First byte of the AV1 record: marker and version.
_AV1_RECORD = b"\x81"

_PRORES_ID = b"icpf"
_VP8_START, _VP9_SYNC = b"\x9d\x01\x2a", b"\x49\x83\x42"


def find_packet_check(decoder: VideoCodecContext) -> Callable[[Packet[VideoStream]], bool] | None:
    """Return a function that checks whether packets of this stream are complete; None if no check exists."""
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
    """Whether NAL units preceded by lengths of ``size`` bytes (H.264 and HEVC) end exactly at the end of the packet.

    A long run of zeros is damage as well, because NAL units never contain three consecutive zeros.
    """
    offset = 0
    while offset + size <= len(content):
        offset += size + int.from_bytes(content[offset : offset + size], "big")
    return offset <= len(content) and not has_hole(content)


def _has_complete_obus(content: memoryview) -> bool:
    """Whether the AV1 OBUs (AV1 bitstream specification, 5.3) end exactly at the end of the packet."""
    offset = 0
    while offset < len(content):
        header = content[offset]
        if header & 0x81:
            return False  # forbidden or reserved bit
        offset += 2 if header & 4 else 1
        if not header & 2:
            return True  # an OBU without a size extends to the end of the packet
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
    """Whether the first partition stated in the frame tag (RFC 6386, 9.1) fits, and key frames have a start code."""
    if not content:
        return True  # a dropped frame
    tag = int.from_bytes(content[:3], "little")
    head = 3 if tag & 1 else 10
    return len(content) >= head + (tag >> 5) and (head == 3 or content[3:6] == _VP8_START)


def _is_prores(content: memoryview) -> bool:
    """Whether a frame has its identifier and a stated length that fits into the packet (SMPTE RDD 36, 5.1)."""
    return bytes(content[4:8]) == _PRORES_ID and int.from_bytes(content[:4], "big") <= len(content)


def _is_vp9(content: memoryview) -> bool:
    """Whether each frame in the packet has its marker (VP9 bitstream specification, 6.2), and key frames the sync
    code."""
    for frame in _split_vp9_frames(content):
        if frame is None or frame[0] >> 6 != 2:
            return False
        is_profile_3, is_key = frame[0] & 0x30 == 0x30, frame[0] & 0x0C == 0
        if is_key and not is_profile_3 and frame[1:4] != _VP9_SYNC:
            return False
    return True


def _split_vp9_frames(content: memoryview) -> Iterator[memoryview | None]:
    """Yield the frames in a packet, using its index (Annex B); None for frames that extend beyond the packet."""
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
    """Receives frames in order and returns the sampled ones; see `vidkin.media.iter_frames`.

    Args:
        rate: Samples per second; None samples every frame.
        start: Time of the first sample, in seconds from the first frame.
        end: Time in seconds at which sampling ends, exclusive; None for the end of the video.
        tick: Seconds per tick.
        base: Time of the first frame in ticks.
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
        """Return the latest possible time, in ticks, of the frame on screen at a sample; None after the end."""
        return self._limit(index) if self._time(index) < self._end else None

    def index_after(self, index: int, time: int) -> int:
        """Return the first sample at or after ``index`` at which a frame with this time may be on screen.

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
        """Return the sampled frames that this frame makes certain; ``done`` is set after the last one."""
        if self._rate is None:
            seconds = self._ticks.seconds(frame[0])
            if is_before(seconds, self._start):
                self._held = frame
                return []
            if seconds >= self._end:
                self.done = True
                # No frame starts in the range, so the frame on screen at its start is the only sample.
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
        """Return the last frame if a sample falls on it before the video ends (in ticks)."""
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
    """Receives frames in order and returns those on screen at given times.

    Args:
        times: Times in seconds from the first frame, increasing.
        tick: Seconds per tick.
        base: Time of the first frame in ticks.
    """

    def __init__(self, times: Sequence[float], *, tick: float, base: int) -> None:
        ticks = Ticks(tick, base)
        self._limits = [ticks.latest(time) for time in times]
        self._index = 0
        self._held: TimedFrame | None = None
        self.done = False

    def limit_of(self, index: int) -> int | None:
        """Return the latest possible time, in ticks, of the frame on screen at a sample; None if it does not exist."""
        return self._limits[index] if index < len(self._limits) else None

    def index_after(self, index: int, time: int) -> int:
        """Return the first sample at or after ``index`` at which a frame with this time may be on screen."""
        return max(index, bisect_left(self._limits, time))

    def push(self, frame: TimedFrame) -> list[TimedFrame]:
        """Return the sampled frame that this frame makes certain; ``done`` is set after the last one."""
        before, self._held = self._held, frame
        if before is None or self.done or self._limits[self._index] >= frame[0]:
            return []
        self._index = self.index_after(self._index, frame[0])
        self.done = self._index >= len(self._limits)
        return [before]

    def finish(self, video_end: int) -> list[TimedFrame]:
        """Return the last frame if a sample falls on it before the video ends (in ticks)."""
        if self._held is None or self.done or self._limits[self._index] >= video_end:
            return []
        return [self._held]


Samples = Sampler | ChosenSampler
"""The times at which frames are sampled, by index from 0."""
