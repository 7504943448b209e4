"""Other constants and combinations of losses, evaluated on the validation split: the data of research/comparison.md.

    python research/benchmarks/loss_settings.py DATA --weights FILE [--set omniglot grocery] [--work FOLDER] \
        [--output FILE.json]

The encoder, number of steps and learning rate are those of `vidkin benchmark fgir` (its common rate). The test split is
never used.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path

import torch

from vidkin.models import EncoderConfig, build_model
from vidkin.rendering.machine import describe_machine
from vidkin.training.recipe import ObjectiveRecipe
from vidkin_research.retrieval import ComparisonPlan, RunSchedule, comparison_set, open_set
from vidkin_research.retrieval.methods import Method
from vidkin_research.retrieval.prepared import stored_frame_features
from vidkin_research.retrieval.study import score_validation
from vidkin_research.retrieval.training import Labelled, embed_inputs, train_method

SEEDS = (0, 1, 2)
QUADLETS, AP = ObjectiveRecipe(name="all_quadlets"), ObjectiveRecipe(name="hierarchical_ap")
RADIAL = ObjectiveRecipe(name="radial_detached")
LITTLE_RADIAL = replace(RADIAL, weight=0.3)
SETTINGS: dict[str, dict[str, tuple[ObjectiveRecipe, ...]]] = {
    "omniglot": {
        "Radial, c = 3, m = .3": (RADIAL,),
        "Radial, c = 2": (replace(RADIAL, parameters={"c": 2.0}),),
        "Radial, c = 1.5": (replace(RADIAL, parameters={"c": 1.5}),),
        "Radial, m = .6": (replace(RADIAL, parameters={"margin": 0.6}),),
        "Radial, m = 1": (replace(RADIAL, parameters={"margin": 1.0}),),
        "Quadlet": (ObjectiveRecipe(name="quadlet"),),
        "Quadruplet-1": (ObjectiveRecipe(name="quadruplet1"),),
    },
    "grocery": {
        "Radial": (RADIAL,),
        "all quadlets": (QUADLETS,),
        "all quadlets + hierarchical AP": (QUADLETS, AP),
        "all quadlets + .3 Radial": (QUADLETS, LITTLE_RADIAL),
        "all quadlets + hierarchical AP + .3 Radial": (QUADLETS, AP, LITTLE_RADIAL),
        "all quadlets + Quadruplet-1": (QUADLETS, ObjectiveRecipe(name="quadruplet1")),
        "all quadlets + Smooth-AP": (QUADLETS, ObjectiveRecipe(name="smooth_ap")),
        "all quadlets + .1 classification": (QUADLETS, ObjectiveRecipe(name="classification", weight=0.1)),
        "hierarchical AP + .3 Radial": (AP, LITTLE_RADIAL),
    },
}


def evaluate_settings(name: str, data: Path, weights: Path, work: Path) -> dict[str, list[float]]:
    """QP over gallery quadlets (p, i, n of the training split) on the validation split, for every setting and seed."""
    plan, known = ComparisonPlan(sets=(name,)), comparison_set(name)
    config = EncoderConfig(
        kind="image", backbone=plan.backbone, trainable="head", hidden=plan.hidden, lstm=plan.units,
        embedding=plan.units, frames=plan.frames, size=known.size,
    )  # fmt: skip
    labelled = open_set(known, data)
    features = stored_frame_features(build_model(config, weights=weights), labelled, cache=work)
    coarse, fine = labelled.labels()
    labels = torch.stack([torch.from_numpy(coarse), torch.from_numpy(fine)], dim=1)
    places = {
        split: torch.tensor([n for n, item in enumerate(labelled.items) if item.split == split])
        for split in ("train", "validation")
    }
    train, kept = (Labelled(features[place], labels[place]) for place in places.values())
    found: dict[str, list[float]] = {}
    for title, objectives in SETTINGS[name].items():
        method = Method(name="setting", title=title, objectives=objectives)
        for seed in SEEDS:
            model = build_model(config, weights=weights, seed=seed)
            train_method(model, method, train, RunSchedule(), seed=seed)
            gallery, queries = embed_inputs(model, train.inputs), embed_inputs(model, kept.inputs)
            figures = score_validation(queries, kept.labels, gallery, train.labels)
            found.setdefault(title, []).append(figures["qp_gallery"])
        print(f"{name}: {title}: {statistics.mean(found[title]):.1f}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--set", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--work", type=Path, default=Path("vidkin-benchmark/loss_settings"))
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = {name: evaluate_settings(name, given.data, given.weights, given.work) for name in given.set}
    if given.output:
        result = {"machine": describe_machine(), "seeds": SEEDS, "validation QP gallery": found}
        given.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
