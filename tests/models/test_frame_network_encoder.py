"""The frame encoder as a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.models.conftest import pictures
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig, FrameEncoderModel, build_model, load_model, model_digest, save_model

NETWORK = {"widths": [8, 8, 16], "strides": [2, 1], "grid": 2, "normalization": "image"}


def built(**changes: Any) -> FrameEncoderModel:
    model = build_model(EncoderConfig(**{"kind": "frame_encoder", "size": 16, "network": NETWORK, **changes}))
    assert isinstance(model, FrameEncoderModel)
    return model.eval()


def test_model_returns_unit_vectors_for_squares() -> None:
    model = built(embedding=12)
    vectors = model.embed(pictures(3, 16))
    assert vectors.shape == (3, model.dimension) == (3, 12)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    assert built().dimension == 128
    assert len(model.head_parameters()) == len(list(model.parameters()))


def test_model_can_be_saved_and_loaded(tmp_path: Path) -> None:
    model = built()
    loaded = load_model(save_model(model, tmp_path))
    assert loaded.config == model.config
    assert loaded.config.mean is None
    assert model_digest(loaded) == model_digest(model)
    assert torch.equal(loaded.embed(pictures(2, 16)), model.embed(pictures(2, 16)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mean": (0.5, 0.5, 0.5)}, "mean and std must not be set for kind 'frame_encoder'"),
        ({"trainable": "head"}, "trainable must be 'all' for kind 'frame_encoder'"),
        ({"kind": "image"}, "network must not be set for kind 'image'"),
        ({"network": {"depth": 3}}, "settings must be among .*widths.*, got depth"),
    ],
)
def test_settings_of_other_kinds_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        built(**settings)


def test_invalid_inputs_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"frames must be \[B, 3, S, S\] floating point"):
        built()(torch.zeros(2, 3, 16, 16, dtype=torch.uint8))
    with pytest.raises(InvalidArgumentError, match="lengths must be None for single frames"):
        built().embed(pictures(1, 16), torch.tensor([1]))
