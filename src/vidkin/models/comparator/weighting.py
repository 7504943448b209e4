"""How a comparator weights regional descriptors before it compares them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from vidkin.models.comparator.config import ComparatorConfig

__all__ = ["make_weighting"]


class _Attention(nn.Module):
    """``x sigmoid(v . tanh(W x + b))``; 263,168 and 512 parameters for D = 512."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dimension, dimension)
        self.context_vector = nn.Linear(dimension, 1, bias=False)
        nn.init.xavier_uniform_(self.transform.weight)
        nn.init.xavier_uniform_(self.context_vector.weight)
        nn.init.zeros_(self.transform.bias)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        weights: torch.Tensor = self.context_vector(torch.tanh(self.transform(values)))
        return values * weights.sigmoid()


class _Direction(nn.Module):
    """``x (1 + x . v / |v|) / 2`` for unit vectors x (ViSiL)."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.context_vector = nn.Linear(dimension, 1, bias=False)
        nn.init.normal_(self.context_vector.weight)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        cosine: torch.Tensor = self.context_vector(values) / self.context_vector.weight.norm()
        return values * (cosine / 2 + 0.5)


class _Signs(nn.Module):
    """Signs of a linear projection, scaled to length 1 (the binary student of DnS); it is not trained here."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.W = nn.Parameter(nn.init.orthogonal_(torch.empty(dimension, dimension)), requires_grad=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        signs = torch.sign(functional.normalize(values, dim=-1) @ self.W)
        scaled: torch.Tensor = signs / signs.shape[-1] ** 0.5
        return scaled


def make_weighting(config: ComparatorConfig) -> nn.Module:
    """Build a weighting from [..., D] to [..., D], with random weights (no weights for ``none``)."""
    if config.weighting == "none":
        return nn.Identity()
    kinds = {"attention": _Attention, "direction": _Direction, "signs": _Signs}
    return kinds[config.weighting](config.dimension)
