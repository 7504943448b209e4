"""Fuzz test of `vidkin duplicates --plan`: random libraries with known truth, where no unique content may be removed.

    python research/benchmarks/fuzz_plans.py OUT [--seed N] [--libraries N] [--jobs N] [--quick] \
        [--output FILE.json] FOLDER...

Each library has four films of 12 to 40 seconds, composed of footage from the folders, with each segment used once. Some
files are copies without unique content (smaller, more compressed, gray, mirrored, bordered, trimmed, remuxed). Others
have unique content: footage inserted, replaced, prepended or appended, different sound, a second language, a caption,
burned-in subtitles, a covered face, a higher frame rate, subtitles, chapters, a date, or better frames but no sound.

A removal is correct if a single remaining file has every segment, at least the resolution and frame rate, and every
sound, subtitle and date of the removed file. The output lists wrong removals by kind, and the fraction of removable
copies in the plan. Libraries with wrong or missed removals stay in OUT. A run with other seeds is added to the results
in FILE, which also has their sum. Requires the programs ffmpeg and ffprobe.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from vidkin.rendering.machine import describe_machine

RATE = 25
COPIES = ("smaller", "harder", "gray", "mirrored", "bordered", "trimmed", "container")
OWN = (
    *("put in", "replaced", "before", "after", "other sound", "two languages", "face", "caption", "burned subtitles"),
    *("frames", "subtitles", "chapters", "date", "no sound"),
)
VIDEOS = {".mp4", ".mkv", ".webm", ".avi", ".mov", ".flv"}


@dataclass(frozen=True)
class Piece:
    """A segment of footage."""

    source: str
    start: float
    length: float


@dataclass(frozen=True)
class Content:
    """Content of a file."""

    kind: str
    pieces: frozenset[Piece | str]
    height: int = 360
    rate: int = RATE
    sounds: frozenset[str] = frozenset()
    extras: frozenset[str] = frozenset()
    color: bool = True
    clean: bool = True

    def has_all_of(self, other: Content) -> bool:
        """Whether no content is lost if the other file is removed."""
        return (
            other.pieces <= self.pieces
            and self.height >= other.height
            and self.rate >= other.rate
            and other.sounds <= self.sounds
            and other.extras <= self.extras
            and self.color >= other.color
            and self.clean >= other.clean
        )


def run_ffmpeg(*words: object) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, words)], check=True)


def read_length(path: Path) -> float:
    words = ["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", str(path)]
    text = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    try:
        return float(text)
    except ValueError:
        return 0.0


def read_look(path: Path) -> bytes:
    """Decode small gray frames; return nothing if decoding reports errors."""
    words = ["ffmpeg", "-v", "error", "-xerror", "-i", str(path), "-t", "20", "-vf", "fps=1,scale=16:9"]
    done = subprocess.run([*words, "-pix_fmt", "gray", "-f", "rawvideo", "-"], capture_output=True, check=False)
    return b"" if done.returncode or done.stderr else done.stdout[:288]


def find_footage(folders: Sequence[Path], cache: Path) -> dict[str, float]:
    """Length of each video in the folders by path; the same footage in another encoding is included only once."""
    if cache.is_file():
        stored: dict[str, float] = json.loads(cache.read_text())
        return stored
    footage: dict[str, float] = {}
    looks: list[bytes] = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() not in VIDEOS or (length := read_length(path)) < 1.2:
                continue
            look = read_look(path)
            known = any(sum(abs(x - y) for x, y in zip(look, one, strict=False)) < 288 * 6 for one in looks)
            if look and not known:
                looks.append(look)
                footage[str(path)] = length
    cache.write_text(json.dumps(footage))
    return footage


class Library:
    """A random library in its own folder."""

    def __init__(self, out: Path, seed: int, number: int, footage: Mapping[str, float], *, quick: bool) -> None:
        self.height, self.preset, self.seconds = (270, "ultrafast", (8, 18)) if quick else (360, "veryfast", (12, 40))
        self.random = random.Random(seed * 1000 + number)
        self.work = out / f"{seed}_{number}"
        shutil.rmtree(self.work, ignore_errors=True)
        self.videos = self.work / "videos"
        self.videos.mkdir(parents=True)
        (self.work / "pieces").mkdir()
        self.footage, self.free = footage, list(footage)
        self.truth: dict[str, Content] = {}

    def make(self) -> None:
        """Write all files and the ground truth."""
        for film in range(4):
            self._make_film(film)

    def _make_film(self, film: int) -> None:
        rng, pieces, goal = self.random, list[Piece](), self.random.uniform(*self.seconds)
        while sum(piece.length for piece in pieces) < goal:
            pieces.append(self._draw_piece(1, self.seconds[0] * 0.75))
        base = Content("film", frozenset(pieces), self.height, sounds=frozenset({f"a{film}"}))
        self._write(film, base, pieces, sounds=(f"a{film}",))
        for kind in rng.sample(COPIES, 2):
            self._make_copy(film, kind, base, pieces)
        for kind in rng.sample(OWN, 2):
            self._make_own(film, kind, base, pieces)

    def _make_copy(self, film: int, kind: str, base: Content, pieces: Sequence[Piece]) -> None:
        height = (
            round(self.random.choice([0.5, 0.667, 0.8]) * self.height) // 2 * 2 if kind == "smaller" else self.height
        )
        looks = {"gray": "hue=s=0", "mirrored": "hflip", "bordered": "pad=iw:ih*1.3:-1:-1"}
        quality = {"smaller": 26, "harder": 32, "container": 22}.get(kind, 24)
        content = replace(base, kind=kind, height=height, color=kind != "gray", clean=kind != "bordered")
        # A copy that lacks more is an excerpt, which only `--parts` includes in a plan.
        cut = self.random.uniform(0.02, 0.07) * sum(piece.length for piece in pieces) if kind == "trimmed" else 0.0
        suffix = ".mkv" if kind == "container" else ".mp4"
        look = looks.get(kind, "")
        before = 0.0
        for piece in pieces:
            if before < cut:  # at least part of this piece is trimmed
                content = replace(content, pieces=content.pieces - {piece})
            before += piece.length
        self._write(film, content, pieces, sounds=(f"a{film}",), look=look, quality=quality, suffix=suffix, cut=cut)

    def _make_own(self, film: int, kind: str, base: Content, pieces: Sequence[Piece]) -> None:
        rng, more = self.random, list(pieces)
        voice: tuple[str, ...] = (f"a{film}",)
        height, content = rng.choice([round(0.8 * self.height) // 2 * 2, self.height]), replace(base, kind=kind)
        options: dict[str, Any] = {"quality": 24}
        if kind in ("put in", "before", "after", "replaced"):
            new = self._draw_piece(0.5, 6) if rng.random() < 0.7 else self._draw_piece(0.5, 1.5)
            at = {"put in": rng.randint(1, max(1, len(pieces) - 1)), "before": 0, "after": len(pieces)}
            place = at.get(kind, rng.randrange(len(pieces)))
            more[place : place + (kind == "replaced")] = [new]
            content = replace(content, pieces=frozenset(more))
        elif kind == "other sound":
            voice = (f"b{film}",)
        elif kind == "two languages":
            voice = (f"a{film}", f"b{film}")
        elif kind == "face":
            options["look"] = "drawbox=x=iw*0.3:y=ih*0.2:w=iw*0.35:h=ih*0.5:color=0x806040:t=fill"
        elif kind == "caption":
            options["look"] = "drawbox=x=40:y=ih-50:w=220:h=26:color=white@0.9:t=fill"
        elif kind == "burned subtitles":
            start = rng.uniform(1, 8)
            font = "fontsize=h/16:fontcolor=white:borderw=1:x=(w-tw)/2:y=h*0.86"
            shown = f"enable='between(t,{start:.1f},{start + 3:.1f})'"
            options["look"] = f"drawtext=text='some words that are said':{font}:{shown}"
        elif kind == "frames":
            content, options["rate"] = replace(content, rate=2 * RATE), 2 * RATE
        elif kind in ("subtitles", "chapters", "date"):
            content, options["extra"] = replace(content, extras=frozenset({f"{kind} {film}"})), kind
        elif kind == "no sound":
            voice, height, options["quality"] = (), self.height, 14
        if "look" in options:
            content = replace(content, pieces=content.pieces | {f"{kind} {film}"}, clean=False)
        content = replace(content, height=height, sounds=frozenset(voice))
        suffix = ".mkv" if kind in ("subtitles", "two languages", "chapters") else ".mp4"
        self._write(film, content, more, sounds=voice, suffix=suffix, **options)

    def _draw_piece(self, low: float, high: float) -> Piece:
        while True:
            source = self.free.pop(self.random.randrange(len(self.free)))
            if self.footage[source] >= low + 0.3:
                length = round(self.random.uniform(low, min(high, self.footage[source] - 0.2)) * RATE) / RATE
                start = round(self.random.uniform(0, self.footage[source] - length - 0.1), 2)
                piece = Piece(source, start, length)
                if read_length(self._write_piece(piece)) >= length - 0.1:
                    return piece

    def _write_piece(self, piece: Piece) -> Path:
        name = f"{Path(piece.source).stem}_{piece.start:.2f}_{piece.length:.2f}.mkv"
        path = self.work / "pieces" / name
        if not path.exists():
            size = f"{self.height * 16 // 9}:{self.height}"
            look = f"scale={size}:force_original_aspect_ratio=decrease,pad={size}:-1:-1,setsar=1"
            shown = ["-vf", f"{look},fps={2 * RATE},format=yuv420p", "-frames:v", round(piece.length * 2 * RATE)]
            code = ["-c:v", "libx264", "-qp", 8, "-preset", "ultrafast"]
            run_ffmpeg("-ss", f"{piece.start:.2f}", "-i", piece.source, "-an", *shown, *code, path)
        return path

    def _write(
        self,
        film: int,
        content: Content,
        pieces: Sequence[Piece],
        *,
        sounds: Sequence[str],
        look: str = "",
        quality: int = 20,
        suffix: str = ".mp4",
        rate: int = RATE,
        extra: str = "",
        cut: float = 0.0,
    ) -> None:
        name = f"f{film}_{content.kind.replace(' ', '_')}{suffix}"
        files = [self._write_piece(piece) for piece in pieces]
        total = sum(piece.length for piece in pieces)
        words: list[object] = [word for file in files for word in ("-i", file)]
        shown = f",{look}" if look else ""
        chain = "".join(f"[{number}:v]" for number in range(len(files)))
        chain += f"concat=n={len(files)},fps={rate},scale=-2:{content.height}{shown}[v]"
        maps: list[object] = ["-map", "[v]"]
        for number, voice in enumerate(sounds):
            words += ["-f", "lavfi", "-i", f"aevalsrc='{_tone(voice)}':d={total:.2f}:s=22050"]
            maps += ["-map", f"{len(files) + number}:a"]
        tags: list[object] = ["-metadata", "creation_time=2019-05-04T10:11:12Z"] if extra == "date" else []
        if extra in ("subtitles", "chapters"):
            words += ["-i", self._write_text(extra, film)]
            taken = len(files) + len(sounds)
            maps += ["-map", f"{taken}:s"] if extra == "subtitles" else ["-map_chapters", taken]
        code = ["-c:v", "libx264", "-crf", quality, "-preset", self.preset, "-pix_fmt", "yuv420p", "-c:a", "aac"]
        begin = ["-ss", f"{cut:.2f}"] if cut else []
        run_ffmpeg(*words, "-filter_complex", chain, *maps, *code, *tags, *begin, self.videos / name)
        self.truth[name] = content

    def _write_text(self, kind: str, film: int) -> Path:
        path = self.work / "pieces" / f"{kind}{film}.{'srt' if kind == 'subtitles' else 'txt'}"
        lines = (
            f"1\n00:00:01,000 --> 00:00:03,000\nfilm {film} one\n\n2\n00:00:04,000 --> 00:00:06,000\nfilm {film} two\n"
        )
        chapters = ";FFMETADATA1\n" + "".join(
            f"[CHAPTER]\nTIMEBASE=1/1\nSTART={start}\nEND={start + 4}\ntitle=part {start}\n" for start in (0, 4, 8)
        )
        path.write_text(lines if kind == "subtitles" else chapters)
        return path


def _tone(name: str) -> str:
    rng = random.Random(name)
    return "+".join(
        f"0.2*sin(2*PI*{rng.randint(150, 900)}*t)"
        f"*gt(sin(2*PI*{rng.uniform(0.2, 1.5):.2f}*t+{rng.uniform(0, 6):.1f}),0.2)"
        for _ in range(3)
    )


def ask(
    number: int, out: Path, seed: int, footage: Mapping[str, float], *, quick: bool
) -> tuple[int, list[str], list[str], list[str]]:
    """Make a library and request a plan; return planned files, wrong kinds, copies and missed copies."""
    library = Library(out, seed, number, footage, quick=quick)
    library.make()
    index, plan = library.work / "library.vidkin", library.work / "plan.json"
    vidkin = [sys.executable, "-m", "vidkin"]
    subprocess.run([*vidkin, "index", str(library.videos), "--index", str(index), "-q"], check=True)
    subprocess.run(
        [*vidkin, "duplicates", "--index", str(index), "--plan", str(plan), "-q"], check=True, stdout=subprocess.DEVNULL
    )
    removed = {Path(path).name for path in _removed(json.loads(plan.read_text()))}
    truth = library.truth
    stays = [content for name, content in truth.items() if name not in removed]
    lost = [name for name in sorted(removed) if not any(content.has_all_of(truth[name]) for content in stays)]
    copies = [name for name, content in truth.items() if content.kind in COPIES]
    # Either of two equivalent files may be removed.
    missed = [name for name in copies if name not in removed and f"{name.split('_')[0]}_film.mp4" not in removed]
    print(
        f"{library.work.name}: {len(truth)} files, {len(removed)} planned, lost {lost}, missed {missed}",
        flush=True,
    )
    shutil.rmtree(library.work / "pieces")
    if not lost and not missed:
        shutil.rmtree(library.work)
    return len(removed), [truth[name].kind for name in lost], copies, [truth[name].kind for name in missed]


def _removed(table: Mapping[str, Any]) -> Iterator[str]:
    for group in table["groups"]:
        yield from (file["path"] for file in group["remove"])


def sum_up(results: Iterable[tuple[int, list[str], list[str], list[str]]]) -> dict[str, Any]:
    """Aggregate the results of all libraries."""
    found = list(results)
    lost = Counter(kind for _, kinds, _, _ in found for kind in kinds)
    missed = Counter(kind for _, _, _, kinds in found for kind in kinds)
    copies = sum(len(result[2]) for result in found)
    return {
        "libraries": len(found),
        "planned": sum(result[0] for result in found),
        "planned_with_something_of_their_own": sum(lost.values()),
        "of_kinds": dict(lost),
        "removable": copies,
        "removable_planned": copies - sum(missed.values()),
        "not_planned": dict(missed),
    }


def add_figures(file: Path, figures: Mapping[str, Any]) -> None:
    """Add a run to those in a file, replace a run of the same libraries, and aggregate."""
    runs = json.loads(file.read_text())["runs"] if file.exists() else []
    runs = [run for run in runs if (run["seed"], run["first"]) != (figures["seed"], figures["first"])]
    runs.append(dict(figures))
    counts = ("libraries", "planned", "planned_with_something_of_their_own", "removable", "removable_planned")
    together: dict[str, Any] = {name: sum(run[name] for run in runs) for name in counts}
    for name in ("of_kinds", "not_planned"):
        together[name] = dict(sum((Counter(run[name]) for run in runs), Counter[str]()))
    file.write_text(json.dumps({"together": together, "runs": runs}, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--libraries", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first library")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="use smaller and shorter films and faster encoding")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    wish = parser.parse_args()
    wish.out.mkdir(parents=True, exist_ok=True)
    footage = find_footage(wish.folders, wish.out / "footage.json")
    numbers = range(wish.first, wish.first + wish.libraries)
    with ProcessPoolExecutor(wish.jobs) as pool:
        figures = sum_up(
            pool.map(partial(ask, out=wish.out, seed=wish.seed, footage=footage, quick=wish.quick), numbers)
        )
    figures = {
        "seed": wish.seed,
        "first": wish.first,
        "quick": wish.quick,
        "folders": [folder.name for folder in wish.folders],
        "machine": describe_machine(),
        **figures,
    }
    print(json.dumps(figures, indent=1))
    if wish.output is not None:
        add_figures(wish.output, figures)
    return 1 if figures["planned_with_something_of_their_own"] else 0


if __name__ == "__main__":
    sys.exit(main())
