"""Copy retrieval on real videos: each source edited as people edit, queries against all copies and distractors.

    python benchmarks/copy_retrieval.py FOLDER --work /tmp/copies
    python benchmarks/copy_retrieval.py FOLDER --work /tmp/copies \
        --extractor 'timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5' --weights W --whitening F

Sources: every video of at least 6 s is cut into pieces of at most 30 s. Queries: the pieces.
Gallery: every piece edited in every way that `vidkin.media.EDITS` knows, and all remaining videos as distractors, among
them real copies of sources (families, below). Relevant: a gallery video that shows some of the query's time of its
recording. Two protocols: `strict` counts other moments of the same recording (before the same fixed camera) as wrong;
`neutral` leaves them out of the list. The main figures leave out picture-in-picture and mirror, which are in the table.
Unrelated footage around excerpts and pictures in pictures is made of the videos shorter than 6 s.

Peers in the same run: pHash per frame (imagehash), and vPDQ where the package `vpdq` is installed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vidkin.experiments.copies import (
    CopyMaterial,
    Families,
    as_page,
    has_vpdq,
    make_copies,
    phash_scores,
    relevance_of,
    search_scores,
    summarize_copies,
    summarize_search,
    vpdq_scores,
)
from vidkin.rendering.machine import describe_machine


def main() -> None:
    given = parse_arguments()
    material = make_copies(
        given.folder,
        given.work,
        Families(alone=given.alone),
        distractors=given.distractors,
        sources=given.sources,
        left_out=given.leave_out,
    )
    truth = relevance_of(material)
    print(
        f"{len(material.queries)} queries, {len(material.gallery)} gallery videos, "
        f"{int((truth > 0).sum())} relevant pairs"
    )
    notes = [note_on_distractors(given, material)] if given.distractors else []
    if not given.no_peers and not has_vpdq():
        notes.append(
            "vPDQ left out: the package vpdq (built with FFmpeg's development files) is not installed."
        )
    results = {}
    for name, run in systems(given, material, truth).items():
        results[name] = run()
        print(
            name, json.dumps({k: v for k, v in results[name].items() if k != "edits"}, indent=1), flush=True
        )
    page = as_page(results, material, notes, machine=describe_machine())
    print(page)
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
        (given.output / f"{given.name}.md").write_text(page)
        (given.output / f"{given.name}.json").write_text(
            json.dumps({"machine": describe_machine(), "results": results, "notes": notes}, indent=1) + "\n"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="real videos")
    parser.add_argument("--work", type=Path, required=True, help="folder of copies and indexes")
    parser.add_argument("--extractor", default=None, help="a second extractor beside classical")
    parser.add_argument("--weights", type=Path, help="weights of the second extractor")
    parser.add_argument("--whitening", type=Path, help="whitening of the second extractor")
    parser.add_argument("--no-peers", action="store_true", help="measure vidkin alone")
    parser.add_argument("--alone", action="store_true", help="no two files of the folder show the same")
    parser.add_argument("--distractors", type=Path, nargs="+", default=[], help="folders of unrelated videos")
    parser.add_argument("--sources", type=int, help="at most this many sources; default all")
    parser.add_argument("--leave-out", nargs="+", default=[], help="names of files that are not used")
    parser.add_argument("--output", type=Path, help="folder for NAME.md and NAME.json")
    parser.add_argument("--name", default="copy_retrieval", help="name of the report")
    return parser.parse_args()


def systems(
    given: argparse.Namespace, material: CopyMaterial, truth: np.ndarray
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Name of a system -> what measures it."""
    chosen: dict[str, dict[str, Any]] = {"vidkin classical": {"extractor": "classical"}}
    if given.extractor:
        chosen[f"vidkin {given.extractor.partition('?')[0]}"] = {
            "extractor": given.extractor,
            "weights": given.weights,
            "whitening": given.whitening,
        }

    def measure_search(options: dict[str, Any]) -> dict[str, Any]:
        folder = given.work / f"{options['extractor'].partition('?')[0].replace(':', '-')}.vidkin"
        found = search_scores(material, folder, **options)
        np.save(folder / "scores.npy", found.scores)
        return summarize_search(found, truth, material)

    runs = {name: partial(measure_search, options) for name, options in chosen.items()}
    peers = {"pHash per frame": phash_scores} if not given.no_peers else {}
    if peers and has_vpdq():
        peers["vPDQ"] = vpdq_scores
    for name, score in peers.items():
        runs[name] = lambda score=score: summarize_copies(score(material), truth, material)
    return runs


def note_on_distractors(given: argparse.Namespace, material: CopyMaterial) -> str:
    without = f" without {', '.join(given.leave_out)}" if given.leave_out else ""
    others = ", ".join(path.name for path in given.distractors)
    recordings = len({query.recording for query in material.queries})
    return (
        f"Sources: {recordings} videos of `{given.folder.name}`{without}; distractors: the others, and {others}. "
        "Every file counts as a recording of its own."
    )


if __name__ == "__main__":
    main()
