"""Sample frames of a file at a fixed rate, by their actual times."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.convert import Converter, Orienter, clean_aspect
from vidkin.media.frames import Frames, join_frames
from vidkin.media.probing import ProbedVideo, open_at_start
from vidkin.media.reader import PictureReader
from vidkin.media.sampling import ChosenSampler, Sampler, Samples, SkippingDecoder
from vidkin.media.sound import TracksDecoder

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame

# Maximum samples per second; more would only fill memory, even for excerpts of a few milliseconds.
_MAX_SAMPLE_RATE = 100_000

# A batch that reaches this many bytes is yielded early.
BATCH_BYTES = 64 * 2**20

# Positions of poster candidates as fractions of the duration (not at the start, which is often black), and the standard
# deviation below which the next candidate is tried.
_POSTER_POSITIONS = (1 / 3, 1 / 2, 1 / 5, 2 / 3, 4 / 5, 0.1, 0.9, 0.4, 0.6)
_MIN_CONTRAST, _MID_GRAY = 14.0, 127.5


@check_arguments
def iter_frames(
    path: PathLike | ProbedVideo,
    *,
    rate: float | None = 1.0,
    start: float = 0.0,
    end: float | None = None,
    short_side: int | None = None,
    batch: int = 32,
    threads: int = 0,
    stream: int | None = None,
    coded: bool = False,
    on_read: Callable[[], None] = lambda: None,
    on_damage: Callable[[str], None] | None = None,
) -> Iterator[Frames]:
    """Read a video in batches, with memory use independent of its length.

    Samples are taken at start + k / rate seconds, k = 0, 1, ...; each is the frame on screen at that time: the latest
    frame whose timestamp is not after it. No frame is returned twice: a video with fewer frames per second than
    ``rate`` yields every frame once, and every video yields at least one frame. A still image is a video with one
    frame.

    Times count from the first frame of the file. Frames are 8-bit RGB, upright (display matrix), with square pixels
    (sample aspect ratio) and correct colors. HDR is mapped to standard range, interlaced video is reduced to one field,
    and if the size changes within a file, all frames are scaled to the size of the first.

    Args:
        path: A video, an animated image or a still image; a `ProbedVideo` continues with its open file.
        rate: Samples per second, independent of the file's frame rate. None yields every frame that starts in the
            range, or the frame on screen at ``start`` if there is none.
        start: Time of the first sample in seconds.
        end: Time in seconds at which sampling ends, exclusive; None reads to the end.
        short_side: Downscale (never upscale) to this many pixels on the shorter side, and at most eight times as many
            on the longer one; None keeps the size. Set it to what the features need, because large frames cost time
            and memory.
        batch: Maximum number of frames per batch; batches of large frames are shorter, at about 64 MiB.
        threads: Decoder threads; 0 is one per core. Use 1 if many files are read in parallel. A `ProbedVideo` keeps
            the number it was opened with.
        stream: Index of the video stream in the file, from 0, if there are several; None takes the first, as players
            do. A `ProbedVideo` keeps the stream it was opened with.
        coded: Return Y', Cb, Cr as stored in the file, each from 0 to 255, instead of RGB. Nothing is clipped, so a
            gray copy has the luma of its source.
        on_read: Callback for each packet that is read, as a sign of progress.
        on_damage: Callback that receives one line at the end if parts of the file are damaged; None logs a warning.

    Yields:
        `Frames` of at least one frame each. Timestamps are those of the frames, so the first can be before ``start``.

    Raises:
        InvalidArgumentError: An argument is out of range.
        MediaError: The file cannot be read as video (missing, empty, audio only, a playlist, frames of more than 80
            million pixels, damaged before the first frame...), or ``start`` is after its end. Later damage is skipped
            and reported (``on_damage``).
    """
    if rate is not None and not 0 < rate <= _MAX_SAMPLE_RATE:
        raise InvalidArgumentError(
            f"rate must be above 0 and at most {_MAX_SAMPLE_RATE} samples per second, or None for every frame, "
            f"got {rate}"
        )
    if not (start >= 0 and math.isfinite(start)):
        raise InvalidArgumentError(f"start must be at least 0 s, got {start}")
    if end is not None and not end > start:
        raise InvalidArgumentError(f"end must be after start, {start} s, got {end}")
    check_at_least(1, short_side=1 if short_side is None else short_side, batch=batch)
    check_at_least(0, threads=threads)
    make = partial(Sampler, rate, start, end)
    return _iter_batches(
        path, make, rate is None, short_side, batch, threads, on_read, on_damage, coded=coded, stream=stream
    )


@check_arguments
def iter_frames_at(
    path: PathLike,
    times: Sequence[float],
    *,
    short_side: int | None = None,
    batch: int = 32,
    threads: int = 0,
    stream: int | None = None,
) -> Iterator[Frames]:
    """Read the frames on screen at given times, in one pass that decodes only the packets these frames need.

    Args:
        path: A file, as in `iter_frames`.
        times: Times in seconds from the first frame, increasing.
        short_side: Pixels on the shorter side, as in `iter_frames`.
        batch: Maximum number of frames per batch, as in `iter_frames`.
        threads: Decoder threads, as in `iter_frames`.
        stream: Index of the video stream, as in `iter_frames`.

    Yields:
        `Frames` with the timestamps of the frames. No frame is repeated; times after the end yield no frame.

    Raises:
        InvalidArgumentError: ``times`` is empty or does not increase from 0.
        MediaError: The file cannot be read; see `iter_frames`.
    """
    if not times or times[0] < 0 or any(late <= early for early, late in pairwise(times)):
        raise InvalidArgumentError("times must have at least one value, be at least 0 s, and increase")
    make = partial(ChosenSampler, times)
    return _iter_batches(path, make, False, short_side, batch, threads, lambda: None, None, stream=stream)


@check_arguments
def read_frames(
    path: PathLike,
    *,
    rate: float | None = 1.0,
    start: float = 0.0,
    end: float | None = None,
    short_side: int | None = None,
    batch: int = 32,
    threads: int = 0,
    stream: int | None = None,
) -> Frames:
    """Read all frames that `iter_frames` yields for the same arguments, as one `Frames` object."""
    batches = iter_frames(
        path, rate=rate, start=start, end=end, short_side=short_side, batch=batch, threads=threads, stream=stream
    )
    return join_frames(list(batches))


@check_arguments
def read_gray(
    path: PathLike, *, start: float, end: float, short_side: int, threads: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Read every frame in a time range as gray levels, which is faster than reading color.

    Args:
        path, start, end, short_side, threads: As in `iter_frames` with a rate of None.

    Returns:
        Times [T] in seconds, and gray levels [T, H, W].

    Raises:
        MediaError: The file cannot be read; see `iter_frames`.
    """
    make = partial(Sampler, None, start, end)
    pictures = _iter_samples(path, make, True, short_side, threads, lambda: None, None, gray=True)
    times, images = zip(*pictures, strict=True)
    return np.array(times), np.stack(images)


@check_arguments
def thumbnail(
    path: PathLike, time: float = 0.0, *, short_side: int | None = 160, threads: int = 0
) -> NDArray[np.uint8]:
    """Read the frame on screen at ``time`` seconds as [H, W, 3] uint8 RGB.

    Raises:
        MediaError: The file cannot be read; see `iter_frames`.
    """
    frames = read_frames(path, rate=1.0, start=time, end=time + 0.5, short_side=short_side, batch=1, threads=threads)
    image: NDArray[np.uint8] = frames.images[0]
    return image


@check_arguments
def poster(path: PathLike, duration: float, *, short_side: int | None = 160, threads: int = 0) -> NDArray[np.uint8]:
    """Read a representative frame of a video as [H, W, 3] uint8 RGB.

    This is the first of nine candidates, starting at a third of the duration, that has enough contrast; if none has,
    the candidate closest to mid gray.

    Args:
        path: The video or image.
        duration: Duration in seconds; 0 for an image.
        short_side: Pixels on the shorter side.
        threads: Decoder threads; 0 is one per core.

    Raises:
        MediaError: The file cannot be read; see `iter_frames`.
    """
    plain: list[NDArray[np.uint8]] = []
    for share in _POSTER_POSITIONS if duration > 0 else (0.0,):
        try:
            image = thumbnail(path, share * duration, short_side=short_side, threads=threads)
        except MediaError:
            if not plain:
                raise
            continue  # beyond the actual end, or damaged: use an earlier candidate
        if image.std() >= _MIN_CONTRAST:
            return image
        plain.append(image)
    return min(plain, key=lambda image: abs(float(image.mean()) - _MID_GRAY))


def _open_sound_decoder(
    source: PathLike | ProbedVideo, container: InputContainer, held: Sequence[Packet[Any]]
) -> TracksDecoder | None:
    """Return a decoder for the file's audio if there is a listener; only once, because a file may be read
    repeatedly."""
    if not isinstance(source, ProbedVideo) or source.open_listener is None or not container.streams.audio:
        return None
    reader = TracksDecoder(container, source.info.start_time, source.open_listener)
    source.open_listener = None
    for packet in held:
        reader.push(packet)
    return reader


def _iter_batches(
    source: PathLike | ProbedVideo,
    make_sampler: Callable[..., Samples],
    every: bool,
    short_side: int | None,
    batch: int,
    threads: int,
    on_read: Callable[[], None],
    on_damage: Callable[[str], None] | None,
    *,
    coded: bool = False,
    stream: int | None = None,
) -> Iterator[Frames]:
    images: list[NDArray[np.uint8]] = []
    times: list[float] = []
    with closing(
        _iter_samples(source, make_sampler, every, short_side, threads, on_read, on_damage, coded=coded, stream=stream)
    ) as pictures:
        for seconds, image in pictures:
            images.append(image)
            times.append(seconds)
            if len(images) >= batch or len(images) * images[0].nbytes >= BATCH_BYTES:
                yield Frames(np.stack(images), np.array(times))
                images, times = [], []
    if images:
        yield Frames(np.stack(images), np.array(times))


def _iter_samples(
    source: PathLike | ProbedVideo,
    make_sampler: Callable[..., Samples],
    every: bool,
    short_side: int | None,
    threads: int,
    on_read: Callable[[], None],
    on_damage: Callable[[str], None] | None,
    *,
    gray: bool = False,
    coded: bool = False,
    stream: int | None = None,
) -> Generator[tuple[float, NDArray[np.uint8]]]:
    """Yield (seconds, converted frame) for each sample."""
    name = source.info.path if isinstance(source, ProbedVideo) else os.fspath(source)
    with open_at_start(source, threads=threads, stream=stream) as (container, video, begun, held):
        orient = Orienter(name, video.codec_context.codec.canonical_name)
        convert = Converter(orient, clean_aspect(video.sample_aspect_ratio), short_side, gray=gray, coded=coded)
        sound = _open_sound_decoder(source, container, held)
        reader = PictureReader(name, container, video, begun=begun, on_read=on_read, on_damage=on_damage, sound=sound)
        for seconds, frame in _sample_frames(reader, make_sampler, every):
            yield seconds, convert(frame)
        if sound is not None and isinstance(source, ProbedVideo):
            source.sound_failures = sound.finish()


def _sample_frames(
    reader: PictureReader, make_sampler: Callable[..., Samples], every: bool
) -> Iterator[tuple[float, VideoFrame]]:
    """Yield (seconds, frame) for each sample."""
    sampler: Samples | None = None

    def samples() -> Samples:
        assert sampler is not None  # the decoder calls this only after the first frame
        return sampler

    is_empty = True
    decoder = SkippingDecoder(reader, samples, every=every)
    for picture in decoder.pictures():
        if sampler is None:
            sampler = make_sampler(tick=reader.tick, base=reader.base or 0)
        for time, frame in sampler.push(picture):
            is_empty = False
            yield reader.ticks.seconds(time), frame
        if sampler.done:
            decoder.close()
            return
    assert sampler is not None  # pictures() raises if there is no frame
    for time, frame in sampler.finish(reader.end):
        is_empty = False
        yield reader.ticks.seconds(time), frame
    if is_empty:
        first = reader.ticks.seconds(sampler.limit_of(0) or 0)
        raise MediaError(reader.name, f"start {first:.1f} s is beyond the end ({reader.length:.1f} s)")
