"""Candidates of many videos at once: the same as by hand, after turns, and no more than are alike."""

from __future__ import annotations

import errno
import pickle

import numpy as np
import pytest
from vidkin.index.duplicates.signatures import Signatures

import vidkin.index.duplicates.pairing as pairing
from vidkin.errors import NotIndexedError
from vidkin.features import Turn
from vidkin.index import CommonFrames, Comparisons, Entry, MemoryStore, VideoRecord, window_vectors
from vidkin.index.duplicates import signatures
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.storage.records import unit_vectors
from vidkin.similarity import CopyScorer, FrameFeatures

SCENES, DIMENSION = 6, 64


def described(name: str, values: np.ndarray) -> Entry:
    """A video of a frame a second; values [T, V, D], the whole picture first."""
    frames, views = values.shape[:2]
    stored = unit_vectors(values[:, :, None]).astype(np.float16)
    boxes = np.tile(np.array([0.0, 0.0, 1.0, 1.0], np.float16), (frames, views, 1))
    features = FrameFeatures(
        stored, np.arange(float(frames)), np.ones(frames, np.float32), boxes=boxes if views > 1 else None
    )
    windows = window_vectors(features)
    facts = {"duration": float(frames), "frames": frames, "windows": len(windows)}
    record = VideoRecord(path=f"/{name}.mp4", size=1, mtime_ns=1, content_hash=name, **facts)  # type: ignore[arg-type]
    return Entry(record, features, windows)


def scenes(generator: np.random.Generator, views: int = 1) -> np.ndarray:
    return generator.normal(size=(SCENES, views, DIMENSION))


def test_a_crop_is_found_by_the_part_that_it_shows_and_the_whole_by_its_parts() -> None:
    generator = np.random.default_rng(0)
    film = scenes(generator, views=3)
    crop = np.concatenate([film[:, 2:], scenes(generator, views=2)], axis=1)
    store = MemoryStore()
    entries = [described("film", film), described("crop", crop)]
    records = store.append_many([*entries, *(described(f"other {n}", scenes(generator, 3)) for n in range(20))])
    one, other, *_ = [record.id for record in records]
    signatures = Signatures.of(store, [record.id for record in records])
    assert dict(signatures.neighbors([other], 5))[other][0] == one
    assert one not in dict(signatures.neighbors([other], 5))
    assert other not in dict(signatures.neighbors([one], 5))[one][:1]
    assert dict(signatures.neighbors([one], 5, both=True))[one][0] == other


def test_what_is_found_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    store = MemoryStore()
    records = store.append_many([described(str(n), scenes(generator)) for n in range(40)])
    ids = [record.id for record in records]
    whole = list(Signatures.of(store, ids).neighbors(ids, 3))
    monkeypatch.setattr("vidkin.index.duplicates.signatures._VIDEOS_A_BLOCK", 7)
    monkeypatch.setattr("vidkin.index.duplicates.signatures._ROWS_AT_ONCE", 9)
    monkeypatch.setattr("vidkin.index.duplicates.signatures._VIDEOS_AT_ONCE", 11)
    monkeypatch.setattr("vidkin.index.duplicates.signatures._VIEWS_AT_ONCE", 5)
    assert list(Signatures.of(store, ids).neighbors(ids, 3)) == whole
    assert [video for video, _ in whole] == ids
    assert all(video not in near and len(near) <= 3 for video, near in whole)


@pytest.mark.parametrize("count", [1, 4, 60])
def test_neighbors_are_those_that_comparing_all_one_by_one_finds(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are equally near: the second half of the videos is the first once more."""
    generator = np.random.default_rng(2)
    store = MemoryStore()
    shown = [scenes(generator) for _ in range(20)]
    ids = [record.id for record in store.append_many([described(str(n), shown[n % 20]) for n in range(40)])]
    monkeypatch.setattr("vidkin.index.duplicates.signatures._VIDEOS_AT_ONCE", 7)
    signatures = Signatures.of(store, ids)
    found = dict(signatures.neighbors(ids, count))
    for row, video in enumerate(ids):
        cosines = signatures.views @ signatures.views[signatures.firsts[row]]
        ends = [*signatures.firsts[1:].tolist(), len(cosines)]
        best = {
            other: max(cosines[first:end])
            for other, first, end in zip(ids, signatures.firsts.tolist(), ends, strict=True)
            if other != video
        }
        alike = [other for other in ids if other != video and best[other] >= 0.25]
        assert found[video] == sorted(alike, key=lambda other: (-round(float(best[other]), 5), other))[:count]


@pytest.mark.parametrize("shape", [(), (3,)])
def test_rows_of_many_blocks_are_joined_from_a_few_pieces(monkeypatch: pytest.MonkeyPatch, shape: tuple[int]) -> None:
    """Pieces of 40 and up to 100 bytes in place of one for each block."""
    monkeypatch.setattr(signatures, "_SMALLEST_PIECE", 40)
    monkeypatch.setattr(signatures, "_LARGEST_PIECE", 100)
    blocks = [
        np.random.default_rng(size).normal(size=(size, *shape)).astype(np.float32) for size in [1, 0, 7, 30, 2] * 4
    ]
    rows = signatures._Rows[np.float32]()
    for block in blocks:
        rows.add(block)
    assert all(piece.nbytes <= 100 for piece in rows._pieces)
    joined = rows.join()
    assert np.array_equal(joined, np.concatenate(blocks))
    assert (joined.dtype, rows._pieces) == (np.float32, [])


def test_after_a_turn_the_prediction_is_compared_with_the_others_as_they_are() -> None:
    generator = np.random.default_rng(2)
    axes = np.linalg.qr(generator.normal(size=(DIMENSION, DIMENSION)))[0]
    film = scenes(generator)
    store = MemoryStore()
    turned = described("turned", film @ axes)
    records = store.append_many(
        [described("film", film), turned, *(described(f"{n}", scenes(generator)) for n in range(9))]
    )
    film_id, turned_id = records[0].id, records[1].id
    asked: list[Turn] = []

    def predict(features: FrameFeatures, turn: Turn) -> FrameFeatures | None:
        asked.append(turn)
        if turn == "turned 180":
            return None
        return FrameFeatures.of_whole(features.whole @ axes, features.timestamps)

    signatures = Signatures.of(store, [record.id for record in records], predict, ["turned 90", "turned 180"])
    assert set(asked) == {"turned 90", "turned 180"}
    assert set(signatures.turned) == {"turned 90"}
    assert dict(signatures.neighbors([film_id], 1, turn="turned 90"))[film_id] == [turned_id]
    assert dict(signatures.neighbors([film_id], 1, turn="turned 180"))[film_id] == []


def test_videos_without_windows_have_no_neighbors_and_those_removed_are_named() -> None:
    store = MemoryStore()
    black = described("black", np.zeros((SCENES, 1, DIMENSION)))
    records = store.append_many([black, described("film", scenes(np.random.default_rng(3)))])
    ids = [record.id for record in records]
    assert dict(Signatures.of(store, ids).neighbors(ids, 3)) == {ids[0]: [], ids[1]: []}
    store.remove(ids[:1])
    with pytest.raises(NotIndexedError):
        Signatures.of(store, ids)


def test_many_videos_are_compared_without_a_search_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same copies, and as many videos added later looked up the same way."""
    monkeypatch.setattr(pairing, "_FEWEST_JOINED", 20)
    generator = np.random.default_rng(4)
    store = MemoryStore()
    films = [scenes(generator) for _ in range(24)]
    store.append_many([described(f"film {n}", film) for n, film in enumerate(films)])
    monkeypatch.setattr(store, "nearest", lambda *arguments: pytest.fail("a search"))
    known = Comparisons()
    PairSearch(store, CommonFrames(), CopyScorer(), known).run(store.videos(), threshold=0.7)
    assert not [pair for pair in known.pairs() if pair[2].score >= 0.3]
    store.append_many([described(f"copy {n}", film[1:]) for n, film in enumerate(films)])
    PairSearch(store, CommonFrames(), CopyScorer(), known).run(store.videos(), threshold=0.7)
    copies = {(first, second) for first, second, result in known.pairs() if result.score >= 0.7}
    assert copies == {(f"copy {n}", f"film {n}") for n in range(24)}
    assert len(known.searched) == 48


@pytest.mark.parametrize(("added", "expected"), [(5, "a search each"), (12, "all at once")])
def test_few_of_very_many_are_looked_up_by_a_search_each(
    added: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "_FEWEST_JOINED", 20)
    monkeypatch.setattr(pairing, "_SHARE_ASKING", 4)
    generator = np.random.default_rng(6)
    store = MemoryStore()
    films = [scenes(generator) for _ in range(30)]
    store.append_many([described(f"film {n}", film) for n, film in enumerate(films)])
    known = Comparisons()
    PairSearch(store, CommonFrames(), CopyScorer(), known).run(store.videos(), threshold=0.7)
    store.append_many([described(f"copy {n}", films[n][1:]) for n in range(added)])
    searches, nearest = [], store.nearest
    monkeypatch.setattr(store, "nearest", lambda *arguments: searches.append(1) or nearest(*arguments))
    PairSearch(store, CommonFrames(), CopyScorer(), known).run(store.videos(), threshold=0.7)
    assert len(searches) >= added if expected == "a search each" else not searches
    copies = {(first, second) for first, second, result in known.pairs() if result.score >= 0.7}
    assert copies == {(f"copy {n}", f"film {n}") for n in range(added)}


def test_what_shares_nothing_for_a_while_stops_being_a_candidate_and_a_copy_stays_one() -> None:
    generator = np.random.default_rng(5)
    film = scenes(generator, views=3)
    # The means of both are alike, as they show one thing for a while each; so do the means of the film and its copy.
    copy = unit_vectors((film + 0.2 * generator.normal(size=film.shape))[:, :, None])[:, :, 0]
    store = MemoryStore()
    strangers = [described(f"other {n}", scenes(generator, 3)) for n in range(30)]
    records = store.append_many([described("film", film), described("copy", copy), *strangers])
    ids = [record.id for record in records]

    def no_baseline(vectors: np.ndarray) -> np.ndarray:
        return np.full(len(vectors), 0.2, np.float32)

    plain = dict(Signatures.of(store, ids).neighbors(ids, 5))
    sharing = dict(Signatures.of(store, ids, measure=no_baseline).neighbors(ids, 5))
    assert plain[ids[0]][0] == sharing[ids[0]][0] == ids[1]
    assert sharing[ids[1]][0] == ids[0]
    assert sum(map(len, sharing.values())) < sum(map(len, plain.values())) / 2
    assert all(set(sharing[video]) <= set(plain[video]) for video in ids)


def baseline_of(vectors: np.ndarray) -> np.ndarray:
    return np.full(len(vectors), 0.2, np.float32)


def same_way_round(features: FrameFeatures, turn: str) -> FrameFeatures:
    return features


def many_records(store: MemoryStore) -> list[int]:
    generator = np.random.default_rng(5)
    film = scenes(generator, views=3)
    copy = unit_vectors((film + 0.2 * generator.normal(size=film.shape))[:, :, None])[:, :, 0]
    strangers = [described(f"other {n}", scenes(generator, 3)) for n in range(30)]
    return [record.id for record in store.append_many([described("film", film), described("copy", copy), *strangers])]


def test_what_does_not_fit_into_memory_is_held_in_files_with_the_same_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    ids = many_records(store)
    monkeypatch.setattr("vidkin.index.duplicates.signatures._VIDEOS_A_BLOCK", 5)
    found = []
    for most in (1 << 30, 20_000, 0):
        monkeypatch.setattr("vidkin.index.duplicates.signatures._MOST_HELD", most)
        signatures = Signatures.of(store, ids, same_way_round, ["mirrored"], baseline_of)
        other = pickle.loads(pickle.dumps(signatures))  # as other processes get it
        found += [
            list(each.neighbors(ids, 5, turn=turn)) for each in (signatures, other) for turn in (None, "mirrored")
        ]
    assert found == 3 * [found[0], found[1], found[0], found[1]]
    assert dict(found[0])[ids[0]] == [ids[1]]


def test_where_the_disk_is_full_all_candidates_are_compared(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    ids = many_records(store)

    def full(**options: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vidkin.index.duplicates.signatures._MOST_HELD", 0)
    monkeypatch.setattr("vidkin.index.duplicates.signatures.TemporaryFile", full)
    with caplog.at_level("INFO"):
        signatures = Signatures.of(store, ids, measure=baseline_of)
    assert "No space left on device; all candidates are compared, which takes longer" in caplog.text
    assert list(signatures.neighbors(ids, 5)) == list(Signatures.of(store, ids).neighbors(ids, 5))


@pytest.mark.parametrize("added", [4, 5])
def test_five_videos_added_to_many_are_compared_at_once_and_fewer_by_a_search_each(
    monkeypatch: pytest.MonkeyPatch, added: int
) -> None:
    monkeypatch.setattr(pairing, "_FEWEST_JOINED", 20)
    generator = np.random.default_rng(6)
    store = MemoryStore()
    films = [scenes(generator) for _ in range(24)]
    store.append_many([described(f"film {n}", film) for n, film in enumerate(films)])
    known = Comparisons()
    PairSearch(store, CommonFrames(), CopyScorer(), known).run(store.videos(), threshold=0.7)
    store.append_many([described(f"copy {n}", films[n][1:]) for n in range(added)])
    searches = []
    nearest = store.nearest
    monkeypatch.setattr(store, "nearest", lambda *arguments: searches.append(arguments) or nearest(*arguments))
    PairSearch(store, CommonFrames(), CopyScorer(), known).run(store.videos(), threshold=0.7)
    copies = {(first, second) for first, second, result in known.pairs() if result.score >= 0.7}
    assert copies == {(f"copy {n}", f"film {n}") for n in range(added)}
    assert len(searches) == (4 if added == 4 else 0)


def test_of_videos_that_nothing_is_like_no_features_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_FEWEST_JOINED", 20)
    generator = np.random.default_rng(8)
    store = MemoryStore()
    films = [scenes(generator) for _ in range(24)]
    store.append_many([described(f"film {n}", film) for n, film in enumerate(films)])
    store.append_many([described("copy", films[3])])
    read: list[int] = []
    read_many = store.read_many
    monkeypatch.setattr(store, "read_many", lambda ids: read.extend(ids) or read_many(ids))
    known = Comparisons()
    PairSearch(store, CommonFrames(), CopyScorer(), known).run(store.videos(), threshold=0.7)
    names = {record.id: record.path for record in store.videos()}
    # Some others may be a little like another one: the mean of six random scenes.
    assert {"/film 3.mp4", "/copy.mp4"} <= {names[video] for video in read}
    assert len(set(read)) < len(names) / 2
    assert len(known.searched) == len(names)
