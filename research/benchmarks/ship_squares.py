"""Package the weights of a training run for the extractor `squares`, with their provenance.

    vidkin train frame-encoder --data FLOWERS --data GROCERY --data AERIAL -o FOLDER
    python research/benchmarks/ship_squares.py FOLDER [--seconds N] [--output FILE]

Writes `squares.safetensors`, the same network as `squares.onnx`, and `squares.json` into the package: data with counts
and licenses, the full recipe, seed, steps, the metric on held-out images and library versions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from vidkin.features.frame_encoder import export_frame_encoder, save_frame_encoder
from vidkin.models import load_model, read_model_info

LICENSES = {
    "flowers/train": "CC BY 2.0 (Flickr photographs)",
    "grocery/train": "MIT",
    "labelled/aerial": "CC0",
}
LIBRARIES = ("torch", "numpy", "safetensors", "pillow", "av")


def provenance(folder: Path, weights: Path, seconds: float | None) -> dict[str, Any]:
    """Return the provenance of the weights."""
    info = read_model_info(folder)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    recipe = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    recipe["data"] = {
        name: recipe["data"][name] for name in ("frames_per_video", "validation", "split_seed", "options")
    }
    counts = {name: int(count) for name, _, count in (part.partition(": ") for part in info.notes["data"].split(", "))}
    calls = "several calls" if report["resumed_from"] else "one call"
    return {
        "weights": weights.name,
        "made_by": f"vidkin train {info.notes['recipe']}, in {calls}",
        "data": counts,
        "pictures": sum(counts.values()),
        "licenses": {name: LICENSES[name] for name in counts if name in LICENSES},
        "seed": info.notes["seed"],
        "steps": info.notes["steps"],
        "seconds": round(report["seconds"] if seconds is None else seconds),
        "figures": dict(info.metrics),
        "recipe": recipe,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, help="duration of the whole training run, if it was resumed")
    shipped = Path(str(files("vidkin.features"))) / "data" / "squares.safetensors"
    parser.add_argument(
        "--output", type=Path, default=shipped, help="file for the weights instead of the one in the package"
    )
    options = parser.parse_args()
    target: Path = options.output
    model: Any = load_model(options.folder)
    save_frame_encoder(model.network, target)
    export_frame_encoder(model.network, target.with_suffix(".onnx"))
    told = provenance(options.folder, target, options.seconds)
    target.with_suffix(".json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    print(f"{target}: {target.stat().st_size} bytes, {told['pictures']} pictures, {told['figures']}")


if __name__ == "__main__":
    main()
