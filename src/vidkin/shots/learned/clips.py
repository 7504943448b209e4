"""Clips from labelled shots, as tuples of cached frame features: what the metric for shots is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vidkin.datasets import VideoAnnotation
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import (
    AnnotatedShot,
    ClipWindow,
    sample_critical_quadlets,
    sample_shot_triplets,
)

__all__ = ["ShotBatch", "ShotClips", "annotated_shots"]

# B tuples, W frames a window, F length of the features of a frame.


@dataclass(frozen=True, slots=True)
class ShotBatch:
    """Tuples of one training step.

    Attributes:
        quadlets: [4, B, W, F] query, positive, intermediate, negative; None where none were asked for.
        triplets: [3, B, W, F] query, positive, negative; None where none were asked for.
    """

    quadlets: Tensor | None
    triplets: Tensor | None


def annotated_shots(
    annotations: Sequence[VideoAnnotation], *, with_critical: bool = True
) -> list[AnnotatedShot]:
    """Labels of videos as the samplers take them, videos numbered in the given order.

    Args:
        annotations: One a video.
        with_critical: False forgets which shots are critical: they are shots like the others then.
    """
    return [
        AnnotatedShot(number, shot.start, shot.end, shot.critical if with_critical else None)
        for number, annotation in enumerate(annotations)
        for shot in annotation.shots
    ]


class ShotClips:
    """Videos as features of their frames with their labelled shots, from which tuples are drawn.

    Critical shots give quadlets (query and positive from their calm frames, intermediate from their critical ones,
    negative from the next shot), the others triplets (query and positive from the shot, negative from the next), as in
    the sources.

    Args:
        features: For each video [T, F], one row a frame.
        annotations: Its labels, in the same order.
        window: W, frames a clip.
        minimum: Stretches shorter than W but of this many frames still give a clip, whose first frame is repeated in
            front; default W.

    Raises:
        InvalidArgumentError: Numbers of videos differ, or a label lies behind the end of its video.
    """

    def __init__(
        self,
        features: Sequence[Tensor],
        annotations: Sequence[VideoAnnotation],
        *,
        window: int,
        minimum: int | None = None,
    ) -> None:
        if len(features) != len(annotations) or not features:
            raise InvalidArgumentError(
                f"there must be labels for every video and at least one, given are {len(annotations)} for "
                f"{len(features)} videos"
            )
        for rows, annotation in zip(features, annotations, strict=True):
            if annotation.shots and annotation.shots[-1].end > len(rows):
                raise InvalidArgumentError(
                    f"{annotation.video} has {len(rows)} frames, but a shot labelled up to "
                    f"{annotation.shots[-1].end}"
                )
        self.window = window
        self.minimum = minimum
        self._features = list(features)
        self._labelled = annotated_shots(annotations)
        self._all = annotated_shots(annotations, with_critical=False)

    @property
    def has_critical(self) -> bool:
        """Is any shot labelled as critical?"""
        return any(shot.critical is not None for shot in self._labelled)

    def draw(
        self, *, quadlets: int, triplets: int, generator: torch.Generator, critical_triplets: bool = False
    ) -> ShotBatch:
        """Draw tuples, with replacement.

        Args:
            quadlets: How many quadlets from critical shots.
            triplets: How many triplets.
            generator: What chance comes from; it moves on.
            critical_triplets: Draw triplets from all shots as if none was critical: what a loss on triplets alone
                can use of the labels.

        Raises:
            InvalidArgumentError: No shot can give such a tuple; the message says why.
        """
        found_quadlets = found_triplets = None
        if quadlets:
            drawn = sample_critical_quadlets(
                self._labelled,
                quadlets,
                seed=generator,
                clip_frames=self.window,
                minimum_frames=self.minimum,
            )
            parts = ([getattr(q, part) for q in drawn] for part in _QUADLET)
            found_quadlets = torch.stack([self._clips(part) for part in parts])
        if triplets:
            shots = self._all if critical_triplets else self._labelled
            threes = sample_shot_triplets(
                shots, triplets, seed=generator, clip_frames=self.window, minimum_frames=self.minimum
            )
            found_triplets = torch.stack(
                [self._clips([getattr(t, part) for t in threes]) for part in _TRIPLET]
            )
        return ShotBatch(found_quadlets, found_triplets)

    def _clips(self, windows: Sequence[ClipWindow]) -> Tensor:
        return torch.stack([self._clip(window) for window in windows])

    def _clip(self, window: ClipWindow) -> Tensor:
        rows = self._features[window.video][window.start : window.end]
        lacking = self.window - len(rows)
        return torch.cat([rows[:1].expand(lacking, -1), rows]) if lacking else rows


_QUADLET = ("query", "positive", "intermediate", "negative")
_TRIPLET = ("query", "positive", "negative")
