"""Pairs have the relation of their videos, and features if the videos were compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.match.footage import film
from vidkin.match import NUMBERS, Sequenced
from vidkin_research.copies.material import CopyMaterial, GalleryVideo
from vidkin_research.copies.recordings import QueryClip, Recording
from vidkin_research.verifier.pairs import (
    COPY,
    LEFT_OUT,
    SCENE,
    STRANGER,
    count_false,
    join_pairs,
    level_of,
    measure_pairs,
    rank_copies,
)

STREET = Recording(Path("street.mp4"), "street", "street", 40.0)
FIRST = QueryClip("street-0", Path("first"), STREET, 0.0, 8.0)
SECOND = QueryClip("street-1", Path("second"), STREET, 30.0, 38.0)
FILMS = {
    "first": film((1, 0, 8, 1)),
    "second": film((1, 30, 8, 1)),
    "copy of first": film((1, 0, 8, 1), noise=0.6),
    "copy of second": film((1, 30, 8, 1), noise=0.6),
    **{f"other {number}": film((100 + number, 0, 20, 1)) for number in range(20)},
}
MATERIAL = CopyMaterial(
    (FIRST, SECOND),
    (
        GalleryVideo(Path("copy of first"), "street", "street", "blur", FIRST),
        GalleryVideo(Path("copy of second"), "street", "street", "blur", SECOND),
        *(GalleryVideo(Path(f"other {number}"), f"{number}", f"{number}", "distractor") for number in range(20)),
    ),
)


def frames_of(path: Path) -> tuple[Sequenced, ...]:
    return (FILMS[path.name],)


@pytest.mark.parametrize(
    ("family", "scene", "source", "level"),
    [
        ("street", "street", FIRST, COPY),
        ("street", "street", SECOND, SCENE),
        ("street", "street", None, LEFT_OUT),
        ("another camera", "street", None, SCENE),
        ("forest", "forest", None, STRANGER),
    ],
)
def test_level_of_a_video_follows_from_its_source(
    family: str, scene: str, source: QueryClip | None, level: int
) -> None:
    assert level_of(FIRST, family, scene, source) == level


def test_copies_are_compared_and_videos_without_similar_frames_are_not() -> None:
    pairs = measure_pairs(frames_of, MATERIAL)
    # Two queries, and the same pairs with query and target exchanged.
    assert pairs.levels[:, :2].tolist() == [[COPY, SCENE], [SCENE, COPY]] * 2
    assert pairs.compared[[0, 1, 2, 3], [0, 1, 0, 1]].all()
    assert not pairs.compared[:, 2:].all()
    assert (pairs.numbers[~pairs.compared] == 0).all()
    excess = pairs.numbers[..., NUMBERS.index("excess")]
    assert excess[0, 0] > 0.5 > excess[0, 2:].max()
    assert excess[2, 0] > 0.5 > excess[2, 2:].max()
    assert (pairs.mean_of_best[0, 0] > pairs.mean_of_best[0, 2:]).all()


def test_copy_inside_the_frame_is_learned_from_its_box() -> None:
    """The whole frames of the copy show other content; a box in them shows the query."""
    box = (0.5, 0.0, 1.0, 0.5)

    def with_inset(path: Path) -> tuple[Sequenced, ...]:
        if path.name != "copy of first":
            return frames_of(path)
        return film((70, 0, 8, 1)), replace(FILMS[path.name], box=box)

    plain, inset = (measure_pairs(frames, MATERIAL).numbers[0, 0] for frames in (frames_of, with_inset))
    np.testing.assert_allclose(inset[NUMBERS.index("evidence")], plain[NUMBERS.index("evidence")], rtol=1e-5)
    assert inset[NUMBERS.index("target area")] == pytest.approx(np.log(0.25))


def test_measurements_are_concatenated_query_by_query() -> None:
    pairs = measure_pairs(frames_of, MATERIAL)
    joined = join_pairs([pairs, pairs])
    np.testing.assert_array_equal(joined.numbers[4:], pairs.numbers)
    np.testing.assert_array_equal(joined.of_queries(np.array([5])).levels, pairs.levels[1:2])


def test_metrics_count_errors_in_the_ranking_and_false_reports() -> None:
    levels = np.array([[COPY, SCENE, STRANGER, LEFT_OUT], [STRANGER, COPY, STRANGER, STRANGER]], np.int8)
    scores = np.array([[0.6, 0.8, 0.1, 1.0], [0.3, 0.9, 0.0, 0.1]])
    # First query: the copy is second; second query: first. All pairs in one list: .9, .8 (wrong), .6.
    assert rank_copies(scores, levels) == {"map": 0.75, "micro_ap": round((1 + 2 / 3) / 2, 4)}
    assert count_false(scores, levels) == {
        "strangers": 4,
        "strangers at .2": 1,
        "other moments": 1,
        "other moments at .7": 1,
        "copies": 2,
        "copies at .2": 2,
        "copies at .7": 1,
    }
