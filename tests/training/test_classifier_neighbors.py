"""Search for the nearest training items matches plain loops; damaged files of training items are rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig, build_model, save_model
from vidkin.training import TrainingItems, classify, nearest
from vidkin.training.classifier import NEIGHBORS_FILE


def write(
    folder: Path,
    *,
    embeddings: torch.Tensor | None = None,
    labels: torch.Tensor | None = None,
    keys: object = ("a/1.png", "b/2.png"),
) -> Path:
    """Write two training items, of classes 0 and 1."""
    tensors = {
        "embeddings": torch.eye(2) if embeddings is None else embeddings,
        "labels": torch.tensor([0, 1]) if labels is None else labels,
    }
    text = keys if isinstance(keys, str) else json.dumps(keys)
    save_file(tensors, folder / NEIGHBORS_FILE, metadata={"keys": text})
    return folder


@pytest.mark.parametrize("seed", range(4))
def test_nearest_matches_a_plain_loop(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries, gallery = torch.randn(5, 3, generator=generator), torch.randn(7, 3, generator=generator)
    distances, places = nearest(queries, gallery, 3)
    for query, row, numbers in zip(queries, distances, places.tolist(), strict=True):
        every = sorted((float((query - other).square().sum()), place) for place, other in enumerate(gallery))
        assert numbers == [place for _, place in every[:3]]
        assert row.tolist() == pytest.approx([distance for distance, _ in every[:3]], abs=1e-5)


def test_nearest_returns_at_most_all_items() -> None:
    distances, places = nearest(torch.tensor([[0.0], [9.0]]), torch.tensor([[1.0], [7.0]]), 5)
    assert (distances.tolist(), places.tolist()) == ([[1.0, 49.0], [4.0, 64.0]], [[0, 1], [1, 0]])
    assert nearest(torch.zeros(2, 1), torch.zeros(3, 1), 0)[1].shape == (2, 0)


def test_training_items_round_trip_through_their_file(tmp_path: Path) -> None:
    known = TrainingItems.load(write(tmp_path))
    assert torch.equal(known.embeddings, torch.eye(2))
    assert (known.labels.tolist(), known.keys) == ([0, 1], ("a/1.png", "b/2.png"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": ["a/1.png"]}, "damaged: lists of different lengths"),
        ({"labels": torch.tensor([0, 1, 1])}, "damaged: lists of different lengths"),
        ({"embeddings": torch.tensor([[1.0], [float("nan")]])}, "damaged: non-finite values"),
        ({"embeddings": torch.ones(2)}, "damaged: not a list of vectors with classes and files"),
        ({"labels": torch.tensor([0.0, 1.0])}, "damaged: not a list of vectors with classes and files"),
        ({"keys": "5"}, "damaged: not a list of vectors with classes and files"),
        ({"keys": '{"a": 1, "b": 2}'}, "damaged: not a list of vectors with classes and files"),
        ({"keys": "not JSON"}, "cannot be read: Expecting value"),
        ({"keys": "[" * 100_000}, "cannot be read: "),
    ],
)
def test_damaged_files_are_rejected_with_the_cause(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    write(tmp_path, **changes)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=rf"neighbors\.safetensors: {message}.*train the model again"):
        TrainingItems.load(tmp_path)


@pytest.mark.parametrize(
    ("dimension", "labels"), [(3, [0, 1]), (8, [0, 2]), (8, [-1, 0])], ids=["dimension", "high", "low"]
)
def test_items_of_another_model_are_rejected(dimension: int, labels: list[int], tmp_path: Path) -> None:
    config = EncoderConfig(kind="two_head", backbone="small", size=32, width=0.25, embedding=8, classes=2)
    model = build_model(config)
    model.class_names = ("cat", "dog")
    save_model(model, tmp_path)
    write(tmp_path, embeddings=torch.ones(2, dimension), labels=torch.tensor(labels))
    with pytest.raises(
        InvalidArgumentError, match=r"must contain this model's training items, got those of another model"
    ):
        classify(tmp_path, [])
    write(tmp_path, embeddings=torch.ones(2, 8))
    assert classify(tmp_path, []) == ([], [])
