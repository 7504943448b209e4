"""The learned detector: a trained clip encoder behind the interface of shot detectors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.media import iter_frames
from vidkin.shots.contract import DetectedCut, DetectedCuts, RgbFrame
from vidkin.shots.learned.rules import FoundShots, ShotRules, find_shots
from vidkin.shots.learned.slope import Encode
from vidkin.shots.shot import Curve

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LearnedDetector", "ShotModel", "head_of", "open_learned", "video_features"]

PathLike = str | os.PathLike[str]
Fit = Literal["letterbox", "crop", "stretch"]

_BATCH = 16


class ShotModel(Protocol):
    """What the detector needs of a clip encoder (`models.ClipEncoder`)."""

    def frame_features(self, frames: Tensor) -> Tensor:
        """Frames [N, 3, S, S] in 0..1 to features [N, F]."""

    def head(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Features of clips [B, T, F] to unit vectors [B, D]."""


class LearnedDetector:
    """Cuts where the slope of c(n) = ||f_1 - f_n|| changes suddenly, shots critical where c increases.

    f_n is the embedding of window n, f_1 that of the first window of the shot. Frames go through the frame network
    once each, as they come; windows of their features are embedded in batches at the end. Memory is that of the
    features: about 5 KB a frame.

    Args:
        model: In eval mode.
        rules: Fitted for this model.
        size: S, side of the square pictures that the model takes.
        fit: How frames become square: ``stretch`` squeezes them, ``crop`` cuts the middle out, ``letterbox`` puts them
            between black bars. As the rules were fitted.
        name: As `open_detector` takes it.

    Source: Radial loss for learning fine-grained video similarity metric, section Testing.
    """

    def __init__(
        self,
        model: ShotModel,
        rules: ShotRules,
        *,
        size: int,
        fit: Fit = "stretch",
        name: str = "learned",
    ) -> None:
        if size < 8:
            raise InvalidArgumentError(f"size is {size} pixels, allowed is 8 or more")
        self.name = name
        self.short_side: int | None = size
        self._model, self._rules, self._size, self._fit = model, rules, size, fit
        self._waiting: list[NDArray[np.uint8]] = []
        self._features: list[NDArray[np.float32]] = []
        self._frames: list[int] = []
        self._times: list[float] = []

    def push(self, frame: RgbFrame) -> None:
        """Take the next frame; with a rate in the rules most are passed over."""
        rate = self._rules.rate
        if rate is not None and frame.time + 1e-6 < len(self._frames) / rate:
            return
        self._frames.append(frame.index)
        self._times.append(frame.time)
        self._waiting.append(squared(frame.image, self._size, self._fit))
        if len(self._waiting) == _BATCH:
            self._encode_waiting()

    def finish(self) -> DetectedCuts:
        """Cuts, the curve and a critical score a shot, if the rules have one."""
        if not self._frames:
            return DetectedCuts(())
        self._encode_waiting()
        found = find_shots(np.concatenate(self._features), head_of(self._model), self._rules)
        curve = Curve(np.array(self._times), found.curve, "distance to the first window of the shot")
        cuts, critical = as_cuts(found, self._frames)
        return DetectedCuts(cuts, curve, critical)

    def _encode_waiting(self) -> None:
        if self._waiting:
            self._features.append(frame_features(self._model, np.stack(self._waiting)))
            self._waiting.clear()


def open_learned(model: PathLike) -> LearnedDetector:
    """The detector of a model's folder that holds rules (``shots.json``).

    Raises:
        InvalidArgumentError: The folder holds no rules, or no clip encoder.
        UnknownExtractorError: There is no model.
    """
    from vidkin.models import ClipEncoder, load_model

    network = load_model(model)
    if not isinstance(network, ClipEncoder):
        raise InvalidArgumentError(
            f"{os.fspath(model)} holds a network of kind {network.config.kind!r}; shots need one of kind 'clip'"
        )
    return LearnedDetector(
        network,
        ShotRules.load(model),
        size=network.config.size,
        fit=network.config.fit,
        name=f"learned:{os.fspath(model)}",
    )


def video_features(
    model: ShotModel, path: PathLike, *, size: int, fit: Fit = "stretch"
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Features [T, F] of all frames of a video and their times [T]: what rules are fitted on.

    Raises:
        MediaError: The file cannot be read as video.
    """
    parts, times = [], []
    for batch in iter_frames(path, rate=None, short_side=size, batch=_BATCH):
        parts.append(frame_features(model, np.stack([squared(image, size, fit) for image in batch.images])))
        times.append(batch.timestamps)
    return np.concatenate(parts), np.concatenate(times)


def frame_features(model: ShotModel, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features [N, F] of square pictures [N, S, S, 3] uint8."""
    import torch

    with torch.inference_mode():
        pictures = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        features: NDArray[np.float32] = model.frame_features(pictures).float().cpu().numpy()
    return features


def head_of(model: ShotModel) -> Encode:
    """The model's head as a function of arrays."""
    import torch

    def encode(clips: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            embeddings: NDArray[np.float32] = model.head(torch.from_numpy(clips)).float().cpu().numpy()
        return embeddings

    return encode


def squared(image: NDArray[np.uint8], size: int, fit: Fit = "stretch") -> NDArray[np.uint8]:
    """A picture [H, W, 3] as [size, size, 3]."""
    from PIL import Image

    height, width = image.shape[:2]
    if (height, width) == (size, size):
        return image
    picture = Image.fromarray(image)
    if fit == "stretch":
        return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR))
    if fit == "crop":
        side = min(height, width)
        box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
        return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR, box=box))
    scale = size / max(height, width)
    inner = picture.resize(
        (max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BILINEAR
    )
    whole = Image.new("RGB", (size, size))
    whole.paste(inner, ((size - inner.width) // 2, (size - inner.height) // 2))
    return np.asarray(whole)


def as_cuts(found: FoundShots, frames: list[int]) -> tuple[tuple[DetectedCut, ...], tuple[float, ...] | None]:
    """Cuts with the video's own frame numbers, and one critical score a shot between them."""
    cuts = [DetectedCut(frames[frame], "hard", confidence) for frame, confidence in found.cuts]
    cuts += [
        DetectedCut(
            max(1, frames[(item.first + item.last) // 2]),
            "gradual",
            item.confidence,
            frames[item.first],
            frames[item.last],
        )
        for item in found.gradual
    ]
    order = sorted(range(len(cuts)), key=lambda place: cuts[place].frame)
    return tuple(cuts[place] for place in order), found.critical
