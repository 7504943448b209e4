"""The score scale of a trained comparator is calibrated on the videos of the index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from tests.index.helpers import units
from tests.index.storage.test_stores import record
from tests.match.test_learned import ChamferComparator
from vidkin.errors import CollectionDamagedError, CollectionMismatchError
from vidkin.index import Entry, LearnedScale, MemoryStore, open_place
from vidkin.index.query.learned_scale import measure_scale
from vidkin.index.query.query import SearchParts
from vidkin.match import LearnedScorer
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.index import Manifest

# Photographs are diverse, so the highest score of unrelated ones is low: 0.1.
OF_PHOTOGRAPHS = LearnedScorer(ChamferComparator(), (0.0, 0.1), identity="chamfer")


def one_camera(count: int, *, shared: float = 0.6, copies: int = 0) -> MemoryStore:
    """Videos of 20 s whose frames have the cosine ``shared`` with frames of the other videos.

    The last ``copies`` videos repeat the first ones. The baseline is near this cosine, as for unrelated recordings of
    one
    camera.
    """
    generator = np.random.default_rng(4)
    background = units(generator.standard_normal((1, 64)))
    store = MemoryStore()
    films = []
    for _ in range(count):
        noise = generator.standard_normal((20, 64))
        noise -= noise @ background.T * background
        films.append(shared**0.5 * background + (1 - shared) ** 0.5 * units(noise))
    films += films[:copies]
    entries = []
    for number, vectors in enumerate(films):
        times = np.arange(20.0)
        features = FrameFeatures.of_whole(
            vectors[:, None].astype(np.float32), times, baseline=np.full(20, shared + 0.05, np.float32), end=20.0
        )
        own = vectors.astype(np.float16)
        entries.append(Entry(record(f"/v/{number:02}.mp4", frames=20, windows=20), features, own))
    store.append_many(entries)
    return store


def test_unrelated_videos_of_one_camera_score_below_a_fifth_on_the_scale_of_their_index() -> None:
    store = one_camera(14)
    first, second = store.read_many([record.id for record in store.videos()[:2]])
    (believed,) = OF_PHOTOGRAPHS.score(first, [second])
    # Chamfer similarity takes the best of 20 frames, about 0.65, which is 0.6 of the way from 0.1 to 1.
    assert 0.6 < believed.score < 0.75
    scale = measure_scale(store, OF_PHOTOGRAPHS)
    assert (scale.videos, scale.pairs, scale.total) == (14, 14 * 13 // 2, 14)
    assert 0.6 < scale.high < 0.75
    scorer = scale.applied(OF_PHOTOGRAPHS)
    same, strange = scorer.score(first, [first, second])
    assert same.score == 1.0
    assert strange.score <= 0.21
    assert scale.highest < 0.3


def test_copies_in_the_index_do_not_raise_the_scale() -> None:
    plain, with_copies = (measure_scale(one_camera(14, copies=copies), OF_PHOTOGRAPHS) for copies in (0, 6))
    assert with_copies.pairs == 20 * 19 // 2 - 6
    assert with_copies.high == pytest.approx(plain.high, abs=0.02)


def test_scale_needs_enough_videos_and_the_weights_it_was_calibrated_with() -> None:
    scale = measure_scale(one_camera(14), OF_PHOTOGRAPHS)
    other = LearnedScorer(ChamferComparator(), (0.0, 0.1), identity="other weights")
    assert scale.applied(other) is other
    few = measure_scale(one_camera(5), OF_PHOTOGRAPHS)
    assert not few.is_measured
    assert few.applied(OF_PHOTOGRAPHS) is OF_PHOTOGRAPHS
    assert [few.is_outgrown(total) for total in (5, 7, 8)] == [False, False, True]


def test_scale_round_trips_and_a_damaged_one_is_reported(tmp_path: Path) -> None:
    place = open_place(tmp_path)
    assert LearnedScale.open(place) is None
    scale = measure_scale(one_camera(12), OF_PHOTOGRAPHS)
    scale.save(place)
    assert LearnedScale.open(place) == scale
    for content in ("{", "[]", '{"scorer": "x"}', '{"scorer": 1, "total": 1, "videos": 1, "pairs": 1}'):
        (tmp_path / LearnedScale.FILE).write_text(content)
        with pytest.raises(CollectionDamagedError, match=r"learned_scale\.json is damaged"):
            LearnedScale.open(place)


class TestDuplicates:
    def parts(self, folder: Path) -> SearchParts:
        """Search components of an index whose scorer is a comparator."""
        return SearchParts(
            open_place(folder),
            cast("Manifest", SimpleNamespace(measure="learned", reviewed=False)),
            MemoryStore(),
            lambda: pytest.fail("the scale is read without opening the model"),
        )

    def test_fails_if_an_unrelated_pair_reaches_the_threshold(self, tmp_path: Path) -> None:
        scale = measure_scale(one_camera(12), OF_PHOTOGRAPHS)
        replace(scale, highest=0.74).save(open_place(tmp_path))
        parts = self.parts(tmp_path)
        with pytest.raises(
            CollectionMismatchError,
            match=r"scores unrelated videos up to 0\.74 \(66 pairs\), so a score of 0\.7 does not identify a copy; "
            r"choose a threshold above 0\.74, or index with the default extractor",
        ):
            parts.check_scale(0.7)
        parts.check_scale(0.75)

    def test_fails_with_the_number_of_videos_if_there_are_too_few(self, tmp_path: Path) -> None:
        measure_scale(one_camera(5), OF_PHOTOGRAPHS).save(open_place(tmp_path))
        with pytest.raises(
            CollectionMismatchError,
            match=r"5 videos with 10 unrelated pairs are too few to calibrate .*; add videos \(at least 12 in total\)",
        ):
            self.parts(tmp_path).check_scale(0.7)

    def test_fails_without_a_calibrated_scale(self, tmp_path: Path) -> None:
        with pytest.raises(CollectionMismatchError, match=r"not been calibrated on this index.*; run `vidkin index`"):
            self.parts(tmp_path).check_scale(0.7)
