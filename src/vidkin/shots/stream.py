"""Detect shots in frames that arrive one by one, for example from a camera."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.values import check_positive
from vidkin.errors import InvalidArgumentError
from vidkin.media import Frames, sample_planes
from vidkin.media.convert import shrink
from vidkin.shots.black import BlackFrames
from vidkin.shots.contract import Cut, PlanesDetector, RgbFrame, ShotDetection, ShotDetector
from vidkin.shots.detect import add_times, build_detection, open_with


@check_constructor
class ShotStream:
    """Detects the shots of one video from pushed frames.

    Args:
        detector: A name for `open_detector`, or a fresh detector.
        threshold: Threshold for a detector given by name, see `with_threshold`.
        frame_rate: Frames per second of arrays; `Frames` have their times.

    Raises:
        InvalidArgumentError: No detector has this name or threshold, or the rate is not above 0.

    >>> import numpy as np
    >>> stream = ShotStream(frame_rate=25)
    >>> stream.push(np.zeros((25, 36, 64, 3), np.uint8))
    ()
    >>> stream.finish().shots[0].end
    1.0
    """

    def __init__(
        self,
        detector: str | ShotDetector | PlanesDetector = "default",
        *,
        threshold: float | None = None,
        frame_rate: float | Fraction | None = None,
    ) -> None:
        if frame_rate is not None:
            check_positive(frame_rate=float(frame_rate))
        self._rate = frame_rate
        self._detector = open_with(detector, threshold)
        self._black = BlackFrames()
        self._times: list[float] = []
        self._is_finished = False

    def push(self, frames: Frames | NDArray[np.uint8]) -> tuple[Cut, ...]:
        """Take the next frames.

        Args:
            frames: [T, H, W, 3] or [H, W, 3] uint8 RGB, or `Frames` later than all before.

        Returns:
            The transitions that have become final. The default detector returns them with a delay of about half a
            minute; one without a method ``settled`` only at the end.

        Raises:
            InvalidArgumentError: ``frames`` has another type or no times, or `finish` was called before.
        """
        if self._is_finished:
            raise InvalidArgumentError("a ShotStream takes one video; open a new one for more frames")
        batch = self._add_times(frames)
        if not len(batch):
            return ()
        first = len(self._times)
        self._times += batch.timestamps.tolist()
        if isinstance(self._detector, PlanesDetector):
            planes = sample_planes(batch, height=self._detector.grid[0], width=self._detector.grid[1])
            self._black.push_planes(planes)
            self._detector.push_planes(planes)
        else:
            self._black.push_images(batch.images)
            for number, (image, time) in enumerate(zip(batch.images, batch.timestamps.tolist(), strict=True), first):
                self._detector.push(RgbFrame(number, time, shrink(image, self._detector.short_side)))
        settled = getattr(self._detector, "settled", tuple)
        return tuple(add_times(cut, self._times) for cut in settled())

    def finish(self) -> ShotDetection:
        """All transitions and shots, after the last frame.

        Raises:
            InvalidArgumentError: There was no frame, or this was called before.
        """
        if self._is_finished or not self._times:
            raise InvalidArgumentError("finish must be called once, after at least one frame")
        self._is_finished = True
        found = build_detection("", self._detector.name, self._detector.finish(), np.array(self._times))
        return replace(found, black=self._black.finish(self._times, first=0, end=found.shots[-1].end))

    def _add_times(self, frames: Frames | NDArray[np.uint8]) -> Frames:
        if not isinstance(frames, Frames):
            images = np.asarray(frames)
            images = images[None] if images.ndim == 3 else images
            if images.ndim != 4 or self._rate is None:
                raise InvalidArgumentError(
                    "frames must be Frames, or with frame_rate an array [T, H, W, 3] or [H, W, 3] of uint8 RGB, "
                    f"got {type(frames).__name__} and frame_rate {self._rate}"
                )
            numbers = np.arange(len(self._times), len(self._times) + len(images))
            frames = Frames(images, numbers / float(self._rate))
        if len(frames) and self._times and frames.timestamps[0] <= self._times[-1]:
            raise InvalidArgumentError("frames must be later than the frames before them")
        return frames
