"""Programs can implement their own store or executor with public names only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

import vidkin
from tests.index.helpers import video
from vidkin.errors import InvalidArgumentError
from vidkin.features import FrameExtractor, open_extractor, register_extractor, set_device
from vidkin.index import (
    Described,
    Event,
    Executor,
    Idle,
    Index,
    MemoryStore,
    ProcessExecutor,
    SerialExecutor,
    Unreadable,
    VectorStore,
    WorkerSpec,
    describe_video,
)


class ThreadExecutor:
    """Describes files in a thread pool, as a cluster would: the spec is sent to each worker, and events come back."""

    def __init__(self, spec: WorkerSpec, *, workers: int) -> None:
        self._spec = spec
        self._workers = workers

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        extractor = self._spec.open()

        def describe(path: str) -> list[Event]:
            return list(describe_video(path, extractor, self._spec.base_rate))

        remaining = iter(paths)
        with ThreadPoolExecutor(self._workers) as pool:
            running: set[Future[list[Event]]] = set()
            while True:
                while len(running) < self._workers and (path := next(remaining, None)) is not None:
                    running.add(pool.submit(describe, path))
                if not running:
                    return
                done, running = wait(running, timeout=0.5, return_when="FIRST_COMPLETED")
                if not done:
                    yield Idle()
                for future in done:
                    yield from future.result()


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    for seed, name in enumerate(("a.mp4", "b.mp4", "c.mp4")):
        video(folder / name, seed=seed)
    (folder / "text.mp4").write_text("not a video")
    return folder


def test_executor_can_be_implemented_with_public_names(videos: Path, tmp_path: Path) -> None:
    with Index.open(tmp_path / "own", extractor="classical", create=True) as index:
        executor: Executor = ThreadExecutor(index.worker_spec, workers=2)
        report = index.add(videos, executor=executor)
        assert str(report) == "3 added, 0 unchanged, 0 moved, 1 broken, 0 removed"
        assert report.seconds_of_video == pytest.approx(6.0)
        own = {match.path: match.score for match in index.search(videos / "b.mp4")}
    with Index.open(tmp_path / "serial", extractor="classical", create=True) as index:
        index.add(videos, executor=SerialExecutor(index.worker_spec))
        assert {match.path: match.score for match in index.search(videos / "b.mp4")} == own


def test_last_event_of_a_file_has_its_features_or_the_cause_of_failure(videos: Path) -> None:
    spec = WorkerSpec("classical")
    extractor = spec.open()
    *_, described = describe_video(str(videos / "a.mp4"), extractor, spec.base_rate)
    assert isinstance(described, Described)
    assert described.features.values.shape == (4, 5, 10, 128)
    assert (described.info.width, described.info.height) == (96, 64)
    (unreadable,) = describe_video(str(videos / "text.mp4"), extractor, spec.base_rate)
    assert isinstance(unreadable, Unreadable)
    assert "this is text" in unreadable.cause


@pytest.mark.large
def test_memory_store_gives_the_same_results_as_the_disk_store(videos: Path, tmp_path: Path) -> None:
    answers = []
    stores: list[VectorStore | None] = [None, MemoryStore()]
    for number, store in enumerate(stores):
        with Index.open(tmp_path / str(number), extractor="classical", create=True, store=store) as index:
            index.add(videos, executor=SerialExecutor(index.worker_spec))
            index.reject(videos / "a.mp4", videos / "b.mp4")
            comparison = index.match(videos / "a.mp4", videos / "a.mp4")
            answers.append(
                (
                    [index.search(videos / name) for name in ("a.mp4", "c.mp4")],
                    (comparison.score, comparison.segments),
                    index.duplicates(threshold=0.2),
                    index.recall(queries=3),
                    [(record.path, record.status, record.windows) for record in index.videos()],
                )
            )
            assert index.remove(videos / "a.mp4") == 1
            assert len(index.videos()) == 3
    assert answers[0] == answers[1]
    # Only settings, calibration, comparisons, decisions, devices, sound and removals are stored on disk.
    assert sorted(path.name for path in (tmp_path / "1").iterdir()) == [
        "background.safetensors",
        "collection.json",
        "comparisons.json",
        "decisions.json",
        "devices.json",
        "removed.json",
        "sound",
        "sound.table",
        "writer.lock",
    ]


def test_new_index_needs_create_but_not_an_extractor(tmp_path: Path) -> None:
    with vidkin.Index.open(tmp_path / "named", extractor="classical", create=True) as index:
        assert index.extractor_name == "classical"
    with vidkin.Index.open(tmp_path / "made", create=True) as index:
        assert index.extractor_name == "vidkin"
    with vidkin.Index.open(tmp_path / "named") as index:
        assert index.worker_spec == WorkerSpec("classical", sound=True)


def test_device_is_passed_to_the_extractor_of_the_index_and_its_workers(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def factory(name: str, *, device: str, **files: None) -> FrameExtractor:
        opened.append(device)
        return open_extractor("classical")

    register_extractor("seen", factory)
    with Index.open(tmp_path / "index", extractor="seen", create=True, device="cuda:1") as index:
        assert index.worker_spec.device == "cuda:1"
        index.add(videos / "a.mp4", executor=SerialExecutor(index.worker_spec))
        index.search(videos / "a.mp4")
    assert set(opened) == {"cuda:1"}
    with Index.open(tmp_path / "index") as index:  # the device is not stored in the index
        assert index.worker_spec.device == "auto"
    set_device("cpu")
    try:
        command = ProcessExecutor(WorkerSpec("seen"), workers=1)
    finally:
        set_device("auto")
    assert command.spec.device == "cpu"  # the current meaning of `auto` is passed to other processes
    assert ProcessExecutor(WorkerSpec("seen", device="cuda:3")).spec.device == "cuda:3"


def test_executor_needs_at_least_one_worker() -> None:
    with pytest.raises(InvalidArgumentError, match="workers must be at least 1, got 0"):
        ProcessExecutor(WorkerSpec("classical"), workers=0)
