"""A verifier evaluates its network, is stored as plain JSON, and refuses other files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.match import NUMBERS, Sequenced, Verifier, compare, read_verifier

COUNT, UNITS = len(NUMBERS), 3


def network(seed: int = 0) -> Verifier:
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    knots = np.array([[0, 0], [0.4, 0.2], [0.8, 0.7], [1, 1]], np.float32)
    return Verifier(draw(COUNT), abs(draw(COUNT)) + 1, draw(UNITS, COUNT), draw(UNITS), draw(UNITS), 0.25, knots)


def test_score_equals_the_network_evaluated_step_by_step() -> None:
    verifier = network()
    numbers = np.random.default_rng(1).standard_normal(COUNT).astype(np.float32)
    scaled = [
        (number - mean) / spread
        for number, mean, spread in zip(numbers, verifier.mean, verifier.deviation, strict=True)
    ]
    total = 0.25
    for unit in range(UNITS):
        inner = sum(float(weight) * float(value) for weight, value in zip(verifier.hidden[unit], scaled, strict=True))
        total += float(verifier.out[unit]) * math.tanh(inner + float(verifier.hidden_bias[unit]))
    raw = 1 / (1 + math.exp(-total / 4))
    low, high = ((0, 0), (0.4, 0.2)) if raw <= 0.4 else ((0.4, 0.2), (0.8, 0.7)) if raw <= 0.8 else ((0.8, 0.7), (1, 1))
    expected = low[1] + (raw - low[0]) * (high[1] - low[1]) / (high[0] - low[0])
    assert float(verifier.score_numbers(numbers)) == pytest.approx(expected, abs=1e-5)


def test_batch_of_comparisons_is_scored_like_each_alone() -> None:
    verifier = network()
    numbers = np.random.default_rng(2).standard_normal((4, 5, COUNT)).astype(np.float32)
    together = verifier.score_numbers(numbers)
    assert together.shape == (4, 5)
    assert ((together >= 0) & (together <= 1)).all()
    np.testing.assert_allclose(together[2, 3], verifier.score_numbers(numbers[2, 3]), atol=1e-6)


def test_features_far_outside_the_training_range_are_clipped() -> None:
    verifier = network()
    far = verifier.mean + 100 * verifier.deviation
    edge = verifier.score_numbers(verifier.mean + 6 * verifier.deviation)
    assert verifier.score_numbers(far) == pytest.approx(edge, abs=1e-4)


def test_verifier_round_trips_through_json(tmp_path: Path) -> None:
    verifier = network()
    (tmp_path / "verify.json").write_text(json.dumps({**verifier.to_dict(), "trained_on": "tests"}))
    numbers = np.random.default_rng(3).standard_normal((20, COUNT)).astype(np.float32)
    read = read_verifier(tmp_path / "verify.json")
    np.testing.assert_allclose(read.score_numbers(numbers), verifier.score_numbers(numbers), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"numbers": ["evidence"]}, "is not a verifier for the pair features of this version"),
        ({"mean": [0.0]}, rf"mean must be \[{COUNT}\] finite numbers"),
        ({"out": "abc"}, "is not a verifier"),
        ({"out_bias": None}, "is not a verifier"),
        ({"deviation": [0.0] * COUNT}, "positive deviations"),
        ({"knots": [[0, 0], [0.5, 0.7], [0.6, 0.2], [1, 1]]}, "knots must be 2 to 64 nondecreasing pairs"),
        ({"knots": [[0, 0], [0.5, 0.7]]}, r"knots must end at \(1, 1\)"),
        ({"hidden": [[float("1e400")] * COUNT] * UNITS}, "is not a verifier|finite"),
    ],
)
def test_file_that_is_not_a_verifier_is_refused(tmp_path: Path, change: dict[str, object], words: str) -> None:
    (tmp_path / "verify.json").write_text(json.dumps({**network().to_dict(), **change}))
    with pytest.raises(InvalidArgumentError, match=words):
        read_verifier(tmp_path / "verify.json")


def test_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "verify.json").write_bytes(b"\x00\xff")
    with pytest.raises(InvalidArgumentError, match="is not a verifier"):
        read_verifier(tmp_path / "verify.json")


def footage(seed: int, frames: int, start: int = 0) -> Sequenced:
    """Vectors of frames that change smoothly."""
    random = np.random.default_rng(seed)
    steps = random.standard_normal((frames + start + 20, 64))
    smooth = np.stack([steps[at : at + 4].mean(axis=0) for at in range(start, start + frames)])
    vectors = (smooth / np.linalg.norm(smooth, axis=1, keepdims=True)).astype(np.float32)
    ones = np.ones(frames, np.float32)
    return Sequenced(vectors, np.arange(frames) / 2, 0 * ones, ones)


def test_comparison_measures_the_matching_segment() -> None:
    whole, part = footage(1, 60), footage(1, 20, start=16)
    measured = compare(part, whole)
    numbers = dict(zip(NUMBERS, measured.numbers.tolist(), strict=True))
    assert measured.lines[0].offset == pytest.approx(8.0, abs=0.01)
    assert numbers["query coverage"] == 1.0
    assert numbers["target coverage"] == pytest.approx(20 / 60)
    assert numbers["excess"] == pytest.approx(1.0, abs=1e-5)
    assert numbers["speed"] == 0.0
    assert numbers["changes agree"] == pytest.approx(1.0, abs=1e-3)
    assert numbers["seconds"] == pytest.approx(math.log(10.0))


def test_every_kind_of_evidence_is_lower_for_unrelated_videos() -> None:
    query = footage(1, 20)
    copy, stranger = (
        dict(zip(NUMBERS, compare(query, other).numbers.tolist(), strict=True))
        for other in (footage(1, 60), footage(2, 60))
    )
    for name in ("evidence", "excess", "best mean", "sharpness"):
        assert copy[name] > stranger[name]


def test_frames_without_information_are_not_evidence() -> None:
    one = footage(1, 20)
    black = Sequenced(one.vectors, one.times, one.levels, np.zeros(20, np.float32))
    assert compare(black, black).lines == ()


def test_evidence_does_not_depend_on_other_videos_in_the_batch() -> None:
    query, target = footage(1, 20), footage(1, 60)
    first = compare(query, target).numbers
    compare(query, footage(3, 60))
    np.testing.assert_array_equal(first, compare(query, target).numbers)
