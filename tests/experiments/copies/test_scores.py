"""Figures of copy retrieval, on numbers that can be checked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.experiments.copies import (
    CopyMaterial,
    GalleryVideo,
    QueryClip,
    SearchScores,
    localization_errors,
    relevance_of,
    summarize_copies,
)
from vidkin.experiments.copies.scores import summarize_search
from vidkin.similarity import Segment

FIRST = QueryClip("a", "a", "room", 0.0, 10.0, Path("a-0.mp4"))
SECOND = QueryClip("a", "a", "room", 10.0, 20.0, Path("a-1.mp4"))
GALLERY = (
    GalleryVideo(Path("a-0.crop.mp4"), "a", "room", "crop", FIRST, (2.0, 8.0, 0.0, 6.0)),
    GalleryVideo(Path("a-1.crop.mp4"), "a", "room", "crop", SECOND, (10.0, 20.0, 0.0, 10.0)),
    GalleryVideo(Path("a-0.mirror.mp4"), "a", "room", "mirror", FIRST, (0.0, 10.0, 0.0, 10.0)),
    GalleryVideo(Path("a2.mp4"), "a", "room", "real copy"),
    GalleryVideo(Path("room.mp4"), "b", "room", "distractor"),
    GalleryVideo(Path("other.mp4"), "c", "other", "distractor"),
)
MATERIAL = CopyMaterial((FIRST, SECOND), GALLERY)
TRUTH = np.array([[1, -1, 1, 1, 0, 0], [-1, 1, -1, 1, 0, 0]])
SCORES = np.array([[0.9, 0.8, 0.0, 0.7, 0.6, 0.1], [0.0, 0.9, 0.0, 0.8, 0.1, 0.2]])


def segment(start: float, end: float) -> Segment:
    return Segment(0.0, 1.0, start, end, score=0.5, speed=1.0, mirrored=False)


def test_relevance_is_what_shares_time_with_the_query() -> None:
    assert relevance_of(MATERIAL).tolist() == TRUTH.tolist()


def test_protocols_differ_in_other_moments_of_the_recording() -> None:
    figures = summarize_copies(SCORES, TRUTH, MATERIAL)
    # Without mirrored copies: the first query ranks 1, -1, 1, 0, 0 and the second 1, 1, 0, 0, -1.
    assert figures["strict"]["mAP"] == pytest.approx(((1 + 2 / 3) / 2 + 1) / 2)
    assert figures["neutral"]["mAP"] == pytest.approx(1.0)
    assert set(figures["edits"]) == {"crop", "mirror", "real copy"}
    # The first query has its mirrored copy behind both distractors.
    assert figures["edits"]["mirror"]["mAP"] == pytest.approx(1 / 3)
    # Two pairs of another scene, .1 and .2: the quantile interpolates.
    assert figures["unrelated_99th"] == pytest.approx(0.199)
    # Copies score .7, .8, .9 and .9.
    assert figures["copies_quantiles"]["0.5"] == pytest.approx(0.85)


def test_errors_are_of_the_best_segment_of_each_copy() -> None:
    segments = [
        [(segment(0.5, 5.0), segment(0.0, 6.0)), (), (segment(9.0, 9.0),), (), (), ()],
        [(), (), (), (), (), ()],
    ]
    found = SearchScores(SCORES, segments, 3.0, 0.2, 1.0, 0.99)
    errors = localization_errors(found, MATERIAL)
    # One copy is .5 s off at its start and 1 s at its end, the other is not found: 30 s.
    assert errors == {
        "start_median": pytest.approx(15.25),
        "end_median": pytest.approx(15.5),
        "start_90th": pytest.approx(27.05),
        "end_90th": pytest.approx(27.1),
        "missed": 1,
        "pairs": 2,
    }
    figures = summarize_search(found, TRUTH, MATERIAL)
    assert figures["localisation"] == errors
    assert (figures["index_seconds"], figures["search_seconds_median"]) == (3.0, 0.2)
    assert (figures["recall_at_100"], figures["identical_min"]) == (1.0, 0.99)
