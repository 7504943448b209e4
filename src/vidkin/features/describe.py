"""Extract the features of a file: the one place that distinguishes extractors of frames and of clips."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from vidkin.features.contracts import ClipExtractor, FrameExtractor
from vidkin.features.views import ViewPlan, describe_views
from vidkin.media import Frames, ProbedVideo, iter_frames

if TYPE_CHECKING:
    from vidkin.similarity import FrameFeatures

__all__ = ["Phase", "describe_file"]

Phase = Literal["decoding", "describing"]
"""What is happening to a file: its frames are being decoded, or the extractor is describing them."""

# Frames described at a time, and bytes of them: networks like batches, and memory must grow neither with the length of
# the video nor with the size of its frames.
_FRAMES_A_CHUNK = 32
_BYTES_A_CHUNK = 64 << 20


def describe_file(
    path: str | os.PathLike[str] | ProbedVideo,
    extractor: FrameExtractor,
    *,
    duration: float,
    rate: float,
    start: float = 0.0,
    end: float | None = None,
    mirrors: tuple[bool, ...] = (False,),
    views: bool = False,
    part_rate: float | None = None,
    batch: int = 32,
    threads: int = 0,
    beat: Callable[[Phase], None] = lambda phase: None,
    on_damage: Callable[[str], None] | None = None,
) -> Iterator[tuple[FrameFeatures, ...]]:
    """Extract features of consecutive stretches of a file, in order; memory does not grow with its length.

    Args:
        path: A video or an image; a ProbedVideo is not reopened for its first pass.
        extractor: An extractor of frames or of clips.
        duration: Duration of the file in seconds; 0 if unknown.
        rate: Descriptors per second.
        start, end: Limits of the stretch in seconds; an ``end`` of None is the end of the file.
        mirrors: Orientations in which each stretch is described: unchanged (False), flipped left to right (True).
        views: Describe every frame in views (:class:`vidkin.features.ViewPlan`), not only as a whole. Mirrored frames
            are described as a whole and in the boxes found in them; clips only as a whole.
        part_rate: How many times per second parts of the picture are described, rounded to a whole multiple of the
            frame interval; None describes them in every frame.
        batch: Frames decoded at a time, between two calls of ``beat``.
        threads: Decoder threads, as in :func:`vidkin.media.iter_frames`.
        beat: Callback for every packet read and every change of phase.
        on_damage: Callback as in :func:`vidkin.media.iter_frames`, called for each pass over the file.

    Returns:
        For each stretch, one FrameFeatures per orientation in ``mirrors``.

    Raises:
        MediaError: The file cannot be read.
    """

    def read(rate: float | None, start: float, end: float | None) -> Iterator[Frames]:
        for frames in iter_frames(
            path,
            rate=rate,
            start=start,
            end=end,
            short_side=extractor.short_side,
            batch=batch,
            threads=threads,
            on_read=lambda: beat("decoding"),
            on_damage=on_damage,
        ):
            beat("describing")
            yield frames
            beat("decoding")
        beat("describing")  # frames not yet described

    if isinstance(extractor, ClipExtractor):
        plan = extractor.plan(duration, rate=rate, start=start, end=end)
        streams = [
            extractor.describe_clips(read(plan.rate, plan.start, plan.end), plan, mirror=mirror)
            for mirror in mirrors
        ]
        yield from zip(*streams, strict=True)
        return
    plan_of_views = ViewPlan()
    begun = 0
    stride = 1 if part_rate is None else max(1, round(rate / part_rate))
    for frames in _chunks(read(rate, start, end)):
        if views:
            boxes = plan_of_views.boxes(frames.images)
            yield describe_views(extractor, frames, boxes, mirrors=mirrors, begun=begun, stride=stride)
            begun += len(frames)
        else:
            yield tuple(extractor.extract(frames, mirror=mirror) for mirror in mirrors)


def _chunks(batches: Iterator[Frames]) -> Iterator[Frames]:
    """Batches, joined until there are enough frames to describe together."""
    waiting: list[Frames] = []
    for batch in batches:
        waiting.append(batch)
        size = sum(part.images.nbytes for part in waiting)
        if sum(map(len, waiting)) >= _FRAMES_A_CHUNK or size >= _BYTES_A_CHUNK:
            yield _join(waiting)
            waiting = []
    if waiting:
        yield _join(waiting)


def _join(batches: list[Frames]) -> Frames:
    if len(batches) == 1:
        return batches[0]
    return Frames(
        np.concatenate([batch.images for batch in batches]),
        np.concatenate([batch.timestamps for batch in batches]),
    )
