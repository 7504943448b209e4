"""Train the DeepSBD network on segments of 16 frames from labeled videos, with the classes none, gradual and sharp."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.models import DeepSBDNetwork
from vidkin.training.engine import take_steps
from vidkin.training.processes import average_gradients, compute_in_shares, share_steps
from vidkin.training.runner import StepStore
from vidkin.training.schedules import OneCycle
from vidkin_research.detectors.deep_sbd_rules import CLASSES
from vidkin_research.learned.video_frames import VideoFrames

__all__ = ["LabeledFrames", "SegmentTraining", "segment_class", "segments_by_class", "train_on_segments"]

# A segment is gradual if it contains at least this many frames of a transition.
_MIN_GRADUAL = 4


@dataclass(frozen=True, slots=True, eq=False)
class LabeledFrames:
    """A video's frames as small images, with its cuts.

    Attributes:
        images: [T, S, S, 3] uint8, or frames that are decoded when sampled.
        hard: First frames of new shots.
        gradual: First and last frame of each gradual transition.
    """

    images: NDArray[np.uint8] | VideoFrames
    hard: tuple[int, ...]
    gradual: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentTraining:
    """Result of a training run.

    Attributes:
        losses: Cross entropy at every step.
        right: Fraction of segments classified correctly in the last tenth of the steps.
        seconds: Wall-clock time.
    """

    losses: tuple[float, ...] = field(repr=False)
    right: float
    seconds: float


def segment_class(first: int, frames: int, hard: Sequence[int], gradual: Sequence[tuple[int, int]]) -> int:
    """Return the class of the segment of ``frames`` frames that starts at ``first``, as an index into `CLASSES`.

    The class is ``sharp`` if a cut lies between two of its frames; ``gradual`` if it contains at least 4 frames of a
    transition, or all of a shorter one; ``none`` otherwise.
    """
    if any(first < cut < first + frames for cut in hard):
        return 2
    for start, end in gradual:
        shared = min(end + 1, first + frames) - max(start, first)
        if shared >= min(_MIN_GRADUAL, end - start + 1):
            return 1
    return 0


def train_on_segments(
    network: DeepSBDNetwork,
    videos: Sequence[LabeledFrames],
    *,
    steps: int = 300,
    batch: int = 24,
    learning_rate: float = 1e-3,
    weight_decay: float = 5e-4,
    seed: int = 0,
    store: StepStore | None = None,
    on_progress: Callable[[int, float], None] | None = None,
) -> SegmentTraining:
    """Train on class-balanced segments, half of them mirrored, with random brightness and contrast.

    Uses AdamW with a one-cycle learning rate and cross entropy. Deterministic for a seed on one machine, even after an
    interruption, because the segments of a step depend only on the seed and the step.

    Args:
        network: The network, trained in place and left in eval mode.
        videos: Videos with images of the network's size.
        steps: Number of optimizer steps.
        batch: Number of segments per step.
        learning_rate: Peak learning rate of the one-cycle schedule.
        weight_decay: Weight decay of AdamW.
        seed: Random seed for segment sampling and augmentation.
        store: Saves the state at intervals and resumes from the saved state; None saves nothing.
        on_progress: Callback that receives the step number (from 1) and the loss after each step.

    Raises:
        InvalidArgumentError: No segment has a cut or all of them do, the images have another size, or the saved state
            belongs to another training run.
    """
    frames, size = network.config.frames, network.config.size
    for number, video in enumerate(videos):
        shape = video.images[:1].shape
        if shape[1:] != (size, size, 3):
            raise InvalidArgumentError(
                f"images of video {number} must be [T, {size}, {size}, 3], got {[len(video.images), *shape[1:]]}"
            )
    starts = segments_by_class(videos, frames)
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    began = time.monotonic()
    store = store or StepStore()
    first = store.restore(network, optimizer)
    device = next(network.parameters()).device
    taken = take_steps(
        network,
        share_steps(_classify, seed, first),
        optimizer,
        _segments(videos, starts, frames, steps=range(first, steps), batch=batch, seed=seed, device=device),
        schedule=OneCycle(max(steps, 1) + 1),
        clip=5.0,
        first=first,
        on_gradients=average_gradients,
    )
    store.follow(
        taken,
        network,
        optimizer,
        on_step=None if on_progress is None else lambda step, terms: on_progress(step, terms["loss"]),
    )
    network.eval()
    network.class_names = CLASSES
    tail = [terms["right"] for terms in store.terms[-max(1, steps // 10) :]]
    losses = tuple(terms["loss"] for terms in store.terms)
    return SegmentTraining(losses, sum(tail) / max(1, len(tail)), time.monotonic() - began)


def segments_by_class(videos: Sequence[LabeledFrames], frames: int) -> list[list[tuple[int, int]]]:
    """Return (video, first frame) of all segments of ``frames`` frames, by class as in `CLASSES`.

    Raises:
        InvalidArgumentError: No segment has a cut, or all of them do.
    """
    starts: list[list[tuple[int, int]]] = [[] for _ in CLASSES]
    for number, video in enumerate(videos):
        for first in range(len(video.images) - frames + 1):
            starts[segment_class(first, frames, video.hard, video.gradual)].append((number, first))
    if not starts[0] or not any(starts[1:]):
        counts = ", ".join(f"{len(segments)} {name}" for name, segments in zip(CLASSES, starts, strict=True))
        raise InvalidArgumentError(
            f"videos must have segments of {frames} frames both with and without a cut, got {counts}; add videos"
        )
    return starts


def _segments(
    videos: Sequence[LabeledFrames],
    starts: list[list[tuple[int, int]]],
    frames: int,
    *,
    steps: range,
    batch: int,
    seed: int,
    device: torch.device,
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each step, yield class-balanced segments [batch, 3, frames, S, S] and their classes [batch] on the device."""
    present = np.array([label for label, segments in enumerate(starts) if segments])
    for step in steps:
        random = np.random.default_rng((seed, step))
        labels = present[random.integers(len(present), size=batch)]
        chosen = [starts[label][random.integers(len(starts[label]))] for label in labels]
        inputs = torch.stack([_segment(videos[video], first, frames, random) for video, first in chosen])
        yield inputs.to(device), torch.from_numpy(labels.astype(np.int64)).to(device)


def _classify(network: DeepSBDNetwork, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    segments, classes = batch
    logits = compute_in_shares(lambda rows: network(segments[rows]), len(segments))
    right = (logits.detach().argmax(dim=1) == classes).float().mean()
    return {"loss": nn.functional.cross_entropy(logits, classes), "right": right}


def _segment(video: LabeledFrames, first: int, frames: int, random: np.random.Generator) -> Tensor:
    """Return a randomly augmented segment [3, frames, S, S] in [0, 1]."""
    images = video.images[first : first + frames]
    if random.random() < 0.5:
        images = images[:, :, ::-1]
    inputs = torch.from_numpy(np.ascontiguousarray(images)).permute(3, 0, 1, 2).float() / 255
    gain, shift = random.uniform(0.8, 1.2), random.uniform(-0.08, 0.08)
    return (inputs * gain + shift).clamp(0, 1)
