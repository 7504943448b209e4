"""Objectives pass the items and arguments that each loss needs."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses
from vidkin.models import Encoder, EncoderConfig, build_model
from vidkin.training import (
    Batch,
    DrawnItems,
    ObjectiveRecipe,
    WeightedObjective,
    available_objectives,
    build_objective,
    find_loss,
    index_stream,
    settle_parameters,
)

LABELS = torch.tensor([[c, 2 * c + s] for c in range(3) for s in range(2) for _ in range(4)])


@Encoder.register
class Table(nn.Module):
    """An encoder whose features are the embeddings."""

    def __init__(self, dimension: int = 8) -> None:
        super().__init__()
        self.config = EncoderConfig(kind="image")
        self.dimension = dimension

    def head(self, features: Tensor, lengths: Tensor | None) -> Tensor:
        assert lengths is None
        return nn.functional.normalize(features, dim=1)


def make_recipe(name: str, weight: float = 1.0, **parameters: Any) -> ObjectiveRecipe:
    return ObjectiveRecipe(name=name, weight=weight, parameters=settle_parameters(name, parameters))


def features() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(len(LABELS), 8, generator=generator).requires_grad_()


def batch_for(objective: WeightedObjective, rows: Tensor) -> tuple[Batch, dict[str, Tensor]]:
    drawn, indices = {}, {}
    for draw in objective.draws:
        indices[draw] = next(index_stream(draw, LABELS, steps=1, quadlets=6))
        drawn[draw] = DrawnItems(rows[indices[draw]], None, LABELS[indices[draw]], True)
    return Batch(drawn), dict(indices)


def objective_of(*parts: ObjectiveRecipe) -> tuple[WeightedObjective, Encoder]:
    model: Any = Table()
    return build_objective(parts, model, classes=6), model


@pytest.mark.parametrize("name", [name for name in available_objectives() if find_loss(name).draw != "clips"])
def test_objectives_return_a_finite_loss_with_a_gradient(name: str) -> None:
    objective, model = objective_of(make_recipe(name))
    rows = features()
    batch, _ = batch_for(objective, rows)
    terms = objective(model, batch)
    assert terms["loss"].shape == ()
    assert torch.isfinite(terms["loss"])
    assert torch.equal(terms[name], terms["loss"])
    terms["loss"].backward()
    assert rows.grad is not None
    assert float(rows.grad.norm()) > 0
    assert 0 < float(terms["distance"]) < 2
    assert not terms["distance"].requires_grad


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("triplet", lambda q, p, i, n: losses.triplet_loss(q, p, n, margin=0.7)),
        ("quadlet", lambda q, p, i, n: losses.quadlet_loss(q, p, i, n)),
        ("radial", lambda q, p, i, n: losses.radial_loss(q, p, i, n)),
        ("radial_detached", lambda q, p, i, n: losses.radial_loss(q, p, i, n, detach_radius=True)),
        ("quadruplet1", lambda q, p, i, n: losses.quadrupletwise_loss(q, p, i, n, delta=1.0)),
        ("quadruplet2a", lambda q, p, i, n: losses.quadruplet_loss(q, p, i, n)),
        ("angular", lambda q, p, i, n: losses.angular_quadlet_loss(q, p, i, n)),
    ],
)
def test_tuple_losses_receive_the_members(name: str, loss: Any) -> None:
    objective, model = objective_of(make_recipe(name))
    rows = features()
    batch, indices = batch_for(objective, rows)
    (drawn,) = indices.values()
    members = nn.functional.normalize(rows, dim=1)[drawn].chunk(4)
    assert torch.allclose(objective(model, batch)["loss"], loss(*members))


def test_the_detached_radial_loss_differs_only_in_its_gradient() -> None:
    values, gradients = [], []
    for name in ("radial", "radial_detached"):
        objective, model = objective_of(make_recipe(name))
        rows = features()
        batch, _ = batch_for(objective, rows)
        loss = objective(model, batch)["loss"]
        loss.backward()
        values.append(loss.item())
        assert rows.grad is not None
        gradients.append(rows.grad)
    assert values[0] == pytest.approx(values[1])
    assert not torch.allclose(*gradients)


def test_score_losses_receive_the_relevance_of_two_levels() -> None:
    objective, model = objective_of(make_recipe("hierarchical_ap"), make_recipe("smooth_ap", tau=0.05))
    rows = features()
    batch, indices = batch_for(objective, rows)
    drawn = indices["batches"]
    embeddings = nn.functional.normalize(rows, dim=1)[drawn]
    labels = LABELS[drawn]
    same = (labels[:, None, 1] == labels[None, :, 1]).long()
    graded = same + (labels[:, None, 0] == labels[None, :, 0]).long()
    scores = embeddings @ embeddings.T
    terms = objective(model, batch)
    assert torch.allclose(terms["hierarchical_ap"], losses.hierarchical_ap_loss(scores, graded))
    assert torch.allclose(terms["smooth_ap"], losses.smooth_ap_loss(scores, same, tau=0.05))


def test_the_loss_is_the_weighted_sum_and_repeated_terms_are_numbered() -> None:
    objective, model = objective_of(
        make_recipe("radial", 0.5), make_recipe("radial", 2.0, c=4.0), make_recipe("batch_hard", 3.0)
    )
    assert objective.draws == ("quadlets", "batches")
    batch, _ = batch_for(objective, features())
    terms = objective(model, batch)
    expected = 0.5 * terms["radial"] + 2.0 * terms["radial 2"] + 3.0 * terms["batch_hard"]
    assert torch.allclose(terms["loss"], expected)
    assert bool(terms["radial 2"] > terms["radial"])


def test_distance_term_is_the_mean_over_all_pairs() -> None:
    objective, model = objective_of(make_recipe("batch_hard"))
    rows = torch.tensor([[1.0, 0.0]] * 3 + [[-1.0, 0.0]])
    labels = torch.tensor([[0, 0], [0, 1], [1, 2], [1, 3]])
    terms = objective(model, Batch({"batches": DrawnItems(rows, None, labels, True)}))
    # 3 of 6 pairs are opposite, with a distance of 2.
    assert float(terms["distance"]) == pytest.approx(1.0)


def test_classification_of_unit_vectors_trains_its_directions() -> None:
    objective, model = objective_of(make_recipe("classification", scale=10.0))
    assert [tuple(weight.shape) for weight in objective.parameters()] == [(6, 8)]
    batch, indices = batch_for(objective, features())
    directions = nn.functional.normalize(next(objective.parameters()), dim=1)
    embeddings = nn.functional.normalize(features(), dim=1)[indices["uniform"]]
    expected = nn.functional.cross_entropy(10 * embeddings @ directions.T, LABELS[indices["uniform"], 1])
    terms = objective(model, batch)
    assert torch.allclose(terms["loss"], expected)
    assert 0 <= float(terms["accuracy"]) <= 1


@pytest.mark.parametrize("kind", ["c3d", "deep_sbd"])
def test_classification_uses_the_logits_of_a_classifier(kind: Any) -> None:
    model = build_model(EncoderConfig(kind=kind, classes=6, frames=4, size=16, width=0.1))
    objective = build_objective([make_recipe("classification")], model, classes=6)
    assert list(objective.parameters()) == []
    clips = torch.rand(4, 4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    items = DrawnItems(clips, None, LABELS[:4], False)
    terms = objective(model, Batch({"uniform": items}))
    terms["loss"].backward()
    weight = model.get_parameter("classifier.weight")
    assert weight.grad is not None
    assert float(weight.grad.norm()) > 0


def test_classification_rejects_a_scale_of_zero() -> None:
    with pytest.raises(InvalidArgumentError, match=r"objective 'classification': scale must be above 0 .*, got 0"):
        settle_parameters("classification", {"scale": 0})


def test_classification_uses_the_items_of_another_term() -> None:
    objective, model = objective_of(make_recipe("classification"), make_recipe("all_quadlets"))
    assert objective.draws == ("batches",)
    batch, _ = batch_for(objective, features())
    terms = objective(model, batch)
    assert torch.allclose(terms["loss"], terms["classification"] + terms["all_quadlets"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Cosines of the two views are 0.6 and 0.8 for the same image, and 0 for different ones.
        ("mae", (0.4 + 0.2) / 4),
        ("mse", (0.16 + 0.04) / 4),
        ("score_triplet", 0.0),
        ("self_hard_negative", -(math.log(0.6) + math.log(0.8)) / 2),
    ],
)
def test_score_losses_compare_the_two_views(name: str, expected: float) -> None:
    plain = torch.eye(8)[:2]
    heavy = torch.zeros(2, 8)
    heavy[0, 0], heavy[0, 4], heavy[1, 1], heavy[1, 5] = 0.6, 0.8, 0.8, 0.6
    items = DrawnItems(torch.cat([plain, heavy]), None, torch.zeros(4, 2, dtype=torch.int64), True)
    model: Any = Table()
    objective = build_objective([make_recipe(name)], model, classes=0)
    assert float(objective(model, Batch({"views": items}))["loss"]) == pytest.approx(expected, abs=1e-6)
