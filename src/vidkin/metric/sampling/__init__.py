"""Samplers, which choose the items for each training step. All are deterministic for a given seed."""

from vidkin.metric.sampling.batches import BalancedBatchSampler
from vidkin.metric.sampling.blocks import Ineligible, Uniform
from vidkin.metric.sampling.online import OnlineTripletSampler, PairRelevance
from vidkin.metric.sampling.retrieval import (
    QuadletSampler,
    Similarity,
    sample_hard_quadlets,
    sample_quadlets,
    sample_triplets,
)
from vidkin.metric.sampling.semi_hard import (
    WithoutSemiHard,
    nearest_semi_hard_triplets,
    sample_semi_hard_triplets,
)
from vidkin.metric.sampling.tuples import Quadlets, Triplets

__all__ = [
    "BalancedBatchSampler",
    "Ineligible",
    "OnlineTripletSampler",
    "PairRelevance",
    "QuadletSampler",
    "Quadlets",
    "Similarity",
    "Triplets",
    "Uniform",
    "WithoutSemiHard",
    "nearest_semi_hard_triplets",
    "sample_hard_quadlets",
    "sample_quadlets",
    "sample_semi_hard_triplets",
    "sample_triplets",
]
