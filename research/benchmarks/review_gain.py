"""Improvement from reviews: a measure trained on 30 and on 60 verdicts, evaluated on pairs that were not judged.

    python research/benchmarks/review_gain.py FRUIT [--judge names] [--extractor vidkin classical] [--verdicts 30] \
        [--reviews 2]
        [--seed 0] [--output research/results/review.json]

The collection consists of turntable videos of 67 varieties of apple, cherry and tomato, in folders `fruit/variety`. A
rule simulates the reviewer. `names`: two videos of one variety are `same`, of one fruit `same kind`, others
`different`. `color`: a reviewer who sorts by skin color, regardless of the fruit, and looks at pixels, not at names:
from the mean color of the non-white pixels of the middle frame, the nearest 20th of all pairs are `same`, the nearest
quarter `same kind`.

Each review judges the pairs that the review page would show, in its order, and trains like `vidkin train review`.
Before the first review, half of the pairs of each grade, at most 240, are sampled for evaluation; they are never
judged. The metric is the fraction of evaluation pairs with different grades that the score orders correctly; 0.5 is
chance. Videos of these pairs do occur in judged pairs. The 90 % interval of the difference is from bootstrapping these
pairs; the other result is that of `vidkin train review` on the third of the verdicts that it holds out.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.index import Index
from vidkin.index.storage.opening import open_place
from vidkin.media import iter_frames
from vidkin.rendering.machine import describe_machine
from vidkin.review import Labels, suggest_pairs, train_measure, use_measure
from vidkin.review.labels import PairVerdict
from vidkin.review.measure import interval_of_difference, ordering

# Fractions of all pairs that the rule `color` grades `same`, and at least `same kind`.
SAME, SAME_KIND = 0.05, 0.25
# Minimum RGB channel value of the white background.
WHITE = 215

GRADES: dict[PairVerdict, int] = {"different": 0, "same kind": 1, "same": 2}
MOST_OF_A_GRADE = 240
# Number of pairs that the page requests at a time.
PAIRS_AT_A_TIME = 12
Pair = tuple[str, str]


Judge = Callable[[str, str], PairVerdict]


def judge_by_names(one: str, other: str) -> PairVerdict:
    """Return the verdict implied by the names of two files."""
    first, second = (Path(path).parent for path in (one, other))
    if first == second:
        return "same"
    return "same kind" if first.parent == second.parent else "different"


def color_of(path: str) -> NDArray[np.float64]:
    """Mean color [3] in [0, 1] of the non-white pixels in the middle frame of a video."""
    images = [image for frames in iter_frames(path, rate=None) for image in frames.images]
    middle = images[len(images) // 2].reshape(-1, 3).astype(np.float64)
    colored = middle[middle.min(axis=1) < WHITE]
    mean: NDArray[np.float64] = (colored if len(colored) else middle).mean(axis=0) / 255
    return mean


def judge_by_color(paths: list[str]) -> Judge:
    """Create the rule that judges these videos by color."""
    colors = {path: color_of(path) for path in paths}
    distances = [float(np.linalg.norm(colors[one] - colors[other])) for one, other in combinations(paths, 2)]
    same, kind = np.quantile(distances, (SAME, SAME_KIND))

    def judge(one: str, other: str) -> PairVerdict:
        distance = float(np.linalg.norm(colors[one] - colors[other]))
        return "same" if distance < same else "same kind" if distance < kind else "different"

    return judge


def draw_pairs(paths: list[str], judge: Judge, seed: int) -> list[Pair]:
    """Sample evaluation pairs of each grade."""
    draw = random.Random(seed)
    by_grade: dict[PairVerdict, list[Pair]] = {verdict: [] for verdict in GRADES}
    for one, other in combinations(sorted(paths), 2):
        by_grade[judge(one, other)].append((one, other))
    return [pair for pairs in by_grade.values() for pair in draw.sample(pairs, min(MOST_OF_A_GRADE, len(pairs) // 2))]


def score(path: Path, pairs: list[Pair]) -> NDArray[np.float64]:
    """Score pairs [N] with the scorer that searches of the index currently use."""
    with Index.open(path, read_only=True) as index:
        numbers = {record.path: record.id for record in index.videos()}
        scores = []
        for pair in pairs:
            one, other = (index.store.read(numbers[name]) for name in pair)
            scores.append(index.scorer.score(one, [other])[0].score)
    return np.array(scores)


def review(path: Path, judge: Judge, verdicts: int, drawn: set[Pair]) -> None:
    """Give this many verdicts on the pairs that the page would show."""
    given, passed = 0, 0
    while given < verdicts:
        with Index.open(path, read_only=True) as index:
            # Evaluation pairs are skipped, as a person would with the key S.
            suggestions = suggest_pairs(index, Labels.open(path), limit=PAIRS_AT_A_TIME + passed)[passed:]
        for suggestion in suggestions[: verdicts - given]:
            one, other = suggestion.first, suggestion.second
            if tuple(sorted((one.path, other.path))) in drawn:
                passed += 1
                continue
            verdict = judge(one.path, other.path)
            Labels.judge_pair(
                open_place(path), one.content_hash, other.content_hash, verdict, source="rule of a benchmark"
            )
            given, passed = given + 1, 0


def review_all(
    folder: Path, path: Path, extractor: str, judged_by: str, verdicts: int, reviews: int, seed: int
) -> tuple[int, list[dict[str, object]]]:
    """Return the number of evaluation pairs, and the results before the first review and after each review."""
    with Index.open(path, extractor=extractor, create=True) as index:
        index.add([folder])
        paths = [record.path for record in index.videos() if record.status == "ok"]
    judge = judge_by_color(paths) if judged_by == "color" else judge_by_names
    pairs = draw_pairs(paths, judge, seed)
    grades = np.array([GRADES[judge(*pair)] for pair in pairs])
    before = score(path, pairs)
    rows: list[dict[str, object]] = [{"verdicts": 0, "figure": ordering(before, grades)}]
    for number in range(1, reviews + 1):
        review(path, judge, verdicts, set(pairs))
        with Index.open(path, read_only=True) as index:
            trained = train_measure(index)
        use_measure(open_place(path), use=True)
        after = score(path, pairs)
        use_measure(open_place(path), use=False)
        low, high = interval_of_difference(before, after, grades)
        given = [label.verdict for label in Labels.open(path).pairs]
        rows.append(
            {
                "verdicts": number * verdicts,
                **{verdict: given.count(verdict) for verdict in GRADES},
                "figure": ordering(after, grades),
                "difference, low": low,
                "difference, high": high,
                "judgment": trained.judgment,
            }
        )
    return len(pairs), rows


def main() -> None:
    """Review, train and evaluate, for the number of reviews given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--extractor", nargs="+", default=["vidkin", "classical"])
    parser.add_argument("--judge", choices=("names", "color"), default="names")
    parser.add_argument("--verdicts", type=int, default=30, help="number of verdicts per review")
    parser.add_argument("--reviews", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    report: dict[str, object] = {"machine": describe_machine(), "judge": options.judge, "seed": options.seed}
    for extractor in options.extractor:
        with tempfile.TemporaryDirectory() as folder:
            report["pairs"], rows = review_all(
                options.folder,
                Path(folder) / "review.vidkin",
                extractor,
                options.judge,
                options.verdicts,
                options.reviews,
                options.seed,
            )
        report[extractor] = rows
        print(f"{extractor}, {report['pairs']} pairs that were not judged")
        for row in rows:
            cells = (
                f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
            )
            print("  " + ", ".join(cells))
    if options.output is not None:
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
