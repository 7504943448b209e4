"""Synthetic sounds for tests: tunes of random notes, alone in a file or with frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import repeat
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from tests.support.videos import pan

Samples = NDArray[np.float32]
RATE = 16_000


def tune(seconds: float, *, seed: int, rate: int = RATE) -> Samples:
    """Notes of random pitch and length with overtones and sharp attacks, two at a time, depending on the seed."""
    random = np.random.default_rng(seed)
    samples = np.zeros(round(seconds * rate) + rate, np.float32)
    for _ in range(2):
        at = 0.0
        while at < seconds:
            length, pitch = random.uniform(0.12, 0.5), 220 * 2 ** (random.integers(0, 36) / 12)
            times = np.arange(round(length * rate)) / rate
            note = sum(np.sin(2 * np.pi * pitch * k * times) / k for k in (1, 2, 3) if pitch * k < rate / 2)
            first = round(at * rate)
            samples[first : first + len(times)] += 0.15 * note * np.exp(-4 * times)
            at += length * random.uniform(0.6, 1.0)
    return samples[: round(seconds * rate)]


def noise(seconds: float, *, seed: int, level: float, rate: int = RATE) -> Samples:
    """White noise with this standard deviation."""
    return (level * np.random.default_rng(seed).standard_normal(round(seconds * rate))).astype(np.float32)


def write_sounds(
    path: Path,
    tracks: Sequence[Samples],
    *,
    rate: int = RATE,
    pictures: str | None = None,
    is_still: bool = False,
    codec: str = "aac",
    languages: Iterable[str] = (),
    delay: float = 0.0,
    bit_rate: int = 96_000,
) -> Path:
    """Write sound tracks [S], or [S, 2] for stereo, with or without frames of a photograph.

    The sound may start late.
    """
    with av.open(str(path), "w") as container:
        video = None
        if pictures is not None:
            video = container.add_stream("libx264", rate=10, options={"preset": "ultrafast", "threads": "1"})
            video.width, video.height, video.pix_fmt = 192, 128, "yuv420p"
        layouts = ["mono" if samples.ndim == 1 else "stereo" for samples in tracks]
        streams = [container.add_stream(codec, rate=rate, layout=layout) for layout in layouts]
        for stream, language in zip(streams, languages, strict=False):
            stream.metadata["language"] = language
        for stream in streams:
            stream.bit_rate = bit_rate
        seconds = max((len(samples) / rate for samples in tracks), default=2.0)
        if video is not None:
            moving = pan(pictures or "", 1 if is_still else round(seconds * 10))
            for number, image in enumerate(repeat(next(moving), round(seconds * 10)) if is_still else moving):
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame.pts = number
                frame.time_base = Fraction(1, 10)
                container.mux(video.encode(frame))
            container.mux(video.encode(None))
        for stream, samples, layout in zip(streams, tracks, layouts, strict=True):
            for first in range(0, len(samples), 1024):
                part = np.clip(samples[first : first + 1024], -1, 1)
                form = "s16" if codec.startswith("pcm") else "fltp"
                values = (part * 32767).astype(np.int16) if form == "s16" else part
                planes = values.reshape(1, -1) if form == "s16" else np.ascontiguousarray(np.atleast_2d(values.T))
                sound = av.AudioFrame.from_ndarray(planes, format=form, layout=layout)
                sound.sample_rate, sound.pts = rate, first + round(delay * rate)
                sound.time_base = Fraction(1, rate)
                container.mux(stream.encode(sound))
            container.mux(stream.encode(None))
    return path


SONG_FILES = {"one": (2.0, "rocket"), "two": (5.0, "coffee"), "three": (3.5, "chelsea")}
"""Seconds before the song, and the picture of each file of :func:`write_song_season`."""


def write_song_season(folder: Path) -> None:
    """Write three files that have only a song of eight seconds in common."""
    folder.mkdir(exist_ok=True)
    for number, (name, (before, picture)) in enumerate(SONG_FILES.items()):
        own, first = tune(12, seed=10 + number), round(before * RATE)
        write_sounds(
            folder / f"{name}.mkv", [np.concatenate([own[:first], tune(8, seed=1), own[first:]])], pictures=picture
        )
