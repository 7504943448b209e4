"""Cost of verifying two long files: memory of a process that does nothing else, and CPU time relative to decoding.

    python research/benchmarks/long_proof.py WORK [--data FOLDER] [--hours 4] [--output FILE.json]

The two files are several hours long: concatenated clips, each shown in eight variants (mirrored, upside down, negative,
changed colors), so that no minute repeats, and a re-encoded copy. Requires the program ffmpeg.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import av

from vidkin.files.proof import prove
from vidkin.media import probe
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import Segment

LOOKS = ("null", "hflip", "vflip", "negate", "hue=h=90", "hflip,vflip", "hflip,negate", "vflip,hue=h=180")
SIZE = "scale=320:180,setsar=1,fps=25,format=yuv420p"
X264 = ("-an", "-c:v", "libx264", "-preset", "ultrafast", "-threads", "1")


def run_ffmpeg(*words: object) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, words)], check=True)


def make_pair(work: Path, clips: list[Path], hours: float) -> tuple[Path, Path]:
    """Make a film of this many hours and its copy; later runs reuse them."""
    film, copy = work / f"film_{hours:g}h.mp4", work / f"copy_{hours:g}h.mp4"
    if not copy.exists():
        pieces, seconds = [], 0.0
        for look in LOOKS:
            for clip in clips:
                if seconds >= hours * 3600:
                    break
                piece = work / f"piece{len(pieces):05d}.ts"
                if not piece.exists():  # continues an interrupted run
                    run_ffmpeg("-i", clip, "-vf", f"{look},{SIZE}", *X264, "-crf", 23, work / "part.ts")
                    (work / "part.ts").rename(piece)
                pieces.append(piece)
                seconds += probe(piece).duration
        (work / "pieces.txt").write_text("".join(f"file '{piece.name}'\n" for piece in pieces))
        run_ffmpeg("-f", "concat", "-i", work / "pieces.txt", "-c", "copy", film)
        for piece in pieces:
            piece.unlink()
        run_ffmpeg("-i", film, *X264, "-crf", 30, work / "part.mp4")
        (work / "part.mp4").rename(copy)
    return film, copy


def prove_alone(film: Path, copy: Path) -> None:
    """Verify the copy in this process and print the cost."""
    length = probe(copy).duration
    begun = time.process_time()
    proof = prove(film, copy, [Segment(0.0, length, 0.0, length, 1.0)], threads=1)
    figures = {
        "hours": round(2 * length / 3600, 2),
        "holds": proof.holds,
        "findings": [finding.text for finding in proof.findings[:5]],
        "processor_seconds": round(time.process_time() - begun, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(figures))


def time_decoding(*paths: Path) -> float:
    """CPU seconds for decoding these files once."""
    begun = time.process_time()
    for path in paths:
        with av.open(str(path)) as container:
            container.streams.video[0].thread_count = 1
            for _frame in container.decode(video=0):
                pass
    return time.process_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("VIDKIN_DATA", "../shared/data")))
    parser.add_argument("--hours", type=float, default=4.0, help="length of each file in hours")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    parser.add_argument("--alone", type=Path, nargs=2, help=argparse.SUPPRESS)
    wish = parser.parse_args()
    if wish.alone:
        prove_alone(*wish.alone)
        return 0
    wish.work.mkdir(parents=True, exist_ok=True)
    pair = make_pair(wish.work, sorted((wish.data / "clips").glob("*.mp4")), wish.hours)
    command = [sys.executable, __file__, str(wish.work), "--alone", *map(str, pair)]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    figures["times_decoding"] = round(figures["processor_seconds"] / time_decoding(*pair), 2)
    figures["machine"] = describe_machine()
    print(json.dumps(figures, indent=1))
    if wish.output is not None:
        wish.output.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
