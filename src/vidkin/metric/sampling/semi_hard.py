"""Triplets mined over several random batches: the procedure for long-tailed classes of the two-head classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_at_least, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.tuples import Triplets, generator_of

WithoutSemiHard = Literal["farthest", "drop"]


@check_arguments
def nearest_semi_hard_triplets(
    distances: torch.Tensor, labels: torch.Tensor, *, without: WithoutSemiHard = "farthest"
) -> Triplets:
    """For every ordered positive pair (a, p) the nearest negative n that is farther than p: d(a,n) > d(a,p).

    Args:
        distances: [M, M] floating point; any distance that is monotone in the one that is trained.
        labels: [M] integers.
        without: A pair whose negatives are all nearer than its positive takes the ``"farthest"`` of them (the
            easiest there is), or is left out (``"drop"``).

    Returns:
        Indices into the M items, ordered by anchor, then positive. Empty when no class has two items or there
        is one class.

    Raises:
        InvalidArgumentError: Shapes do not match, or distances contain NaN.
    """
    check_choice("without", without, ("farthest", "drop"))
    if labels.ndim != 1 or distances.shape != (len(labels), len(labels)) or not distances.is_floating_point():
        raise InvalidArgumentError(
            "distances must be [M, M] floating point for labels [M], "
            f"got {list(distances.shape)} {distances.dtype} and {list(labels.shape)}"
        )
    if bool(distances.isnan().any()):
        raise InvalidArgumentError("distances must not hold NaN, which is neither near nor far")
    distances = distances.detach()
    same = labels[:, None] == labels[None, :]
    anchor, positive = (same & ~torch.eye(len(labels), dtype=torch.bool, device=same.device)).nonzero().unbind(1)
    negatives = (~same).sum(dim=1)
    # Negatives of each anchor in rising order of distance, then its own class at infinity.
    ordered, column = distances.masked_fill(same, float("inf")).sort(dim=1, stable=True)
    bound = distances[anchor, positive].unsqueeze(1)
    position = torch.searchsorted(ordered[anchor], bound, right=True).squeeze(1)
    semi_hard = position < negatives[anchor]
    keep = semi_hard if without == "drop" else negatives[anchor] > 0
    last = (negatives[anchor] - 1).clamp(min=0)
    negative = column[anchor, position.minimum(last)]
    return Triplets(anchor[keep], positive[keep], negative[keep])


@check_arguments
def sample_semi_hard_triplets(
    labels: torch.Tensor,
    embed: Callable[[torch.Tensor], torch.Tensor],
    *,
    batch_size: int = 33,
    batches: int = 3,
    without: WithoutSemiHard = "farthest",
    seed: int | torch.Generator,
) -> Triplets:
    """One iteration of the HDD procedure (two-head classifier, algorithm 1 of the supplement).

    Draws ``batches`` random batches of ``batch_size`` items, all different, without regard to class; embeds
    them without gradient; finds the nearest semi-hard negative of all their positive pairs under the squared
    Euclidean distance; keeps ``batch_size // 3`` of these triplets, drawn uniformly without replacement (all
    where there are fewer). The caller trains on the ``batch_size`` items of the result, so that a step costs
    the same as one of a plain classifier plus the embedding of the candidates.

    Args:
        labels: [N] integers; a collection of fewer than ``batches * batch_size`` items is used whole.
        embed: Indices [M] -> embeddings [M, D], L2-normalized if the loss needs it.
        batch_size: b, 3 or more; the paper takes 33 or 36.
        batches: N_B; the paper takes 3.
        without: See `nearest_semi_hard_triplets`.
        seed: Seed or generator; pass one generator through all iterations.

    Returns:
        Indices into ``labels``; empty when the draw holds no class twice, or one class only.

    Raises:
        InvalidArgumentError: Sizes are too small, or the embeddings have another shape.
    """
    check_at_least(3, batch_size=batch_size)
    check_at_least(1, batches=batches)
    if labels.ndim != 1 or len(labels) == 0:
        raise InvalidArgumentError(f"labels must be [N] integers with N of at least 1, got {list(labels.shape)}")
    generator = generator_of(seed)
    drawn = torch.randperm(len(labels), generator=generator)[: batch_size * batches]
    with torch.no_grad():
        embeddings = embed(drawn)
    if embeddings.ndim != 2 or len(embeddings) != len(drawn):
        raise InvalidArgumentError(
            f"embed must return [{len(drawn)}, D] for that many indices, got {list(embeddings.shape)}"
        )
    # Differences, not the dot-product form: that one loses the distances of near neighbors to rounding.
    distances = torch.cdist(embeddings.float(), embeddings.float(), compute_mode="donot_use_mm_for_euclid_dist")
    triplets = nearest_semi_hard_triplets(distances.cpu().square(), labels[drawn].cpu(), without=without)
    kept = torch.randperm(len(triplets), generator=generator)[: batch_size // 3]
    return Triplets(drawn[triplets.query[kept]], drawn[triplets.positive[kept]], drawn[triplets.negative[kept]])
