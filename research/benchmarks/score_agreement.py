"""Agreement of pair scores between search, match, compare and duplicates, in both directions.

    python research/benchmarks/score_agreement.py FOLDER --work /tmp/copies --half development --pairs 40

The copies are those of `copy_retrieval.py` (made only if --work lacks them), selected evenly across queries and edits.
Clips and copies are indexed with the default extractor; each pair is then scored in seven ways. The spread of a pair is
its highest minus its lowest score: over all seven, and without the two searches, which sample only the query densely.
Targets: median at most 0.01, all pairs within 0.03.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from _material import SIZES, material_parser, open_material
from vidkin import Index, compare
from vidkin.index.duplicates.comparisons import Comparisons, content_of
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.material import GalleryVideo, make_copies

MEDIAN, MOST = 0.01, 0.03


@dataclass(frozen=True)
class PairScores:
    """Scores of a clip and its copy by every method, and the CPU time used."""

    clip: str
    edit: str
    scores: dict[str, float]
    seconds: float

    def spread(self, *, searches: bool) -> float:
        """Highest minus lowest score."""
        chosen = [score for name, score in self.scores.items() if searches or not name.startswith("search")]
        return max(chosen) - min(chosen)


def main() -> None:
    given = parse_arguments()
    copies = make_copies(open_material(given), given.work, SIZES[given.size])
    made = [video for video in copies.gallery if video.source is not None]
    step = max(1, len(made) // given.pairs)
    chosen = made[::step][: given.pairs]
    with Index.open(given.work / "agreement.vidkin", create=True) as index:
        files = {str(path) for video in chosen for path in (clip_of(video), video.path)}
        index.add(sorted(files), workers=1)
        pairs = []
        for video in chosen:
            pairs.append(score_pair(index, video))
            print(
                f"{len(pairs)} of {len(chosen)}: {pairs[-1].edit} {pairs[-1].scores}",
                file=sys.stderr,
                flush=True,
            )
        # Last, so that comparisons saved by duplicates do not speed up the other methods.
        grouped = duplicate_scores(index, chosen)
    pairs = [
        PairScores(pair.clip, pair.edit, pair.scores | ({} if score is None else {"duplicates": score}), pair.seconds)
        for pair, score in zip(pairs, grouped, strict=True)
    ]
    report = summarize(pairs)
    print(json.dumps(report | {"pairs": len(pairs)}, indent=1))
    if given.output:
        report["pairs"] = [asdict(pair) for pair in pairs]
        given.output.write_text(json.dumps(report, indent=1) + "\n")


def clip_of(video: GalleryVideo) -> Path:
    assert video.source is not None  # only edited copies are selected
    return video.source.path


def score_pair(index: Index, video: GalleryVideo) -> PairScores:
    """Score a clip and its copy by search, match and compare, in both directions."""
    began = time.process_time()
    clip, copy = str(clip_of(video)), str(video.path)
    scores = {}
    for name, query, target in (("there", clip, copy), ("back", copy, clip)):
        found = {match.path: match.score for match in index.search(query, limit=len(index))}
        scores[f"search {name}"] = found.get(os.path.abspath(target), 0.0)
        scores[f"match {name}"] = index.match(query, target).score
        scores[f"compare {name}"] = compare(query, target).score
    return PairScores(clip_of(video).stem, video.edit, scores, time.process_time() - began)


def duplicate_scores(index: Index, chosen: list[GalleryVideo]) -> list[float | None]:
    """Scores saved by `duplicates` for each pair; None if the two are not neighbors and have no score."""
    index.duplicates(threshold=0.6, parts=True)
    state = json.loads((index.path / Comparisons.FILE).read_text())["state"]
    known = Comparisons.open(index.place, state)
    contents = {record.path: content_of(record) for record in index.videos()}
    results = [
        known.get(contents[os.path.abspath(clip_of(video))], contents[os.path.abspath(video.path)]) for video in chosen
    ]
    return [None if result is None else result.score for result in results]


def summarize(pairs: list[PairScores]) -> dict[str, object]:
    every = [pair.spread(searches=True) for pair in pairs]
    fine = [pair.spread(searches=False) for pair in pairs]
    return {
        "machine": describe_machine(),
        "targets": {"median": MEDIAN, "largest": MOST},
        "all": _figures(every),
        "match, compare and duplicates": _figures(fine),
        "beyond the target": [
            f"{pair.clip} {pair.edit}: {pair.scores}"
            for pair, spread in zip(pairs, every, strict=True)
            if spread > MOST
        ],
    }


def _figures(spreads: list[float]) -> dict[str, float | int]:
    return {
        "median": round(statistics.median(spreads), 4),
        "largest": round(max(spreads), 4),
        "within the target": sum(spread <= MOST for spread in spreads),
    }


def parse_arguments() -> argparse.Namespace:
    parser = material_parser(__doc__, work="working folder for copies and index")
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the copies")
    parser.add_argument("--pairs", type=int, default=40, help="number of copies to compare")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
