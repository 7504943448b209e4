"""Watching folders: added videos are complete, and other processes can write in between."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.index.helpers import video
from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.index import Index, IngestReport, Scan, SerialExecutor, VideoFile, scan, watch_folders
from vidkin.index.watch import Settling, open_for_writing

# Raised by watchdog if a new folder is reported twice; as an error, the warning would end its thread.
pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")


def scan_of(**files: int) -> Scan:
    """Scan result with files of these names and sizes."""
    return Scan(tuple(VideoFile(name, size, 0) for name, size in sorted(files.items())), (), ("/",))


def names(settling: Settling, now: float) -> list[str]:
    return sorted(settling.settled(now))


def test_file_settles_after_a_period_without_changes() -> None:
    settling = Settling(3.0)
    assert not settling.look(scan_of(a=1), 0.0)
    assert not settling.look(scan_of(a=2), 2.0)  # it has grown
    assert not settling.look(scan_of(a=2, b=1), 4.9)
    assert settling.waits()
    assert settling.look(scan_of(a=2, b=1), 5.0)
    assert names(settling, 5.0) == ["a"]
    settling.finish(settling.settled(5.0))
    assert not settling.look(scan_of(a=2, b=1), 7.8)
    assert settling.look(scan_of(a=2, b=1), 7.9)
    assert names(settling, 7.9) == ["b"]
    settling.finish(settling.settled(7.9))
    assert not settling.look(scan_of(a=2, b=1), 100.0)
    assert not settling.waits()


def test_moved_file_is_gone_only_after_its_new_name_has_settled() -> None:
    settling = Settling(3.0)
    settling.look(scan_of(a=1), 0.0)
    settling.look(scan_of(a=1), 3.0)
    settling.finish(settling.settled(3.0))
    assert not settling.look(scan_of(b=1), 10.0)
    assert settling.waits()
    assert settling.look(scan_of(b=1), 13.0)
    assert names(settling, 13.0) == ["b"]
    settling.finish(settling.settled(13.0))
    assert not settling.look(scan_of(b=1), 20.0)


def test_held_file_does_not_settle() -> None:
    settling = Settling(3.0)
    settling.look(scan_of(a=1), 0.0)
    assert settling.look(scan_of(a=1), 3.0)
    settling.hold({"a"}, 3.0)
    assert not settling.look(scan_of(a=1), 5.9)
    assert settling.look(scan_of(a=1), 6.0)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not say what is open")
def test_files_open_for_writing_are_recognized(tmp_path: Path) -> None:
    written, read, other = (tmp_path / name for name in ("written", "read", "other"))
    for path in (written, read, other):
        path.touch()
    paths = [str(path) for path in (written, read, other)]
    with written.open("ab"), read.open("rb"):
        assert open_for_writing(paths) == {str(written)}
    assert open_for_writing(paths) == set()
    assert open_for_writing([]) == set()


@dataclass
class Watching:
    """A watch running in a thread, and its reports."""

    reports: list[IngestReport] = field(default_factory=list)

    def wait_for(self, happened: Callable[[list[IngestReport]], object]) -> None:
        """Wait until the reports meet a condition."""
        end = time.monotonic() + 60
        while not happened(self.reports):
            assert time.monotonic() < end, self.reports
            time.sleep(0.05)

    def paths(self, kind: str) -> list[str]:
        return [Path(item.path).name for report in self.reports for item in getattr(report, kind) if not item.known]


@contextmanager
def watch_folder(index: Path, folder: Path, *, prune: bool = False) -> Iterator[Watching]:
    watching, stop = Watching(), threading.Event()
    errors: list[BaseException] = []

    def follow() -> None:
        try:
            with Index.open(index) as opened:
                executor = SerialExecutor(opened.worker_spec)
                for report in watch_folders(opened, folder, settle=0.5, stop=stop, prune=prune, executor=executor):
                    watching.reports.append(report)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield watching
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert errors == []


@pytest.fixture
def index(tmp_path: Path) -> Path:
    Index.open(tmp_path / "index.vidkin", extractor="classical", create=True).close()
    return tmp_path / "index.vidkin"


@pytest.mark.kill
def test_added_growing_moved_and_deleted_files_are_followed(index: Path, tmp_path: Path) -> None:
    """The index may be inside a watched folder, because its own writes do not trigger another scan."""
    first = video(tmp_path / "first.mp4", seed=1)
    content = video(tmp_path.parent / f"{tmp_path.name}-source.mp4", seed=2).read_bytes()
    (tmp_path / "broken.mp4").write_bytes(b"\0" * 1000)
    with watch_folder(index, tmp_path) as watching:
        watching.wait_for(lambda reports: reports)
        assert (watching.paths("added"), watching.paths("broken")) == (["first.mp4"], ["broken.mp4"])
        # Copying takes longer than the settling period.
        below = tmp_path / "new folder"
        below.mkdir()
        with (below / "second.mp4").open("wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            time.sleep(1.5)
            file.write(content[len(content) // 2 :])
        watching.wait_for(lambda _: "second.mp4" in watching.paths("added"))
        # The lock has been released.
        with Index.open(index) as other:
            other.add([], wait=0.0)
            assert len(other) == 2
        first.rename(below / "moved.mp4")
        watching.wait_for(lambda _: watching.paths("moved"))
        (below / "second.mp4").unlink()
        watching.wait_for(lambda reports: reports[-1].missing)
    assert watching.paths("moved") == ["moved.mp4"]
    assert watching.paths("added") == ["first.mp4", "second.mp4"]
    assert watching.paths("broken") == ["broken.mp4"]
    assert [Path(item.path).name for item in watching.reports[-1].missing] == ["second.mp4"]
    # One report per change, and none for writes of the index itself.
    assert len(watching.reports) <= 5
    with Index.open(index, read_only=True) as opened:
        assert sorted(Path(record.path).name for record in opened) == ["moved.mp4", "second.mp4"]


@pytest.mark.kill
def test_watch_with_prune_removes_deleted_files_and_waits_for_the_lock(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vidkin.index.watch._WAIT", 0.1)
    monkeypatch.setattr("vidkin.index.watch._LOCKED_PAUSE", 0.2)
    folder = tmp_path / "videos"
    paths = [video(folder / f"{seed}.mp4", seed=seed) for seed in range(2)]
    with watch_folder(index, folder, prune=True) as watching:
        watching.wait_for(lambda _: len(watching.paths("added")) == 2)
        with Index.open(index) as other, other.place.exclusive(5):
            paths[0].unlink()
            time.sleep(1.5)
            assert watching.paths("removed") == []
        watching.wait_for(lambda _: watching.paths("removed"))
    assert watching.paths("removed") == ["0.mp4"]
    with Index.open(index, read_only=True) as opened:
        assert [Path(record.path).name for record in opened.videos()] == ["1.mp4"]


@pytest.mark.kill
def test_watch_with_prune_keeps_videos_on_a_temporarily_unmounted_share(index: Path, tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    for seed in range(2):
        video(folder / f"{seed}.mp4", seed=seed)
    with watch_folder(index, folder, prune=True) as watching:
        watching.wait_for(lambda _: len(watching.paths("added")) == 2)
        for path in folder.iterdir():
            shutil.move(path, tmp_path)
        watching.wait_for(lambda reports: "no longer contains videos" in reports[-1].prune_refused)
        for path in tmp_path.glob("*.mp4"):
            shutil.move(path, folder)
        watching.wait_for(lambda reports: len(reports[-1].unchanged) == 2 and not reports[-1].prune_refused)
    assert watching.paths("removed") == []


@pytest.mark.kill
def test_folder_that_is_deleted_and_created_again_is_followed(index: Path, tmp_path: Path) -> None:
    """Simulates a drive that is unplugged and connected again, with unusual file names."""
    content = video(tmp_path.parent / f"{tmp_path.name}-source.mp4", seed=2).read_bytes()
    folder = tmp_path / "videos"
    video(folder / "first.mp4", seed=1)
    with watch_folder(index, folder) as watching:
        watching.wait_for(lambda reports: reports)
        shutil.rmtree(folder)
        time.sleep(1.0)
        folder.mkdir()
        os.mkfifo(folder / "pipe.mp4")
        (folder / "loop").symlink_to("loop")
        (folder / "again\n.mp4").write_bytes(content)
        watching.wait_for(lambda _: "again\n.mp4" in watching.paths("added"))
        (folder / "later.mp4").write_bytes(content + b"\0")
        watching.wait_for(lambda _: "later.mp4" in watching.paths("added"))


@pytest.mark.thorough
def test_growing_file_triggers_no_scans(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.mp4").write_bytes(b"no video")
    content = video(tmp_path / "source.mp4", seed=2).read_bytes()
    scans: list[float] = []

    def counted(*arguments: object) -> Scan:
        scans.append(time.monotonic())
        return scan(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("vidkin.index.watch.scan", counted)
    with watch_folder(index, folder) as watching:
        watching.wait_for(lambda reports: reports)
        part = folder / "film.mp4.part"
        with (folder / "film.mp4").open("wb") as file:
            file.write(content[:100])
            file.flush()
            time.sleep(1.5)  # the file has been seen by now
            before = len(scans)
            for place in range(100, 140):
                file.write(content[place : place + 1])
                file.flush()
                part.write_bytes(bytes(place))
                time.sleep(0.05)
            assert len(scans) == before
            file.write(content[140:])
        watching.wait_for(lambda _: "film.mp4" in watching.paths("added"))
        (folder / "film.mp4").unlink()
        watching.wait_for(lambda reports: reports[-1].missing)
    assert watching.paths("added") == ["film.mp4"]


@pytest.mark.kill
def test_second_watch_waits_until_the_first_writer_has_finished(index: Path, tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    video(tmp_path / "videos" / "film.mp4", seed=1)
    command = [sys.executable, "-m", "vidkin", "index", str(tmp_path / "videos"), "--index", str(index), "--watch"]
    with Index.open(index) as opened, opened.place.exclusive():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(8)
        assert process.poll() is None
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not len(Index.open(index, read_only=True)):
            time.sleep(0.2)
        assert len(Index.open(index, read_only=True)) == 1
    finally:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert "Traceback" not in said


def test_invalid_settle_time_and_read_only_index_are_refused(index: Path, tmp_path: Path) -> None:
    video(tmp_path / "videos" / "a.mp4", seed=1)
    with Index.open(index) as opened, pytest.raises(InvalidArgumentError, match="settle must be more than 0 s, got 0"):
        watch_folders(opened, tmp_path, settle=0)
    with Index.open(index, read_only=True) as opened, pytest.raises(CollectionError, match="opened read-only"):
        next(watch_folders(opened, tmp_path / "videos", settle=0.1))
