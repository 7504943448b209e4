"""Extractor names."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import (
    available_extractors,
    contracts,
    default_extractor,
    open_extractor,
    register_extractor,
)
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures


@pytest.fixture(autouse=True)
def _registry_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts, "_EXTRACTORS", copy.deepcopy(contracts._EXTRACTORS))


class Brightness:
    """Mean brightness: a complete extractor in a dozen lines, as a plugin would implement it."""

    fingerprint = "brightness-1"
    scorer = "copies"
    describes_boxes = False
    short_side = 8

    def __init__(self, name: str) -> None:
        self.name = name

    def extract(self, frames: Frames, *, boxes: torch.Tensor | None = None) -> FrameFeatures:
        values = torch.from_numpy(frames.images.mean(axis=(1, 2), dtype=np.float32))[:, None]
        times = torch.from_numpy(frames.timestamps)
        return FrameFeatures.of_whole(values, times, torch.ones(len(frames)), self.fingerprint)


def open_brightness(name: str, *, weights: object, whitening: object, device: str) -> Brightness:
    assert (weights, whitening, device) == ("w", None, "cpu")
    return Brightness(name)


def test_available_extractors_are_listed() -> None:
    networks = ("squares", "timm:<model>", "torchvision:<model>", "vidkin")
    paths = ("model:<folder>", "onnx:<file>")
    assert available_extractors() == ("classical", "classical:<feature>", *paths, *networks)


def test_default_extractor_is_vidkin_and_works_offline() -> None:
    assert (default_extractor(), default_extractor("whitening.safetensors")) == ("vidkin", "classical")
    extractor = open_extractor()
    assert extractor.name == "vidkin"
    images = np.random.default_rng(0).integers(0, 256, (2, 64, 96, 3), dtype=np.uint8)
    features = extractor.extract(Frames(images, np.array([0.0, 1.0])))
    assert len(features) == 2
    assert features.fingerprint == extractor.fingerprint


def test_registered_plugin_handles_its_prefix() -> None:
    register_extractor("brightness", open_brightness, usage="brightness[:<channel>]")
    assert "brightness[:<channel>]" in available_extractors()
    for name in ("brightness", "brightness:red", "brightness?size=3", "brightness:red?a=b:c"):
        extractor = open_extractor(name, weights="w", device="cpu")
        assert extractor.name == name
        frames = Frames(np.full((1, 4, 4, 3), 7, dtype=np.uint8), np.zeros(1))
        assert extractor.extract(frames).whole.tolist() == [[[7.0, 7.0, 7.0]]]


def test_prefix_must_be_unused_and_well_formed() -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"the prefix 'timm' is in use; choose one other than classical, onnx, squares, timm",
    ):
        register_extractor("timm", open_brightness)
    for prefix in ("", "a:b", "a b"):
        with pytest.raises(InvalidArgumentError, match=r"must consist of letters, digits, '_' and '-', got"):
            register_extractor(prefix, open_brightness)


@pytest.mark.parametrize("name", ["nothing", "path/to/model", "./model", "Classical", ":x"])
def test_unknown_name_error_lists_known_names(name: str) -> None:
    with pytest.raises(
        UnknownExtractorError,
        match=rf"'{name}' is not an extractor; choose from classical, classical:<feature>, model:<folder>, "
        "onnx:<file>, squares, timm:<model>, torchvision:<model>",
    ):
        open_extractor(name)


def test_empty_name_is_refused() -> None:
    with pytest.raises(
        UnknownExtractorError, match=r"'' is not an extractor; choose from classical, classical:<feature>, "
    ):
        open_extractor("")


def test_classical_refuses_weights_and_models() -> None:
    with pytest.raises(InvalidArgumentError, match=r"classical extractor has no weights, got 'w\.safetensors'"):
        open_extractor("classical", weights="w.safetensors")


@pytest.mark.parametrize("name", ["vidkin?regions=10", "classical?size=3"])
def test_extractor_without_settings_refuses_them(name: str) -> None:
    setting = name.partition("?")[2].partition("=")[0]
    with pytest.raises(InvalidArgumentError, match=rf"has no setting '{setting}'"):
        open_extractor(name)


@pytest.mark.large
def test_parsing_names_imports_no_network_library() -> None:
    code = (
        "import sys; from vidkin.features import open_extractor; open_extractor('classical'); "
        "print([m for m in ('timm', 'torchvision') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
