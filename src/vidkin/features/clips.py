"""Extractors that look at stretches of video, not at single frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard

from vidkin.features.contracts import FrameExtractor, FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

__all__ = ["ClipExtractor", "ClipPlan", "Measure", "iter_clip_features", "measure_of", "sees_clips"]

Measure = Literal["copies", "kinds"]


@dataclass(frozen=True, slots=True)
class ClipPlan:
    """Which frames of a file an extractor wants to see, in the words of :func:`vidkin.media.iter_frames`.

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


class ClipExtractor(FrameExtractor, Protocol):
    """An extractor whose descriptors are of clips: it says which frames it needs and takes them as they come."""

    def plan(self, duration: float, *, rate: float, start: float = 0.0, end: float | None = None) -> ClipPlan:
        """What to read of a file, or of the stretch from ``start`` to ``end``.

        Args:
            duration: Of the file, seconds; 0 where it is not known and for pictures.
            rate: Descriptors a second that are wanted.
            start: Seconds.
            end: Seconds; None is the end of the file.
        """
        ...

    def describe_clips(
        self, batches: Iterator[Frames], plan: ClipPlan, *, mirror: bool = False
    ) -> Iterator[FrameFeatures]:
        """Features of the clips, as soon as their frames are there; at least one clip of any video."""
        ...


def sees_clips(extractor: FrameExtractor) -> TypeGuard[ClipExtractor]:
    """It is a :class:`ClipExtractor`."""
    return hasattr(extractor, "describe_clips") and hasattr(extractor, "plan")


def measure_of(extractor: FrameExtractor) -> Measure:
    """What a similarity of this extractor's descriptors means; its attribute ``measure``, ``copies`` without one.

    ``copies``: equal material is similar, everything else is unrelated. ``kinds``: similarity is graded, and the
    order is what counts: the same thing, the same kind of thing, something else.
    """
    found: Measure = getattr(extractor, "measure", "copies")
    return found


def iter_clip_features(
    path: str | os.PathLike[str],
    extractor: ClipExtractor,
    *,
    duration: float,
    rate: float,
    start: float = 0.0,
    end: float | None = None,
    mirror: bool = False,
    batch: int = 32,
    threads: int = 0,
    beat: Callable[[], None] = lambda: None,
) -> Iterator[FrameFeatures]:
    """Clip features of a file or of a stretch of it; memory does not grow with its length.

    Args:
        path: A video or a picture.
        extractor: What makes them.
        duration: Of the file, seconds.
        rate: Descriptors a second that are wanted.
        start, end: The stretch, seconds.
        mirror: Of the mirror image.
        batch, threads: As of :func:`vidkin.media.iter_frames`.
        beat: Called for each batch of frames.

    Raises:
        MediaError: The file cannot be read.
    """
    from vidkin.media import iter_frames

    plan = extractor.plan(duration, rate=rate, start=start, end=end)

    def frames() -> Iterator[Frames]:
        for part in iter_frames(
            path,
            rate=plan.rate,
            start=plan.start,
            end=plan.end,
            short_side=extractor.short_side,
            batch=batch,
            threads=threads,
        ):
            beat()
            yield part

    yield from extractor.describe_clips(frames(), plan, mirror=mirror)
