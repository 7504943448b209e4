"""Relevance of images by a classical feature, for recipes of deep ranking."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.training import write_pictures
from tests.training.test_deep_ranking import recipe
from vidkin.errors import UnknownExtractorError
from vidkin.training import train
from vidkin.training.draws import read_relevance
from vidkin_research.features.relevance import relevance_by_feature


def test_relevance_by_a_feature_is_visual_similarity() -> None:
    colors = [(250, 0, 0), (250, 40, 0), (0, 0, 250), (250, 0, 0)]
    images = np.stack([np.full((8, 8, 3), color, np.uint8) for color in colors])
    images[1, :4] = colors[0]  # half of it has the color of the first
    found = relevance_by_feature("classical:color", images, torch.tensor([0, 0, 0, 1]))
    assert found.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert not bool(relevance_by_feature("classical:color", images, torch.arange(4)).any())


def test_recipes_select_relevance_by_feature_name(tmp_path: Path) -> None:
    images = torch.zeros(4, 8, 8, 3, dtype=torch.uint8)
    assert read_relevance("classical:color", images, torch.arange(4)).shape == (4, 4)  # type: ignore[union-attr]
    with pytest.raises(UnknownExtractorError, match="'sift' is not a classical feature"):
        read_relevance("classical:sift", images, torch.arange(4))
    pictures = write_pictures(tmp_path / "pictures")
    report = train(recipe(pictures, relevance="classical:color"), output=tmp_path / "model")
    assert report.terms["deep_ranking"] > 0
