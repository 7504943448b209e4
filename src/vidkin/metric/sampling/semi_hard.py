"""Semi-hard triplets mined from several random batches, for long-tailed classes (two-head classifier)."""

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
    """For each ordered positive pair (a, p), find the nearest negative n with d(a,n) > d(a,p).

    Args:
        distances: [M, M] floating point; any distance that is monotonic in the trained distance.
        labels: [M] integers.
        without: For pairs whose negatives are all nearer than the positive: ``"farthest"`` uses the farthest
            (easiest) negative, ``"drop"`` drops the pair.

    Returns:
        Indices into the M items, ordered by anchor, then by positive. Empty if no class has two items or there
        is only one class.

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
        raise InvalidArgumentError("distances must not contain NaN, which is neither near nor far")
    distances = distances.detach()
    same = labels[:, None] == labels[None, :]
    anchor, positive = (same & ~torch.eye(len(labels), dtype=torch.bool, device=same.device)).nonzero().unbind(1)
    negatives = (~same).sum(dim=1)
    # Negatives of each anchor in ascending order of distance, followed by the anchor's own class at infinity.
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
    """Run one iteration of the HDD procedure (two-head classifier, algorithm 1 of the supplement).

    Samples ``batches`` random batches of ``batch_size`` distinct items, regardless of class; embeds them without
    gradient; finds the nearest semi-hard negative of all their positive pairs by squared Euclidean distance; and keeps
    ``batch_size // 3`` of these triplets, sampled uniformly without replacement (or all if there are fewer). The caller
    trains on the ``batch_size`` items of the result, so that a step costs as much as a step of a plain classifier plus
    the embedding of the candidates.

    Args:
        labels: [N] integers; if there are fewer than ``batches * batch_size`` items, all are used.
        embed: Function from indices [M] to embeddings [M, D], L2-normalized if the loss needs this.
        batch_size: b, 3 or more; 33 or 36 in the paper.
        batches: N_B; 3 in the paper.
        without: See `nearest_semi_hard_triplets`.
        seed: Seed or generator; use the same generator for all iterations.

    Returns:
        Indices into ``labels``; empty if no class is sampled twice, or only one class is sampled.

    Raises:
        InvalidArgumentError: Sizes are too small, or the embeddings have the wrong shape.
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
            f"embed must return [{len(drawn)}, D], one row per index, got {list(embeddings.shape)}"
        )
    # The dot-product form would lose the distances of near neighbors to rounding.
    distances = torch.cdist(embeddings.float(), embeddings.float(), compute_mode="donot_use_mm_for_euclid_dist")
    triplets = nearest_semi_hard_triplets(distances.cpu().square(), labels[drawn].cpu(), without=without)
    kept = torch.randperm(len(triplets), generator=generator)[: batch_size // 3]
    return Triplets(drawn[triplets.query[kept]], drawn[triplets.positive[kept]], drawn[triplets.negative[kept]])
