"""Candidates scored by shards: the same matches as in one process, whatever happens to a shard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import run
from tests.index.helpers import video
from tests.support.s3_server import S3Server
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index import Index, RayRanker
from vidkin.index.cluster.ranker import Shard
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.query import query_from_stored
from vidkin.index.query.stages import score_candidates
from vidkin.index.storage.opening import open_place
from vidkin.index.storage.shards import ShardedStore


@dataclass
class Collection:
    """An index of five videos, two of one scene, and one of these files."""

    index: Index
    clip: Path


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    folder = tmp_path_factory.mktemp("ranked")
    clips = [video(folder / f"{seed}.mp4", seed=seed, frames=20) for seed in range(4)]
    clips.append(video(folder / "longer.mp4", seed=0, frames=30))
    with Index.open(folder / "c.vidkin", extractor="classical", create=True) as index:
        index.add(clips, workers=1)
        yield Collection(index, clips[0])


@pytest.mark.parametrize("most_bytes", [1, 2**30])
def test_a_shard_scores_as_the_store_does(collection: Collection, most_bytes: int) -> None:
    index = collection.index
    ids = [record.id for record in index.videos()]
    query = query_from_stored(index.store.read(ids[0]), CommonFrames())
    shard = Shard(str(index.path), most_bytes)
    for chosen in (ids[:3], ids):
        there = shard.score(query, chosen, CommonFrames(), index.scorer)
        assert isinstance(there, list)
        here = score_candidates(index.store, query, chosen, CommonFrames(), index.scorer)
        assert [(video_id, pair.score, pair.segments) for video_id, pair in there] == [
            (video_id, pair.score, pair.segments) for video_id, pair in here
        ]
    videos, held = shard.held()
    assert videos == (5 if most_bytes > 1 else 0)
    sizes = [index.store.read(video_id).values for video_id in ids]
    assert held == (sum(values.nbytes for values in sizes) if most_bytes > 1 else 0)


def test_a_shard_returns_that_a_video_is_gone(collection: Collection) -> None:
    index = collection.index
    query = query_from_stored(index.store.read(index.videos()[0].id), CommonFrames())
    found = Shard(str(index.path), 1).score(query, [10**6], CommonFrames(), index.scorer)
    assert isinstance(found, NotIndexedError)


def test_searches_on_a_cluster_are_those_of_one_process(cluster: Any, collection: Collection) -> None:
    index = collection.index
    here = index.search(collection.clip)
    assert [Path(match.path).stem for match in here] == ["0", "longer"]
    with RayRanker(index.place, shards=2) as ranker:
        index.rank_with(ranker)
        try:
            there = index.search(collection.clip)
            # A shard that dies is started again, and reads again.
            pid = _pid_of(ranker)
            os.kill(pid, signal.SIGKILL)
            again = index.search(collection.clip)
        finally:
            index.rank_with(None)
    assert [match.path for match in there] == [match.path for match in here]
    scores = [np.array([match.score for match in found]) for found in (here, there)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-6)
    assert again == there
    assert [match.segments for match in there] == [match.segments for match in here]


def _pid_of(ranker: RayRanker, shard: int = 0) -> int:
    import ray

    (pid,) = ray.get([ranker._actors[shard].__ray_call__.remote(lambda shard: os.getpid())])
    return int(pid)


def test_shards_on_a_cluster_answer_as_in_one_process_and_survive_the_death_of_a_worker(
    cluster: Any, collection: Collection, tmp_path: Path
) -> None:
    clips = [Path(record.path) for record in collection.index.videos()]
    with Index.open(tmp_path / "c.vidkin", extractor="classical", create=True, shards=3) as index:
        index.add(clips, workers=1)
    with Index.open(tmp_path / "c.vidkin", read_only=True) as index:
        here = index.search(collection.clip), index.coverage(clips[-1]), index.duplicates(parts=True, read_files=False)
    with Index.open(tmp_path / "c.vidkin", read_only=True) as index:
        index.on_cluster()
        there = index.search(collection.clip), index.coverage(clips[-1]), index.duplicates(parts=True, read_files=False)
        # The features are read where the shards are, and nowhere else.
        assert isinstance(index.store, ShardedStore)
        assert isinstance(index._cluster, RayRanker)
        for shard in range(3):
            os.kill(_pid_of(index._cluster, shard), signal.SIGKILL)
        again = index.search(collection.clip)
    assert [Path(match.path).stem for match in here[0]] == ["0", "longer"]
    assert (there[0], there[1]) == (here[0], here[1])
    assert [[m.path for m in group.members] for group in there[2]] == [
        [m.path for m in group.members] for group in here[2]
    ]
    assert again == here[0]


def test_the_number_of_shards_of_an_index_is_not_changed_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    with Index.open(tmp_path / "c", extractor="classical", create=True, shards=3):
        pass
    with pytest.raises(InvalidArgumentError, match=f"shards must be 3, as {tmp_path / 'c'} has, got 2"):
        RayRanker(open_place(tmp_path / "c"), shards=2)


def test_the_commands_search_on_a_cluster(cluster: Any, collection: Collection) -> None:
    place, clip = str(collection.index.path), str(collection.clip)
    for words in (["search", clip], ["coverage", clip]):
        here, there = (run(*words, "-i", place, "--json", *more) for more in ([], ["--ray", "auto"]))
        assert json.loads(there.out) == json.loads(here.out)
    # Two files are compared in one process: there is nothing to share.
    assert "No such option: --ray" in run("match", clip, clip, "--ray", "auto", status=2).err


@pytest.mark.cluster
def test_shards_on_object_storage_are_searched_by_one_address(
    collection: Collection, tmp_path: Path, s3: S3Server
) -> None:
    """In a program of its own: workers get the credentials from the environment of the cluster that it starts."""
    address = "s3://bucket/shards"
    clips = [Path(record.path) for record in collection.index.videos()]
    with Index.open(address, extractor="classical", create=True, shards=2) as index:
        index.add(clips, workers=1)
    with Index.open(address, read_only=True) as index:
        here = [(match.path, match.score) for match in index.search(collection.clip)]
    words = [sys.executable, "-m", "vidkin", "search", str(collection.clip), "-i", address, "--json"]
    found = subprocess.run([*words, "--ray", "local"], capture_output=True, text=True, check=True)
    there = [(row["path"], row["score"]) for row in json.loads(found.stdout)["matches"]]
    assert there == [(path, pytest.approx(score, abs=1e-6)) for path, score in here]
    assert [Path(path).stem for path, _ in there] == ["0", "longer"]


def test_the_cluster_raises_what_a_store_raises_for_a_video_that_is_gone(cluster: Any, collection: Collection) -> None:
    index = collection.index
    query = query_from_stored(index.store.read(index.videos()[0].id), CommonFrames())
    with RayRanker(index.place, shards=1) as ranker, pytest.raises(NotIndexedError):
        ranker(index.store, query, [10**6], CommonFrames(), index.scorer)


def test_a_number_of_shards_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="shards and most_bytes must be at least 1, got 0 and"):
        RayRanker(open_place(tmp_path), shards=0)
