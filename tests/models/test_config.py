"""What an encoder is made of."""

from __future__ import annotations

from typing import Any

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig


def test_a_mapping_and_back_is_the_same() -> None:
    config = EncoderConfig(kind="clip", backbone="alexnet", lstm=7, rate=20, mean=(0.1, 0.2, 0.3))
    mapping = config.to_mapping()
    assert mapping["mean"] == [0.1, 0.2, 0.3]
    assert "std" not in mapping  # None is not written: TOML has no such value
    assert EncoderConfig.from_mapping(mapping) == config


def test_a_whole_number_stands_for_a_float_and_not_the_other_way_round() -> None:
    assert EncoderConfig.from_mapping({"rate": 20}).rate == 20.0
    with pytest.raises(InvalidArgumentError, match=r"hidden is 2\.5, allowed is a value of type int"):
        EncoderConfig.from_mapping({"hidden": 2.5})
    with pytest.raises(InvalidArgumentError, match="hidden is True, allowed is a value of type int"):
        EncoderConfig.from_mapping({"hidden": True})


def test_an_unknown_setting_is_named_with_those_allowed() -> None:
    with pytest.raises(
        InvalidArgumentError, match="a model has no setting layers; allowed are kind, backbone,"
    ):
        EncoderConfig.from_mapping({"layers": 3})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "gru"}, "kind is 'gru', allowed are clip, image, c3d, deep_sbd, deep_ranking"),
        ({"trainable": "tail"}, "trainable is 'tail', allowed are head, all"),
        ({"activation": "gelu"}, "activation is 'gelu', allowed are relu, none"),
        ({"fit": "pad"}, "fit is 'pad', allowed are letterbox, crop, stretch"),
        ({"hidden": 0}, "hidden is 0, allowed is 1 or more"),
        ({"size": 8}, "size is 8, allowed is 16 or more"),
        ({"embedding": -1}, "embedding is -1, allowed is 0 or more"),
        ({"dropout": 1.0}, r"dropout is 1\.0, allowed is \[0, 1\)"),
        ({"rate": 0.0}, r"rate is 0\.0, allowed is a number above 0"),
        ({"width": float("inf")}, "width is inf, allowed is a number above 0"),
        ({"rate": 5.0, "seconds": 2.0}, "with a rate the frames say how long a clip is, leave seconds out"),
        ({"kind": "c3d"}, "classes is 0; a c3d network classifies, give it 2 or more"),
        ({"kind": "clip", "classes": 4}, "classes is 4; clip has none, leave it at 0"),
        ({"kind": "deep_sbd", "classes": 3, "trainable": "head"}, "is trained whole: 'all'"),
        ({"mean": (0.5, 0.5)}, r"mean is \(0\.5, 0\.5\), allowed are three numbers"),
        ({"std": (0.5, 0.0, 0.5)}, "allowed are three numbers above 0"),
    ],
)
def test_what_is_not_allowed(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        EncoderConfig(**settings)


def test_what_a_kind_takes() -> None:
    assert EncoderConfig(kind="clip").takes_clips
    assert not EncoderConfig(kind="image").takes_clips
    assert EncoderConfig(kind="c3d", classes=2).is_classifier
    assert not EncoderConfig(kind="deep_ranking").is_classifier
