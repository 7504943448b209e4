"""The contracts of extractors: frames or clips in, regional descriptors out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.media import Frames
    from vidkin.similarity import FrameFeatures

Views = Literal["none", "query", "both"]
"""Which side is described in views: neither, the query only, or stored videos as well."""

Turn = Literal["mirrored", "turned 90", "turned 180", "turned 270"]
"""Flipped left to right, or turned clockwise by so many degrees."""


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
        """Length in pixels to which the short side of frames can be reduced when decoding; larger frames are accepted,
        too."""
        ...

    @property
    def scorer(self) -> str:
        """The scorer these features are made for (:func:`vidkin.similarity.scorer_of`).

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
        self, frames: Frames, *, mirror: bool = False, boxes: NDArray[np.float32] | None = None
    ) -> FrameFeatures:
        """Features of frames [T, H, W, 3], or of their left-right mirror images if ``mirror``.

        Args:
            frames: T frames with their times.
            mirror: Flip the frames first.
            boxes: [V, 4] views of the (flipped) picture between black bars, the whole picture first; None describes
                only the whole. Extractors of clips support only the whole.
        """
        ...


@runtime_checkable
class PredictsTurns(Protocol):
    """An extractor that knows without the frames about what it would see in them mirrored, and sees them turned for
    little more than it took to see them upright."""

    def predict_turned(self, features: FrameFeatures, turn: Turn) -> FrameFeatures | None:
        """Features [T, 1, 1, D] of the whole pictures after the turn, as the extractor would describe them; None if it
        cannot tell.

        Args:
            features: Features by this extractor.
            turn: What is done to the pictures.
        """
        ...

    def extract_turned(self, frames: Frames, degrees: int, *, mirror: bool = False) -> FrameFeatures:
        """Features [T, 1, 1, D] of the whole pictures between black bars, turned clockwise and then flipped; no boxes.

        Args:
            frames: T frames as they are.
            degrees: 90, 180 or 270.
            mirror: Flip left to right after the turn.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClipPlan:
    """Which frames of a file an extractor needs, in the terms of :func:`vidkin.media.iter_frames`.

    Attributes:
        start: Time of the first sample in seconds.
        end: Only samples before this time in seconds are taken; None reads to the end.
        rate: Samples per second; None takes every frame.
        clips: Times of each clip's frames in seconds; empty if clips are consecutive samples.
        step: For consecutive samples: seconds from the start of one clip to the start of the next.
    """

    start: float
    end: float | None
    rate: float | None
    clips: tuple[tuple[float, ...], ...] = ()
    step: float = 1.0


@runtime_checkable
class ClipExtractor(FrameExtractor, Protocol):
    """An extractor that describes clips: it plans which frames it needs and consumes them as they arrive."""

    def plan(self, duration: float, *, rate: float, start: float = 0.0, end: float | None = None) -> ClipPlan:
        """Plan which frames to read from a file, or from the stretch between ``start`` and ``end``.

        Args:
            duration: Duration of the file in seconds; 0 if unknown and for images.
            rate: Descriptors per second.
            start: Start of the stretch in seconds.
            end: End of the stretch in seconds; None is the end of the file.
        """
        ...

    def describe_clips(
        self, batches: Iterator[Frames], plan: ClipPlan, *, mirror: bool = False
    ) -> Iterator[FrameFeatures]:
        """Yield features of clips as soon as their frames have arrived; every video has at least one clip."""
        ...
