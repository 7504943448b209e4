"""Decode the sound of a file to mono or stereo samples at a low rate with exact times, skipping damaged parts.

Packets of sound come from the reader of the frames (:class:`vidkin.media.reader.PictureReader`), which passes on the
packets between them, or from :func:`iter_sound`, which reads only sound.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import av
import av.error
import numpy as np
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.values import Result
from vidkin.errors import MediaError
from vidkin.media.frames import DEFAULT_TIME_BASE
from vidkin.media.reader import GLUED, MAX_TRACKS, demux, is_refusal, logger, media_error, open_container

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.packet import Packet

SOUND_RATE = 8000
"""Samples per second of decoded sound."""

# Seconds between the end of a frame and the start of the next above which a new piece begins: containers round to
# milliseconds, and smaller gaps and overlaps are inaudible.
_JITTER = 0.02
# Samples passed on at a time, because the overhead per frame of a few milliseconds exceeds the cost of its samples.
_CHUNK = SOUND_RATE
# Seconds above which a gap in the times of a track is damage, not silence.
_MAX_GAP = 24 * 3600.0

Listener = Callable[[int, NDArray[np.float32]], None]
"""Receives the number of the first sample, counted from time 0 at `SOUND_RATE`, and the samples, in order.

These are [S], or [S, 2] for stereo."""

Mix = Literal["mono", "stereo"]
"""Channels to which all sound is mixed."""


@dataclass(frozen=True, slots=True)
class SoundTrack(Result):
    """A sound track of a file.

    Attributes:
        number: Position among the sound tracks, from 0.
        language: Stated language (ISO 639); empty if there is none.
        title: Stated title; empty if there is none.
        codec: Name of the codec; empty if unknown.
        is_default: Whether players play it by default.
    """

    number: int
    language: str = ""
    title: str = ""
    codec: str = ""
    is_default: bool = False


def sound_tracks(container: InputContainer) -> list[SoundTrack]:
    """List the sound tracks of an open file, at most `MAX_TRACKS`."""
    best = container.streams.best("audio")
    return [
        SoundTrack(
            number,
            stream.metadata.get("language", "").replace("und", ""),
            stream.metadata.get("title", ""),
            "" if getattr(stream, "codec_context", None) is None else stream.codec_context.codec.canonical_name,
            best is not None and best.index == stream.index,
        )
        for number, stream in enumerate(container.streams.audio[:MAX_TRACKS])
    ]


class TrackDecoder:
    """Decodes the packets of a sound track to samples with exact times.

    Gaps in the times are skipped, and overlaps are dropped. A step back of more than a second is an appended recording,
    which continues where the previous one ended.

    Args:
        stream: The track.
        origin: Time in the file, in seconds, of time 0 of the samples: the time of the first frame.
        listen: Receives the samples.
        mix: Channels of the samples.

    Attributes:
        failures: Number of packets that could not be decoded.
    """

    def __init__(self, stream: AudioStream, origin: float, listen: Listener, mix: Mix = "mono") -> None:
        self._stream, self._origin, self._listen, self._mix = stream, origin, listen, mix
        self._tick = float(stream.time_base or DEFAULT_TIME_BASE)
        self._resampler: AudioResampler | None = None
        self._format: tuple[Any, ...] = ()
        # Expected time of the next frame in seconds, offset of times after a step back, and number of the next sample
        # from the resampler.
        self._expected: float | None = None
        self._shift = 0.0
        self._next = 0
        self._passed = 0
        self._decoding_time: int | None = None
        self._skip_until: int | None = None
        self.failures = 0

    def push(self, packet: Packet[AudioStream]) -> None:
        """Decode a packet."""
        if not packet.size:
            return
        if self._skip_until is not None:
            if packet.dts is None or packet.dts <= self._skip_until:
                return
            self._skip_until = None
        if packet.dts is not None:
            self._decoding_time = packet.dts
        self._decode(packet)

    def rewind(self) -> None:
        """Ignore the packets that came already, because they come again."""
        self._skip_until = self._decoding_time

    def finish(self) -> None:
        """Decode the remaining sound."""
        self._decode(None)
        self._flush()

    def _decode(self, packet: Packet[AudioStream] | None) -> None:
        context = getattr(self._stream, "codec_context", None)
        if context is None:
            self.failures += packet is not None
            return
        try:
            for frame in context.decode(packet):
                self._take(frame)
        except av.error.EOFError:
            return
        except (av.error.FFmpegError, ValueError) as error:
            self.failures += 1
            logger.debug("a packet of sound could not be decoded: %s", error)

    def _take(self, frame: AudioFrame) -> None:
        rate = frame.sample_rate
        if not rate or not frame.samples:
            return
        time = self._expected if frame.pts is None else frame.pts * self._tick - self._origin + self._shift
        time = 0.0 if time is None else time
        form = (frame.format.name, frame.layout.name, rate)
        if self._expected is None or form != self._format or abs(time - self._expected) > _JITTER:
            self._flush()
            if self._expected is not None and time < self._expected - GLUED:
                self._shift += self._expected - time
                time = self._expected
            if self._expected is not None and time > self._expected + _MAX_GAP:
                time = self._expected
            self._resampler = AudioResampler(format="flt", layout=self._mix, rate=SOUND_RATE, frame_size=_CHUNK)
            self._format, self._next, self._expected = form, round(time * SOUND_RATE), time
        assert self._resampler is not None
        assert self._expected is not None
        frame.pts = None  # counted here
        for resampled in self._resampler.resample(frame):
            self._pass_on(resampled)
        self._expected += frame.samples / rate

    def _flush(self) -> None:
        resampler, self._resampler = self._resampler, None
        if resampler is None:
            return
        try:
            for resampled in resampler.resample(None):
                self._pass_on(resampled)
        except av.error.FFmpegError as error:
            logger.debug("the end of a piece of sound was skipped: %s", error)

    def _pass_on(self, resampled: AudioFrame) -> None:
        shape = (-1, 2) if self._mix == "stereo" else (-1,)
        samples = resampled.to_ndarray().reshape(shape).astype(np.float32, copy=False)
        first = self._next
        self._next += len(samples)
        # Skip samples before the first frame and samples that were passed on before.
        known = max(self._passed, 0) - first
        if known > 0:
            samples, first = samples[known:], first + known
        if len(samples):
            self._passed = first + len(samples)
            if not np.isfinite(samples.sum()):  # a damaged packet may decode to NaN or infinity
                samples = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
            self._listen(first, samples)


class TracksDecoder:
    """Decodes the sound tracks of a file from packets that the caller reads.

    Args:
        container: The open file.
        origin: Time in the file, in seconds, of time 0.
        open_listener: Called for each track, in order; returns the receiver of its samples.
        mix: Channels of the samples.
    """

    def __init__(
        self,
        container: InputContainer,
        origin: float,
        open_listener: Callable[[SoundTrack], Listener],
        mix: Mix = "mono",
    ) -> None:
        self._decoders = {
            stream.index: TrackDecoder(stream, origin, open_listener(track), mix)
            for stream, track in zip(container.streams.audio, sound_tracks(container), strict=False)
        }

    def push(self, packet: Packet[Any]) -> None:
        """Take a packet of any stream; packets of streams without sound are ignored."""
        decoder = self._decoders.get(packet.stream_index)
        if decoder is not None:
            decoder.push(packet)

    def rewind(self) -> None:
        """Ignore the packets that came already, because the file is read again from its start."""
        for decoder in self._decoders.values():
            decoder.rewind()

    def finish(self) -> int:
        """Decode the remaining sound and return the number of packets that could not be decoded."""
        for decoder in self._decoders.values():
            decoder.finish()
        return sum(decoder.failures for decoder in self._decoders.values())


@contextmanager
def open_sound(path: PathLike) -> Iterator[tuple[InputContainer, float]]:
    """Open a file only for its sound; yield the container and the time in it, in seconds, of time 0.

    That is the time of the first video frame, or of the first sample if there is no video except a cover.

    Raises:
        MediaError: The file cannot be read, or has no sound.
    """
    name = os.fspath(path)
    with open_container(name) as container:
        if not container.streams.audio:
            raise MediaError(name, "the file has no sound")
        moving = [s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic]
        starts = moving or container.streams.audio
        known = [s.start_time * float(s.time_base) for s in starts if s.start_time is not None and s.time_base]
        yield container, min(known, default=0.0)


@check_arguments
def iter_sound(
    path: PathLike,
    open_listener: Callable[[SoundTrack], Listener],
    *,
    end: float | None = None,
    on_read: Callable[[], None] = lambda: None,
    origin: float | None = None,
) -> int:
    """Read only the sound of a file.

    Args:
        path: A video or an audio file.
        open_listener: Called for each track, in order; returns the receiver of its samples.
        end: Stop at this time in seconds; some later samples may be passed on as well.
        on_read: Callback for every packet read.
        origin: Time in the file, in seconds, of time 0; None for the one of :func:`open_sound`.

    Returns:
        Number of packets that could not be decoded.

    Raises:
        MediaError: The file cannot be read, or has no sound.
    """
    with open_sound(path) as (container, start):
        start = start if origin is None else origin
        reader = TracksDecoder(container, start, open_listener)
        streams: Sequence[AudioStream] = container.streams.audio[:MAX_TRACKS]
        failures = 0
        try:
            for packet in demux(container, *streams):
                on_read()
                pts, unit = packet.pts, packet.time_base
                if end is not None and pts is not None and unit is not None and float(pts * unit) - start > end:
                    break
                reader.push(packet)
        except av.error.FFmpegError as error:
            if is_refusal(os.fspath(path), error):
                raise media_error(os.fspath(path), error) from error
            failures = 1
        return reader.finish() + failures
