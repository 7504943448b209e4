"""The configuration of a comparator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from vidkin._base.toml_tables import from_table, to_table
from vidkin.errors import InvalidArgumentError
from vidkin.similarity.topk import check_top_share

__all__ = ["KIND", "ComparatorConfig", "Padding", "Weighting"]

KIND = "comparator"
"""The kind of model named in the folder of a comparator."""

Weighting = Literal["none", "attention", "direction", "signs"]
Padding = Literal["zeros", "replicate"]


@dataclass(frozen=True, kw_only=True)
class ComparatorConfig:
    """Architecture of a comparator, and the descriptors it compares.

    Attributes:
        kind: Always ``comparator``.
        extractor: Name of the extractor that makes the descriptors, as accepted by
            :func:`vidkin.features.open_extractor`; not the folder of a trained model.
        dimension: D, length of a regional descriptor.
        weighting: How the descriptors are weighted first. ``attention``: a weight for each region, ``sigmoid(v .
            tanh(W x + b))``. ``direction``: ``(1 + cos(x, v)) / 2``, as in ViSiL. ``signs``: the signs of a projection,
            as in the binary student of DnS. ``none``: no weighting.
        network: ``cnn``: four convolutions over the map of frame similarities, which make it four times coarser.
            ``none``: the map itself, with nothing learned (Chamfer similarity alone).
        padding: Padding around the map: ``zeros`` (S2VS, DnS, HAP-VR) or ``replicate`` (ViSiL).
        spatial_share: k_s of the TopK-Chamfer similarity over regions: a share of the regions in [0, 1], or their
            number from 2 up; None: only the largest similarity counts.
        temporal_share: k_t of the TopK-Chamfer similarity over times, in the same form.
        temporal_span: Times of the learned map (four frames each with ``cnn``) up to which k grows with the length of
            the target; 0 sets no limit, which dilutes the score of a clip contained in a long video.
        symmetric: Average both directions, over regions and over times.
        unrelated: Median and 99th percentile of the scores, before calibration, of videos that have nothing in common;
            None: measured on background photographs when the comparator is opened. Training measures them on
            photographs and on its own videos.

    Raises:
        InvalidArgumentError: A value is out of range.
    """

    kind: Literal["comparator"] = "comparator"
    extractor: str = "vidkin"
    dimension: int = 128
    weighting: Weighting = "none"
    network: Literal["cnn", "none"] = "cnn"
    padding: Padding = "zeros"
    spatial_share: float | None = None
    temporal_share: float | None = None
    temporal_span: int = 0
    symmetric: bool = False
    unrelated: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InvalidArgumentError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )
        if not self.extractor:
            raise InvalidArgumentError("extractor must be the name of an extractor, got an empty one")
        if self.dimension < 1:
            raise InvalidArgumentError(f"dimension must be at least 1, got {self.dimension}")
        if self.temporal_span < 0:
            raise InvalidArgumentError(f"temporal_span must be at least 0, got {self.temporal_span}")
        check_top_share("spatial_share", self.spatial_share)
        check_top_share("temporal_share", self.temporal_share)
        if self.unrelated is not None:
            ordered = len(self.unrelated) == 2 and self.unrelated[0] < self.unrelated[1]
            if not ordered or not all(map(math.isfinite, self.unrelated)):
                raise InvalidArgumentError(
                    f"unrelated must be two numbers, the smaller first, got {self.unrelated}"
                )

    def to_mapping(self) -> dict[str, Any]:
        """All settings that are not None, ready for a TOML table."""
        return to_table(self)

    @classmethod
    def from_mapping(cls, table: Mapping[str, Any]) -> ComparatorConfig:
        """Read a table like the one :meth:`to_mapping` returns; missing settings get their defaults.

        Raises:
            InvalidArgumentError: A name is unknown, or a value has the wrong type or is not allowed.
        """
        return from_table(cls, table, "model")


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": (KIND,),
    "weighting": get_args(Weighting),
    "network": ("cnn", "none"),
    "padding": get_args(Padding),
}
