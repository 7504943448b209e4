"""A shot detector of your own: a cut wherever the brightness jumps.

In the ``pyproject.toml`` of your package::

    [project.entry-points."vidkin.shot_detectors"]
    flash = "flash_cuts:FlashCuts"

Then ``vidkin shots film.mp4 --detector 'flash?threshold=40'``.
"""

from __future__ import annotations

import numpy as np

from vidkin.shots import Curve, DetectedCut, DetectedCuts, RgbFrame


class FlashCuts:
    """Cuts between frames whose mean brightness differs. It is for one video; keyword-only parameters are settings.

    Args:
        threshold: Least difference, of 255.
    """

    # Pixels of the shorter side of the frames it gets.
    short_side = 32

    def __init__(self, *, threshold: float = 30.0) -> None:
        self.name = "flash"
        self._threshold = threshold
        self._times: list[float] = []
        self._levels: list[float] = []

    def push(self, frame: RgbFrame) -> None:
        """Take the next frame."""
        self._times.append(frame.time)
        self._levels.append(float(frame.image.mean()))

    def finish(self) -> DetectedCuts:
        """The cuts, and a value for each frame that `vidkin shots -o curve.png` draws."""
        changes = np.abs(np.diff(self._levels, prepend=self._levels[:1]))
        cuts = [
            DetectedCut(int(frame), confidence=min(1.0, float(changes[frame]) / 255))
            for frame in np.flatnonzero(changes >= self._threshold)
        ]
        return DetectedCuts(tuple(cuts), Curve(np.array(self._times), changes, "brightness"))
