"""Metrics of copy retrieval, on values that can be computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from vidkin_research.copies.edits import EditedSegment
from vidkin_research.copies.figures import CopyFigures, _precision, relevance_of, summarize_copies
from vidkin_research.copies.material import CopyMaterial, GalleryVideo
from vidkin_research.copies.recordings import QueryClip, Recording
from vidkin_research.copies.scores import PairScores

RECORDING = Recording(Path("a.mp4"), "a", "room", 20.0)
FIRST = QueryClip("a-0", Path("a-0.mp4"), RECORDING, 0.0, 10.0)
SECOND = QueryClip("a-1", Path("a-1.mp4"), RECORDING, 10.0, 20.0)
WHOLE = (EditedSegment(0.0, 10.0, 0.0, 10.0),)
GALLERY = (
    GalleryVideo(Path("a-0.crop.mp4"), "a", "room", "crop", FIRST, WHOLE),
    GalleryVideo(Path("a-1.crop.mp4"), "a", "room", "crop", SECOND, WHOLE),
    GalleryVideo(Path("a-0.grey.mp4"), "a", "room", "grey", FIRST, WHOLE),
    GalleryVideo(Path("a2.mp4"), "a", "room", "real copy"),
    GalleryVideo(Path("room.mp4"), "b", "room", "distractor"),
    GalleryVideo(Path("other.mp4"), "c", "other", "distractor"),
)
MATERIAL = CopyMaterial((FIRST, SECOND), GALLERY)
TRUTH = [[1, -1, 1, 1, 0, 0], [-1, 1, -1, 1, 0, 0]]
SCORES = np.array([[0.9, 0.8, 0.05, 0.7, 0.6, 0.1], [0.0, 0.9, 0.0, 0.8, 0.1, 0.2]])


@pytest.fixture(scope="module")
def figures() -> CopyFigures:
    return summarize_copies("mine", PairScores(SCORES), MATERIAL)


def test_copies_of_the_query_or_its_recording_are_relevant() -> None:
    assert relevance_of(MATERIAL).tolist() == TRUTH


def test_protocols_differ_in_other_moments_of_the_recording(figures: CopyFigures) -> None:
    # The first query ranks 1, -1, 1, 0, 0, 1 and the second 1, 1, 0, 0, -1, -1.
    everything = figures.everything
    assert everything.strict.map == pytest.approx(((1 + 2 / 3 + 3 / 6) / 3 + 1) / 2)
    assert everything.neutral.map == pytest.approx(((1 + 1 + 3 / 5) / 3 + 1) / 2)
    # All pairs in one list: .9 1, .9 1, .8 -1, .8 1, .7 1, .6 0, .2 0, .1 0, .1 0, .05 1.
    assert everything.neutral.micro_ap == pytest.approx((4 + 5 / 9) / 5)
    assert (everything.copies, everything.reported) == (5, 4)
    assert (everything.lowest, everything.median) == (0.05, 0.8)


def test_families_and_edits_are_ranked_among_all_irrelevant_videos(figures: CopyFigures) -> None:
    assert [(group.name, group.family) for group in figures.families] == [
        ("pixels", "pixels"),
        ("geometry", "geometry"),
    ]
    assert [(group.name, group.family, group.copies) for group in figures.edits] == [
        ("crop", "geometry", 2),
        ("grey", "pixels", 1),
        ("real copy", None, 2),
    ]
    pixels, geometry = figures.families
    assert geometry.strict.map == 1.0
    # Ranked below the other moment and both distractors; the second query has no copy of this kind.
    assert pixels.strict.map == pytest.approx(1 / 4)
    assert pixels.neutral.map == pytest.approx(1 / 3)
    assert (pixels.reported, geometry.reported) == (0, 2)


def test_unrelated_pairs_are_counted_by_kind(figures: CopyFigures) -> None:
    others, room, moments = figures.unrelated
    assert (others.which, others.pairs, others.highest, others.above) == ("other scenes", 2, 0.2, 1)
    assert others.highest_pair == ("a-1", "other.mp4")
    assert (room.which, room.pairs, room.highest, room.above) == ("same scene", 2, 0.6, 1)
    assert (moments.which, moments.pairs, moments.highest, moments.above) == ("other moments", 3, 0.8, 1)
    stricter = summarize_copies("mine", PairScores(SCORES), MATERIAL, threshold=0.7)
    assert [item.above for item in stricter.unrelated] == [0, 0, 1]
    assert stricter.everything.reported == 4


def test_system_without_stages_has_no_recall_times_and_costs(figures: CopyFigures) -> None:
    assert figures.costs is None
    assert figures.everything.recall is None
    assert figures.everything.times is None


def test_recall_counts_copies_with_a_score() -> None:
    kept = np.ones((2, 6), dtype=np.bool_)
    kept[0, 2] = kept[1, 1] = False
    figures = summarize_copies("mine", PairScores(SCORES, kept=kept), MATERIAL)
    assert figures.everything.recall == pytest.approx(3 / 5)
    assert [group.recall for group in figures.edits] == [0.5, 0.0, 1.0]


def test_average_precision_equals_that_of_the_metrics_module() -> None:
    import torch

    from vidkin.metric.measures import mean_average_precision, micro_average_precision

    draw = np.random.default_rng(0)
    for _ in range(20):
        scores = draw.integers(0, 6, size=(5, 12)) / 5  # many ties
        truth = draw.integers(-1, 2, size=(5, 12))
        valid = draw.random((5, 12)) < 0.8
        tensors = torch.from_numpy(scores), torch.from_numpy((truth > 0).astype(float))
        figures = _precision(scores, truth, valid)
        assert figures.map == pytest.approx(mean_average_precision(*tensors, valid=torch.from_numpy(valid)))
        assert figures.micro_ap == pytest.approx(micro_average_precision(*tensors, valid=torch.from_numpy(valid)))


def test_average_precision_of_an_empty_list_is_undefined() -> None:
    figures = _precision(np.zeros((2, 3)), np.zeros((2, 3), dtype=np.int64), np.ones((2, 3), dtype=bool))
    assert math.isnan(figures.map)
    assert math.isnan(figures.micro_ap)
