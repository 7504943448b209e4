"""PySceneDetect's content and adaptive detectors on frames decoded by vidkin."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.install import install_command
from vidkin._base.values import check_at_least, check_positive
from vidkin.errors import MissingPartError
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts, RgbFrame

__all__ = ["AdaptiveBaseline", "ContentBaseline", "import_scenedetect"]

# The detectors count frames; the rate only converts frame numbers to time codes, which are not used here.
_ANY_RATE = 24.0
_MAX_VALUE = 100.0


def import_scenedetect() -> Any:
    """Import scenedetect, or raise `MissingPartError` with the command that installs it."""
    try:
        return importlib.import_module("scenedetect")
    except ImportError as error:
        raise MissingPartError(
            "the detectors 'content' and 'adaptive' need PySceneDetect, which is not installed; "
            f"install it with: {install_command('baselines', 'vidkin-research')}"
        ) from error


class _SceneDetectBaseline:
    """Scales frames like PySceneDetect's scene manager and passes them to one of its detectors."""

    short_side: int | None = None

    def __init__(self, name: str, peer: Any, *, threshold: float) -> None:
        self.name = name
        self._peer = peer
        self._scenedetect = import_scenedetect()
        self._cv2 = importlib.import_module("cv2")
        self._threshold = threshold
        self._times: list[float] = []
        self._values: list[float] = []
        self._cuts: list[int] = []

    def push(self, frame: RgbFrame) -> None:
        """Process the next frame."""
        moment = self._scenedetect.FrameTimecode(frame.index, _ANY_RATE)
        # BGR, longer side 256 pixels, bilinear: the input that the published settings were chosen for.
        scaled: NDArray[np.uint8] = np.ascontiguousarray(frame.image[..., ::-1])
        manager = importlib.import_module("scenedetect.scene_manager")
        factor = manager.compute_downscale_factor(max(scaled.shape[:2]))
        if factor > 1.0:
            size = tuple(max(1, round(side / factor)) for side in scaled.shape[1::-1])
            scaled = self._cv2.resize(scaled, size, interpolation=self._cv2.INTER_LINEAR)
        self._cuts += [code.frame_num for code in self._peer.process_frame(moment, scaled)]
        self._times.append(frame.time)
        # This value is public only through a statistics manager, which makes the detector compute edges as well.
        self._values.append(float(self._peer._frame_score or 0.0))

    def finish(self) -> DetectedCuts:
        """Return the cuts, with the content values as the curve."""
        if self._times:
            last = self._scenedetect.FrameTimecode(len(self._times) - 1, _ANY_RATE)
            self._cuts += [code.frame_num for code in self._peer.post_process(last)]
        cuts = []
        for frame in sorted(set(self._cuts)):
            if 0 < frame < len(self._times):
                # Map the threshold to 0.5 and the largest possible content value to 1.
                share = (self._values[frame] - self._threshold) / max(_MAX_VALUE - self._threshold, 1e-9)
                cuts.append(DetectedCut(frame, confidence=0.5 + 0.5 * min(max(share, 0.0), 1.0)))
        return DetectedCuts(tuple(cuts), Curve(np.array(self._times), np.array(self._values), "content value"))


class ContentBaseline(_SceneDetectBaseline):
    """PySceneDetect's content detector.

    The content value of a frame is the mean absolute difference in hue (0 to 179), saturation and value (0 to 255)
    from the previous frame; frames with a content value of at least ``threshold`` are cuts. The cuts are the same as
    those of ``scenedetect.detect`` with the same settings.

    Args:
        threshold: Minimum content value at which a frame begins a new shot, above 0. Published comparisons use 30.
        min_scene_len: Cuts within this many frames are merged, as in PySceneDetect, whose default is 15. Set it to 1
            if shots are shorter than a second.

    Raises:
        MissingPartError: PySceneDetect is not installed.
    """

    def __init__(self, *, threshold: float = 30.0, min_scene_len: int = 15) -> None:
        check_positive(threshold=threshold)
        check_at_least(1, min_scene_len=min_scene_len)
        peer = import_scenedetect().ContentDetector(threshold=threshold, min_scene_len=min_scene_len)
        super().__init__("content", peer, threshold=threshold)


class AdaptiveBaseline(_SceneDetectBaseline):
    """PySceneDetect's adaptive detector.

    A frame is a cut if its content value is at least ``min_content_val`` and at least ``threshold`` times the mean over
    two frames on either side, which ignores the steady values of fast motion.

    Args:
        threshold: Ratio to the neighbors' mean, above 0; PySceneDetect's default is 3.
        min_scene_len: Minimum number of frames from one cut to the next; PySceneDetect's default is 15.
        min_content_val: Minimum content value of a cut; PySceneDetect's default is 15.

    Raises:
        MissingPartError: PySceneDetect is not installed.
    """

    def __init__(self, *, threshold: float = 3.0, min_scene_len: int = 15, min_content_val: float = 15.0) -> None:
        check_positive(threshold=threshold)
        check_at_least(1, min_scene_len=min_scene_len)
        peer = import_scenedetect().AdaptiveDetector(
            adaptive_threshold=threshold, min_scene_len=min_scene_len, min_content_val=min_content_val
        )
        super().__init__("adaptive", peer, threshold=min_content_val)
