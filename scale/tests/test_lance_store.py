"""Features specific to the Lance store; it is also tested by the contract of all stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from scale.tests.remains import stored_ids

from tests.index.helpers import units, video
from tests.index.storage.test_stores import entry, same, unit
from vidkin.errors import CollectionDamagedError, NotIndexedError
from vidkin.index import NO_WINDOW, Entry, Index, VectorStore, open_place
from vidkin_scale.lance_store import LanceStore


@pytest.fixture
def store(tmp_path: Path) -> VectorStore:
    return LanceStore(open_place(tmp_path / "store"))


@pytest.fixture
def lance(tmp_path: Path) -> Callable[..., LanceStore]:
    return lambda **options: LanceStore(open_place(tmp_path / "store"), **options)


def test_index_can_be_opened_with_lancedb(tmp_path: Path) -> None:
    import lancedb

    clip = video(tmp_path / "a.mp4")
    with Index.open(tmp_path / "index", extractor="classical", create=True, store="lance") as index:
        index.add(clip, workers=1)
        assert [match.path for match in index.search(clip)] == [str(clip)]
    database = lancedb.connect(str(tmp_path / "index"))
    assert database.open_table("videos").count_rows() == 1


def test_reopened_store_has_all_videos(lance: Callable[..., LanceStore]) -> None:
    first = lance()
    records = first.append_many([entry("/a.mp4", seed=1), entry("/b.mp4", seed=2)])
    first.remove([records[1].id])
    first.close()
    again = lance()
    assert again.videos() == [records[0]]
    wanted = entry("/a.mp4", seed=1).features
    assert wanted is not None
    assert same(again.read(records[0].id), wanted)
    assert again.append_many([entry("/c.mp4")])[0].id > records[1].id


def test_reader_keeps_its_snapshot_until_refresh(lance: Callable[..., LanceStore]) -> None:
    writer = lance()
    (a,) = writer.append_many([entry("/a.mp4", seed=1)])
    reader = lance()
    (b,) = writer.append_many([entry("/b.mp4")])
    writer.remove([a.id])
    assert [r.path for r in reader.videos()] == ["/a.mp4"]
    assert len(reader.read(a.id)) == 3
    assert set(reader.nearest(unit([1.0, 0, 0, 0]), 4).video_ids[0].tolist()) == {a.id, -1}
    assert reader.refresh() is True
    assert reader.refresh() is False
    assert [r.path for r in reader.videos()] == ["/b.mp4"]
    assert len(reader.read(b.id)) == 3


def test_reader_whose_version_was_pruned_restarts(lance: Callable[..., LanceStore]) -> None:
    writer = lance(keep_versions=timedelta(microseconds=1))
    records = writer.append_many([entry("/a.mp4", seed=1)])
    records += writer.append_many([entry("/b.mp4", seed=2)])
    reader = lance()
    writer.optimize()
    with pytest.raises(CollectionDamagedError, match=r"windows\.lance is missing or incomplete"):
        reader._read_windows([records[1].id])
    assert len(reader.read_windows(records[1].id)) == 1
    wanted = entry("/b.mp4", seed=2).features
    assert wanted is not None
    assert same(reader.read(records[1].id), wanted)
    assert reader.nearest(unit([1.0, 0, 0, 0]), 2).scores[0].tolist() == pytest.approx([1.0, 1.0], abs=1e-3)


def test_features_without_a_record_are_invisible_and_cleaned_up(lance: Callable[..., LanceStore]) -> None:
    store = lance()
    (a,) = store.append_many([entry("/a.mp4")])
    store._videos.append = lambda rows: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        store.append_many([entry("/b.mp4", seed=5)])
    reader = lance()
    assert [r.path for r in reader.videos()] == ["/a.mp4"]
    assert set(reader.nearest(unit([1.0, 0, 0, 0]), 4).video_ids[0].tolist()) == {a.id, -1}
    (later,) = lance().append_many([entry("/c.mp4", seed=6)])
    assert later.id > a.id + 1, "an orphan's id must not be given to another video"
    writer = lance()
    assert writer.recover() == 1
    assert writer.recover() == 0
    assert stored_ids(writer) == [a.id, later.id]
    assert writer._windows.dataset.count_rows() == 2


def test_files_of_removed_videos_stay_readable_for_open_readers(
    lance: Callable[..., LanceStore],
) -> None:
    writer = lance()
    (a,) = writer.append_many([entry("/a.mp4")])
    reader = lance()
    writer.remove([a.id])
    writer.optimize()
    assert len(reader.read(a.id)) == 3
    assert lance().recover() == 1
    with pytest.raises(NotIndexedError, match=f"no video with id {a.id}"):
        reader.read(a.id)


def test_feature_files_are_readable_by_other_accounts(lance: Callable[..., LanceStore], tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    store = lance()
    (a,) = store.append_many([entry("/a.mp4", seed=3)])
    (path,) = (tmp_path / "store" / "features").rglob("*.safetensors")
    assert int(path.stem) == a.id
    content = load_file(path)
    assert sorted(content) == ["baseline", "information", "timestamps", "values"]
    assert content["values"].shape == (3, 2, 4)  # no axis for views, since there is only one
    assert np.array_equal(content["values"], store.read(a.id).whole)


def test_approximate_index_agrees_with_exact_search(lance: Callable[..., LanceStore]) -> None:
    generator = np.random.default_rng(0)
    centers = generator.standard_normal((60, 32), np.float32)

    def batch(first: int, count: int) -> list[Entry]:
        made = []
        for n in range(first, first + count):
            vectors = centers[generator.integers(60, size=20)]
            vectors = vectors + 0.4 * generator.standard_normal((20, 32), np.float32)
            vectors = units(vectors)
            made.append(entry(f"/{n}.mp4", frames=1, vectors=vectors))
        return made

    store = lance(exact_below=1000)
    store.append_many(batch(0, 150))
    queries = units(centers[:20])
    exact = store.nearest(queries, 10)
    store.optimize()
    assert store._window_search().is_indexed
    # Codes have errors of some thousandths, so with two nearly equal windows either can be the tenth.
    close = store.nearest(queries, 15)
    hits = [len(set(zip(*a, strict=True)) & set(zip(*b, strict=True))) for a, b in _pairs(exact, close)]
    assert sum(hits) / 200 > 0.95
    assert np.allclose(close.scores[:, :10], exact.scores, atol=0.04)
    assert (np.diff(close.scores, axis=1) <= 0).all()
    # Rows added after the index was built are found, removed ones are not, and both survive a rebuild.
    (new,) = store.append_many([entry("/new.mp4", frames=1, vectors=queries[:1])])
    assert store.nearest(queries[:1], 1).video_ids.tolist() == [[new.id]]
    gone = int(exact.video_ids[1, 0])
    store.remove([gone])
    assert gone not in store.nearest(queries[1:2], 10).video_ids
    store.optimize()
    assert store.nearest(queries[:1], 1).video_ids.tolist() == [[new.id]]
    assert gone not in store.nearest(queries[1:2], 10).video_ids


@pytest.mark.parametrize("since", ["nothing", "added", "added and indexed"])
def test_approximate_index_returns_exact_cosines_after_additions(lance: Callable[..., LanceStore], since: str) -> None:
    # Lance's distances are twice as large if all rows are indexed as if some are not.
    generator = np.random.default_rng(3)
    vectors = units(generator.standard_normal((3000, 32), np.float32))
    entries = [entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 60))]
    store = lance(exact_below=1000)
    store.append_many(entries[:50])
    store.optimize()
    if since != "nothing":
        store.append_many(entries[50:])
    if since == "added and indexed":
        store.optimize()
    assert store._window_search().is_indexed
    queries = units(generator.standard_normal((4, 32), np.float32))
    near = store.nearest(queries, 40)
    windows = {record.id: store.read_windows(record.id) for record in store.videos()}
    for query, ids, numbers, scores in zip(queries, near.video_ids, near.windows, near.scores, strict=True):
        found = [windows[video][number] for video, number in zip(ids.tolist(), numbers.tolist(), strict=True)]
        assert np.allclose(np.stack(found).astype(np.float32) @ query, scores, atol=0.04)


def test_codes_that_do_not_estimate_cosines_only_select_candidates(
    lance: Callable[..., LanceStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vidkin_scale.lance_nearest._CODE_ERROR", 1e-6)  # no code is this close
    generator = np.random.default_rng(0)
    vectors = units(generator.standard_normal((1500, 32), np.float32))
    store = lance(exact_below=1000)
    store.append_many([entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 30))])
    queries = units(generator.standard_normal((5, 32), np.float32))
    exact = store.nearest(queries, 10)
    store.optimize()
    close = store.nearest(queries, 10)
    hits = [len(set(zip(*a, strict=True)) & set(zip(*b, strict=True))) for a, b in _pairs(exact, close)]
    assert sum(hits) / 50 > 0.95
    assert np.allclose(close.scores[:, 0], exact.scores[:, 0], atol=1e-6)


def test_one_of_four_shards_returns_half_of_the_requested_windows(lance: Callable[..., LanceStore]) -> None:
    generator = np.random.default_rng(0)
    vectors = units(generator.standard_normal((1500, 32), np.float32))
    store = lance(exact_below=1000, parts=4)
    store.append_many([entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 30))])
    queries = units(generator.standard_normal((5, 32), np.float32))
    exact = store.nearest(queries, 100)
    store.optimize()
    assert store._window_search().is_indexed
    close = store.nearest(queries, 100)
    assert close.video_ids.shape == (5, 100)
    assert (close.video_ids[:, 50:] == NO_WINDOW).all()
    # Of the best quarter, which is a shard's proportion of the windows requested, at most one in twenty is missed.
    pairs = [(set(list(zip(*a, strict=True))[:25]), set(zip(*b, strict=True))) for a, b in _pairs(exact, close)]
    assert sum(len(best & found) for best, found in pairs) / 125 > 0.95


def test_neighbors_scattered_over_many_partitions_are_found(
    lance: Callable[..., LanceStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without clusters, the nearest of 6,000 windows lie in most of the 187 partitions.
    monkeypatch.setattr("vidkin_scale.lance_nearest._WINDOWS_PER_PARTITION", 32)
    generator = np.random.default_rng(0)
    vectors = units(generator.standard_normal((6000, 32), np.float32))
    store = lance(exact_below=1000)
    store.append_many([entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 30))])
    queries = units(generator.standard_normal((20, 32), np.float32))
    exact = store.nearest(queries, 100)
    store.optimize()
    assert store._window_search().is_indexed
    close = store.nearest(queries, 100)
    hits = [len(set(zip(*a, strict=True)) & set(zip(*b, strict=True))) for a, b in _pairs(exact, close)]
    assert sum(hits) / 2000 > 0.95


def test_approximate_index_does_not_return_orphans(lance: Callable[..., LanceStore]) -> None:
    store = lance(exact_below=100)
    vectors = units(np.random.default_rng(1).standard_normal((60, 8), np.float32))
    store.append_many([entry(f"/{n}.mp4", frames=1, vectors=vectors) for n in range(5)])
    store.optimize()
    query = vectors[:1]
    store._catalog.drop([1, 2])
    store._search = None
    neighbors = store.nearest(query, 100)
    assert {1, 2}.isdisjoint(neighbors.video_ids[0].tolist())
    assert int((neighbors.video_ids >= 0).sum()) == 100


def _pairs(exact: object, close: object) -> list[tuple[tuple[list[int], ...], tuple[list[int], ...]]]:
    def rows(table: object) -> list[tuple[list[int], ...]]:
        ids, numbers = table.video_ids.tolist(), table.windows.tolist()  # type: ignore[attr-defined]
        return list(zip(ids, numbers, strict=True))

    return list(zip(rows(exact), rows(close), strict=True))
