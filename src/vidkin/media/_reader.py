"""Decoded pictures of a file in the order of their times, damaged parts skipped."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import av
import av.error

from vidkin.errors import MediaError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

logger = logging.getLogger(__name__)

# Assumed where a file names no frame rate at all.
DEFAULT_RATE = 25.0

# A step back in time by more seconds than this is a new recording glued on, not jitter.
GLUED = 1.0


class PictureReader:
    """Reads the pictures of one video with strictly increasing times.

    Attributes:
        base: Time of the first picture in units of the stream (known after the first one came).
        tick: Seconds of one unit.
        end: Time at which the last picture read so far leaves the screen, in seconds from the first one.
        failures: Number of packets that could not be decoded.
    """

    def __init__(self, name: str, container: InputContainer, stream: VideoStream) -> None:
        self.name = name
        self.container = container
        self.stream = stream
        self.tick = float(stream.time_base or 1 / 90000)
        self.nominal = max(1, round(1 / (frame_rate(stream) * self.tick)))
        self.base: int | None = None
        self.failures = 0
        self._shift = 0
        self._last: int | None = None
        self._last_duration = self.nominal

    @property
    def end(self) -> float:
        if self._last is None or self.base is None:
            return 0.0
        return (self._last + self._last_duration - self.base) * self.tick

    def pictures(self) -> Iterator[tuple[int, VideoFrame]]:
        """(time in units of the stream, picture), every one that decodes.

        Raises:
            MediaError: Not a single picture can be decoded.
        """
        yield from self.timed(self.decode(self.packets()))
        self.close()

    def close(self) -> None:
        """Say how the reading went: a warning if parts were damaged, `MediaError` if nothing came out."""
        if self.base is None:
            raise MediaError(self.name, "not a single frame can be decoded: it is damaged or was cut off")
        if self.failures:
            logger.warning(
                "%s: %d damaged parts could not be decoded and were skipped", self.name, self.failures
            )

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """The packets of the video up to the end, or up to where the file cannot be read any further."""
        try:
            for packet in self.container.demux(self.stream):
                if packet.size:
                    yield packet
        except av.error.FFmpegError as error:
            self.failures += 1
            logger.debug("%s: reading stopped early: %s", self.name, error)

    def decode(self, packets: Iterator[Packet[VideoStream]]) -> Iterator[VideoFrame]:
        """The pictures of these packets, and in the end those that the decoder still held."""
        for packet in packets:
            yield from self.feed(packet)
        yield from self.feed(None)

    def feed(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """What the decoder gives for one packet; None empties it."""
        try:
            return self.stream.codec_context.decode(packet)
        except av.error.EOFError:
            return []
        except av.error.FFmpegError as error:
            self.failures += 1
            logger.debug("%s: a packet could not be decoded: %s", self.name, error)
            return []

    def timed(self, frames: Iterator[VideoFrame]) -> Iterator[tuple[int, VideoFrame]]:
        """Give every picture its time; drop those that do not come after the one before."""
        for frame in frames:
            time = self._time_of(frame)
            if self._last is not None and time <= self._last:
                if (self._last - time) * self.tick <= GLUED:
                    continue
                self._shift += self._last + self._last_duration - time
                time = self._last + self._last_duration
            if self.base is None:
                self.base = time
            self._last = time
            self._last_duration = frame.duration or self.nominal
            yield time, frame

    def _time_of(self, frame: VideoFrame) -> int:
        stamp = frame.pts if frame.pts is not None else frame.dts
        if stamp is not None:
            return stamp + self._shift
        # A raw stream has no times at all; what it says of durations is no better.
        return 0 if self._last is None else self._last + self.nominal


def frame_rate(stream: VideoStream) -> float:
    """Average frames a second of a stream, as far as its file says."""
    for rate in (stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate is not None and 0 < rate <= 1000:
            return float(rate)
    return DEFAULT_RATE
