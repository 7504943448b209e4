"""Encoder configurations."""

from __future__ import annotations

from typing import Any

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig


def test_a_configuration_is_restored_from_its_mapping() -> None:
    config = EncoderConfig(kind="clip", backbone="torchvision:alexnet", lstm=7, rate=20, mean=(0.1, 0.2, 0.3))
    mapping = config.to_mapping()
    assert mapping["mean"] == [0.1, 0.2, 0.3]
    assert "std" not in mapping  # TOML has no None, so it is not written
    assert EncoderConfig.from_mapping(mapping) == config


def test_integers_are_accepted_as_floats_but_not_floats_as_integers() -> None:
    assert EncoderConfig.from_mapping({"rate": 20}).rate == 20.0
    with pytest.raises(InvalidArgumentError, match=r"model.hidden must be a whole number, got 2\.5"):
        EncoderConfig.from_mapping({"hidden": 2.5})
    with pytest.raises(InvalidArgumentError, match=r"model\.hidden must be a whole number, got True"):
        EncoderConfig.from_mapping({"hidden": True})


def test_error_for_an_unknown_setting_lists_the_allowed_settings() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[model\] has no setting layers; choose from kind, backbone,"):
        EncoderConfig.from_mapping({"layers": 3})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "gru"}, "kind must be one of 'clip', 'image', 'c3d', 'deep_sbd', 'deep_ranking'.*, got 'gru'"),
        ({"trainable": "tail"}, "trainable must be one of 'head', 'all', got 'tail'"),
        ({"activation": "gelu"}, "activation must be one of 'relu', 'none', got 'gelu'"),
        ({"fit": "pad"}, "fit must be one of 'letterbox', 'crop', 'stretch', got 'pad'"),
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"size": 8}, "size must be at least 16, got 8"),
        ({"embedding": -1}, "embedding must be at least 0, got -1"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, got 1\.0"),
        ({"rate": 0.0}, r"rate must be a number above 0, got 0\.0"),
        ({"width": float("inf")}, "width must be a number, got inf"),
        ({"rate": 5.0, "seconds": 2.0}, "only one of rate and seconds can be set, got 5.0 and 2.0"),
        ({"kind": "c3d"}, "classes must be at least 2 for kind 'c3d', got 0"),
        ({"kind": "clip", "classes": 4}, "classes must be 0 for kind 'clip', got 4"),
        (
            {"kind": "deep_sbd", "classes": 3, "trainable": "head"},
            "trainable must be 'all' for kind 'deep_sbd', which has no backbone, got 'head'",
        ),
        ({"mean": (0.5, 0.5)}, r"mean must be three numbers or None, got \(0\.5, 0\.5\)"),
        ({"std": (0.5, 0.0, 0.5)}, "std must be three numbers above 0"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        EncoderConfig(**settings)


def test_each_kind_has_its_input_type() -> None:
    assert EncoderConfig(kind="clip").takes_clips
    assert not EncoderConfig(kind="image").takes_clips
    assert EncoderConfig(kind="c3d", classes=2).is_classifier
    assert not EncoderConfig(kind="deep_ranking").is_classifier
