"""Training data for the shot metric: frame features, and clips from labeled shots."""

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

# Shapes: B tuples, W frames per window, F features per frame.

_QUADLET = ("query", "positive", "intermediate", "negative")
_TRIPLET = ("query", "positive", "negative")


@dataclass(frozen=True, slots=True)
class ShotBatch:
    """Tuples of one training step: frame features [..., F], or images [..., S, S, 3] uint8.

    Attributes:
        quadlets: [4, B, W, ...] query, positive, intermediate, negative; None if there are none.
        triplets: [3, B, W, ...] query, positive, negative; None if there are none.
    """

    quadlets: Tensor | None
    triplets: Tensor | None

    def to(self, device: torch.device) -> ShotBatch:
        """Move the tuples to a device."""
        quadlets, triplets = (None if each is None else each.to(device) for each in (self.quadlets, self.triplets))
        return ShotBatch(quadlets, triplets)


class ShotClips:
    """Samples tuples of clips from videos with labeled shots, given as frame features or images.

    Every clip of a tuple is ``window`` consecutive frames at a random position.

    As in the sources, critical shots provide quadlets (query and positive from their calm frames, intermediate from
    their critical frames, negative from the next shot), and all other shots provide triplets (query and positive from
    the shot, negative from the next one).

    Args:
        features: Frame features [T, F] of each video; or its frames, if the frame network is also trained.
        annotations: Labels of each video, in the same order.
        window: W, number of frames per clip.
        minimum: Minimum number of frames to sample a clip from; with fewer than W, the first frame is repeated as
            padding. Default: W.

    Raises:
        InvalidArgumentError: The number of videos differs, or a shot ends after the end of its video.
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
        """Sample the tuples of a training step, with replacement.

        Args:
            quadlets: Number of quadlets from critical shots.
            triplets: Number of triplets.
            generator: Random generator; its state advances.
            critical_triplets: Whether to sample triplets from all shots as if none were critical, for a loss that uses
                only triplets.

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
        """Stack the K parts of B tuples, [K, B, W, ...]; short windows are padded by repeating their first frame."""
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
    """Convert labels to a subset of the video's frames; shots without any of these frames are dropped.

    Args:
        annotation: The labels.
        numbers: [T] increasing frame numbers of the subset.
        fps: Frame rate of these frames.
    """

    def to_row(frame: int) -> int:
        return int(np.searchsorted(numbers, frame))

    shots = []
    for shot in annotation.shots:
        start, end = to_row(shot.start), to_row(shot.end)
        if start == end:
            continue
        critical = None
        if shot.critical is not None and to_row(shot.critical[0]) < to_row(shot.critical[1]):
            critical = to_row(shot.critical[0]), to_row(shot.critical[1])
        shots.append(ShotAnnotation(start, end, critical))
    return replace(annotation, fps=fps, shots=tuple(shots))


# A clip encoder on NumPy arrays: from images to frame features, and from these to clip embeddings.


class ShotNetwork:
    """Adapts a torch clip encoder to the learned detector (`vidkin_research.learned.detector.ShotModel`).

    Args:
        model: The clip encoder, in eval mode; it is not copied, so later training takes effect.
    """

    def __init__(self, model: ClipEncoder) -> None:
        self._model = model

    def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute features [N, F] of square images [N, 3, S, S] with values from 0 to 1."""
        with torch.inference_mode():
            inputs = torch.from_numpy(images).to(self._model.device)
            features: NDArray[np.float32] = self._model.frame_features(inputs).float().cpu().numpy()
        return features

    def head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute unit vectors [B, D] from clip features [B, W, F]."""
        with torch.inference_mode():
            inputs = torch.from_numpy(features).to(self._model.device)
            embeddings: NDArray[np.float32] = self._model.head(inputs).float().cpu().numpy()
        return embeddings


def encode_with(model: ClipEncoder) -> Encode:
    """Return the model's head as a function of NumPy arrays, from clip features [B, W, F] to embeddings [B, D]."""
    return ShotNetwork(model).head


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """Features of the frames of a video that a detector reads.

    Attributes:
        rows: [T, F] float32 features.
        numbers: [T] int64 numbers of these frames in the video.
        times: [T] float64 times in seconds.
        frames: Total number of frames in the video.
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
    """Compute the frame features of a video, for fitting rules.

    Args:
        model: The clip encoder, in eval mode.
        path: The video.
        size: S, side of the model's square input images.
        fit: How frames are made square, see `fit_to_square`.
        rate: Maximum frames per second, see `iter_squares`; None uses all frames.

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
