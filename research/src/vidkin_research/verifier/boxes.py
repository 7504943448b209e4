"""Train the network that recognizes boxes with an embedded video or image, on composed videos with known boxes.

``python -m vidkin_research.verifier.boxes --data DATA --output FILE`` writes it as JSON.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageFilter

from vidkin._base.files import write_text
from vidkin.features import BOX_NUMBERS, BoxNetwork, find_box_candidates, find_content_boxes, overlap
from vidkin.media import read_frames
from vidkin.media.layouts import homographies, split_parts
from vidkin.media.picture_edits import resize
from vidkin.rendering.machine import describe_machine
from vidkin_research.frame_encoder.drawn import draw_page
from vidkin_research.verifier.material import find_material

__all__ = ["COMPOSED", "compose", "find_known", "measure_boxes", "train_boxes"]

logger = logging.getLogger(__name__)

Frames = NDArray[np.uint8]
Random = np.random.Generator
Box = tuple[float, float, float, float]

COMPOSED = {
    "plain": 0.24,
    "still picture": 0.06,
    "inset": 0.13,
    "inset in a still": 0.06,
    "two side by side": 0.11,
    "three side by side": 0.05,
    "four": 0.04,
    "blurred borders": 0.08,
    "borders of one color": 0.06,
    "page": 0.06,
    "still page": 0.08,
    "screen in a still": 0.03,
}
"""Kinds of composed videos, with their probabilities."""
# Frames per second to read.
_RATE = 4.0
# Steps to sample from: every frame, every second or every fourth frame is used.
_STEPS = (1, 2, 2, 4, 4)
# Maximum number of seconds to read from a recording.
_SECONDS = 12.0
# Maximum number of frames of a composed video.
_MAX_FRAMES = 24
_SHORT_SIDE = 176
# Minimum overlap with a true box for a positive candidate, maximum overlap for a negative candidate, and minimum
# overlap for a true box to count as found.
_IS_BOX, _IS_NONE, _IS_FOUND = 0.86, 0.6, 0.7
_UNITS, _TRAINING_STEPS, _BATCH, _LEARNING_RATE = 16, 600, 8192, 1e-2
# One in this many recordings is held out for evaluation.
_FOLD = 4


def compose(random: Random, clips: Sequence[Frames]) -> tuple[str, Frames, list[Box]]:
    """Compose a video; return its kind, its frames [T, H, W, 3], and the boxes that contain a video or an image.

    Args:
        random: Random generator.
        clips: Frames [T, H, W, 3] of videos, at `_RATE` per second.
    """
    kind = str(random.choice(list(COMPOSED), p=list(COMPOSED.values())))
    own = _sample_frames(random, clips)[:_MAX_FRAMES]
    if len(own) < 2 or (kind.startswith("still") and random.random() < 0.6):
        own = np.repeat(own[:1], 2, axis=0)
    count = len(own)

    def another() -> Frames:
        frames = _sample_frames(random, clips)
        return np.concatenate([frames] * -(-count // len(frames)))[:count].copy()

    ground = another()
    height, width = ground.shape[1:3]
    boxes: list[Box] = []
    if kind == "plain":
        ground = own.copy()
    elif kind == "still picture":
        ground = np.repeat(own[:1], count, axis=0)
    elif kind.startswith("inset"):
        share = random.uniform(0.28, 0.85)
        wide, tall = int(width * share), int(height * share)
        if random.random() < 0.4:  # keep the aspect ratio
            wide = min(width, int(tall * own.shape[2] / own.shape[1]))
        left, top = int(random.integers(width - wide + 1)), int(random.integers(height - tall + 1))
        left = int(random.choice((0, width - wide))) if random.random() < 0.4 else left
        ground = np.repeat(ground[:1], count, axis=0) if kind == "inset in a still" else ground
        boxes = [_paste(ground, own, (left, top, left + wide, top + tall))]
    elif kind == "four" or kind.endswith("side by side"):
        columns = {"two side by side": 2, "three side by side": 3, "four": 2}[kind]
        rows = 2 if kind == "four" else 1
        if kind != "four" and random.random() < 0.4:
            columns, rows = 1, columns
        parts = split_parts((width // columns, height // rows), (width, height), columns, rows)
        if kind == "two side by side" and random.random() < 0.4:
            share = random.uniform(0.35, 0.65)
            middle = int(share * (height if rows > 1 else width))
            parts = [(0, 0, width, middle), (0, middle, width, height)]
            if rows == 1:
                parts = [(0, 0, middle, height), (middle, 0, width, height)]
        boxes = [_paste(ground, own if not number else another(), part) for number, part in enumerate(parts)]
    elif kind in ("blurred borders", "borders of one color"):
        share = random.uniform(0.4, 0.78)
        wide, tall = (int(width * share), height) if random.random() < 0.5 else (width, int(height * share))
        if random.random() < 0.25:
            wide, tall = int(width * share), int(height * random.uniform(0.5, 0.9))
        left, top = (width - wide) // 2, (height - tall) // 2
        if random.random() < 0.25:
            left, top = int(random.integers(width - wide + 1)), int(random.integers(height - tall + 1))
        if kind == "blurred borders":
            radius = random.uniform(3, 14)
            ground = np.stack([_blur(image, width, height, radius) for image in own])
        else:
            color = random.integers(0, 256, 3) if random.random() < 0.6 else np.zeros(3)
            ground[:] = color.astype(np.uint8)
        boxes = [_paste(ground, own, (left, top, left + wide, top + tall))]
    elif kind == "screen in a still":
        ground = np.repeat(ground[:1], count, axis=0)
        boxes = [_tilt(ground, own, random)]
    else:
        size = (width, height) if random.random() < 0.5 else (_SHORT_SIDE, 300)
        ground = np.repeat(resize(draw_page(random), *size)[None], count, axis=0)
        wide = int(size[0] * random.uniform(0.22, 0.9))
        tall = min(int(wide * own.shape[1] / own.shape[2]), size[1] - 2)
        left, top = int(random.integers(size[0] - wide + 1)), int(random.integers(size[1] - tall + 1))
        shown = np.repeat(own[:1], count, axis=0) if kind == "still page" else own
        boxes = [_paste(ground, shown, (left, top, left + wide, top + tall))]
    light = random.uniform(0.5, 1.1) if random.random() < 0.5 else 1.0
    noise = random.uniform(0, 5)
    is_still = kind in ("still picture", "still page") and random.random() < 0.5
    drawn = random.normal(0, noise, ground[:1].shape if is_still else ground.shape)
    return kind, np.clip(ground * light + drawn, 0, 255).astype(np.uint8), boxes


def _sample_frames(random: Random, clips: Sequence[Frames]) -> Frames:
    """Sample a clip, and return its frames at one of several rates."""
    step = int(random.choice(_STEPS))
    frames = clips[int(random.integers(len(clips)))]
    chosen = frames[int(random.integers(step)) :: step]
    return chosen if len(chosen) else frames


def _paste(ground: Frames, frames: Frames, part: tuple[int, int, int, int]) -> Box:
    """Paste frames over a part of other frames; return the part as fractions of the frame size."""
    left, top, right, bottom = part
    for target, image in zip(ground, frames, strict=True):
        target[top:bottom, left:right] = resize(image, right - left, bottom - top)
    height, width = ground.shape[1:3]
    return left / width, top / height, right / width, bottom / height


def _tilt(ground: Frames, frames: Frames, random: Random) -> Box:
    """Paste frames over others in perspective; return the bounding box as fractions of the frame size."""
    height, width = ground.shape[1:3]
    share = random.uniform(0.35, 0.8, 2)
    left, top = random.uniform(0, 1 - share) * (width, height)
    right, bottom = left + share[0] * width, top + share[1] * height
    corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
    corners += random.uniform(0, 0.22, (4, 2)) * share * (width, height) * ((1, 1), (-1, 1), (-1, -1), (1, -1))
    tall, wide = frames.shape[1:3]
    matrix = homographies(corners[None], np.array([[(0, 0), (wide, 0), (wide, tall), (0, tall)]], np.float64))
    coefficients = tuple(float(value) for value in matrix.ravel()[:8])
    perspective, bilinear = PILImage.Transform.PERSPECTIVE, PILImage.Resampling.BILINEAR
    mask = PILImage.new("L", (wide, tall), 255).transform((width, height), perspective, coefficients)
    for target, image in zip(ground, frames, strict=True):
        seen = PILImage.fromarray(image).transform((width, height), perspective, coefficients, resample=bilinear)
        target[:] = np.asarray(PILImage.composite(seen, PILImage.fromarray(target), mask))
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    return float(left / width), float(top / height), float(right / width), float(bottom / height)


def _blur(image: Frames, width: int, height: int, radius: float) -> Frames:
    picture = PILImage.fromarray(resize(image, width, height))
    return np.asarray(picture.filter(ImageFilter.GaussianBlur(radius)))


def train_boxes(clips: Sequence[Frames], *, videos: int, seed: int = 0) -> dict[str, Any]:
    """Train the network to classify the candidates of composed videos, and return it as JSON values.

    Each video is weighted by the square root of its number of candidates.

    Args:
        clips: Frames of videos, see `compose`.
        videos: Number of composed videos.
        seed: Random seed for the videos and the training.
    """
    random = np.random.default_rng([58, seed])
    numbers, truth, weights = [], [], []
    for _ in range(videos):
        _, frames, boxes = compose(random, clips)
        candidates = find_box_candidates(frames)
        best = np.array(
            [max((overlap(tuple(one), box) for box in boxes), default=0.0) for one in candidates.boxes.tolist()]
        )
        known = (best >= _IS_BOX) | (best < _IS_NONE)
        numbers.append(candidates.numbers[known])
        truth.append(best[known] >= _IS_BOX)
        weights.append(np.full(int(known.sum()), 1 / np.sqrt(max(1, known.sum()))))
    inputs, wanted, weight = (np.concatenate(each).astype(np.float32) for each in (numbers, truth, weights))
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0) + np.float32(1e-6)
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(len(BOX_NUMBERS), _UNITS), torch.nn.Tanh(), torch.nn.Linear(_UNITS, 1)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=_LEARNING_RATE, weight_decay=1e-3)
    x, y, w = torch.from_numpy((inputs - mean) / deviation), torch.from_numpy(wanted), torch.from_numpy(weight)
    for step in range(_TRAINING_STEPS):
        optimizer.param_groups[0]["lr"] = _LEARNING_RATE * (1 - step / _TRAINING_STEPS) + 1e-4
        rows = torch.randint(len(x), (_BATCH,), generator=generator)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(network(x[rows])[:, 0], y[rows], reduction="none")
        loss = (losses * w[rows]).sum() / w[rows].sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    first, last = network[0], network[2]
    assert isinstance(first, torch.nn.Linear)
    assert isinstance(last, torch.nn.Linear)

    def to_list(values: torch.Tensor | NDArray[np.float32]) -> Any:
        return np.round(np.asarray(values.detach() if isinstance(values, torch.Tensor) else values), 5).tolist()

    return {
        "numbers": list(BOX_NUMBERS),
        "mean": to_list(mean),
        "deviation": [float(f"{value:.6g}") for value in deviation],
        "hidden": to_list(first.weight),
        "hidden_bias": to_list(first.bias),
        "out": to_list(last.weight[0]),
        "out_bias": round(float(last.bias[0].detach()), 5),
        "trained": {"videos": videos, "candidates": len(inputs), "seed": seed, "loss": round(float(loss.detach()), 4)},
    }


def measure_boxes(
    clips: Sequence[Frames], *, videos: int, find: Callable[[Frames], NDArray[np.float32]] = find_content_boxes
) -> dict[str, dict[str, float]]:
    """Measure, for each kind of composed video, the number of boxes found and the recall of true boxes.

    Args:
        clips: Frames of videos, see `compose`.
        videos: Number of composed videos.
        find: Function that finds boxes [N, 4] in frames.
    """
    random = np.random.default_rng([58, 1000])
    rows: dict[str, list[tuple[int, int, int]]] = {}
    for _ in range(videos):
        kind, frames, boxes = compose(random, clips)
        found = find(frames)
        rows.setdefault(kind, []).append((find_known(found, boxes), len(boxes), len(found)))
    figures = {}
    for kind in COMPOSED:
        sums = np.sum(rows.get(kind, [(0, 0, 0)]), axis=0)
        figures[kind] = {"boxes found": round(float(sums[2]) / max(1, len(rows.get(kind, []))), 2)}
        if sums[1]:
            figures[kind]["of those there"] = round(float(sums[0] / sums[1]), 3)
    return figures


def find_known(found: NDArray[np.float32], boxes: Sequence[Box]) -> int:
    """Count the true boxes that were found with an overlap of at least 0.7."""
    return sum(any(overlap(tuple(one), box) >= _IS_FOUND for one in found.tolist()) for box in boxes)


def main() -> None:
    """Read the training clips, train on three quarters of their scenes, evaluate on the rest, and write the result."""
    parser = argparse.ArgumentParser(prog="python -m vidkin_research.verifier.boxes", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the measurement data")
    parser.add_argument("--videos", type=int, default=4000)
    parser.add_argument("--output", type=Path, required=True, help="path of the JSON file to write")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    sources, others = find_material(given.data, "training")
    recordings = [*sources, *others]
    held = set(sorted({recording.scene for recording in recordings})[::_FOLD])
    clips: dict[bool, list[Frames]] = {False: [], True: []}
    for recording in recordings:
        frames = read_frames(recording.path, rate=_RATE, short_side=_SHORT_SIDE, end=_SECONDS, threads=1)
        clips[recording.scene in held].append(frames.images)
    document = train_boxes(clips[False], videos=given.videos)
    document["trained"] |= {"scenes": len(clips[False]), "machine": describe_machine()}
    network = BoxNetwork.from_dict(document)
    document["measured"] = measure_boxes(
        clips[True], videos=given.videos // 4, find=lambda frames: network.choose(find_box_candidates(frames), 0.12)
    )
    write_text(given.output, json.dumps(document) + "\n")
    logger.info("%s", json.dumps(document["measured"], indent=1))


if __name__ == "__main__":
    main()
