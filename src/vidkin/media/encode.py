"""Write video and images atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

import av
import av.error
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.outputs import describe_source, open_output
from vidkin._base.values import check_positive
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.convert import is_high_definition
from vidkin.media.decode import iter_frames, thumbnail
from vidkin.media.probing import probe

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.stream import VideoStream

Image = NDArray[np.uint8]

_CRF_ENCODERS = ("libx264", "libx265", "libvpx", "libvpx-vp9", "libsvtav1")
_PRESET_ENCODERS = ("libx264", "libx265")

# Ticks per second for explicit times, as in MPEG; this fits every common frame rate.
_CLOCK = 90_000
_SCREEN_RATE = 1000.0


@check_arguments
def write_video(
    path: PathLike,
    frames: Iterable[Image],
    *,
    rate: float | Fraction,
    times: Iterable[float] | None = None,
    codec: str = "libx264",
    crf: int | None = 23,
    preset: str | None = "veryfast",
    pixel_format: str = "yuv420p",
    options: Mapping[str, str] | None = None,
    threads: int = 0,
    made_of: str | None = None,
) -> int:
    """Encode frames as a video file, in the format given by the file extension.

    The file appears under its name only when it is complete; if writing fails, an existing file is unchanged. The same
    frames give the same bytes on the same machine. Odd sizes are padded by repeating the last column or row, because
    most pixel formats require even sizes.

    Args:
        path: File to write, for example ``"clip.mp4"``; an existing file is replaced.
        frames: [H, W, 3] uint8 RGB images of the same size, consumed one at a time.
        rate: Frames per second.
        times: Time of each frame in seconds, increasing, for a variable frame rate; None spaces frames by 1 / rate.
        codec: FFmpeg name of the encoder.
        crf: Constant rate factor, for x264 from 0 (best) to 51; None if the encoder does not support it.
        preset: Preset of the x264 and x265 encoders; None uses their default.
        pixel_format: Format of the stored pixels; ``"yuv444p"`` keeps full color resolution and odd sizes.
        options: Additional encoder options.
        threads: Encoder threads; 0 lets the encoder choose.
        made_of: Source of the video, see :func:`vidkin._base.outputs.describe_source`; an existing file with the same
            source is replaced. None only creates new files.

    Returns:
        The number of frames written.

    Raises:
        InvalidArgumentError: There are no frames, they differ in size, their times do not increase, or an argument
            is invalid.
        MediaError: The file cannot be written.
    """
    check_positive(rate=float(rate))
    try:
        known = av.Codec(codec, "w").type == "video"
    except av.codec.codec.UnknownCodecError:
        known = False
    if not known:
        raise InvalidArgumentError(f"codec must be an FFmpeg video encoder, for example 'libx264', got {codec!r}")
    try:
        av.VideoFormat(pixel_format, 2, 2)
    except ValueError:
        raise InvalidArgumentError(
            f"pixel_format must be an FFmpeg pixel format, for example 'yuv420p', got {pixel_format!r}"
        ) from None
    settings = dict(options or {})
    if crf is not None and codec in _CRF_ENCODERS:
        settings.setdefault("crf", str(crf))
        if codec.startswith("libvpx"):
            settings.setdefault("b", "0")
    if codec == "libx264":
        # With mbtree, some builds of x264 encode the same frames differently each time.
        settings.setdefault("mbtree", "0")
    if preset is not None and codec in _PRESET_ENCODERS:
        settings.setdefault("preset", preset)
    with open_media_output(path, source=made_of) as partial, _open_container(partial, path) as container:
        frame_rate = Fraction(rate).limit_denominator(60_060)
        try:
            stream = cast("VideoStream", container.add_stream(codec, rate=frame_rate, options=settings))
        except ValueError as error:  # from PyAV, if the format does not support the codec
            raise InvalidArgumentError(
                f"codec must be one that {partial.suffix} files support, got {codec!r}"
            ) from error
        stream.pix_fmt = pixel_format
        stream.codec_context.thread_count = threads
        unit = 1 / frame_rate if times is None else Fraction(1, _CLOCK)
        return _encode(container, stream, iter(frames), None if times is None else iter(times), unit)


@check_arguments
def write_clip(
    source: PathLike,
    target: PathLike,
    *,
    start: float,
    end: float,
    crf: int = 20,
    short_side: int | None = None,
    from_screen: bool = False,
    threads: int = 0,
) -> int:
    """Cut a frame-accurate clip from a video by re-encoding it; frames keep their spacing in time.

    The clip is upright, with square pixels, in standard range; audio is dropped.

    Args:
        source: The video.
        target: File to write, for example ``"clip.mp4"``.
        start: Start of the clip in seconds (the clip is the frame on screen then if no frame starts in the range).
        end: End of the clip in seconds, exclusive.
        crf: Constant rate factor, from 0 (best) to 51.
        short_side: Downscale to this many pixels on the shorter side; None keeps the size.
        from_screen: Begin with the frame on screen at ``start``, so that the clip at any time shows the same frame as
            the video ``start`` seconds later; of several frames within a millisecond, only one is kept.
        threads: Threads of the decoder and of the encoder; 0 lets them choose.

    Returns:
        The number of frames written.

    Raises:
        InvalidArgumentError: ``end`` is not after ``start``.
        MediaError: The source cannot be read, ``start`` is after its end, or the target cannot be written.
    """
    rate = min(probe(source).frame_rate, 240.0)
    times: list[float] = []
    # Samples show the frame on screen; this rate is high enough not to miss any frame.
    samples = _SCREEN_RATE if from_screen else None

    def frames() -> Iterator[Image]:
        first = start if from_screen else None
        for piece in iter_frames(
            source, rate=samples, start=start, end=end, short_side=short_side, batch=8, threads=threads
        ):
            for image, time in zip(piece.images, piece.timestamps, strict=True):
                first = float(time) if first is None else first
                times.append(max(float(time) - first, 0.0))
                yield image

    def iter_times() -> Iterator[float]:
        while True:
            yield times.pop(0)

    made_of = describe_source("clip", source)
    return write_video(target, frames(), rate=rate, times=iter_times(), crf=crf, threads=threads, made_of=made_of)


@check_arguments
def write_thumbnail(
    source: PathLike,
    target: PathLike,
    time: float = 0.0,
    *,
    short_side: int | None = 160,
    threads: int = 0,
) -> None:
    """Save the frame on screen at ``time`` seconds as an image, in the format given by the file extension.

    Raises:
        MediaError: The source cannot be read, or the target cannot be written.
    """
    from PIL import Image as PILImage

    image = thumbnail(source, time, short_side=short_side, threads=threads)
    with open_output(target, source=describe_source("image", source)) as partial:
        try:
            PILImage.fromarray(image).save(partial)
        except ValueError as error:
            raise MediaError(target, f"{partial.suffix!r} is not the extension of an image format") from error


@contextmanager
def open_media_output(path: PathLike, *, source: str | None = None) -> Iterator[Path]:
    """Open an output like :func:`~vidkin._base.outputs.open_output`; FFmpeg errors inside the block also become
    `MediaError`."""
    with open_output(path, source=source) as temporary:
        try:
            yield temporary
        except av.error.FFmpegError as error:
            raise MediaError(path, f"cannot be written: {error.strerror or error}") from error


@contextmanager
def keep_scheduling() -> Iterator[None]:
    """Restore the scheduling policy of the calling thread after the block.

    If permitted (as root), SVT-AV1 turns the thread that opens an encoder into a real-time thread. All threads and
    processes started later would inherit this, and two of them waiting for a third would keep it from running.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield
        return
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, priority)


@contextmanager
def _open_container(partial: Path, path: PathLike) -> Iterator[OutputContainer]:
    try:
        container = av.open(f"file:{partial}", "w")
    except ValueError as error:  # from PyAV, if no format has this extension
        raise MediaError(path, f"{partial.suffix!r} is not the extension of a video format") from error
    with container:
        yield container


def _encode(
    container: OutputContainer,
    stream: VideoStream,
    frames: Iterator[Image],
    times: Iterator[float] | None,
    unit: Fraction,
) -> int:
    stream.codec_context.time_base = unit
    shape: tuple[int, ...] | None = None
    count = 0
    last = -1
    for image in frames:
        if shape is None:
            shape = image.shape
            # Round up to even numbers if the format stores color for pairs of pixels.
            chroma = av.VideoFormat(str(stream.pix_fmt), 64, 64).components[-1]
            stream.height, stream.width = (
                shape[0] + shape[0] % 2 * (chroma.height != 64),
                shape[1] + shape[1] % 2 * (chroma.width != 64),
            )
            convert = _make_color_converter(stream)
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise InvalidArgumentError(f"frames must be [H, W, 3] uint8, got {list(image.shape)} {image.dtype}")
        if image.shape != shape:
            raise InvalidArgumentError(
                f"frames must all have the size of the first, {list(shape)}, got {list(image.shape)}"
            )
        bottom, right = stream.height - shape[0], stream.width - shape[1]
        if bottom or right:
            image = np.pad(image, ((0, bottom), (0, right), (0, 0)), mode="edge")
        picture = convert(av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24"))
        picture.time_base = unit
        picture.pts = count if times is None else round(next(times, -1.0) / unit)
        if picture.pts <= last:
            raise InvalidArgumentError(
                f"times must be one per frame, at least 0 s and increasing, got {picture.pts * unit} for frame {count}"
            )
        last = picture.pts
        with keep_scheduling():
            container.mux(stream.encode(picture))
        count += 1
    if not count:
        raise InvalidArgumentError("frames must not be empty")
    container.mux(stream.encode(None))
    return count


def _make_color_converter(stream: VideoStream) -> Callable[[av.VideoFrame], av.VideoFrame]:
    """Return a function that converts to the stored format with the usual color matrix for the size, which is also set
    in the stream."""
    context, name = stream.codec_context, str(stream.pix_fmt)
    if not name.startswith("yuv"):
        return lambda frame: frame
    high = is_high_definition(stream.width, stream.height)
    full = name.startswith("yuvj")
    # Codes from ITU-T H.273: BT.709, or SMPTE 170M.
    context.colorspace = 1 if high else 6
    context.color_primaries = context.color_trc = 1 if high else 6
    context.color_range = int(ColorRange.JPEG if full else ColorRange.MPEG)
    scaler = VideoReformatter()
    return lambda frame: scaler.reformat(
        frame,
        format=name,
        dst_colorspace=Colorspace.ITU709 if high else Colorspace.ITU601,
        dst_color_range=ColorRange.JPEG if full else ColorRange.MPEG,
        threads=1,
    )
