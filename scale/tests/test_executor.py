"""Describing files on a Ray cluster of two nodes, on the loopback interface."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scale.tests.conftest import LOOPBACK

from tests.index.helpers import FATAL, PLAIN, Plain, color_video, outcomes_of, video, write_videos
from vidkin.errors import ClusterError, UnknownExtractorError
from vidkin.index import Advanced, Described, Event, Index, Unreadable, WorkerSpec
from vidkin_scale import executor as module
from vidkin_scale.executor import RayExecutor


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_videos(tmp_path_factory.mktemp("videos"), 4)


def test_index_made_on_a_cluster_equals_a_local_one(cluster: Any, videos: list[str], tmp_path: Path) -> None:
    text = tmp_path / "text.mp4"
    text.write_text("hello")
    contents = []
    for name in ("here", "there"):
        with Index.open(tmp_path / name, extractor="classical", create=True) as index:
            executor = RayExecutor(index.worker_spec, workers=2) if name == "there" else None
            report = index.add([*videos, text], executor=executor)
            assert len(report.added) == 4
            assert [item.path for item in report.broken] == [str(text)]
            contents.append(_content(index.store))
    here, there = contents
    assert here.keys() == there.keys()
    assert here == there


def _content(store: Any) -> dict[str, list[Any]]:
    """Records without ids and times, and the bytes of all features and windows."""
    content = {}
    for record in store.videos():
        facts = {name: getattr(record, name) for name in record.__slots__ if name not in ("id", "added_at")}
        parts = [facts]
        if record.status == "ok":
            features = store.read(record.id)
            values = [getattr(features, name) for name in features.__slots__] + [store.read_windows(record.id)]
            parts += [value.tobytes() if isinstance(value, np.ndarray) else value for value in values]
        content[record.path] = parts
    return content


def test_killed_worker_loses_no_file(cluster: Any, tmp_path: Path) -> None:
    paths = [str(video(tmp_path / f"{seed}.mp4", frames=40, seed=seed)) for seed in range(2)]
    spec = WorkerSpec(str(tmp_path), open_extractor=open_slow)
    killed: list[int] = []
    events: list[Event] = []
    for event in RayExecutor(spec, workers=2).run(paths):
        events.append(event)
        if isinstance(event, Advanced) and not killed:
            killed.append(_workers_in(tmp_path)[0])
            os.kill(killed[0], signal.SIGKILL)
    outcomes = outcomes_of(events)
    assert all(isinstance(outcomes[path], Described) for path in paths)
    assert len(killed) == 1


class Slow(Plain):
    """An extractor that takes a third of a second per batch and records which processes use it."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def extract(self, frames: Any, *, boxes: Any = None) -> Any:
        (self._folder / f"{os.getpid()}.pid").touch()
        time.sleep(0.3)
        return super().extract(frames, boxes=boxes)


def open_slow(name: str, **_: object) -> Slow:
    return Slow(name)


def _workers_in(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.pid")]


def test_file_that_kills_its_workers_is_unreadable(
    cluster: Any, videos: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_TRIES", 2)
    fatal = str(color_video(tmp_path / "segfault.mp4", "segfault"))
    outcomes = outcomes_of(RayExecutor(FATAL, workers=2).run([videos[0], fatal, videos[1], videos[2]]))
    assert all(isinstance(outcomes[path], Described) for path in videos[:3])
    event = outcomes[fatal]
    assert isinstance(event, Unreadable)
    assert event.cause.startswith("its worker died 2 times: Worker unexpectedly exits")
    assert not event.temporary


def test_hang_makes_the_file_unreadable_and_kills_its_worker(cluster: Any, tmp_path: Path) -> None:
    hanging = str(color_video(tmp_path / "hang.mp4", "hang"))
    (event,) = outcomes_of(RayExecutor(FATAL, workers=1, hang_timeout=0.5).run([hanging])).values()
    assert isinstance(event, Unreadable)
    assert event.temporary
    # Before its first heartbeat the worker counts as decoding.
    assert re.fullmatch(r"the extractor hung: no progress for 2\.5 s|the decoder hung: .* 0\.5 s", event.cause)


def test_machines_can_leave_and_join(cluster: Any, tmp_path: Path) -> None:
    """The node that reads a file is killed; another one that joined in the meantime reads the file."""
    paths = [str(video(tmp_path / f"{seed}.mp4", seed=seed)) for seed in range(3)]
    spec = WorkerSpec(str(tmp_path), open_extractor=open_slow)
    events: list[Event] = []
    for event in RayExecutor(spec).run(paths):
        if isinstance(event, Advanced) and not any(isinstance(earlier, Advanced) for earlier in events):
            (leaving,) = cluster.worker_nodes
            cluster.remove_node(leaving, allow_graceful=False)
            cluster.add_node(num_cpus=2, **LOOPBACK)
        events.append(event)
    outcomes = outcomes_of(events)
    assert all(isinstance(outcomes[path], Described) for path in paths)


def test_workers_block_while_events_are_unread(cluster: Any, tmp_path: Path) -> None:
    """A worker gets its next video when the features of the last one have been read, so it holds those of one."""
    spec = WorkerSpec(str(tmp_path), open_extractor=open_counting)
    paths = [str(video(tmp_path / f"{seed}.mp4", frames=800, seed=seed)) for seed in range(3)]
    run = RayExecutor(spec, workers=1).run(paths)
    while not isinstance(event := next(run), Advanced):
        pass
    _wait_until_still(lambda: _count(tmp_path))
    ahead = _count(tmp_path)
    outcomes = outcomes_of([event, *run])
    frames = [len(end.features.timestamps) for end in outcomes.values() if isinstance(end, Described)]
    assert len(frames) == 3
    assert ahead <= max(frames)
    assert _count(tmp_path) == sum(frames)


class Counting(Plain):
    """An extractor that stores the number of frames described as the size of a file."""

    def __init__(self, folder: str) -> None:
        self._count = Path(folder) / "count"

    def extract(self, frames: Any, *, boxes: Any = None) -> Any:
        with self._count.open("ab") as file:
            file.write(b"." * len(frames.images))
        return super().extract(frames, boxes=boxes)


def open_counting(name: str, **_: object) -> Counting:
    return Counting(name)


def _count(folder: Path) -> int:
    return (folder / "count").stat().st_size


def _wait_until_still(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    before = None
    while before is None or look() != before:
        assert time.monotonic() < deadline
        before = look()
        time.sleep(1.0)


def test_extractor_that_cannot_be_opened_reports_the_cause(cluster: Any, videos: list[str]) -> None:
    with pytest.raises(UnknownExtractorError, match="'nonsense' is not an extractor"):
        list(RayExecutor(WorkerSpec("nonsense"), workers=1).run(videos))


def test_workers_that_die_during_startup_abort_the_run(
    cluster: Any, videos: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_RESTARTS", 1)
    spec = WorkerSpec("plain", open_extractor=_open_in_a_way_that_kills)
    with pytest.raises(ClusterError, match=r"died 2 times before they could start: Worker unexpectedly"):
        list(RayExecutor(spec, workers=1).run(videos))


def _open_in_a_way_that_kills(name: str, **_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_machine_with_a_different_version_is_rejected(
    cluster: Any, videos: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "__version__", "0.0.0")
    with pytest.raises(ClusterError, match=r"has vidkin .*, this one 0\.0\.0; install the same version"):
        list(RayExecutor(PLAIN, workers=1).run(videos))


def test_closing_early_terminates_the_workers(cluster: Any, tmp_path: Path) -> None:
    path = str(video(tmp_path / "0.mp4", frames=100))
    run = RayExecutor(WorkerSpec(str(tmp_path), open_extractor=open_slow), workers=1).run([path])
    while not isinstance(next(run), Advanced):
        pass
    (pid,) = _workers_in(tmp_path)
    run.close()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "the worker is still there"
        time.sleep(0.05)


def test_cause_of_a_worker_death_is_a_single_sentence() -> None:
    report = (
        "The actor died unexpectedly before finishing this task.\n\tclass_name: Describer\n\tpid: 12\n"
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
        "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: ..."
    )
    assert module._cause_of(RuntimeError(report)) == ("Worker unexpectedly exits with a connection error code 2")
    report = "The actor died unexpectedly. The actor is dead because its node has died. Node Id: 5"
    assert module._cause_of(RuntimeError(report)) == "its node has died"
    assert module._cause_of(StopIteration()) == "StopIteration"
    error = RuntimeError("Traceback ...")
    error.cause = ImportError("no vidkin")  # type: ignore[attr-defined]
    assert module._cause_of(error) == "ImportError: no vidkin"
    report = (
        "The actor died because of an error raised in its creation task, \x1b[36mray::Describer()\x1b[39m (pid=7)\n"
        "           ^^^^^^^^^^\nRuntimeError: The actor failed to import on the worker. This may be because ..."
    )
    assert module._cause_of(RuntimeError(report)) == "RuntimeError: The actor failed to import on the worker"
