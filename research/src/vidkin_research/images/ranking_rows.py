"""Deep-ranking rows: a multiscale or a single-scale network, trained on triplets sampled online."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import resolve_device
from vidkin.metric.losses import TripletLoss
from vidkin.models import DeepRankingNetwork, Encoder, EncoderConfig, ImageEncoder, build_model
from vidkin.models.randomness import seeded
from vidkin.training.draws import OnlineSettings, online_triplets
from vidkin.training.engine import check_finite, read_terms, take_steps
from vidkin.training.schedules import Decay
from vidkin_research.images.contract import ImageRow, ImageTask

__all__ = ["RANKING_ROWS", "RankingRow"]

_CHUNK = 32
# Steps of the first phase, which leaves the backbone frozen. The triplet loss on the training images falls tenfold from
# 300 to 3,000 steps.
_STEPS, _TRIPLETS = 3000, 32
_RATE = 1e-3


class RankingRow:
    """A network with ImageNet weights, trained on triplets of the training images.

    The first phase trains the low-resolution paths and the linear layer, with deep features computed once per image;
    the second phase trains all weights on randomly flipped images.

    Args:
        task: Task with the training images.
        seed: Random seed for weights and sampling.
        kind: ``deep_ranking`` (three paths) or ``image`` (only the deep path).
        steps: Number of steps of the first phase, with 32 triplets each.
        is_tuned: Whether to run the second phase, with ``task.steps`` steps.
        backbone: Backbone of the deep path; None uses the task's backbone.
    """

    def __init__(
        self,
        task: ImageTask,
        seed: int,
        *,
        kind: str,
        steps: int = _STEPS,
        is_tuned: bool = False,
        backbone: str | None = None,
    ) -> None:
        if kind not in ("deep_ranking", "image"):
            raise InvalidArgumentError(f"kind must be 'deep_ranking' or 'image', got {kind!r}")
        backbone = backbone or task.backbone
        device = resolve_device(task.device)
        config = EncoderConfig(
            kind=kind,  # type: ignore[arg-type]
            backbone=backbone,
            trainable="head",
            hidden=128,
            size=task.train.size,
        )
        weights = task.weights if backbone == task.backbone else None
        self._model = build_model(config, weights=weights, seed=seed).to(device)
        with seeded(seed):
            self._train_head(task, seed, steps)
            if is_tuned:
                head, self._model = (
                    self._model,
                    build_model(replace(config, trainable="all"), weights=weights, seed=seed).to(device),
                )
                self._model.load_state_dict(head.state_dict())
                self._tune(task, seed)
        self._model.eval()

    @torch.no_grad()
    def describe(self, images: NDArray[np.uint8]) -> Tensor:
        """Compute unit vectors [N, D]."""
        deep = self._deep(images)
        pieces = torch.split(torch.arange(len(images)), _CHUNK)
        return torch.cat([self._embed(self._model, images[rows.numpy()], deep[rows]).cpu() for rows in pieces])

    def distances(self, queries: Tensor, gallery: Tensor) -> Tensor:
        """Compute squared Euclidean distances [Q, G] between unit vectors."""
        return 2 - 2 * queries @ gallery.T

    def _train_head(self, task: ImageTask, seed: int, steps: int) -> None:
        images = task.train.images
        deep = self._deep(images)
        loss = TripletLoss()

        def objective(model: Encoder, rows: Tensor) -> dict[str, Tensor]:
            embedded = self._embed(model, images[rows.numpy()], deep[rows])
            return {"loss": loss(*embedded.chunk(3))}

        groups = [{"params": [weight for weight in self._model.parameters() if weight.requires_grad]}]
        self._take_steps(objective, groups, task, seed, steps, Decay())

    def _tune(self, task: ImageTask, seed: int) -> None:
        images = task.train.images
        loss = TripletLoss()

        def objective(model: Encoder, rows: Tensor) -> dict[str, Tensor]:
            chosen = images[rows.numpy()]
            flipped = torch.rand(len(rows)) < 0.5
            chosen[flipped.numpy()] = chosen[flipped.numpy(), :, ::-1]
            embedded = self._embed(model, chosen, model.backbone_features(_inputs(model, chosen)))
            return {"loss": loss(*embedded.chunk(3))}

        # As in the recipes, the linear layer has ten times the backbone's learning rate.
        groups = self._model.parameter_groups(_RATE / 10)
        self._take_steps(objective, groups, task, seed, task.steps, Decay(kind="linear", steps=task.steps))

    def _take_steps(
        self,
        objective: Callable[[Encoder, Tensor], dict[str, Tensor]],
        groups: list[dict[str, Any]],
        task: ImageTask,
        seed: int,
        steps: int,
        schedule: Decay,
    ) -> None:
        optimizer = torch.optim.AdamW(groups, lr=_RATE, weight_decay=1e-3)
        batches = online_triplets(
            task.train.labels, None, steps=steps, triplets=_TRIPLETS, settings=OnlineSettings(), seed=seed
        )
        for step in take_steps(self._model, objective, optimizer, batches, schedule=schedule, clip=5.0):
            check_finite(step.number, read_terms([step])[0])

    @torch.no_grad()
    def _deep(self, images: NDArray[np.uint8]) -> Tensor:
        """Compute the backbone's features [N, F]."""
        training = self._model.training
        self._model.eval()
        pieces = np.array_split(images, -(-len(images) // _CHUNK))
        features = torch.cat([self._model.backbone_features(_inputs(self._model, piece)) for piece in pieces])
        self._model.train(training)
        return features

    def _embed(self, model: Encoder, images: NDArray[np.uint8], deep: Tensor) -> Tensor:
        if isinstance(model, DeepRankingNetwork):
            return model.head(model.join_paths(_inputs(model, images), deep))
        assert isinstance(model, ImageEncoder)
        return model.head(nn.functional.normalize(deep, dim=1))


def _inputs(model: Encoder, images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(images)).to(model.device).movedim(-1, 1).float() / 255


RANKING_ROWS: tuple[ImageRow, ...] = tuple(
    ImageRow(
        name,
        partial(RankingRow, kind=kind, is_tuned=True),
        group="learned",
        settings=(_STEPS, _TRIPLETS, _RATE, "tuned"),
    )
    for name, kind in (("single-scale ranking", "image"), ("deep ranking", "deep_ranking"))
)
"""MobileNetV2 with a linear layer, without and with two additional low-resolution paths, trained end to end on triplets
sampled online."""
