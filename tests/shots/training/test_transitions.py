"""The network of transitions: what is written beside its weights, and what runs where that is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.shots import band, open_detector
from vidkin.shots.band import BAND_CHANNELS, TransitionSession, TransitionThresholds, open_network
from vidkin.shots.training.transitions import TransitionNetwork, main

pytestmark = pytest.mark.large

DATA = Path(band.__file__).with_name("data")
FEATURES = np.random.default_rng(0).random((300, BAND_CHANNELS), np.float32)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights with thresholds, and their ONNX file."""
    torch.manual_seed(0)
    network = TransitionNetwork(width=8)
    network.thresholds = TransitionThresholds(hard=0.3, gradual=0.7)
    network.save(path := tmp_path_factory.mktemp("network") / "network.safetensors")
    return path


def test_networks_are_kept_with_their_thresholds(stored: Path) -> None:
    network = TransitionNetwork.load(stored)
    assert network.thresholds == TransitionThresholds(hard=0.3, gradual=0.7)
    again, metadata = open_network(stored, outputs=2)
    assert isinstance(again, TransitionSession)
    assert band.read_thresholds(metadata) == network.thresholds
    np.testing.assert_allclose(again.probabilities(FEATURES), network.probabilities(FEATURES), atol=1e-6)


@pytest.mark.parametrize("name", ["band", "cuts"])
def test_the_shipped_onnx_files_are_those_of_the_shipped_weights(name: str) -> None:
    """Written again from the weights, they would give the same answers."""
    weights = DATA / f"{name}.safetensors"
    network = TransitionNetwork.load(weights) if name == "band" else None
    outputs = 2 if name == "band" else 5
    shipped, _ = open_network(weights, outputs=outputs)
    assert isinstance(shipped, TransitionSession)
    if network is not None:
        np.testing.assert_allclose(shipped.probabilities(FEATURES), network.probabilities(FEATURES), atol=2e-6)


def test_blocks_of_the_trained_network_change_nothing() -> None:
    network = TransitionNetwork.load(DATA / "band.safetensors")
    features = np.random.default_rng(1).random((9000, BAND_CHANNELS), np.float32)
    with torch.no_grad():
        expected = torch.sigmoid(network(torch.from_numpy(features)[None]))[0]
    np.testing.assert_allclose(network.probabilities(features), expected, atol=1e-5)


def test_weights_without_their_onnx_file_run_with_torch_and_are_refused_without(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "older.safetensors"
    older.write_bytes(stored.read_bytes())
    for case in ("missing", "of other weights"):
        network, _ = open_network(older, outputs=2)
        assert isinstance(network, TransitionNetwork), case
        np.testing.assert_allclose(
            network.probabilities(FEATURES), open_network(stored, outputs=2)[0].probabilities(FEATURES), atol=1e-6
        )
        with monkeypatch.context() as patch:
            patch.setattr(band, "find_spec", lambda name: None)
            with pytest.raises(
                MissingPartError, match=rf"older\.onnx: is missing or .*vidkin\.shots\.training\.transitions {older}$"
            ):
                open_detector(f"band?weights={older}")
        older.with_suffix(".onnx").write_bytes((DATA / "band.onnx").read_bytes())
    # What the message says to do.
    assert main([str(older)]) == 0
    assert isinstance(open_network(older, outputs=2)[0], TransitionSession)
    assert open_detector(f"band?weights={older}").name == f"band?weights={older}"
    assert main([]) == 2


def test_weights_with_another_number_of_answers_are_refused(stored: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="it must give 5 answers a frame, got 2"):
        open_detector(f"cuts?weights={stored}")


def test_the_shipped_files_run_where_torch_cannot_be_imported() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from vidkin.shots import open_detector; "
        "print(*(open_detector(name).finish().cuts for name in ('default', 'cuts', 'band')))"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["()", "()", "()"], "")
