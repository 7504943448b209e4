"""Synthetic footage with known matches: films composed of segments of random walks in embedding space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.match import NUMBERS, Sequenced, Verifier, levels

DIMENSION = 48


def walk(seed: int, times: NDArray[np.float64], *, dimension: int = DIMENSION) -> NDArray[np.float32]:
    """Unit vectors of one recording at these times, [T, D]; half of each vector changes from second to second."""
    random = np.random.default_rng(seed)
    place = random.standard_normal(dimension)
    nodes = random.standard_normal((int(times.max()) + 3, dimension))
    first = times.astype(np.intp)
    share = (times - first)[:, None]
    vectors = 0.7 * place + (1 - share) * nodes[first] + share * nodes[first + 1]
    return unit(vectors)


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def cohort(dimension: int = DIMENSION) -> NDArray[np.float32]:
    return unit(np.random.default_rng(99).standard_normal((200, dimension)))


def film(
    *stretches: tuple[int, float, float, float], rate: float = 2.0, noise: float = 0.3, shift: float = 0.0
) -> Sequenced:
    """Compose a film of segments, each given as (recording, start, duration, speed).

    Args:
        stretches: The segments in order; with a negative speed, a segment plays backward from its start.
        rate: Frames per second.
        noise: Length of the random change of each vector, like an edit.
        shift: Delay of the sampled times in the first segment in seconds, less than a frame.
    """
    parts = []
    for number, (seed, start, seconds, speed) in enumerate(stretches):
        moments = np.arange(0, seconds, 1 / rate) + (shift if number == 0 else 0.0)
        parts.append(walk(seed, start + speed * moments))
    vectors = np.concatenate(parts)
    random = np.random.default_rng(len(vectors))
    changed = unit(vectors + noise / np.sqrt(DIMENSION) * random.standard_normal(vectors.shape))
    return sequenced(changed, np.arange(len(changed)) / rate)


def sequenced(vectors: NDArray[np.float32], times: NDArray[np.float64]) -> Sequenced:
    """Make informative frames whose levels are measured on the cohort."""
    return Sequenced(vectors, times, levels(vectors, cohort()), np.ones(len(vectors), np.float32))


def verifier() -> Verifier:
    """A network that maps the mean similarity along the best line to a score: 0.2 to 0.05, 0.5 to 0.5, 0.8 to 0.95."""
    hidden = np.zeros((1, len(NUMBERS)), np.float32)
    hidden[0, NUMBERS.index("excess")] = 4.0
    zeros, ones = np.zeros(len(NUMBERS), np.float32), np.ones(len(NUMBERS), np.float32)
    knots = np.array([[0, 0], [1, 1]], np.float32)
    return Verifier(zeros, ones, hidden, np.array([-2.0], np.float32), np.array([14.0], np.float32), 0.0, knots)
