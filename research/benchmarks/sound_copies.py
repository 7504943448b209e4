"""Accuracy and cost of audio matching: edited clips, offsets, unrelated pairs and search time.

    python research/benchmarks/sound_copies.py FOLDER... [--clips 7] [--pairs 500000] [--tracks 10000]
        [--spoken FOLDER FOLDER...]... [--pieces FOLDER...]

FOLDER contains sounds, or videos with sound, of different recordings; research/sound.md lists those used. Clips are cut
by the FFmpeg of the package imageio-ffmpeg and edited (`SOUND_EDITS`, as in `vidkin benchmark copies`) in a temporary
folder. --spoken takes the folders of one language, one per speaker: sounds with the same name have the same text; text
lists in them ("name: text" in .txt.gz) identify takes of one text by one speaker. --pieces takes folders with MIDI
music and two soundfonts, which the program fluidsynth renders (`PERFORMANCES`). Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from numpy.typing import NDArray

from _performances import PERFORMANCES, PLAYED, find_pieces, play
from vidkin.errors import MediaError
from vidkin.features.sound import describe_sound
from vidkin.index.storage.opening import LocalPlace
from vidkin.index.storage.sound_files import SoundFiles, SoundSearch
from vidkin.media.sound import Listener, SoundTrack, iter_sound
from vidkin.similarity import UNRELATED
from vidkin.similarity.sound import SOUND_RATE, STEPS_A_SECOND, PairTable, SoundFeatures, SoundScore, compare_sounds
from vidkin_research.copies.sound_edits import SOUND_EDITS, edit_sound

# Length of a clip, and of a segment that is compared or searched for, in seconds.
_CLIP, _LENGTH = 30.0, 10.0


def main() -> None:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--clips", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--tracks", type=int, default=0)
    parser.add_argument("--spoken", nargs="+", type=Path, action="append", default=[])
    parser.add_argument("--pieces", nargs="+", type=Path, default=[])
    parser.add_argument("--output", type=Path, help="Also write the results to this JSON file.")
    options = parser.parse_args()
    files = sorted(file for folder in options.folders for file in folder.rglob("*") if file.is_file())
    random.Random(0).shuffle(files)
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as work:
        if options.clips and files:
            figures["edits"] = measure_edits(cut_clips(files, options.clips, Path(work)))
        if options.pieces:
            figures["other performances of one piece"] = measure_performances(options.pieces, Path(work))
    if options.spoken:
        figures |= measure_spoken(options.spoken)
    if options.pairs or options.tracks:
        parts = [part for file in deduplicate(files) for part in parts_of(file)]
        if options.pairs:
            figures["unrelated"] = measure_unrelated(parts, options.pairs)
        if options.tracks:
            figures["search"] = measure_search([part.sound for part in parts], options.tracks)
    print(json.dumps(figures))
    if options.output is not None:
        options.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def ffmpeg(arguments: Sequence[str]) -> bool:
    """Run FFmpeg; return whether it succeeded."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *arguments]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def cut_clips(files: Sequence[Path], count: int, work: Path) -> list[Path]:
    """Cut a 30 s segment from each of this many files with enough sound."""
    clips: list[Path] = []
    for file in files:
        clip = work / f"{len(clips)}.wav"
        if len(clips) < count and ffmpeg(["-ss", "8", "-i", str(file), "-t", str(_CLIP), "-ar", "44100", str(clip)]):
            try:
                if len(describe_sound(clip)[0]) > 10 * _CLIP:
                    clips.append(clip)
            except MediaError:
                continue
    return clips


def make_edit(clip: Path, other: Path, name: str) -> Path:
    """Apply an edit of `vidkin benchmark copies` to a clip."""
    made = clip.with_name(f"{clip.stem}.{list(SOUND_EDITS).index(name)}.m4a")
    edit_sound(clip, made, SOUND_EDITS[name], other=other)
    return made


def measure_edits(clips: Sequence[Path]) -> dict[str, object]:
    """mAP and micro-AP of clips among all edits of all clips, offset errors in seconds, and low scores."""
    sounds = [describe_sound(clip)[0] for clip in clips]
    gallery = []
    for number, clip in enumerate(clips):
        other = (number + 1) % len(clips)
        for name in SOUND_EDITS:
            made = make_edit(clip, clips[other], name)
            hidden = other if name == "other sound over it" else -1
            gallery.append((number, name, hidden, describe_sound(made)[0]))
    table = PairTable.of([sound for *_, sound in gallery])
    scores = np.zeros((len(clips), len(gallery)))
    errors: dict[str, list[float]] = {name: [] for name in SOUND_EDITS}
    low: list[str] = []
    for number, sound in enumerate(sounds):
        lines = table.lines(sound, limit=len(gallery))
        for place, (source, name, _, edit) in enumerate(gallery):
            found = compare_sounds(sound, edit, lines[place]) if place in lines else SoundScore(0.0)
            scores[number, place] = found.score
            if source != number:
                continue
            if found.score < 0.7:
                low.append(f"{clips[number].name} {name} {found.score:.2f}")
            if found.segments:
                segment, made = found.segments[0], SOUND_EDITS[name]
                middle = (segment.query_start + segment.query_end) / 2
                expected = (middle - made.start) / made.speed
                errors[name].append(abs((segment.target_start + segment.target_end) / 2 - expected))
    relevant = np.array([[source == number for source, *_ in gallery] for number in range(len(clips))])
    neutral = np.array([[hidden == number for _, _, hidden, _ in gallery] for number in range(len(clips))])
    counted = ~neutral
    precisions = [ap(scores[row][counted[row]], relevant[row][counted[row]]) for row in range(len(clips))]
    return {
        "clips": len(clips),
        "edits": len(gallery),
        "map": float(np.mean(precisions)),
        "micro_ap": ap(scores[counted], relevant[counted]),
        "below_0.7": low,
        "unrelated_highest": float(scores[counted & ~relevant].max(initial=0.0)),
        "offset_median": float(np.median([error for name in errors for error in errors[name]])),
        "offsets": {name: round(float(np.median(errors[name])), 4) for name in errors if errors[name]},
    }


def ap(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
    """Average precision of a ranking."""
    order = np.argsort(-scores, kind="stable")
    hits = relevant[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / max(hits.sum(), 1))


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of a file, with times relative to its start."""

    file: Path
    start: float
    sound: SoundFeatures


# Minimum length of a sound in seconds, and maximum number of segments per file.
_SHORTEST, _STRETCHES = 3.0, 3


def deduplicate(files: Iterable[Path]) -> list[Path]:
    """Remove files with identical content: packages link one sound under several names."""
    known: dict[str, Path] = {}
    for file in files:
        known.setdefault(hashlib.sha256(file.read_bytes()).hexdigest(), file)
    return list(known.values())


def parts_of(file: Path, seconds: float = _LENGTH) -> list[Part]:
    """Landmarks of the first segments of a file, without quiet ones; a file shorter than 10 s is a single segment."""
    try:
        (sound, *_) = describe_sound(file, end=seconds * _STRETCHES)
    except (MediaError, ValueError):
        return []
    if sound.length < _SHORTEST:
        return []
    parts = []
    for number in range(max(1, int(sound.length / seconds))):
        part = sound.between(number * seconds, (number + 1) * seconds)
        length = part.length - number * seconds
        if len(part) > 10 * length:
            times = part.times - np.int32(number * seconds * STEPS_A_SECOND)
            parts.append(Part(file, number * seconds, replace(part, times=times, length=length)))
    return parts


# Waveform correlation from which two sounds are the same recording, seconds compared at a time, and number of random
# pairs that provide the chance level.
_ONE_WAVE, _SECONDS_OF_WAVE, _DRAWN = 0.5, 1.5, 100


@dataclass
class Verdicts:
    """Results on pairs that are not copies.

    Attributes:
        pairs: Number of pairs.
        above: Score, waveform correlation and names of the pairs that reach `UNRELATED`.
        highest: The highest score of the other pairs.
    """

    pairs: int = 0
    above: list[tuple[float, float, str]] = field(default_factory=list)
    highest: float = 0.0

    def add(self, one: Part, other: Part, score: float) -> None:
        """Add the score of a pair and, if it is high, the waveform correlation.

        The correlation tells whether the two share a recording, as game tracks share passages and the menu sounds of a
        speaker share sentences.
        """
        if score < UNRELATED:
            self.highest = max(self.highest, score)
            return
        names = f"{one.file.name} {one.start:.0f} s, {other.file.name} {other.start:.0f} s"
        self.above.append((round(score, 2), round(correlate(one, other), 2), names))

    def figures(self) -> dict[str, object]:
        """Convert to JSON."""
        unexplained = [entry for entry in self.above if entry[1] < _ONE_WAVE]
        return {
            "pairs": self.pairs,
            "above_0.2": len(self.above),
            "above_0.2_of_one_wave": len(self.above) - len(unexplained),
            "above_0.2_of_other_waves": sorted(unexplained, reverse=True),
            "highest_below": self.highest,
        }


def measure_unrelated(parts: Sequence[Part], pairs: int) -> dict[str, object]:
    """Scores of segments from different files, for this many pairs, each scored by table lookup as in a search."""
    table = PairTable.of([part.sound for part in parts])
    verdicts = Verdicts()
    order = random.Random(1).sample(range(len(parts)), len(parts))
    for number in order:
        if verdicts.pairs >= pairs:
            break
        part = parts[number]
        for place, lines in table.lines(part.sound, limit=len(parts)).items():
            if parts[place].file != part.file:
                verdicts.add(part, parts[place], compare_sounds(part.sound, parts[place].sound, lines).score)
        verdicts.pairs += sum(other.file != part.file for other in parts)
    drawn = random.Random(3)
    chance = [correlate(*drawn.sample(parts, 2)) for _ in range(_DRAWN)]
    return {
        "files": len({part.file for part in parts}),
        "stretches": len(parts),
        **verdicts.figures(),
        "correlation_by_chance": {"median": float(np.median(chance)), "highest": max(chance)},
    }


def measure_spoken(languages: Sequence[Sequence[Path]]) -> dict[str, object]:
    """Scores of the same text by different speakers, and of takes of one text by one speaker."""
    speakers, takes = Verdicts(), Verdicts()
    for folders in languages:
        heard: list[dict[str, Part]] = []
        for folder in folders:
            names: dict[str, list[Path]] = defaultdict(list)
            for file in sorted(folder.rglob("*")):
                if file.suffix in {".wav", ".gsm", ".ogg", ".flac", ".mp3"}:
                    names[file.stem].append(file)
            sounds = {name: list(whole_of(files[0])) for name, files in names.items() if len(files) == 1}
            heard.append({name: sound for name, (sound, *_) in ((n, s) for n, s in sounds.items() if s)})
            for group in texts_of(folder):
                score_pairs(takes, combinations([heard[-1][name] for name in group if name in heard[-1]], 2))
        for one, other in combinations(heard, 2):
            score_pairs(speakers, ((one[name], other[name]) for name in one if name in other))
    return {
        "other speakers of one text": speakers.figures(),
        "other takes of one speaker": takes.figures(),
    }


def texts_of(folder: Path) -> list[list[str]]:
    """Group the names of sounds with the same text of at least four words, from the lists in a folder."""
    texts: dict[str, list[str]] = defaultdict(list)
    for file in sorted(folder.rglob("*.txt.gz")):
        for line in gzip.decompress(file.read_bytes()).decode(errors="replace").splitlines():
            name, _, text = line.partition(":")
            words = "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
            if len(words) >= 4 and not name.startswith(";"):
                texts[" ".join(words)].append(name.strip().rpartition("/")[2])
    return [names for names in texts.values() if len(names) > 1]


def measure_performances(paths: Sequence[Path], work: Path, most: int = 12) -> dict[str, object]:
    """Scores of pieces with other performances, by kind of variation, on a sample of all pieces."""
    pieces, fonts = find_pieces(paths)
    verdicts = {name: Verdicts() for name in PERFORMANCES}
    for number, piece in enumerate(random.Random(4).sample(pieces, min(most, len(pieces)))):
        played = list(whole_of(play(piece, PLAYED, fonts, work / f"{number}.wav")))
        for place, (name, performance) in enumerate(PERFORMANCES.items()):
            others = whole_of(play(piece, performance, fonts, work / f"{number}.{place}.wav"))
            score_pairs(verdicts[name], ((one, other) for one in played for other in others))
    return {name: found.figures() for name, found in verdicts.items()}


def whole_of(file: Path) -> Iterator[Part]:
    """Landmarks of an entire sound, if it is at least 3 s long."""
    try:
        (sound, *_) = describe_sound(file)
    except (MediaError, ValueError):
        return
    if sound.length >= _SHORTEST and len(sound):
        yield Part(file, 0.0, sound)


def score_pairs(verdicts: Verdicts, pairs: Iterable[tuple[Part, Part]]) -> None:
    """Score pairs like `vidkin match`."""
    for one, other in pairs:
        verdicts.pairs += 1
        verdicts.add(one, other, compare_sounds(one.sound, other.sound).score)


def correlate(one: Part, other: Part) -> float:
    """Maximum correlation of segments of 1.5 s from one part with the other part, in [0, 1]."""
    first, second = (wave_of(part) for part in (one, other))
    piece = round(_SECONDS_OF_WAVE * SOUND_RATE)
    best = 0.0
    size = 1 << (len(second) + piece).bit_length()
    spectrum = np.fft.rfft(second, size)
    energy = np.concatenate([[0.0], np.cumsum(second.astype(np.float64) ** 2)])
    for begin in range(0, len(first) - piece + 1, piece // 2):
        wanted = first[begin : begin + piece]
        power = float((wanted.astype(np.float64) ** 2).sum())
        found = np.fft.irfft(spectrum * np.conj(np.fft.rfft(wanted, size)), size)[: len(second) - piece + 1]
        there = energy[piece:] - energy[: len(energy) - piece]
        loud = there > 1e-3 * there.max()
        if power > 0 and loud.any():
            best = max(best, float(np.abs(found[loud] / np.sqrt(power * there[loud])).max()))
    return best


def wave_of(part: Part) -> NDArray[np.float32]:
    """Samples of a segment, at `SOUND_RATE`."""
    seconds = part.sound.length
    wave = np.zeros(round(seconds * SOUND_RATE), np.float32)
    first = round(part.start * SOUND_RATE)

    def listen(number: int, samples: NDArray[np.float32]) -> None:
        begin, end = max(number, first), min(number + len(samples), first + len(wave))
        if begin < end:
            wave[begin - first : end - first] = samples[begin - number : end - number]

    def open_listener(track: SoundTrack) -> Listener:
        return listen if track.number == 0 else lambda number, samples: None

    iter_sound(part.file, open_listener, end=part.start + seconds)
    return wave


def measure_search(parts: Sequence[SoundFeatures], tracks: int) -> dict[str, object]:
    """CPU time of searching for 10 s in a table of this many tracks of one minute."""
    drawn = random.Random(2)
    made = []
    for _ in range(tracks):
        chosen = [drawn.choice(parts) for _ in range(6)]
        times = [part.times + np.int32(place * 10 * STEPS_A_SECOND) for place, part in enumerate(chosen)]
        columns = [np.concatenate([getattr(part, name) for part in chosen]) for name in ("pitches", "strong")]
        made.append(SoundFeatures(np.concatenate(times), *columns, length=60.0))
    began = time.process_time()
    table = PairTable.of(made)
    building = time.process_time() - began
    queries = [drawn.choice(parts) for _ in range(20)]
    table.lines(queries[0], limit=30)
    began = time.process_time()
    for query in queries:
        for number, lines in table.lines(query, limit=30).items():
            compare_sounds(query, made[number], lines)
    size = table.offsets.nbytes + table.positions.nbytes
    return {
        "tracks": tracks,
        "seconds_a_query": (time.process_time() - began) / len(queries),
        "table_seconds": building,
        "table_mb_an_hour": size / 1e6 / (tracks / 60),
        "landmarks_mb_an_hour": sum(4 * len(sound) for sound in made) / 1e6 / (tracks / 60),
        **measure_growth(made, queries),
    }


# Number of tracks added one at a time to a table of all others.
_ADDED = 20


def measure_growth(made: Sequence[SoundFeatures], queries: Sequence[SoundFeatures]) -> dict[str, object]:
    """CPU time and bytes for adding one track to the table of an index with all others, and CPU time of a search.

    The search uses the resulting table and reads landmarks from files.
    """
    names = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(len(made))]
    with tempfile.TemporaryDirectory() as folder:
        files = SoundFiles(LocalPlace(Path(folder)))
        for name, sound in zip(names[:-_ADDED], made, strict=False):
            files.write(name, (sound,))
        began = time.process_time()
        files.update(names[:-_ADDED])
        whole = time.process_time() - began
        seconds, written = [], []
        for count in range(len(names) - _ADDED + 1, len(names) + 1):
            before = {path.name for path in Path(folder).rglob("*.pairs")}
            files.write(names[count - 1], (made[count - 1],))
            began = time.process_time()
            files.update(names[:count])
            seconds.append(time.process_time() - began)
            new = [path for path in Path(folder).rglob("*.pairs") if path.name not in before]
            written.append(sum(path.stat().st_size for path in new))
        search = SoundSearch(LocalPlace(Path(folder)))
        search.find([queries[0]])
        began = time.process_time()
        for query in queries:
            search.find([query])
        asking = time.process_time() - began
        return {
            "whole_table_seconds": whole,
            "add_one_seconds": {"median": float(np.median(seconds)), "highest": max(seconds)},
            "add_one_mb": {"median": float(np.median(written)) / 1e6, "highest": max(written) / 1e6},
            "parts": len(list(Path(folder).rglob("*.pairs"))),
            "seconds_a_query_with_files": asking / len(queries),
        }


if __name__ == "__main__":
    main()
