"""Write parts of a video as a new video with audio: several parts joined frame-accurately, or a small preview."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import numpy as np
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin.errors import InvalidArgumentError
from vidkin.media.decode import iter_frames
from vidkin.media.encode import Image, open_media_output, write_clip, write_video
from vidkin.media.frames import is_same_time
from vidkin.media.pieces import describe_pieces
from vidkin.media.probing import probe
from vidkin.media.reader import open_video

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer, OutputContainer
    from av.packet import Packet

    from vidkin.media.split_by_frame import Span

_logger = logging.getLogger(__name__)

_RATE = 48_000
# Seconds to decode before a part, because decoded audio fades in at the first packet; and the largest deviation of
# packet times that counts as rounding.
_WARM_UP, _MAX_JITTER = 0.5, 0.03
# Number of samples to encode at a time.
_BLOCK = 8 * 1024


@check_arguments
def join_spans(
    source: PathLike,
    target: PathLike,
    spans: Sequence[Span],
    *,
    rate: float,
    crf: int = 20,
    on_progress: Callable[[int, int], None] | None = None,
) -> bool:
    """Join parts of a video into one new video, frame-accurately.

    Frames are re-encoded and keep their spacing in time. The audio is the first audio track, encoded as AAC and cut
    sample-accurately; missing or undecodable audio is replaced with silence.

    Args:
        source: The video.
        target: File to write, for example ``"clip.mp4"``.
        spans: The parts in seconds from the first frame, with their frame numbers.
        rate: Frames per second of the source.
        crf: Constant rate factor for the frames, from 0 (best) to 51.
        on_progress: Callback that frequently receives (parts begun, total parts); its exceptions stop the work.

    Returns:
        Whether the new video has audio.

    Raises:
        InvalidArgumentError: There are no spans.
        MediaError: The source cannot be read, or the target cannot be written.
    """
    if not spans:
        raise InvalidArgumentError("spans must not be empty")
    properties = probe(source)
    made_of = describe_pieces(source)
    if not properties.has_audio:
        _write_frames(source, target, spans, rate, crf, on_progress)
        return False
    with tempfile.TemporaryDirectory(prefix="vidkin-") as folder:
        silent = Path(folder, f"silent{Path(target).suffix}")
        _write_frames(source, silent, spans, rate, crf, on_progress)
        stretches = list(_merge_adjacent(spans))
        _combine(source, silent, target, stretches, origin=properties.start_time, made_of=made_of)
    return True


def write_preview(
    source: PathLike, target: PathLike, *, start: float, end: float, crf: int, short_side: int, threads: int = 0
) -> bool:
    """Write part of a video as a small preview with audio that shows the frame on screen at every time.

    Args:
        source: The video.
        target: File to write, for example ``"preview.mp4"``.
        start: Start of the preview in seconds.
        end: End of the preview in seconds, exclusive.
        crf: Constant rate factor for the frames, from 0 (best) to 51.
        short_side: Maximum number of pixels on the shorter side.
        threads: Threads of the decoder and of the encoder; 0 lets them choose.

    Returns:
        Whether the preview has audio; undecodable audio is replaced with silence.

    Raises:
        MediaError: The source cannot be read, ``start`` is after its end, or the target cannot be written.
    """
    properties = probe(source)

    def write_frames(path: PathLike) -> None:
        write_clip(
            source, path, start=start, end=end, crf=crf, short_side=short_side, from_screen=True, threads=threads
        )

    if not properties.has_audio:
        write_frames(target)
        return False
    with tempfile.TemporaryDirectory(prefix="vidkin-") as folder:
        silent = Path(folder, f"silent{Path(target).suffix}")
        write_frames(silent)
        stretch = (start, start + probe(silent).duration)
        made_of = describe_pieces(source)
        _combine(source, silent, target, [stretch], origin=properties.start_time, made_of=made_of)
    return True


def _combine(
    source: PathLike,
    silent: Path,
    target: PathLike,
    stretches: Sequence[tuple[float, float]],
    *,
    origin: float,
    made_of: str,
) -> None:
    """Combine the frames of one file with the audio from parts of the source."""
    with (
        open_video(source) as (container, _),
        av.open(f"file:{silent}") as pictures,
        open_media_output(target, source=made_of) as partial,
        av.open(f"file:{partial}", "w") as output,
    ):
        sound = container.streams.audio[0]
        blocks = _iter_sound_blocks(container, sound, stretches, origin)
        _add_sound(output, pictures, blocks, "mono" if sound.channels == 1 else "stereo")


def _write_frames(
    source: PathLike,
    target: PathLike,
    spans: Sequence[Span],
    rate: float,
    crf: int,
    on_progress: Callable[[int, int], None] | None,
) -> None:
    times: list[float] = []

    def frames() -> Iterator[Image]:
        written = 0.0  # total duration in seconds of the previous parts
        for done, span in enumerate(spans):
            # Shift by half a frame, because times in files are rounded and no frame may be lost or repeated.
            half = 0.5 * (span.end - span.start) / (span.end_frame - span.start_frame)
            for piece in iter_frames(
                source, rate=None, start=max(span.start - half, 0.0), end=span.end - half, batch=8
            ):
                if on_progress is not None:
                    on_progress(done, len(spans))
                for image, time in zip(piece.images, piece.timestamps, strict=True):
                    times.append(written + max(float(time) - span.start, 0.0))
                    yield image
            written += span.end - span.start

    def iter_times() -> Iterator[float]:
        while True:
            yield times.pop(0)

    write_video(target, frames(), rate=rate, times=iter_times(), crf=crf, made_of=describe_pieces(source))


def _add_sound(
    output: OutputContainer, pictures: InputContainer, blocks: Iterator[NDArray[np.float32]], layout: str
) -> None:
    """Copy the frames and encode the audio, interleaved by time."""
    stored = pictures.streams.video[0]
    video = output.add_stream_from_template(stored)
    sound = output.add_stream("aac", rate=_RATE, layout=layout)
    done = 0  # samples

    def write_sound_until(time: float) -> None:
        nonlocal done
        while done < time * _RATE and (block := next(blocks, None)) is not None:
            frame = av.AudioFrame.from_ndarray(block[: sound.channels], format="fltp", layout=layout)
            frame.sample_rate, frame.pts, frame.time_base = _RATE, done, Fraction(1, _RATE)
            output.mux(sound.encode(frame))
            done += block.shape[1]

    packet: Packet[Any]
    for packet in pictures.demux(stored):
        if packet.dts is None:
            continue
        write_sound_until(float(packet.dts * Fraction(packet.time_base)))
        packet.stream = video
        output.mux_one(packet)
    write_sound_until(float("inf"))
    output.mux(sound.encode(None))


def _iter_sound_blocks(
    container: InputContainer, stream: AudioStream, stretches: Sequence[tuple[float, float]], origin: float
) -> Iterator[NDArray[np.float32]]:
    """Yield the audio [2, N] of all parts; each part starts at the sample at which its frames start."""
    written, seconds = 0, 0.0
    for start, end in stretches:
        first, wanted = written, round((seconds + end - start) * _RATE)
        seconds += end - start
        with suppress(av.error.FFmpegError):  # if seeking fails, read on from the current position
            time = max(start - _WARM_UP, 0.0) + origin
            container.seek(int(time / Fraction(stream.time_base or Fraction(1, _RATE))), stream=stream)
        for time, samples in _decode(container, stream, origin):
            at = first + round((time - start) * _RATE)
            if at >= wanted:
                break
            if at > written:  # a gap in the audio
                yield from _iter_silence(at - written)
                written = at
            part = samples[:, written - at : wanted - at]
            if part.shape[1]:
                yield part
                written += part.shape[1]
        yield from _iter_silence(wanted - written)
        written = wanted


def _merge_adjacent(spans: Sequence[Span]) -> Iterator[tuple[float, float]]:
    """Yield the start and end of the spans, merging adjacent spans so that their audio is decoded without a seam."""
    start, end = spans[0].start, spans[0].end
    for span in spans[1:]:
        if is_same_time(span.start, end):
            end = span.end
        else:
            yield start, end
            start, end = span.start, span.end
    yield start, end


def _iter_silence(count: int) -> Iterator[NDArray[np.float32]]:
    for start in range(0, count, _BLOCK):
        yield np.zeros((2, min(_BLOCK, count - start)), np.float32)


def _decode(
    container: InputContainer, stream: AudioStream, origin: float
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """Yield (time in seconds from the first frame, samples [2, N]) from the current position of the file."""
    resampler, begin, count = None, 0.0, 0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.error.FFmpegError as error:
            _logger.info("%r: sound that cannot be decoded was skipped: %s", container.name, error)
            continue
        for frame in frames:
            if frame.pts is None or frame.time is None:
                continue
            time = frame.time - origin
            if resampler is None or abs(begin + count / _RATE - time) > _MAX_JITTER:
                resampler, begin, count = AudioResampler(format="fltp", layout="stereo", rate=_RATE), time, 0
            for part in resampler.resample(frame):
                samples = part.to_ndarray().astype(np.float32)
                yield begin + count / _RATE, samples
                count += samples.shape[1]
