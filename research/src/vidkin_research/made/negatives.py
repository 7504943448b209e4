"""Compose takes with events that look like transitions, by family; a detector should report nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from vidkin_research.made.transitions import HEIGHT, WIDTH, Pictures, TakeReader

__all__ = ["NEGATIVE_FAMILIES", "MadeNegative", "make_negative"]

_LENGTH = 130
_EVENTS = (2, 5)

# Number of calm frames at each end.
_CALM = 12


@dataclass(frozen=True, slots=True, eq=False)
class MadeNegative:
    """A single-take video without transitions.

    Attributes:
        family: Family in `NEGATIVE_FAMILIES`.
        pictures: [T, 180, 320, 3] RGB.
        events: Number of events that could be mistaken for a transition.
    """

    family: str
    pictures: Pictures
    events: int


def make_negative(takes: TakeReader, family: str, *, seed: int) -> MadeNegative:
    """Compose a single-take video with events of this family; the same seed gives the same video.

    Args:
        takes: Takes to compose from.
        family: One of `NEGATIVE_FAMILIES`.
        seed: Random seed.
    """
    random = np.random.default_rng(seed)
    name, taken = takes.draw(random, fewest=60)
    start = int(random.integers(0, max(1, len(taken) - _LENGTH)))
    pictures = taken[start : start + _LENGTH].copy()
    other = takes.draw(random, exclude=name)[1]
    events = NEGATIVE_FAMILIES[family](pictures, other, random)
    return MadeNegative(family, pictures, events)


def _moments(pictures: Pictures, random: np.random.Generator, span: int) -> list[int]:
    """Sample the first frames of non-overlapping events with this many frames."""
    count = int(random.integers(*_EVENTS))
    room = (len(pictures) - 2 * _CALM) // count
    if room <= span + 4:
        count, room = 1, len(pictures) - 2 * _CALM
    return [_CALM + room * number + int(random.integers(0, max(1, room - span - 3))) for number in range(count)]


def _light(pictures: Pictures, frame: int, part: float, level: float = 255.0) -> None:
    pictures[frame] = (pictures[frame] * (1 - part) + level * part + 0.5).astype(np.uint8)


def _flash(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    span = int(random.integers(1, 6))
    moments = _moments(pictures, random, span)
    for moment in moments:
        strength = random.uniform(0.6, 1.0)
        for frame in range(span):
            _light(pictures, moment + frame, strength * (1 - 0.15 * frame))
    return len(moments)


def _strobe(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    moments = _moments(pictures, random, 16)
    period, level = int(random.integers(2, 5)), float(random.choice([0, 255]))
    for moment in moments:
        for frame in range(0, 16, period):
            _light(pictures, moment + frame, 0.9, level)
    return len(moments)


def _explosion(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Add light that rises within two frames and decays within a second."""
    moments = _moments(pictures, random, 25)
    down, across = np.mgrid[-1 : 1 : HEIGHT * 1j, -1 : 1 : WIDTH * 1j]
    shape = np.exp(-2 * (down**2 + across**2) * random.uniform(0.2, 1.0))[..., None]
    for moment in moments:
        for step in range(25):
            part = shape * min(1.0, (step + 1) / 2) * np.exp(-step / 7)
            frame = pictures[moment + step]
            frame[:] = frame * (1 - part) + np.array([255, 225, 170]) * part
    return len(moments)


def _lightning(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    moments = _moments(pictures, random, 9)
    for moment in moments:
        for offset in random.choice(9, 4, replace=False):
            _light(pictures, moment + int(offset), random.uniform(0.3, 0.85), 245)
    return len(moments)


def _whip(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Whip the camera over a wide image to another position, with motion blur."""
    wide = np.concatenate([pictures, pictures[:, :, ::-1], pictures[::-1]], 2)
    span = int(random.integers(6, 14))
    moment = int(random.integers(_CALM + 10, len(pictures) - span - _CALM - 10))
    course = ((np.arange(len(pictures)) - moment) / span).clip(0, 1)
    course = (course**2 * (3 - 2 * course)) * 2 * WIDTH * random.uniform(0.6, 1.0)
    speed = np.gradient(course)
    for number, (left, blur) in enumerate(zip(course, speed, strict=True)):
        steps = [int(left + blur * share) for share in np.linspace(-0.25, 0.25, 6)] if blur > 2 else [int(left)]
        views = [wide[number, :, max(0, step) : max(0, step) + WIDTH] for step in steps]
        pictures[number] = np.mean(views, 0)
    return 1


def _passing(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Let an object pass close to the camera and fill the frame for a moment."""
    span = int(random.integers(10, 26))
    moments = _moments(pictures, random, span)
    wide = int(WIDTH * random.uniform(0.5, 1.2))
    thing = np.concatenate([other[0]] * 2, 1)[:, :wide] // 2
    way = 1 if random.random() < 0.5 else -1
    for moment in moments:
        for step in range(span):
            left = int(-wide + (WIDTH + wide) * (step + 1) / (span + 1))
            first, last = max(0, left), min(WIDTH, left + wide)
            pictures[moment + step][:, ::way][:, first:last] = thing[:, first - left : last - left]
    return len(moments)


def _lower_third(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Add a band with lines of text that slides or fades in, holds and leaves."""
    moments = _moments(pictures, random, 30)
    edge = int(random.integers(1, 12))
    band = np.full((HEIGHT // 4, WIDTH, 3), random.integers(0, 255, 3), np.uint8)
    for line in range(2):
        band[8 + 18 * line : 18 + 18 * line, 20 : 20 + int(random.uniform(0.3, 0.8) * WIDTH) : 3] = 255
    slides = random.random() < 0.5
    for moment in moments:
        for step in range(30):
            part = min(1.0, (step + 1) / edge, (30 - step) / edge)
            rows = slice(HEIGHT * 2 // 3, HEIGHT * 2 // 3 + len(band))
            if slides:
                pictures[moment + step, rows, : int(WIDTH * part)] = band[:, : int(WIDTH * part)]
            else:
                frame = pictures[moment + step, rows]
                frame[:] = frame * (1 - part) + band * part
    return len(moments)


def _title(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Add large text that fades in and out, or moves through the frame."""
    moments = _moments(pictures, random, 40)
    letters = np.zeros((HEIGHT, WIDTH), bool)
    for line in range(int(random.integers(1, 4))):
        top = 30 + 45 * line
        letters[top : top + 28, 40:280] = np.repeat(random.random((1, 60)) < 0.6, 4, 1)
    moves = random.random() < 0.5
    for moment in moments:
        for step in range(40):
            part = 1.0 if moves else min(1.0, (step + 1) / 10, (40 - step) / 10)
            area = np.roll(letters, WIDTH - WIDTH * step // 40, 1) if moves else letters
            frame = pictures[moment + step]
            frame[area] = frame[area] * (1 - part) + 240 * part
    return len(moments)


def _screen(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Change the content of a screen within the frame twice."""
    moments = _moments(pictures, random, 8)
    tall, wide = (int(side * random.uniform(0.3, 0.5)) for side in (HEIGHT, WIDTH))
    top, left = int(random.integers(0, HEIGHT - tall)), int(random.integers(0, WIDTH - wide))
    rows, columns = np.linspace(0, HEIGHT - 1, tall).astype(int), np.linspace(0, WIDTH - 1, wide).astype(int)
    for number in range(len(pictures)):
        shown = sum(moment <= number for moment in moments)
        # Three clearly different images: unchanged; mirrored and darker; upside down with other colors.
        small = other[(40 * shown + number) % len(other)][rows[:, None], columns[None]]
        views = (small, small[:, ::-1] // 2, 255 - small[::-1])
        pictures[number, top : top + tall, left : left + wide] = views[shown % 3]
    return len(moments)


def _archive(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Add the scratches, dust, flicker and jitter of old film."""
    for frame in pictures:
        frame[:] = np.roll(frame, random.integers(-3, 4, 2), (0, 1)) * random.uniform(0.8, 1.0)
        for _ in range(int(random.integers(0, 4))):
            frame[:, int(random.integers(0, WIDTH))] = 230
        for _ in range(int(random.integers(0, 6))):
            top, left = random.integers(0, HEIGHT - 12), random.integers(0, WIDTH - 12)
            frame[top : top + int(random.integers(2, 12)), left : left + int(random.integers(2, 12))] = 240
    return len(pictures) // 10


def _pulses(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Lose detail between key frames, and regain it at each key frame."""
    period = int(random.integers(10, 30))
    for number, frame in enumerate(pictures):
        part = 0.9 * (number % period) / period
        # As in encoders, blocks keep their means.
        coarse = frame.reshape(HEIGHT // 10, 10, WIDTH // 10, 10, 3).mean((1, 3)).repeat(10, 0).repeat(10, 1)
        frame[:] = frame * (1 - part) + coarse * part
    return len(pictures) // period


def _repeated(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Freeze on a frame for two to four frames."""
    moments = _moments(pictures, random, 5)
    for moment in moments:
        pictures[moment : moment + int(random.integers(2, 5))] = pictures[moment]
    return len(moments)


def _dropped(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Drop one to three frames per event."""
    moments = _moments(pictures, random, 4)
    numbers = np.arange(len(pictures))
    for moment in moments:
        numbers[moment:] += int(random.integers(1, 4))
    pictures[:] = pictures[numbers.clip(max=len(pictures) - 1)]
    return len(moments)


def _exposure(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Change the exposure over several frames, alternating between brighter and darker."""
    moments = _moments(pictures, random, 20)
    gain = np.zeros(len(pictures))
    for number, moment in enumerate(moments):
        course = ((np.arange(len(pictures)) - moment) / random.integers(3, 16)).clip(0, 1)
        gain += course * random.uniform(0.3, 0.6) * (-1) ** number
    pictures[:] = (pictures * np.exp(gain)[:, None, None, None]).clip(0, 255)
    return len(moments)


def _wander(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Pan and zoom over one image, as films show photographs, maps and textures."""
    picture = Image.fromarray(pictures[0])
    boxes = []
    for _ in range(3):
        wide, tall = np.array([WIDTH, HEIGHT]) * random.uniform(0.25, 0.6)
        left, top = random.uniform(0, 1, 2) * (WIDTH - wide, HEIGHT - tall)
        boxes.append(np.array([left, top, left + wide, top + tall]))
    for frame, part in zip(pictures, np.linspace(0, 1, len(pictures)), strict=True):
        box = (1 - part) ** 2 * boxes[0] + 2 * part * (1 - part) * boxes[1] + part**2 * boxes[2]
        view = picture.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR, box=tuple(box.tolist()))
        frame[:] = np.asarray(view)
    return 1


def _turn(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    """Rotate the camera around its optical axis, up to half a turn in four seconds."""
    turns = np.linspace(0, random.uniform(40, 140) * random.choice([-1, 1]), len(pictures))
    for frame, turn in zip(pictures, turns.tolist(), strict=True):
        # Mirror the image beyond its edges.
        wide = np.pad(frame, ((HEIGHT // 2,) * 2, (WIDTH // 8,) * 2, (0, 0)), "reflect")
        view = np.asarray(Image.fromarray(wide).rotate(turn, Image.Resampling.BILINEAR))
        frame[:] = view[HEIGHT // 2 : -HEIGHT // 2, WIDTH // 8 : -WIDTH // 8]
    return 1


def _do_nothing(pictures: Pictures, other: Pictures, random: np.random.Generator) -> int:
    return 1


NEGATIVE_FAMILIES: dict[str, Callable[[Pictures, Pictures, np.random.Generator], int]] = {
    "flashes of 1 to 5 frames": _flash,
    "strobe": _strobe,
    "explosion": _explosion,
    "lightning": _lightning,
    "camera whip": _whip,
    "passing object": _passing,
    "lower third": _lower_third,
    "title over the picture": _title,
    "screen in the picture": _screen,
    "archive footage": _archive,
    "compression pulses": _pulses,
    "repeated frames": _repeated,
    "dropped frames": _dropped,
    "exposure": _exposure,
    "camera over a picture": _wander,
    "turning camera": _turn,
    "single take": _do_nothing,
}
"""Function for each family, in table order; it modifies the frames and returns the number of events."""
