"""Objectives by name: what a training step minimises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses
from vidkin.metric.measures import graded_relevance
from vidkin.models import DeepSBDNetwork, Encoder, VideoNetwork
from vidkin.training.data.batch import Batch, Draw, DrawnItems
from vidkin.training.recipe import ObjectiveRecipe

__all__ = [
    "Objective",
    "WeightedObjective",
    "available_objectives",
    "build_objective",
    "settled_parameters",
]

Form = Literal["triplet", "members", "labels", "fine_scores", "graded_scores", "classes"]


class Objective(Protocol):
    """All that the training loop knows of what it minimises."""

    @property
    def draws(self) -> Sequence[Draw]:
        """The draws of items that a step needs."""

    def __call__(self, model: Encoder, batch: Batch) -> dict[str, Tensor]:
        """Named terms, scalars: ``loss`` is minimised; ``distance``, the mean distance of pairs of embeddings in
        [0, 2], is watched for a collapse where it is given; the others are shown."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a loss is made and what it is called with.

    Attributes:
        draw: Items that it needs.
        form: ``triplet``: query, positive, negative of the tuples; ``members``: all four. ``labels``: embeddings and
            their labels. ``fine_scores`` and ``graded_scores``: cosines with relevance, 1 for the same subcategory or
            graded 2 / 1 / 0. ``classes``: a classifier.
        make: From its parameters to the loss.
        fixed: Parameters that the name stands for.
    """

    draw: Draw
    form: Form
    make: Callable[..., nn.Module]
    fixed: Mapping[str, Any] = field(default_factory=dict)


class _Classification(nn.Module):
    """Cross entropy over the subcategories.

    A network that classifies gives its own logits; an encoder gets a layer of class directions w_k on its unit vectors:
    ``logit_k = scale <f, w_k / ||w_k||>``.

    Args:
        scale: Of the cosines of the directions.
        smoothing: Share of the target that is spread over all classes, [0, 1).
    """

    def __init__(self, scale: float = 16.0, smoothing: float = 0.0) -> None:
        super().__init__()
        if not scale > 0 or not 0 <= smoothing < 1:
            raise InvalidArgumentError(
                f"scale is {scale} and smoothing {smoothing}, allowed are above 0, and 0 to below 1"
            )
        self.scale, self.smoothing = scale, smoothing
        self.directions: nn.Parameter | None = None

    def prepare(self, model: Encoder, classes: int, seed: int) -> None:
        """Make the directions, where the model has no classifier of its own."""
        if not model.config.is_classifier:
            generator = torch.Generator().manual_seed(seed)
            self.directions = nn.Parameter(torch.randn(classes, model.dimension, generator=generator))

    def of_network(self, model: Encoder, items: DrawnItems) -> tuple[Tensor, Tensor, Tensor]:
        """(loss, share of items that are classified right, unit vectors of their logits) of a network's own classes."""
        assert isinstance(model, VideoNetwork | DeepSBDNetwork)
        logits = model.classify(items.inputs, items.lengths).float()
        # One pass for logits and embeddings would need the network's inner layer; a collapse shows in logits, too.
        return *self._scored(logits, items.labels), nn.functional.normalize(logits.detach(), dim=1)

    def of_embeddings(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """(loss, share of items that are classified right) of unit vectors [N, D] and labels [N, 2]."""
        assert self.directions is not None
        directions = nn.functional.normalize(self.directions, dim=1)
        return self._scored(self.scale * embeddings @ directions.T, labels)

    def _scored(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        target = labels[:, 1]
        loss = nn.functional.cross_entropy(logits, target, label_smoothing=self.smoothing)
        return loss, (logits.detach().argmax(dim=1) == target).float().mean()


_QUADLETS: dict[str, _Kind] = {
    "triplet": _Kind("quadlets", "triplet", losses.TripletLoss),
    "quadlet": _Kind("quadlets", "members", losses.QuadletLoss),
    "radial": _Kind("quadlets", "members", losses.RadialLoss, {"detach_radius": False}),
    "radial_detached": _Kind("quadlets", "members", losses.RadialLoss, {"detach_radius": True}),
    "quadruplet1": _Kind("quadlets", "members", losses.QuadrupletwiseLoss),
    "quadruplet2a": _Kind("quadruplets_a", "members", losses.QuadrupletLoss),
    "quadruplet2b": _Kind("quadruplets_b", "members", losses.QuadrupletLoss),
    "angular": _Kind("quadlets", "members", losses.AngularLoss, {"form": "quadlet"}),
}
_BATCHES: dict[str, _Kind] = {
    "all_quadlets": _Kind("batches", "labels", losses.AllQuadletsLoss),
    "batch_hard": _Kind("batches", "labels", losses.BatchHardTripletLoss),
    "semi_hard": _Kind("batches", "labels", losses.SemiHardTripletLoss),
    "batch_all": _Kind("batches", "labels", losses.BatchAllTripletLoss),
    "hierarchical_ap": _Kind("batches", "graded_scores", losses.HierarchicalAPLoss),
    "quad_linear_ap": _Kind("batches", "fine_scores", losses.QuadLinearAPLoss),
    "smooth_ap": _Kind("batches", "fine_scores", losses.SmoothAPLoss),
    "sup_ap": _Kind("batches", "fine_scores", losses.SupAPLoss),
    "fast_ap": _Kind("batches", "fine_scores", losses.FastAPLoss),
    "quantized_ap": _Kind("batches", "fine_scores", losses.QuantizedAPLoss),
    "blackbox_ap": _Kind("batches", "fine_scores", losses.BlackBoxAPLoss),
    "info_nce": _Kind("batches", "fine_scores", losses.InfoNCELoss),
    "contrastive": _Kind("batches", "fine_scores", losses.ContrastiveLoss),
    "circle": _Kind("batches", "fine_scores", losses.CircleLoss),
}
_KINDS: dict[str, _Kind] = {
    **_QUADLETS,
    **_BATCHES,
    "classification": _Kind("uniform", "classes", _Classification),
}
# Shapes and reductions are the objective's business, not the recipe's.
_HIDDEN = {"self", "reduction", "include_self"}


def available_objectives() -> tuple[str, ...]:
    """Names for ``[[objective]]`` of a recipe: on tuples, on batches, and ``classification``."""
    return tuple(_KINDS)


def settled_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an objective's loss with all defaults, checked.

    Raises:
        InvalidArgumentError: There is no such objective, a parameter is unknown, or a value is not allowed.
    """
    kind = _kind(name)
    signature = inspect.signature(kind.make)
    defaults = {
        key: parameter.default
        for key, parameter in signature.parameters.items()
        if key not in _HIDDEN and key not in kind.fixed
    }
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise InvalidArgumentError(
            f"objective {name!r} has no parameter {', '.join(unknown)}; allowed are {', '.join(defaults) or 'none'}"
        )
    settled = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in {**defaults, **given}.items()
    }
    _made(kind, name, settled)
    return settled


class WeightedObjective(nn.Module):
    """A weighted sum of objectives; terms on the same draw share its items and their embeddings.

    ``classification`` beside other terms takes the items of the first of them.

    Args:
        parts: Of a recipe.
        model: That will be trained.
        classes: Number of subcategories.
        seed: Of weights that an objective brings along.
    """

    def __init__(
        self, parts: Sequence[ObjectiveRecipe], model: Encoder, *, classes: int, seed: int = 0
    ) -> None:
        super().__init__()
        self._parts = tuple(parts)
        self._kinds = tuple(_kind(part.name) for part in parts)
        # A classifier takes any items: those that another term draws cost nothing more.
        drawn = [kind.draw for kind in self._kinds if kind.form != "classes"]
        self._draws: tuple[Draw, ...] = tuple(
            drawn[0] if kind.form == "classes" and drawn else kind.draw for kind in self._kinds
        )
        self.losses = nn.ModuleList(
            _made(kind, part.name, part.parameters)
            for kind, part in zip(self._kinds, self._parts, strict=True)
        )
        for loss in self.losses:
            if isinstance(loss, _Classification):
                loss.prepare(model, classes, seed)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The draws that a step needs, each once."""
        return tuple(dict.fromkeys(self._draws))

    def forward(self, model: Encoder, batch: Batch) -> dict[str, Tensor]:
        """Terms of one step, see :class:`Objective`; a term carries the objective's name, before its weight."""
        terms: dict[str, Tensor] = {}
        total: Tensor | None = None
        embedded: dict[Draw, Tensor] = {}
        for kind, draw, part, loss in zip(self._kinds, self._draws, self._parts, self.losses, strict=True):
            items = batch.draws[draw]
            if isinstance(loss, _Classification) and loss.directions is None:
                value, terms["accuracy"], embedded[draw] = loss.of_network(model, items)
            else:
                if draw not in embedded:
                    embedded[draw] = items.embeddings(model)
                if isinstance(loss, _Classification):
                    value, terms["accuracy"] = loss.of_embeddings(embedded[draw], items.labels)
                else:
                    # Mixed precision is for the network: cosines of 8 bits would tie what a loss must tell apart.
                    with torch.autocast(embedded[draw].device.type, enabled=False):
                        value = _value(kind.form, loss, embedded[draw], items.labels)
            terms[_free_name(part.name, terms)] = value
            total = value * part.weight if total is None else total + value * part.weight
        assert total is not None
        first = next(iter(embedded.values())).detach()
        distance = torch.pdist(first).mean() if len(first) > 1 else first.new_zeros(())
        return {**terms, "distance": distance, "loss": total}


def build_objective(
    parts: Sequence[ObjectiveRecipe], model: Encoder, *, classes: int, seed: int = 0
) -> WeightedObjective:
    """The objective of a recipe; arguments as of :class:`WeightedObjective`."""
    return WeightedObjective(parts, model, classes=classes, seed=seed)


def _value(form: Form, loss: nn.Module, embeddings: Tensor, labels: Tensor) -> Tensor:
    found: Tensor
    if form in ("triplet", "members"):
        q, p, i, n = embeddings.chunk(4)
        found = loss(q, p, n) if form == "triplet" else loss(q, p, i, n)
    elif form == "labels":
        found = loss(embeddings, labels)
    else:
        relevance = graded_relevance(labels, labels)
        if form == "fine_scores":
            relevance = (relevance == 2).long()
        found = loss(embeddings @ embeddings.T, relevance, self_offset=0)
    return found


def _made(kind: _Kind, name: str, parameters: Mapping[str, Any]) -> nn.Module:
    try:
        return kind.make(**parameters, **kind.fixed)
    except TypeError as error:
        raise InvalidArgumentError(f"a parameter of objective {name!r} has a wrong type: {error}") from error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"objective {name!r}: {error}") from error


def _kind(name: str) -> _Kind:
    if name not in _KINDS:
        raise InvalidArgumentError(f"no objective is called {name!r}, allowed are {', '.join(_KINDS)}")
    return _KINDS[name]


def _free_name(name: str, taken: Mapping[str, Tensor]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free
