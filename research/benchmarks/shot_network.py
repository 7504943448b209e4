"""Compare the default shot detector with others on a single sample of held-out videos, evaluated once.

    python research/benchmarks/shot_network.py --data DATA --edited EDITED --work FOLDER [--drawing N] [--share S] \
        [--detectors default transnetv2] [--output FILE.json]

Composes the videos that `python -m vidkin_research.cut_network judge --held-back` evaluates, and passes each to every
detector.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

from vidkin.rendering.machine import describe_machine
from vidkin_research.cut_network.judge import build_held_back, judge, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with clips, videos, labelled and photos")
    parser.add_argument("--edited", type=Path, required=True, help="folder of edited films and their truth.json")
    parser.add_argument("--work", type=Path, required=True, help="working folder for the composed videos")
    parser.add_argument("--detectors", nargs="+", default=["default"])
    parser.add_argument("--drawing", type=int, default=0, help="seed of the sample")
    parser.add_argument(
        "--share", type=float, default=1.0, help="number of composed videos, as a fraction of the default"
    )
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    work = given.work / f"held-back-{given.drawing}"
    videos = build_held_back(given.data, work, edited=given.edited, share=given.share, drawing=given.drawing)
    results: dict[str, object] = {
        "machine": describe_machine(), "drawing": given.drawing, "share": given.share, "videos": len(videos)
    }  # fmt: skip
    for name in given.detectors:
        results[name] = rows = judge(videos, partial(str, name))
        print(name, *show(rows), sep="\n")
    if given.output:
        given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
