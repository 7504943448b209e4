"""A sharded index gives the results of a single store, and every shard only contains its own videos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.index.duplicates.test_pair_scores import GROUPS, make_copies, names_of
from tests.index.helpers import video
from tests.index.storage.test_stores import entry, record
from vidkin.errors import CollectionDamagedError, CollectionMismatchError, InvalidArgumentError
from vidkin.index import Index, open_place, repair
from vidkin_scale.shards import ShardedStore


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The same six videos, two of them of one scene, in a single store and in three shards; and one of the videos."""
    folder = tmp_path_factory.mktemp("sharded")
    clips = [video(folder / f"{seed}.mp4", seed=seed, frames=20) for seed in range(5)]
    clips.append(video(folder / "longer.mp4", seed=0, frames=30))
    for name, store in (("one", "disk"), ("three", "shards:3")):
        with Index.open(folder / name, extractor="classical", create=True, store=store) as index:
            index.add(clips, workers=1)
    return folder / "one", folder / "three", clips[0]


def test_sharded_index_gives_the_results_of_one_store(folders: tuple[Path, Path, Path]) -> None:
    one, three, clip = folders
    with Index.open(one, read_only=True) as whole, Index.open(three, read_only=True) as sharded:
        matches, found = whole.search(clip), sharded.search(clip)
        assert [Path(match.path).stem for match in found if match.score >= 0.2] == ["0", "longer"]
        assert [(m.path, m.score, m.segments) for m in found] == [(m.path, m.score, m.segments) for m in matches]
        assert whole.match(clip, clip).score == sharded.match(clip, clip).score
        groups = [[[m.path for m in g.members] for g in index.duplicates(parts=True)] for index in (whole, sharded)]
        assert groups[0] == groups[1] != []
        assert [r.path for r in sharded.videos()] == [r.path for r in whole.videos()]


def test_every_shard_contains_the_videos_with_its_ids(folders: tuple[Path, Path, Path]) -> None:
    with Index.open(folders[1], read_only=True) as index:
        store = index.store
        assert isinstance(store, ShardedStore)
        assert sum(shard.count() for shard in store.shards) == 6
        assert {len(store.shards), *(store.shard_of(each.id) for each in index.videos())} >= {3}
        for each in index.videos():
            assert store.shards[store.shard_of(each.id)].find(each.path) is not None


def test_video_stays_in_its_shard_when_replaced_or_moved(tmp_path: Path) -> None:
    store = ShardedStore(open_place(tmp_path), 4)
    first = store.append_many([entry(f"/{n}.mp4") for n in range(8)])
    again = store.append_many([entry(f"/{n}.mp4", frames=5) for n in range(8)])
    assert [store.shard_of(each.id) for each in again] == [store.shard_of(each.id) for each in first]
    store.update([record("/moved.mp4", id=again[0].id, frames=5, windows=1)])
    assert store.find("/moved.mp4") == store.get(again[0].id)
    assert store.count() == 8


def test_damage_in_one_shard_is_removed_without_affecting_others(tmp_path: Path) -> None:
    clips = [video(tmp_path / f"{seed}.mp4", seed=seed, frames=20) for seed in range(3)]
    folder = tmp_path / "c.vidkin"
    with Index.open(folder, extractor="classical", create=True, store="shards:2") as index:
        index.add(clips, workers=1)
    broken = sorted(folder.glob("shards/*/features/*/*"))[0]
    broken.write_bytes(b"no features")
    (damaged,) = repair(open_place(folder))
    assert Path(damaged.part) in clips
    with Index.open(folder) as index:
        assert sorted(each.status for each in index.videos()) == ["ok", "ok", "stale"]
        index.add(clips, workers=1)
        assert len(index) == 3


def test_number_of_shards_never_changes(folders: tuple[Path, Path, Path]) -> None:
    with pytest.raises(CollectionMismatchError, match="was created with store shards:3, got shards:2; omit the store"):
        Index.open(folders[1], store="shards:2")
    for name in ("shards", "shards:0", "shards:5000", "shards:two"):
        got = name.partition(":")[2] or None
        with pytest.raises(InvalidArgumentError, match=f"shards must be from 1 to 4096, as in shards:16, got {got}$"):
            Index.open(folders[1].parent / "new", extractor="classical", create=True, store=name)


def test_error_names_damaged_number_of_shards(tmp_path: Path) -> None:
    with Index.open(tmp_path / "c", extractor="classical", create=True, store="shards:2"):
        pass
    manifest = tmp_path / "c" / "collection.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "store": "shards:-1"}))
    with pytest.raises(CollectionDamagedError, match=r"collection.json is damaged \(shards must be from 1 to 4096"):
        Index.open(tmp_path / "c")


def test_precomputed_tasks_give_the_groups_of_one_store(tmp_path: Path) -> None:
    copies = make_copies(tmp_path, "classical", stores={"one": "disk", "three": "shards:3"})
    groups, stored, _ = copies.find("one")
    found, stored_then, mapper = copies.find("three", width=2)
    assert names_of(groups) == GROUPS
    assert found == groups
    assert stored_then == stored
    # Copies in two shards are compared in one of them.
    compared = [task for task in mapper.tasks if task.method == "compare"]
    assert any(task.arguments[0].id % 3 != other.id % 3 for task in compared for other in task.arguments[1])
