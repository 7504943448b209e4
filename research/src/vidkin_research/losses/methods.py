"""Methods to compare: ten losses added to the base objective, ablations of the full objective, and sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ABLATION", "LOSSES", "METHODS", "SPACE", "SWEEPS", "LossMethod"]


@dataclass(frozen=True, slots=True)
class LossMethod:
    """A way to train a comparator.

    Attributes:
        name: Name in tables.
        terms: (objective, weight) of each loss term; if empty, nothing is trained, and scores are computed from the
            similarity map alone.
        model: Comparator settings that differ from those of the other methods.
        parameters: Parameters that differ from an objective's defaults, by objective name.
    """

    name: str
    terms: Sequence[tuple[str, float]]
    model: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


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
"""Table 2 of HAP-VR: each loss added to the base objective, with the weight of the paper's loss."""

ABLATION: tuple[LossMethod, ...] = (
    LossMethod("Chamfer alone", (), _ALONE),
    LossMethod("base", _BASE),
    LossMethod("base, top 2", _BASE, {"temporal_share": 2.0}),
    LossMethod("+ video AP", (*_BASE, _VIDEO)),
    LossMethod("+ video AP, top 2", (*_BASE, _VIDEO), {"temporal_share": 2.0}),
    LossMethod("+ video AP, attention", (*_BASE, _VIDEO), _ATTENTION),
    LossMethod("+ frame AP", (*_BASE, _VIDEO, _FRAME), _ATTENTION),
)
"""Table 3: the similarity map alone; InfoNCE, SSHN and the regularizer (base), with k = 1 and 2 over frames (TopK);
QuadLinear-AP on videos, also with k = 1 and 2; with attention; QuadLinear-AP on frames, which trains the attention."""

SPACE: tuple[LossMethod, ...] = (
    LossMethod("Chamfer alone, top 2 regions", (), {**_ALONE, "spatial_share": 2.0}),
    LossMethod("Chamfer alone, top 3 regions", (), {**_ALONE, "spatial_share": 3.0}),
    LossMethod("Chamfer alone, all regions", (), {**_ALONE, "spatial_share": 1.0}),
    LossMethod("+ video AP, top 3 regions", (*_BASE, _VIDEO), {"spatial_share": 3.0}),
)
"""Sweep over k of TopK-Chamfer over the regions of a frame, which is 1 in all other methods."""


def _sweep(objective: str, name: str, values: Sequence[Any]) -> tuple[LossMethod, ...]:
    """Sweep a parameter of the full objective, without its frame term if the parameter belongs to the video term."""
    is_frame = objective == _FRAME[0]
    terms = (*_BASE, _VIDEO, *((_FRAME,) if is_frame else ()))
    return tuple(
        LossMethod(f"{name} {value:g}", terms, _ATTENTION if is_frame else {}, {objective: {name: value}})
        for value in values
    )


SWEEPS: Mapping[str, tuple[LossMethod, ...]] = {
    "hap-delta-video": _sweep(_VIDEO[0], "delta", (0.01, 0.05, 0.10, 0.15)),
    "hap-delta-frame": _sweep(_FRAME[0], "delta", (0.01, 0.05, 0.10, 0.15)),
    "hap-rho-video": _sweep(_VIDEO[0], "rho", (0.02, 0.2, 1.0, 5.0, 50.0)),
    "hap-rho-frame": _sweep(_FRAME[0], "rho", (0.02, 0.2, 1.0, 5.0, 50.0)),
    "hap-lambda-frame": tuple(
        LossMethod(f"lambda {weight:g}", (*_BASE, _VIDEO, (_FRAME[0], weight)), _ATTENTION)
        for weight in (2.0, 4.0, 6.0, 8.0)
    ),
    "hap-rates": tuple(
        LossMethod(
            f"top {top:g}, bottom {bottom:g}",
            (*_BASE, _VIDEO, _FRAME),
            _ATTENTION,
            {_FRAME[0]: {"top_rate": top, "bottom_rate": bottom}},
        )
        for top, bottom in ((0.3, 0.3), (0.35, 0.35), (0.4, 0.4), (0.45, 0.45), (0.3, 0.4), (0.4, 0.3))
    ),
}
"""Tables 7 to 12 by name: delta and rho of both terms, the weight of the frame term, and the fractions of positive and
negative frames. The paper does not say whether its video sweeps include the frame term; their results are close to
those of the video term alone, so the sweeps use the video term alone."""

METHODS: tuple[LossMethod, ...] = (*LOSSES, *ABLATION, *SPACE)
"""All methods, in the order in which they run."""
