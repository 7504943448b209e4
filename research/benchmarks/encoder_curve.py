"""Ablation of the frame encoder: number of images, model size, training length and objectives.

    python research/benchmarks/encoder_curve.py VIDEOS --data FOLDER... --work FOLDER [--steps 500] [--only NAME...]
        [--output research/results/encoder_curve.json]

Each variant of the recipe `frame-encoder` is trained with the same seed and evaluated on the development half of the
copy benchmark (VIDEOS, `--size small`). The working folder stores copies, models and results, so that an interrupted
run can be continued. The encoder that ships with the package, which was trained for longer, is evaluated in the same
run.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from vidkin.features.frame_encoder import (
    FrameEncoder,
    FrameEncoderSettings,
    load_frame_encoder,
    save_frame_encoder,
)
from vidkin.models import load_model
from vidkin.rendering.machine import describe_machine
from vidkin.training import load_recipe, show_recipe, train
from vidkin_research.copies.figures import CopyFigures
from vidkin_research.copies.halves import SMALL, find_divided_recordings
from vidkin_research.copies.study import CopyStudy, ExtractorChoice, run_copy_study


@dataclass(frozen=True)
class Variant:
    """Changes relative to the recipe.

    Attributes:
        share: Fraction of the images used.
        times: Number of steps, as a multiple of ``--steps``.
        model: Changes to the model table.
        options: Changes to the data options.
        objectives: Replacement for the objectives of the recipe.
    """

    share: float = 1.0
    times: float = 1.0
    model: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    objectives: tuple[Mapping[str, Any], ...] = ()


_INFO_NCE = {"name": "info_nce", "tau": 0.05}
_NARROW = {"widths": [width * 2 // 3 for width in FrameEncoderSettings().widths]}
# Trains for twice as many steps, with the edits of `frame-encoder-large`: rotation, perspective, blending, occlusion,
# stickers and stronger color changes.
_WIDER = {
    "blur_share": 0.0, "caption_share": 0.2, "logo_share": 0.1, "bar_share": 0.3, "block_share": 0.25,
    "border_share": 0.05, "compress_share": 0.15, "contrast": [0.5, 1.8], "brightness": [0.45, 1.3],
    "blend_weight": [0.2, 0.6], "blend_share": 0.1, "cover_side": [0.3, 0.78], "cover_share": 0.06,
    "sticker_side": [0.3, 0.75], "sticker_share": 0.06,
    "warp": {"scale": [0.6, 1.0], "rotation": 12.0, "perspective": 0.1, "distorted": 0.5},
}  # fmt: skip
VARIANTS = {
    "as shipped": Variant(),
    "half of the pictures": Variant(share=0.5),
    "a quarter of the pictures": Variant(share=0.25),
    "half of the steps": Variant(times=0.5),
    "input 48": Variant(model={"size": 48}),
    "input 96": Variant(model={"size": 96}),
    "two thirds of the width": Variant(model={"network": _NARROW}),
    "wider edits": Variant(times=2.0, options={"heavy": _WIDER}),
    "64 numbers": Variant(model={"embedding": 64}),
    "one picture of a scene": Variant(options={"scene_images": 1}),
    "QuadLinear-AP alone": Variant(objectives=({"name": "quad_linear_ap"},)),
    "InfoNCE and QuadLinear-AP": Variant(objectives=(_INFO_NCE, {"name": "quad_linear_ap"})),
    "InfoNCE, QuadLinear-AP, neighbors": Variant(
        options={"neighbor_seconds": 0.3}, objectives=(_INFO_NCE, {"name": "quad_linear_ap"})
    ),
}


def link_share(folders: list[Path], share: float, target: Path) -> list[Path]:
    """Make folders with links to every n-th file, which preserve subfolders; return the folders themselves for all
    files.
    """
    if share == 1.0:
        return folders
    linked = []
    for number, folder in enumerate(folders):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files[:: round(1 / share)]:
            link = target / str(number) / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(path.absolute())
        linked.append(target / str(number))
    return linked


def train_variant(name: str, folders: list[Path], steps: int, work: Path) -> dict[str, Any]:
    """Train a variant and write its weights to ``work / weights.safetensors``; return training metrics."""
    variant = VARIANTS[name]
    count = round(steps * variant.times)
    data = [str(folder) for folder in link_share(folders, variant.share, work / "pictures")]
    document = tomllib.loads(show_recipe(load_recipe("frame-encoder"), comments=False))
    document["data"] |= {"source": data[0], "folders": data[1:]}
    document["data"]["options"] = {**document["data"]["options"], **variant.options}
    document["model"] |= variant.model
    document["objective"] = list(variant.objectives) or document["objective"]
    document["schedule"] |= {"steps": count}
    document["validation"] |= {"every": count}
    report = train(document, output=work / "model")
    encoder: Any = load_model(work / "model")
    save_frame_encoder(encoder.network, work / "weights.safetensors")
    return {"steps": report.steps, "seconds": report.seconds, report.measure: report.best}


def measure_network(encoder: FrameEncoder) -> dict[str, float]:
    """Return the number of parameters and the CPU time per square in milliseconds (median over passes of 64)."""
    network = encoder.fold()
    side = encoder.settings.side
    squares = torch.rand(64, 3, side, side).contiguous(memory_format=torch.channels_last)
    times = []
    with torch.inference_mode():
        for _ in range(20):
            started = time.process_time()
            network(squares)
            times.append((time.process_time() - started) / len(squares) * 1e3)
    parameters = sum(parameter.numel() for parameter in encoder.parameters())
    return {"parameters": parameters, "milliseconds": sorted(times)[len(times) // 2]}


def measure_copies(recordings: Any, weights: Path | None, work: Path) -> dict[str, Any]:
    """Evaluate on the development half."""
    study = CopyStudy(size=SMALL, extractors=(ExtractorChoice("squares", weights=weights),))
    figures: CopyFigures = run_copy_study(study, recordings, work).report.figures[0]
    assert figures.costs is not None  # set, since an extractor has an index
    return {
        "everything": asdict(figures.everything.strict),
        **{family.name: asdict(family.strict) for family in figures.families},
        "unrelated": {group.which: [group.highest, group.above, group.pairs] for group in figures.unrelated},
        "megabytes_per_hour": figures.costs.bytes_per_hour / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", type=Path, help="collection whose development half is used for evaluation")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="folders of training images and videos")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    recordings = find_divided_recordings(given.videos, "development")
    rows: dict[str, Any] = {}
    for name in ["shipped", *given.only]:
        folder = given.work / name.replace(" ", "_")
        stored = folder / "figures.json"
        if not stored.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            row: dict[str, Any] = {}
            weights = None
            if name != "shipped":
                row = train_variant(name, given.data, given.steps, folder)
                weights = folder / "weights.safetensors"
            row |= measure_network(load_frame_encoder(weights))
            row |= measure_copies(recordings, weights, given.work / "copies")
            stored.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
        rows[name] = json.loads(stored.read_text(encoding="utf-8"))
        print(name, json.dumps(rows[name]), flush=True)
    if given.output:
        report = {"machine": describe_machine(), "steps": given.steps, "seed": 0, "rows": rows}
        given.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
