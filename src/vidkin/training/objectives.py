"""The objective of a recipe: a weighted sum of losses, each on the items drawn for it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import graded_relevance
from vidkin.models import Encoder, TwoHeadNetwork
from vidkin.training.center_terms import CenterTerm
from vidkin.training.classification import Classification
from vidkin.training.data.batch import Batch, Draw, DrawnItems
from vidkin.training.loss_table import LossCall, LossEntry, available_objectives, find_loss, make_loss
from vidkin.training.recipe import ObjectiveRecipe

__all__ = ["WeightedObjective", "build_objective"]

# Calls that need no labels.
_ON_VIEWS = ("fine_scores", "model")


class WeightedObjective(nn.Module):
    """A weighted sum of losses; terms on the same draw share its items and their embeddings.

    Next to other terms, ``classification`` takes the items of the first of them. On views of unlabeled data a loss on
    scores compares every image's first view with all second views, and the second with all first.

    Args:
        parts: The terms of a recipe.
        model: The model to train.
        classes: Number of subcategories; 0 for unlabeled data.
        seed: Seed of weights that belong to an objective.

    Raises:
        InvalidArgumentError: An objective needs labels, but there are none.
    """

    def __init__(
        self, parts: Sequence[ObjectiveRecipe], model: Encoder, *, classes: int, seed: int = 0
    ) -> None:
        super().__init__()
        self._parts = tuple(parts)
        self._entries = tuple(find_loss(part.name) for part in parts)
        views: Draw = "views"
        self._draws = (views,) * len(self._parts)
        if classes:
            # A classifier takes any items, and those drawn by another term cost nothing extra.
            drawn = [entry.draw for entry in self._entries if entry.call != "classes"]
            self._draws = tuple(
                drawn[0] if entry.call == "classes" and drawn else entry.draw for entry in self._entries
            )
        else:
            usable = [name for name in available_objectives() if find_loss(name).call in _ON_VIEWS]
            for part, entry in zip(self._parts, self._entries, strict=True):
                if entry.call not in _ON_VIEWS:
                    raise InvalidArgumentError(
                        f"the objective for unlabeled data must be one of {', '.join(usable)}, got {part.name!r}, "
                        "which needs labels"
                    )
        # The two views of an image are different images that belong together, so the diagonal counts.
        self.losses = nn.ModuleList(
            make_loss(part.name, {**part.parameters, **({} if classes else _with_diagonal(entry))})
            for part, entry in zip(self._parts, self._entries, strict=True)
        )
        for loss in self.losses:
            if isinstance(loss, Classification | CenterTerm):
                loss.prepare(model, classes, seed)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The distinct draws that a step needs."""
        return tuple(dict.fromkeys(self._draws))

    def forward(self, model: Encoder, batch: Batch) -> dict[str, Tensor]:
        """Terms of one step (see :data:`vidkin.models.engine.Objective`), each before weighting and under the name of
        its part."""
        terms: dict[str, Tensor] = {}
        total: Tensor | None = None
        embedded: dict[Draw, Tensor] = {}
        logits: dict[Draw, Tensor] = {}
        for entry, draw, part, loss in zip(self._entries, self._draws, self._parts, self.losses, strict=True):
            items = batch.draws[draw]
            if isinstance(model, TwoHeadNetwork) and draw not in embedded and entry.call != "model":
                outputs = items.outputs(model)
                embedded[draw], logits[draw] = outputs.embeddings, outputs.logits
            if entry.call == "model":
                own = dict(loss(model, items))
                value = own.pop("loss")
                terms |= own
            elif isinstance(loss, Classification) and draw in logits:
                value, terms["accuracy"] = loss.of_logits(logits[draw], items.labels)
            elif isinstance(loss, Classification) and loss.directions is None:
                value, terms["accuracy"], embedded[draw] = loss.of_network(model, items)
            else:
                if draw not in embedded:
                    embedded[draw] = items.embeddings(model)
                if isinstance(loss, Classification):
                    value, terms["accuracy"] = loss.of_embeddings(embedded[draw], items.labels)
                else:
                    # Mixed precision is for the network only: 8-bit cosines would tie pairs that a loss must
                    # distinguish.
                    with torch.autocast(embedded[draw].device.type, enabled=False):
                        value = _compare(loss, entry.call, draw, embedded[draw], items)
            # Terms with the same name are numbered.
            same = sum(name.split(" ")[0] == part.name for name in terms)
            terms[f"{part.name} {same + 1}" if same else part.name] = value
            total = value * part.weight if total is None else total + value * part.weight
        assert total is not None
        first = next(iter(embedded.values()), None)
        if first is not None and len(first) > 1:
            terms["distance"] = torch.pdist(first.detach()).mean()
        return {**terms, "loss": total}


def build_objective(
    parts: Sequence[ObjectiveRecipe], model: Encoder, *, classes: int, seed: int = 0
) -> WeightedObjective:
    """Build the objective of a recipe; arguments as in :class:`WeightedObjective`."""
    return WeightedObjective(parts, model, classes=classes, seed=seed)


def _with_diagonal(entry: LossEntry) -> dict[str, bool]:
    """The option that keeps pairs with the same number, for losses that otherwise leave them out."""
    has_option = "include_self" in inspect.signature(entry.make).parameters
    return {"include_self": True} if entry.call == "fine_scores" and has_option else {}


def _compare(loss: nn.Module, call: LossCall, draw: Draw, embeddings: Tensor, items: DrawnItems) -> Tensor:
    """The loss of embeddings [N, D]."""
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
