"""Handwritten detections, and a real video with known cuts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from tests.support.videos import encode, pan
from vidkin.shots import Curve, Cut, Shot, ShotDetection

CUTS = (20, 45)
FRAMES = 60


def cut_video(path: Path, *, rate: Fraction | int = 10, seed: int = 0) -> Path:
    """Write 60 frames: coffee up to 20, rocket up to 45, then chelsea, with a key frame every 5 frames."""
    images = [*pan("coffee", 20, seed=seed), *pan("rocket", 25, seed=seed), *pan("chelsea", 15, seed=seed)]
    return encode(path, images, rate=rate, options={"x264-params": "keyint=5:min-keyint=5:scenecut=0"})


def detection(path: str | Path = "film.mp4", *, rate: float = 10.0, critical: bool = True) -> ShotDetection:
    """An ideal detection for `cut_video`, with the second cut as a dissolve over frames 43 to 47."""
    times = np.arange(FRAMES) / rate
    values = np.zeros(FRAMES)
    values[20], values[43:48] = 0.9, [0.2, 0.3, 0.5, 0.3, 0.2]
    return ShotDetection(
        path=str(path),
        detector="by hand",
        cuts=(
            Cut(
                time=20 / rate,
                frame=20,
                kind="hard",
                confidence=0.9,
                start=20 / rate,
                end=20 / rate,
                start_frame=20,
                end_frame=20,
            ),
            Cut(
                time=45 / rate,
                frame=45,
                kind="gradual",
                confidence=0.6,
                start=43 / rate,
                end=47 / rate,
                start_frame=43,
                end_frame=47,
            ),
        ),
        shots=(
            _shot(0, 20, rate, "start", 1.0, 0.1 if critical else None),
            _shot(20, 45, rate, "hard", 0.9, 0.8 if critical else None),
            _shot(45, 60, rate, "gradual", 0.6, 0.0 if critical else None),
        ),
        curve=Curve(times[1:], values[1:], "novelty"),
        frame_times=times,
    )


def _shot(first: int, last: int, rate: float, kind: str, confidence: float, critical: float | None) -> Shot:
    return Shot(
        start=first / rate,
        end=last / rate,
        start_frame=first,
        end_frame=last,
        kind=kind,  # type: ignore[arg-type]
        confidence=confidence,
        # The dissolve covers frames 43 to 47.
        transition_start=first / rate if kind != "gradual" else 43 / rate,
        transition_end=first / rate if kind != "gradual" else 47 / rate,
        critical=critical,
    )
