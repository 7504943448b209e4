"""Single runs: training with every method, collapse, and hand-computed metrics."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.models import Encoder, EncoderConfig, build_model
from vidkin_research.retrieval.methods import METHODS, method_named
from vidkin_research.retrieval.study import nearest_items, score_retrieval
from vidkin_research.retrieval.training import Labelled, RunSchedule, embed_inputs, train_method


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Small products are faster on one thread, especially on a shared machine."""
    torch.set_num_threads(1)


FEATURES = [method.name for method in METHODS if method.input == "features" and method.objectives]


def make_set(seed: int, *, each: int = 6, noise: float = 1.5) -> Labelled:
    """Three categories of four subcategories: a direction for each category and subcategory, plus noise."""
    centers = torch.Generator().manual_seed(7)
    generator = torch.Generator().manual_seed(seed)
    rows, labels = [], []
    for category in range(3):
        coarse = torch.randn(64, generator=centers)
        for subcategory in range(4):
            fine = torch.randn(64, generator=centers)
            for _ in range(each):
                rows.append(coarse + 0.8 * fine + noise * torch.randn(64, generator=generator))
                labels.append([category, 4 * category + subcategory])
    return Labelled(torch.stack(rows), torch.tensor(labels))


@pytest.fixture(scope="module")
def config() -> EncoderConfig:
    return EncoderConfig(kind="image", backbone="small", trainable="head", hidden=32, embedding=16, size=32)


def encoder_with_head(config: EncoderConfig, seed: int) -> Encoder:
    """Build an image encoder whose head takes 64-dimensional vectors."""
    model = build_model(config, seed=seed)
    if model.fully_connected.in_features != 64:  # type: ignore[union-attr]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model.fully_connected = torch.nn.Linear(64, 32)
        model.feature_dimension = 64  # type: ignore[assignment]
    return model


@pytest.mark.parametrize("name", FEATURES)
def test_every_method_trains_deterministically(name: str, config: EncoderConfig) -> None:
    found = []
    for _ in range(2):
        model = encoder_with_head(config, 0)
        training = train_method(model, method_named(name), make_set(0), RunSchedule(steps=3, quadlets=8), seed=1)
        assert training.loss is not None
        assert math.isfinite(training.loss)
        assert not model.training
        found.append(embed_inputs(model, make_set(1).inputs))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    norms = found[0].norm(dim=1)
    torch.testing.assert_close(norms, torch.ones_like(norms))


@pytest.mark.parametrize("name", ["quadlet", "radial_detached", "all_quadlets", "quadlets_and_ap"])
def test_training_improves_the_quadlet_precision_of_new_items(name: str, config: EncoderConfig) -> None:
    train, test = make_set(0), make_set(1)
    values = []
    for steps in (0, 60):
        model = encoder_with_head(config, 0)
        method = method_named(name if steps else "untrained")
        train_method(model, method, train, RunSchedule(steps=60, quadlets=16, learning_rate=3e-3), seed=0)
        vectors = [embed_inputs(model, part.inputs) for part in (test, train)]
        values.append(score_retrieval(vectors[0], test.labels, vectors[1], train.labels)["qp"])
    assert values[1] > values[0] + 10


def test_published_gradient_collapses_unlike_the_detached_one(config: EncoderConfig) -> None:
    """With random labels, for which no arrangement is better than a single point."""
    found = {}
    for name in ("radial", "radial_detached"):
        model = encoder_with_head(config, 0)
        schedule = RunSchedule(steps=80, quadlets=16, learning_rate=3e-3)
        found[name] = train_method(model, method_named(name), make_set(0, noise=20.0), schedule, seed=0)
    assert found["radial"].collapsed
    assert found["radial"].distance < found["radial"].distance_before / 3
    assert not found["radial_detached"].collapsed


def test_frozen_weights_do_not_change(config: EncoderConfig) -> None:
    model = encoder_with_head(config, 0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    training = train_method(model, method_named("untrained"), make_set(0), RunSchedule(steps=5), seed=0)
    assert training.loss is None
    assert training.distance == training.distance_before
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_training_reports_every_step() -> None:
    config = EncoderConfig(kind="c3d", width=0.125, classes=12, frames=4, size=32, batch_norm=True)
    train = Labelled(
        torch.randint(0, 256, (24, 4, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)),
        torch.tensor([[place // 8, place // 2] for place in range(24)]),
    )
    steps: list[int] = []
    model = build_model(config, seed=0)
    training = train_method(
        model,
        method_named("c3d"),
        train,
        RunSchedule(steps=2, quadlets=8),
        seed=0,
        on_step=lambda step, loss: steps.append(step),
    )
    assert steps == [1, 2]
    assert training.loss is not None
    assert embed_inputs(model, train.inputs).shape == (24, model.dimension)


def circle(*angles: float) -> Tensor:
    given = torch.tensor(angles, dtype=torch.float64)
    return torch.stack([given.cos(), given.sin()], dim=1)


def test_gallery_quadlets_equal_hand_computed_values() -> None:
    """A query at angle 0 and a gallery of p, i and two n on the circle: one n is closer than i."""
    labels = torch.tensor([[0, 0], [0, 1], [1, 2], [1, 3]])
    figures = score_retrieval(circle(0.0), torch.tensor([[0, 0]]), circle(0.1, 0.5, 0.3, 2.0), labels)
    assert figures["qp_gallery"] == 50.0  # (p, i, n at 0.3) is out of order, (p, i, n at 2.0) in order
    assert figures["tp_gallery"] == 75.0  # (p, n) and (i, n) for both n: three of four are in order
    assert figures["map"] == pytest.approx(100 * (1 / 1 + 2 / 3) / 2)
    assert figures["map_subcategory"] == figures["recall_at_1"] == 100.0
    best = 3 / math.log2(2) + 1 / math.log2(3)
    assert figures["ndcg"] == pytest.approx(100 * (3 / math.log2(2) + 1 / math.log2(4)) / best)
    assert math.isnan(figures["qp"])  # a single query has no quadlet in its own split


def test_test_quadlets_equal_hand_computed_values() -> None:
    """Four queries, two of which have quadlets: q at 0 and 0.1, i at 0.4, n at 0.3 and a second n at 2."""
    labels = torch.tensor([[0, 0], [0, 0], [0, 1], [1, 2], [1, 3]])
    figures = score_retrieval(circle(0.0, 0.1, 0.4, 0.3, 2.0), labels, circle(0.0), labels[:1])
    # Both have their positive first; n at 0.3 is closer than i at 0.4, n at 2 is not.
    assert figures["qp"] == 50.0
    assert figures["quadlets"] == 4.0
    # In the quadlets, all (q, p, n) and half of the (q, i, n) are in order.
    assert figures["tp"] == 75.0
    assert figures["qp_sampled"] == pytest.approx(50.0, abs=2)


def test_nearest_items_are_first() -> None:
    gallery = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.8, 0.6]])
    assert nearest_items(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), gallery, count=5) == [[1, 2, 0], [0, 2, 1]]


def test_labels_must_match_the_inputs() -> None:
    with pytest.raises(InvalidArgumentError, match=r"labels must be \[3, 2\] for 3 inputs, got \[2, 2\]"):
        Labelled(torch.zeros(3, 4), torch.zeros(2, 2, dtype=torch.int64))
