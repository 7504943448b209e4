"""Compose highlight videos with critical shots from public recordings of real events.

Three recordings from fixed cameras (intel-iot-devkit/sample-videos, CC BY 4.0) show long calm periods and 22 changes of
activity: a person enters or leaves a room, cars drive through the frame, a hand takes away or puts down bottles.
`ACTIVITIES` lists the start and end of each change to a tenth of a second: where more than 0.2 % of the pixels (at 96
lines and 10 frames per second) change by more than 25 levels out of 255 between two frames, with gaps under 0.55 s
closed. Seven such moments in which a standing person only shifts do not count as changes of activity.

A *critical* shot is a calm period that ends with one change; as in the sources, the event is at the end of the clip. A
*noncritical* shot is a calm period at one of the same locations, or a clip from a hand-held camera that circles and
approaches a toy (mdn/learning-area, CC0): there is motion, but nothing happens. All shots are randomly cropped,
mirrored, relit and slowly panned, and joined by hard cuts; neighbors come from different recordings. In two of five
noncritical shots and one of five critical shots, the camera zooms in, swings, or drifts in exposure at the end of the
shot: these changes are artificial, but the events are real.

The training and test splits share no moment of any recording: recordings are split in time, and the splits have
different people, cars, bottle movements and toys.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.media import read_frames, write_video
from vidkin.media.frames import first_at
from vidkin.shots import ShotAnnotation, VideoAnnotation, write_shot_annotations

__all__ = ["ACTIVITIES", "HIGHLIGHT_PLACES", "Activity", "Part", "build_highlights"]

Part = Literal["train", "test"]
Image = NDArray[np.uint8]

HIGHLIGHT_PLACES: Mapping[str, str] = {
    "room": "one-by-one-person-detection.mp4",
    "road": "car-detection.mp4",
    "bottles": "bottle-detection.mp4",
}
"""The recording of each location."""


@dataclass(frozen=True, slots=True)
class Activity:
    """A change of activity in a recording, in seconds.

    Attributes:
        place: Location, a key of `HIGHLIGHT_PLACES`.
        start: Time of the first motion.
        end: Time at which everything is calm again.
        what: Short description.
    """

    place: str
    start: float
    end: float
    what: str


def _activities(location: str, *moments: tuple[float, float, str]) -> tuple[Activity, ...]:
    return tuple(Activity(location, start, end, what) for start, end, what in moments)


ACTIVITIES = (
    *_activities(
        "room",
        (6.0, 8.4, "enters"),
        (17.8, 20.4, "leaves"),
        (22.7, 25.7, "enters"),
        (42.9, 45.3, "leaves"),
        (50.2, 53.1, "enters"),
        (67.5, 70.5, "leaves"),
        (74.5, 77.4, "enters"),
        (84.5, 87.4, "leaves"),
        (92.1, 95.2, "enters"),
        (117.6, 120.7, "leaves"),
        (123.4, 126.1, "enters"),
        (133.7, 136.7, "leaves"),
    ),
    *_activities("road", (4.4, 8.8, "car"), (14.4, 19.3, "two cars"), (25.2, 27.8, "car")),
    *_activities(
        "bottles",
        (5.7, 7.2, "taken"),
        (11.2, 13.6, "put"),
        (15.9, 18.4, "two taken"),
        (22.0, 24.7, "put"),
        (27.3, 29.2, "put"),
        (30.8, 32.2, "taken"),
        (34.7, 36.9, "put"),
    ),
)
"""The 22 changes of activity in the three recordings."""

# The calm moment at which each recording is split, and its length, in seconds.
_DIVISIONS = {"room": (71.5, 139.0), "road": (11.5, 30.0), "bottles": (20.0, 39.5)}
_TOYS: Mapping[Part, tuple[tuple[str, float], ...]] = {
    "train": (("crystal.mp4", 11.9), ("frog.mp4", 8.2), ("monster.mp4", 7.3)),
    "test": (("elf.mp4", 8.0), ("pig.mp4", 6.5), ("rabbit.mp4", 7.8)),
}
_SIZE = (240, 160)
# Probability of a disturbance in noncritical and critical shots.
_DISTURBANCE_PROBABILITIES = {False: 0.4, True: 0.2}
_CALM_ALONE = (3.0, 6.0)


@dataclass(frozen=True, slots=True)
class _Take:
    """A segment of a file, in seconds, and the start of its critical part."""

    file: Path
    start: float
    end: float
    critical: float | None


def build_highlights(
    recordings: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    part: Part,
    videos: int = 8,
    shots: int = 9,
    seed: int = 0,
    rate: int = 10,
    places: Sequence[str] | None = None,
    calm_before: tuple[float, float] = (1.5, 3.5),
) -> list[VideoAnnotation]:
    """Compose highlight videos and write them and their labels (``labels.json``) to a folder.

    Every video has ``shots`` shots, of which a third (rounded) are critical, a sixth show toys and the rest are calm.
    Changes of activity are dealt in rounds, so that all are equally frequent.

    Args:
        recordings: Folder searched at any depth for the recordings.
        output: Output folder for ``highlights-000.mp4``, ... and ``labels.json``.
        part: Part of the recordings to use.
        videos: Number of videos.
        shots: Number of shots per video, at least 3.
        seed: Random seed. The parts share no footage, even with the same seed.
        rate: Frames per second; the recording of the room has 10.
        places: Locations to use; default: all three.
        calm_before: Minimum and maximum length of calm before a change in seconds; shorter if the recording has less.

    Returns:
        The labels, as from `read_shot_annotations`.

    Raises:
        InvalidArgumentError: A recording is missing, or an argument is not allowed.
        MediaError: A recording cannot be read.
    """
    if part not in ("train", "test"):
        raise InvalidArgumentError(f"part must be 'train' or 'test', got {part!r}")
    chosen = tuple(HIGHLIGHT_PLACES) if places is None else tuple(places)
    if not chosen or not set(chosen) <= set(HIGHLIGHT_PLACES):
        raise InvalidArgumentError(f"places must be among {', '.join(HIGHLIGHT_PLACES)}, got {list(chosen)}")
    if videos < 1 or shots < 3 or rate < 1:
        raise InvalidArgumentError(
            f"videos, shots and rate must be at least 1, 3 and 1, got {videos}, {shots} and {rate}"
        )
    if not 0 < calm_before[0] <= calm_before[1]:
        raise InvalidArgumentError(f"calm_before must be two positive times in increasing order, got {calm_before}")
    names = [HIGHLIGHT_PLACES[location] for location in chosen] + [name for name, _ in _TOYS[part]]
    source = Path(recordings)
    present = {path.name: path for path in sorted(source.rglob("*.mp4"))}
    missing = [name for name in names if name not in present]
    if missing:
        raise InvalidArgumentError(
            f"{source}: missing {', '.join(missing)}; get the recordings from intel-iot-devkit/sample-videos and "
            "mdn/learning-area on GitHub and put them into this folder or a subfolder"
        )
    files = {name: present[name] for name in names}
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng([seed, part == "test"])
    deck = _ActivityDeck([a for a in ACTIVITIES if a.place in chosen and _inside(a, part)], generator)
    annotations = []
    for number in range(videos):
        takes = _takes(deck, files, part, shots, chosen, calm_before, generator)
        path = folder / f"highlights-{number:03d}.mp4"
        annotations.append(_write(path, takes, rate, generator))
    write_shot_annotations(folder / "labels.json", annotations)
    return annotations


class _ActivityDeck:
    """Deals changes of activity in shuffled rounds."""

    def __init__(self, cards: Sequence[Activity], generator: np.random.Generator) -> None:
        self._cards, self._generator = list(cards), generator
        self._left: list[Activity] = []

    def deal(self) -> Activity:
        if not self._left:
            self._left = [self._cards[n] for n in self._generator.permutation(len(self._cards))]
        return self._left.pop()


def _inside(activity: Activity, part: Part) -> bool:
    return (activity.start < _DIVISIONS[activity.place][0]) == (part == "train")


def _bounds(location: str, part: Part) -> tuple[float, float]:
    middle, end = _DIVISIONS[location]
    return (0.0, middle) if part == "train" else (middle, end)


def _calm(location: str, part: Part) -> list[tuple[float, float]]:
    """Return the calm periods in this part of a recording."""
    at, end = _bounds(location, part)
    stretches = []
    for activity in (a for a in ACTIVITIES if a.place == location and _inside(a, part)):
        stretches.append((at, activity.start - 0.2))
        at = activity.end + 0.2
    stretches.append((at, end))
    return [(low, high) for low, high in stretches if high - low >= 2.0]


def _takes(
    deck: _ActivityDeck,
    files: Mapping[str, Path],
    part: Part,
    count: int,
    places: Sequence[str],
    calm_before: tuple[float, float],
    generator: np.random.Generator,
) -> list[_Take]:
    critical, toys = max(1, round(count / 3)), max(1, round(count / 6))
    takes: list[_Take] = []
    for _ in range(critical):
        activity = deck.deal()
        before = [a.end + 0.1 for a in ACTIVITIES if a.place == activity.place and a.end <= activity.start]
        calm_from = max([_bounds(activity.place, part)[0], *before])
        start = max(calm_from, activity.start - generator.uniform(*calm_before))
        end = activity.end - generator.uniform(0.0, 0.2) * (activity.end - activity.start)
        takes.append(_Take(files[HIGHLIGHT_PLACES[activity.place]], start, end, activity.start))
    for _ in range(toys):
        name, seconds = _TOYS[part][generator.integers(len(_TOYS[part]))]
        length = min(generator.uniform(*_CALM_ALONE), seconds)
        start = generator.uniform(0.0, seconds - length)
        takes.append(_Take(files[name], start, start + length, None))
    calm = [(location, stretch) for location in places for stretch in _calm(location, part)]
    for _ in range(count - critical - toys):
        # Choose the location first, because most calm periods are in the room.
        location = str(generator.choice(list(places)))
        stretches = [stretch for name, stretch in calm if name == location]
        lengths = np.array([high - low for low, high in stretches])
        low, high = stretches[generator.choice(len(stretches), p=lengths / lengths.sum())]
        length = min(generator.uniform(*_CALM_ALONE), high - low)
        start = generator.uniform(low, high - length)
        takes.append(_Take(files[HIGHLIGHT_PLACES[location]], start, start + length, None))
    # Find a random order in which neighbors come from different files, if possible.
    best, fewest = takes, len(takes)
    for _ in range(200):
        order = [takes[n] for n in generator.permutation(len(takes))]
        same = sum(a.file == b.file for a, b in pairwise(order))
        if same < fewest:
            best, fewest = order, same
        if fewest == 0:
            break
    return best


def _write(path: Path, takes: Sequence[_Take], rate: int, generator: np.random.Generator) -> VideoAnnotation:
    shots: list[ShotAnnotation] = []

    def frames() -> Iterator[Image]:
        at = 0
        for take in takes:
            read = read_frames(take.file, rate=rate, start=take.start, end=take.end, short_side=220)
            count = len(read)
            critical = None
            if take.critical is not None:
                first = int(first_at(read.timestamps, take.critical))
                critical = (at + min(first, count - 1), at + count)
            shots.append(ShotAnnotation(at, at + count, critical))
            at += count
            chance = _DISTURBANCE_PROBABILITIES[take.critical is not None]
            # Simulate another camera: a slowly panning crop, mirrored with probability 0.5, with different lighting.
            from PIL import Image as Picture

            height, width = read.images.shape[1:3]
            shape = np.array(_SIZE, dtype=np.float64)
            whole = shape * min(height / shape[1], width / shape[0])
            box = whole * generator.uniform(0.8, 0.95)
            center = box / 2 + generator.uniform(0.0, 1.0, 2) * (np.array([width, height]) - box)
            step = generator.uniform(-0.0004, 0.0004, 2) * box
            mirrored = generator.random() < 0.5
            gain, shift = generator.uniform(0.8, 1.2), generator.uniform(-12.0, 12.0)
            kind = generator.integers(3) if (generator.random() < chance) else -1
            zoom = generator.uniform(0.55, 0.75) if kind == 0 else 1.0
            swing = generator.choice([-1.0, 1.0]) * np.array([generator.uniform(0.15, 0.3), 0.0]) if kind == 1 else 0.0
            exposure = generator.choice([0.6, 1.45]) if kind == 2 else 1.0
            for number, image in enumerate(read.images):
                share = max(0.0, 3 * (number + 1) / len(read.images) - 2)
                size = box * (1 + (zoom - 1) * share)
                middle = center + step * number + swing * share * box
                low = np.clip(middle - size / 2, 0, np.array([width, height]) - size)
                picture = Picture.fromarray(image).resize(
                    _SIZE, Picture.Resampling.BILINEAR, box=(*low.tolist(), *(low + size).tolist())
                )
                light = gain * (1 + (exposure - 1) * share)
                pixels = np.clip(np.asarray(picture) * light + shift, 0, 255).astype(np.uint8)
                yield np.ascontiguousarray(pixels[:, ::-1] if mirrored else pixels)

    write_video(path, frames(), rate=rate, crf=20, threads=1, made_of="made highlights")
    return VideoAnnotation(path, float(rate), tuple(shots))
