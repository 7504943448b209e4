"""Opening scorers by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.match.footage import verifier
from tests.support.arrays import unit
from vidkin.errors import InvalidArgumentError
from vidkin.match import KindScorer, VerifiedScorer, available_scorers, finds_segments, open_scorer, scorer_of
from vidkin.similarity import SCORE_REVISION, FrameFeatures, Scorer, fingerprint_of_scores


class Named:
    def __init__(self, scorer: str) -> None:
        self.scorer = scorer


def test_scorers_are_opened_by_name() -> None:
    assert available_scorers() == ("copies", "kinds", "learned")
    assert isinstance(open_scorer("copies"), VerifiedScorer)
    assert isinstance(open_scorer("kinds"), KindScorer)
    assert isinstance(scorer_of(Named("kinds")), KindScorer)


def test_scorer_of_copies_has_segments_and_scorer_of_kinds_has_not() -> None:
    copies, kinds = open_scorer("copies"), open_scorer("kinds")
    assert (copies.has_segments, copies.needs_background) == (True, True)
    assert (kinds.has_segments, kinds.needs_background) == (False, False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("twins", r"scorer must be one of copies, kinds, learned, got 'twins'"),
        ("learned", r"scorer 'learned' is part of a trained comparator; open the comparator's folder as an ext"),
        ("copies?speed=2", r"scorer must be one of copies, kinds, learned, got 'copies\?speed=2'"),
    ],
)
def test_unknown_scorer_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        open_scorer(name)


@pytest.mark.parametrize(
    ("name", "has_segments"),
    [("copies", True), ("kinds", False), ("learned", True)],
)
def test_segments_are_known_from_the_name(name: str, has_segments: bool) -> None:
    assert finds_segments(name) is has_segments


def test_unknown_name_raises_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="scorer must be one of copies, kinds, learned, got 'film'"):
        finds_segments("film")


# Expected scores by revision. A change of scores needs a new revision, or stored duplicates would be stale. A retrained
# verifier needs none, because it is part of the scorer's repr.
SCORES = {11: {"copies": (1.0, 0.81182, 0.48284, 0.92835), "kinds": (1.0, 0.74103, 0.72288, 0.9112)}}


@pytest.mark.parametrize("scorer", [VerifiedScorer(verifier()), KindScorer()], ids=lambda scorer: scorer.name)
def test_changed_scores_have_a_new_revision(scorer: Scorer) -> None:
    draw = np.random.default_rng(28)
    frames = draw.standard_normal((40, 1, 1, 16))

    def video(rows: slice, noise: float) -> FrameFeatures:
        values = frames[rows] + noise * draw.standard_normal(frames[rows].shape)
        times = np.arange(float(len(values)))
        return FrameFeatures(
            unit(values),
            times,
            np.ones(len(values), np.float32),
            "f",
            baseline=np.full((len(values), 1), 0.3, np.float32),
        )

    query = video(slice(0, 20), 0.0)
    targets = [query, video(slice(16, 40), 1.0), video(slice(20, 40), 0.0), video(slice(4, 20), 0.7)]
    scores = [pair.score for pair in scorer.score(query, targets)]
    assert scores == pytest.approx(SCORES[SCORE_REVISION][scorer.name], abs=1e-3)


def test_score_fingerprint_covers_revision_features_and_verifier_weights() -> None:
    scorer = VerifiedScorer(verifier())
    assert fingerprint_of_scores("features-1", scorer) == f"({SCORE_REVISION}, 'features-1', {scorer!r})"
    again, other = VerifiedScorer(verifier()), VerifiedScorer(replace(verifier(), out_bias=0.1))
    assert fingerprint_of_scores("features-1", again) == fingerprint_of_scores("features-1", scorer)
    assert fingerprint_of_scores("features-1", other) != fingerprint_of_scores("features-1", scorer)
