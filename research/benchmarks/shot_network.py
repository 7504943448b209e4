"""The network of transitions next to other detectors: videos that its settings are chosen by, and those held back.

    python research/benchmarks/shot_network.py --data DATA --edited EDITED --work FOLDER \
        [--detectors default network transnetv2] [--leave-out NAME ...] [--output FILE.json]

Composes the videos that `python -m vidkin_research.cut_network judge` judges, with and without ``--held-back``, and
gives each to every detector.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

from vidkin.rendering.machine import describe_machine
from vidkin_research.cut_network.judge import build_held_back, build_judged, judge, show
from vidkin_research.cut_network.material import choose_sources


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of clips, videos, labelled and photos")
    parser.add_argument("--edited", type=Path, required=True, help="folder of edited films with truth.json")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is composed")
    parser.add_argument("--detectors", nargs="+", default=["default", "network"])
    parser.add_argument("--leave-out", nargs="*", default=[], help="names of more clips that hold cuts")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    left_out = Path(__file__).with_name("clips_with_cuts.txt").read_text(encoding="utf-8").split()
    _, chosen = choose_sources(given.data, [*left_out, *given.leave_out])
    parts = {
        "development": build_judged(chosen, given.work / "judged", edited=given.edited),
        "held back": build_held_back(given.data, given.work / "held-back", edited=given.edited),
    }
    results: dict[str, object] = {"machine": describe_machine()}
    for part, videos in parts.items():
        results[part] = scores = {name: judge(videos, partial(str, name)) for name in given.detectors}
        for name, rows in scores.items():
            print(part, name, *show(rows), sep="\n")
    if given.output:
        given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
