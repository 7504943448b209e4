"""Training data of the metric for shots: features of frames, and clips from labeled shots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidkin._base.files import PathLike
from vidkin.errors import InvalidArgumentError
from vidkin.models import ClipEncoder
from vidkin.shots import ShotAnnotation, VideoAnnotation
from vidkin_research.learned.clip_tuples import (
    AnnotatedShot,
    ClipQuadlet,
    ClipTriplet,
    ClipWindow,
    sample_critical_quadlets,
    sample_shot_triplets,
)
from vidkin_research.learned.detector import network_input
from vidkin_research.learned.video_frames import VideoFrames, iter_squares
from vidkin_research.learned.windows import Encode

if TYPE_CHECKING:
    from vidkin.media.frames import Fit

# B tuples, W frames per window, F length of a frame's features.

_QUADLET = ("query", "positive", "intermediate", "negative")
_TRIPLET = ("query", "positive", "negative")


@dataclass(frozen=True, slots=True)
class ShotBatch:
    """Tuples of one training step: features of frames [..., F], or images [..., S, S, 3] uint8.

    Attributes:
        quadlets: [4, B, W, ...] query, positive, intermediate, negative; None if none were drawn.
        triplets: [3, B, W, ...] query, positive, negative; None if none were drawn.
    """

    quadlets: Tensor | None
    triplets: Tensor | None

    def to(self, device: torch.device) -> ShotBatch:
        """The same tuples on a device."""
        quadlets, triplets = (None if each is None else each.to(device) for each in (self.quadlets, self.triplets))
        return ShotBatch(quadlets, triplets)


class ShotClips:
    """Videos as features or images of their frames with their labeled shots, from which tuples are drawn.

    Every clip of a tuple is ``window`` consecutive frames at a random position of its stretch.

    Critical shots give quadlets (query and positive from their calm frames, intermediate from their critical frames,
    negative from the next shot), all other shots triplets (query and positive from the shot, negative from the next),
    as in the sources.

    Args:
        features: Features [T, F] of each video, one row per frame; or its frames, if the frame network is trained as
            well.
        annotations: The labels of each video, in the same order.
        window: W, number of frames per clip.
        minimum: Minimum length of a stretch in frames; a stretch shorter than W is padded by repeating its first
            frame. Default: W.

    Raises:
        InvalidArgumentError: The numbers of videos differ, or a shot ends after its video.
    """

    def __init__(
        self,
        features: Sequence[Tensor | VideoFrames],
        annotations: Sequence[VideoAnnotation],
        *,
        window: int,
        minimum: int | None = None,
    ) -> None:
        if len(features) != len(annotations) or not features:
            raise InvalidArgumentError(
                f"annotations must have one entry per video and at least one, got {len(annotations)} for "
                f"{len(features)} videos"
            )
        for rows, annotation in zip(features, annotations, strict=True):
            check_labels_fit(annotation, len(rows))
        self.window = window
        self.minimum = minimum
        self._features = list(features)
        self._labeled = [
            AnnotatedShot(number, shot.start, shot.end, shot.critical)
            for number, annotation in enumerate(annotations)
            for shot in annotation.shots
        ]
        self._plain = [replace(shot, critical=None) for shot in self._labeled]

    @property
    def has_critical(self) -> bool:
        """Whether any shot is labeled critical."""
        return any(shot.critical is not None for shot in self._labeled)

    @property
    def has_images(self) -> bool:
        """Whether clips are images of frames rather than features."""
        return isinstance(self._features[0], VideoFrames)

    def draw(
        self, *, quadlets: int, triplets: int, generator: torch.Generator, critical_triplets: bool = False
    ) -> ShotBatch:
        """Tuples of a training step, drawn with replacement.

        Args:
            quadlets: Number of quadlets from critical shots.
            triplets: Number of triplets.
            generator: Source of random numbers; its state advances.
            critical_triplets: Draw triplets from all shots as if none were critical, for a loss that uses only
                triplets.

        Raises:
            InvalidArgumentError: No shot can provide such a tuple; the message says why.
        """
        window, minimum = self.window, self.minimum
        batch = ShotBatch(None, None)
        if quadlets:
            fours = sample_critical_quadlets(
                self._labeled, quadlets, seed=generator, clip_frames=window, minimum_frames=minimum
            )
            batch = replace(batch, quadlets=self._stack(fours, _QUADLET))
        if triplets:
            shots = self._plain if critical_triplets else self._labeled
            threes = sample_shot_triplets(shots, triplets, seed=generator, clip_frames=window, minimum_frames=minimum)
            batch = replace(batch, triplets=self._stack(threes, _TRIPLET))
        return batch

    def _stack(self, drawn: Sequence[ClipQuadlet] | Sequence[ClipTriplet], parts: Sequence[str]) -> Tensor:
        """Stack the K parts of B tuples, [K, B, W, ...]; short windows repeat their first frame in front."""
        clips = []
        for part in parts:
            for one in drawn:
                window: ClipWindow = getattr(one, part)
                features = self._features[window.video][window.start : window.end]
                rows = features if isinstance(features, Tensor) else torch.from_numpy(features)
                missing = self.window - len(rows)
                filling = rows[:1].expand(missing, *rows.shape[1:])
                clips.append(torch.cat([filling, rows]) if missing else rows)
        return torch.stack(clips).view(len(parts), len(drawn), *clips[0].shape)


def check_labels_fit(annotation: VideoAnnotation, frames: int) -> None:
    """Raise InvalidArgumentError if a labeled shot ends after the last frame of its video."""
    end = annotation.shots[-1].end if annotation.shots else 0
    if end > frames:
        raise InvalidArgumentError(
            f"{annotation.video}: a labeled shot ends at frame {end}, but the video has {frames} frames"
        )


def count_in(annotation: VideoAnnotation, numbers: NDArray[np.int64], *, fps: float) -> VideoAnnotation:
    """Convert labels to a subset of the video's frames; shots without such a frame are left out.

    Args:
        annotation: The labels.
        numbers: [T] numbers of these frames, increasing.
        fps: Frame rate of these frames.
    """

    def place(frame: int) -> int:
        return int(np.searchsorted(numbers, frame))

    shots = []
    for shot in annotation.shots:
        start, end = place(shot.start), place(shot.end)
        if start == end:
            continue
        critical = None
        if shot.critical is not None and place(shot.critical[0]) < place(shot.critical[1]):
            critical = place(shot.critical[0]), place(shot.critical[1])
        shots.append(ShotAnnotation(start, end, critical))
    return replace(annotation, fps=fps, shots=tuple(shots))


# Run a clip encoder on NumPy arrays, from images to features of frames and embeddings of clips.


class ShotNetwork:
    """Adapts a clip encoder of torch to the learned detector (`vidkin_research.learned.detector.ShotModel`).

    Args:
        model: The clip encoder, in eval mode; later training takes effect.
    """

    def __init__(self, model: ClipEncoder) -> None:
        self._model = model

    def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features [N, F] of square images [N, 3, S, S] from 0 to 1."""
        with torch.inference_mode():
            inputs = torch.from_numpy(images).to(self._model.device)
            features: NDArray[np.float32] = self._model.frame_features(inputs).float().cpu().numpy()
        return features

    def head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Unit vectors [B, D] of clips of features [B, W, F]."""
        with torch.inference_mode():
            inputs = torch.from_numpy(features).to(self._model.device)
            embeddings: NDArray[np.float32] = self._model.head(inputs).float().cpu().numpy()
        return embeddings


def encode_with(model: ClipEncoder) -> Encode:
    """Return the model's head as a function of arrays, from clips of features [B, W, F] to embeddings [B, D]."""
    return ShotNetwork(model).head


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """Features of the frames of a video that a detector examines.

    Attributes:
        rows: [T, F] float32 features.
        numbers: [T] int64, numbers of these frames in the video.
        times: [T] float64 times in seconds.
        frames: Number of all frames of the video.
    """

    rows: NDArray[np.float32]
    numbers: NDArray[np.int64]
    times: NDArray[np.float64]
    frames: int


def video_features(
    model: ClipEncoder,
    path: PathLike,
    *,
    size: int,
    fit: Fit = "stretch",
    rate: float | None = None,
) -> VideoFeatures:
    """Compute features of the frames of a video, for fitting rules.

    Args:
        model: The clip encoder, in eval mode.
        path: The video.
        size: S, side of the square images the model takes.
        fit: How frames are made square, see `fit_to_square`.
        rate: Maximum frames per second, see `iter_squares`; None: all frames.

    Raises:
        MediaError: The file cannot be read as video.
    """
    network = ShotNetwork(model)
    rows, numbers, times = [], [], []
    frames = 0
    for squares in iter_squares(path, size=size, fit=fit, rate=rate):
        rows.append(network.frame_features(network_input(squares.images)))
        numbers.append(squares.numbers)
        times.append(squares.times)
        frames = squares.read
    return VideoFeatures(np.concatenate(rows), np.concatenate(numbers), np.concatenate(times), frames)
