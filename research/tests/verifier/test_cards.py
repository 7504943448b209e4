"""Videos that only share a title card are unrelated."""

from __future__ import annotations

import numpy as np

from vidkin.features import frame_information
from vidkin_research.verifier.cards import draw_card


def test_cards_differ_and_have_little_content() -> None:
    random = np.random.default_rng(3)
    cards = np.stack([draw_card(random) for _ in range(20)])
    assert len(np.unique(cards.reshape(20, -1), axis=0)) == 20
    assert float(np.median(frame_information(cards))) < 0.4


def test_same_seed_gives_the_same_card() -> None:
    first, second = (draw_card(np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
