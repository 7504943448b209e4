"""The objective of a comparator: a weighted sum of losses on the scores and maps of all pairs of clips."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vidkin.models.comparator.comparator import ClipComparison, Comparator
from vidkin.models.processes.group import process_count
from vidkin.models.processes.shares import compute_in_shares
from vidkin.training.clips.batch import ClipBatch
from vidkin.training.data.batch import Draw
from vidkin.training.loss_table import LossCall, find_loss, make_loss
from vidkin.training.recipe import ObjectiveRecipe

__all__ = ["COMPARATOR_CALLS", "ComparatorObjective"]

COMPARATOR_CALLS: tuple[LossCall, ...] = ("fine_scores", "learned_maps", "frame_maps")
"""Losses that can train a comparator: on scores, on the learned map, and on the map of frames."""


class ComparatorObjective(nn.Module):
    """A weighted sum of losses on one comparison of all clips with each other.

    Losses on scores receive the scores [N, N] in [0, 1] with their relevance; ``learned_maps`` the learned maps before
    they are bounded; ``frame_maps`` the similarities of frames and the teacher's, for the two views of each window.

    Args:
        parts: The terms of a recipe.
    """

    def __init__(self, parts: Sequence[ObjectiveRecipe]) -> None:
        super().__init__()
        self._parts = tuple(parts)
        self._calls = tuple(find_loss(part.name).call for part in parts)
        self.losses = nn.ModuleList(make_loss(part.name, part.parameters) for part in parts)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """``clips``."""
        return ("clips",)

    @property
    def needs_teacher(self) -> bool:
        """Whether a term is on frames, whose labels come from a teacher."""
        return "frame_maps" in self._calls

    def forward(self, model: Comparator, batch: ClipBatch) -> dict[str, Tensor]:
        """Terms of one step by the names of their objectives, before weighting; ``loss`` is minimized, and the mean
        scores of ``positives`` and ``negatives`` are reported."""
        comparison = _compare(model, batch)
        terms: dict[str, Tensor] = {}
        total: Tensor | None = None
        with torch.autocast(comparison.scores.device.type, enabled=False):
            for part, call, loss in zip(self._parts, self._calls, self.losses, strict=True):
                value = _compute(loss, call, comparison, batch)
                same = sum(name.split(" ")[0] == part.name for name in terms)
                terms[f"{part.name} {same + 1}" if same else part.name] = value
                total = value * part.weight if total is None else total + value * part.weight
        assert total is not None
        scores = comparison.scores.detach().float()
        others = ~torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        for name, relevance in (("positives", 1), ("negatives", 0)):
            terms[name] = scores[(batch.relevance == relevance) & others].mean()
        return {**terms, "loss": total}


def _compare(model: Comparator, batch: ClipBatch) -> ClipComparison:
    """Compare all clips with each other; with several processes, each compares its share with all."""
    if process_count() == 1:
        comparison: ClipComparison = model(batch.values, batch.lengths)
        return comparison
    shapes: list[torch.Size] = []

    def compute(rows: slice) -> Tensor:
        own: ClipComparison = model(batch.values, batch.lengths, rows)
        parts = (own.scores, own.frame_maps, own.learned_maps)
        shapes.extend(part.shape[1:] for part in parts)
        return torch.cat([part.float().flatten(1) for part in parts], dim=1)

    joined = compute_in_shares(compute, len(batch.values))
    parts = torch.split(joined, [shape.numel() for shape in shapes], dim=1)
    return ClipComparison(*(part.view(-1, *shape) for part, shape in zip(parts, shapes, strict=True)))


def _compute(loss: nn.Module, call: LossCall, comparison: ClipComparison, batch: ClipBatch) -> Tensor:
    value: Tensor
    if call == "learned_maps":
        value = loss(comparison.learned_maps)
    elif call == "frame_maps":
        assert batch.teacher is not None
        count, frames = batch.labeled.shape
        rows = batch.teacher.flatten(0, 1)
        labels = (rows @ rows.T).view(count, frames, count, frames).transpose(1, 2)
        value = loss(
            comparison.frame_maps,
            labels,
            batch.same_window.long(),
            query_mask=batch.labeled,
            target_mask=batch.labeled,
        )
    else:
        value = loss(comparison.scores, batch.relevance, self_offset=0)
    return value
