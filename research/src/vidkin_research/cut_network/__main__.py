"""The steps from recordings to a network, each a command: ``python -m vidkin_research.cut_network --work FOLDER STEP``.

compose    read and compose what is learned from, and the videos that settings are chosen by
train      learn; the checkpoint is in the folder of work
export     write the ONNX file of the checkpoint, with its provenance beside it
judge      scores of the network and of other detectors on the videos that settings are chosen by
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from vidkin._base.values import read_json
from vidkin.rendering.machine import describe_machine
from vidkin_research.cut_network.drawn import Pool
from vidkin_research.cut_network.export import export_network
from vidkin_research.cut_network.judge import JudgedVideo, build_held_back, build_judged, judge, score_pieces, show
from vidkin_research.cut_network.material import choose_sources, prepare
from vidkin_research.cut_network.network import CutNetwork
from vidkin_research.cut_network.pieces import read_pieces
from vidkin_research.cut_network.train import CHECKPOINT, Recipe, load_network, train

# One piece of so many is not learned from.
_KEPT = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of work, outside of the tree")
    steps = parser.add_subparsers(dest="step", required=True)
    composing = steps.add_parser("compose")
    training = steps.add_parser("train")
    training.add_argument("--steps", type=int, default=Recipe().steps)
    training.add_argument("--minutes", type=float, help="end after this time")
    training.add_argument("--rate", type=float, default=Recipe().rate, help="highest learning rate")
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--start", type=Path, help="checkpoint to go on from, at a lower rate and with another seed")
    exporting = steps.add_parser("export")
    exporting.add_argument("--target", type=Path, required=True, help="ONNX file to write")
    judging = steps.add_parser("judge")
    judging.add_argument("--network", type=Path, help="ONNX or safetensors file; default: the checkpoint")
    judging.add_argument("--detector", nargs="*", default=["transnetv2"], help="other detectors")
    judging.add_argument("--held-back", action="store_true", help="judge what nothing is chosen by, in place of that")
    judging.add_argument("--drawing", type=int, default=0, help="number of the drawing of what is held back")
    judging.add_argument("--output", type=Path, help="JSON file to write")
    for step in (composing, judging):
        step.add_argument("--data", type=Path, required=True, help="folder of clips, videos, labelled and photos")
        step.add_argument("--leave-out", type=Path, help="file with names of clips that hold cuts")
        step.add_argument("--edited", type=Path, help="folder of edited films with truth.json")
        step.add_argument("--share", type=float, default=1.0, help="share of the usual material")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    torch.set_num_threads(1)
    if given.step == "train":
        _train(given)
    elif given.step == "export":
        provenance = read_json((given.work / CHECKPOINT).with_suffix(".json"))
        export_network(load_network(given.work / CHECKPOINT), given.target, provenance=provenance)
    elif given.step == "judge" and given.held_back:
        work = given.work / f"held-back-{given.drawing}"
        _judge(
            given,
            build_held_back(given.data, work, edited=given.edited, share=given.share, drawing=given.drawing),
        )
    else:
        left_out = given.leave_out.read_text(encoding="utf-8").split() if given.leave_out else []
        learned, chosen = choose_sources(given.data, left_out)
        if given.step == "compose":
            prepare(learned, given.work, share=given.share)
        videos = build_judged(chosen, given.work / "judged", edited=given.edited, share=given.share)
        if given.step == "judge":
            _judge(given, videos)


def _train(given: argparse.Namespace) -> None:
    recipe = Recipe(steps=given.steps, minutes=given.minutes, rate=given.rate, seed=given.seed)
    groups = {name: read_pieces(given.work / f"{name}.npz") for name in recipe.shares}
    kept = {name: pieces[_KEPT - 1 :: _KEPT] for name, pieces in groups.items()}
    for pieces in groups.values():
        del pieces[_KEPT - 1 :: _KEPT]

    def report(step: int, network: CutNetwork) -> None:
        for name, pieces in kept.items():
            logging.info("step %d, %s: %s", step, name, score_pieces(network, pieces))

    provenance = {
        "made_by": "python -m vidkin_research.cut_network train",
        "recipe": asdict(recipe),
        "start": given.start.name if given.start else None,
        "pieces": {name: len(pieces) for name, pieces in groups.items()},
        "machine": describe_machine(),
    }
    note = (given.work / CHECKPOINT).with_suffix(".json")
    note.write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    start = load_network(given.start) if given.start else None
    train(Pool(groups, recipe.shares), recipe, given.work, start=start, on_step=report)


def _judge(given: argparse.Namespace, videos: Sequence[JudgedVideo]) -> None:
    network = given.network or given.work / CHECKPOINT
    if network.suffix != ".onnx":
        network = export_network(load_network(network), given.work / "judged.onnx")
    results = {}
    for name in (f"cuts?network={network}", *given.detector):
        results[name] = judge(videos, partial(str, name))
        for line in (name, *show(results[name])):
            logging.info("%s", line)
    if given.output:
        given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
