"""Embeddings and pairs of an index for curating collections, and result lists that stay result lists."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin import Results
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index, SerialExecutor


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("pooling")
    encode(folder / "b.mp4", pan("coffee", 60))
    encode(folder / "a smaller.mp4", pan("coffee", 60, width=96, height=64))
    encode(folder / "c.mp4", pan("rocket", 60))
    encode(folder / "dark.mp4", np.zeros((30, 64, 96, 3), np.uint8))
    index = Index.open(folder / "i", extractor="classical", create=True)
    index.add(folder, executor=SerialExecutor(index.worker_spec))
    return index


def test_embeddings_of_copies_are_closest_to_each_other(index: Index) -> None:
    ids, vectors = index.embeddings()
    names = [Path(index.store.get(number).path).stem for number in ids.tolist()]
    assert sorted(names) == ["a smaller", "b", "c", "dark"]
    assert ids.tolist() == sorted(ids.tolist())
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths[[names.index(name) for name in ("a smaller", "b", "c")]].tolist() == pytest.approx(
        [1.0] * 3, abs=1e-3
    )
    cosines = vectors @ vectors.T
    copy, source, other = (names.index(name) for name in ("a smaller", "b", "c"))
    assert np.linalg.norm(vectors[[copy, source, other]], axis=1).tolist() == pytest.approx([1.0] * 3, abs=1e-3)
    assert cosines[copy, source] > max(cosines[copy, other], cosines[source, other]) + 0.2


def test_without_pooling_there_is_a_vector_per_frame_whose_mean_is_the_video_embedding(index: Index) -> None:
    ids, vectors = index.embeddings()
    of_frames, frames = index.embeddings(pool=None)
    for number, vector in zip(ids.tolist(), vectors, strict=True):
        record, own = index.store.get(number), frames[of_frames == number]
        assert len(own) == record.frames
        weighted = (index.store.read(number).information[:, None] * own).sum(axis=0)
        if np.linalg.norm(weighted) > 0:
            np.testing.assert_allclose(vector, weighted / np.linalg.norm(weighted), atol=1e-5)
    with pytest.raises(InvalidArgumentError, match="pool must be"):
        index.embeddings(pool="max")


def test_pairs_are_those_compared_by_a_search_for_duplicates(index: Index) -> None:
    assert index.pairs() == []
    index.duplicates()
    (pair,) = index.pairs()
    assert [Path(path).stem for path in (pair.first, pair.second)] == ["a smaller", "b"]
    assert pair.score > 0.7
    assert pair.segments[0].query_start == pytest.approx(0.0, abs=0.5)
    assert index.pairs(1.0) == [] or pair.score == 1.0
    assert pair.table_rows()[0]["second"] == pair.second
    assert index.pairs()._repr_html_().count("<img") == 2


def test_identical_files_are_pairs_before_and_after_a_search(tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", pan("coffee", 20, width=96, height=64))
    for name in ("b.mp4", "c.mp4"):
        shutil.copy(tmp_path / "a.mp4", tmp_path / name)
    with Index.open(tmp_path / "i", extractor="classical", create=True) as index:
        index.add(tmp_path, executor=SerialExecutor(index.worker_spec))
        pairs = index.pairs(1.0)
        index.duplicates()
        assert index.pairs() == pairs
    assert [(Path(pair.first).name, Path(pair.second).name) for pair in pairs] == [
        ("a.mp4", "b.mp4"),
        ("a.mp4", "c.mp4"),
    ]
    assert pairs[0].segments[0].target_end == pytest.approx(2.0)


def test_slices_and_sorted_results_are_result_lists(index: Index) -> None:
    matches = index.search(index.videos()[0].path)
    assert len(matches) >= 2
    for part in (matches[:1], matches.sorted(lambda match: match.path), matches.where(lambda match: match.score > 0.5)):
        assert isinstance(part, Results)
        assert "<strong>" in part._repr_html_()
    assert [match.path for match in matches.sorted(lambda match: match.path, reverse=True)] == sorted(
        (match.path for match in matches), reverse=True
    )
    assert matches[0] == matches[:1][0]
