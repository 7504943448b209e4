"""Choose the pictures on screen at the sample times, and decode only the packets that these need.

Packets come in the order of decoding and carry the times of presentation, so which picture is on screen at a sample
time is known before anything is decoded, as soon as no later packet can have a time that is nearer. A picture needs
the packets from the last key frame before it: everything earlier that no sample needs is dropped. Of the
remaining packets, the decoder skips those of pictures that are neither sampled nor referred to by others. The result
is a subset of all pictures with every sampled one, so that the `Sampler` behind it chooses as it would from all.
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

# No format decodes more pictures than this before one that is shown before them (H.264 and HEVC: 16).
OVERTAKERS = 17

# Most packets that wait for a decision; if there are more, they are decoded.
WAITING_PACKETS = 1024

WAITING_BYTES = 48 * 2**20

# Decoders that can skip unreferenced pictures without changing the others.
CAN_SKIP = frozenset({"h264", "hevc", "mpeg1video", "mpeg2video"})

# Formats with an index of key frames, in which seeking is reliable.
SEEKABLE = ("mov", "matroska")

# Seconds that justify a seek, and seconds by which to seek early, as indices may be sorted by decoding time.
WORTH_SEEKING = 5.0

EARLY = 1.0


class SkippingDecoder:
    """Feeds the decoder of a `PictureReader` with the packets that the samples need.

    Args:
        reader: Reader of the file, from which nothing has been read.
        samples: Function that returns the samples, called after the first picture.
        every: Whether all pictures are sampled, from sample 0 on.
    """

    def __init__(self, reader: PictureReader, samples: Callable[[], Samples], *, every: bool) -> None:
        self._reader = reader
        self._samples = samples
        self._every = every
        self._decoder = reader.stream.codec_context
        self._can_skip = self._decoder.codec.canonical_name in CAN_SKIP
        self._is_whole = find_packet_check(self._decoder)
        # Times of the damaged packets that were not needed.
        self._dropped_failures: list[int] = []
        self._packets = reader.packets()
        self._waiting: deque[tuple[int, Packet[VideoStream]]] = deque()
        self._bytes = 0
        # Times of the pictures fed to the decoder: the latest at or before the last sample, and all after it.
        self._given: list[int] = []
        self._decoding_time: int | None = None
        self._restart = False
        # Time of the key frame at which decoding was resumed, until its picture is decoded.
        self._entry: int | None = None
        self._ended = False
        self._foreseeable = True

    def pictures(self) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (time in units of the stream, picture) for every sampled picture, and some others."""
        yield from self._reader.timed(self._frames())
        self.close()

    def close(self) -> None:
        """Report damage, that of packets which were not needed as well, or raise `MediaError` if there was no
        picture."""
        if self._ended:
            self._drop_waiting()  # what comes after the last sample
        for time in self._dropped_failures:
            self._reader.count_failure(time)
        self._reader.close()

    def _frames(self) -> Iterator[VideoFrame]:
        try:
            # Decode up to the first picture, from which times are counted.
            for packet in self._packets:
                self._foreseeable = self._foreseeable and packet.pts is not None
                if packet.pts is not None:
                    self._given.append(packet.pts)
                frames = self._reader.feed(packet)
                yield from frames
                if frames:
                    break
            if self._reader.base is not None:
                samples = self._samples()
                self._seek(samples.limit_of(0))
                index = 0
                while self._foreseeable and (limit := samples.limit_of(index)) is not None:
                    yield from self._reach(limit)
                    following = [time for time, _ in self._waiting if time > limit]
                    following += [time for time in self._given if time > limit]
                    if self._every or not following:
                        break
                    # The samples before the next picture show the same one.
                    index = samples.index_after(index + 1, min(following))
                if self._every or not self._foreseeable:
                    while self._waiting:
                        time, packet = self._waiting[0]
                        self._take()
                        yield from self._feed(time, packet, needed=True)
                    for packet in self._packets:
                        yield from self._reader.feed(packet)
            yield from self._drain()
        except _NoEntryError:
            # For example pictures built up by a periodic refresh. Decode everything; no picture is returned twice.
            self._decoder.skip_frame = "DEFAULT"
            self._dropped_failures.clear()
            yield from self._reader.again()

    def _seek(self, limit: int | None) -> None:
        """Jump ahead if the first sample is far away."""
        reader = self._reader
        base = reader.base or 0
        if limit is None or reader.ticks.seconds(limit) < WORTH_SEEKING:
            return
        if not self._foreseeable or not reader.container.format.name.startswith(SEEKABLE):
            return
        try:
            reader.container.seek(limit - int(EARLY / reader.tick), stream=reader.stream)
            self._packets = reader.packets()
            first = next(self._packets, None)
            if first is None or first.pts is None or not first.is_keyframe or first.pts > limit:
                reader.container.seek(min(0, base), stream=reader.stream)
                self._packets = reader.packets()
            else:
                self._wait(first.pts, first)
                self._entry = first.pts
            self._given.clear()
        except av.error.FFmpegError:
            self._packets = reader.packets()  # not moved: continue from here

    def _reach(self, limit: int) -> Iterator[VideoFrame]:
        """Read on until the picture on screen at ``limit`` is certain, and decode it."""
        later = sum(time > limit for time, _ in self._waiting)
        while later < OVERTAKERS and not self._ended:
            packet = next(self._packets, None)
            if packet is None:
                self._ended = True
                break
            before, self._decoding_time = self._decoding_time, packet.dts
            is_earlier = before is not None and packet.dts is not None and packet.dts < before
            if packet.pts is None or is_earlier or self._reader.failures:
                # Without times, across joined recordings, or with damage, nothing can be predicted.
                self._foreseeable = False
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
                # After a key frame that is on screen at the sample or before it, waiting packets are not needed.
                if self._is_whole is not None:
                    self._dropped_failures += [
                        time for time, waiting in self._waiting if not (waiting.is_corrupt or self._is_whole(waiting))
                    ]
                self._waiting.clear()
                self._bytes = 0
                self._restart = True
                if not self._given:
                    self._entry = None  # of the key frame that was sought nothing was decoded
            self._wait(packet.pts, packet)
            if len(self._waiting) > WAITING_PACKETS or self._bytes > WAITING_BYTES:
                yield from self._decode_until(self._latest(limit), whole=False)
        if self._ended and limit >= self._reader.end:
            return  # no further sample is on the last picture
        yield from self._decode_until(self._latest(limit), whole=True)
        reached = [time for time in self._given if time <= limit]
        self._given = [*([max(reached)] if reached else []), *(time for time in self._given if time > limit)]

    def _drop_waiting(self) -> None:
        if self._is_whole is not None:
            self._dropped_failures += [
                time for time, waiting in self._waiting if not (waiting.is_corrupt or self._is_whole(waiting))
            ]
        self._waiting.clear()

    def _latest(self, limit: int) -> int | None:
        """Time of the picture on screen at ``limit`` if it has not been decoded."""
        times = [time for time, packet in self._waiting if time <= limit and not packet.is_discard]
        given = [time for time in self._given if time <= limit]
        if not times or (given and max(given) > max(times)):
            return None
        return max(times)

    def _decode_until(self, target: int | None, *, whole: bool) -> Iterator[VideoFrame]:
        """Decode waiting packets up to the target, and the target too if ``whole``."""
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
            # The decoder must not continue the old pictures with the new ones.
            yield from self._drain()
            self._decoder.flush_buffers()
            self._restart = False
            self._entry = time
        if self._can_skip:
            self._decoder.skip_frame = "DEFAULT" if needed or time == self._entry else "NONREF"
        self._given.append(time)
        frames = self._reader.feed(packet)
        if any(frame.interlaced_frame for frame in frames):
            # The two fields of a picture can be separate, with only one of them referenced.
            self._can_skip = False
            self._decoder.skip_frame = "DEFAULT"
        yield from self._entered(frames)

    def _drain(self) -> Iterator[VideoFrame]:
        yield from self._entered(self._reader.feed(None))
        if self._entry is not None and self._foreseeable:
            raise _NoEntryError

    def _entered(self, frames: list[VideoFrame]) -> Iterator[VideoFrame]:
        """These pictures, after checking that the first ones after a jump are the key frame and its successors."""
        for frame in frames:
            if self._entry is not None and frame.pts is not None:
                if frame.pts < self._entry:
                    continue  # shown before the key frame, based on skipped pictures
                if frame.pts > self._entry:
                    raise _NoEntryError
                self._entry = None
            yield frame


class _NoEntryError(Exception):
    """Decoding cannot start at a key frame of this file."""


# Check whether packets that are not decoded are complete.
#
# In MP4 and Matroska the units of H.264 and HEVC are preceded by their lengths (ISO/IEC 14496-15), so damage to a
# packet nearly always shows without decoding it. The parts of an AV1 packet and a frame of ProRes state their lengths,
# too; for VP8 and VP9 only the first bytes and the sizes stated there can be checked.


# Place in the decoder configuration record of the number of bytes in a length.
_LENGTH_PLACES = {"h264": 4, "hevc": 21}

# First byte of the record of AV1: marker and version.
_AV1_RECORD = b"\x81"

_PRORES_MARK = b"icpf"
_VP8_START, _VP9_SYNC = b"\x9d\x01\x2a", b"\x49\x83\x42"


def find_packet_check(decoder: VideoCodecContext) -> Callable[[Packet[VideoStream]], bool] | None:
    """A function that checks whether a packet of a stream is complete without decoding it; None if there is none."""
    name, record = decoder.codec.canonical_name, decoder.extradata or b""
    check = {"vp8": _is_vp8, "vp9": _is_vp9, "prores": _is_prores}.get(name)
    place = _LENGTH_PLACES.get(name)
    if place is not None and len(record) > place and record[0] == 1:
        check = partial(_ends_with_its_units, size=(record[place] & 3) + 1)
    elif name == "av1" and record.startswith(_AV1_RECORD):
        check = _ends_with_its_parts
    if check is None:
        return None
    return lambda packet: check(memoryview(packet))


def _ends_with_its_units(content: memoryview, *, size: int) -> bool:
    """Whether units preceded by lengths of ``size`` bytes, as in H.264 and HEVC, end with the packet.

    Inside a unit there are never three zeros in a row.
    """
    place = 0
    while place + size <= len(content):
        place += size + int.from_bytes(content[place : place + size], "big")
    return place <= len(content) and not has_hole(content)


def _ends_with_its_parts(content: memoryview) -> bool:
    """Whether the OBUs of AV1 (AV1 bitstream specification, 5.3) end with the packet."""
    place = 0
    while place < len(content):
        header = content[place]
        if header & 0x81:
            return False  # the forbidden bit, or the reserved one
        place += 2 if header & 4 else 1
        if not header & 2:
            return True  # without a size, it takes the rest
        length = 0
        for shift in range(0, 56, 7):
            if place >= len(content):
                return False
            length |= (content[place] & 0x7F) << shift
            place += 1
            if content[place - 1] < 0x80:
                break
        place += length
    return place == len(content)


def _is_vp8(content: memoryview) -> bool:
    """Whether the frame tag (RFC 6386, 9.1) names a first part that fits, and a key frame has its start code."""
    if not content:
        return True  # an omitted frame
    tag = int.from_bytes(content[:3], "little")
    head = 3 if tag & 1 else 10
    return len(content) >= head + (tag >> 5) and (head == 3 or content[3:6] == _VP8_START)


def _is_prores(content: memoryview) -> bool:
    """Whether a frame has its mark and states a length that fits (SMPTE RDD 36, 5.1)."""
    return bytes(content[4:8]) == _PRORES_MARK and int.from_bytes(content[:4], "big") <= len(content)


def _is_vp9(content: memoryview) -> bool:
    """Whether each frame of the packet has the marker (VP9 bitstream specification, 6.2), and a key frame its sync
    code."""
    for frame in _vp9_frames(content):
        if frame is None or frame[0] >> 6 != 2:
            return False
        is_profile_3, is_key = frame[0] & 0x30 == 0x30, frame[0] & 0x0C == 0
        if is_key and not is_profile_3 and frame[1:4] != _VP9_SYNC:
            return False
    return True


def _vp9_frames(content: memoryview) -> Iterator[memoryview | None]:
    """The frames of a packet; None for those that the index at its end (Annex B) places beyond it."""
    if not content:
        return
    marker = content[-1]
    width, count = (marker >> 3 & 3) + 1, (marker & 7) + 1
    end = len(content) - 2 - count * width
    if marker & 0xE0 != 0xC0 or end < 0 or content[end] != marker:
        yield content
        return
    place = 0
    for at in range(end + 1, len(content) - 1, width):
        size = int.from_bytes(content[at : at + width], "little")
        if place + size > end:
            yield None
        elif size:
            yield content[place : place + size]
        place += size


Picture = tuple[int, "VideoFrame"]


class Sampler:
    """Receives pictures in order and returns the sampled ones, see `vidkin.media.iter_frames`.

    Args:
        rate: Samples per second; None samples every picture.
        start: Time of the first sample, in seconds from the first picture.
        end: Time in seconds before which samples are taken; None is the end of the video.
        tick: Seconds of one unit of time.
        base: Time of the first picture in units.
    """

    def __init__(self, rate: float | None, start: float, end: float | None, *, tick: float, base: int) -> None:
        self._rate = rate
        self._start = start
        self._end = math.inf if end is None else end
        self._ticks = Ticks(tick, base)
        self._index = 0
        self._held: Picture | None = None
        self._given: int | None = None
        self.done = False

    def limit_of(self, index: int) -> int | None:
        """The latest time, in units, of a picture on screen at a sample; None for samples at or after the end."""
        return self._limit(index) if self._time(index) < self._end else None

    def index_after(self, index: int, time: int) -> int:
        """Number of the first sample, at or after this one, at which a picture of this time may be on screen.

        The computation takes no longer for a picture that is years away.
        """
        if self._rate is None:
            return index
        passed = earliest(self._ticks.seconds(time)) - self._start
        index = max(index, math.floor(passed * self._rate) - 1)
        while self._limit(index) < time:
            index += 1
        return index

    def push(self, picture: Picture) -> list[Picture]:
        """The sampled pictures that this one makes certain; after the last, ``done`` is set."""
        if self._rate is None:
            seconds = self._ticks.seconds(picture[0])
            if is_before(seconds, self._start):
                self._held = picture
                return []
            if seconds >= self._end:
                self.done = True
                # No picture begins in the range: the one on screen at its start is the only one.
                return self._take() if self._given is None and self._held is not None else []
            self._held = picture
            return self._take()
        sampled: list[Picture] = []
        if self._held is not None and self._limit(self._index) < picture[0]:
            sampled = self._take()
            self._index = self.index_after(self._index, picture[0])
            self.done = self._time(self._index) >= self._end
        self._held = picture
        return sampled

    def finish(self, video_end: int) -> list[Picture]:
        """The last picture, if a sample falls on it before the video ends (in units)."""
        if self.done or self._limit(self._index) >= video_end or self._time(self._index) >= self._end:
            return []
        if self._rate is None and self._given is not None:
            return []
        return self._take()

    def _time(self, index: int) -> float:
        return self._start if self._rate is None else self._start + index / self._rate

    def _limit(self, index: int) -> int:
        return self._ticks.latest(self._time(index))

    def _take(self) -> list[Picture]:
        if self._held is None or self._held[0] == self._given:
            return []
        self._given = self._held[0]
        return [self._held]


class ChosenSampler:
    """Receives pictures in order and returns those on screen at given times.

    Args:
        times: Times in seconds from the first picture, increasing.
        tick: Seconds of one unit of time.
        base: Time of the first picture in units.
    """

    def __init__(self, times: Sequence[float], *, tick: float, base: int) -> None:
        ticks = Ticks(tick, base)
        self._limits = [ticks.latest(time) for time in times]
        self._index = 0
        self._held: Picture | None = None
        self.done = False

    def limit_of(self, index: int) -> int | None:
        """The latest time, in units, of a picture on screen at a sample; None if there is no such sample."""
        return self._limits[index] if index < len(self._limits) else None

    def index_after(self, index: int, time: int) -> int:
        """Number of the first sample, at or after this one, at which a picture of this time may be on screen."""
        return max(index, bisect_left(self._limits, time))

    def push(self, picture: Picture) -> list[Picture]:
        """The sampled picture that this one makes certain; after the last, ``done`` is set."""
        before, self._held = self._held, picture
        if before is None or self.done or self._limits[self._index] >= picture[0]:
            return []
        self._index = self.index_after(self._index, picture[0])
        self.done = self._index >= len(self._limits)
        return [before]

    def finish(self, video_end: int) -> list[Picture]:
        """The last picture, if a sample falls on it before the video ends (in units)."""
        if self._held is None or self.done or self._limits[self._index] >= video_end:
            return []
        return [self._held]


Samples = Sampler | ChosenSampler
"""The times at which pictures are sampled, by number from 0."""
