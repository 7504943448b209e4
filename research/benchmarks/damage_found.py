"""Detection of damaged files: files of many formats, overwritten, cut or truncated with a fixed seed.

    python research/benchmarks/damage_found.py [--mutations 25] [--seed 0] [--intact FOLDER...] [--list]

Every file has 150 frames of a camera moving over noise, a keyframe every 12 frames and, in most formats, sound. A
damaged file counts if it is still readable and more than 5 % of the source frames are missing, which means that no
decoded frame differs from them by less than 4 gray levels on average. It is detected if `vidkin info --videos` reports
damage. Intact files (the sources and the files in the folders given) must produce no report.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.index import Index
from vidkin.media import iter_frames

FRAMES, RATE, WIDTH, HEIGHT = 150, 25, 96, 64
# Container, video codec and audio codec ("" for none).
FORMATS = (
    ("mp4", "libx264", "aac"), ("mp4", "libx264,bf=0", ""), ("mp4", "libx265", "aac"), ("mp4", "mpeg4", ""),
    ("mp4", "libsvtav1", ""), ("mov", "prores_ks", "pcm_s16le"), ("mov", "mjpeg", ""), ("mkv", "libx264", "aac"),
    ("mkv", "libx265", ""), ("mkv", "ffv1", ""), ("webm", "libvpx", "libopus"), ("webm", "libvpx-vp9", ""),
    ("webm,live", "libvpx", ""), ("ts", "libx264", "aac"), ("ts", "mpeg2video", ""), ("mpg", "mpeg2video", "mp2"),
    ("mpg", "mpeg1video", ""), ("vob", "mpeg2video", "ac3"), ("avi", "mpeg4", "mp2"), ("avi", "mjpeg", "pcm_s16le"),
    ("avi", "huffyuv", ""), ("wmv", "wmv2", "wmav2"), ("wmv", "wmv1", ""), ("flv", "flv", "aac"),
    ("flv", "libx264", "aac"), ("nut", "ffv1", ""), ("gif", "gif", ""),
)  # fmt: skip
KINDS = ("noise", "zeros", "bytes missing", "cut off", "a few bytes")
# Mean difference in gray levels below which a decoded frame counts as a source frame.
LARGEST_DIFFERENCE = 4.0
# Files count if they lack more than this fraction of their frames.
SHARE_MISSING = 0.05


def camera(count: int) -> list[NDArray[np.uint8]]:
    """Generate frames [H, W, 3] of a camera moving over smooth noise, which has the detail of a photograph."""
    generator = np.random.default_rng(7)
    canvas = np.zeros((512, 512, 3))
    for size, weight in ((8, 1.0), (32, 0.6), (128, 0.35)):
        coarse = generator.uniform(0, 255, (size, size, 3))
        canvas += weight * np.kron(coarse, np.ones((512 // size, 512 // size, 1)))
    canvas = (canvas - canvas.min()) / np.ptp(canvas) * 255
    frames = []
    for number in range(count):
        y = int(200 + 180 * np.sin(number / 23))
        x = int(200 + 190 * np.sin(number / 31 + 1))
        frames.append(np.ascontiguousarray(canvas[y : y + HEIGHT, x : x + WIDTH].astype(np.uint8)))
    return frames


def write(path: Path, codec: str, sound: str, *, live: bool = False) -> None:
    """Write a video with `FRAMES` frames; ``live`` omits metadata that is only known at the end."""
    name, *options = codec.split(",")
    settings = {"g": "12"} | dict(option.split("=") for option in options)
    settings |= {"libvpx": {"deadline": "realtime", "cpu-used": "8"}, "libsvtav1": {"preset": "12"}}.get(name, {})
    with av.open(str(path), "w", options={"live": "1"} if live else {}) as container:
        video = container.add_stream(name, rate=RATE, options=settings)
        video.width, video.height = WIDTH, HEIGHT
        known = [known.name for known in video.codec.video_formats or ()] or ["yuv420p"]
        wanted = ("yuvj420p",) if name == "mjpeg" else ("yuv420p", "yuv422p10le", "rgb8")
        video.pix_fmt = next((each for each in wanted if each in known), known[0])
        audio = container.add_stream(sound, rate=48000, layout="stereo") if sound else None
        if audio is not None:
            audio.bit_rate = 96_000
        pieces: list[av.AudioFrame] = []
        for number, image in enumerate(camera(FRAMES)):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(video.encode(frame))
            if audio is not None:
                piece = av.AudioFrame.from_ndarray(
                    np.full((1, 2 * 1920), number % 7, np.int16), format="s16", layout="stereo"
                )
                piece.sample_rate, piece.pts, piece.time_base = 48000, 1920 * number, Fraction(1, 48000)
                pieces.append(piece)
                container.mux(audio.encode(piece))
        container.mux(video.encode())
        if audio is not None:
            container.mux(audio.encode())


def mutate(content: bytes, kind: str, generator: np.random.Generator) -> bytes:
    """Write a copy with this kind of damage, at a random position after the first 2 %."""
    size = len(content)
    start = int(generator.integers(size // 50, size))
    length = int(generator.integers(1, max(2, size // 8)))
    if kind == "noise":
        return content[:start] + generator.bytes(min(length, size - start)) + content[start + length :]
    if kind == "zeros":
        return content[:start] + bytes(min(length, size - start)) + content[start + length :]
    if kind == "bytes missing":
        return content[:start] + content[start + length :]
    if kind == "cut off":
        return content[: max(start, size // 10)]
    data = bytearray(content)
    for place in generator.integers(size // 50, size, 5):
        data[place] ^= int(generator.integers(1, 256))
    return bytes(data)


def small_pictures(path: Path) -> NDArray[np.float32]:
    """Decode every readable frame, as gray values [T, H x W]."""
    parts = [batch.images.mean(axis=-1) for batch in iter_frames(path, rate=None, threads=1, on_damage=lambda _: None)]
    sizes = {part.shape[1:] for part in parts}
    if sizes != {(HEIGHT, WIDTH)}:
        return np.zeros((0, HEIGHT * WIDTH), np.float32)
    return np.concatenate(parts).reshape(-1, HEIGHT * WIDTH).astype(np.float32)


def share_missing(source: NDArray[np.float32], path: Path) -> float | None:
    """Fraction of the source frames that a file lacks; None if the file cannot be read."""
    try:
        frames = small_pictures(path)
    except MediaError:
        return None
    if not len(frames):
        return 1.0
    there = [bool((np.abs(frames - picture).mean(axis=1) < LARGEST_DIFFERENCE).any()) for picture in source]
    return 1 - sum(there) / len(there)


def words(folder: Path, work: Path) -> dict[str, str]:
    """Return what an index reports for each readable file of a folder; "" for no report."""
    with Index.open(work, extractor="classical", create=True) as index:
        index.add([folder], workers=1)
        return {record.path: record.damage for record in index.videos() if record.status == "ok"}


def make(work: Path, mutations: int, seed: int) -> dict[str, float]:
    """Write the test files to ``work``; return the fraction of missing frames of each readable damaged file."""
    sources, damaged = work / "sources", work / "damaged"
    sources.mkdir(parents=True, exist_ok=True)
    damaged.mkdir()
    missing: dict[str, float] = {}
    for number, (ending, codec, sound) in enumerate(FORMATS):
        suffix, *live = ending.split(",")
        source = sources / f"{number:02}-{ending.replace(',', '-')}-{codec.split(',')[0]}.{suffix}"
        write(source, codec, sound, live=bool(live))
        pictures = small_pictures(source)
        for turn in range(mutations):
            kind = KINDS[turn % len(KINDS)]
            path = damaged / f"{source.stem}-{turn:02}-{kind.replace(' ', '-')}.{suffix}"
            path.write_bytes(mutate(source.read_bytes(), kind, np.random.default_rng([seed, number, turn])))
            share = share_missing(pictures, path)
            if share is not None:
                missing[str(path)] = share
    return missing


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=25, help="Number of damaged files per format.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--intact", type=Path, nargs="*", default=[], help="Folders of intact files.")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--list", action="store_true", help="List the damaged files that were not detected.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        missing = make(work, arguments.mutations, arguments.seed)
        said = words(work / "damaged", work / "damaged.vidkin")
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for path, share in sorted(missing.items()):
            if share <= SHARE_MISSING or path not in said:
                continue
            stem = Path(path).stem
            for key in ("all", _kind(stem), _format(stem)):
                counts[key][0] += bool(said[path])
                counts[key][1] += 1
            if arguments.list and not said[path]:
                print(f"not detected: {100 * share:3.0f} % missing: {Path(path).name}")
        alarms, whole = {}, 0
        for position, folder in enumerate([work / "sources", *arguments.intact]):
            found = words(folder, work / f"whole-{position}.vidkin")
            whole += len(found)
            alarms |= {path: word for path, word in found.items() if word}
    for key, (found_there, total) in counts.items():
        print(f"{key:<32} {found_there:>4} of {total:>4} found")
    print(f"false reports on intact files: {len(alarms)} of {whole}")
    for path, word in sorted(alarms.items()):
        print(f"  {path}: {word}")
    if arguments.output is not None:
        arguments.output.write_text(json.dumps({"found": counts, "alarms": alarms, "whole": whole}, indent=2) + "\n")


def _kind(stem: str) -> str:
    return next(kind for kind in KINDS if stem.endswith(kind.replace(" ", "-")))


def _format(stem: str) -> str:
    kind = _kind(stem).replace(" ", "-")
    return stem.removesuffix(f"-{kind}").rpartition("-")[0]


if __name__ == "__main__":
    main()
