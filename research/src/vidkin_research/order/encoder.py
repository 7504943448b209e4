"""Train a small encoder on frozen features with each loss, and measure how well it orders unseen frames."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from vidkin._base.values import check_choice
from vidkin.metric.losses import quadlet_loss, radial_loss, triplet_loss
from vidkin.metric.measures import quadlet_precision
from vidkin_research.frame_encoder.objective import order_by_average_precision, quadlets_in
from vidkin_research.order.frames import Features, FrameSet

__all__ = ["EncoderLoss", "Whitening", "encode", "measure_order", "train_encoder", "unit_vectors"]

EncoderLoss = Literal["triplet", "quadlet", "radial", "radial, detached", "quad_linear", "logistic"]

# Number of principal components, and number of embedding dimensions.
_COMPONENTS, _DIMENSION = 256, 128
_STEPS, _RATE, _DECAY = 1500, 3e-3, 1e-2
# Number of moments per batch, with two views each; half of them are paired within a location.
_MOMENTS = 32
# Scale of cosines for the logistic loss: cosines of 0 and 1 become odds of 1:150 and 150:1.
_SLOPE = 10.0


class Whitening:
    """Principal components of features, scaled to unit variance; input and starting point of every encoder.

    Args:
        features: [N, F] features to fit to.
        dimension: Number of components.
    """

    def __init__(self, features: Features, dimension: int = _COMPONENTS) -> None:
        self.mean = features.mean(axis=0)
        centered = (features - self.mean).astype(np.float64)
        values, vectors = np.linalg.eigh(centered.T @ centered / len(features))
        chosen = np.argsort(values)[::-1][:dimension]
        self.weights = (vectors[:, chosen] / np.sqrt(np.maximum(values[chosen], 1e-9))).T.astype(np.float32)

    def __call__(self, features: Features) -> Features:
        """Compute the components [N, D]."""
        components: Features = ((features - self.mean) @ self.weights.T).astype(np.float32)
        return components


def train_encoder(
    frames: FrameSet, whitening: Whitening, loss: EncoderLoss, seed: int, *, steps: int = _STEPS
) -> Tensor:
    """Train the weights [D, C] of a linear layer on the components, initialized to pass the first D through.

    Args:
        frames: Training frames.
        whitening: Whitening of their features.
        loss: ``triplet``, ``quadlet`` and ``radial``: as published, on the quadlets of a batch, with the nearest view
            of another location as the negative. ``radial, detached``: without the gradient through the radius.
            ``quad_linear``: QuadLinear-AP of the same moment before everything else, and of the same location before
            others. ``logistic``: classification of every pair in a batch as the same moment or not, with class-balanced
            weights.
        seed: Random seed.
        steps: Number of AdamW steps, with a cosine schedule.
    """
    check_choice("loss", loss, get_args(EncoderLoss))
    random = np.random.default_rng(seed)
    features = torch.from_numpy(whitening(frames.features))
    weights = nn.Parameter(torch.eye(min(_DIMENSION, features.shape[1]), features.shape[1]))
    optimizer = torch.optim.AdamW([weights], _RATE, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    draw = _BatchSampler(frames)
    for _ in range(steps):
        chosen = draw(random)
        vectors = functional.normalize(features[chosen] @ weights.T, dim=1)
        value = _loss(vectors, torch.from_numpy(frames.moments[chosen]), torch.from_numpy(frames.places[chosen]), loss)
        optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return weights.detach()


def encode(frames: FrameSet, whitening: Whitening, weights: Tensor) -> Features:
    """Compute unit vectors [N, D] of frames with trained weights."""
    return unit_vectors(whitening(frames.features) @ weights.numpy().T)


class _BatchSampler:
    """Samples two views each of random moments, half of which are paired within a location."""

    def __init__(self, frames: FrameSet) -> None:
        views: dict[int, list[int]] = {}
        for row, moment in enumerate(frames.moments):
            views.setdefault(int(moment), []).append(row)
        self._views = {moment: np.array(rows) for moment, rows in views.items() if len(rows) > 1}
        self._moments = np.array(sorted(self._views))
        by_place: dict[int, list[int]] = {}
        for moment, rows in self._views.items():
            by_place.setdefault(int(frames.places[rows[0]]), []).append(moment)
        self._pairs = [np.array(moments) for moments in by_place.values() if len(moments) > 1]

    def __call__(self, random: np.random.Generator) -> NDArray[np.intp]:
        chosen: list[int] = []
        for _ in range(_MOMENTS // 4 if self._pairs else 0):
            chosen += random.choice(self._pairs[int(random.integers(len(self._pairs)))], 2, replace=False).tolist()
        others = self._moments[~np.isin(self._moments, chosen)]
        chosen += random.choice(others, min(_MOMENTS - len(set(chosen)), len(others)), replace=False).tolist()
        return np.concatenate([random.choice(self._views[each], 2, replace=False) for each in dict.fromkeys(chosen)])


def _loss(vectors: Tensor, moments: Tensor, places: Tensor, loss: EncoderLoss) -> Tensor:
    if loss == "quad_linear":
        return order_by_average_precision(vectors, moments, places)
    if loss == "logistic":
        same = moments[:, None] == moments
        apart = ~torch.eye(len(moments), dtype=torch.bool)
        costs = functional.binary_cross_entropy_with_logits(
            _SLOPE * (vectors @ vectors.T - 0.5), same.float(), reduction="none"
        )
        return costs[same & apart].mean() + costs[~same].mean()
    query, positive, intermediate, negative = quadlets_in(vectors, moments, places)
    if not len(query):
        return vectors.sum() * 0.0
    if loss == "triplet":
        return triplet_loss(query, positive, negative)
    if loss == "quadlet":
        return quadlet_loss(query, positive, intermediate, negative)
    return radial_loss(query, positive, intermediate, negative, detach_radius=loss == "radial, detached")


def measure_order(frames: FrameSet, vectors: Features) -> dict[str, float]:
    """Measure how well vectors order the gallery frames for each query frame.

    Returns:
        ``moment``: micro-AP with the same moment as positive; ``place``: micro-AP with the same location as positive,
        leaving out the same moment; ``quadlets``: quadlet precision (QP).
    """
    queries, gallery, levels = frames.relevance()
    scores = vectors[queries] @ vectors[gallery].T
    others = levels < 2
    return {
        "moment": _micro_ap(scores, levels == 2),
        "place": _micro_ap(scores[others], levels[others] == 1),
        "quadlets": float(quadlet_precision(torch.from_numpy(scores), torch.from_numpy(levels))),
    }


def _micro_ap(scores: NDArray[np.float32], right: NDArray[np.bool_]) -> float:
    ranked = right.ravel()[np.argsort(-scores.ravel(), kind="stable")]
    hits = np.flatnonzero(ranked)
    return float((np.arange(1, len(hits) + 1) / (hits + 1)).mean())


def unit_vectors(vectors: Features) -> Features:
    """Scale vectors [N, D] to length 1."""
    unit: Features = (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)).astype(np.float32)
    return unit
