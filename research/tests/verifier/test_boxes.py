"""Composed videos match their boxes, and a network trained on a few of them finds boxes of others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import pan
from vidkin.features import BOX_NUMBERS, BoxNetwork, find_box_candidates
from vidkin_research.verifier.boxes import COMPOSED, compose, find_known, measure_boxes, train_boxes

NAMES = ("coffee", "chelsea", "astronaut", "rocket")


@pytest.fixture(scope="module")
def clips() -> list[NDArray[np.uint8]]:
    return [np.stack(list(pan(name, 48, width=120, height=90, seed=7))[::4]) for name in NAMES]


def test_composed_boxes_are_inside_the_frame(clips: list[NDArray[np.uint8]]) -> None:
    random, kinds = np.random.default_rng(1), set()
    for _ in range(60):
        kind, frames, boxes = compose(random, clips)
        kinds.add(kind)
        assert frames.dtype == np.uint8
        assert len(frames) >= 2
        assert bool(boxes) == (kind not in ("plain", "still picture"))
        assert all(0 <= left < right <= 1 and 0 <= top < bottom <= 1 for left, top, right, bottom in boxes)
    assert kinds == set(COMPOSED)


def test_network_trained_on_few_videos_finds_boxes_of_others(clips: list[NDArray[np.uint8]]) -> None:
    document = train_boxes(clips[:2], videos=60)
    assert document["numbers"] == list(BOX_NUMBERS)
    network = BoxNetwork.from_dict(document)
    figures = measure_boxes(clips[2:], videos=40, find=lambda frames: network.choose(find_box_candidates(frames), 0.25))
    shares = [row["of those there"] for row in figures.values() if "of those there" in row]
    assert np.mean(shares) >= 0.4
    assert figures["plain"]["boxes found"] <= 2.5


def test_box_counts_as_found_if_nearly_equal_to_a_prediction() -> None:
    found = np.array([[0.0, 0.0, 0.5, 1.0]], np.float32)
    assert find_known(found, [(0.0, 0.0, 0.45, 1.0), (0.5, 0.0, 1.0, 1.0)]) == 1
