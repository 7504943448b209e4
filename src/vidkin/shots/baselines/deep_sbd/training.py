"""Training of the DeepSBD network: segments of 16 frames from labelled videos, classes none, gradual, sharp."""

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
from vidkin.models.engine import read_terms, take_steps
from vidkin.models.schedules import OneCycle

__all__ = ["SEGMENT_CLASSES", "LabelledFrames", "SegmentTraining", "segment_class", "train_on_segments"]

SEGMENT_CLASSES = ("none", "gradual", "sharp")
"""Order of the network's outputs."""

# A segment shows a transition when it holds so many of its frames.
_LEAST_GRADUAL = 4


@dataclass(frozen=True, slots=True, eq=False)
class LabelledFrames:
    """Small pictures of all frames of a video, with its cuts.

    Attributes:
        images: [T, S, S, 3] uint8.
        hard: First frames of new shots.
        gradual: First and last frames of gradual transitions.
    """

    images: NDArray[np.uint8]
    hard: tuple[int, ...]
    gradual: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentTraining:
    """What happened.

    Attributes:
        losses: Cross entropy of every step.
        right: Share of the segments of the last tenth of the steps that were classified right.
        seconds: It took.
    """

    losses: tuple[float, ...] = field(repr=False)
    right: float
    seconds: float


def segment_class(first: int, frames: int, hard: Sequence[int], gradual: Sequence[tuple[int, int]]) -> int:
    """Class of the segment of ``frames`` frames from ``first``, as a place in `SEGMENT_CLASSES`.

    ``sharp`` where a cut lies between two of its frames; ``gradual`` where it shares 4 or more frames (or all, of
    shorter ones) with a transition; ``none`` otherwise.
    """
    if any(first < cut < first + frames for cut in hard):
        return 2
    for start, end in gradual:
        shared = min(end + 1, first + frames) - max(start, first)
        if shared >= min(_LEAST_GRADUAL, end - start + 1):
            return 1
    return 0


def train_on_segments(
    network: DeepSBDNetwork,
    videos: Sequence[LabelledFrames],
    *,
    steps: int = 300,
    batch: int = 24,
    learning_rate: float = 1e-3,
    weight_decay: float = 5e-4,
    seed: int = 0,
    on_progress: Callable[[int, float], None] | None = None,
) -> SegmentTraining:
    """Train on segments drawn evenly from the classes, mirrored at even chance, in changing light.

    AdamW with one cycle of the learning rate, cross entropy. Deterministic under the seed on one machine.

    Args:
        network: Trained in place, left in eval mode.
        videos: Their pictures are of the network's size.
        steps: Of the optimiser.
        batch: Segments a step.
        learning_rate: At its highest.
        weight_decay: Of AdamW.
        seed: Of the drawing.
        on_progress: Called after each step with its number (from 1) and the loss.

    Raises:
        InvalidArgumentError: No segment of some class can be drawn, or pictures have another size.
    """
    frames, size = network.config.frames, network.config.size
    for number, video in enumerate(videos):
        if video.images.shape[1:] != (size, size, 3):
            raise InvalidArgumentError(
                f"video {number} has pictures {list(video.images.shape[1:])}, the network takes [{size}, {size}, 3]"
            )
    places = _places(videos, frames)
    lacking = [SEGMENT_CLASSES[label] for label, found in enumerate(places) if not found]
    if lacking:
        raise InvalidArgumentError(
            f"no segment of {frames} frames is of class {', '.join(lacking)}; add videos"
        )
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    losses, right = [], []
    began = time.monotonic()
    for step in take_steps(
        network,
        _classify,
        optimizer,
        _segments(videos, places, frames, steps=steps, batch=batch, seed=seed),
        schedule=OneCycle(max(steps, 1) + 1),
        clip=5.0,
    ):
        (terms,) = read_terms([step])
        losses.append(terms["loss"])
        right.append(terms["right"])
        if on_progress is not None:
            on_progress(step.number, losses[-1])
    network.eval()
    network.class_names = SEGMENT_CLASSES
    tail = right[-max(1, steps // 10) :]
    return SegmentTraining(tuple(losses), sum(tail) / max(1, len(tail)), time.monotonic() - began)


def _places(videos: Sequence[LabelledFrames], frames: int) -> list[list[tuple[int, int]]]:
    """(video, first frame) of all segments, by class."""
    found: list[list[tuple[int, int]]] = [[] for _ in SEGMENT_CLASSES]
    for number, video in enumerate(videos):
        for first in range(len(video.images) - frames + 1):
            found[segment_class(first, frames, video.hard, video.gradual)].append((number, first))
    return found


def _segments(
    videos: Sequence[LabelledFrames],
    places: list[list[tuple[int, int]]],
    frames: int,
    *,
    steps: int,
    batch: int,
    seed: int,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Segments [batch, 3, frames, S, S] and their classes [batch] for each step, drawn evenly from the classes."""
    random = np.random.default_rng(seed)
    for _ in range(steps):
        labels = random.integers(len(SEGMENT_CLASSES), size=batch)
        chosen = [places[label][random.integers(len(places[label]))] for label in labels]
        inputs = torch.stack([_segment(videos[video], first, frames, random) for video, first in chosen])
        yield inputs, torch.from_numpy(labels.astype(np.int64))


def _classify(network: DeepSBDNetwork, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    segments, classes = batch
    logits = network(segments)
    right = (logits.detach().argmax(dim=1) == classes).float().mean()
    return {"loss": nn.functional.cross_entropy(logits, classes), "right": right}


def _segment(video: LabelledFrames, first: int, frames: int, random: np.random.Generator) -> Tensor:
    """[3, frames, S, S] from 0 to 1."""
    images = video.images[first : first + frames]
    if random.random() < 0.5:
        images = images[:, :, ::-1]
    pictures = torch.from_numpy(np.ascontiguousarray(images)).permute(3, 0, 1, 2).float() / 255
    gain, shift = random.uniform(0.8, 1.2), random.uniform(-0.08, 0.08)
    return (pictures * gain + shift).clamp(0, 1)
