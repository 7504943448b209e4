"""Index search on copies of one half of the sources: copies, unrelated videos, and other moments of one camera.

    python research/benchmarks/matching.py --data DATA --half development --work FOLDER [--output FILE]

The copies are those used to evaluate the frame encoder; unrelated videos and synthetic pages are added to the index.
Each query is compared with all videos of the index (``all``), and with those selected by the first stage of a search
(``search``). Strangers are unrelated videos and synthetic pages that are searched for among all videos. Other moments
are segments of one recording at least one segment apart.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vidkin import Index
from vidkin.media import probe, write_video
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.figures import CopyFigures, summarize_copies
from vidkin_research.copies.material import DISTRACTOR, CopyMaterial
from vidkin_research.copies.places import place_segments
from vidkin_research.copies.scores import PairScores
from vidkin_research.frame_encoder.drawn import draw_page
from vidkin_research.verifier.material import make_material

# Number of unrelated videos used as queries, number of synthetic pages used as queries and added to the index, and the
# duration of each in seconds.
_SEARCHING, _PAGES, _PAGE_SECONDS, _PAGE_RATE = 25, 25, 3, 4
# Duration of a segment and of the part of a recording that is used, in seconds.
_STRETCH, _LONGEST = 4.0, 40.0
# Number of videos that a search compares by default.
_CANDIDATES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the measurement data")
    parser.add_argument("--half", choices=("development", "held-back"), default="development")
    parser.add_argument(
        "--work", type=Path, required=True, help="working folder for the copies, outside the source tree"
    )
    parser.add_argument("--copies", type=Path, help="folder of the copies (default: in the working folder)")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    given = parser.parse_args()
    material = make_material(given.data, given.half, given.copies or given.work / given.half)
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        pages = draw_pages(Path(folder))
        with Index.open(Path(folder) / "matching.vidkin", create=True) as index:
            started = time.process_time()
            index.add([*(video.path for video in material.gallery), *pages])
            spent = time.process_time() - started
            facts = index.info()
            figures = {
                "machine": describe_machine(),
                "half": given.half,
                "queries": len(material.queries),
                "gallery": len(material.gallery),
                "copies": sum(video.source is not None for video in material.gallery),
                "extractor": index.manifest.fingerprint,
                "seconds of indexing": round(spent, 1),
                "MB an hour": round(facts.bytes / facts.seconds * 3600 / 1e6, 2),
                "all": measure(index, material, len(index)),
                "search": measure(index, material, _CANDIDATES),
                "strangers": count_strangers(index, material, pages),
                "other moments": count_moments(index, material),
            }
    print(json.dumps(figures, indent=1))
    if given.output:
        given.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure(index: Index, material: CopyMaterial, candidates: int) -> dict[str, Any]:
    """Evaluate all copies, with this many videos compared per query."""
    column = {os.path.abspath(video.path): number for number, video in enumerate(material.gallery)}
    shape = len(material.queries), len(material.gallery)
    scores, times = np.zeros(shape), []
    segments: list[list[Any]] = [[() for _ in material.gallery] for _ in material.queries]
    for row, query in enumerate(material.queries):
        started = time.process_time()
        matches = index.search(query.path, limit=len(index), candidates=candidates, by="picture")
        times.append(time.process_time() - started)
        for match in matches:
            if match.path in column:
                scores[row, column[match.path]] = match.score
                segments[row][column[match.path]] = match.segments
    found = PairScores(scores, segments)
    return {
        **describe(summarize_copies("vidkin", found, material)),
        "milliseconds a query": round(1000 * float(np.median(times))),
        "speed": describe_speeds(found, material),
    }


def describe(figures: CopyFigures) -> dict[str, Any]:
    """mAP and micro-AP of all copies and of each family, the number scoring at least 0.2, and boundary errors."""
    everything = figures.everything
    row: dict[str, Any] = {
        "map": round(everything.strict.map, 4),
        "micro_ap": round(everything.strict.micro_ap, 4),
        "copies": everything.copies,
        "copies at .2": everything.reported,
        "families": {
            group.name: [round(group.strict.map, 3), round(group.strict.micro_ap, 3)] for group in figures.families
        },
        "unrelated": {
            kind.which: {"pairs": kind.pairs, "at .2": kind.above, "highest": round(kind.highest, 3)}
            for kind in figures.unrelated
        },
    }
    if everything.times is not None:
        times = everything.times
        row["ends"] = {
            "stretches": times.stretches,
            "missed": times.missed,
            "median": round(max(times.start_median, times.end_median), 2),
            "nine of ten": round(max(times.start_90th, times.end_90th), 2),
        }
    return row


def describe_speeds(found: PairScores, material: CopyMaterial) -> dict[str, Any]:
    """How often the original speed is recognized, and errors of other speeds, over the segments found."""
    equal, errors = [], []
    for place in place_segments(found, material):
        if place.segment is None:
            continue
        truth = place.truth
        speed = (truth.edited_end - truth.edited_start) / (truth.source_end - truth.source_start)
        if abs(speed - 1) < 0.02:
            equal.append(place.segment.speed == 1.0)
        else:
            errors.append(abs(place.segment.speed / speed - 1))
    return {
        "at speed 1": len(equal),
        "said to be 1": int(sum(equal)),
        "at other speeds": len(errors),
        "within 5 %": int(sum(error <= 0.05 for error in errors)),
    }


def draw_pages(folder: Path) -> list[Path]:
    """Make videos of synthetic pages, each of them static."""
    paths = []
    for number in range(_PAGES):
        page = draw_page(np.random.default_rng([7, number]))
        paths.append(folder / f"page {number}.mp4")
        write_video(paths[-1], [page] * (_PAGE_SECONDS * _PAGE_RATE), rate=_PAGE_RATE)
    return paths


def count_strangers(index: Index, material: CopyMaterial, pages: list[Path]) -> dict[str, int]:
    """Count pairs that score at least 0.2 for unrelated videos and pages, among all videos."""
    # Exclude the fillers, whose footage appears in the copies.
    unrelated = [video for video in material.gallery if video.edit == DISTRACTOR and video.path not in material.filler]
    unrelated = unrelated[:: max(1, len(unrelated) // _SEARCHING)]
    scenes = {os.path.abspath(video.path): video.scene for video in material.gallery}
    of_strangers, of_kind = [], []
    for path in (*(video.path for video in unrelated), *pages):
        for match in index.search(path, limit=len(index), candidates=len(index), by="picture", own=False):
            own = scenes.get(os.path.abspath(path))
            same = own is not None and scenes.get(match.path) == own
            (of_kind if same else of_strangers).append(match.score)
    return {
        "pairs": (len(unrelated) + len(pages)) * (len(index) - 1),
        "at .2": sum(score >= 0.2 for score in of_strangers),
        "at .7": sum(score >= 0.7 for score in of_strangers),
        "of one kind of sky or fruit at .2": sum(score >= 0.2 for score in of_kind),
        "of one kind of sky or fruit at .7": sum(score >= 0.7 for score in of_kind),
    }


def count_moments(index: Index, material: CopyMaterial) -> dict[str, int]:
    """Count pairs of segments of one recording, at least one segment apart, that are matched as copies."""
    pairs, scores = 0, []
    for path in sorted({query.recording.path for query in material.queries}):
        starts = np.arange(0, min(_LONGEST, probe(path).duration) - _STRETCH, 2 * _STRETCH).tolist()
        stretches = [describe_stretch(index, path, start) for start in starts]
        for number, stretch in enumerate(stretches):
            others = [each for place, each in enumerate(stretches) if place != number]
            pairs += len(others)
            scores += [found.score for found in index.scorer.score(stretch, others)] if others else []
    return {
        "pairs": pairs,
        "at .2": sum(score >= 0.2 for score in scores),
        "at .7": sum(score >= 0.7 for score in scores),
    }


def describe_stretch(index: Index, path: Path, start: float) -> Any:
    """Features of a segment, computed like those of a query."""
    describe_query: Callable[..., Any] = index._describe
    return describe_query(path, start, start + _STRETCH)


if __name__ == "__main__":
    main()
