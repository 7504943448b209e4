"""A comparator folder as an extractor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.comparators import passing
from tests.support.videos import photograph
from vidkin.errors import InvalidArgumentError
from vidkin.features import open_extractor
from vidkin.media import Frames
from vidkin.models import ComparatorConfig, ComparatorExtractor, measure_unrelated, save_comparator


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_comparator(passing(ComparatorConfig(unrelated=(0.0, 0.5))), tmp_path_factory.mktemp("comparator"))


def open_comparator(name: str | Path) -> ComparatorExtractor:
    extractor = open_extractor(str(name))
    assert isinstance(extractor, ComparatorExtractor)
    return extractor


def test_features_equal_those_of_its_extractor(folder: Path) -> None:
    frames = Frames(np.stack([photograph("coffee")] * 2), np.arange(2, dtype=np.float64))
    extractor, plain = open_comparator(folder), open_extractor("squares")
    features = extractor.extract(frames)
    assert features.values.shape == (2, 1, 1, 128)
    np.testing.assert_allclose(features.values, plain.extract(frames).values)
    assert features.fingerprint == extractor.fingerprint
    assert extractor.fingerprint.endswith(plain.fingerprint)
    assert (extractor.scorer, extractor.describes_boxes) == ("learned", False)
    assert extractor.short_side == plain.short_side


def test_top_k_settings_can_be_given_in_the_name(folder: Path) -> None:
    plain, shared = (
        open_comparator(folder),
        open_comparator(f"model:{folder}?spatial_share=.35&temporal_share=.1&temporal_span=7"),
    )
    config = shared.comparator.config
    assert (config.spatial_share, config.temporal_share, config.temporal_span) == (0.35, 0.1, 7)
    # The features are the same, the scores are not.
    assert shared.fingerprint == plain.fingerprint
    assert repr(shared.open_scorer()) != repr(plain.open_scorer())
    with pytest.raises(InvalidArgumentError, match="has no setting 'share'"):
        open_comparator(f"{folder}?share=.1")
    with pytest.raises(InvalidArgumentError, match="accepts no weights"):
        open_extractor(str(folder), weights="file.safetensors")


def test_scores_of_unrelated_videos_are_measured_if_not_stored(folder: Path) -> None:
    assert open_comparator(folder).open_scorer().unrelated == (0.0, 0.5)
    measured = measure_unrelated(passing().on_arrays(), open_extractor("squares"))
    # Twice the best of 4 x 4 cosines of photographs, minus one.
    assert -0.6 < measured[0] < measured[1] < 0.7


def test_a_trained_model_as_extractor_is_rejected(folder: Path, tmp_path: Path) -> None:
    other = save_comparator(passing(ComparatorConfig(extractor=str(folder))), tmp_path / "other")
    with pytest.raises(InvalidArgumentError, match="must not be a trained model"):
        open_comparator(other)
