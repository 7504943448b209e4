"""Copy retrieval on real videos: each source edited as people edit, queries against all copies and distractors.

    python research/benchmarks/copy_retrieval.py FOLDER --work /tmp/copies --half development
    python research/benchmarks/copy_retrieval.py --sources FOLDER --work /tmp/copies --size quick

Queries: clips of the longest recording of each family. Gallery: every query edited in every way that
`EDITS` knows, and all remaining videos, among them real copies of the sources. Relevant: a copy of the
query, or a real copy of its recording. Two protocols: `strict` counts other moments of the same recording (before the
same fixed camera) as wrong; `neutral` leaves them out. Unrelated footage around excerpts and beside insets is made of
the videos shorter than 6 s.

FOLDER is the collection that `vidkin_research.copies.halves.HALVES` divides: constants are chosen on the development
half, and the held-back half is for the end. --sources takes any folder of videos that show different things.

Peers in the same run: pHash per frame (imagehash), and vPDQ where the package `vpdq` is installed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from _material import SIZES, material_parser, open_material
from vidkin._base.values import as_json
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.page import as_image_page
from vidkin_research.copies.recordings import find_recordings
from vidkin_research.copies.report import as_page
from vidkin_research.copies.study import CopyStudy, choose_extractors, run_copy_study


def main() -> None:
    given = parse_arguments()
    recordings = open_material(given, left_out=given.leave_out)
    study = CopyStudy(
        size=SIZES[given.size],
        extractors=choose_extractors(given.extractor or [], weights=given.weights, whitening=given.whitening),
        peers=given.peers,
        threads=given.threads,
    )
    results = run_copy_study(
        study,
        recordings,
        given.work,
        distractors=[found for place in given.distractors for found in find_recordings(place)],
        machine=describe_machine(),
        on_progress=lambda done, total, what: print(f"\r{done} of {total}: {what:.60}\x1b[K", end="", flush=True),
    )
    half = f"the folder {given.sources.name}" if given.sources else f"the {given.half} half"
    page = as_page(results.report, notes=[f"Sources: {half}. Made by `python research/benchmarks/copy_retrieval.py`."])
    print(f"\r\x1b[K{page}")
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
        (given.output / f"{given.name}.md").write_text(page)
        (given.output / f"{given.name}.html").write_text(as_image_page(results))
        (given.output / f"{given.name}.json").write_text(json.dumps(as_json(results.report), indent=1) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = material_parser(__doc__, work="folder of copies and indexes")
    parser.add_argument(
        "--size",
        choices=SIZES,
        default="full",
        help="full: 4 clips of 20 s a recording, hours; small: 2 of 9 s, half an hour; quick: 6 clips, minutes",
    )
    parser.add_argument("--extractor", action="append", help="repeatable; 'default' is the default extractor")
    parser.add_argument("--weights", type=Path, help="weights of the last extractor")
    parser.add_argument("--whitening", type=Path, help="whitening of the last extractor")
    parser.add_argument("--peers", action="store_true", help="also measure pHash and vPDQ")
    parser.add_argument("--distractors", type=Path, nargs="+", default=[], help="folders of unrelated videos")
    parser.add_argument("--leave-out", nargs="+", default=[], help="names of files that are not used")
    parser.add_argument("--threads", type=int, default=2, help="copies that are made at the same time")
    parser.add_argument("--output", type=Path, help="folder for NAME.md, NAME.html and NAME.json")
    parser.add_argument("--name", default="copy_retrieval", help="name of the report")
    return parser.parse_args()


if __name__ == "__main__":
    main()
