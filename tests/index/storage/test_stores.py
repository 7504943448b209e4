"""One contract for all stores. Packages with their own stores run these tests with another ``store`` fixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from tests.index.helpers import units
from vidkin.errors import CollectionDamagedError, InvalidArgumentError, NotIndexedError
from vidkin.index import (
    DiskStore,
    Entry,
    MemoryStore,
    VectorStore,
    VideoRecord,
    open_place,
    to_stored,
)
from vidkin.similarity import FrameFeatures


def unit(*rows: list[float]) -> NDArray[np.floating]:
    return units(np.array(rows))


def record(path: str, **fields: object) -> VideoRecord:
    values: dict[str, object] = {"size": 10, "mtime_ns": 5, "content_hash": "aa", **fields}
    return VideoRecord(path=path, **values)  # type: ignore[arg-type]


def features(frames: int, *, regions: int = 2, dimension: int = 4, seed: int = 0) -> FrameFeatures:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal((frames, regions, dimension), np.float32)
    return FrameFeatures.of_whole(
        values=units(values).astype(np.float16),
        timestamps=np.arange(frames, dtype=np.float64) / 3,
        information=generator.random(frames, np.float32),
        baseline=generator.random(frames, np.float32),
    )


def entry(path: str, *, frames: int = 3, vectors: NDArray[np.floating] | None = None, seed: int = 0) -> Entry:
    found = unit([1.0, 0, 0, 0]) if vectors is None else vectors
    return Entry(record(path, frames=frames, windows=len(found)), features(frames, seed=seed), found)


def same(a: FrameFeatures, b: FrameFeatures) -> bool:
    names = ("values", "timestamps", "information", "baseline")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


def stored_ids(store: DiskStore) -> list[int]:
    """Ids of all videos that have features or windows."""
    return sorted(store._features.sizes().keys() | store._windows.counts().keys())


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    return MemoryStore() if request.param == "memory" else DiskStore(open_place(tmp_path / "store"))


@pytest.fixture
def disk(tmp_path: Path) -> Callable[..., DiskStore]:
    return lambda **options: DiskStore(open_place(tmp_path / "store"), **options)


def test_empty_store_answers_queries(store: VectorStore) -> None:
    assert store.videos() == []
    assert store.count() == store.window_count() == 0
    assert store.find("/a.mp4") is None
    assert store.read_many([]) == []
    assert store.recover() == 0
    neighbors = store.nearest(unit([1.0, 0], [0, 1.0]), 3)
    assert neighbors.video_ids.tolist() == [[-1] * 3] * 2
    assert neighbors.scores.tolist() == [[-1.0] * 3] * 2
    store.optimize()
    store.remove([3])


def test_appended_videos_are_read_back(store: VectorStore) -> None:
    given = Entry(
        record(
            "/films/a.mp4",
            frames=600,
            windows=2,
            duration=20.5,
            width=640,
            height=360,
            frame_rate=29.97,
            codec="h264",
            bit_depth=8,
            has_audio=True,
            sampling_rate=30.0,
            added_at=1.5e9,
        ),
        features(600),
        entry("/x", vectors=unit([1.0, 2, 3, 4], [4, 3, 2, 1.0])).windows,
    )
    stored = store.append(given.record, given.features, given.windows)
    assert stored.id > 0
    assert store.videos() == [stored]
    assert store.get(stored.id) == store.find("/films/a.mp4") == stored
    assert (stored.duration, stored.frame_rate, stored.codec, stored.has_audio) == (20.5, 29.97, "h264", True)
    assert given.features is not None
    assert given.windows is not None
    assert same(store.read(stored.id), given.features)
    back = store.read_windows(stored.id)
    assert back.dtype == np.float16
    assert np.array_equal(back, given.windows.astype(np.float16))


def test_many_videos_are_read_in_the_given_order(store: VectorStore) -> None:
    entries = [entry(f"/{n}.mp4", frames=n * 100, seed=n) for n in range(6)]
    records = store.append_many(entries)
    for order in ([0, 1, 2, 3, 4, 5], [5, 0, 3], [2, 2]):
        back = store.read_many([records[n].id for n in order])
        assert [len(part) for part in back] == [n * 100 for n in order]
        for n, part in zip(order, back, strict=True):
            wanted = entries[n].features
            assert wanted is not None
            assert same(part, wanted)
        windows = store.read_windows_many([records[n].id for n in order])
        for n, found in zip(order, windows, strict=True):
            given = entries[n].windows
            assert given is not None
            assert np.array_equal(found, given.astype(np.float16))


def test_video_without_frames_is_complete(store: VectorStore) -> None:
    nothing = entry("/empty.mp4", frames=0, vectors=np.zeros((0, 4)))
    stored = store.append(nothing.record, nothing.features, nothing.windows)
    assert len(store.read(stored.id)) == 0
    assert store.read(stored.id).values.shape == (0, 1, 2, 4)
    assert len(store.read_windows(stored.id)) == 0


def test_several_views_are_read_back_with_their_boxes(store: VectorStore) -> None:
    generator = np.random.default_rng(1)
    values = units(generator.standard_normal((3, 2, 5, 4), np.float32))
    boxes = np.array([[0.0, 0.0, 1.0, 1.0], [0.25, 0.0, 0.75, 1.0]], np.float32)[None].repeat(3, axis=0)
    times, ones = np.arange(3, dtype=np.float64), np.ones(3, np.float32)
    views = FrameFeatures(values, times, ones, baseline=generator.random((3, 2), np.float32), boxes=boxes)
    stored = store.append(record("/a.mp4", frames=3, windows=1), views, unit([1.0, 0, 0, 0]))
    back = store.read(stored.id)
    assert np.array_equal(back.whole, values[:, 0].astype(np.float16))
    # Parts are stored with half a byte per value, as integers up to 7, and normalized when read.
    size = np.abs(values[:, 1].astype(np.float16).astype(np.float32)).max(-1, keepdims=True) / 7
    numbers = (values[:, 1].astype(np.float16).astype(np.float32) / size).round()
    np.testing.assert_allclose(back.values[:, 1].astype(np.float32), units(numbers), atol=1e-3, rtol=0)
    assert float((back.values[:, 1].astype(np.float32) * values[:, 1]).sum(-1).min()) > 0.98
    assert np.array_equal(to_stored(back).values, back.values)
    assert back.boxes is not None
    assert np.array_equal(back.boxes, boxes)
    assert np.array_equal(back.baselines, views.baselines)


def test_partially_described_frames_and_changing_boxes_are_read_back(store: VectorStore) -> None:
    values = np.zeros((4, 2, 1, 4), np.float32)
    values[:, :, :, 0] = 1.0
    values[1::2, 1] = 0.0
    boxes = np.array([[0.0, 0.0, 1.0, 1.0], [0.25, 0.0, 0.75, 1.0]], np.float32)[None].repeat(4, axis=0)
    boxes[2:, 1, 0] = 0.5
    times, ones = np.arange(4, dtype=np.float64), np.ones(4, np.float32)
    baseline = np.array([[0.1, 0.2], [0.3, 0.0], [0.5, 0.6], [0.7, 0.0]], np.float32)
    views = FrameFeatures(values, times, ones, baseline=baseline, boxes=boxes)
    stored = store.append(record("/a.mp4", frames=4, windows=1), views, unit([1.0, 0, 0, 0]))
    back = store.read(stored.id)
    assert np.array_equal(back.values, values.astype(np.float16))
    assert np.array_equal(back.baselines, baseline)
    assert back.boxes is not None
    assert np.array_equal(back.boxes, boxes)


def test_parts_of_odd_length_are_read_back(store: VectorStore) -> None:
    values = np.zeros((2, 2, 1, 5), np.float32)
    values[..., 0] = 1.0
    values[1, 1, 0] = np.array([0.0, 7.0, -3.0, 1.0, -7.0])
    views = FrameFeatures(
        units(values),
        np.arange(2, dtype=np.float64),
        np.ones(2, np.float32),
        baseline=np.zeros((2, 2), np.float32),
        boxes=np.array([[0.0, 0.0, 1.0, 1.0], [0.25, 0.0, 0.75, 1.0]], np.float32)[None].repeat(2, axis=0),
    )
    stored = store.append(record("/a.mp4", frames=2, windows=1), views, unit([1.0, 0, 0, 0]))
    back = store.read(stored.id).values.astype(np.float32)
    np.testing.assert_allclose(back, views.values, atol=1e-3, rtol=0)


def test_thumbnails_are_read_back(store: VectorStore) -> None:
    generator = np.random.default_rng(5)
    values = units(generator.standard_normal((3, 3, 1, 8), np.float32))
    # The second view exists only in the last frame, the third one in none.
    values[:2, 1], values[:, 2] = 0, 0
    boxes = np.array([[0, 0, 1, 1], [0.25, 0, 0.75, 1], [0, 0, 0, 0]], np.float32)[None].repeat(3, axis=0)
    thumbnails = generator.integers(0, 256, (3, 3, 8, 8), np.uint8)
    thumbnails[:2, 1], thumbnails[:, 2] = 0, 0
    times, ones = np.arange(3, dtype=np.float64), np.ones(3, np.float32)
    views = FrameFeatures(values, times, ones, boxes=boxes, thumbnails=thumbnails)
    whole = FrameFeatures.of_whole(values[:, 0], times, ones, thumbnails=thumbnails[:, 0])
    for name, given in (("/views.mp4", views), ("/whole.mp4", whole), ("/none.mp4", features(3, regions=1))):
        stored = store.append(record(name, frames=3, windows=1), given, unit([1.0, 0, 0, 0]))
        back = store.read(stored.id).thumbnails
        if given.thumbnails is None:
            assert back is None
        else:
            assert back is not None
            assert back.dtype == np.uint8
            assert np.array_equal(back, given.thumbnails)


def test_features_are_rounded_once(store: VectorStore) -> None:
    """Vectors appended in single precision are returned as `to_stored` rounds them."""
    precise = features(3, seed=4)
    precise = replace(precise, values=precise.values.astype(np.float32) * 0.999, baseline=None)
    stored = store.append(record("/a.mp4", frames=3, windows=1), precise, unit([1.0, 0, 0, 0]))
    rounded = to_stored(precise)
    assert rounded.values.dtype == np.float16
    assert np.array_equal(to_stored(rounded).values, rounded.values)
    assert np.array_equal(store.read(stored.id).values, rounded.values)
    assert store.read(stored.id).baselines.tolist() == [[0.0]] * 3


def test_stale_video_has_no_features_until_read_again(store: VectorStore) -> None:
    cause = "its features are missing"
    ok = store.append_many([entry("/a.mp4")])[0]
    stale = store.append(replace(ok, path="/b.mp4", id=-1).as_stale(cause))
    assert (stale.status, stale.cause, stale.mtime_ns, stale.frames) == ("stale", cause, 0, 0)
    assert (stale.needs_reindex, ok.needs_reindex) == (True, False)
    assert store.missing() == {stale.id: cause}
    assert store.find("/b.mp4") == stale
    with pytest.raises(NotIndexedError, match=f"video {stale.id} is stale and has no features"):
        store.read(stale.id)
    with pytest.raises(InvalidArgumentError, match="is stale and cannot have features"):
        store.append(stale, features(3), unit([1.0, 0, 0, 0]))


def test_broken_videos_are_listed_and_cannot_be_read(store: VectorStore) -> None:
    stored = store.append(record("/b.mp4", status="broken", cause="moov atom not found"))
    assert [(r.status, r.cause) for r in store.videos()] == [("broken", "moov atom not found")]
    assert store.count() == 1
    with pytest.raises(NotIndexedError, match="is broken and has no features"):
        store.read(stored.id)
    with pytest.raises(NotIndexedError, match="is broken and has no windows"):
        store.read_windows(stored.id)


def test_unknown_ids_are_refused_or_ignored(store: VectorStore) -> None:
    for ask in (store.get, store.read, store.read_windows):
        with pytest.raises(NotIndexedError, match="no video with id 77"):
            ask(77)


def test_undecodable_names_are_preserved(store: VectorStore) -> None:
    odd = "/films/\udcff\udcfe naïve 映画.mp4"
    store.append(record(odd, status="broken", cause=f"cannot read {odd}"))
    found = store.find(odd)
    assert found is not None
    assert found.path == odd


def test_nearest_windows_match_hand_computed_values(store: VectorStore) -> None:
    a, b = store.append_many(
        [
            entry("/a.mp4", vectors=unit([1.0, 0, 0, 0], [0, 1.0, 0, 0])),
            entry("/b.mp4", vectors=unit([1.0, 1, 0, 0], [0, 0, 0, 1.0])),
        ]
    )
    neighbors = store.nearest(unit([1.0, 0, 0, 0], [0, 0, 0, -1.0]), 3)
    assert neighbors.video_ids[0].tolist() == [a.id, b.id, a.id] or neighbors.video_ids[0].tolist() == [
        a.id,
        b.id,
        b.id,
    ]
    assert neighbors.windows[0, :2].tolist() == [0, 0]
    assert neighbors.scores[0].tolist() == pytest.approx([1.0, 0.5**0.5, 0.0], abs=1e-3)
    assert neighbors.scores[1].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)
    more = store.nearest(unit([0.0, 1, 0, 0]), 6)
    assert more.video_ids[0, 4:].tolist() == [-1, -1]
    assert more.windows[0, 0] == 1


def test_nearest_refuses_invalid_queries(store: VectorStore) -> None:
    given = entry("/a.mp4")
    store.append(given.record, given.features, given.windows)
    with pytest.raises(InvalidArgumentError, match="query vectors must have dimension 4, like the index, got 3"):
        store.nearest(np.ones((1, 3), np.float32), 1)
    with pytest.raises(InvalidArgumentError, match=r"vectors must be \[Q, E\]"):
        store.nearest(np.ones(3, np.float32), 1)
    with pytest.raises(InvalidArgumentError, match="limit must be at least 1, got 0"):
        store.nearest(np.ones((1, 4), np.float32), 0)


def test_appending_a_path_again_replaces_its_record(store: VectorStore) -> None:
    (old,) = store.append_many([entry("/a.mp4", seed=1, vectors=unit([0.0, 0, 1, 0]))])
    new_entry = entry("/a.mp4", frames=5, seed=2)
    new, other = store.append_many([new_entry, entry("/b.mp4", vectors=unit([0.0, 0, 0, 1]))])
    assert [r.path for r in store.videos()] == ["/a.mp4", "/b.mp4"]
    assert store.select(lambda r: r.path >= "/b") == [store.find("/b.mp4")]
    assert store.find("/a.mp4") == new
    assert new.id != old.id
    assert len(store.read(new.id)) == 5
    with pytest.raises(NotIndexedError):
        store.read(old.id)
    ids = set(store.nearest(unit([0.0, 0, 1, 0]), 5).video_ids[0].tolist())
    assert ids == {new.id, other.id, -1}


def test_update_changes_the_path_of_a_record(store: VectorStore) -> None:
    a, b = store.append_many([entry("/a.mp4"), entry("/b.mp4")])
    store.update([VideoRecord(**{**_fields(a), "path": "/c.mp4", "mtime_ns": 9})])
    assert store.find("/a.mp4") is None
    moved = store.find("/c.mp4")
    assert moved is not None
    assert (moved.id, moved.mtime_ns, moved.frames) == (a.id, 9, 3)
    assert len(store.read(a.id)) == 3
    with pytest.raises(InvalidArgumentError, match=f"cannot have the path /b.mp4, which belongs to video {b.id}"):
        store.update([VideoRecord(**{**_fields(moved), "path": "/b.mp4"})])
    with pytest.raises(NotIndexedError):
        store.update([VideoRecord(**{**_fields(moved), "id": 99})])


def test_ids_of_removed_videos_are_never_reused(store: VectorStore) -> None:
    a, b, c = store.append_many([entry(f"/{name}.mp4") for name in "abc"])
    store.remove([a.id, c.id, 12345])
    assert [r.id for r in store.videos()] == [b.id]
    assert set(store.nearest(unit([1.0, 0, 0, 0]), 5).video_ids[0].tolist()) == {b.id, -1}
    with pytest.raises(NotIndexedError):
        store.read(c.id)
    store.remove([b.id])
    assert store.videos() == []
    (d,) = store.append_many([entry("/d.mp4")])
    assert d.id > c.id


def test_inconsistent_entries_are_refused(store: VectorStore) -> None:
    good = entry("/a.mp4")
    with pytest.raises(InvalidArgumentError, match="must have counts of 4 frames and 1 windows, got 3 and 1"):
        store.append(good.record, features(4), good.windows)
    with pytest.raises(InvalidArgumentError, match="must have features and windows"):
        store.append(good.record)
    with pytest.raises(InvalidArgumentError, match="broken and cannot have features"):
        store.append(record("/b.mp4", status="broken", cause="x"), good.features, good.windows)
    with pytest.raises(InvalidArgumentError, match=r"windows of /.* must be \[W, E\] floating point, got \[1\] int64"):
        store.append(good.record, good.features, np.ones(1, np.int64))
    with pytest.raises(InvalidArgumentError, match="entries must have distinct paths, got the same path twice"):
        store.append_many([good, good])
    assert store.count() == 0


def test_records_are_validated() -> None:
    with pytest.raises(InvalidArgumentError, match="cause must be given for a broken or stale video"):
        record("/a", status="broken")
    with pytest.raises(InvalidArgumentError, match="status must be 'ok', 'broken' or 'stale', got 'new'"):
        record("/a", status="new")


@pytest.mark.large
def test_features_survive_many_commits_and_optimization(store: VectorStore) -> None:
    entries = [entry(f"/{n:03}.mp4", frames=2, seed=n) for n in range(150)]
    for part in entries:
        store.append(part.record, part.features, part.windows)
    store.optimize()
    back = store.read_many([r.id for r in store.videos()])
    for part, wanted in zip(back, entries, strict=True):
        assert wanted.features is not None
        assert same(part, wanted.features)
    assert store.window_count() == 150


# Operations that only a store on disk supports


def test_reopened_store_has_all_videos(disk: Callable[..., DiskStore]) -> None:
    first = disk()
    records = first.append_many([entry("/a.mp4", seed=1), entry("/b.mp4", seed=2)])
    first.remove([records[1].id])
    first.close()
    again = disk()
    assert again.videos() == [records[0]]
    wanted = entry("/a.mp4", seed=1).features
    assert wanted is not None
    assert same(again.read(records[0].id), wanted)
    assert again.append_many([entry("/c.mp4")])[0].id > records[1].id


def test_reader_keeps_its_snapshot_until_refresh(disk: Callable[..., DiskStore]) -> None:
    writer = disk()
    (a,) = writer.append_many([entry("/a.mp4", seed=1)])
    reader = disk()
    (b,) = writer.append_many([entry("/b.mp4")])
    writer.remove([a.id])
    assert [r.path for r in reader.videos()] == ["/a.mp4"]
    assert len(reader.read(a.id)) == 3
    assert set(reader.nearest(unit([1.0, 0, 0, 0]), 4).video_ids[0].tolist()) == {a.id, -1}
    assert reader.refresh() is True
    assert reader.refresh() is False
    assert [r.path for r in reader.videos()] == ["/b.mp4"]
    assert len(reader.read(b.id)) == 3


def remove_and_copy(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the first video, and copy the windows of the others to files without its rows."""
    monkeypatch.setattr("vidkin.index.storage.store._MAX_DEAD_ROWS", 0)
    monkeypatch.setattr("vidkin.index.storage.store._MAX_DEAD_RATIO", 0.1)
    store.remove([store.videos()[0].id])
    store.optimize()


def test_windows_of_removed_videos_are_dropped_when_copying(
    disk: Callable[..., DiskStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        entry(f"/{n}.mp4", seed=n, vectors=units(np.random.default_rng(n).normal(size=(n, 4)))) for n in (2, 1, 5)
    ]
    writer = disk()
    writer.append_many(entries)
    reader = disk()
    remove_and_copy(writer, monkeypatch)
    assert writer.recover() == 1
    for store in (writer, disk()):
        for given, kept in zip(entries[:1] + entries[2:], store.videos(), strict=True):
            assert given.windows is not None
            assert np.array_equal(store.read_windows(kept.id), given.windows.astype(np.float16))
        assert store.window_count() == 7
    assert sorted(path.name for path in (tmp_path / "store").glob("windows-*")) == ["windows-2.vectors"]
    assert (tmp_path / "store" / "windows-2.vectors").stat().st_size == 7 * 4 * 2
    # A reader of the old files finds that they are gone, and reopens.
    assert reader.count() == 3
    assert len(reader.read_windows(writer.videos()[1].id)) == 5
    assert reader.count() == 2
    (new,) = writer.append_many([entry("/new.mp4", vectors=unit([0.0, 0, 0, 1]))])
    assert writer.nearest(unit([0.0, 0, 0, 1]), 1).video_ids.tolist() == [[new.id]]


def test_reader_whose_files_are_replaced_keeps_its_snapshot(
    disk: Callable[..., DiskStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = disk()
    first, _ = writer.append_many([entry("/a.mp4", seed=1), entry("/b.mp4", vectors=unit([0.0, 1, 0, 0]))])
    reader = disk()
    remove_and_copy(writer, monkeypatch)
    assert reader.nearest(unit([1.0, 0, 0, 0]), 1).video_ids.tolist() == [[first.id]]
    assert len(reader.read_windows(first.id)) == 1


def fail(*_: object) -> None:
    raise OSError("no power")


def test_uncommitted_data_is_invisible_and_cleaned_up(
    disk: Callable[..., DiskStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = disk()
    (a,) = store.append_many([entry("/a.mp4")])
    with monkeypatch.context() as patch:
        patch.setattr("vidkin.index.storage.video_table.VideoTable.commit", fail)
        with pytest.raises(OSError, match="no power"):
            store.append_many([entry("/b.mp4", frames=7, seed=5)])
    assert len(list((tmp_path / "store" / "features").rglob("*.safetensors"))) == 2
    reader = disk()
    assert [r.path for r in reader.videos()] == ["/a.mp4"]
    assert set(reader.nearest(unit([1.0, 0, 0, 0]), 4).video_ids[0].tolist()) == {a.id, -1}
    writer = disk()
    assert writer.recover() == 1
    assert writer.recover() == 0
    (later,) = writer.append_many([entry("/c.mp4", seed=6)])
    assert stored_ids(writer) == [a.id, later.id]
    assert writer.window_count() == 2
    assert (tmp_path / "store" / "windows-1.vectors").stat().st_size == 2 * 4 * 2


def test_foreign_window_index_is_refused(disk: Callable[..., DiskStore]) -> None:
    store = disk()
    store.append_many([entry("/a.mp4")])
    other = entry("/b.mp4", vectors=unit([1.0, 0]))
    with pytest.raises(InvalidArgumentError, match=r"must have the same dimension, got \[2, 4\]"):
        store.append_many([other])
    assert store.count() == 1


def test_files_of_removed_videos_stay_readable_for_open_readers(
    disk: Callable[..., DiskStore],
) -> None:
    writer = disk()
    (a,) = writer.append_many([entry("/a.mp4")])
    reader = disk()
    writer.remove([a.id])
    writer.optimize()
    assert len(reader.read(a.id)) == 3
    assert disk().recover() == 1
    with pytest.raises(NotIndexedError, match=f"no video with id {a.id}"):
        reader.read(a.id)


def test_feature_files_are_readable_by_other_accounts(disk: Callable[..., DiskStore], tmp_path: Path) -> None:
    store = disk()
    (a,) = store.append_many([entry("/a.mp4", seed=3)])
    (path,) = (tmp_path / "store" / "features").rglob("*.safetensors")
    assert int(path.stem) == a.id
    content = load_file(path)
    assert sorted(content) == ["baseline", "information", "timestamps", "values"]
    assert content["values"].shape == (3, 2, 4)  # no axis for views, because there is only one
    assert np.array_equal(content["values"], store.read(a.id).whole)


def test_approximate_index_agrees_with_exact_search(disk: Callable[..., DiskStore]) -> None:
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

    store = disk(exact_below=1000)
    store.append_many(batch(0, 150))
    queries = units(centers[:20])
    exact = store.nearest(queries, 10)
    store.optimize()
    assert is_indexed(store)
    # Quantized scores differ by some thousandths, so the tenth of nearly equal windows may differ.
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
def test_approximate_index_returns_exact_cosines_after_additions(disk: Callable[..., DiskStore], since: str) -> None:
    generator = np.random.default_rng(3)
    vectors = units(generator.standard_normal((3000, 32), np.float32))
    entries = [entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 60))]
    store = disk(exact_below=1000)
    store.append_many(entries[:50])
    store.optimize()
    if since != "nothing":
        store.append_many(entries[50:])
    if since == "added and indexed":
        store.optimize()
    assert is_indexed(store)
    queries = units(generator.standard_normal((4, 32), np.float32))
    near = disk().nearest(queries, 40)
    assert np.array_equal(near.video_ids, store.nearest(queries, 40).video_ids)
    windows = {record.id: store.read_windows(record.id) for record in store.videos()}
    for query, ids, numbers, scores in zip(queries, near.video_ids, near.windows, near.scores, strict=True):
        found = [windows[video][number] for video, number in zip(ids.tolist(), numbers.tolist(), strict=True)]
        assert np.allclose(np.stack(found).astype(np.float32) @ query, scores, atol=1e-6)


def test_outgrown_approximate_index_is_rebuilt(disk: Callable[..., DiskStore], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.index.storage.window_index._ROWS_PER_PARTITION", 64)
    generator = np.random.default_rng(3)
    vectors = units(generator.standard_normal((3200, 16), np.float32))
    entries = [entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 32))]
    store = disk(exact_below=300)
    for first, last, partitions in ((0, 4, 6), (4, 8, 6), (8, 32, 50)):
        store.append_many(entries[first:last])
        store.optimize()
        assert len(load_file(tmp_index(store))["centroids"]) == partitions
    queries = vectors[::40]
    assert np.allclose(store.nearest(queries, 1).scores, 1.0, atol=1e-3)


@pytest.mark.parametrize("how", ["cut", "flipped", "zeros", "of more rows"])
def test_damaged_approximate_index_is_reported_and_rebuilt(disk: Callable[..., DiskStore], how: str) -> None:
    vectors = units(np.random.default_rng(1).standard_normal((300, 8), np.float32))
    store = disk(exact_below=100)
    store.append_many([entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 5))])
    store.optimize()
    path = tmp_index(store)
    content = path.read_bytes()
    arrays = load_file(path)
    match how:
        case "cut":
            path.write_bytes(content[:-100])
        case "zeros":
            path.write_bytes(bytes(len(content)))
        case "flipped":
            save_file(arrays | {"sizes": -arrays["sizes"]}, path)
        case _:
            save_file({name: np.concatenate([array] * 2) for name, array in arrays.items()}, path)
    reader = disk()
    with pytest.raises(CollectionDamagedError, match=r"windows-1\.index is damaged .*doctor --repair"):
        reader.nearest(vectors[:1], 1)
    store.optimize()
    again = disk(exact_below=100)
    again.optimize()
    assert again.nearest(vectors[:1], 1).scores[0, 0] == pytest.approx(1.0, abs=1e-3)


def test_neighbors_scattered_over_many_partitions_are_found(
    disk: Callable[..., DiskStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without clusters, the nearest of 6,000 windows lie in most of the 187 partitions.
    monkeypatch.setattr("vidkin.index.storage.window_index._ROWS_PER_PARTITION", 32)
    monkeypatch.setattr("vidkin.index.storage.window_index._PROBED", 128)
    generator = np.random.default_rng(0)
    vectors = units(generator.standard_normal((6000, 32), np.float32))
    store = disk(exact_below=1000)
    store.append_many([entry(f"/{n}.mp4", frames=1, vectors=part) for n, part in enumerate(np.split(vectors, 30))])
    queries = units(generator.standard_normal((20, 32), np.float32))
    exact = store.nearest(queries, 100)
    store.optimize()
    assert is_indexed(store)
    # The codes do not fit such vectors well.
    close = store.nearest(queries, 400)
    hits = [len(set(zip(*a, strict=True)) & set(zip(*b, strict=True))) for a, b in _pairs(exact, close)]
    assert sum(hits) / 2000 > 0.95


@pytest.mark.parametrize("dimension", [6, 7, 9])
def test_approximate_index_takes_vectors_of_any_dimension(disk: Callable[..., DiskStore], dimension: int) -> None:
    store = disk(exact_below=100)
    vectors = units(np.random.default_rng(2).standard_normal((400, dimension), np.float32))
    store.append(entry("/a.mp4", frames=1, vectors=vectors).record, features(1), vectors)
    store.optimize()
    assert is_indexed(store)
    assert np.allclose(disk().nearest(vectors[::20], 1).scores, 1.0, atol=1e-3)


def test_approximate_index_does_not_return_removed_videos(disk: Callable[..., DiskStore]) -> None:
    store = disk(exact_below=100)
    vectors = units(np.random.default_rng(1).standard_normal((60, 8), np.float32))
    records = store.append_many([entry(f"/{n}.mp4", frames=1, vectors=vectors) for n in range(5)])
    store.optimize()
    store.remove([records[0].id, records[1].id])
    neighbors = store.nearest(vectors[:1], 100)
    assert {records[0].id, records[1].id}.isdisjoint(neighbors.video_ids[0].tolist())
    assert int((neighbors.video_ids >= 0).sum()) == 100


def tmp_index(store: DiskStore) -> Path:
    """The file of the approximate index."""
    return store._windows.index_path


def is_indexed(store: DiskStore) -> bool:
    return tmp_index(store).exists()


def _pairs(exact: object, close: object) -> list[tuple[tuple[list[int], ...], tuple[list[int], ...]]]:
    def rows(table: object) -> list[tuple[list[int], ...]]:
        ids, numbers = table.video_ids.tolist(), table.windows.tolist()  # type: ignore[attr-defined]
        return list(zip(ids, numbers, strict=True))

    return list(zip(rows(exact), rows(close), strict=True))


def _fields(given: VideoRecord) -> dict[str, object]:
    return {name: getattr(given, name) for name in VideoRecord.__dataclass_fields__}
