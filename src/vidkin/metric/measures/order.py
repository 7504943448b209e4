"""Quadlet and triplet precision: how often scores order items in agreement with their labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_at_least, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures.ranking import CountedMean, QueryReduction, Ranking, check_inputs, per_query, sum_before

TripletWeighting = Literal["quadlets", "triplets"]


@check_arguments
def quadlet_precision(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    positive_level: float = 2,
    samples: int | None = None,
    seed: int | torch.Generator = 0,
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """Quadlet precision QP (Radial loss, ICIP): the fraction of quadlets with s(q,p) > s(q,i) > s(q,n).

    In a quadlet, the relevance of p is ``positive_level`` or more, that of i is lower but above 0, and that of n is 0.
    Equal scores count as out of order. By default, QP is exact over all |P| |I| |N| quadlets of each query, by sorting
    and counting in O(G log G) per query: sum over i of |{p above i}| * |{n below i}|.

    Args:
        scores: [Q, G] floating point, higher is more similar (negate distances).
        relevance: [Q, G] graded 2 / 1 / 0.
        positive_level: Minimum relevance of a positive.
        samples: Sample this number of quadlets uniformly instead of counting all; the paper samples 15,000. Use this
            only to compare with published results; the exact value has no noise.
        seed: Seed or generator for the samples.
        valid: [Q, G] bool; pairs with False are excluded. A query in its own gallery must be excluded.
        reduction: ``"mean"``: every quadlet counts once, so a query with more quadlets has more weight.
            ``"none"``: per query.

    Returns:
        A float in [0, 1] whose ``count`` is the number of quadlets and ``skipped`` the number of queries without
        quadlets (NaN if all are skipped); or [Q] float64 with NaN for queries without a quadlet.

    Raises:
        InvalidArgumentError: Shapes differ, samples are combined with reduction "none", or samples is below 1.
    """
    if samples is not None:
        _check_samples(samples, reduction)
        sampled = _sample_quadlets(scores, relevance, positive_level, samples, seed, valid)
        right = (sampled.positive > sampled.intermediate) & (sampled.intermediate > sampled.negative)
        return CountedMean(right.double().mean().item(), len(right), sampled.skipped)
    counts = per_query(partial(ranked_quadlets, positive_level=positive_level), scores, relevance, valid)
    return _ratio(counts, reduction)


@check_arguments
def triplet_precision(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    weighting: TripletWeighting = "quadlets",
    positive_level: float = 2,
    samples: int | None = None,
    seed: int | torch.Generator = 0,
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """Triplet precision TP: each quadlet gives (q, p, n) and (q, i, n); the fraction with s(q,p|i) > s(q,n).

    Args:
        scores: [Q, G] floating point, higher is more similar.
        relevance: [Q, G] graded 2 / 1 / 0.
        weighting: ``"quadlets"``: the two triplets of every quadlet, as in the paper, so that (q, p, n)
            counts once for each intermediate of q, and (q, i, n) once for each positive.
            ``"triplets"``: every distinct triplet counts once; this also works without intermediates.
        positive_level: Minimum relevance of a positive.
        samples: Sample this number of quadlets (two triplets each) instead of counting all. The same seed samples
            the same quadlets as in `quadlet_precision`. Only for weighting ``"quadlets"``.
        seed: Seed or generator for the samples.
        valid: [Q, G] bool; pairs with False are excluded.
        reduction: ``"mean"`` over all triplets, or ``"none"``: per query.

    Returns:
        As for `quadlet_precision`, but counting triplets.

    Raises:
        InvalidArgumentError: Shapes differ, or the arguments are incompatible.
    """
    check_choice("weighting", weighting, ("quadlets", "triplets"))
    if samples is not None:
        _check_samples(samples, reduction)
        if weighting != "quadlets":
            raise InvalidArgumentError("weighting must be 'quadlets' with samples, which are sampled as quadlets")
        sampled = _sample_quadlets(scores, relevance, positive_level, samples, seed, valid)
        right = torch.cat([sampled.positive > sampled.negative, sampled.intermediate > sampled.negative])
        return CountedMean(right.double().mean().item(), len(right), sampled.skipped)
    measure = partial(ranked_triplets, positive_level=positive_level, weighting=weighting)
    return _ratio(per_query(measure, scores, relevance, valid), reduction)


def ranked_quadlets(ranking: Ranking, *, positive_level: float) -> torch.Tensor:
    """Return the numbers of correctly ordered and of all quadlets for each query, [B, 2] int64."""
    positive, intermediate, negative = _kinds(ranking.relevance, ranking.valid, positive_level)
    start, end = ranking.tie_bounds()
    negatives = negative.sum(dim=1, keepdim=True)
    above = sum_before(positive.long(), start)
    below = negatives - sum_before(negative.long(), end)
    right = (above * below * intermediate).sum(dim=1)
    total = positive.sum(dim=1) * intermediate.sum(dim=1) * negatives.squeeze(1)
    return torch.stack([right, total], dim=1)


def ranked_triplets(ranking: Ranking, *, positive_level: float, weighting: TripletWeighting) -> torch.Tensor:
    """Return the numbers of correctly ordered and of all triplets for each query, [B, 2] int64."""
    positive, intermediate, negative = _kinds(ranking.relevance, ranking.valid, positive_level)
    _, end = ranking.tie_bounds()
    p, i, n = (kind.sum(dim=1) for kind in (positive, intermediate, negative))
    below = n.unsqueeze(1) - sum_before(negative.long(), end)
    right_p, right_i = (below * positive).sum(dim=1), (below * intermediate).sum(dim=1)
    if weighting == "quadlets":
        return torch.stack([right_p * i + right_i * p, 2 * p * i * n], dim=1)
    return torch.stack([right_p + right_i, (p + i) * n], dim=1)


@dataclass(frozen=True, slots=True)
class _SampledQuadlets:
    """Scores [B] of the three parts of sampled quadlets with their queries."""

    positive: torch.Tensor
    intermediate: torch.Tensor
    negative: torch.Tensor
    skipped: int


def _check_samples(samples: int, reduction: str) -> None:
    check_at_least(1, samples=samples)
    if reduction != "mean":
        raise InvalidArgumentError("reduction must be 'mean' with samples, which are taken from all queries")


def _ratio(counts: torch.Tensor, reduction: QueryReduction) -> CountedMean | torch.Tensor:
    if reduction == "none":
        return counts[:, 0] / counts[:, 1]
    check_choice("reduction", reduction, ("mean", "none"))
    right, total = (int(value) for value in counts.sum(dim=0).tolist())
    skipped = int((counts[:, 1] == 0).sum().item())
    return CountedMean(right / total if total else float("nan"), total, skipped)


def _kinds(
    relevance: torch.Tensor, valid: torch.Tensor, positive_level: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    positive = (relevance >= positive_level) & valid
    intermediate = (relevance > 0) & (relevance < positive_level) & valid
    return positive, intermediate, (relevance == 0) & valid


def _sample_quadlets(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    positive_level: float,
    samples: int,
    seed: int | torch.Generator,
    valid: torch.Tensor | None,
) -> _SampledQuadlets:
    """Sample uniformly from all quadlets: queries weighted by their number of quadlets, then each part
    independently."""
    scores, relevance, valid = check_inputs(scores, relevance, valid)
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    kept = torch.ones_like(relevance, dtype=torch.bool) if valid is None else valid
    kinds = _kinds(relevance, kept, positive_level)
    counts = torch.stack([kind.sum(dim=1) for kind in kinds], dim=1).cpu()
    weight = counts.double().prod(dim=1)
    if not bool((weight > 0).any()):
        empty = scores.new_zeros(0)
        return _SampledQuadlets(empty, empty, empty, len(scores))
    chance = torch.rand(samples, generator=generator, dtype=torch.float64) * weight.sum()
    query = torch.searchsorted(weight.cumsum(0), chance, right=True)
    # A value that rounds up to the total must not select a final query without quadlets.
    query = query.clamp(max=int(weight.nonzero().max().item()))
    parts = []
    for number, kind in enumerate(kinds):
        # nonzero lists the columns row by row, so the n-th item of this kind in a row is a single lookup.
        columns = kind.nonzero()[:, 1]
        first = torch.nn.functional.pad(counts[:, number].cumsum(0), (1, 0))[query]
        pick = torch.rand(samples, generator=generator, dtype=torch.float64) * counts[query, number]
        index = first + pick.long().minimum(counts[query, number] - 1)
        parts.append(scores[query.to(scores.device), columns[index.to(scores.device)]])
    positive, intermediate, negative = parts
    return _SampledQuadlets(positive, intermediate, negative, int((weight == 0).sum().item()))
