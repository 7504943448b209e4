"""From a name to a scorer."""

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


def test_names_open_scorers() -> None:
    assert available_scorers() == ("copies", "kinds", "learned")
    assert isinstance(open_scorer("copies"), VerifiedScorer)
    assert isinstance(open_scorer("kinds"), KindScorer)
    assert isinstance(scorer_of(Named("kinds")), KindScorer)


def test_copies_have_segments_and_kinds_have_not() -> None:
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
def test_foreign_host_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        open_scorer(name)


@pytest.mark.parametrize(
    ("name", "has_segments"),
    [("copies", True), ("kinds", False), ("learned", True)],
)
def test_a_name_says_whether_there_are_segments(name: str, has_segments: bool) -> None:
    assert finds_segments(name) is has_segments


def test_an_unknown_name_has_no_segments_to_speak_of() -> None:
    with pytest.raises(InvalidArgumentError, match="scorer must be one of copies, kinds, learned, got 'film'"):
        finds_segments("film")


# Scores of the pairs below by each revision. Other scores need another revision, or stored duplicates would be stale.
# A verifier that was trained anew needs none: it is part of the text of its scorer.
SCORES = {11: {"copies": (1.0, 0.81182, 0.48284, 0.92835), "kinds": (1.0, 0.74103, 0.72288, 0.9112)}}


@pytest.mark.parametrize("scorer", [VerifiedScorer(verifier()), KindScorer()], ids=lambda scorer: scorer.name)
def test_other_scores_have_another_revision(scorer: Scorer) -> None:
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


def test_the_fingerprint_of_scores_has_revision_features_and_the_weights_of_the_verifier() -> None:
    scorer = VerifiedScorer(verifier())
    assert fingerprint_of_scores("features-1", scorer) == f"({SCORE_REVISION}, 'features-1', {scorer!r})"
    again, other = VerifiedScorer(verifier()), VerifiedScorer(replace(verifier(), out_bias=0.1))
    assert fingerprint_of_scores("features-1", again) == fingerprint_of_scores("features-1", scorer)
    assert fingerprint_of_scores("features-1", other) != fingerprint_of_scores("features-1", scorer)
