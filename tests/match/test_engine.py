"""The shortlist finds the videos that share footage, and the engine says which they are, where, and in which pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.match.footage import cohort, film, unit, verifier, walk
from vidkin.errors import InvalidArgumentError
from vidkin.match import Engine, Gallery, MatchQuery, Pose, Sequenced, View, sequence, shortlist


def collection(count: int = 24) -> list[Sequenced]:
    """Unrelated recordings, of which number 7 holds 20 seconds of recording 1 from its second 30 on."""
    videos = [film((seed, 0, 40, 1)) for seed in range(100, 100 + count)]
    videos[7] = film((50, 0, 25, 1), (1, 30, 20, 1), (51, 0, 10, 1))
    return videos


def test_the_video_that_shares_footage_has_the_most_votes() -> None:
    candidates = shortlist(Gallery(collection()), film((1, 33, 8, 1)), 5)
    assert candidates[0].position == 7
    assert candidates[0].votes > 5 * max([each.votes for each in candidates[1:]], default=0.0)


def test_a_large_collection_is_searched_by_faiss_with_the_same_answer() -> None:
    query = film((1, 33, 8, 1))
    videos = collection(60)
    exact, approximate = (shortlist(Gallery(videos, max_product=limit), query, 1)[0] for limit in (10**6, 100))
    assert approximate.position == exact.position == 7
    assert approximate.votes == pytest.approx(exact.votes, rel=0.01)


def test_the_engine_reports_where_a_clip_is_shown() -> None:
    edge = next(Engine(verifier()).match([MatchQuery(film((1, 33, 8, 1)))], Gallery(collection())))
    assert (edge.a, edge.b, edge.pose) == (0, 7, Pose())
    assert edge.score > 0.7
    (segment, *_) = edge.segments
    assert (segment.query_start, segment.query_end) == pytest.approx((0, 8), abs=0.5)
    assert (segment.target_start, segment.target_end) == pytest.approx((28, 36), abs=0.5)
    assert segment.speed == 1.0


def test_every_query_gets_edges_of_its_own_best_first() -> None:
    videos = [*collection(), film((1, 33, 8, 1), noise=0.1)]
    queries = [MatchQuery(film((1, 33, 8, 1))), MatchQuery(film((77, 0, 8, 1))), MatchQuery(film((105, 3, 8, 1)))]
    edges = list(Engine(verifier()).match(queries, Gallery(videos)))
    sure = [(edge.a, edge.b) for edge in edges if edge.score > 0.7]
    assert sorted(sure[:2]) == [(0, 7), (0, 24)]
    assert sure[2:] == [(2, 5)]
    for number in range(3):
        scores = [edge.score for edge in edges if edge.a == number]
        assert scores == sorted(scores, reverse=True)


def test_a_mirrored_copy_is_found_in_its_pose_when_the_file_may_be_read_again() -> None:
    mirrored = film((2, 33, 8, 1))
    reads: list[int] = []

    def reread() -> Sequence[View]:
        reads.append(1)
        return [View(Pose(flip=True), film((1, 33, 8, 1)))]

    query, gallery, engine = MatchQuery(mirrored, reread=reread), Gallery(collection()), Engine(verifier())
    assert not [edge for edge in engine.match([query], gallery) if edge.score > 0.2]
    assert reads == []
    (edge,) = [edge for edge in engine.match([query], gallery, effort="reread") if edge.score > 0.2]
    assert (edge.b, edge.pose, edge.segments[0].pose) == (7, Pose(flip=True), Pose(flip=True))
    assert reads == [1]


def test_scores_do_not_depend_on_what_else_is_in_the_collection() -> None:
    query, copy = MatchQuery(film((1, 33, 8, 1))), film((1, 33, 8, 1), noise=1.0)
    likes = [film((1, 60 + number, 8, 1), noise=1.0) for number in range(30)]
    alone, among = (
        {edge.b: edge.score for edge in Engine(verifier()).match([query], Gallery([copy, *others]))}[0]
        for others in ([], likes)
    )
    assert alone == among


def test_footage_that_is_shown_in_a_part_of_the_frames_is_found_there() -> None:
    box = (0.5, 0.5, 0.9, 0.9)
    inset = replace(film((1, 33, 8, 1)), box=box)
    videos = [*collection(), film((60, 0, 8, 1)), inset]
    gallery = Gallery(videos, [*range(25), 24])
    queries = [MatchQuery(film((1, 33, 8, 1))), MatchQuery(film((61, 0, 8, 1)), parts=[inset])]
    found = [edge for edge in Engine(verifier()).match(queries, gallery) if edge.score > 0.7]
    boxes = {(edge.a, edge.b): (edge.segments[0].query_box, edge.segments[0].target_box) for edge in found}
    assert boxes[0, 24] == ((0, 0, 1, 1), box)
    assert boxes[1, 7] == (box, (0, 0, 1, 1))
    assert boxes[1, 24] == (box, box)


@pytest.mark.parametrize("dimension", [16, 100])
def test_vectors_may_have_any_dimension(dimension: int) -> None:
    times = np.arange(16) / 2
    videos = [sequence(walk(seed, times, dimension=dimension), times, cohort(dimension)) for seed in range(20)]
    edges = Engine(verifier()).match([MatchQuery(videos[3])], Gallery(videos))
    assert next(edges).b == 3


def test_half_precision_vectors_give_the_same_edges() -> None:
    query, videos = MatchQuery(film((1, 33, 8, 1))), collection()
    halves = [Sequenced(each.vectors.astype(np.float16), each.times, each.levels, each.information) for each in videos]
    first, second = (next(Engine(verifier()).match([query], Gallery(each))) for each in (videos, halves))
    assert first.b == second.b
    assert first.score == pytest.approx(second.score, abs=1e-2)


def test_empty_videos_match_nothing() -> None:
    empty = sequence(np.zeros((0, 48), np.float32), [], cohort())
    gallery = Gallery([empty, *collection()])
    assert list(Engine(verifier()).match([MatchQuery(empty)], gallery)) == []
    assert next(Engine(verifier()).match([MatchQuery(film((1, 33, 8, 1)))], gallery)).b == 8


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one video with frames"):
        Gallery([])
    other = sequence(unit(np.ones((4, 16))), np.arange(4) / 2, cohort(16))
    with pytest.raises(InvalidArgumentError, match=r"one dimension, got \[16, 48\]"):
        Gallery([film((1, 0, 2, 1)), other])
    with pytest.raises(InvalidArgumentError, match="cohort must have at least one vector"):
        sequence(unit(np.ones((4, 16))), np.arange(4) / 2, np.zeros((0, 16), np.float32))
    with pytest.raises(InvalidArgumentError, match="a number for each of 1 sequences, got 2"):
        Gallery([film((1, 0, 2, 1))], [0, 1])
    with pytest.raises(InvalidArgumentError, match="candidates must be at least 1"):
        Engine(verifier(), candidates=0)
    with pytest.raises(InvalidArgumentError, match="effort must be one of"):
        next(Engine(verifier()).match([], Gallery(collection()), effort="all"))  # type: ignore[arg-type]
