"""Extract the features of a file: the one place that distinguishes extractors of frames and of clips.

Who reads a file beats at every sign of life; :class:`Silence` measures how long there was none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from vidkin._base.files import PathLike
from vidkin.features.contracts import ClipExtractor, FrameExtractor
from vidkin.features.views import ViewPlan, describe_views, turn_boxes_back, turn_frames
from vidkin.media import Frames, ProbedVideo, iter_frames
from vidkin.media.frames import join_frames

if TYPE_CHECKING:
    from vidkin.similarity import FrameFeatures

Phase = Literal["decoding", "describing"]
"""What is happening to a file: its frames are being decoded, or the extractor is describing them."""

HANG_TIMEOUT = 120.0
"""Seconds without a packet read or a frame decoded after which a decoder counts as hung."""

# At most this many seconds of silence are counted between two checks: longer gaps mean that the checking process was
# busy or stopped, or the machine asleep, and say nothing about the reader.
_MOST_UNSEEN = 1.0
# An extractor can be silent this many times as long as a decoder.
_DESCRIBING_FACTOR = 5

# Frames described at a time, and bytes of them: networks like batches, and memory must grow neither with the length of
# the video nor with the size of its frames.
_FRAMES_A_CHUNK = 32
_BYTES_A_CHUNK = 64 << 20


def describe_file(
    path: PathLike | ProbedVideo,
    extractor: FrameExtractor,
    *,
    duration: float,
    rate: float,
    start: float = 0.0,
    end: float | None = None,
    mirrors: tuple[bool, ...] = (False,),
    turned: int = 0,
    views: bool = False,
    part_rate: float | None = None,
    batch: int = 32,
    threads: int = 0,
    beat: Callable[[Phase], None] = lambda phase: None,
    on_damage: Callable[[str], None] | None = None,
    on_frames: Callable[[Frames], None] | None = None,
) -> Iterator[tuple[FrameFeatures, ...]]:
    """Extract features of consecutive stretches of a file, in order; memory does not grow with its length.

    Args:
        path: A video or an image; a ProbedVideo is not reopened for its first pass.
        extractor: An extractor of frames or of clips.
        duration: Duration of the file in seconds; 0 if unknown.
        rate: Descriptors per second.
        start, end: Limits of the stretch in seconds; an ``end`` of None is the end of the file.
        mirrors: Orientations in which each stretch is described: unchanged (False), flipped left to right (True).
        turned: Degrees, 0, 90, 180 or 270, by which frames are turned clockwise first; boxes stay those of the picture
            as it is.
        views: Describe every frame in views (:class:`vidkin.features.ViewPlan`), not only as a whole. Mirrored frames
            are described as a whole and in the boxes found in them; clips only as a whole.
        part_rate: How many times per second parts of the picture are described, rounded to a whole multiple of the
            frame interval; None describes them in every frame.
        batch: Frames decoded at a time, between two calls of ``beat``.
        threads: Decoder threads, as in :func:`vidkin.media.iter_frames`.
        beat: Callback for every packet read and every change of phase.
        on_damage: Callback as in :func:`vidkin.media.iter_frames`, called for each pass over the file.
        on_frames: Callback for the frames before they are turned and described.

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
            if on_frames is not None:
                on_frames(frames)
            yield turn_frames(frames, turned)
            beat("decoding")
        beat("describing")  # frames not yet described

    if isinstance(extractor, ClipExtractor):
        plan = extractor.plan(duration, rate=rate, start=start, end=end)
        streams = [
            extractor.describe_clips(read(plan.rate, plan.start, plan.end), plan, mirror=mirror) for mirror in mirrors
        ]
        yield from zip(*streams, strict=True)
        return
    plan_of_views = ViewPlan()
    begun = 0
    stride = 1 if part_rate is None else max(1, round(rate / part_rate))
    for frames in _chunks(read(rate, start, end)):
        if views:
            boxes = plan_of_views.boxes(frames.images)
            described = describe_views(extractor, frames, boxes, mirrors=mirrors, begun=begun, stride=stride)
            begun += len(frames)
        else:
            described = tuple(extractor.extract(frames, mirror=mirror) for mirror in mirrors)
        yield tuple(_turned_back(features, turned) for features in described)


def _turned_back(features: FrameFeatures, turned: int) -> FrameFeatures:
    """Features whose boxes are those of the frames before they were turned."""
    if turned == 0 or features.boxes is None:
        return features
    return replace(features, boxes=turn_boxes_back(features.boxes, turned))


class Silence:
    """Measures the silence of one reader of files.

    Args:
        hang_timeout: Seconds that a decoder can be silent; an extractor can be silent five times as long.
    """

    def __init__(self, hang_timeout: float = HANG_TIMEOUT) -> None:
        self._hang_timeout = hang_timeout
        self._phase: Phase = "decoding"
        self.seconds = 0.0
        self._looked = time.monotonic()

    def end(self, phase: Phase | None = None) -> None:
        """Note a sign of life; ``phase`` is the new phase of the work, None if it has not changed."""
        self.seconds = 0.0
        self._looked = time.monotonic()
        self._phase = phase or self._phase

    def measure(self) -> str | None:
        """Add the time since the last call; returns the cause in one line once this counts as a hang."""
        now = time.monotonic()
        self.seconds += min(now - self._looked, _MOST_UNSEEN)
        self._looked = now
        who, limit = "decoder", self._hang_timeout
        if self._phase == "describing":
            who, limit = "extractor", _DESCRIBING_FACTOR * self._hang_timeout
        return f"the {who} hung: no progress for {limit:g} s" if self.seconds > limit else None


def _chunks(batches: Iterator[Frames]) -> Iterator[Frames]:
    """Batches, joined until there are enough frames to describe together."""
    waiting: list[Frames] = []
    for batch in batches:
        waiting.append(batch)
        size = sum(part.images.nbytes for part in waiting)
        if sum(map(len, waiting)) >= _FRAMES_A_CHUNK or size >= _BYTES_A_CHUNK:
            yield join_frames(waiting)
            waiting = []
    if waiting:
        yield join_frames(waiting)
