"""Takes from a simulated hand-held camera that moves over photographs, clips and plain patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.media import write_video
from vidkin_research.made.transitions import read_take

__all__ = ["restless_takes"]


def restless_takes(
    clips: Sequence[Path], photographs: Sequence[Path], folder: Path, count: int, seed: int, *, pans: bool = False
) -> list[Path]:
    """Create takes from a hand-held camera that moves and rotates over photographs, clips and plain patterns, so that
    both sides of a wipe move. With ``pans``, create only long pans over photographs."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"restless-{seed}-{number:03d}.mp4" for number in range(count)]
    for number, path in enumerate(paths):
        if not path.is_file():
            random = np.random.default_rng((seed, number))
            write_video(
                path,
                list(_move_camera(clips, photographs, random, pans=pans)),
                rate=25.0,
                crf=int(random.integers(18, 30)),
            )
    return paths


def _move_camera(
    clips: Sequence[Path], photographs: Sequence[Path], random: np.random.Generator, *, pans: bool
) -> Iterator[NDArray[np.uint8]]:
    kind = random.random()
    if pans or 0.3 <= kind < 0.65:
        scene = [Image.open(photographs[int(random.integers(len(photographs)))]).convert("RGB")]
    elif kind < 0.3:
        scene = [Image.fromarray(_pattern(random))]
    else:
        scene = list(map(Image.fromarray, read_take(str(clips[int(random.integers(len(clips)))]))))
    count, (wide, tall) = 130 if pans else 220, scene[0].size
    times = np.arange(count)
    turn = np.deg2rad(random.choice([0, 0.3, 1.0, 2.0]) * random.uniform(0.5, 1.0) * random.choice([-1, 1])) * times
    turn = (turn + np.deg2rad(_wave(count, random, 3.0))) * (not pans)
    shares = random.uniform(0.25 if pans else 0.35, 0.7) * np.exp(_wave(count, random, 0.25))
    reach = random.uniform(0.3, 0.9) if pans else random.choice([0.0, 0.1, 0.25])
    shake = random.choice([0, 0.004]) * (not pans)
    down, across = ((0.5 + _wave(count, random, reach) + random.normal(0, shake, count)).clip(0.1, 0.9) for _ in "yx")
    for time, angle, share, row, column in zip(times.tolist(), turn, shares, down, across, strict=True):
        # Play the clip forward and backward in turn.
        position = time % (2 * len(scene) - 1)
        picture = scene[position if position < len(scene) else 2 * len(scene) - 1 - position]
        # Image pixels per pixel of a 320 x 180 frame, which shows about this fraction of the shorter side.
        step = share * min(tall / 180, wide / 320) * 1.2
        cos, sin = step * np.cos(angle), step * np.sin(angle)
        left, top = column * wide - cos * 160 + sin * 90, row * tall - sin * 160 - cos * 90
        view = picture.transform(
            (320, 180), Image.Transform.AFFINE, (cos, -sin, left, sin, cos, top), Image.Resampling.BILINEAR
        )
        yield np.asarray(view)


def _wave(count: int, random: np.random.Generator, reach: float) -> NDArray[np.float64]:
    """Return a smooth hand movement that starts at 0, with about this amplitude."""
    phases, periods = random.uniform(0, 2 * np.pi, 3), random.uniform(20, 260, 3)
    angles = phases[:, None] + np.arange(count) / periods[:, None] * 2 * np.pi
    way = np.sin(angles).sum(0)
    return np.asarray(reach * (way - way[0]) / 3)


def _pattern(random: np.random.Generator) -> NDArray[np.uint8]:
    """Create an image [360, 640, 3] of stripes, rings or a weave in two or three colors."""
    down, across = np.mgrid[:360, :640].astype(float)
    period = random.uniform(18, 90)
    field = {
        "stripes": lambda: (down + 0.4 * across) / period,
        "rings": lambda: np.hypot(down - 180, across - 320) / period,
        "weave": lambda: np.floor(down / period) * 0.5 + across / period + 0.2 * np.sin(down / period * 3),
        "spots": lambda: np.cos(down / period * 6) * np.cos(across / period * 6) * 1.5 + 1.5,
    }[str(random.choice(["stripes", "rings", "weave", "spots"]))]()
    colors = random.integers(0, 256, (int(random.integers(2, 4)), 3)).astype(np.uint8)
    picture: NDArray[np.uint8] = colors[np.floor(field).astype(int) % len(colors)]
    return picture
