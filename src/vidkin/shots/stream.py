"""Detect shots in a stream of frames, for example from a camera."""

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
    """Detects the shots in a video whose frames are pushed as they arrive.

    Args:
        detector: A name for `open_detector`, or a new detector object.
        threshold: Threshold for a detector given by name, see `with_threshold`.
        frame_rate: Frames per second of frames pushed as arrays; `Frames` have timestamps.

    Raises:
        InvalidArgumentError: There is no detector with this name or threshold, or the rate is not positive.

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
        """Process the next frames.

        Args:
            frames: [T, H, W, 3] or [H, W, 3] uint8 RGB, or `Frames` that are later than all previous ones.

        Returns:
            Transitions that have become final. The default detector reports them about half a minute late; a detector
            without a ``settled`` method reports them only at the end.

        Raises:
            InvalidArgumentError: ``frames`` has the wrong type or no times, or `finish` has been called.
        """
        if self._is_finished:
            raise InvalidArgumentError("a ShotStream is for one video; create a new one for more frames")
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
        """Return all transitions and shots after the last frame.

        Raises:
            InvalidArgumentError: No frames were pushed, or `finish` has already been called.
        """
        if self._is_finished or not self._times:
            raise InvalidArgumentError("finish must be called once, after at least one frame")
        self._is_finished = True
        detection = build_detection("", self._detector.name, self._detector.finish(), np.array(self._times))
        return replace(detection, black=self._black.finish(self._times, first=0, end=detection.shots[-1].end))

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
            raise InvalidArgumentError("frames must be later than all previous frames")
        return frames
