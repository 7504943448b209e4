"""Encode composed sequences as videos with labels, as a benchmark for shot detectors."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.media import write_video
from vidkin_research.made.footage import Footage
from vidkin_research.made.sequences import compose

__all__ = ["COMPOSED_LABELS", "build_composed", "rgb_pictures"]

PathLike = str | os.PathLike[str]

COMPOSED_LABELS = "labels.json"
"""Name of the label file in the folder."""

# Full-range luma and chroma (as in JPEG) to RGB.
_TO_RGB = np.array([[1.0, 0.0, 1.402], [1.0, -0.344136, -0.714136], [1.0, 1.772, 0.0]], np.float32)


def build_composed(
    folder: PathLike,
    footage: Footage,
    *,
    videos: int = 8,
    frames: int = 600,
    rate: float = 25.0,
    variable: bool = False,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write composed videos (H.264, CRF 18 to 33) and their labels.

    Args:
        folder: Output folder; created if it does not exist. Videos of earlier runs with the same names are replaced.
        footage: Footage to compose the videos from.
        videos: Number of videos.
        frames: Number of frames per video.
        rate: Frames per second.
        variable: Whether the frame rate varies: frames stay on screen for 1/2 to 3/2 of their usual time.
        seed: Random seed; the same seed and footage give the same videos on one machine.
        on_progress: Callback that receives (videos written, total number of videos).

    Returns:
        Path of the JSON label file; it has the keys frames, fps, hard, gradual (start, end) and times for each video
        in ``videos``. Frames are counted from 0; ``times`` are the times of hard cuts in seconds.
    """
    if videos < 1:
        raise InvalidArgumentError(f"videos must be at least 1, got {videos}")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    labels = {}
    for number in range(videos):
        random = np.random.default_rng((seed, number))
        composition = compose(footage, frames, seed=seed * 10_000 + number, degrade=False)
        steps = np.full(frames, 1.0 / rate)
        if variable:
            steps *= random.uniform(0.5, 1.5, frames)
        times = np.concatenate([[0.0], np.cumsum(steps)[:-1]])
        name = f"composed_{number:03d}.mp4"
        write_video(
            target / name,
            rgb_pictures(composition.pictures),
            rate=rate,
            times=times.tolist() if variable else None,
            crf=int(random.integers(18, 34)),
            made_of="composed videos",
        )
        labels[name] = {
            "frames": len(composition),
            "fps": rate,
            "hard": list(composition.hard),
            "gradual": [{"start": first, "end": last} for first, last in composition.gradual],
            "times": [round(float(times[cut]), 6) for cut in composition.hard],
        }
        if on_progress is not None:
            on_progress(number + 1, videos)
    path = target / COMPOSED_LABELS
    path.write_text(json.dumps({"seed": seed, "videos": labels}, indent=1) + "\n", encoding="utf-8")
    return path


def rgb_pictures(pictures: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """Convert luma and chroma [T, 3, H, W] to RGB images [H, W, 3], one at a time."""
    for picture in pictures:
        values = picture.astype(np.float32)
        values[1:] -= 128
        colors = np.einsum("ij,jhw->hwi", _TO_RGB, values)
        yield (colors + 0.5).clip(0, 255).astype(np.uint8)
