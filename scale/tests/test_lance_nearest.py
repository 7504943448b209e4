"""Building the approximate index of windows, and its search results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.index.storage.test_stores import entry, units
from vidkin.index import NO_WINDOW, open_place
from vidkin_scale.lance_nearest import INDEX_NAME, Partitions, WindowOwners
from vidkin_scale.lance_store import LanceStore


@pytest.fixture
def store(tmp_path: Path) -> LanceStore:
    return LanceStore(open_place(tmp_path / "store"), exact_below=1000)


def clusters(count: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Unit vectors around 40 directions."""
    draw = np.random.default_rng(seed)
    centers = np.random.default_rng(1).standard_normal((40, dimension), np.float32)
    return units(centers[draw.integers(40, size=count)] + 0.5 * draw.standard_normal((count, dimension), np.float32))


def fill(store: LanceStore, vectors: NDArray[np.float32], name: str) -> None:
    parts = np.split(vectors, range(50, len(vectors), 50))
    store.append_many([entry(f"/{name}{n}.mp4", frames=1, vectors=part) for n, part in enumerate(parts)])


def in_the_index(store: LanceStore) -> tuple[int, int]:
    """Number of windows in the index and outside of it."""
    stats = store._windows.dataset.stats.index_stats(INDEX_NAME)
    return int(stats["num_indexed_rows"]), int(stats["num_unindexed_rows"])


def test_vectors_are_assigned_to_a_nearby_partition() -> None:
    vectors = clusters(20_000, 32)
    partitions = Partitions.of_sample(vectors, 400)
    assert 300 <= len(partitions.centroids) <= 500
    squares = (partitions.centroids**2).sum(axis=1)
    distances = squares - 2 * vectors @ partitions.centroids.T + 1
    found = partitions.of(vectors)
    assert (found == distances.argmin(axis=1)).mean() > 0.9
    # The others are hardly farther from their partition.
    assert (distances[np.arange(len(vectors)), found] - distances.min(axis=1)).mean() < 0.01


def test_partitions_never_outnumber_sample_vectors() -> None:
    assert len(Partitions.of_sample(clusters(5, 16), 300).centroids) == 5


def test_nearly_equal_windows_are_partitioned(store: LanceStore) -> None:
    # As from a camera facing a wall: k-means alone finds too few clusters and fails.
    draw = np.random.default_rng(0)
    vectors = np.tile(np.ones((1, 16), np.float32) / 4, (2000, 1))
    assert len(Partitions.of_sample(vectors, 300).centroids) == 1
    vectors[:400] = units(vectors[:400] + 1e-7 * draw.standard_normal((400, 16), np.float32))
    partitions = Partitions.of_sample(vectors, 200)
    assert np.isfinite(partitions.centroids).all()
    assert (partitions.of(vectors) < len(partitions.centroids)).all()
    fill(store, vectors, "a")
    store.optimize()
    assert in_the_index(store) == (2000, 0)
    assert np.allclose(store.nearest(vectors[:1], 10).scores, 1.0, atol=0.01)


@pytest.mark.parametrize("dimension", [32, 12])  # 12: no codes, since they pack eight dimensions into a byte
def test_approximate_index_gives_the_results_of_exact_search(store: LanceStore, dimension: int) -> None:
    fill(store, clusters(4000, dimension), "a")
    queries = clusters(30, dimension, seed=5)
    exact = store.nearest(queries, 20)
    store.optimize()
    assert in_the_index(store) == (4000, 0)
    found = store.nearest(queries, 30)
    for query in range(len(queries)):
        wanted = set(zip(exact.video_ids[query].tolist(), exact.windows[query].tolist(), strict=True))
        windows = set(zip(found.video_ids[query].tolist(), found.windows[query].tolist(), strict=True))
        assert len(wanted & windows) >= 18
    assert np.allclose(found.scores[:, :20], exact.scores, atol=0.05)


@pytest.mark.parametrize("added", [100, 1000])
def test_added_windows_are_indexed_by_the_next_optimization(store: LanceStore, added: int) -> None:
    # A few are added to the index; many cause a rebuild.
    fill(store, clusters(4000, 32), "a")
    store.optimize()
    new = clusters(added, 32, seed=7)
    fill(store, new, "b")
    assert in_the_index(store) == (4000, added)
    store.optimize()
    assert in_the_index(store) == (4000 + added, 0)
    names = {record.id: record.path for record in store.videos()}
    found = store.nearest(new[::50], 1)
    assert [names[video].startswith("/b") for video in found.video_ids[:, 0].tolist()] == [True] * (added // 50)


def test_new_index_omits_windows_of_removed_videos(store: LanceStore) -> None:
    vectors = clusters(3000, 32)
    fill(store, vectors, "a")
    store.optimize()
    store.remove([record.id for record in store.videos()][::2])
    fill(store, clusters(1000, 32, seed=7), "b")
    store.optimize()
    assert in_the_index(store) == (2500, 0)
    kept = {record.id for record in store.videos()}
    found = store.nearest(vectors[:40], 50)
    assert set(found.video_ids.ravel().tolist()) <= kept


def test_index_without_remaining_videos_finds_nothing(store: LanceStore) -> None:
    fill(store, clusters(1500, 32), "a")
    store.optimize()
    store.remove([record.id for record in store.videos()])
    for _ in range(2):
        assert (store.nearest(clusters(3, 32), 5).video_ids == NO_WINDOW).all()
        store.optimize()


@pytest.mark.parametrize("compacted", [False, True])
def test_owners_of_rows_match_the_table(store: LanceStore, compacted: bool) -> None:
    for batch in range(5):
        fill(store, clusters(230, 16, seed=batch), f"{batch}-")
    store.remove([record.id for record in store.videos()][1::3])
    if compacted:
        store.optimize()
    table = store._windows.dataset.to_table(columns=["video_id", "window"], with_row_id=True)
    rows = table["_rowid"].to_numpy()
    owners = WindowOwners.of_table(store._windows.dataset)
    assert len(owners.rows) == store.count()
    order = np.random.default_rng(0).permutation(len(rows))
    videos, windows = owners.of(rows[order])
    assert videos.tolist() == table["video_id"].to_numpy()[order].tolist()
    assert windows.tolist() == table["window"].to_numpy()[order].tolist()
    some = np.unique(videos)[::2]
    wanted = np.isin(table["video_id"].to_numpy(), some)
    assert owners.rows_of(some).tolist() == sorted(rows[wanted].tolist())


def test_windows_of_a_large_index_are_read_by_row(store: LanceStore) -> None:
    fill(store, clusters(1500, 32), "a")
    before = {record.id: store.read_windows(record.id) for record in store.videos()}
    store.optimize()
    assert store._window_search().is_indexed
    store.remove([first := min(before)])
    del before[first]
    fill(store, clusters(100, 32, seed=1), "b")  # these are not in the index yet
    for record in store.videos():
        before.setdefault(record.id, store.read_windows(record.id))
    ids = sorted(before, reverse=True)
    for video, windows in zip(ids, store.read_windows_many(ids), strict=True):
        assert np.array_equal(windows, before[video])
        assert len(windows) == store.get(video).windows
