"""Encoded test videos: moving crops of photographs, and plain test frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from vidkin.media import keep_scheduling

Image = NDArray[np.uint8]


@cache
def photograph(name: str) -> Image:
    """A photograph from scikit-image: astronaut, coffee, chelsea, rocket, brick, gravel, grass..."""
    from skimage import data, transform

    image = np.asarray(getattr(data, name)())
    if image.ndim == 2:
        image = np.stack([image] * 3, axis=-1)
    image = image[..., :3]
    if min(image.shape[:2]) < 300:
        scale = 300 / min(image.shape[:2])
        shape = (round(image.shape[0] * scale), round(image.shape[1] * scale))
        image = (transform.resize(image, shape, anti_aliasing=True) * 255).astype(np.uint8)
    return image


def pan(name: str, count: int, *, width: int = 192, height: int = 128, seed: int = 0) -> Iterator[Image]:
    """Frames [H, W, 3] of a camera that moves over a photograph and zooms; each seed gives a different path."""
    show = _pan_frame if width * height <= _CACHED_AREA else _pan_frame.__wrapped__
    for index in range(count):
        yield show(name, index, width, height, seed)


# Number of pixels up to which a frame is cached for other tests; at most 150 MB in total.
_CACHED_AREA = 192 * 128


@lru_cache(maxsize=2048)
def _pan_frame(name: str, index: int, width: int, height: int, seed: int) -> Image:
    """Frame ``index`` of a pan, as a read-only array."""
    from PIL.Image import Resampling

    source, phase, turns = _camera(name, seed)
    t = index / 50
    zoom = 0.55 + 0.25 * np.sin(turns[0] * t + phase[0])
    box_h = min(source.height, source.width * height / width) * zoom
    box_w = box_h * width / height
    x = (source.width - box_w) * (0.5 + 0.5 * np.sin(turns[1] * t + phase[1]))
    y = (source.height - box_h) * (0.5 + 0.5 * np.sin(turns[2] * t + phase[2]))
    box = (x, y, x + box_w, y + box_h)
    return np.asarray(source.resize((width, height), Resampling.BILINEAR, box=box))


@cache
def _camera(name: str, seed: int) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
    """A photograph and the path of the camera over it: four phases and three speeds."""
    from PIL import Image as PILImage

    generator = np.random.default_rng([seed, len(name), *name.encode()])
    phase = generator.uniform(0, 2 * np.pi, 4)
    return PILImage.fromarray(photograph(name)), phase, generator.uniform(0.5, 1.5, 3)


# With two threads, libvpx busy-waits for the other one.
QUICK = {
    "libx264": {"preset": "veryfast", "threads": "1"},
    "libvpx": {"deadline": "good", "cpu-used": "4", "threads": "1"},
}


def encode(
    path: Path,
    frames: Iterable[Image],
    *,
    rate: Fraction | int = 10,
    codec: str = "libx264",
    pixel_format: str = "yuv420p",
    options: dict[str, str] | None = None,
    times: Iterable[float] | None = None,
) -> Path:
    """Encode frames to a real file; with ``times`` (seconds), the file has a variable frame rate.

    Codecs of :data:`QUICK` use a single thread and fast settings unless ``options`` overrides them: this takes a
    quarter of
    the time, and the file does not depend on the number of CPUs.
    """
    with av.open(str(path), "w") as container:
        stream = None
        clock = iter(times) if times is not None else None
        for index, frame in enumerate(frames):
            if stream is None:
                quick = QUICK.get(codec, {})
                stream = container.add_stream(codec, rate=Fraction(rate), options={**quick, **(options or {})})
                stream.height, stream.width = frame.shape[:2]
                stream.pix_fmt = pixel_format
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
            if clock is not None:
                picture.time_base = Fraction(1, 90000)
                picture.pts = round(next(clock) * 90000)
            else:
                picture.time_base = 1 / Fraction(rate)
                picture.pts = index
            with keep_scheduling():
                container.mux(stream.encode(picture))
        assert stream is not None, "a video needs at least one frame"
        container.mux(stream.encode())
    return path


def broken_off(source: Path, target: Path, share: float = 0.5) -> Path:
    """Truncate an mp4 with a leading index to the first ``share`` of its bytes, like an interrupted download."""
    with av.open(str(source)) as given, av.open(str(target), "w", options={"movflags": "faststart"}) as front:
        stream = front.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                front.mux(packet)
    content = target.read_bytes()
    target.write_bytes(content[: int(len(content) * share)])
    return target


def encode_with_sound(path: Path, frames: int, options: dict[str, str]) -> Path:
    """Encode ten frames per second as H.264, with a tone."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=10, options={**QUICK["libx264"], **options})
        video.width, video.height, video.pix_fmt = 96, 64, "yuv420p"
        sound = container.add_stream("aac", rate=16000, layout="mono")
        for index, image in enumerate(pan("coffee", frames, width=96, height=64)):
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            picture.pts, picture.time_base = index, Fraction(1, 10)
            container.mux(video.encode(picture))
            wave = np.sin(np.arange(index * 1600, (index + 1) * 1600) / 8).astype(np.float32) / 4
            samples = av.AudioFrame.from_ndarray(wave[None], format="fltp", layout="mono")
            samples.sample_rate, samples.pts, samples.time_base = 16000, index * 1600, Fraction(1, 16000)
            container.mux(sound.encode(samples))
        container.mux(video.encode())
        container.mux(sound.encode())
    return path
