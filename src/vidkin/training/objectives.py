"""Training objectives for recipes: available losses, class centers, cross-entropy, and weighted sums."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.registry import Registry
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses
from vidkin.metric.losses.base import Reduction
from vidkin.metric.measures import graded_relevance
from vidkin.models import DeepSBDNetwork, Encoder, TwoHeadNetwork, VideoNetwork
from vidkin.training.batch import Batch, Draw, DrawnItems, weighted_sum
from vidkin.training.recipe import ObjectiveRecipe


class CenterTerm(nn.Module):
    """:class:`vidkin.metric.losses.CenterLoss`, with centers created for the model's embeddings.

    Args:
        alpha: Update rate of the centers, in [0, 1].
    """

    loss: nn.Module
    _make: Callable[..., nn.Module]

    def __init__(self, alpha: float = 0.5, reduction: Reduction = "sum") -> None:
        super().__init__()
        self._make = partial(losses.CenterLoss, alpha=alpha, reduction=reduction)
        # Create the loss now to reject invalid values before the data is read; `prepare` replaces it.
        self.loss = self._make(1, 1)

    def prepare(self, model: Encoder, classes: int, seed: int) -> None:
        """Create the centers, initialized to zero."""
        del seed
        self.loss = self._make(classes, model.dimension)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss for unit vectors [N, D] and class numbers [N]."""
        value: Tensor = self.loss(embeddings, labels)
        return value


class TripletCenterTerm(CenterTerm):
    """:class:`vidkin.metric.losses.TripletCenterLoss`, whose centers are trained with the model.

    Args:
        margin: Margin of the hinge, at least 0. Squared distances between unit vectors are at most 4.
        distance: ``"squared"``, or ``"half"`` for half the squared distance, at most 2.
    """

    def __init__(
        self, margin: float = 1.0, distance: Literal["squared", "half"] = "squared", reduction: Reduction = "mean"
    ) -> None:
        nn.Module.__init__(self)
        self._make = partial(losses.TripletCenterLoss, margin=margin, distance=distance, reduction=reduction)
        self.loss = self._make(1, 1)

    def prepare(self, model: Encoder, classes: int, seed: int) -> None:
        """Create the centers as random unit vectors."""
        generator = torch.Generator().manual_seed(seed)
        start = nn.functional.normalize(torch.randn(classes, model.dimension, generator=generator), dim=1)
        self.loss = self._make(classes, model.dimension, centers=start)


class Classification(nn.Module):
    """Cross-entropy over the subcategories.

    Classifiers (``c3d``, ``deep_sbd``, ``two_head``) provide logits; for other encoders, a layer of class directions
    w_k on the unit vectors is added: ``logit_k = scale <f, w_k / ||w_k||>``.

    Args:
        scale: Factor by which the cosines are multiplied, above 0.
        smoothing: Label smoothing, in [0, 1).

    Raises:
        InvalidArgumentError: A value is out of range.
    """

    def __init__(self, scale: float = 16.0, smoothing: float = 0.0) -> None:
        super().__init__()
        if not scale > 0 or not 0 <= smoothing < 1:
            raise InvalidArgumentError(
                f"scale must be above 0 and smoothing at least 0 and below 1, got {scale} and {smoothing}"
            )
        self.scale, self.smoothing = scale, smoothing
        self.directions: nn.Parameter | None = None

    def prepare(self, model: Encoder, classes: int, seed: int) -> None:
        """Create the class directions, unless the model is a classifier."""
        if not model.config.is_classifier:
            generator = torch.Generator().manual_seed(seed)
            self.directions = nn.Parameter(torch.randn(classes, model.dimension, generator=generator))

    def score_network(self, model: Encoder, items: DrawnItems) -> tuple[Tensor, Tensor, Tensor]:
        """Compute (loss, accuracy, normalized logits) for a classifier."""
        assert isinstance(model, VideoNetwork | DeepSBDNetwork)
        logits = items.compute_with(model.classify)
        # Normalized logits are enough to detect collapse, without computing the embeddings.
        return *self.score_logits(logits, items.labels), nn.functional.normalize(logits.detach(), dim=1)

    def score_embeddings(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Compute (loss, accuracy) for unit vectors [N, D] and labels [N, 2]."""
        assert self.directions is not None
        directions = nn.functional.normalize(self.directions, dim=1)
        return self.score_logits(self.scale * embeddings @ directions.T, labels)

    def score_logits(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Compute (loss, accuracy) for logits [N, C] and labels [N, 2]."""
        target = labels[:, 1]
        loss = nn.functional.cross_entropy(logits, target, label_smoothing=self.smoothing)
        return loss, (logits.detach().argmax(dim=1) == target).float().mean()


LossCall = Literal[
    "triplet",
    "members",
    "labels",
    "fine_scores",
    "graded_scores",
    "classes",
    "centers",
    "clusters",
    "model",
    "learned_maps",
    "frame_maps",
]


@dataclass(frozen=True, slots=True)
class LossEntry:
    """A loss available in recipes; can be registered as an entry point in the group ``vidkin.objectives``.

    Attributes:
        draw: Sampling method of a step's items.
        call: Arguments of the loss. ``triplet``: query, positive and negative of the tuples. ``members``: all
            four members. ``labels``: embeddings [N, D] and labels [N, 2]. ``fine_scores``, ``graded_scores``: cosines
            [N, N] with relevance, which is 1 for the same subcategory, or graded 2 / 1 / 0, and ``self_offset=0``.
            ``model``: the model and the sampled items, for a loss that embeds them and returns named terms including
            ``loss``. ``learned_maps``: the output of a comparator's network for the maps of all pairs [N, N, T', T'].
            ``frame_maps``: frame similarities [N, N, T, T], those of a teacher, and a mask [N, N] of the pairs that are
            views of the same clip, with ``query_mask`` and ``target_mask`` [N, T]. ``classes``: for
            :class:`Classification`. ``centers``: embeddings and class numbers [N], for a term that creates its centers
            with ``prepare(model, classes, seed)``. ``clusters``: embeddings, class numbers and cluster numbers [N].
        make: Callable that creates the loss from its parameters; its defaults are the defaults in recipes.
        fixed: Parameters implied by the name, which a recipe cannot change.
    """

    draw: Draw
    call: LossCall
    make: Callable[..., nn.Module]
    fixed: Mapping[str, Any] = field(default_factory=dict)


_ENTRIES: dict[str, LossEntry] = {
    "triplet": LossEntry("quadlets", "triplet", losses.TripletLoss),
    "deep_ranking": LossEntry("online_triplets", "triplet", losses.TripletLoss),
    "quadlet": LossEntry("quadlets", "members", losses.QuadletLoss),
    "radial": LossEntry("quadlets", "members", losses.RadialLoss, {"detach_radius": False}),
    "radial_detached": LossEntry("quadlets", "members", losses.RadialLoss, {"detach_radius": True}),
    "quadruplet1": LossEntry("quadlets", "members", losses.QuadrupletwiseLoss),
    "quadruplet2a": LossEntry("quadruplets_a", "members", losses.QuadrupletLoss),
    "quadruplet2b": LossEntry("quadruplets_b", "members", losses.QuadrupletLoss),
    "angular": LossEntry("quadlets", "members", losses.AngularLoss, {"form": "quadlet"}),
    "all_quadlets": LossEntry("batches", "labels", losses.AllQuadletsLoss),
    "batch_hard": LossEntry("batches", "labels", losses.BatchHardTripletLoss),
    "semi_hard": LossEntry("batches", "labels", losses.SemiHardTripletLoss),
    "center": LossEntry("batches", "centers", CenterTerm),
    "triplet_center": LossEntry("batches", "centers", TripletCenterTerm),
    "magnet": LossEntry("clusters", "clusters", losses.MagnetLoss),
    "mined_triplet": LossEntry("mined", "triplet", losses.TripletLoss),
    "batch_all": LossEntry("batches", "labels", losses.BatchAllTripletLoss),
    "hierarchical_ap": LossEntry("batches", "graded_scores", losses.HierarchicalAPLoss),
    "quad_linear_ap": LossEntry("batches", "fine_scores", losses.QuadLinearAPLoss),
    "smooth_ap": LossEntry("batches", "fine_scores", losses.SmoothAPLoss),
    "sup_ap": LossEntry("batches", "fine_scores", losses.SupAPLoss),
    "fast_ap": LossEntry("batches", "fine_scores", losses.FastAPLoss),
    "quantized_ap": LossEntry("batches", "fine_scores", losses.QuantizedAPLoss),
    "blackbox_ap": LossEntry("batches", "fine_scores", losses.BlackBoxAPLoss),
    "info_nce": LossEntry("batches", "fine_scores", losses.InfoNCELoss),
    "contrastive": LossEntry("batches", "fine_scores", losses.ContrastiveLoss),
    "circle": LossEntry("batches", "fine_scores", losses.CircleLoss),
    "mae": LossEntry("batches", "fine_scores", losses.MAELoss),
    "mse": LossEntry("batches", "fine_scores", losses.MSELoss),
    "score_triplet": LossEntry("batches", "fine_scores", losses.ScoreTripletLoss),
    "self_hard_negative": LossEntry("batches", "fine_scores", losses.SelfHardNegativeLoss),
    "similarity_regularizer": LossEntry("clips", "learned_maps", losses.SimilarityRegularizer),
    "frame_quad_linear_ap": LossEntry("clips", "frame_maps", losses.FrameQuadLinearAPLoss),
    "classification": LossEntry("uniform", "classes", Classification),
}

_REGISTRY: Registry[LossEntry] = Registry("objective", _ENTRIES, group="vidkin.objectives")

# Parameters set by the objective rather than the recipe.
_HIDDEN = {"self", "reduction", "include_self"}

_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def available_objectives() -> tuple[str, ...]:
    """Return the sorted names for ``[[objective]]`` in a recipe, including those of other packages."""
    return _REGISTRY.usages()


@check_arguments
def find_loss(name: str) -> LossEntry:
    """Find a loss by name.

    Raises:
        InvalidArgumentError: The name is unknown; the message lists all names.
    """
    entry = _REGISTRY.find(name)
    if entry is None:
        raise _REGISTRY.unknown(name)
    return entry


@check_arguments
def settle_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters of an objective, and fill in the defaults.

    Raises:
        InvalidArgumentError: The objective or a parameter is unknown, or a value is not allowed.
    """
    entry = find_loss(name)
    defaults = {
        key: parameter.default
        for key, parameter in inspect.signature(entry.make).parameters.items()
        if parameter.kind not in _VARIADIC and key not in _HIDDEN and key not in entry.fixed
    }
    unknown = sorted(set(parameters) - set(defaults))
    if unknown:
        raise InvalidArgumentError(
            f"objective {name!r} has no parameter {', '.join(unknown)}; choose from {', '.join(defaults) or 'none'}"
        )
    missing = [key for key in defaults if defaults[key] is inspect.Parameter.empty and key not in parameters]
    if missing:
        raise InvalidArgumentError(f"objective {name!r} requires the parameter {', '.join(missing)}")
    for key, value in parameters.items():
        is_number = isinstance(defaults[key], int | float) and not isinstance(defaults[key], bool)
        if is_number and isinstance(value, str | bool):
            raise InvalidArgumentError(f"objective {name!r}: {key} must be a number, got {value!r}")
    settled = {
        key: tuple(value) if isinstance(value, list) else value for key, value in {**defaults, **parameters}.items()
    }
    make_loss(name, settled)
    return settled


def make_loss(name: str, parameters: Mapping[str, Any]) -> nn.Module:
    """Create the loss of an objective.

    Raises:
        InvalidArgumentError: A parameter has the wrong type, or a value is not allowed.
    """
    entry = find_loss(name)
    try:
        return entry.make(**parameters, **entry.fixed)
    except TypeError as error:
        raise InvalidArgumentError(f"objective {name!r}: a parameter has the wrong type: {error}") from error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"objective {name!r}: {error}") from error


# Losses with these calls can be trained on views of unlabeled data.
_UNLABELED_CALLS = ("fine_scores", "model")


@check_constructor
class WeightedObjective(nn.Module):
    """A weighted sum of losses; losses with the same sampling method share items and embeddings.

    In combination with other losses, ``classification`` uses the items of the first one. On views of unlabeled data, a
    loss on scores compares all first views with all second views, in both directions.

    Args:
        parts: The objectives of a recipe.
        model: The model to train.
        classes: Number of subcategories; 0 for unlabeled data.
        seed: Seed for weights that belong to an objective.

    Raises:
        InvalidArgumentError: An objective requires labels, but there are none.
    """

    def __init__(self, parts: Sequence[ObjectiveRecipe], model: Encoder, *, classes: int, seed: int = 0) -> None:
        super().__init__()
        self._parts = tuple(parts)
        self._entries = tuple(find_loss(part.name) for part in parts)
        views: Draw = "views"
        self._draws = (views,) * len(self._parts)
        if classes:
            # Classification works with any items, so reuse those of another loss at no extra cost.
            others = [entry.draw for entry in self._entries if entry.call != "classes"]
            self._draws = tuple(
                others[0] if entry.call == "classes" and others else entry.draw for entry in self._entries
            )
        else:
            usable = [name for name in available_objectives() if find_loss(name).call in _UNLABELED_CALLS]
            for part, entry in zip(self._parts, self._entries, strict=True):
                if entry.call not in _UNLABELED_CALLS:
                    raise InvalidArgumentError(
                        f"the objective for unlabeled data must be one of {', '.join(usable)}, got {part.name!r}, "
                        "which requires labels"
                    )
        # For views, the diagonal contains pairs of views of the same image, which are positives.
        self.losses = nn.ModuleList(
            make_loss(part.name, {**part.parameters, **({} if classes else _diagonal_options(entry))})
            for part, entry in zip(self._parts, self._entries, strict=True)
        )
        for loss in self.losses:
            if isinstance(loss, Classification | CenterTerm):
                loss.prepare(model, classes, seed)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The distinct sampling methods that a step needs."""
        return tuple(dict.fromkeys(self._draws))

    def forward(self, model: Encoder, batch: Batch) -> dict[str, Tensor]:
        """Compute the terms of a step, see :data:`vidkin.training.engine.Objective`, with the value of each objective
        before weighting."""
        terms: dict[str, Tensor] = {}
        embedded: dict[Draw, Tensor] = {}
        total = weighted_sum(terms, self._values(model, batch, terms, embedded))
        first = next(iter(embedded.values()), None)
        if first is not None and len(first) > 1:
            terms["distance"] = torch.pdist(first.detach()).mean()
        return {**terms, "loss": total}

    def _values(
        self, model: Encoder, batch: Batch, terms: dict[str, Tensor], embedded: dict[Draw, Tensor]
    ) -> Iterator[tuple[ObjectiveRecipe, Tensor]]:
        """Yield the value of each part; add other terms, and the embeddings for each sampling method, to the
        dictionaries."""
        logits: dict[Draw, Tensor] = {}
        for entry, draw, part, loss in zip(self._entries, self._draws, self._parts, self.losses, strict=True):
            items = batch.draws[draw]
            if isinstance(model, TwoHeadNetwork) and draw not in embedded and entry.call != "model":
                outputs = items.outputs(model)
                embedded[draw], logits[draw] = outputs.embeddings, outputs.logits
            if entry.call == "model":
                loss_terms = dict(loss(model, items))
                value = loss_terms.pop("loss")
                terms.update(loss_terms)
            elif isinstance(loss, Classification) and draw in logits:
                value, terms["accuracy"] = loss.score_logits(logits[draw], items.labels)
            elif isinstance(loss, Classification) and loss.directions is None:
                value, terms["accuracy"], embedded[draw] = loss.score_network(model, items)
            else:
                if draw not in embedded:
                    embedded[draw] = items.embeddings(model)
                if isinstance(loss, Classification):
                    value, terms["accuracy"] = loss.score_embeddings(embedded[draw], items.labels)
                else:
                    # Use mixed precision only in the network: with the 8 bits of bfloat16, different cosines that a
                    # loss must distinguish would be equal.
                    with torch.autocast(embedded[draw].device.type, enabled=False):
                        value = _compare(loss, entry.call, draw, embedded[draw], items)
            yield part, value


@check_arguments
def build_objective(
    parts: Sequence[ObjectiveRecipe], model: Encoder, *, classes: int, seed: int = 0
) -> WeightedObjective:
    """Build the objective of a recipe; the arguments are those of :class:`WeightedObjective`."""
    return WeightedObjective(parts, model, classes=classes, seed=seed)


def _diagonal_options(entry: LossEntry) -> dict[str, bool]:
    """Return the options that make a loss on scores include the diagonal, if it excludes it by default."""
    has_option = "include_self" in inspect.signature(entry.make).parameters
    return {"include_self": True} if entry.call == "fine_scores" and has_option else {}


def _compare(loss: nn.Module, call: LossCall, draw: Draw, embeddings: Tensor, items: DrawnItems) -> Tensor:
    """Call a loss with the arguments that it expects."""
    value: Tensor
    labels = items.labels
    if draw in ("mined", "online_triplets"):
        value = loss(*embeddings.chunk(3))
    elif call == "centers":
        value = loss(embeddings, labels[:, 1])
    elif call == "clusters":
        value = loss(embeddings, labels[:, 1], items.clusters)
    elif call in ("triplet", "members"):
        q, p, i, n = embeddings.chunk(4)
        value = loss(q, p, n) if call == "triplet" else loss(q, p, i, n)
    elif call == "labels":
        value = loss(embeddings, labels)
    elif draw == "views":
        first, second = embeddings.chunk(2)
        scores = first @ second.T
        same = torch.eye(len(scores), dtype=torch.long, device=scores.device)
        value = (loss(scores, same) + loss(scores.T, same)) / 2
    else:
        relevance = graded_relevance(labels, labels)
        if call == "fine_scores":
            relevance = (relevance == 2).long()
        value = loss(embeddings @ embeddings.T, relevance, self_offset=0)
    return value
