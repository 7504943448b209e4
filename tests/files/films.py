"""Synthetic films for proofs: moving shots of photographs, and typical edits of copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFont

from tests.support.videos import encode, pan
from vidkin.files import Finding
from vidkin.files.picture_proof import PictureProof, prove_picture
from vidkin.files.small_frames import REMOVED_RATE, SmallFrames
from vidkin.similarity import Segment

Image = NDArray[np.uint8]
RATE = 10
FILM_SECONDS = 5.0
WIDTH, HEIGHT = 320, 180
PHOTOGRAPHS = ("astronaut", "coffee", "chelsea", "rocket")


def film(seconds: float, *, seed: int = 0, rate: int = RATE, width: int = WIDTH, height: int = HEIGHT) -> list[Image]:
    """Generate moving shots of two and a half seconds; each seed gives a different film."""
    frames: list[Image] = []
    count = round(seconds * rate)
    while len(frames) < count:
        number = len(frames) // round(2.5 * rate)
        shot = pan(
            PHOTOGRAPHS[(number + seed) % len(PHOTOGRAPHS)],
            round(2.5 * rate),
            width=width,
            height=height,
            seed=100 * seed + number,
        )
        frames += shot
    return frames[:count]


def scale(frames: Iterable[Image], width: int, height: int) -> list[Image]:
    size = width, height
    return [np.asarray(PILImage.fromarray(frame).resize(size, PILImage.Resampling.BICUBIC)) for frame in frames]


def draw_text(frames: Sequence[Image], text: str, *, size: float, at: tuple[float, float] = (0.5, 0.9)) -> list[Image]:
    """Draw white text with a black outline; its height and center are fractions of the frame size."""
    font = ImageFont.load_default(size=size * len(frames[0]))
    result = []
    for frame in frames:
        image = PILImage.fromarray(frame)
        alignment = at[0] * image.width, at[1] * image.height
        ImageDraw.Draw(image).text(
            alignment, text, fill="white", font=font, anchor="mm", stroke_width=1, stroke_fill="black"
        )
        result.append(np.asarray(image))
    return result


def to_gray(frames: Iterable[Image]) -> list[Image]:
    return [np.repeat((frame @ (0.299, 0.587, 0.114)).astype(np.uint8)[..., None], 3, axis=-1) for frame in frames]


def add_bars(frames: Iterable[Image], *, down: int = 0, across: int = 0) -> list[Image]:
    """Add black bars of these widths in pixels on opposite sides."""
    return [np.pad(frame, ((down, down), (across, across), (0, 0))) for frame in frames]


def segment(length: float, offset: float = 0.0, *, start: float = 0.0, **more: object) -> Segment:
    """Match ``length`` seconds of the removed file from ``start`` on to the kept file, ``offset`` seconds later."""
    speed = float(more.get("speed", 1.0))  # type: ignore[arg-type]
    begin = offset + speed * start
    return Segment(start, start + length, begin, begin + speed * length, 0.9, **more)  # type: ignore[arg-type]


def write(path: Path, frames: Sequence[Image], crf: int = 26, **more: object) -> Path:
    return encode(path, frames, options={"crf": str(crf)}, **{"rate": RATE, **more})  # type: ignore[arg-type]


def compare(kept: Path, removed: Path, segments: Sequence[Segment]) -> PictureProof:
    frames = SmallFrames(kept, threads=1), SmallFrames(removed, rate=REMOVED_RATE, threads=1)
    try:
        return prove_picture(*frames, segments)
    finally:
        for one in frames:
            one.close()


def summarize(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{finding.kind}: {finding.text}" for finding in findings)
