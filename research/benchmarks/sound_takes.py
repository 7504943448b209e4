"""Effect of sound on distinguishing takes of a static camera: doubts of `vidkin duplicates` with and without sound.

    python research/benchmarks/sound_takes.py --cameras VIDEO... --sounds FOLDER [--takes 6]

VIDEO is a recording by a static camera; its takes are segments of it. Since real takes with their own sound are not
available, each take gets the sound of another recording in FOLDER. A copy of each take, half the size and more
compressed, has the same sound. Indexes of all files with and without sound are searched for duplicates. Prints one line
of JSON: members of groups in doubt, the kinds of doubt, and the number of copies and takes that can be removed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import imageio_ffmpeg

from vidkin import Index
from vidkin.errors import MediaError
from vidkin.features.sound import describe_sound
from vidkin.index.duplicates.heard import DIFFERENT_SOUND
from vidkin.media import probe

_SECONDS = 10.0


def main() -> None:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cameras", nargs="+", type=Path, required=True)
    parser.add_argument("--sounds", type=Path, required=True)
    parser.add_argument("--takes", type=int, default=6)
    parser.add_argument("--output", type=Path, help="Also write the results to this JSON file.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        takes = make_takes(options.cameras, options.sounds, options.takes, Path(work))
        figures = {"takes": takes, "files": 2 * takes}
        for name, has_sound in (("without sound", False), ("with sound", True)):
            figures[name] = measure(Path(work), has_sound=has_sound)
    print(json.dumps(figures))
    if options.output is not None:
        options.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def make_takes(cameras: list[Path], sounds: Path, count: int, work: Path) -> int:
    """Write this many takes of each camera and a copy of each; return the number of takes."""
    loud = (file for file in sorted(sounds.rglob("*")) if file.is_file() and _is_loud(file))
    made = 0
    for camera in cameras:
        room = probe(camera).duration - _SECONDS
        for number in range(min(count, int((room + _SECONDS) / _SECONDS))):
            start = room * number / max(count - 1, 1)
            take, copy = (work / f"{camera.stem} {number}{kind}.mp4" for kind in ("", " copy"))
            given = ["-ss", f"{start}", "-t", f"{_SECONDS}", "-i", str(camera), "-ss", "15", "-i", str(next(loud))]
            written = ["-map", "0:v", "-map", "1:a", "-t", f"{_SECONDS}", "-c:a", "aac", "-shortest"]
            _ffmpeg([*given, *written, "-crf", "20", str(take)])
            smaller = ["-vf", "scale=trunc(iw/4)*2:trunc(ih/4)*2", "-crf", "28", "-c:a", "aac", "-b:a", "48k"]
            _ffmpeg(["-i", str(take), *smaller, str(copy)])
            made += 1
    return made


def measure(work: Path, *, has_sound: bool) -> dict[str, object]:
    """Index the takes and their copies, and count doubts."""
    with Index.open(work / f"{has_sound}.vidkin", create=True) as index:
        index.use_sound(has_sound)
        index.add([work], workers=2)
        groups = index.duplicates(prove=True)
    members = [member for group in groups for member in group.members if not member.best]
    doubts = Counter(member.doubt for member in members if member.doubt)
    # A file that would be removed in favor of another take: a false positive.
    wrong = [member.path for member in members if member.kept_by and take_of(member.path) != take_of(member.kept_by)]
    return {
        "groups": len(groups),
        "members": len(members),
        "removable": sum(member.is_proven for member in members),
        "removable of another take": len(wrong),
        "undecided": sum(count for doubt, count in doubts.items() if doubt != DIFFERENT_SOUND),
        "told apart by sound": doubts[DIFFERENT_SOUND],
        "doubts": dict(doubts),
    }


def take_of(path: str) -> str:
    """Name of the take of a file, without the suffix that marks a copy."""
    return Path(path).stem.removesuffix(" copy")


def _is_loud(file: Path) -> bool:
    try:
        (track, *_) = describe_sound(file, start=15.0, end=15.0 + _SECONDS)
    except (MediaError, ValueError):
        return False
    return len(track) > 10 * _SECONDS


def _ffmpeg(arguments: list[str]) -> None:
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *arguments], check=True)


if __name__ == "__main__":
    main()
