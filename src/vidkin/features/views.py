"""Choose the views of each frame, and read files for extractors.

The full frame is one view. Each rectangle that may contain a video of its own (:func:`find_content_boxes`) is another
view with its own vector, so that an inset is compared as if it were a video.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin.errors import ExtractorError
from vidkin.features.content_boxes import MAX_BOXES, find_content_boxes, overlap
from vidkin.features.contracts import ClipExtractor, FrameExtractor
from vidkin.features.information import look_at, make_thumbnails
from vidkin.media import Frames, ProbedVideo, iter_frames
from vidkin.media.frames import join_frames
from vidkin.similarity import WHOLE, Box, FrameFeatures

# Minimum intersection over union with an earlier box for a box to count as the same.
_SAME = 0.8

CROPS: tuple[Box, ...] = (
    (0.2, 0.2, 0.8, 0.8),
    *((left, top, left + 0.6, top + 0.6) for top in (0.0, 0.4) for left in (0.0, 0.4)),
    (0.3, 0.0, 0.7, 1.0),
)
"""Parts of a query's frames that are described as well, to find copies that show only half of the frame."""


_Number = TypeVar("_Number", bound=np.generic)


def crop_box(images: NDArray[np.uint8], box: tuple[float, float, float, float]) -> NDArray[np.uint8]:
    """Crop images [T, H, W, 3] to a box (left, top, right, bottom as fractions), at least one pixel in size."""
    height, width = images.shape[1:3]
    left, top = min(round(box[0] * width), width - 1), min(round(box[1] * height), height - 1)
    right, bottom = max(round(box[2] * width), left + 1), max(round(box[3] * height), top + 1)
    return images[:, top:bottom, left:right]


@check_arguments
def features_of_views(
    describe: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    frames: Frames,
    fingerprint: str,
    *,
    boxes: NDArray[np.float32] | None = None,
) -> FrameFeatures:
    """Describe frames in every view, with an extractor that only takes full images.

    Args:
        describe: Function from images [T, H, W, 3] to descriptors [T, R, D].
        frames: T frames.
        fingerprint: Fingerprint of the extractor.
        boxes: [V, 4] as fractions of the frame; None describes the full frame.
    """
    images, look = frames.images, look_at(frames.images)
    boxes = np.array([WHOLE], np.float32) if boxes is None else boxes
    values = [
        describe(images if tuple(box) == WHOLE else np.ascontiguousarray(crop_box(images, tuple(box))))
        for box in boxes.tolist()
    ]
    return FrameFeatures(
        np.stack(values, axis=1),
        frames.timestamps.copy(),
        look.information,
        fingerprint,
        boxes=np.tile(boxes, (len(images), 1, 1)),
        thumbnails=make_thumbnails(look.luma, boxes),
    )


class ViewPlan:
    """Chooses the boxes for consecutive parts of a video: the full frame, then up to four boxes found in it.

    A box that is found again keeps its position, so that a view has the same meaning throughout the video.
    """

    def __init__(self) -> None:
        self._found: list[tuple[float, ...] | None] = [None] * MAX_BOXES

    def boxes(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the boxes [V, 4] for the next frames [T, H, W, 3] of the video; zeros where there is no box."""
        boxes = [tuple(box) for box in find_content_boxes(images).tolist()]
        chosen: list[tuple[float, ...] | None] = [None] * MAX_BOXES
        for view, before in enumerate(self._found):
            again = next((box for box in boxes if before is not None and overlap(box, before) >= _SAME), None)
            if again is not None:
                chosen[view] = again
                boxes.remove(again)
        # New boxes prefer positions that have not been used yet, so that different boxes are not mixed in one view.
        free = sorted((at for at in range(MAX_BOXES) if chosen[at] is None), key=lambda at: self._found[at] is not None)
        for view, box in zip(free, boxes, strict=False):
            chosen[view] = box
        self._found = [box or before for box, before in zip(chosen, self._found, strict=True)]
        return np.array([WHOLE, *(box or (0.0, 0.0, 0.0, 0.0) for box in chosen)], dtype=np.float32)


@check_arguments
def describe_views(
    extractor: FrameExtractor, frames: Frames, boxes: NDArray[np.float32], crops: NDArray[np.intp] | None = None
) -> FrameFeatures:
    """Describe frames in the boxes of a :class:`ViewPlan`.

    Args:
        extractor: An extractor for frames.
        frames: T frames.
        boxes: [V, 4] as fractions of the frame; zeros where there is no box.
        crops: Indices of frames for which `CROPS` are added as further views; None adds none.
    """
    features = _describe_boxes(extractor, frames, boxes)
    if crops is None:
        return features
    parts = np.array(CROPS, np.float32)
    cropped = _describe_boxes(extractor, frames[crops], parts)

    def add_crops(own: NDArray[_Number], some: NDArray[_Number]) -> NDArray[_Number]:
        more = np.zeros((len(own), len(CROPS), *own.shape[2:]), own.dtype)
        more[crops] = some
        return np.concatenate([own, more], axis=1)

    boxes = np.tile(parts, (len(frames), 1, 1))
    return replace(
        features,
        values=add_crops(features.values, cropped.values),
        boxes=boxes if features.boxes is None else np.concatenate([features.boxes, boxes], axis=1),
        thumbnails=None
        if features.thumbnails is None or cropped.thumbnails is None
        else add_crops(features.thumbnails, cropped.thumbnails),
    )


def _describe_boxes(extractor: FrameExtractor, frames: Frames, boxes: NDArray[np.float32]) -> FrameFeatures:
    """Describe frames in boxes [V, 4]; the features of all-zero boxes are zero."""
    given = np.flatnonzero(boxes.any(axis=1))
    features = _features(extractor.name, extractor.extract(frames, boxes=boxes[given]))
    values = np.zeros((len(frames), len(boxes), *features.values.shape[2:]), features.values.dtype)
    values[:, given] = features.values
    placed = np.tile(boxes, (len(frames), 1, 1))
    if features.boxes is not None:
        placed[:, given] = features.boxes
    thumbnails = features.thumbnails
    if thumbnails is not None:
        small = np.zeros((*values.shape[:2], *thumbnails.shape[2:]), np.uint8)
        small[:, given] = thumbnails
        thumbnails = small
    return replace(features, values=values, boxes=placed, thumbnails=thumbnails)


Phase = Literal["decoding", "describing"]
"""Current work on a file: decoding frames, or describing them with the extractor."""

HANG_TIMEOUT = 120.0
"""Seconds without a packet or a frame after which a decoder counts as hung."""

# Maximum seconds of silence to count between two checks: a longer gap means that the checking process was busy or
# stopped, or that the machine was asleep, not that the reader hangs.
_MAX_GAP = 1.0
# An extractor may be silent this many times longer than a decoder.
_DESCRIBING_FACTOR = 5

# Limits on the frames described at a time: networks are faster in batches, but memory use must not grow with the length
# of a video or the size of its frames.
_FRAMES_PER_CHUNK = 32
_BYTES_PER_CHUNK = 64 << 20


@check_arguments
def describe_file(
    path: PathLike | ProbedVideo,
    extractor: FrameExtractor,
    *,
    duration: float,
    rate: float,
    start: float = 0.0,
    end: float | None = None,
    boxes: bool = False,
    crops: float | None = None,
    batch: int = 32,
    threads: int = 0,
    beat: Callable[[Phase], None] = lambda phase: None,
    on_damage: Callable[[str], None] | None = None,
    on_frames: Callable[[Frames], None] | None = None,
) -> Iterator[FrameFeatures]:
    """Extract features of consecutive parts of a file, in order; memory use does not grow with its length.

    Args:
        path: A video or an image; a ProbedVideo is not reopened for its first pass.
        extractor: An extractor for frames or for clips.
        duration: Duration of the file in seconds; 0 if unknown.
        rate: Descriptors per second.
        start, end: Limits of the part to describe in seconds; an ``end`` of None is the end of the file.
        boxes: Also describe rectangles found in the frames, if the extractor supports this.
        crops: Number of times per second to describe `CROPS` as well, at most the frame rate; None for never.
        batch: Number of frames decoded between two calls of ``beat``.
        threads: Decoder threads, as in :func:`vidkin.media.iter_frames`.
        beat: Callback for every packet read and every change of phase.
        on_damage: Callback as in :func:`vidkin.media.iter_frames`, called for each pass over the file.
        on_frames: Callback that receives the frames before they are described.

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
            yield frames
            beat("decoding")
        beat("describing")  # frames not yet described

    if isinstance(extractor, ClipExtractor):
        plan = extractor.plan(duration, rate=rate, start=start, end=end)
        yield from extractor.describe_clips(read(plan.rate, plan.start, plan.end), plan)
        return
    plan_of_views, begun = ViewPlan(), 0
    for frames in _chunks(read(rate, start, end)):
        if boxes and extractor.describes_boxes:
            chosen = None
            if crops is not None:
                chosen = np.flatnonzero((np.arange(len(frames)) + begun) % max(1, round(rate / crops)) == 0)
            begun += len(frames)
            yield describe_views(extractor, frames, plan_of_views.boxes(frames.images), chosen)
        else:
            yield _features(extractor.name, extractor.extract(frames))


def _features(name: str, described: object) -> FrameFeatures:
    """Check the result of an extractor, which may come from another package."""
    if not isinstance(described, FrameFeatures):
        raise ExtractorError(f"{name}: extract must return FrameFeatures, got {type(described).__name__}")
    return described


class Silence:
    """Measures how long a reader of files has been silent.

    Args:
        hang_timeout: Seconds that a decoder may be silent; an extractor may be silent five times as long.
    """

    def __init__(self, hang_timeout: float = HANG_TIMEOUT) -> None:
        self._hang_timeout = hang_timeout
        self._phase: Phase = "decoding"
        self.seconds = 0.0
        self._checked_at = time.monotonic()

    def end(self, phase: Phase | None = None) -> None:
        """Reset the silence; ``phase`` is the new phase, None if it has not changed."""
        self.seconds = 0.0
        self._checked_at = time.monotonic()
        self._phase = phase or self._phase

    def measure(self) -> str | None:
        """Add the time since the last call; return the cause in one line if it counts as a hang, else None."""
        now = time.monotonic()
        self.seconds += min(now - self._checked_at, _MAX_GAP)
        self._checked_at = now
        who, limit = "decoder", self._hang_timeout
        if self._phase == "describing":
            who, limit = "extractor", _DESCRIBING_FACTOR * self._hang_timeout
        return f"the {who} hung: no progress for {limit:g} s" if self.seconds > limit else None


def _chunks(batches: Iterator[Frames]) -> Iterator[Frames]:
    """Join batches until there are enough frames to describe at once."""
    waiting: list[Frames] = []
    for batch in batches:
        waiting.append(batch)
        size = sum(part.images.nbytes for part in waiting)
        if sum(map(len, waiting)) >= _FRAMES_PER_CHUNK or size >= _BYTES_PER_CHUNK:
            yield join_frames(waiting)
            waiting = []
    if waiting:
        yield join_frames(waiting)
