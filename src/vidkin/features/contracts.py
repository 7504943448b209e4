"""The contracts of extractors: frames or clips in, regional descriptors out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import torch

from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

__all__ = ["ClipExtractor", "ClipPlan", "FrameExtractor", "Views"]

Views = Literal["none", "query", "both"]
"""Which side is described in views: none, the query only, or stored videos as well."""


class FrameExtractor(Protocol):
    """Turns frames into regional descriptors.

    Implementations do their own resizing and whitening and are deterministic: the same frames give the
    same features in any batch.
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

    @property
    def scorer(self) -> str:
        """The scorer that these features are made for (:func:`vidkin.similarity.scorer_of`).

        ``copies``: equal material is similar, everything else is unrelated. ``kinds``: similarity is graded, and only
        the order is meaningful: the same thing, the same kind of thing, something else. ``learned``: the extractor
        brings its own, a trained comparator.
        """
        ...

    @property
    def views(self) -> Views:
        """Which side of a comparison to describe in views, see :mod:`vidkin.features.views`."""
        ...

    def extract(
        self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None
    ) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; of their left-right mirror images when ``mirror``.

        Args:
            frames: T frames.
            mirror: Flip the frames first.
            boxes: [V, 4] views of the (flipped) picture between black bars, the whole first; None for the whole
                alone. Extractors of clips support only the whole.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClipPlan:
    """Which frames of a file an extractor needs, in the terms of :func:`vidkin.media.iter_frames`.

    Attributes:
        start: First sample, seconds.
        end: Samples before this time only, seconds; None goes to the end.
        rate: Samples a second; None is every frame.
        clips: Of each clip the times of its frames, seconds; empty where clips are consecutive samples.
        step: Where they are: seconds from the start of one clip to that of the next.
    """

    start: float
    end: float | None
    rate: float | None
    clips: tuple[tuple[float, ...], ...] = ()
    step: float = 1.0


@runtime_checkable
class ClipExtractor(FrameExtractor, Protocol):
    """An extractor that describes clips: it plans which frames it needs and takes them as they arrive."""

    def plan(self, duration: float, *, rate: float, start: float = 0.0, end: float | None = None) -> ClipPlan:
        """What to read of a file, or of the stretch from ``start`` to ``end``.

        Args:
            duration: Of the file, seconds; 0 where it is not known and for images.
            rate: Descriptors a second.
            start: Seconds.
            end: Seconds; None is the end of the file.
        """
        ...

    def describe_clips(
        self, batches: Iterator[Frames], plan: ClipPlan, *, mirror: bool = False
    ) -> Iterator[FrameFeatures]:
        """Features of the clips as soon as their frames have arrived; at least one clip for any video."""
        ...
