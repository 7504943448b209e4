"""Search, common frames, duplicates, recall and decisions on an in-memory store."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.index.helpers import units
from tests.match.footage import verifier
from vidkin.errors import CollectionError, InvalidArgumentError, NotIndexedError
from vidkin.index import (
    Comparisons,
    Decisions,
    DuplicateGroup,
    FileRecord,
    Match,
    MemoryStore,
    VideoRecord,
    open_place,
    window_vectors,
)
from vidkin.index.duplicates.comparisons import relation_of
from vidkin.index.duplicates.find import find_duplicates
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.stage_recall import measure_recall
from vidkin.index.query.stages import find_matches
from vidkin.index.query.stored import FeatureCache, prepare_features
from vidkin.match import VerifiedScorer
from vidkin.similarity import FrameFeatures

Vectors = NDArray[np.float32]
SCORER = VerifiedScorer(verifier())


def frames(count: int, seed: int) -> Vectors:
    generator = np.random.default_rng(seed)
    return units(generator.standard_normal((count, 4, 64), np.float32))


def add(store: MemoryStore, name: str, values: Vectors, part: Vectors | None = None, **record: object) -> int:
    """Add a video described by its whole frames, and optionally by a part of them."""
    views = np.stack([values] if part is None else [values, part], axis=1).astype(np.float16)
    boxes = np.array([(0.0, 0.0, 1.0, 1.0), (0.5, 0.5, 1.0, 1.0)])[: views.shape[1]]
    stored = FrameFeatures(
        views,
        np.arange(len(values), dtype=np.float64),
        np.ones(len(values), np.float32),
        baseline=np.full(views.shape[:2], 0.25),
        boxes=np.tile(boxes, (len(values), 1, 1)),
    )
    windows = window_vectors(stored)
    given: dict[str, object] = {
        "path": f"/videos/{name}.mp4",
        "size": 1000,
        "mtime_ns": 1,
        "content_hash": name,
        "duration": float(len(values)),
        "width": 320,
        "height": 240,
        "frames": len(values),
        "windows": len(windows),
        **record,
    }
    return store.append(VideoRecord(**given), stored, windows).id  # type: ignore[arg-type]


@pytest.fixture
def store() -> MemoryStore:
    filled = MemoryStore()
    for seed in range(12):
        add(filled, f"video {seed:02d}", frames(10 + seed, seed))
    return filled


def query(store: MemoryStore, video_id: int) -> FrameFeatures:
    return prepare_features(store.read(video_id))


def search(store: MemoryStore, asked: FrameFeatures, **options: float) -> list[Match]:
    return find_matches(store, asked, SCORER, **options)  # type: ignore[arg-type]


def test_features_are_cached_up_to_the_size_limit(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    read_many = store.read_many

    def read(video_ids: Sequence[int]) -> list[FrameFeatures]:
        asked.extend(video_ids)
        return read_many(video_ids)

    monkeypatch.setattr(store, "read_many", read)
    ids = [record.id for record in store.videos()][:3]
    size = 2 * store.read(ids[0]).values.astype(np.float32).nbytes
    held = FeatureCache(4 * size)
    asked.clear()
    first = held.read(store, ids)
    assert [len(features) for features in first] == [10, 11, 12]
    again = held.read(store, [ids[2], ids[0]])
    assert (again[0] is first[2], again[1] is first[0], asked) == (True, True, ids)
    # The least recently used features are evicted; features that would fill the whole cache are not cached.
    others = [record.id for record in store.videos()][3:6]
    held.read(store, others)
    asked.clear()
    assert held.read(store, [ids[0]])[0] is not first[0]
    assert asked == [ids[0]]
    FeatureCache(1).read(store, ids)
    with pytest.raises(NotIndexedError):
        held.read(store, [10**6])


def duplicates(store: MemoryStore, decisions: Decisions, **options: Any) -> list[DuplicateGroup]:
    files = [FileRecord(record) for record in store.videos()]
    pairs = PairSearch(store, SCORER, Comparisons())
    return find_duplicates(files, pairs, decisions, **options)


def identity(store: MemoryStore, name: str) -> int:
    record = store.find(f"/videos/{name}.mp4")
    assert record is not None
    return record.id


def test_video_finds_only_itself(store: MemoryStore) -> None:
    for record in store.videos():
        matches = search(store, query(store, record.id))
        assert [match.path for match in matches] == [record.path]
        assert matches[0].score > 0.95
        assert matches[0].video_id == record.id


def test_copies_are_ordered_by_score(store: MemoryStore) -> None:
    source = frames(16, 100)
    wanted = add(store, "source", source)
    for name, noise in (("near", 0.04), ("far", 0.09)):
        noisy = source + noise * np.random.default_rng(1).standard_normal((16, 4, 64), np.float32)
        add(store, name, units(noisy))
    matches = search(store, query(store, wanted))
    assert [match.path for match in matches] == [f"/videos/{n}.mp4" for n in ("source", "near", "far")]
    assert matches[0].score > matches[1].score > matches[2].score > 0.3
    kept = search(store, query(store, wanted), threshold=matches[1].score - 1e-9)
    assert len(kept) == 2
    assert len(search(store, query(store, wanted), limit=1)) == 1


def test_limit_only_truncates_the_list(store: MemoryStore) -> None:
    source = frames(16, 100)
    for number in range(12):
        noise = 0.02 * number * np.random.default_rng(number).standard_normal((16, 4, 64), np.float32)
        add(store, f"copy {number:02}", units(source + noise))
    asked = query(store, identity(store, "copy 02"))
    every = search(store, asked, limit=100)
    assert len(every) >= 12
    for limit in range(1, len(every) + 1):
        assert search(store, asked, limit=limit) == every[:limit]


def test_out_of_range_arguments_are_refused(store: MemoryStore) -> None:
    asked = query(store, 1)
    with pytest.raises(InvalidArgumentError, match="limit and candidates must be at least 1, got 0 and 100"):
        search(store, asked, limit=0)
    with pytest.raises(InvalidArgumentError, match=r"threshold must be in \[0, 1\], got 1.5"):
        search(store, asked, threshold=1.5)


def test_candidates_are_at_most_the_requested_number(store: MemoryStore) -> None:
    assert len(find_candidates(store, query(store, 1), 5)) == 5
    assert find_candidates(store, query(store, 1), 5)[0] == 1


def test_duplicates_are_grouped_with_the_best_copy_first(store: MemoryStore) -> None:
    film = frames(15, 200)
    add(store, "small", film, width=320, height=180)
    add(store, "large", film, width=1920, height=1080, content_hash="other bytes")
    add(store, "large twin", film, width=1920, height=1080, size=900)
    steps: list[tuple[int, int]] = []
    groups = duplicates(store, Decisions(), on_progress=lambda done, total: steps.append((done, total)))
    assert [[Path(m.path).stem for m in group.members] for group in groups] == [["large", "large twin", "small"]]
    assert Path(groups[0].best.path).stem == "large"
    assert steps[-1] == (115, 115)  # 15 videos in total, 4 of them in one group
    with pytest.raises(InvalidArgumentError, match="threshold must be above 0 and at most 1, got 0"):
        duplicates(store, Decisions(), threshold=0)


def test_decisions_join_and_split_groups(tmp_path: Path) -> None:
    store = MemoryStore()
    film = frames(15, 200)
    for name in ("one", "two", "three"):
        add(store, name, film)
    add(store, "stranger", frames(15, 201))
    decisions = Decisions()
    decisions.decide("one", "two", "not a match")
    decisions.decide("three", "stranger", "match")
    decisions.save(open_place(tmp_path))
    groups = duplicates(store, Decisions.open(open_place(tmp_path)))
    for group in groups:
        assert not {"/videos/one.mp4", "/videos/two.mp4"} <= {member.path for member in group.members}
    joined = next(g for g in groups if "/videos/stranger.mp4" in {m.path for m in g.members})
    assert "/videos/three.mp4" in {member.path for member in joined.members}
    with pytest.raises(InvalidArgumentError, match="the two videos must differ, got byte-identical files"):
        decisions.decide("one", "one", "match")
    (tmp_path / Decisions.FILE).write_text("{", encoding="utf-8")
    with pytest.raises(CollectionError, match=r"decisions\.json is damaged"):
        Decisions.open(open_place(tmp_path))


def test_recall_is_measured_against_exhaustive_search(store: MemoryStore) -> None:
    for seed in range(6):
        add(store, f"copy {seed}", frames(10 + seed, seed))
    report = measure_recall(store, SCORER, queries=18, limit=5)
    assert (report.queries, report.relevant, report.found, report.recall) == (18, 12, 12, 1.0)
    # A first stage that can return only the query itself finds nothing.
    none = measure_recall(store, SCORER, queries=18, limit=1)
    assert none.found <= none.relevant
    with pytest.raises(InvalidArgumentError, match="queries and limit must be at least 1, got 0 and 100"):
        measure_recall(store, SCORER, queries=0)


def test_all_pairs_of_copies_are_compared_and_an_excerpt_is_not_a_copy(store: MemoryStore) -> None:
    source = frames(16, 100)
    for number in range(8):
        noise = 0.01 * np.random.default_rng(number).standard_normal((16, 4, 64), np.float32)
        add(store, f"copy {number}", units(source + noise))
    # The last six of its twelve seconds are from the copies, so it is an excerpt and not a whole copy.
    add(store, "excerpt", np.concatenate([frames(6, 101), source[:6]]))
    pairs = PairSearch(store, SCORER, Comparisons())
    pairs.run(store.videos())
    wholes = {(first, second) for first, second, result in pairs.known.pairs() if relation_of(result) == "whole"}
    assert wholes == set(combinations([f"copy {number}" for number in range(8)], 2))
    assert all((found := pairs.known.get("excerpt", name)) and found.score >= 0.7 for name in ("copy 0", "copy 7"))
