"""The methods to compare: ten losses on video scores alone, and the parts of the full objective one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ABLATION", "LOSSES", "LossMethod"]


@dataclass(frozen=True, slots=True)
class LossMethod:
    """A way to train a comparator.

    Attributes:
        name: Name in tables.
        terms: (objective, weight) of each term of the loss; empty: nothing is trained, and scores come from the map
            alone.
        model: Settings of the comparator that differ from those of all other methods.
    """

    name: str
    terms: Sequence[tuple[str, float]]
    model: Mapping[str, Any] = field(default_factory=dict)


_RANGE = ("similarity_regularizer", 1.0)
_BASE = (("info_nce", 1.0), ("self_hard_negative", 3.0), _RANGE)
_VIDEO = ("quad_linear_ap", 4.0)
_FRAME = ("frame_quad_linear_ap", 6.0)
# Of the four or seven times of learned maps of 16 or 28 frames.
_TOP = {"temporal_share": 2.0}

LOSSES: tuple[LossMethod, ...] = tuple(
    LossMethod(label, ((name, 1.0), _RANGE))
    for label, name in (
        ("MAE", "mae"),
        ("MSE", "mse"),
        ("contrastive", "contrastive"),
        ("triplet", "score_triplet"),
        ("circle", "circle"),
        ("FastAP", "fast_ap"),
        ("DIR", "quantized_ap"),
        ("BlackBox-AP", "blackbox_ap"),
        ("Smooth-AP", "smooth_ap"),
        ("QuadLinear-AP", "quad_linear_ap"),
    )
)
"""One loss of scores each, with the regularizer that keeps the learned map in its range."""

ABLATION: tuple[LossMethod, ...] = (
    LossMethod("Chamfer alone", (), {"network": "none", "weighting": "none"}),
    LossMethod("base", _BASE),
    LossMethod("base, top 2", _BASE, _TOP),
    LossMethod("+ video AP", (*_BASE, _VIDEO)),
    LossMethod("+ video AP, top 2", (*_BASE, _VIDEO), _TOP),
    LossMethod("+ video AP, attention", (*_BASE, _VIDEO), {"weighting": "attention"}),
    LossMethod("+ frame AP", (*_BASE, _VIDEO, _FRAME), {"weighting": "attention"}),
    LossMethod("+ frame AP, top 2", (*_BASE, _VIDEO, _FRAME), {"weighting": "attention", **_TOP}),
)
"""The map alone; InfoNCE, SSHN and the regularizer (base); QuadLinear-AP on videos; the same with attention;
QuadLinear-AP on frames, which trains the attention. With k = 1 and k = 2 of TopK-Chamfer over times."""
