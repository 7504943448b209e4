"""Seeding and restoring the global random number generators."""

from __future__ import annotations

import random

import numpy as np
import torch

from vidkin.models import random_state, restore_random_state, seeded


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_seeded_gives_the_same_numbers_and_restores_the_state() -> None:
    tensors, values = random_state()
    expected = draw()
    restore_random_state(tensors, values)
    with seeded(5):
        first = draw()
    with seeded(5):
        assert draw() == first
    with seeded(6):
        assert draw() != first
    assert draw() == expected


def test_seeded_restores_the_state_after_an_error() -> None:
    tensors, values = random_state()
    expected = draw()
    restore_random_state(tensors, values)
    try:
        with seeded(1):
            draw()
            raise ValueError
    except ValueError:
        pass
    assert draw() == expected
