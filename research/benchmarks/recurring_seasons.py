"""Accuracy of `vidkin recurring` on composed seasons with known openings, recaps, bumpers and closings.

    python research/benchmarks/recurring_seasons.py [--half development|held_back] [--seasons 2x5 3x10 12x40 ...]
        [--work FOLDER] [--output FILE.json]

The season ``12x40`` has 12 episodes and an opening of 40 s. All seasons are composed from the measurement data
(VIDKIN_DATA or --data), which was split by name before anything was measured: excerpts of videos and photographs under
a moving camera, with shots of 2 to 4 s. No shot is used twice unless planned: only the first excerpt of a long shot of
a film is used, and recaps have no shots of a static camera.

In each episode the opening is at a different position and may have a title, fades, shots left out, another aspect
ratio, 24 instead of 25 frames per second (at the same speed) and a low bit rate. Distractors are black frames, a still
card in all files and a static camera at different times. The season ``fades`` has five files that end with the first 11
s of a trailer, which fades from black within 4 s and back to black: unchanged, at a low bit rate, at 24 frames per
second with a title, brighter, and without the sides. The segment starts where a brightness of 3 of 255 is visible. The
output lists segments found, false segments per episode, boundary errors, CPU time and wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vidkin import Index
from vidkin.index import RecurringGroup
from vidkin.media import probe, steady_frames, write_video
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.transforms import fill_size

Picture = NDArray[np.uint8]

RATE, WIDTH, HEIGHT = 25, 320, 180
SEASONS = ("2x5", "2x30", "3x10", "3x90", "12x40")
FADE = 12  # frames
FADES = "fades"
SLOW_FADE = "shots/sintel_trailer.mp4"
# Excerpts of other files, and the edits applied to the trailer after them: quality, rate, title, gain, offset, sides.
HEADS = (
    ("videos/intel/bottle-detection.mp4", 2.0, 23, 25, "", 1.0, 0, 0),
    ("videos/mdn/crystal.mp4", 0.0, 36, 25, "", 1.0, 0, 0),
    ("shots/big_buck_bunny_0_30.webm", 8.0, 34, 24, "Episode 2: the long way home", 1.0, 0, 0),
    ("videos/mdn/frog.mp4", 0.0, 23, 25, "", 1.1, 8, 0),
    ("videos/mdn/pig.mp4", 0.0, 28, 25, "", 1.0, 0, 40),
)
SEEN = 3.0  # mean gray level
# Correlation of reduced frames from which two excerpts show the same scene.
MOST_ALIKE = 0.9
DARKEST = 48.0  # gray level of the brightest pixel
SHORTEST_IN_RECAP = 1.5  # seconds
# Overlap (intersection over union) from which a segment counts as found.
LEAST_OVERLAP = 0.5
HALVES = ("development", "held_back")
# Recordings of a static camera, whose segments look alike, and edited films, whose segments do not.
FIXED = {
    "development": "videos/intel/one-by-one-person-detection.mp4",
    "held_back": "videos/intel/bottle-detection.mp4",
}
FILMS = {
    "development": (
        *("shots/big_buck_bunny_0_30.webm", "videos/mdn/crystal.mp4", "videos/mdn/elf.mp4"),
        "videos/tmk/chair-orig-22-sd-bar.mp4",
    ),
    "held_back": (
        *("shots/sintel_trailer.mp4", "shots/testvideo.mp4", "videos/mdn/frog.mp4", "videos/mdn/monster.mp4"),
        *("videos/mdn/pig.mp4", "videos/mdn/rabbit.mp4", "shots/bikes.mp4"),
    ),
}


@dataclass(frozen=True)
class Shot:
    """A segment of a video, or a photograph under a moving camera."""

    path: Path
    start: float
    seconds: float
    seed: int = 0

    @property
    def frames(self) -> int:
        return round(self.seconds * RATE)

    def pictures(self) -> Iterator[Picture]:
        if self.path.suffix != ".jpg":
            for image in steady_frames(self.path, self.start, 1 / RATE, self.frames, HEIGHT, 1):
                yield fill_size(image, WIDTH, HEIGHT)
            return
        photo = Image.open(self.path).convert("RGB")
        random = np.random.default_rng(self.seed)
        width = min(photo.width, photo.height * WIDTH / HEIGHT) * random.uniform(0.6, 0.75, 2)
        if self.start < 0:  # a still card
            width[1] = width[0]
        height = width * HEIGHT / WIDTH
        places = random.uniform(0, 1, (2, 2)) if self.start >= 0 else np.full((2, 2), 0.5)
        for share in np.linspace(0, 1, self.frames):
            size = np.array([width[0], height[0]]) * (1 - share) + np.array([width[1], height[1]]) * share
            place = places[0] * (1 - share) + places[1] * share
            left, top = place * (np.array(photo.size) - size)
            box = (left, top, left + size[0], top + size[1])
            yield np.asarray(photo.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR, box=box))


@dataclass(frozen=True)
class Part:
    """Shots that belong together: their label and, for a recap, the shots it repeats."""

    label: str
    shots: Sequence[Shot]
    title: str = ""
    fades: bool = False
    black: int = 0

    @property
    def frames(self) -> int:
        return sum(shot.frames for shot in self.shots) + self.black

    def pictures(self) -> Iterator[Picture]:
        for _ in range(self.black):
            yield np.full((HEIGHT, WIDTH, 3), 16, np.uint8)
        pictures = (image for shot in self.shots for image in shot.pictures())
        for number, image in enumerate(pictures):
            if self.title:
                image = with_title(image, self.title)
            if self.fades:
                share = min(1.0, (number + 1) / FADE, (self.frames - number) / FADE)
                image = (image * share).astype(np.uint8)
            yield image


@dataclass
class Episode:
    """An episode: its parts in order, and how the file is encoded."""

    name: str
    parts: list[Part] = field(default_factory=list)
    rate: int = RATE
    width: int = WIDTH
    bars: int = 0
    quality: int = 23

    def pictures(self) -> Iterator[Picture]:
        left = (WIDTH - self.width) // 2
        for part in self.parts:
            for image in part.pictures():
                image = image[:, left : left + self.width]
                if self.bars:
                    image = image.copy()
                    image[: self.bars] = image[-self.bars :] = 0
                yield image

    def write(self, folder: Path) -> None:
        path = folder / self.name
        write_video(path, self.pictures(), rate=self.rate, crf=self.quality, preset="ultrafast", threads=1)

    def truth(self) -> list[tuple[str, float, float]]:
        """Return label, start and end of each part that occurs elsewhere."""
        found, frame = [], 0
        for part in self.parts:
            if part.label:
                found.append((part.label, frame / self.rate, (frame + part.frames) / self.rate))
            frame += part.frames
        return found


class Pool:
    """Shots from one half of the data, each of them used at most once."""

    def __init__(self, data: Path, half: str, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.random = random
        photos = sorted((data / "photos" / "flowers" / ("train" if half == HALVES[0] else "test")).rglob("*.jpg"))
        aerial = sorted(path for path in (data / "labelled" / "aerial").rglob("*.mp4") if half_of(path.name) == half)
        films = [data / name for name in FILMS[half]]
        self.photos = [photos[at] for at in random.permutation(len(photos))]
        self.aerial = [aerial[at] for at in random.permutation(len(aerial))]
        excerpts = [Shot(path, start, 3.0) for path in films for start in np.arange(0, probe(path).duration - 3.1, 3.0)]
        self.excerpts = without_lookalikes([excerpts[at] for at in random.permutation(len(excerpts))])
        camera = data / FIXED[half]
        self.fixed = [Shot(camera, start, 3.0) for start in np.arange(0, probe(camera).duration - 3.1, 3.2)]

    def shot(self, share_of_films: float = 0.15, share_of_aerial: float = 0.2) -> Shot:
        seconds = round(float(self.random.uniform(2.0, 4.0)) * RATE) / RATE
        chance = self.random.uniform()
        if chance < share_of_films and self.excerpts:
            return self.excerpts.pop()
        if share_of_films <= chance < share_of_films + share_of_aerial and self.aerial:
            return Shot(self.aerial.pop(), 1.0, seconds)
        return Shot(self.photos.pop(), 0.0, seconds, int(self.random.integers(1 << 30)))

    def shots(self, seconds: float, share_of_films: float = 0.15) -> list[Shot]:
        """Return shots with this total length, exact to the frame."""
        shots: list[Shot] = []
        left = round(seconds * RATE)
        while left > 0:
            shot = self.shot(share_of_films, 0.2 if share_of_films < 0.3 else 0.0)
            frames = min(shot.frames, left)
            shots.append(Shot(shot.path, shot.start, frames / RATE, shot.seed))
            left -= frames
        return shots


def without_lookalikes(shots: Sequence[Shot]) -> list[Shot]:
    """Remove shots that look like an earlier one or the same scene some seconds later, or that start or end in black.

    Black frames belong to no part. Two shots look alike if any of three frames of each correlate, in gray at 16 x 9
    pixels.
    """
    kept: list[Shot] = []
    known = np.zeros((0, 16 * 9))
    for shot in shots:
        pictures = list(shot.pictures())
        small = [
            np.asarray(Image.fromarray(pictures[at]).convert("L").resize((16, 9), Image.Resampling.BOX), float).ravel()
            for at in (0, len(pictures) // 2, len(pictures) - 1)
        ]
        if min(small[0].max(), small[-1].max()) < DARKEST:
            continue
        units = np.stack([(one - one.mean()) / max(np.linalg.norm(one - one.mean()), 1e-9) for one in small])
        if len(known) == 0 or float((known @ units.T).max()) < MOST_ALIKE:
            kept.append(shot)
            known = np.concatenate([known, units])
    return kept


def half_of(name: str) -> str:
    return HALVES[sha256(name.encode()).digest()[0] % 2]


def compose(pool: Pool, episodes: int, seconds: float) -> list[Episode]:
    """Compose a season with an opening of this length."""
    random = pool.random
    opening = pool.shots(seconds, 0.5)
    closing = pool.shots(12.0, 0.3)
    bumper = pool.shots(4.0, 1.0)
    card = Shot(pool.photos.pop(), -1.0, 4.0, 0)
    season: list[Episode] = []
    bodies: list[list[Shot]] = []
    for number in range(episodes):
        body = pool.shots(float(random.uniform(55, 75)))
        edits = number % 6 if episodes > 2 else (number * 4) % 6
        shown = list(opening)
        if edits == 3 and len(shown) > 4:  # the shortened opening
            shown = shown[: max(3, len(shown) * 3 // 5)]
        before = int(random.integers(0, 6))
        parts = [Part("", [], black=int(random.integers(10, 40)))]
        if bodies:
            scenes = [shot for shot in bodies[-1] if shot.seconds >= SHORTEST_IN_RECAP and not is_standing(shot)]
            chosen = sorted(random.choice(len(scenes), 4, replace=False).tolist())
            parts.append(Part("recap", [scenes[at] for at in chosen]))
        if before:
            parts.append(Part("", body[:before]))
        title = f"Episode {number + 1}: the long way home" if edits in (1, 4) else ""
        parts.append(Part("opening", shown, title=title, fades=edits == 2))
        middle = (before + len(body)) // 2
        fixed = pool.fixed.pop(int(random.integers(len(pool.fixed))))
        parts += [Part("", body[before : before + 2]), Part("", [card]), Part("", body[before + 2 : middle])]
        parts += [Part("bumper", bumper), Part("", body[middle : middle + 2])]
        parts += [Part("", [], black=75), Part("", [fixed]), Part("", body[middle + 2 : -2])]
        parts += [Part("bumper", bumper), Part("", body[-2:])]
        parts += [Part("closing", closing, title="Directed by many" if edits == 5 else "")]
        parts.append(Part("", [], black=int(random.integers(5, 50))))
        name = f"episode-{number + 1:02d}.mp4"
        season.append(
            Episode(
                name,
                parts,
                rate=24 if edits == 4 else RATE,
                width=240 if edits == 5 else WIDTH,
                bars=22 if edits == 1 else 0,
                quality=34 if edits in (3, 4) else 23,
            )
        )
        bodies.append(body)
    return season


def is_standing(shot: Shot) -> bool:
    """Whether a shot is from a camera watching the sky: other shots of its series look the same."""
    return "aerial" in shot.path.parts


def sources_of_recaps(season: Sequence[Episode]) -> dict[str, list[tuple[float, float]]]:
    """Return the positions of the recap shots in the episodes they come from, by file name."""
    shown = {shot for episode in season for part in episode.parts if part.label == "recap" for shot in part.shots}
    found: dict[str, list[tuple[float, float]]] = {}
    for episode in season:
        frame = 0
        for part in episode.parts:
            at = frame + part.black
            for shot in part.shots:
                if not part.label and shot in shown:
                    found.setdefault(episode.name, []).append((at / episode.rate, (at + shot.frames) / episode.rate))
                at += shot.frames
            frame += part.frames
    return found


def with_title(image: Picture, text: str) -> Picture:
    picture = Image.fromarray(image)
    font = ImageFont.load_default(size=20)
    ImageDraw.Draw(picture).text((20, HEIGHT * 2 // 3), text, fill="white", font=font, stroke_width=1, stroke_fill=0)
    return np.asarray(picture)


def make_season(data: Path, half: str, season: str, folder: Path) -> None:
    """Write the files of a season and its `truth.json`, unless they exist."""
    if (folder / "truth.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    episodes, seconds = season.split("x")
    made = compose(Pool(data, half, seed=int(episodes) * 100 + int(seconds)), int(episodes), float(seconds))
    for episode in made:
        episode.write(folder)
    sources = sources_of_recaps(made)
    truth = {
        episode.name: {"rate": episode.rate, "parts": episode.truth(), "sources": sources.get(episode.name, [])}
        for episode in made
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))


def make_fades(data: Path, folder: Path) -> None:
    """Write five files that share a slow fade, and their `truth.json`, unless they exist."""
    if (folder / "truth.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    trailer = list(Shot(data / SLOW_FADE, 0.0, 11.0).pictures())
    seen = next(number for number, image in enumerate(trailer) if image.mean() > SEEN)
    truth: dict[str, Any] = {}
    for number, (path, start, quality, rate, title, gain, offset, sides) in enumerate(HEADS):
        head = list(Shot(data / path, start, 6.0).pictures())
        edited = [(image * gain + offset).clip(0, 255).astype(np.uint8) for image in trailer]
        pictures = head + [with_title(image, title) if title else image for image in edited]
        narrow = (image[:, sides : WIDTH - sides] for image in pictures)
        name = f"fade-{number + 1}.mp4"
        write_video(folder / name, narrow, rate=rate, crf=quality, preset="ultrafast", threads=1)
        times = (len(head) + seen) / rate, len(pictures) / rate
        truth[name] = {"rate": rate, "parts": [("closing", *times)], "sources": []}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))


# Evaluation.


def judge(groups: Sequence[RecurringGroup], truth: dict[str, Any], tell: bool) -> dict[str, Any]:
    """Count segments found and false segments, and compute boundary errors in frames and seconds."""
    expected = [(name, *part) for name, facts in truth.items() for part in facts["parts"]]
    seconds: list[float] = []
    frames: list[float] = []
    found = 0
    for name, label, start, end in expected:
        near = [one for group in groups for one in group.occurrences if Path(one.path).name == name]
        best = max(near, key=lambda one: overlap(one.start, one.end, start, end), default=None)
        is_found = best is not None and overlap(best.start, best.end, start, end) >= LEAST_OVERLAP
        found += is_found
        errors = [abs(best.start - start), abs(best.end - end)] if best is not None and is_found else []
        seconds += errors
        frames += [error * truth[name]["rate"] for error in errors]
        if tell and max(errors, default=1.0) > 0.1:
            print("   ", name, label, f"{start:.2f} - {end:.2f}", best)
    false = []
    for group in groups:
        for occurrence in group.occurrences:
            name = Path(occurrence.path).name
            spans = [tuple(part[1:]) for part in truth[name]["parts"]] + [
                tuple(span) for span in truth[name]["sources"]
            ]
            covered = sum(max(0.0, min(occurrence.end, end) - max(occurrence.start, start)) for start, end in spans)
            if covered < LEAST_OVERLAP * (occurrence.end - occurrence.start):
                false.append((name, round(occurrence.start, 2), round(occurrence.end, 2), group.kind))
    if tell:
        print("    false:", false)
    kinds = sum(
        kind_of(group.kind) == label and overlap(occurrence.start, occurrence.end, start, end) >= LEAST_OVERLAP
        for name, label, start, end in expected
        for group in groups
        for occurrence in group.occurrences
        if Path(occurrence.path).name == name
    )
    return {
        "expected": len(expected), "found": found, "right kind": kinds, "false": len(false),
        "episodes": len(truth), "frames": frames, "seconds": seconds,
    }  # fmt: skip


def kind_of(kind: str) -> str:
    return {"inside": "bumper"}.get(kind, kind)


def overlap(start: float, end: float, other_start: float, other_end: float) -> float:
    """Intersection over union of two intervals."""
    common = min(end, other_end) - max(start, other_start)
    return max(0.0, common) / (max(end, other_end) - min(start, other_start))


def main() -> None:
    """Make the seasons, search for recurring segments, and print a table."""
    given = parse_arguments()
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-recurring-"))
    rows: dict[str, dict[str, Any]] = {}
    for season in given.seasons:
        folder = work / given.half / season
        if season == FADES:
            make_fades(given.data, folder)
        else:
            make_season(given.data, given.half, season, folder)
        truth = json.loads((folder / "truth.json").read_text())
        with Index.open(folder / "index.vidkin", create=True) as index:
            index.add(folder, workers=1)
            before, began = processor_seconds(), time.perf_counter()
            groups = index.recurring(remember=False)
            taken = {"seconds taken": time.perf_counter() - began, "processor seconds": processor_seconds() - before}
            row = judge(groups, truth, given.tell) | taken
        rows[season] = row
        print(season, summary(row))
    total = {
        key: sum((row[key] for row in rows.values()), [] if key in ("frames", "seconds") else 0)
        for key in next(iter(rows.values()))
    }
    print("all", summary(total))
    if given.output:
        figures = {season: summary(row) for season, row in rows.items()} | {"all": summary(total)}
        document = {"half": given.half, "machine": describe_machine(), "seasons": figures}
        given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def summary(row: dict[str, Any]) -> dict[str, Any]:
    """Summarize the results of one or more seasons."""
    frames, seconds = np.array(row["frames"] or [np.nan]), np.array(row["seconds"] or [np.nan])
    return {
        "expected": row["expected"],
        "found": round(row["found"] / row["expected"], 4),
        "of the right kind": round(row["right kind"] / row["expected"], 4),
        "false an episode": round(row["false"] / row["episodes"], 4),
        "median error of ends, frames": round(float(np.median(frames)), 2),
        "95 % of errors within, s": round(float(np.quantile(seconds, 0.95)), 3),
        "processor seconds": round(row["processor seconds"], 2),
        "seconds": round(row["seconds taken"], 2),
    }


def processor_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("VIDKIN_DATA"),
        help="folder with the measurement data (default: $VIDKIN_DATA)",
    )
    parser.add_argument("--half", choices=HALVES, default=HALVES[0], help="half of the sources to use")
    parser.add_argument("--seasons", nargs="+", default=SEASONS, metavar="EPISODESxSECONDS", help="or fades")
    parser.add_argument("--work", type=Path, help="working folder for seasons and indexes (not deleted afterward)")
    parser.add_argument(
        "--tell", action="store_true", help="print segments that are missed, false, or off by more than 0.1 s"
    )
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    given = parser.parse_args()
    if given.data is None:
        parser.error("no measurement data: set VIDKIN_DATA or pass its folder with --data")
    given.data = Path(given.data)
    return given


if __name__ == "__main__":
    sys.exit(main())
