"""The methods to compare: ten losses beside the base objective, the parts of the full objective, and k over regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ABLATION", "LOSSES", "METHODS", "SPACE", "LossMethod"]


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


_BASE = (("info_nce", 1.0), ("self_hard_negative", 3.0), ("similarity_regularizer", 1.0))
_VIDEO = ("quad_linear_ap", 4.0)
_FRAME = ("frame_quad_linear_ap", 6.0)
_ATTENTION = {"weighting": "attention"}
_ALONE = {"network": "none", "weighting": "none"}

LOSSES: tuple[LossMethod, ...] = tuple(
    LossMethod(label, (*_BASE, (name, _VIDEO[1])))
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
"""Table 2 of HAP-VR: each loss added to the base objective, with the weight that the paper gives to its own."""

ABLATION: tuple[LossMethod, ...] = (
    LossMethod("Chamfer alone", (), _ALONE),
    LossMethod("base", _BASE),
    LossMethod("+ video AP", (*_BASE, _VIDEO)),
    LossMethod("+ video AP, top 2", (*_BASE, _VIDEO), {"temporal_share": 2.0}),
    LossMethod("+ video AP, attention", (*_BASE, _VIDEO), _ATTENTION),
    LossMethod("+ frame AP", (*_BASE, _VIDEO, _FRAME), _ATTENTION),
)
"""Table 3: the map alone; InfoNCE, SSHN and the regularizer (base); QuadLinear-AP on videos, trained with k = 1 and 2
of the times; the same with attention; QuadLinear-AP on frames, which trains the attention."""

SPACE: tuple[LossMethod, ...] = (
    LossMethod("Chamfer alone, top 2 regions", (), {**_ALONE, "spatial_share": 2.0}),
    LossMethod("Chamfer alone, top 3 regions", (), {**_ALONE, "spatial_share": 3.0}),
    LossMethod("Chamfer alone, all regions", (), {**_ALONE, "spatial_share": 1.0}),
    LossMethod("+ video AP, top 3 regions", (*_BASE, _VIDEO), {"spatial_share": 3.0}),
)
"""k of TopK-Chamfer over the regions of a frame, which is 1 in all other methods."""

METHODS: tuple[LossMethod, ...] = (*LOSSES, *ABLATION, *SPACE)
"""All methods, in the order in which they are run."""
