"""What an extractor makes of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from vidkin.media import Frames

__all__ = ["FrameExtractor", "FrameFeatures"]


@dataclass(frozen=True, slots=True)
class FrameFeatures:
    """Regional descriptors of the frames of one video.

    Attributes:
        values: [T, R, D] floating point, unit vectors along D (a region without content may be all zero).
        timestamps: [T] float64, seconds.
        information: [T] float32 in [0, 1], how much there is to see in each frame: 0 for black, white and
            other featureless frames, 1 for a frame full of detail. Independent of the extractor.
        fingerprint: Names the extractor, its settings and its weights; features with different
            fingerprints cannot be compared.
    """

    values: torch.Tensor
    timestamps: torch.Tensor
    information: torch.Tensor
    fingerprint: str

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or not self.values.is_floating_point():
            raise InvalidArgumentError(
                f"values must be [T, R, D] floating point, given is {list(self.values.shape)} {self.values.dtype}"
            )
        length = self.values.shape[0]
        for name in ("timestamps", "information"):
            given = getattr(self, name)
            if tuple(given.shape) != (length,):
                raise InvalidArgumentError(
                    f"{name} must be [{length}] as values has that many frames, given is {list(given.shape)}"
                )

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __repr__(self) -> str:
        return f"FrameFeatures(values={list(self.values.shape)} {self.values.dtype}, fingerprint={self.fingerprint!r})"


class FrameExtractor(Protocol):
    """Frames in, regional descriptors out. Two methods, so that a new one is one small file.

    Implementations hold their own resizing and whitening and are deterministic: the same frames give the
    same features, whatever batch they came in.
    """

    @property
    def name(self) -> str:
        """The string that the registry resolves to this extractor: ``classical``, ``timm:resnet50``."""
        ...

    @property
    def fingerprint(self) -> str:
        """Name plus a short hash of settings and weights."""
        ...

    @property
    def short_side(self) -> int:
        """Frames may be decoded at this length of their short side, pixels; larger ones are accepted too."""
        ...

    def extract(self, frames: Frames, *, mirror: bool = False) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; of their left-right mirror images when ``mirror``."""
        ...
