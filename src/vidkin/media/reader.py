"""Decoded pictures of a file in the order of their times, damaged parts skipped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import av
import av.error

from vidkin.errors import MediaError
from vidkin.media import decoder_log
from vidkin.media.container import MOST_PIXELS, demux, is_refusal, media_error, open_video, stated_pixels, too_large
from vidkin.media.convert import is_too_large
from vidkin.media.time import DEFAULT_TIME_BASE, Ticks

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

logger = logging.getLogger(__name__)

# Assumed if a file states no frame rate.
DEFAULT_RATE = 25.0

# These formats hold only decoding times, and the presentation times that FFmpeg derives are out of order with
# B-frames. Pictures come in order of presentation, so sorted decoding times are right except for a delay.
_WITHOUT_PRESENTATION = ("avi",)

# Negative times, which Matroska can hold, are read as missing for some codecs.
_WITH_NEGATIVE_TIMES = "matroska"
# The earliest time is among the times of this many packets: no more of them overtake others.
_OVERTAKERS = 17
# Number of packets without times after which none is expected to have one.
_MOST_UNTIMED = 10_000

# A step back in time by more seconds than this is an appended recording, not jitter.
GLUED = 1.0

# Zeros where a download or a copy left a hole: no encoder of these codecs writes them, because their data look random,
# and their decoders take them without a word.
_HOLE = bytes(64)
_SILENT = {"vp8", "vp9"}

PacketIdentity = tuple[int | None, int | None, int | None, int]
"""Times, place and size of a packet."""

BegunPackets = Sequence[tuple["Packet[VideoStream]", "list[VideoFrame]"]]
"""The first packets of a file up to its first picture, each with the pictures that the decoder returned for it."""


class PictureReader:
    """Reads the pictures of one video with strictly increasing times.

    Args:
        name: Name of the file, for messages.
        container: The open file.
        stream: The file's video stream.
        begun: What was read and decoded of the file already; nothing is read or decoded twice.
        on_read: Callback for every packet read.
        on_damage: Callback that receives one line at the end if parts of the file were damaged; None logs a warning.

    Attributes:
        on_read: The callback passed.
        first: Identifies the first packet read; None before that.
        base: Time of the first picture in units of the stream (known after the first one).
        tick: Seconds per unit.
        nominal: Units that a picture stays on screen at the average rate.
        end: Time at which the last picture read so far leaves the screen, in units.
        failures: Number of packets that were damaged or could not be decoded.
        concealed: Number of pictures that were decoded with errors.
        complaints: Number of errors that the decoder only wrote to its log; 0 where nobody reads it
            (:mod:`vidkin.media.decoder_log`).
    """

    def __init__(
        self,
        name: str,
        container: InputContainer,
        stream: VideoStream,
        *,
        begun: BegunPackets = (),
        on_read: Callable[[], None] = lambda: None,
        on_damage: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.container = container
        self.stream = stream
        self.on_read = on_read
        self._on_damage = on_damage
        self._begun = begun
        # The packet of those that is read next, with its pictures.
        self._decoded: tuple[Packet[VideoStream], list[VideoFrame]] | None = None
        self.tick = float(stream.time_base or DEFAULT_TIME_BASE)
        self.nominal = max(1, round(1 / (frame_rate(stream) * self.tick)))
        self.first: PacketIdentity | None = None
        self.base: int | None = None
        self.failures = 0
        self.concealed = 0
        self.complaints = 0
        self._damaged_at: float | None = None
        self._shift = 0
        self._last: int | None = None
        self.end = 0
        self._repeating = False
        self._newest: int | None = None
        self._times_of_decoding = container.format.name in _WITHOUT_PRESENTATION
        self._decodes_holes = stream.codec_context.codec.canonical_name in _SILENT

    @property
    def length(self) -> float:
        """Seconds from the first picture until the last one read so far leaves the screen."""
        return self.ticks.seconds(self.end)

    @property
    def ticks(self) -> Ticks:
        """The times of the stream in seconds from its first picture; from 0 before there is one."""
        return Ticks(self.tick, self.base or 0)

    def pictures(self) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (time in units of the stream, picture) for every picture that can be decoded.

        Raises:
            MediaError: No picture can be decoded.
        """
        yield from self.timed(self._decode_all())
        self.close()

    def close(self) -> None:
        """Report damage, or raise `MediaError` if there was no picture."""
        if self.base is None:
            if is_too_large(self.name, MOST_PIXELS) or stated_pixels(self.name) > MOST_PIXELS:
                raise too_large(self.name)
            raise MediaError(self.name, "no frame can be decoded; the file is damaged or incomplete")
        self._listen()
        if self.failures or self.concealed or self.complaints:
            counts = {"packet{} skipped": self.failures, "frame{} with errors": self.concealed}
            if not (self.failures or self.concealed):
                counts["error{} reported by the decoder"] = self.complaints
            said = [f"{n} {what.format('' if n == 1 else 's')}" for what, n in counts.items() if n]
            where = "" if self._damaged_at is None else f", first at {self._damaged_at:.1f} s"
            damage = f"the file is damaged: {', '.join(said)}{where}"
            if self._on_damage is None:
                logger.warning("%s: %s", self.name, damage)
            else:
                self._on_damage(damage)

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """The packets of the video up to the end, or to the point where its data can no longer be parsed.

        Raises:
            MediaError: The system fails to read the file.
        """
        try:
            for packet in self._coming():
                self.on_read()
                if packet.is_corrupt:
                    self.count_failure(self.end)
                if packet.size:
                    self.first = self.first or identify(packet)
                    stamp = packet.dts if self._times_of_decoding else packet.pts
                    if self._decodes_holes and not packet.is_corrupt and has_hole(memoryview(packet)):
                        self.concealed += 1
                        self._note_damage(self.end if stamp is None else stamp)
                    if stamp is not None and not packet.is_discard and not self._shift:
                        self._note(stamp, packet.duration)
                    yield packet
        except av.error.FFmpegError as error:
            if is_refusal(self.name, error):
                raise media_error(self.name, error) from error
            self.count_failure(self.end)
            logger.debug("%s: reading stopped early: %s", self.name, error)

    def feed(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """The pictures the decoder returns for one packet; None drains it."""
        if self._decoded is not None and packet is self._decoded[0]:
            return self._decoded[1]
        try:
            frames = self.stream.codec_context.decode(packet)
            self._listen()
            return frames
        except av.error.EOFError:
            return []
        except av.error.MemoryError as error:
            raise media_error(self.name, error) from error
        except av.error.FFmpegError as error:
            if packet is None or not packet.is_corrupt:
                self.count_failure(self.end)
            logger.debug("%s: a packet could not be decoded: %s", self.name, error)
            return []

    def count_failure(self, time: int) -> None:
        """Count a packet that is damaged or cannot be decoded, at this time in units of the stream."""
        self.failures += 1
        self._note_damage(time)

    def timed(self, frames: Iterable[VideoFrame]) -> Iterator[tuple[int, VideoFrame]]:
        """Every picture with its time; those that are not after the one before are dropped."""
        for frame in frames:
            stamp = frame.dts if self._times_of_decoding or frame.pts is None else frame.pts
            # Raw streams have no times (and no better durations), nor do the last pictures of AVI.
            if self._last is not None:
                usual = self._last + self.nominal
            else:
                usual = self._untimed_start() if stamp is None else 0
            time = usual if stamp is None else stamp + self._shift
            if self._last is not None and time <= self._last:
                if self._repeating or (self._last - time) * self.tick <= GLUED:
                    continue
                self._shift += self.end - time
                time = self.end
            self._repeating = False
            if self.base is None:
                self.base = time
            if frame.is_corrupt:
                self.concealed += 1
                self._note_damage(time)
            self._last = time
            self._note(time, frame.duration if frame.pts is not None else None)
            yield time, frame

    def again(self) -> Iterator[VideoFrame]:
        """Go back and decode everything; `timed` skips the pictures it has seen already."""
        self._repeating = True
        self.container.seek(min(0, self.base or 0), stream=self.stream)
        yield from self._decode_all()

    def _coming(self) -> Iterator[Packet[VideoStream]]:
        """The packets from where the container stands, after those that were read already."""
        begun, self._begun = self._begun, ()
        for decoded in begun:
            self._decoded = decoded
            yield decoded[0]
        self._decoded = None
        yield from demux(self.container, self.stream)

    def _untimed_start(self) -> int:
        """Time of the first picture if the first packets have none: the first time minus the duration of those
        packets."""
        if not self.container.format.name.startswith(_WITH_NEGATIVE_TIMES):
            return 0
        untimed, times = 0, list[int]()
        with open_video(self.name, threads=1) as (container, stream):
            for packet in demux(container, stream):
                if packet.pts is not None:
                    times.append(packet.pts)
                elif packet.size:
                    untimed += 1
                if len(times) == _OVERTAKERS or untimed == _MOST_UNTIMED:
                    break
        return min(times) - untimed * self.nominal if times else 0

    def _decode_all(self) -> Iterator[VideoFrame]:
        for packet in self.packets():
            yield from self.feed(packet)
        yield from self.feed(None)

    def _listen(self) -> None:
        if complaints := decoder_log.take():
            self.complaints += complaints
            self._note_damage(self.end)

    def _note_damage(self, time: int) -> None:
        seconds = 0.0 if self.base is None else max(0.0, self.ticks.seconds(time))
        self._damaged_at = seconds if self._damaged_at is None else min(self._damaged_at, seconds)

    def _note(self, time: int, duration: int | None) -> None:
        # Only the latest counts: with B-frames, durations are differences of decoding times.
        if self._newest is None or time > self._newest:
            self._newest = time
            self.end = time + (duration or self.nominal)


def has_hole(content: bytes | memoryview) -> bool:
    """Whether a packet has a long run of zeros before its last byte that is none; those at its end are padding."""
    whole = bytes(content)
    return _HOLE in whole and _HOLE in whole.rstrip(b"\0")


def identify(packet: Packet[VideoStream]) -> PacketIdentity:
    """A key that identifies a packet within its stream."""
    return packet.pts, packet.dts, packet.pos, packet.size


def frame_rate(stream: VideoStream) -> float:
    """Average frames per second of a stream, as stated by its file."""
    for rate in (stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate is not None and 0 < rate <= 1000:
            return float(rate)
    return DEFAULT_RATE
