"""Compose videos from real takes with one transition of known extent and kind."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin.errors import InvalidArgumentError
from vidkin.shots import Transition

__all__ = ["TRANSITION_FAMILIES", "MadeTransition", "TakeReader", "TransitionFamily", "make_transition"]

Pictures = NDArray[np.uint8]
"""[T, H, W, 3] RGB."""

PathLike = str | os.PathLike[str]

HEIGHT, WIDTH = 180, 320

# Maximum number of frames of a take, and minimum and maximum frames of each shot outside the transition.
_LONGEST, _WHOLE = 320, (14, 40)
_MIN_TAKE = 50

# Number of frames of a camera move over a photograph.
_MOVED = 160


@dataclass(frozen=True, slots=True)
class TransitionFamily:
    """A family of composed transitions.

    Attributes:
        kind: The kind that a detector should report.
        seconds: Minimum and maximum length in seconds; (0, 0) for an abrupt change.
        looks: Transitions of FFmpeg's ``xfade`` filter to sample from; empty for families composed here.
        same: Whether both shots come from the same take.
        held_back: Whether the family is held out from detector development, to measure generalization.
    """

    kind: Transition
    seconds: tuple[float, float]
    looks: tuple[str, ...] = ()
    same: bool = False
    held_back: bool = False


_SHORT, _MIDDLE = (0.3, 1.0), (0.4, 1.6)

TRANSITION_FAMILIES: dict[str, TransitionFamily] = {
    "hard": TransitionFamily("hard", (0, 0)),
    "jump": TransitionFamily("jump", (0, 0), same=True),
    "dissolve": TransitionFamily("dissolve", _SHORT, ("fade",)),
    "dissolve of 2 s": TransitionFamily("dissolve", (2.0, 2.0), ("fade",)),
    "long dissolve": TransitionFamily("dissolve", (1.5, 4.0), ("fade",)),
    "similar dissolve": TransitionFamily("dissolve", (0.8, 2.5), ("fade",), same=True),
    "fade through black": TransitionFamily("fade", (0.6, 2.5)),
    "fade through white": TransitionFamily("fade", (0.6, 2.0)),
    "fade in": TransitionFamily("fade", (0.4, 2.0)),
    "fade out": TransitionFamily("fade", (0.4, 2.0)),
    "wipe": TransitionFamily("wipe", _MIDDLE, ("wipeleft", "wiperight", "wipedown", "wipebl")),
    "smooth wipe": TransitionFamily("wipe", _MIDDLE, ("smoothleft", "smoothright")),
    "circle": TransitionFamily("wipe", _MIDDLE, ("circleopen",)),
    "slide": TransitionFamily("wipe", _MIDDLE, ("slideleft", "slidedown")),
    "split": TransitionFamily("wipe", _MIDDLE, ("horzopen", "vertclose")),
    "diagonal": TransitionFamily("wipe", _MIDDLE, ("diagtl", "diagbr")),
    "cover": TransitionFamily("wipe", _MIDDLE, ("coverleft", "squeezeh")),
    "slices": TransitionFamily("wipe", _MIDDLE, ("hlslice",)),
    "wipe from other sides": TransitionFamily("wipe", _MIDDLE, ("wipeup", "wipetl", "wipebr"), held_back=True),
    "smooth wipe up and down": TransitionFamily("wipe", _MIDDLE, ("smoothup", "smoothdown"), held_back=True),
    "iris": TransitionFamily("wipe", _MIDDLE, ("circleclose", "circlecrop", "rectcrop"), held_back=True),
    "push": TransitionFamily("wipe", _MIDDLE, ("slideup", "slideright", "revealright"), held_back=True),
    "doors": TransitionFamily("wipe", _MIDDLE, ("vertopen", "horzclose"), held_back=True),
    "clock": TransitionFamily("wipe", _MIDDLE, ("radial",), held_back=True),
    "zoom": TransitionFamily("wipe", _MIDDLE, ("zoomin",), held_back=True),
    "pixels": TransitionFamily("dissolve", _MIDDLE, ("dissolve", "pixelize"), held_back=True),
    "soft dissolve": TransitionFamily("dissolve", _MIDDLE, ("hblur", "distance"), held_back=True),
    "fade of FFmpeg": TransitionFamily("fade", (0.8, 2.0), ("fadeblack", "fadewhite"), held_back=True),
}
"""All families, in table order."""


@dataclass(frozen=True, slots=True, eq=False)
class MadeTransition:
    """A video with one transition.

    Attributes:
        family: Family in `TRANSITION_FAMILIES`.
        kind: Kind of the transition.
        pictures: [T, 180, 320, 3] RGB.
        start, end: First and last frame of the transition; for a cut, both are the first frame of the new shot.
        look: Details of how it was composed.
    """

    family: str
    kind: Transition
    pictures: Pictures
    start: int
    end: int
    look: str


class TakeReader:
    """Reads takes at 180 x 320: single-shot videos, and photographs over which a camera moves slowly.

    Args:
        paths: Videos and photographs; takes with too few frames are skipped when sampled.
    """

    def __init__(self, paths: Sequence[PathLike]) -> None:
        if not paths:
            raise InvalidArgumentError("paths must contain at least one take, got none")
        self._paths = [os.fspath(path) for path in paths]

    def draw(self, random: np.random.Generator, *, fewest: int = _MIN_TAKE, exclude: str = "") -> tuple[str, Pictures]:
        """Sample a take; return its name and its frames.

        Raises:
            InvalidArgumentError: No take has enough frames.
        """
        for number in random.permutation(len(self._paths)):
            path = self._paths[number]
            if path != exclude and len(taken := read_take(path)) >= fewest:
                return path, taken
        raise InvalidArgumentError(f"at least one take must have {fewest} frames, got none")


@lru_cache(64)
def read_take(path: str) -> Pictures:
    """Read up to 320 frames of a video at 180 x 320, or render 160 frames of a camera move over a photograph."""
    if Path(path).suffix.lower() in IMAGE_EXTENSIONS:
        return _move_over(path)
    taken: list[NDArray[Any]] = []
    with av.open(path) as container:
        for frame in container.decode(video=0):
            taken.append(frame.reformat(width=WIDTH, height=HEIGHT).to_ndarray(format="rgb24"))
            if len(taken) == _LONGEST:
                break
    return np.stack(taken) if taken else np.zeros((0, HEIGHT, WIDTH, 3), np.uint8)


def _move_over(path: str) -> Pictures:
    random = np.random.default_rng(zlib.crc32(Path(path).name.encode()))
    with Image.open(path) as photograph:
        picture = photograph.convert("RGB")
        width, height = picture.size
        side = min(width / WIDTH, height / HEIGHT)
        zoom = _random_path(random, 0.6, 0.95)
        down, across = (_random_path(random, 0.2, 0.8) for _ in range(2))
        frames = []
        for share, row, column in zip(zoom, down, across, strict=True):
            wide, tall = side * WIDTH * share, side * HEIGHT * share
            left, top = (width - wide) * column, (height - tall) * row
            box = (left, top, left + wide, top + tall)
            frames.append(np.asarray(picture.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR, box=box)))
    return np.stack(frames)


def _random_path(random: np.random.Generator, least: float, most: float) -> NDArray[np.float64]:
    first, last = random.uniform(least, most, 2).tolist()
    return np.linspace(first, last, _MOVED)


def make_transition(takes: TakeReader, family: str, *, seed: int, rate: float = 25.0) -> MadeTransition:
    """Compose a video with one transition; the same seed gives the same video.

    Args:
        takes: Takes to compose from.
        family: One of `TRANSITION_FAMILIES`.
        seed: Random seed.
        rate: Frames per second, to convert seconds to frames.
    """
    random = np.random.default_rng(seed)
    entry = TRANSITION_FAMILIES[family]
    span = max(2, round(float(random.uniform(*entry.seconds)) * rate)) if entry.seconds[1] else 0
    before, after = (int(random.integers(*_WHOLE)) for _ in range(2))
    if entry.kind == "jump":
        return _jump(takes, random, family, before, after, round(2 * rate))
    if family in ("fade in", "fade out"):
        return _fade_at_end(takes, random, family, span, before + after)
    name, taken = takes.draw(random, fewest=min(_LONGEST, before + span + _MIN_TAKE))
    start = int(random.integers(0, len(taken) - before - span + 1))
    one = taken[start : start + before + span]
    if entry.same:
        # The same take at another time and slightly closer, like a second take with the same camera.
        other = _zoom(taken[::-1][: span + after], float(random.uniform(0.75, 0.95)))
    else:
        _, taken = takes.draw(random, fewest=min(_LONGEST, span + after), exclude=name)
        first = int(random.integers(0, max(1, len(taken) - span - after + 1)))
        other = taken[first : first + span + after]
    after = len(other) - span
    if entry.kind == "hard":
        return MadeTransition(family, "hard", np.concatenate([one, other]), before, before, "cut")
    if not entry.looks:
        return _fade_through(family, one, other, before, span, 0 if "black" in family else 255, random)
    look = str(random.choice(entry.looks))
    mixed = cross(one[before:], other[:span], look, rate)
    first, last = _visible_range(mixed, one[before:], other[:span])
    pictures = np.concatenate([one[:before], mixed, other[span:]])
    return MadeTransition(family, entry.kind, pictures, before + first, before + last, look)


def cross(one: Pictures, other: Pictures, look: str, rate: float) -> Pictures:
    """Apply a transition of FFmpeg's ``xfade`` filter over all frames of two clips of the same length."""
    base = Fraction(1, 1000)
    step = round(1000 / rate)
    graph = av.filter.Graph()
    settings = f"video_size={WIDTH}x{HEIGHT}:pix_fmt=gbrp:time_base=1/1000:frame_rate=1000/{step}:pixel_aspect=1/1"
    inputs = [graph.add("buffer", settings) for _ in range(2)]
    fade = graph.add("xfade", f"transition={look}:duration={len(one) * step / 1000}:offset=0")
    sink = graph.add("buffersink")
    for number, buffer in enumerate(inputs):
        buffer.link_to(fade, 0, number)
    fade.link_to(sink)
    graph.configure()
    for number, pair in enumerate(zip(one, other, strict=True)):
        for buffer, picture in zip(inputs, pair, strict=True):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="gbrp")
            frame.pts, frame.time_base = number * step, base
            buffer.push(frame)
    for buffer in inputs:
        buffer.push(None)
    mixed: list[NDArray[Any]] = []
    while len(mixed) < len(one):
        try:
            mixed.append(cast("av.VideoFrame", sink.pull()).to_ndarray(format="gbrp"))
        except (av.error.EOFError, av.error.BlockingIOError):
            break
    # The filter ends one frame early if the times do not divide evenly.
    return np.concatenate([np.stack(mixed), other[len(mixed) :]])


def _visible_range(mixed: Pictures, one: Pictures, other: Pictures) -> tuple[int, int]:
    """Return the first and last frame that differ from both shots by more than a hundredth of their difference.

    Some FFmpeg transitions begin and end with frames of only one shot: a circle opens for two thirds of the duration.
    """
    rows = [[np.abs(a.astype(np.int16) - b).mean() for a, b in zip(mixed, shot, strict=True)] for shot in (one, other)]
    apart = [np.abs(a.astype(np.int16) - b).mean() for a, b in zip(one, other, strict=True)]
    inside = np.flatnonzero((np.array(rows) > np.maximum(0.01 * np.array(apart), 0.05)).all(0))
    return (int(inside[0]), int(inside[-1])) if len(inside) else (1, len(mixed) - 1)


def blend(one: Pictures, other: Pictures | NDArray[np.float32], course: Iterable[float]) -> Pictures:
    """Return ``one * (1 - part) + other * part``, with one ``part`` per frame."""
    parts = np.array(list(course), np.float32)[:, None, None, None]
    mixed = one.astype(np.float32) * (1 - parts) + np.asarray(other, np.float32) * parts
    return (mixed + 0.5).clip(0, 255).astype(np.uint8)


def _zoom(taken: Pictures, share: float) -> Pictures:
    rows, columns = ((np.arange(side) * share + side * (1 - share) / 2).astype(int) for side in (HEIGHT, WIDTH))
    return np.ascontiguousarray(taken[:, rows[:, None], columns[None]])


def _jump(
    takes: TakeReader, random: np.random.Generator, family: str, before: int, after: int, left_out: int
) -> MadeTransition:
    """Create a jump cut that skips up to two seconds of a take."""
    _, taken = takes.draw(random, fewest=_MIN_TAKE)
    left_out = min(left_out, len(taken) - 28)
    room = len(taken) - left_out
    before = min(before, room // 2)
    after = min(after, room - before)
    start = int(random.integers(0, room - before - after + 1))
    pictures = np.concatenate([taken[start : start + before], taken[start + before + left_out :][:after]])
    return MadeTransition(family, "jump", pictures, before, before, f"{left_out} frames")


def _fade_at_end(takes: TakeReader, random: np.random.Generator, family: str, span: int, whole: int) -> MadeTransition:
    """Fade in from black at the start, or out to black at the end, with a few black frames."""
    _, taken = takes.draw(random, fewest=_MIN_TAKE)
    span = min(span, len(taken) - 20)
    taken = taken[: span + whole]
    hold = int(random.integers(1, 10))
    black = np.zeros((hold, HEIGHT, WIDTH, 3), np.uint8)
    course = (np.arange(span) + 1) / (span + 1)
    ground = np.zeros((1, 1, 1, 3), np.float32)
    if family == "fade in":
        pictures = np.concatenate([black, blend(taken[:span], ground, 1 - course), taken[span:]])
        return MadeTransition(family, "fade", pictures, 0, hold + span - 1, "from black")
    faded = blend(taken[-span:], ground, course)
    pictures = np.concatenate([taken[:-span], faded, black])
    return MadeTransition(family, "fade", pictures, len(taken) - span, len(pictures) - 1, "to black")


def _fade_through(
    family: str, one: Pictures, other: Pictures, before: int, span: int, level: int, random: np.random.Generator
) -> MadeTransition:
    """Fade out to a plain background, hold for a moment, and fade back in."""
    hold = int(random.integers(0, 9))
    out = max(3, int(span * random.uniform(0.35, 0.65)))
    into = max(3, span - out)
    ground = np.full((1, 1, 1, 3), level, np.float32)
    parts = [
        one[:before],
        blend(one[before : before + out], ground, (np.arange(out) + 1) / (out + 1)),
        np.full((hold + 1, HEIGHT, WIDTH, 3), level, np.uint8),
        blend(other[:into], ground, 1 - (np.arange(into) + 1) / (into + 1)),
        other[into:],
    ]
    end = before + len(parts[1]) + len(parts[2]) + len(parts[3]) - 1
    return MadeTransition(family, "fade", np.concatenate(parts), before, end, f"through {level}")
