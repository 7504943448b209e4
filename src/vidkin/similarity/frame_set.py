"""What goes into the comparison of two videos, and what comes out.

Shapes: T frames, Tq, Tt frames of query and target; R regions; D dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.similarity.segment import Segment

__all__ = ["FrameSet", "PairScore"]


@dataclass(frozen=True, slots=True)
class FrameSet:
    """Frames of one video, ready to be compared.

    Attributes:
        values: [T, R, D] floating point, unit vectors (all fields in one type are not needed).
        times: [T] float64 seconds, increasing.
        weights: [T] in [0, 1], how much each frame counts: 0 for black ones and for those that half the
            collection shares.
        baseline: [T] in [-1, 1], how similar unrelated frames are to this one (`background_baseline`).
        end: Second at which the video ends (or the part of it that is compared), at or after the last frame; no
            segment reaches beyond. None where that is not known.
    """

    values: torch.Tensor
    times: torch.Tensor
    weights: torch.Tensor
    baseline: torch.Tensor
    end: float | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or len(self.values) == 0:
            raise InvalidArgumentError(
                f"values must be [T, R, D] with at least one frame, given is {list(self.values.shape)}"
            )
        for name in ("times", "weights", "baseline"):
            if tuple(getattr(self, name).shape) != (len(self.values),):
                raise InvalidArgumentError(
                    f"{name} must be [{len(self.values)}], given is {list(getattr(self, name).shape)}"
                )
        if self.end is not None and self.end < float(self.times[-1]):
            raise InvalidArgumentError(
                f"end must be at or after the last frame, at {float(self.times[-1])} s, given is {self.end} s"
            )

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def period(self) -> float:
        """Median distance between frames, seconds; 1.0 for a single frame."""
        return float(self.times.diff().median()) if len(self) > 1 else 1.0


@dataclass(frozen=True, slots=True)
class PairScore:
    """What came out for one pair.

    Attributes:
        score: In [0, 1]; 1.0 for identical videos, near 0 for unrelated ones.
        segments: Best first.
        map: [Tq, Tt] float32, calibrated frame similarities in [0, 1].
    """

    score: float
    segments: tuple[Segment, ...]
    map: torch.Tensor
