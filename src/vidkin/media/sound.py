"""Decode the audio of a file to mono or stereo samples at a low rate with exact times, skipping damaged parts.

Audio packets come from the reader of the frames (:class:`vidkin.media.reader.PictureReader`), which passes on the
packets between them, or from :func:`iter_sound`, which reads only audio.
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
from vidkin.media.reader import MAX_STEP_BACK, MAX_TRACKS, demux, is_refusal, logger, media_error, open_container

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.packet import Packet

SOUND_RATE = 8000
"""Samples per second of decoded audio."""

# A larger gap in seconds between two audio frames starts a new segment: containers round times to milliseconds, and
# smaller gaps and overlaps are inaudible.
_JITTER = 0.02
# Number of samples to pass on at a time; for frames of a few milliseconds, the overhead would exceed the processing.
_CHUNK = SOUND_RATE
# Gaps in the times of a track above this many seconds are damage, not silence.
_MAX_GAP = 24 * 3600.0

Listener = Callable[[int, NDArray[np.float32]], None]
"""Receives the position of the first sample, counted from time 0 at `SOUND_RATE`, and the samples, in order.

The samples are [S], or [S, 2] for stereo."""

Mix = Literal["mono", "stereo"]
"""Channels to which all audio is mixed."""


@dataclass(frozen=True, slots=True)
class SoundTrack(Result):
    """An audio track of a file.

    Attributes:
        number: Index among the audio tracks, from 0.
        language: Language in the header (ISO 639); empty if there is none.
        title: Title in the header; empty if there is none.
        codec: Name of the codec; empty if unknown.
        is_default: Whether players play this track by default.
    """

    number: int
    language: str = ""
    title: str = ""
    codec: str = ""
    is_default: bool = False


def sound_tracks(container: InputContainer) -> list[SoundTrack]:
    """List the audio tracks of an open file, at most `MAX_TRACKS`."""
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
    """Decodes the packets of an audio track to samples with exact times.

    Gaps in the times are skipped, and overlaps are dropped. A step back of more than a second means an appended
    recording, which continues where the previous one ended.

    Args:
        stream: The track.
        origin: Time in the file, in seconds, that corresponds to time 0 of the samples: the time of the first frame.
        listen: Receiver of the samples.
        mix: Channels of the samples.

    Attributes:
        failures: Number of packets that could not be decoded.
    """

    def __init__(self, stream: AudioStream, origin: float, listen: Listener, mix: Mix = "mono") -> None:
        self._stream, self._origin, self._listen, self._mix = stream, origin, listen, mix
        self._tick = float(stream.time_base or DEFAULT_TIME_BASE)
        self._resampler: AudioResampler | None = None
        self._format: tuple[Any, ...] = ()
        # Expected time of the next frame in seconds, offset of times after a step back, and position of the next sample
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
        """Ignore the packets received so far, because they will be received again."""
        self._skip_until = self._decoding_time

    def finish(self) -> None:
        """Decode the remaining audio."""
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
            logger.debug("an audio packet could not be decoded: %s", error)

    def _take(self, frame: AudioFrame) -> None:
        rate = frame.sample_rate
        if not rate or not frame.samples:
            return
        time = self._expected if frame.pts is None else frame.pts * self._tick - self._origin + self._shift
        time = 0.0 if time is None else time
        form = (frame.format.name, frame.layout.name, rate)
        if self._expected is None or form != self._format or abs(time - self._expected) > _JITTER:
            self._flush()
            if self._expected is not None and time < self._expected - MAX_STEP_BACK:
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
            logger.debug("the end of an audio segment was skipped: %s", error)

    def _pass_on(self, resampled: AudioFrame) -> None:
        shape = (-1, 2) if self._mix == "stereo" else (-1,)
        samples = resampled.to_ndarray().reshape(shape).astype(np.float32, copy=False)
        first = self._next
        self._next += len(samples)
        # Skip samples before the first frame, and samples that were already passed on.
        known = max(self._passed, 0) - first
        if known > 0:
            samples, first = samples[known:], first + known
        if len(samples):
            self._passed = first + len(samples)
            if not np.isfinite(samples.sum()):  # damaged packets can decode to NaN or infinity
                samples = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
            self._listen(first, samples)


class TracksDecoder:
    """Decodes the audio tracks of a file from packets that the caller reads.

    Args:
        container: The open file.
        origin: Time in the file, in seconds, that corresponds to time 0.
        open_listener: Called for each track, in order; returns the receiver of the samples.
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
        """Decode a packet of any stream; packets of other streams than audio are ignored."""
        decoder = self._decoders.get(packet.stream_index)
        if decoder is not None:
            decoder.push(packet)

    def rewind(self) -> None:
        """Ignore the packets received so far, because the file is read again from its start."""
        for decoder in self._decoders.values():
            decoder.rewind()

    def finish(self) -> int:
        """Decode the remaining audio, and return the number of packets that could not be decoded."""
        for decoder in self._decoders.values():
            decoder.finish()
        return sum(decoder.failures for decoder in self._decoders.values())


@contextmanager
def open_sound(path: PathLike) -> Iterator[tuple[InputContainer, float]]:
    """Open a file only for its audio; yield the container and the time in the file, in seconds, that counts as 0.

    This is the time of the first video frame or, if there is no video except a cover, of the first sample.

    Raises:
        MediaError: The file cannot be read, or has no audio.
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
    """Read only the audio of a file.

    Args:
        path: A video or an audio file.
        open_listener: Called for each track, in order; returns the receiver of the samples.
        end: Stop at this time in seconds; some later samples may also be passed on.
        on_read: Callback for each packet that is read.
        origin: Time in the file, in seconds, that corresponds to time 0; None uses the one from :func:`open_sound`.

    Returns:
        The number of packets that could not be decoded.

    Raises:
        MediaError: The file cannot be read, or has no audio.
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
