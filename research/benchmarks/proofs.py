"""Accuracy and cost of copy verification on real copies, enlargements and other recordings.

    python research/benchmarks/proofs.py WORK [--data FOLDER] [--half develop|held-out] [--sources N] \
        [--output FILE.json]

Ten seconds of each source are copied with ffmpeg in the way that people and messengers do. By kind, the output lists
copies verified to be contained in their source, sources that would be removed in favor of a smaller copy or a sharpened
enlargement, and similar clips mistaken for copies. CPU time is relative to decoding both files once. Requires the
program ffmpeg.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import av

from _halves import half_of
from vidkin.files.proof import prove
from vidkin.index import compare, prove_pair
from vidkin.media import probe
from vidkin.similarity import Segment

SECONDS = 10
X264 = ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "veryfast")
# Kind -> filter and encoder options of a copy without content of its own.
COPIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "re-encoded": ("null", (*X264, "-crf", "26")),
    "hard compressed": ("null", (*X264, "-crf", "34")),
    "smaller by .8": ("scale=trunc(iw*0.4)*2:trunc(ih*0.4)*2", (*X264, "-crf", "29")),
    "smaller by .66": ("scale=trunc(iw*0.33)*2:trunc(ih*0.33)*2", (*X264, "-crf", "29")),
    "smaller by .5": ("scale=trunc(iw*0.25)*2:trunc(ih*0.25)*2", (*X264, "-crf", "29")),
    "gray": ("hue=s=0", (*X264, "-crf", "24")),
    "mirrored": ("hflip", (*X264, "-crf", "24")),
    "letterboxed": ("pad=iw:trunc(ih*0.65)*2:-1:-1", (*X264, "-crf", "24")),
    "trimmed": ("trim=start=1.13,setpts=PTS-STARTPTS", (*X264, "-crf", "24")),
    "VP9": ("null", ("-c:v", "libvpx-vp9", "-crf", "36", "-b:v", "0", "-cpu-used", "8", "-deadline", "realtime")),
}
ENLARGEMENTS = {
    "x1.5 lanczos, sharpened": "scale=trunc(iw*0.75)*2:trunc(ih*0.75)*2:flags=lanczos,unsharp=5:5:1.0",
    "x2 bicubic, sharpened": "scale=iw*2:ih*2:flags=bicubic,unsharp=7:7:1.2",
}


def run_ffmpeg(*words: object) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, words)], check=True)


def make_source(path: Path, work: Path) -> Path:
    """Write ten seconds of a video at high quality, with an even size and no sound."""
    made = work / f"{path.parent.name}_{path.stem}_source.mp4"
    if not made.exists():
        look = "scale=trunc(iw/2)*2:trunc(ih/2)*2"
        run_ffmpeg("-i", path, "-t", SECONDS, "-an", "-vf", look, *X264, "-crf", 17, made)
    return made


def prove_copies(source: Path, work: Path) -> Iterator[tuple[str, bool, bool, list[str]]]:
    """Yield kind, whether the copy is in its source, whether the source is in the copy, and the findings."""
    for kind, (look, code) in COPIES.items():
        suffix = ".webm" if kind == "VP9" else ".mp4"
        copy = work / f"{source.stem}_{kind.replace(' ', '_')}{suffix}"
        run_ffmpeg("-i", source, "-vf", look, *code, copy)
        there = prove_pair(str(source), str(copy))
        back = prove(copy, source, [segment.swapped() for segment in compare(copy, source).segments])
        yield kind, there.holds, back.holds, [finding.text for finding in there.findings]
        copy.unlink()
    remux = work / f"{source.stem}_container.mkv"
    run_ffmpeg("-i", source, "-c", "copy", remux)
    there = prove_pair(str(source), str(remux))
    yield "other container", there.holds, True, [finding.text for finding in there.findings]
    remux.unlink()


def prove_enlargements(source: Path, work: Path) -> Iterator[tuple[str, bool]]:
    """Yield kind and whether the source would be removed in favor of its enlargement."""
    for kind, look in ENLARGEMENTS.items():
        large = work / f"{source.stem}_large.mp4"
        run_ffmpeg("-i", source, "-vf", look, *X264, "-crf", 20, large)
        yield kind, prove_pair(str(large), str(source)).holds
        large.unlink()


def prove_others(paths: Sequence[Path]) -> Iterator[bool]:
    """Whether a clip is mistaken for a copy of the next ones by name, aligned at the start."""
    for one, other in itertools.pairwise(paths):
        length = min(probe(one).duration, probe(other).duration)
        yield prove(one, other, [Segment(0.0, length, 0.0, length, 0.9)]).holds


def measure_cost(path: Path, work: Path) -> dict[str, float]:
    """CPU time of verification relative to decoding both files once, for one minute at 720 lines."""
    source, copy = work / "cost_source.mp4", work / "cost_copy.mp4"
    loop = ("-stream_loop", -1, "-i", path, "-t", 60, "-an")
    run_ffmpeg(*loop, "-vf", "scale=1280:720,setsar=1", *X264, "-crf", 20, source)
    run_ffmpeg("-i", source, *X264, "-crf", 28, copy)
    segments = [Segment(0.0, 60.0, 0.0, 60.0, 1.0)]
    ratios = []
    for _ in range(3):
        begun = time.process_time()
        for file in (source, copy):
            with av.open(str(file)) as container:
                container.streams.video[0].thread_count = 1
                for _frame in container.decode(video=0):
                    pass
        decoded = time.process_time()
        prove(source, copy, segments, threads=1)
        ratios.append((time.process_time() - decoded) / (decoded - begun))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"times_decoding": sorted(ratios)[1], "peak_mib": peak}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("VIDKIN_DATA", "../shared/data")))
    parser.add_argument("--half", choices=("develop", "held-out"), default="held-out")
    parser.add_argument("--sources", type=int, default=18)
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    wish = parser.parse_args()
    wish.work.mkdir(parents=True, exist_ok=True)
    usable = half_of(wish.data, wish.half)
    chosen = usable[:: max(1, len(usable) // wish.sources)]
    sources = [make_source(path, wish.work) for path in chosen[: wish.sources]]
    proven, removed, made = Counter[str](), Counter[str](), Counter[str]()
    for source in sources:
        for kind, there, back, findings in prove_copies(source, wish.work):
            made[kind] += 1
            proven[kind] += there
            removed[kind] += back and kind.startswith("smaller")
            if not there:
                print(f"{source.stem}, {kind}: {'; '.join(findings[:3])}", flush=True)
    enlarged = [held for source in sources[:10] for _, held in prove_enlargements(source, wish.work)]
    clips = sorted((wish.data / "clips").glob("*.mp4")) + sorted((wish.data / "videos/intel").glob("*.mkv"))
    others = list(prove_others(clips))
    figures: dict[str, Any] = {
        "half": wish.half,
        "sources": [source.stem for source in sources],
        "copies": {kind: [proven[kind], count] for kind, count in made.items()},
        "copies_proven": round(sum(proven.values()) / max(sum(made.values()), 1), 3),
        "sources_removed_for_a_smaller_copy": [sum(removed.values()), 3 * len(sources)],
        "sources_removed_for_an_enlargement": [sum(enlarged), len(enlarged)],
        "other_clips_taken_for_copies": [sum(others), len(others)],
        "cost": measure_cost(sources[0], wish.work),
    }
    print(json.dumps(figures, indent=1))
    if wish.output is not None:
        wish.output.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
