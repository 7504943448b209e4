"""Films made of photographs, panoramas and slides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vidkin.media import write_video
from vidkin.shots.network import GRID
from vidkin_research.cut_network.pieces import Frames, Join, Piece, read_piece, shrink

__all__ = ["little", "slides", "whips"]

# Frames of a film.
_LENGTH = 240
_SIZES = ((96, 64), (96, 64), (128, 96), (160, 120), (192, 128), (256, 144), (320, 180))


def little(photographs: Sequence[Path], folder: Path, seed: int, number: int) -> Piece:
    """Shots of cameras that wander over photographs, encoded small and in one thread: nothing but movement and what
    encoding makes of it, hard cuts, and fades to black."""
    random = np.random.default_rng((seed, number, 2))
    width, height = _SIZES[int(random.integers(len(_SIZES)))]
    frames: list[Frames] = []
    joins: list[Join] = []
    cut_often = random.random() < 0.6
    while len(frames) < _LENGTH:
        count = int(random.integers(8, 70)) if cut_often else _LENGTH
        path = photographs[int(random.integers(len(photographs)))]
        shot = _wander(path, count, (width, height), random)
        if frames:
            joins.append(Join("hard", len(frames), len(frames)))
        if count > 30 and cut_often and random.random() < 0.2:
            span = int(random.integers(6, 20))
            for place in range(span):
                shot[place - span] = (shot[place - span] * ((span - 1 - place) / span)).astype(np.uint8)
            joins.append(Join("fade", len(frames) + count - span, len(frames) + count - 1))
        frames += shot
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"little-{seed}-{number:04d}.mp4"
    write_video(file, frames, rate=25.0, crf=int(random.integers(18, 34)), threads=1)
    return read_piece(file, joins)


def slides(seed: int, number: int) -> Piece:
    """Slides of one layout whose text changes at once, which is a cut, or gets a line more, which is none."""
    random = np.random.default_rng((seed, number, 3))
    size = 2 * GRID[1], 2 * GRID[0]
    is_dark = random.random() < 0.3
    paper, ink = (tuple(int(value) for value in random.integers(*span, 3)) for span in ((215, 256), (0, 90)))
    paper, ink = (ink, paper) if is_dark else (paper, ink)
    head = tuple(int(value) for value in random.integers(0, 256, 3))
    bar, step, left = int(random.integers(0, 28)), int(random.integers(9, 18)), int(random.integers(6, 40))
    pages: list[NDArray[np.uint8]] = []
    joins: list[Join] = []
    while len(pages) < _LENGTH:
        if pages:
            joins.append(Join("cut", len(pages), len(pages)))
        page = Image.new("RGB", size, paper)
        drawing = ImageDraw.Draw(page)
        drawing.rectangle((0, 0, size[0], bar), fill=head)
        lines, is_built = int(random.integers(2, 9)), random.random() < 0.4
        held = int(random.integers(10, 90))
        for line in range(lines):
            letters = random.integers(0, 32, int(random.integers(6, 40)))
            text = "".join(chr(97 + letter) if letter < 26 else " " for letter in letters.tolist())
            drawing.text((left, bar + 6 + step * line), text, fill=ink)
            if is_built and line < lines - 1:
                pages += [np.asarray(page)] * int(random.integers(6, 40))
        pages += [np.asarray(page)] * held
    small, joins = pages[:_LENGTH], [join for join in joins if join.start < _LENGTH]
    values = np.stack([np.asarray(Image.fromarray(page).convert("YCbCr")) for page in small])
    pictures = np.moveaxis(values, -1, 1).reshape(len(small), 3, GRID[0], 2, GRID[1], 2).mean((3, 5))
    return Piece(*shrink(pictures.round().astype(np.uint8)), tuple(joins))


def _wander(path: Path, count: int, size: tuple[int, int], random: np.random.Generator) -> list[Frames]:
    with Image.open(path) as photograph:
        picture = photograph.convert("RGB")
    phases, turns = random.uniform(0, 2 * np.pi, 3), random.uniform(0.1, 1.6, 3) * random.choice([0.3, 1.0])
    frames = []
    for time in np.arange(count) / 50:
        zoom = 0.55 + 0.25 * np.sin(turns[0] * time + phases[0])
        tall = min(picture.height, picture.width * size[1] / size[0]) * zoom
        wide = tall * size[0] / size[1]
        left = (picture.width - wide) * (0.5 + 0.5 * np.sin(turns[1] * time + phases[1]))
        top = (picture.height - tall) * (0.5 + 0.5 * np.sin(turns[2] * time + phases[2]))
        view = picture.resize(size, Image.Resampling.BILINEAR, box=(left, top, left + wide, top + tall))
        frames.append(np.asarray(view))
    return frames


def whips(photographs: Sequence[Path], folder: Path, seed: int, number: int) -> Piece:
    """A camera that rests on a panorama, or drifts over it, and whips on with motion blur, which is no transition; some
    rests end with a cut to another place or another panorama."""
    random = np.random.default_rng((seed, number, 4))
    sides = 2 * GRID[0], 2 * GRID[1]
    is_tall = random.random() < 0.3
    across, along = sides[::-1] if is_tall else sides
    scene = _panorama(photographs, across, along, random)
    place = random.uniform(0, scene.shape[1] - along - 1)
    frames: list[Frames] = []
    joins: list[Join] = []

    def show(first: float, last: float) -> None:
        # The shutter is open on the way from the first to the last place.
        steps = np.linspace(first, last, min(24, int(abs(last - first) / 3) + 1))
        view = np.mean([_view(scene, step, along) for step in steps], 0)
        frames.append((view + 0.5).astype(np.uint8).swapaxes(0, 1) if is_tall else (view + 0.5).astype(np.uint8))

    while len(frames) < _LENGTH:
        most = scene.shape[1] - along - 1
        if frames and random.random() < 0.2:
            joins.append(Join("cut", len(frames), len(frames)))
            elsewhere = (place + random.uniform(0.4, 0.6) * most) % most
            if random.random() < 0.6:
                scene = _panorama(photographs, across, along, random)
                most = scene.shape[1] - along - 1
                elsewhere = random.uniform(0, most)
            place = elsewhere
        drift = random.uniform(-1.5, 1.5) * (random.random() < 0.6)
        for _ in range(int(np.exp(random.uniform(np.log(3), np.log(70))))):
            show(place, np.clip(place + drift, 0, most))
            place = float(np.clip(place + drift, 0, most))
        span, blur = int(random.integers(3, 16)), random.uniform(0.4, 1.0)
        way = random.uniform(0.4, 1.3) * along * (1 if place < most * random.random() else -1)
        course = (
            (np.arange(span + 1) / span)
            if random.random() < 0.6
            else 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, span + 1))
        )
        stops = np.clip(place + way * course, 0, most)
        for first, last in pairwise(stops):
            show(last - blur * (last - first), last)
        place = float(stops[-1])
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"whips-{seed}-{number:04d}.mp4"
    write_video(file, frames[:_LENGTH], rate=25.0, crf=int(random.integers(16, 32)), threads=1)
    return read_piece(file, [join for join in joins if join.start < _LENGTH])


def _view(scene: NDArray[np.float32], place: float, along: int) -> NDArray[np.float32]:
    first = int(place)
    part = np.float32(place - first)
    views: NDArray[np.float32] = (1 - part) * scene[:, first : first + along]
    return views + part * scene[:, first + 1 : first + along + 1]


def _panorama(photographs: Sequence[Path], across: int, along: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Photographs next to each other, [across, more than 2 along, 3], that blend into each other."""
    scene = np.zeros((across, 0, 3), np.float32)
    while scene.shape[1] < (2 + 3 * random.random()) * along or scene.shape[1] < 2 * along:
        path = photographs[int(random.integers(len(photographs)))]
        with Image.open(path) as photograph:
            small = photograph.convert("RGB").resize((int(along * random.uniform(0.7, 1.6)), across))
        part = np.asarray(small, np.float32)
        seam = int(along * random.uniform(0.02, 0.3)) if scene.shape[1] else 0
        ramp = ((np.arange(seam, dtype=np.float32) + 1) / (seam + 1))[None, :, None]
        mixed = scene[:, scene.shape[1] - seam :] * (1 - ramp) + part[:, :seam] * ramp
        scene = np.concatenate([scene[:, : scene.shape[1] - seam], mixed, part[:, seam:]], 1)
    return scene
