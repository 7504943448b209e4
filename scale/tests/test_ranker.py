"""Candidates scored by shards: the same matches as in one process, even if shards die."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scale.tests.conftest import LOOPBACK
from scale.tests.s3_server import S3Server

from tests.cli.conftest import run
from tests.index.helpers import video
from tests.web.browser import served
from vidkin.errors import ClusterError, InvalidArgumentError, NotIndexedError
from vidkin.index import Index, open_place
from vidkin.index.duplicates.comparisons import Comparisons
from vidkin.index.query.stages import score_candidates
from vidkin.index.query.stored import prepare_features
from vidkin.index.storage.tasks import Task
from vidkin.web.collection import SharedIndex
from vidkin_scale import ranker as ranker_module
from vidkin_scale.actor import Shard
from vidkin_scale.ranker import RayRanker, _Queue
from vidkin_scale.shards import ShardedStore


@dataclass
class Collection:
    """An index of five videos, two of them of one scene, and one of these files."""

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
def test_shard_gives_the_scores_of_the_store(collection: Collection, most_bytes: int) -> None:
    index = collection.index
    ids = [record.id for record in index.videos()]
    query = prepare_features(index.store.read(ids[0]))
    shard = Shard(str(index.path), most_bytes)
    for chosen in (ids[:3], ids):
        there = shard.score(query, chosen, index.scorer)
        assert isinstance(there, list)
        here = score_candidates(index.store, query, chosen, index.scorer)
        assert [(video_id, pair.score, pair.segments) for video_id, pair in there] == [
            (video_id, pair.score, pair.segments) for video_id, pair in here
        ]
    videos, held = shard.cached()
    assert videos == (5 if most_bytes > 1 else 0)
    sizes = [index.store.read(video_id).values for video_id in ids]
    assert held == (sum(values.nbytes for values in sizes) if most_bytes > 1 else 0)


def test_shard_reports_a_removed_video(collection: Collection) -> None:
    index = collection.index
    query = prepare_features(index.store.read(index.videos()[0].id))
    found = Shard(str(index.path), 1).score(query, [10**6], index.scorer)
    assert isinstance(found, NotIndexedError)


def test_searches_on_a_cluster_equal_local_ones(cluster: Any, collection: Collection) -> None:
    index = collection.index
    here = index.search(collection.clip, threshold=0.2)
    assert [Path(match.path).stem for match in here] == ["0", "longer"]
    with RayRanker(index.place, shards=2) as ranker, Index.open(index.place, read_only=True).on_cluster(ranker) as far:
        there = far.search(collection.clip, threshold=0.2)
        # A dead shard is restarted and reads its features again.
        os.kill(_pid_of(ranker), signal.SIGKILL)
        again = far.search(collection.clip, threshold=0.2)
    assert [match.path for match in there] == [match.path for match in here]
    scores = [np.array([match.score for match in found]) for found in (here, there)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-6)
    assert again == there
    assert [match.segments for match in there] == [match.segments for match in here]


def _pid_of(ranker: RayRanker, shard: int = 0) -> int:
    import ray

    (pid,) = ray.get([ranker._actors[shard].__ray_call__.remote(lambda shard: os.getpid())])
    return int(pid)


def test_shards_on_a_cluster_equal_local_ones_despite_a_dead_worker(
    cluster: Any, collection: Collection, tmp_path: Path
) -> None:
    clips = [Path(record.path) for record in collection.index.videos()]
    with Index.open(tmp_path / "c.vidkin", extractor="classical", create=True, store="shards:3") as index:
        index.add(clips, workers=1)
    stored = tmp_path / "c.vidkin" / Comparisons.FILE
    with Index.open(tmp_path / "c.vidkin", read_only=True) as index:
        here = index.search(collection.clip), index.coverage(clips[-1]), index.duplicates(parts=True)
        compared, recurs = stored.read_text(), index.recurring(remember=False)
    stored.unlink()
    killed: list[int] = []
    with Index.open(tmp_path / "c.vidkin", read_only=True) as index:
        index.on_cluster("ray")
        # Only the shards read the features.
        assert isinstance(index.store, ShardedStore)
        ranker = index._cluster
        assert isinstance(ranker, RayRanker)

        def kill_all(done: int, total: int) -> None:
            if not killed:
                killed.extend(_pid_of(ranker, shard) for shard in range(3))
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        there = (
            index.search(collection.clip),
            index.coverage(clips[-1]),
            index.duplicates(parts=True, on_progress=kill_all),
        )
        compared_there, recurs_there = stored.read_text(), index.recurring(remember=False)
        for shard in range(3):
            os.kill(_pid_of(ranker, shard), signal.SIGKILL)
        again = index.search(collection.clip)
    assert [Path(match.path).stem for match in here[0] if match.score >= 0.2] == ["0", "longer"]
    assert [[Path(member.path).stem for member in group.members] for group in here[2]] == [["longer", "0"]]
    assert len(killed) == 3
    assert there == here
    assert (compared_there, recurs_there) == (compared, recurs)
    assert again == here[0]


class OtherMachines:
    """Implements the Ray calls of a search in this process: what is sent is copied, and workers may die."""

    def __init__(self) -> None:
        self.dying: list[int] = []
        self.started: list[int] = []
        self.done: list[str] = []

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def remote(self, made: Any) -> Any:
        def start(*words: Any) -> Any:
            return OtherMachine(self, made(*pickle.loads(pickle.dumps(words))))

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=start))

    def put(self, thing: Any) -> bytes:
        return pickle.dumps(thing)

    def get(self, answer: Any) -> Any:
        return answer()

    def wait(self, answers: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return answers[-1:], answers[:-1]  # the last one first, so that results are not in the order of tasks

    def cancel(self, answer: Any) -> None:
        raise AssertionError("nothing is left")

    def kill(self, actor: Any) -> None:
        actor.is_dead = True


class OtherMachine:
    """A single worker. If its shard number is among the dying ones, it dies during its next task."""

    def __init__(self, machines: OtherMachines, shard: Shard) -> None:
        self.machines, self.shard, self.is_dead = machines, shard, False
        machines.started.append(shard._number)

    @property
    def run(self) -> Any:
        return SimpleNamespace(remote=self._later)

    def _later(self, number: int, sent: list[bytes], method: str, arguments: tuple[Any, ...]) -> Any:
        from ray.exceptions import RayActorError

        def answer() -> Any:
            if self.shard._number in self.machines.dying:
                self.machines.dying.remove(self.shard._number)
                self.is_dead = True
            if self.is_dead:
                raise RayActorError
            self.machines.done.append(method)
            given = pickle.loads(pickle.dumps(arguments))
            return pickle.loads(pickle.dumps(self.shard.run(number, sent, method, given)))

        return answer


def test_duplicate_search_is_distributed_and_survives_dead_workers(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster, but without Ray: everything sent is copied in both directions."""
    ray = pytest.importorskip("ray")
    machines = OtherMachines()
    monkeypatch.setattr(ranker_module, "connect", lambda address: nullcontext(machines))
    monkeypatch.setattr(ray, "get", pickle.loads)  # the reference from which a worker takes the job
    with Index.open(tmp_path / "c.vidkin", extractor="classical", create=True, store="shards:3") as index:
        # Copies of every scene, so that every shard has work even after a restart.
        clips = [
            video(tmp_path / f"{seed} {frames}.mp4", seed=seed, frames=frames)
            for seed in range(4)
            for frames in (20, 30)
        ]
        index.add(clips, workers=1)
    with Index.open(tmp_path / "c.vidkin", read_only=True) as index:
        here = index.duplicates(parts=True)
    (tmp_path / "c.vidkin" / Comparisons.FILE).unlink()
    machines.dying = [0, 2, 2]
    with RayRanker(index.place) as ranker, Index.open(tmp_path / "c.vidkin", read_only=True) as index:
        index._mapper = ranker
        there = index.duplicates(parts=True)
    found = [sorted(Path(member.path).stem for member in group.members) for group in here]
    assert sorted(found) == [[f"{seed} 20", f"{seed} 30"] for seed in range(4)]
    assert there == here
    assert not machines.dying
    assert sorted(machines.started) == [0, 0, 1, 2, 2, 2]
    assert {"compare", "describe"} <= set(machines.done)


def test_tasks_move_to_idle_shards_and_are_repeated_after_a_death() -> None:
    tasks = [Task("ask", (), home=home) for home in (0, 2, 4, 1, 6)]
    queue = _Queue([*tasks, Task("describe", (), about="/a.mp4")], 2)
    assert [queue.take(1), queue.take(1)] == [3, 5]  # its own, then that of no shard
    assert queue.take(1) == 4  # the last one of the other shard
    assert [queue.take(0), queue.take(0)] == [0, 1]
    queue.put_back(5, 1)
    assert [queue.take(0), queue.take(0)] == [2, 5]
    assert queue.take(0) is None
    queue.put_back(5, 0)
    with pytest.raises(ClusterError, match=r"/a\.mp4: 3 workers of the cluster died over it; check that all machines"):
        queue.put_back(5, 0)


def test_number_of_shards_must_match_the_index(cluster: Any, tmp_path: Path) -> None:
    with Index.open(tmp_path / "c", extractor="classical", create=True, store="shards:3"):
        pass
    with pytest.raises(InvalidArgumentError, match=f"shards must be 3, as {tmp_path / 'c'} has, got 2"):
        RayRanker(open_place(tmp_path / "c"), shards=2)


def test_commands_on_a_cluster_give_local_results(cluster: Any, collection: Collection) -> None:
    place, clip = str(collection.index.path), str(collection.clip)
    for words in (["search", clip], ["coverage", clip], ["duplicates", "--parts"], ["recurring"]):
        found = []
        for more in ([], ["--ray", "auto"]):
            (collection.index.path / Comparisons.FILE).unlink(missing_ok=True)  # compared again, ignoring saved results
            found.append(json.loads(run(*words, "-i", place, "-f", "json", *more).out))
        assert found[1] == found[0]
    # Two files are compared in one process: there is nothing to distribute.
    assert "No such option: --ray" in run("match", clip, clip, "--ray", "auto", status=2).err


def test_pages_on_a_cluster_give_local_results(cluster: Any, collection: Collection) -> None:
    """The handle to the index that `vidkin serve --ray` opens for every page."""
    answers = []
    for name in (None, "ray:auto"):
        (collection.index.path / Comparisons.FILE).unlink(missing_ok=True)
        with closing(SharedIndex(collection.index.place, cluster=name)) as shared, shared.reader() as index:
            assert (index._ranker is None) == (name is None)
            found = index.search(collection.clip), index.duplicates(parts=True), index.coverage(collection.clip)
            answers.append(found)
    assert answers[1] == answers[0]
    assert [[Path(member.path).stem for member in group.members] for group in answers[0][1]] == [["longer", "0"]]


def test_lost_machine_does_not_change_results(cluster: Any, collection: Collection, tmp_path: Path) -> None:
    """Its shards continue where all CPUs are already reserved by the others."""
    import ray

    clips = [Path(record.path) for record in collection.index.videos()]
    place = tmp_path / "c.vidkin"
    with Index.open(place, extractor="classical", create=True, store="shards:4") as index:
        index.add(clips, workers=1)
    with Index.open(place, read_only=True) as index:
        here = index.search(collection.clip), index.duplicates(parts=True)
    (place / Comparisons.FILE).unlink()
    (staying,) = cluster.worker_nodes
    leaving = cluster.add_node(num_cpus=2, wait=True, **LOOPBACK)
    lost: list[int] = []
    with Index.open(place, read_only=True) as index, RayRanker(index.place) as ranker:
        index.on_cluster(ranker)
        # Four shards on four CPUs; search first, so that all of them are running.
        assert index.search(collection.clip) == here[0]

        def nodes() -> list[str]:
            def own(shard: Shard) -> str:
                return str(ray.get_runtime_context().get_node_id())

            return list(ray.get([actor.__ray_call__.remote(own) for actor in ranker._actors]))

        def lose(done: int, total: int) -> None:
            if not lost:
                lost.extend(shard for shard, node in enumerate(nodes()) if node == leaving.node_id)
                cluster.remove_node(leaving, allow_graceful=False)

        there = index.duplicates(parts=True, on_progress=lose), index.search(collection.clip)
        assert set(nodes()) == {staying.node_id}
    assert len(lost) == 2
    assert (there[1], there[0]) == here


@pytest.mark.process
def test_server_on_a_cluster_gives_local_results(cluster: Any, collection: Collection, tmp_path: Path) -> None:
    """Request pages of `vidkin serve` for a sharded index over HTTP, without and with `--ray`."""
    place = tmp_path / "c.vidkin"
    with Index.open(place, extractor="classical", create=True, store="shards:2") as index:
        index.add([record.path for record in collection.index.videos()], workers=1)
    answers = []
    for options in ([], ["--ray", cluster.address]):
        (place / Comparisons.FILE).unlink(missing_ok=True)
        with served(place, *options) as address:

            def ask(name: str, wanted: dict[str, Any] | None = None, address: str = address) -> Any:
                body = None if wanted is None else json.dumps(wanted).encode()
                request = urllib.request.Request(
                    f"{address}api/{name}", body, {"Content-Type": "application/json", "Origin": address.rstrip("/")}
                )
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)

            videos = ask("videos")["videos"]
            number = next(video["id"] for video in videos if video["name"] == "0.mp4")
            job = ask("duplicates", {"parts": True})
            while (state := ask(f"jobs/{job['id']}"))["state"] == "running":
                time.sleep(0.05)
            assert state["state"] == "done", state["error"]
            found = ask("search", {"video": number})
            assert found.pop("seconds") > 0
            answers.append((videos, found, ask("duplicates")))
    assert answers[1] == answers[0]
    _, found, duplicates = answers[0]
    assert [match["video"]["name"] for match in found["matches"] if match["score"] >= 0.2] == ["longer.mp4"]
    assert [{member["name"] for member in group["members"]} for group in duplicates["groups"]] == [
        {"0.mp4", "longer.mp4"}
    ]


@pytest.mark.cluster
def test_shards_on_object_storage_are_searched_through_one_address(
    collection: Collection, tmp_path: Path, s3: S3Server
) -> None:
    """In a separate program, whose cluster passes the credentials from its environment to the workers."""
    address = "s3://bucket/shards"
    clips = [Path(record.path) for record in collection.index.videos()]
    with Index.open(address, extractor="classical", create=True, store="shards:2") as index:
        index.add(clips, workers=1)
    with Index.open(address, read_only=True) as index:
        here = [(match.path, match.score) for match in index.search(collection.clip)]
    words = [sys.executable, "-m", "vidkin", "search", str(collection.clip), "-i", address, "-t", "0", "-f", "json"]
    found = subprocess.run([*words, "--ray", "local"], capture_output=True, text=True, check=True)
    there = [(row["path"], row["score"]) for row in json.loads(found.stdout)["matches"]]
    assert there == [(path, pytest.approx(score, abs=1e-6)) for path, score in here]
    assert [Path(path).stem for path, score in there if score >= 0.2] == ["0", "longer"]


def test_cluster_raises_the_store_error_for_a_removed_video(cluster: Any, collection: Collection) -> None:
    index = collection.index
    query = prepare_features(index.store.read(index.videos()[0].id))
    with RayRanker(index.place, shards=1) as ranker, pytest.raises(NotIndexedError):
        ranker(index.store, query, [10**6], index.scorer)


def test_number_of_shards_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="shards and most_bytes must be at least 1, got 0 and"):
        RayRanker(open_place(tmp_path), shards=0)
