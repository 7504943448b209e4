"""How well sound is found again: edits of clips, where they are, unrelated pairs, and what a search costs.

    python benchmarks/sound_copies.py FOLDER... [--clips 7] [--pairs 500000] [--tracks 10000]

FOLDER holds sounds, or videos with sound, of different recordings; docs/sound.md says which were used. Edits are made
by the FFmpeg of the package imageio-ffmpeg in a temporary folder. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.features.sound import describe_sound
from vidkin.similarity import UNRELATED
from vidkin.similarity.sound import STEPS_A_SECOND, PairTable, SoundFeatures, SoundScore, compare_sounds

# Seconds of a clip; name of an edit -> arguments of FFmpeg after the input, speed, and where its time 0 is in the clip.
_CLIP = 30.0
_EDITS: dict[str, tuple[list[str], float, float]] = {
    "copy": (["-b:a", "192k"], 1.0, 0.0),
    "32 kbit/s": (["-b:a", "32k"], 1.0, 0.0),
    "left channel": (["-af", "pan=mono|c0=c0"], 1.0, 0.0),
    "mono, 16 kHz": (["-ac", "1", "-ar", "16000"], 1.0, 0.0),
    "loud": (["-af", "acompressor=threshold=0.05:ratio=8,volume=6dB,treble=g=6"], 1.0, 0.0),
    "room": (["-af", "aecho=0.8:0.7:23|37|61|97:0.5|0.4|0.35|0.25,highpass=f=250,lowpass=f=5000"], 1.0, 0.0),
    "5 s": (["-ss", "11.37", "-t", "5"], 1.0, 11.37),
    "10 s": (["-ss", "7.777", "-t", "10"], 1.0, 7.777),
    **{f"tempo {speed}": (["-af", f"atempo={speed}"], speed, 0.0) for speed in (0.8, 1.25, 1.5, 2.0)},
    **{f"tape {speed}": (["-af", f"asetrate={round(44100 * speed)}"], speed, 0.0) for speed in (0.8, 1.25, 1.5, 2.0)},
    "noise at 10 dB": ([], 1.0, 0.0),
    "other sound over it": ([], 1.0, 0.0),
}


def main() -> None:
    """Measure, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--clips", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--tracks", type=int, default=0)
    options = parser.parse_args()
    files = sorted(file for folder in options.folders for file in folder.rglob("*") if file.is_file())
    random.Random(0).shuffle(files)
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as work:
        if options.clips:
            figures["edits"] = measure_edits(cut_clips(files, options.clips, Path(work)))
    if options.pairs or options.tracks:
        parts = [part for file in files for part in parts_of(file)]
        if options.pairs:
            figures["unrelated"] = measure_unrelated(parts, options.pairs)
        if options.tracks:
            figures["search"] = measure_search([part for _, part in parts], options.tracks)
    print(json.dumps(figures))


def ffmpeg(arguments: Sequence[str]) -> bool:
    """Run FFmpeg; whether it succeeded."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *arguments]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def cut_clips(files: Sequence[Path], count: int, work: Path) -> list[Path]:
    """Stretches of 30 s of so many files that have sound enough."""
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
    """An edit of a clip; loudness is made even first where another sound is mixed in."""
    made = clip.with_name(f"{clip.stem}.{list(_EDITS).index(name)}.m4a")
    even = "dynaudnorm=f=500:g=31"
    if name == "noise at 10 dB":
        mixed = f"[0]{even},volume=0.5[a];[1]volume=0.06[b];[a][b]amix=2:duration=first:normalize=0"
        ffmpeg(["-i", str(clip), "-f", "lavfi", "-i", "anoisesrc=d=30", "-filter_complex", mixed, str(made)])
    elif name == "other sound over it":
        mixed = f"[0]{even}[a];[1]{even}[b];[a][b]amix=2:duration=first"
        ffmpeg(["-i", str(clip), "-i", str(other), "-filter_complex", mixed, str(made)])
    else:
        ffmpeg(["-i", str(clip), *_EDITS[name][0], str(made)])
    return made


def measure_edits(clips: Sequence[Path]) -> dict[str, object]:
    """mAP and micro-AP of clips among all edits of all clips, errors of the offset in seconds, low scores."""
    sounds = [describe_sound(clip)[0] for clip in clips]
    gallery = []
    for number, clip in enumerate(clips):
        other = (number + 1) % len(clips)
        for name in _EDITS:
            made = make_edit(clip, clips[other], name)
            hidden = other if name == "other sound over it" else -1
            gallery.append((number, name, hidden, describe_sound(made)[0]))
    table = PairTable.of([sound for *_, sound in gallery])
    scores = np.zeros((len(clips), len(gallery)))
    errors: dict[str, list[float]] = {name: [] for name in _EDITS}
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
                segment, (_, speed, begin) = found.segments[0], _EDITS[name]
                middle = (segment.query_start + segment.query_end) / 2
                expected = (middle - begin) / speed
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
    """Average precision of a list."""
    order = np.argsort(-scores, kind="stable")
    hits = relevant[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / max(hits.sum(), 1))


def parts_of(file: Path, seconds: float = 10.0, most: int = 9) -> list[tuple[str, SoundFeatures]]:
    """Landmarks of stretches of a file, whose times begin at 0."""
    try:
        (sound, *_) = describe_sound(file, end=seconds * most)
    except (MediaError, ValueError):
        return []
    parts = []
    for number in range(int(sound.length / seconds)):
        part = sound.between(number * seconds, (number + 1) * seconds)
        if len(part) > 10 * seconds:
            times = part.times - np.int32(number * seconds * STEPS_A_SECOND)
            parts.append((str(file), replace(part, times=times, length=seconds)))
    return parts


def measure_unrelated(parts: Sequence[tuple[str, SoundFeatures]], pairs: int) -> dict[str, object]:
    """Scores of stretches of different files: so many pairs, each looked at by the table as a search does."""
    table = PairTable.of([part for _, part in parts])
    done, above, highest, worst = 0, 0, 0.0, ("", "")
    order = random.Random(1).sample(range(len(parts)), len(parts))
    for number in order:
        if done >= pairs:
            break
        file, part = parts[number]
        for place, lines in table.lines(part, limit=len(parts)).items():
            if parts[place][0] == file:
                continue
            score = compare_sounds(part, parts[place][1], lines).score
            above += score >= UNRELATED
            if score > highest:
                highest, worst = score, (Path(file).name, Path(parts[place][0]).name)
        done += sum(other != file for other, _ in parts)
    return {"pairs": done, "above_0.2": above, "highest": highest, "files": worst}


def measure_search(parts: Sequence[SoundFeatures], tracks: int) -> dict[str, object]:
    """Processor time of finding the lines of 10 s in a table of so many tracks of a minute."""
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
    }


if __name__ == "__main__":
    main()
