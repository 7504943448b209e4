"""A verifier trained on three levels: calibration preserves its ranking, and the seed determines it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.match import NUMBERS
from vidkin_research.verifier.pairs import COPY, SCENE, STRANGER, Pairs
from vidkin_research.verifier.train import Loss, VerifierSettings, calibrate, train_verifier


def made_pairs(seed: int = 0, queries: int = 6, videos: int = 90) -> Pairs:
    """Two features separate the levels, with overlap; the others are noise."""
    random = np.random.default_rng(seed)
    levels = random.choice([STRANGER, SCENE, COPY], (queries, videos), p=[0.6, 0.2, 0.2]).astype(np.int8)
    numbers = random.standard_normal((queries, videos, len(NUMBERS))).astype(np.float32)
    numbers[..., 0] += 2.0 * levels
    numbers[..., 5] += 3.0 * (levels == COPY)
    return Pairs(numbers, np.ones_like(levels, np.bool_), levels, numbers[..., 0] / 8)


@pytest.mark.parametrize("loss", get_args(Loss))
def test_copies_get_higher_scores_than_all_other_pairs(loss: Loss) -> None:
    verifier, provenance = train_verifier(made_pairs(), VerifierSettings(loss=loss, steps=200))
    fresh = made_pairs(seed=1)
    scores = verifier.score_numbers(fresh.numbers)
    copies, others = scores[fresh.levels == COPY], scores[fresh.levels != COPY]
    assert (copies[:, None] > others).mean() > 0.97
    assert provenance["pairs"] == {
        name: int((made_pairs().levels == level).sum())
        for name, level in (("copies", COPY), ("same place", SCENE), ("strangers", STRANGER))
    }


def test_calibration_preserves_the_ranking_and_scores_strangers_below_a_fifth() -> None:
    pairs = made_pairs()
    verifier, _ = train_verifier(pairs, VerifierSettings(loss="logistic", steps=200))
    again = calibrate(verifier, pairs)
    first, second = (one.score_numbers(pairs.numbers).ravel() for one in (verifier, again))
    assert (np.diff(second[np.argsort(first, kind="stable")]) >= -1e-9).all()
    assert (verifier.score_numbers(pairs.numbers)[pairs.levels == STRANGER] <= 0.2 + 1e-6).mean() > 0.99


def test_same_seed_gives_the_same_verifier() -> None:
    settings = VerifierSettings(steps=30)
    (one, _), (other, _), (another, _) = (
        train_verifier(made_pairs(), each) for each in (settings, settings, VerifierSettings(steps=30, seed=1))
    )
    assert one.to_dict() == other.to_dict()
    assert one.to_dict() != another.to_dict()


def test_pairs_that_were_not_compared_have_no_effect() -> None:
    pairs = made_pairs()
    random = np.random.default_rng(5)
    compared = random.random(pairs.levels.shape) < 0.7
    settings = VerifierSettings(steps=30)
    noise = np.where(compared[..., None], pairs.numbers, 1e3).astype(np.float32)
    one, _ = train_verifier(replace(pairs, compared=compared), settings)
    other, _ = train_verifier(replace(pairs, compared=compared, numbers=noise), settings)
    assert one.to_dict() == other.to_dict()


def test_data_without_copies_is_rejected() -> None:
    pairs = made_pairs()
    with pytest.raises(InvalidArgumentError, match="pairs must include both copies and unrelated videos"):
        train_verifier(replace(pairs, levels=np.zeros_like(pairs.levels)), VerifierSettings())


def test_other_losses_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="loss must be one of"):
        VerifierSettings(loss="square")  # type: ignore[arg-type]
