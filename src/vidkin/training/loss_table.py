"""The losses available in recipes: how their items are drawn, how they are called, and their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from vidkin._base.registry import Registry
from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses
from vidkin.training.center_terms import CenterTerm, TripletCenterTerm
from vidkin.training.classification import Classification
from vidkin.training.data.batch import Draw

__all__ = [
    "LossCall",
    "LossEntry",
    "available_objectives",
    "find_loss",
    "make_loss",
    "settle_parameters",
]

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
    """A loss available in recipes; the target of an entry point in the group ``vidkin.objectives``.

    Attributes:
        draw: How the items of a step are drawn.
        call: Arguments of the loss. ``triplet``: query, positive and negative of the tuples. ``members``: all
            four members. ``labels``: embeddings [N, D] and labels [N, 2]. ``fine_scores``, ``graded_scores``: cosines
            [N, N] with relevance, 1 for the same subcategory, or graded 2 / 1 / 0, and ``self_offset=0``. ``model``:
            the model and the drawn items, for a loss that embeds them itself and returns named terms with ``loss``.
            ``learned_maps``: the output of a comparator's network for the maps of all pairs [N, N, T', T'].
            ``frame_maps``: similarities of frames [N, N, T, T], the same from a teacher, and which pairs are views of
            one clip [N, N], with ``query_mask`` and ``target_mask`` [N, T].
            ``classes``: for :class:`Classification`. ``centers``: embeddings and class numbers [N], for a term that
            creates its centers with ``prepare(model, classes, seed)``. ``clusters``: also the clusters of the items
                [N].
        make: Function from parameters to the loss; its defaults become the recipe's.
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
# Options decided by the objective, not by the recipe.
_HIDDEN = {"self", "reduction", "include_self"}
_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def available_objectives() -> tuple[str, ...]:
    """Names for ``[[objective]]`` in a recipe, including those of installed entry points, sorted."""
    return _REGISTRY.usages()


def find_loss(name: str) -> LossEntry:
    """The entry with a name.

    Raises:
        InvalidArgumentError: The name is unknown; the message lists all names.
    """
    entry = _REGISTRY.find(name)
    if entry is None:
        raise _REGISTRY.unknown(name)
    return entry


def settle_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters of an objective's loss and fill in defaults.

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
        raise InvalidArgumentError(f"objective {name!r} needs the parameter {', '.join(missing)}")
    for key, value in parameters.items():
        is_number = isinstance(defaults[key], int | float) and not isinstance(defaults[key], bool)
        if is_number and isinstance(value, str | bool):
            raise InvalidArgumentError(f"objective {name!r}: {key} must be a number, got {value!r}")
    settled = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in {**defaults, **parameters}.items()
    }
    make_loss(name, settled)
    return settled


def make_loss(name: str, parameters: Mapping[str, Any]) -> nn.Module:
    """Make the loss of an objective.

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
