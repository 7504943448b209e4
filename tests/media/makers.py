"""Small real files for tests, and a slow but obvious reference implementation of the sampling reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.stream import VideoStream
from numpy.typing import NDArray

from vidkin.media import Converter, Orienter, keep_scheduling
from vidkin.media.convert import clean_aspect

Image = NDArray[np.uint8]

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def quarters(width: int = 96, height: int = 64) -> Image:
    """A frame with red and green quarters at the top, blue and white at the bottom."""
    image = np.zeros((height, width, 3), dtype=np.uint8)
    h, w = height // 2, width // 2
    image[:h, :w], image[:h, w:], image[h:, :w], image[h:, w:] = RED, GREEN, BLUE, WHITE
    return image


def corners(image: Image) -> list[list[int]]:
    """Colors at the centers of the four quarters, rounded to multiples of 51: 0, 51, ..., 255."""
    h, w = image.shape[:2]
    places = [(h // 4, w // 4), (h // 4, 3 * w // 4), (3 * h // 4, w // 4), (3 * h // 4, 3 * w // 4)]
    return [(np.rint(image[y, x] / 51) * 51).astype(int).tolist() for y, x in places]


def flat(level: int, width: int = 64, height: int = 48) -> Image:
    return np.full((height, width, 3), level, dtype=np.uint8)


def encode_with(
    path: Path,
    images: Iterable[Image],
    *,
    rate: int = 10,
    codec: str = "libx264",
    pixel_format: str = "yuv420p",
    options: dict[str, str] | None = None,
    stream_setup: Callable[[VideoStream], None] | None = None,
    frame_setup: Callable[[av.VideoFrame], av.VideoFrame] = lambda frame: frame,
    first: int = 0,
) -> Path:
    """Encode like tests.support.videos.encode, with hooks for the stream and every frame, and with a start time."""
    with av.open(str(path), "w") as container:
        stream: VideoStream | None = None
        for index, image in enumerate(images):
            if stream is None:
                stream = container.add_stream(codec, rate=rate, options={"threads": "1", **(options or {})})
                stream.height, stream.width = image.shape[:2]
                stream.pix_fmt = pixel_format
                if stream_setup is not None:
                    stream_setup(stream)
            frame = frame_setup(av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24"))
            frame.pts = first + index
            frame.time_base = Fraction(1, rate)
            with keep_scheduling():
                container.mux(stream.encode(frame))
        assert stream is not None
        container.mux(stream.encode())
    return path


def decode_all(path: Path) -> tuple[list[float], list[av.VideoFrame], Fraction]:
    """Decode every frame in one thread; return the frames, their times from the first one, and the pixel aspect."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        frames = list(container.decode(stream))
        tick = float(stream.time_base)
        aspect = clean_aspect(stream.sample_aspect_ratio)
    base = frames[0].pts
    return [(frame.pts - base) * tick for frame in frames], frames, aspect


def naive_sample(path: Path, rate: float, start: float, end: float | None) -> tuple[list[float], list[Image]]:
    """Slow reference for `read_frames`: decode everything, then look up the frame of each sample."""
    times, frames, aspect = decode_all(path)
    video_end = times[-1] + (times[-1] - times[-2] if len(times) > 1 else 1.0)
    chosen: list[int] = []
    index = 0
    while True:
        sample = start + index / rate
        if sample >= video_end - 1e-9 or (end is not None and sample >= end):
            break
        on_screen = max((i for i, time in enumerate(times) if time <= sample + 1e-6), default=0)
        if on_screen not in chosen:
            chosen.append(on_screen)
        index += 1
    convert = Converter(Orienter(str(path), ""), aspect)
    return [times[i] for i in chosen], [convert(frames[i]) for i in chosen]
