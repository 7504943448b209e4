"""Loading and saving features, by file and by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from research.tests.features.pictures import photographs
from safetensors.torch import load_file, save_file

from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin_research.features import (
    ColorHistogram,
    GradientHistogram,
    ImageFeature,
    WaveletSignature,
    available_features,
    feature_digest,
    load_feature,
    open_feature,
    save_feature,
)


def test_stored_feature_gives_the_same_vectors(feature: ImageFeature, tmp_path: Path) -> None:
    path = tmp_path / "feature.safetensors"
    save_feature(feature, path)
    again = load_feature(path)
    assert type(again) is type(feature)
    assert feature_digest(again) == feature_digest(feature)
    pictures = photographs(2)
    assert torch.equal(again.describe(pictures), feature.describe(pictures))
    assert torch.equal(open_feature(feature.name, weights=path).describe(pictures), feature.describe(pictures))


def test_settings_affect_name_file_and_digest(tmp_path: Path) -> None:
    hsv = open_feature("color?space=hsv&bins=4")
    assert hsv == ColorHistogram("hsv", 4)
    assert open_feature("hog?layout=blocks") == GradientHistogram("blocks")
    assert open_feature("wavelet?largest=60") == WaveletSignature(60)
    save_feature(hsv, tmp_path / "hsv.safetensors")
    assert load_feature(tmp_path / "hsv.safetensors") == hsv
    assert feature_digest(hsv) != feature_digest(ColorHistogram())


def test_fitted_features_ship_with_the_package() -> None:
    assert available_features() == (
        "wavelet",
        "color",
        "words",
        "fisher",
        "hog",
        "textons",
        "hash_kpca",
        "oasis",
    )
    lengths = {name: open_feature(name).describe(photographs(1)).shape[1] for name in available_features()[:-1]}
    assert lengths == {
        "wavelet": 123,
        "color": 4096,
        "words": 2048,
        "fisher": 16384,
        "hog": 1152,
        "textons": 21504,
        "hash_kpca": 128,
    }


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "sift",
            UnknownExtractorError,
            "'sift' is not a classical feature; choose from wavelet, color, words",
        ),
        ("oasis", InvalidArgumentError, "'oasis' is learned from labels; pass its file as weights"),
        ("color?space=cmyk", InvalidArgumentError, "space must be one of 'lab', 'hsv', 'rgb', got 'cmyk'"),
        ("color?bins=many", InvalidArgumentError, "bins must be a whole number, got 'many'"),
        ("fisher?gaussians=3", InvalidArgumentError, r"'fisher\?gaussians=3' has no setting 'gaussians'"),
    ],
)
def test_unknown_names_are_rejected(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_feature(name)


def test_file_of_another_feature_is_rejected(features: dict[str, ImageFeature], tmp_path: Path) -> None:
    path = tmp_path / "words.safetensors"
    save_feature(features["words"], path)
    with pytest.raises(InvalidArgumentError, match=r"contains the feature 'words' .* open it as 'classical:words'"):
        open_feature("fisher", weights=path)
    with pytest.raises(InvalidArgumentError, match="no such feature file"):
        load_feature(tmp_path / "nowhere.safetensors")
    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(InvalidArgumentError, match="not a classical image feature"):
        load_feature(tmp_path / "other.safetensors")


@pytest.mark.parametrize(
    "settings",
    [
        *("{}", "[", '{"name": "words"}', '{"name": "nothing"}', '{"name": "color", "bins": -1}'),
        *("[" * 100_000, '{"name": "oasis", "base": ' * 400 + "0" + "}" * 400),
    ],
    ids=lambda text: text[:40],
)
def test_damaged_files_are_rejected(features: dict[str, ImageFeature], tmp_path: Path, settings: str) -> None:
    path = tmp_path / "words.safetensors"
    save_file({"x": torch.zeros(2)}, path, {"format": "vidkin.image_feature", "feature": settings})
    with pytest.raises(InvalidArgumentError, match="damaged feature file"):
        load_feature(path)
    path.unlink()
    save_feature(features["words"], path)
    tensors = load_file(path)
    broken = {"centers": tensors["centers"][:, :7].contiguous()}
    save_file(broken, path, {"format": "vidkin.image_feature", "feature": json.dumps({"name": "words"})})
    with pytest.raises(InvalidArgumentError, match=r"damaged feature file.*centers must be \[K, 144\]"):
        load_feature(path)


def test_half_precision_is_read_as_single_precision(features: dict[str, ImageFeature], tmp_path: Path) -> None:
    path = tmp_path / "words.safetensors"
    save_feature(features["words"], path)
    halves = {"centers": load_file(path)["centers"].half()}
    save_file(halves, path, {"format": "vidkin.image_feature", "feature": json.dumps({"name": "words"})})
    found = load_feature(path).describe(photographs(2))
    torch.testing.assert_close(found, features["words"].describe(photographs(2)), atol=0.01, rtol=0)
