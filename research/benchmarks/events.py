"""Long-tailed event classification: softmax only, compared with two heads and mined triplets.

    python research/benchmarks/events.py DATA [--steps 150] [--seeds 3] [--work FOLDER] \
        [--output research/results/events.json]

The events come from four sources of the measurement data: flying objects (airplane, bird, drone, helicopter; the first
4 s), sign language, fruit on a turntable, and moving toys (segments of 3 s). Each video is a session, and the split is
by session: 0.3 of each class is the test set. As in the publication, events shorter than 2 s are ignored. The classes
are long-tailed because the sources are. Both methods use the recipe `two-head-events` (stacked frame differences) with
the same number of steps, batch size and learning rate. Nothing is tuned on the test set, and the last step is
evaluated. `softmax alone` samples items regardless of class.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from vidkin.datasets import open_labelled
from vidkin.media import probe
from vidkin.models import load_model
from vidkin.rendering.machine import describe_machine
from vidkin.training import load_recipe, train
from vidkin.training.classifier import describe_splits, evaluate_classifier
from vidkin.training.recipe_file import recipe_tables

LONGEST, PIECE = 4.0, 3.0
METHODS = {"softmax alone": 0.0, "two heads, mined triplets": 1.0}


def list_events(data: Path) -> Iterator[tuple[Path, float, float, str]]:
    """Yield (video, start, end, event) of every event."""
    for path in sorted((data / "labelled" / "aerial").rglob("*.mp4")):
        yield path, 0.0, min(LONGEST, probe(path).duration), path.parent.parent.name
    for path in sorted((data / "videos" / "intel").glob("*.mkv")):
        yield path, 0.0, probe(path).duration, "signing"
    for path in sorted((data / "labelled" / "fruit").rglob("*.mp4")):
        yield path, 0.0, probe(path).duration, "turning"
    for path in sorted((data / "videos" / "mdn").iterdir()):
        # A smaller copy of another clip, which would leak from the training set into the test set.
        if path.stem != "rabbit320":
            for start in range(int(probe(path).duration // PIECE)):
                yield path, start * PIECE, (start + 1) * PIECE, "toys"


def write_list(data: Path, path: Path) -> None:
    """Write the events as the CSV file read by the reader `events`, with the split of every session."""
    rows = list(list_events(data))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["session", "start", "end", "event"])
        writer.writerows([video.relative_to(data).as_posix(), start, end, event] for video, start, end, event in rows)


def run(listed: Path, data: Path, work: Path, *, weight: float, seed: int, steps: int) -> dict[str, Any]:
    """Train once and evaluate on the test set."""
    recipe = recipe_tables(load_recipe("two-head-events"))
    recipe["data"] |= {"source": str(listed), "options": {"root": str(data), "test": 0.3}, "cache": "memory"}
    recipe["objective"][1]["weight"] = weight
    recipe["schedule"] |= {"steps": steps, "seed": seed, "checkpoint_every": steps}
    recipe["validation"] = {"every": 0}
    folder = work / f"{weight:g}-{seed}-{steps}"
    report = train(recipe, output=folder)
    labelled = open_labelled(listed, reader="events", root=data, test=0.3)
    figures = evaluate_classifier(describe_splits(load_model(folder), labelled))  # type: ignore[arg-type]
    return {
        "top_1": figures.top_1,
        "macro": figures.macro,
        "per_class": {name: share for name, (_, share) in figures.per_class.items()},
        "recall_at_1": figures.embedding.recalls[1],
        "nmi": figures.embedding.nmi,
        "penultimate recall_at_1": figures.penultimate.recalls[1],
        "penultimate nmi": figures.penultimate.nmi,
        "seconds": report.seconds,
    }


def main() -> None:
    """Train every method with every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder for models; an interrupted run continues with those in it")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    data = options.data.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        listed = work / "events.csv"
        write_list(data, listed)
        labelled = open_labelled(listed, reader="events", root=data, test=0.3)
        counts = {part: Counter(item.label for item in labelled.part(part).items) for part in ("train", "test")}
        print(*(f"{part}: {dict(sorted(count.items()))}" for part, count in counts.items()), sep="\n")
        runs: dict[str, list[dict[str, Any]]] = {}
        for name, weight in METHODS.items():
            for seed in range(options.seeds):
                runs.setdefault(name, []).append(run(listed, data, work, weight=weight, seed=seed, steps=options.steps))
            for figure in ("top_1", "macro", "recall_at_1", "nmi"):
                values = [100 * one[figure] for one in runs[name]]
                spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
                print(f"{name}: {figure} {mean(values):.1f}{spread}", flush=True)
    if options.output is not None:
        report = {"machine": describe_machine(), "steps": options.steps, "events": counts, "runs": runs}
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
