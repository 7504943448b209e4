"""The network of transitions: what is written beside its weights, and what runs where that is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.shots import band, open_detector
from vidkin.shots.band import BAND_CHANNELS, TransitionSession, open_network
from vidkin.shots.cuts import CutModel
from vidkin_research.detectors import band as band_detector
from vidkin_research.detectors.band import TransitionThresholds, read_thresholds
from vidkin_research.detectors.band_network import TransitionNetwork, read_network, write_network

pytestmark = pytest.mark.large

DATA = Path(band_detector.__file__).with_name("data")
PRODUCT = Path(band.__file__).with_name("data")
FEATURES = np.random.default_rng(0).random((300, BAND_CHANNELS), np.float32)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights with thresholds, and their ONNX file."""
    torch.manual_seed(0)
    network = TransitionNetwork(width=8)
    network.thresholds = TransitionThresholds(hard=0.3, gradual=0.7)
    network.save(path := tmp_path_factory.mktemp("network") / "network.safetensors")
    return path


def test_networks_are_stored_with_their_thresholds(stored: Path) -> None:
    network = TransitionNetwork.load(stored)
    assert network.thresholds == TransitionThresholds(hard=0.3, gradual=0.7)
    again, metadata = open_network(stored, outputs=2)
    assert isinstance(again, TransitionSession)
    assert read_thresholds(metadata) == network.thresholds
    np.testing.assert_allclose(again.probabilities(FEATURES), network.probabilities(FEATURES), atol=1e-6)


def test_shipped_onnx_file_has_the_shipped_weights() -> None:
    """Written again from the weights, it would give the same answers."""
    weights = DATA / "band.safetensors"
    shipped, _ = open_network(weights, outputs=2)
    trained = TransitionNetwork.load(weights).probabilities(FEATURES)
    np.testing.assert_allclose(shipped.probabilities(FEATURES), trained, atol=2e-6)


@pytest.mark.large
def test_model_of_the_default_detector_round_trips(tmp_path: Path) -> None:
    model = CutModel.load()
    network, _ = read_network(PRODUCT / "cuts.safetensors")
    write_network(network, tmp_path / "model.safetensors", model.notes())
    again = CutModel.load(tmp_path / "model.safetensors")
    assert again.rules == model.rules
    assert again.provenance == model.provenance
    assert np.array_equal(again.network.probabilities(FEATURES), model.network.probabilities(FEATURES))


def test_blocks_do_not_change_the_results() -> None:
    network = TransitionNetwork.load(DATA / "band.safetensors")
    features = np.random.default_rng(1).random((9000, BAND_CHANNELS), np.float32)
    with torch.no_grad():
        expected = torch.sigmoid(network(torch.from_numpy(features)[None]))[0]
    np.testing.assert_allclose(network.probabilities(features), expected, atol=1e-5)


def test_weights_without_their_onnx_file_are_rejected(stored: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes(stored.read_bytes())
    with pytest.raises(InvalidArgumentError, match=r"alone\.onnx: is missing or of other weights .*; train it again"):
        open_detector(f"band?weights={alone}")
    alone.with_suffix(".onnx").write_bytes((DATA / "band.onnx").read_bytes())
    with pytest.raises(InvalidArgumentError, match=r"alone\.onnx: is missing or of other weights .*; train it again"):
        open_detector(f"band?weights={alone}")


def test_weights_with_another_number_of_outputs_are_rejected(stored: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="it must give 5 answers a frame, got 2"):
        open_detector(f"cuts?weights={stored}")


def test_shipped_files_run_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from vidkin.shots import open_detector; "
        "print(*(open_detector(name).finish().cuts for name in ('default', 'cuts', 'band')))"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["()", "()", "()"], "")
