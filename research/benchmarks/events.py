"""A classifier of events with a long tail: softmax alone beside two heads with mined triplets.

    python research/benchmarks/events.py DATA [--steps 150] [--seeds 3] [--work FOLDER] \
        [--output research/results/events.json]

The events come from four sources of the measurement data: what flies in a clip of the sky (airplane, bird, drone,
helicopter; the first 4 s), a hand that signs a word, fruit on a turntable, and toys that move (pieces of 3 s). A video
is one session, and sessions are divided: .3 of each class are the test. Events shorter than 2 s are left out, as in
the source. Classes are long-tailed as the sources are. Both methods have the recipe `two-head-events` (stacks of
differences of frames) with the same steps, items a step and rate; nothing is chosen on the test, and the last step is
what is measured. `softmax alone` draws its items whatever their class.
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
    """(video, start, end, event) of every event."""
    for path in sorted((data / "labelled" / "aerial").rglob("*.mp4")):
        yield path, 0.0, min(LONGEST, probe(path).duration), path.parent.parent.name
    for path in sorted((data / "videos" / "intel").glob("*.mkv")):
        yield path, 0.0, probe(path).duration, "signing"
    for path in sorted((data / "labelled" / "fruit").rglob("*.mp4")):
        yield path, 0.0, probe(path).duration, "turning"
    for path in sorted((data / "videos" / "mdn").iterdir()):
        # A smaller copy of another clip would be in the training and in the test.
        if path.stem != "rabbit320":
            for start in range(int(probe(path).duration // PIECE)):
                yield path, start * PIECE, (start + 1) * PIECE, "toys"


def write_list(data: Path, path: Path) -> None:
    """The events as the CSV that the reader `events` takes, with the split of every session."""
    rows = list(list_events(data))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["session", "start", "end", "event"])
        writer.writerows([video.relative_to(data).as_posix(), start, end, event] for video, start, end, event in rows)


def run(listed: Path, data: Path, work: Path, *, weight: float, seed: int, steps: int) -> dict[str, Any]:
    """Train once and measure on the test."""
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
    """Train every method from every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder of models; a second call goes on with them")
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
