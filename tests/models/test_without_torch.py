"""Trained models can index, search, compare and describe without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.conftest import small
from tests.support.comparators import passing
from tests.support.videos import encode, pan
from vidkin._base.install import install_command
from vidkin.features import load_frame_encoder, open_extractor
from vidkin.models import ComparatorConfig, save_comparator, save_model

pytestmark = pytest.mark.process

WITHOUT = Path(__file__).parents[1] / "support" / "without_torch"
USE = """
import sys
import vidkin
from vidkin.features import open_extractor

work = sys.argv[1]
for name in ("image", "clip", "comparator", "frame_encoder"):
    model = f"{work}/{name}"
    print(name, open_extractor(model).fingerprint)
    with vidkin.Index.open(f"{work}/{name}.vidkin", extractor=model, create=True) as index:
        report = index.add([f"{work}/videos"])
        assert (len(report.added), len(report.broken)) == (2, 0), report
        best = index.search(f"{work}/videos/coffee.mp4")[0]
        assert best.path.endswith("coffee.mp4") and best.score > 0.99, (name, best)
    # Copies are judged by several seconds; kinds and comparators by frames alone.
    least = 0.7 if name == "frame_encoder" else 0.99
    assert vidkin.compare(f"{work}/videos/coffee.mp4", f"{work}/videos/coffee.mp4", extractor=model).score > least
assert "torch" not in sys.modules
"""
WITHOUT_GRAPH = """
import sys
from vidkin.errors import MissingPartError
from vidkin.features import open_extractor
try:
    open_extractor(sys.argv[1])
except MissingPartError as error:
    print(error)
"""
METRIC = """
from vidkin.errors import MissingPartError
try:
    from vidkin.metric import losses
except MissingPartError as error:
    print(error)
"""


def run(code: str, *words: object) -> str:
    """Output of a program in an environment without the training packages."""
    path = os.pathsep.join([str(WITHOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.large
def test_trained_models_can_index_search_and_compare_without_torch(tmp_path: Path) -> None:
    for name in ("coffee", "rocket"):
        (tmp_path / "videos").mkdir(exist_ok=True)
        encode(tmp_path / "videos" / f"{name}.mp4", pan(name, 40))
    for kind in ("image", "clip"):
        save_model(small(kind), tmp_path / kind)
    # Random weights make all frames similar, so nothing is a copy.
    encoder = small("frame_encoder", size=64)
    encoder.get_submodule("network").load_state_dict(load_frame_encoder().state_dict())
    save_model(encoder, tmp_path / "frame_encoder")
    save_comparator(passing(ComparatorConfig(unrelated=(-1.0, 0.5))), tmp_path / "comparator")
    lines = run(USE, tmp_path).splitlines()
    fingerprints = {name: open_extractor(str(tmp_path / name)).fingerprint for name in ("image", "clip")}
    assert lines[0] == f"image {fingerprints['image']}"
    assert lines[1] == f"clip {fingerprints['clip']}"


def test_error_for_a_model_without_graphs_says_what_to_do(tmp_path: Path) -> None:
    folder = save_model(small("image"), tmp_path / "model")
    (folder / "model.onnx").unlink()
    sentence = f"{folder}: has no model.onnx, so it requires torch; install torch to use the model, or train it"
    assert run(WITHOUT_GRAPH, folder).strip() == f"{sentence} again with `vidkin train RECIPE --output FOLDER`"


def test_error_for_losses_says_what_to_install() -> None:
    assert run(METRIC).strip() == (
        f"vidkin.metric needs torch, which is not installed; install it with: {install_command('train')}"
    )
