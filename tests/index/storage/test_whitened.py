"""Windows that are whitened while they are stored and compared, and come back as they were."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.index.helpers import PLAIN, units, video
from tests.index.storage.test_stores import record
from vidkin.errors import CollectionDamagedError, CollectionError, InvalidArgumentError
from vidkin.index import (
    DiskStore,
    Entry,
    Index,
    Manifest,
    Place,
    Query,
    SerialExecutor,
    VectorStore,
    WindowVectors,
    WindowWhitening,
    WorkerSpec,
    distinct_windows,
    open_place,
    repair,
    to_stored,
    window_vectors,
)
from vidkin.index.query import common
from vidkin.index.query.candidates import find_turned
from vidkin.index.query.query import QueryTurns
from vidkin.index.storage import whitening
from vidkin.index.storage.files import WHITENING_FILE
from vidkin.index.storage.manifest import create_index
from vidkin.index.storage.whitening import read_whitening, write_whitening
from vidkin.similarity import FrameFeatures, PairScore

# As much along the first axis as four times along the second: its root, 2, is taken off, and of that the root.
CROSS = np.array([[1.0, 0], [-1, 0], [0, 0.5], [0, -0.5]])
BOXES = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1], [0.5, 0, 1, 1]], np.float32)


def whitening_of(dimension: int = 8) -> WindowWhitening:
    """Some whitening, with a mean."""
    draw = np.random.default_rng(3)
    return WindowWhitening.fit(units(draw.normal(size=(200, dimension)) * np.arange(1, dimension + 1) + 2), 0.5)


def windows_of(vectors: NDArray[np.floating]) -> WindowVectors:
    numbers = np.arange(len(vectors))
    return WindowVectors(vectors, numbers.astype(float), numbers + 1.0, numbers, numbers)


def entry(name: str, vectors: NDArray[np.floating]) -> Entry:
    count = len(vectors)
    features = FrameFeatures.of_whole(vectors[:, None], np.arange(float(count)), np.ones(count, np.float32))
    return Entry(record(name, frames=count, windows=count), features, windows_of(vectors))


@pytest.fixture
def store(tmp_path: Path) -> VectorStore:
    return DiskStore(open_place(tmp_path), whitening=whitening_of)


def test_whitening_reduces_directions_of_high_variance() -> None:
    white = WindowWhitening.fit(CROSS, 0.5)
    # Between the axes before; after it the first is shorter by the root of two.
    found = white.apply(np.array([[0.5**0.5, 0.5**0.5]], np.float32))
    assert found[0].tolist() == pytest.approx([(1 / 3) ** 0.5, (2 / 3) ** 0.5], abs=1e-6)


def test_whitened_vectors_are_restored() -> None:
    white = whitening_of(16)
    assert 0.1 < np.linalg.norm(white.mean) < 1
    vectors = units(np.random.default_rng(0).normal(size=(50, 16)))
    whitened = white.apply(vectors)
    assert np.abs(whitened - vectors).max() > 0.1
    np.testing.assert_allclose(np.linalg.norm(whitened, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(white.restore(whitened), vectors, atol=2e-6)
    np.testing.assert_allclose(white.restore(whitened.astype(np.float16)), vectors, atol=5e-3)


def test_store_compares_whitened_windows_and_returns_originals(store: VectorStore) -> None:
    vectors = units(np.random.default_rng(1).normal(size=(12, 8)))
    records = store.append_many([entry(f"/{n}.mp4", vectors[n * 3 : n * 3 + 3]) for n in range(4)])
    assert store.is_whitened
    wanted = whitening_of().apply(vectors)
    for _ in range(2):  # from the tables, then from the copy of them
        nearest = store.nearest(vectors[4:5], 12)
        assert (int(nearest.video_ids[0, 0]), int(nearest.windows[0, 0])) == (records[1].id, 1)
        np.testing.assert_allclose(nearest.scores[0], np.sort(wanted @ wanted[4])[::-1], atol=2e-3)
        back = store.read_windows_many([one.id for one in records])
        np.testing.assert_allclose(np.concatenate([one.vectors for one in back]), vectors, atol=5e-3)
        assert {one.vectors.dtype for one in back} == {np.dtype(np.float16)}
        assert back[2].starts.tolist() == [0.0, 1.0, 2.0]
        store.optimize()
    with pytest.raises(InvalidArgumentError, match="query vectors must have dimension 8 as the index has, got 3"):
        store.nearest(np.ones((1, 3), np.float32), 1)


def test_video_without_windows_stays_empty(store: VectorStore) -> None:
    vectors = units(np.random.default_rng(1).normal(size=(3, 8)))
    some, none = store.append_many([entry("/a.mp4", vectors), entry("/b.mp4", vectors[:0])])
    assert [len(one) for one in store.read_windows_many([none.id, some.id])] == [0, 3]


def test_rebuilt_windows_are_whitened_again(tmp_path: Path) -> None:
    vectors = units(np.random.default_rng(1).normal(size=(3, 8)))
    store = DiskStore(open_place(tmp_path), whitening=whitening_of)
    (made,) = store.append_many([entry("/a.mp4", vectors)])
    before = store.nearest(vectors, 3).scores
    (tmp_path / "windows-1.vectors").unlink()
    assert store.missing() == {made.id: "it has 0 of its 3 windows"}
    store.recover()
    np.testing.assert_allclose(store.nearest(vectors, 3).scores, before, atol=2e-3)


def test_near_duplicate_parts_are_omitted_within_each_minute() -> None:
    axes = np.eye(4, dtype=np.float32)
    near = units(axes[1] + 0.75 * axes[2])  # cosine .8 with the second axis, .6 with the third
    rows = [
        (axes[0], 0, 5), (axes[0], 6, 9),  # the whole picture: both stay
        (near, 0, 4), (axes[3], 5, 9),  # a part
        (axes[1], 0, 9),  # a part for longer, in place of which the first is left out
        (axes[2], 0, 4),  # another that is .6 like the one that is left out, and like none that stays
        (axes[1], 60, 64),  # the same in the next minute
    ]  # fmt: skip
    first, last = (np.array([row[at] for row in rows]) for at in (1, 2))
    windows = WindowVectors(np.stack([row[0] for row in rows]), first * 1.0, last + 1.0, first, last)
    assert distinct_windows(windows, windows.vectors, 0.6).tolist() == [0, 1, 3, 4, 5, 6]
    assert distinct_windows(windows, windows.vectors, 0.81).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert distinct_windows(windows.of_rows(np.arange(0)), windows.vectors[:0], 0.6).tolist() == []


def test_store_of_distinct_windows_counts_them_and_returns_all(tmp_path: Path) -> None:
    axes = np.eye(4, dtype=np.float32)
    values = np.stack([axes[0], axes[1], units(axes[1] + 0.75 * axes[2])])[None, :, None]
    features = FrameFeatures(values, np.zeros(1), np.ones(1, np.float32), "", np.zeros((1, 3), np.float32), BOXES[None])
    store = DiskStore(open_place(tmp_path), distinct=0.6)
    windows = window_vectors(to_stored(features))
    (made,) = store.append_many([Entry(record("/a.mp4", frames=1, windows=3), to_stored(features), windows)])
    assert (made.windows, store.get(made.id).windows, store.window_count()) == (2, 2, 2)
    assert store.nearest(axes[1:2], 3).windows.tolist() == [[1, 0, -1]]
    np.testing.assert_allclose(store.read_windows(made.id).vectors, windows.vectors, atol=1e-3)
    (tmp_path / "windows-1.vectors").unlink()
    assert store.missing() == {made.id: "it has 0 of its 2 windows"}
    store.recover()
    assert store.get(made.id).windows == 2
    assert store.missing() == {}


def test_whitening_file_round_trip_and_damage(tmp_path: Path) -> None:
    place: Place = open_place(tmp_path)
    with pytest.raises(CollectionDamagedError, match=r"windows\.safetensors is missing; run `vidkin doctor --repair`"):
        read_whitening(place)
    write_whitening(place, whitening_of())
    assert np.array_equal(read_whitening(place).turn, whitening_of().turn)
    write_whitening(place, WindowWhitening(np.ones(8, np.float32), whitening_of().turn))
    with pytest.raises(CollectionDamagedError, match="its values are not what was written"):
        read_whitening(place)
    (tmp_path / WHITENING_FILE).write_bytes(b"{}")
    with pytest.raises(CollectionDamagedError, match=r"windows\.safetensors is damaged"):
        read_whitening(place)


def test_only_extractors_with_a_large_shipped_background_are_whitened(tmp_path: Path) -> None:
    for name in ("vidkin", "vidkin?views=none", "classical"):
        create_index(open_place(tmp_path / name), WorkerSpec(name))
    create_index(open_place(tmp_path / "plain"), PLAIN, store="other", distinct=0.6)
    create_index(open_place(tmp_path / "other"), WorkerSpec("vidkin"), store="other", distinct=0.6)
    made = {path.name: Manifest.read(open_place(path)) for path in tmp_path.iterdir()}
    assert {name: manifest.whitened for name, manifest in made.items()} == {
        "vidkin": 0.5,
        "vidkin?views=none": 0.0,
        "classical": 0.0,
        "plain": 0.0,
        "other": 0.5,
    }
    assert {name: manifest.distinct for name, manifest in made.items() if manifest.distinct < 1} == {"other": 0.6}
    assert {path.parent.name for path in tmp_path.rglob(WHITENING_FILE)} == {"vidkin", "other"}


@pytest.mark.parametrize(
    ("name", "value"),
    [*(("whitened", value) for value in (-0.5, 2, "half", True)), *(("distinct", value) for value in (0, 1.5, "x"))],
)
def test_manifest_with_invalid_power_or_cosine_is_damaged(tmp_path: Path, name: str, value: object) -> None:
    text = json.dumps({"format_version": 6, "extractor": "x", "fingerprint": "x-1", name: value})
    (tmp_path / "collection.json").write_text(text)
    with pytest.raises(CollectionError, match=rf"is damaged \({name} is"):
        Manifest.read(open_place(tmp_path))


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("clips")
    return [
        video(folder / f"{name}.mp4", seed=seed, frames=frames)
        for name, seed, frames in (("a", 0, 10), ("a-longer", 0, 15), ("b", 1, 10))
    ]


def made_of(folder: Path, clips: list[Path], store: str = "disk") -> Index:
    with Index.open(folder, create=True, store=store) as index:
        index.add(clips, executor=SerialExecutor(index.worker_spec))
    return Index.open(folder)


def test_whitened_and_plain_indexes_give_the_same_results(
    tmp_path: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = made_of(tmp_path / "new", clips)
    monkeypatch.setattr(whitening, "fit_whitening", lambda _: None)
    old = made_of(tmp_path / "old", clips)
    assert [index.store.is_whitened for index in (new, old)] == [True, False]
    assert sorted(set(os.listdir(tmp_path / "new")) - set(os.listdir(tmp_path / "old"))) == [WHITENING_FILE]
    found, counts = [], []
    for index in (new, old):
        matches = [(Path(one.path).name, one.score, one.segments) for one in index.search(clips[0])]
        groups = [[Path(member.path).name for member in group.members] for group in index.duplicates(parts=True)]
        windows = [index.store.read_windows(one.id).vectors.astype(np.float32) for one in index.videos()]
        found.append((matches, groups, np.concatenate(windows)))
        counts.append(index.info().windows)
        index.close()
    assert counts == [len(found[0][2])] * 2
    assert [name for name, _, _ in found[0][0]][:2] == ["a.mp4", "a-longer.mp4"]
    assert found[0][:2] == found[1][:2]
    np.testing.assert_allclose(found[0][2], found[1][2], atol=5e-3)


@pytest.mark.thorough
def test_lost_whitening_is_repaired_with_all_windows(tmp_path: Path, clips: list[Path]) -> None:
    index = made_of(tmp_path, clips[:1])
    before = [(one.path, one.score) for one in index.search(clips[0])]
    index.close()
    (tmp_path / WHITENING_FILE).unlink()
    with Index.open(tmp_path) as index, pytest.raises(CollectionDamagedError, match="doctor --repair"):
        index.search(clips[0])
    parts = [Path(part.part).name for part in repair(open_place(tmp_path))]
    assert parts == [WHITENING_FILE, "windows-1.vectors"]
    with Index.open(tmp_path) as index:
        assert [(one.path, one.score) for one in index.search(clips[0])] == before
    assert repair(open_place(tmp_path)) == ()


def test_common_windows_are_recognized_by_content(tmp_path: Path) -> None:
    """Four strangers with an intro: three show the same, one something that is only alike when whitened."""
    axes = np.eye(32, dtype=np.float32)
    white = WindowWhitening(np.zeros(32, np.float32), np.diag(np.r_[np.full(31, 1.0), 3.0]).astype(np.float32))
    near = units(axes[31] + 0.7 * axes[30])  # cosine .82, whitened .97
    store = DiskStore(open_place(tmp_path), whitening=lambda: white)
    intros = [axes[31], axes[31], axes[31], near]
    videos = [np.stack([intro, *axes[6 * n : 6 * n + 6]]) for n, intro in enumerate(intros)]
    ids = [one.id for one in store.append_many([entry(f"/{n}.mp4", own) for n, own in enumerate(videos)])]
    assert len(common.find_common(store, ids, minimum=3)) == 0
    assert len(common.find_common(store, ids, minimum=2)) == 3


def turned_once(look: NDArray[np.float32]) -> QueryTurns:
    """A query of which one frame was described, turned by 90 degrees and not flipped."""
    seen = FrameFeatures.of_whole(look[None, None], np.zeros(1), np.ones(1, np.float32))
    return QueryTurns(lambda degrees, flip: seen if (degrees, flip) == (90, False) else None, lambda _: Query(seen))


def test_rotated_previews_use_whitened_cosines(tmp_path: Path) -> None:
    axes = np.eye(8, dtype=np.float32)
    white = WindowWhitening(np.zeros(8, np.float32), np.diag([0.5, *[1.0] * 7]).astype(np.float32))
    # Cosines of .72 and .64, whitened .46 and .38: one is above .4, both are above .6 as they were.
    looks = [units(axes[0] + 0.97 * axes[1]), units(axes[0] + 1.2 * axes[1])]
    asked: list[list[int]] = []

    def ask(query: Query, ids: Sequence[int]) -> list[tuple[int, PairScore]]:
        asked.append([*ids])
        return []

    store = DiskStore(open_place(tmp_path), whitening=lambda: white)
    store.append_many([entry("/a.mp4", axes[:1])])
    for look in looks:
        find_turned(store, turned_once(look), {}, ask, ask)
    assert [len(ids) for ids in asked] == [1, 0]
