"""Online triplets with relevance from one or two levels of labels, a matrix, a classical feature, or a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from vidkin.errors import InvalidArgumentError
from vidkin.training import index_stream
from vidkin.training.draws import OnlineSettings, online_triplets, read_relevance

# Two categories with two subcategories of four items.
TWO_LEVELS = torch.tensor([[row // 8, row // 4] for row in range(16)])
ONE_LEVEL = torch.tensor([[row // 8, row // 8] for row in range(16)])


def sample_triplets(
    labels: torch.Tensor, relevance: torch.Tensor | None = None, *, seed: int = 0, **settings: float
) -> torch.Tensor:
    """Triplets sampled in thirty steps, [300, 3]."""
    stream = online_triplets(labels, relevance, steps=30, triplets=10, settings=OnlineSettings(**settings), seed=seed)
    return torch.cat([rows.reshape(3, 10).T for rows in stream])


def test_positives_share_more_levels_than_negatives() -> None:
    shared = {(True, True): 2, (True, False): 1, (False, False): 0}
    seen = set()
    for query, positive, negative in sample_triplets(TWO_LEVELS).tolist():
        levels = [shared[tuple((TWO_LEVELS[query] == TWO_LEVELS[other]).tolist())] for other in (positive, negative)]
        assert levels[0] > levels[1]
        assert query != positive
        seen.add(tuple(levels))
    # Items of the same category in another subcategory occur both as positives and as negatives.
    assert seen == {(2, 1), (2, 0), (1, 0)}


def test_one_level_of_labels_gives_negatives_of_other_classes() -> None:
    classes = ONE_LEVEL[sample_triplets(ONE_LEVEL), 0]
    assert bool((classes[:, 0] == classes[:, 1]).all())
    assert bool((classes[:, 0] != classes[:, 2]).all())


def test_a_relevance_matrix_orders_items_of_one_category() -> None:
    # Items with closer numbers are more relevant.
    places = torch.arange(16.0)
    relevance = (1 - (places[:, None] - places).abs() / 8).clamp(min=0)
    triplets = sample_triplets(ONE_LEVEL, relevance, margin=0.3, in_class=1.0)
    assert bool((ONE_LEVEL[triplets, 0] == ONE_LEVEL[triplets[:, :1], 0]).all())
    gaps = relevance[triplets[:, 0], triplets[:, 1]] - relevance[triplets[:, 0], triplets[:, 2]]
    assert float(gaps.min()) >= 0.3 - 1e-6


def test_stream_continues_from_a_later_step() -> None:
    def stream(start: int) -> list[list[int]]:
        found = index_stream("online_triplets", TWO_LEVELS, steps=6, start=start, quadlets=3, seed=5)
        return [rows.tolist() for rows in found]

    assert stream(0)[4:] == stream(4)
    assert len(stream(0)[0]) == 9
    assert sample_triplets(TWO_LEVELS, seed=1).tolist() != sample_triplets(TWO_LEVELS, seed=2).tolist()


def test_labels_without_triplets_are_rejected() -> None:
    alike = torch.zeros(6, 2, dtype=torch.int64)
    stream = online_triplets(alike, None, steps=1, triplets=2, settings=OnlineSettings())
    with pytest.raises(InvalidArgumentError, match="no triplet of the 6 training items was accepted"):
        next(stream)
    for settings in ({"buffer": 1}, {"margin": -1.0}, {"in_class": 1.5}):
        with pytest.raises(InvalidArgumentError, match="must be"):
            OnlineSettings(**settings)  # type: ignore[arg-type]


def test_relevance_is_read_from_labels_a_feature_or_a_file(tmp_path: Path) -> None:
    categories = ONE_LEVEL[:, 0]
    assert read_relevance("labels", None, categories) is None
    path = tmp_path / "relevance.safetensors"
    save_file({"relevance": torch.eye(16)}, path)
    assert torch.equal(read_relevance(str(path), None, categories), torch.eye(16))  # type: ignore[arg-type]
    images = torch.zeros(16, 8, 8, 3, dtype=torch.uint8)
    assert read_relevance("classical:color", images, categories).shape == (16, 16)  # type: ignore[union-attr]
    with pytest.raises(InvalidArgumentError, match=r"'sift:big' is not a relevance; .* run pip install .*research"):
        read_relevance("sift:big", images, categories)
    with pytest.raises(InvalidArgumentError, match="requires images in memory"):
        read_relevance("classical:color", None, categories)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"relevance": torch.eye(3)}, r"relevance must be \[16, 16\].* got \[3, 3\]"),
        ({"relevance": -torch.eye(16)}, r"numbers of at least 0"),
        ({"other": torch.eye(16)}, "got no tensor of this name"),
    ],
)
def test_files_that_do_not_match_the_items_are_rejected(
    tmp_path: Path, tensors: dict[str, torch.Tensor], message: str
) -> None:
    path = tmp_path / "relevance.safetensors"
    save_file(tensors, path)
    with pytest.raises(InvalidArgumentError, match=message):
        read_relevance(str(path), None, ONE_LEVEL[:, 0])
