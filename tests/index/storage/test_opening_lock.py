"""Only one writer at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vidkin.errors import CollectionError, CollectionLockedError
from vidkin.index import open_place
from vidkin.index.storage.opening import has_waiting_writer, wait_in_queue

HOLD = """
import sys, time
from pathlib import Path
from vidkin.index.storage.opening import open_place
with open_place(sys.argv[1]).exclusive():
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holder(folder: Path, seconds: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.kill
def test_second_writer_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    with holder(tmp_path, 60) as other:
        started = time.monotonic()
        with (
            pytest.raises(
                CollectionLockedError,
                match=rf"being written to by process {other.pid} on \S+ since 20.*in Python wait=SECONDS",
            ),
            open_place(tmp_path).exclusive(),
        ):
            raise AssertionError("never reached")
        assert time.monotonic() - started < 5
        other.kill()
    # kill -9 releases the lock, and the remaining note does not block another process.
    with open_place(tmp_path).exclusive():
        assert f'"pid": {os.getpid()}' in (tmp_path / "writer.json").read_text()
    assert not (tmp_path / "writer.json").exists()


@pytest.mark.kill
def test_writer_can_wait_for_the_lock(tmp_path: Path) -> None:
    with holder(tmp_path, 1.0), open_place(tmp_path).exclusive(30):
        pass


def test_waiting_for_the_lock_times_out(tmp_path: Path) -> None:
    with (
        open_place(tmp_path).exclusive(),
        pytest.raises(CollectionLockedError, match=r"still after 0.2 s by this process"),
        open_place(tmp_path).exclusive(0.2),
    ):
        raise AssertionError("never reached")


def test_writers_get_the_lock_in_order_of_arrival(tmp_path: Path) -> None:
    """A process that writes repeatedly does not starve the others."""
    order: list[str] = []

    def write(name: str) -> None:
        with open_place(tmp_path).exclusive(30):
            order.append(name)

    with open_place(tmp_path).exclusive():
        threads = []
        for name in ("first", "second", "third"):
            threads.append(threading.Thread(target=write, args=[name]))
            threads[-1].start()
            places = len(threads)
            _wait_for(lambda places=places: len(list(tmp_path.glob("writer.queue/[!.]*"))) == places)
    for _ in range(3):
        write("again")
    for thread in threads:
        thread.join()
    assert order[:4] == ["first", "second", "third", "again"]
    assert not (tmp_path / "writer.queue").exists()


def test_new_writer_does_not_overtake_waiting_ones(tmp_path: Path) -> None:
    with (
        wait_in_queue(tmp_path),
        pytest.raises(CollectionLockedError, match="try again later"),
        open_place(tmp_path).exclusive(),
    ):
        raise AssertionError("never reached")
    with open_place(tmp_path).exclusive():
        pass


@pytest.mark.kill
def test_writer_killed_in_the_queue_does_not_block_others(tmp_path: Path) -> None:
    code = HOLD.replace("import open_place", "import wait_in_queue").replace(
        "open_place(sys.argv[1]).exclusive()", "wait_in_queue(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert has_waiting_writer(tmp_path)
        other.kill()
    with open_place(tmp_path).exclusive(5):
        pass
    with open_place(tmp_path).exclusive():
        pass


@pytest.mark.parametrize("wait", [0, 5])
@pytest.mark.parametrize(
    "name",
    ["errors.log", "videos.sqlite", "features/000000", "writer.lock", "writer.queue"],
)
def test_index_with_a_symbolic_link_is_not_modified(tmp_path: Path, name: str, wait: float) -> None:
    folder, elsewhere = tmp_path / "index", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "photo.jpg").touch()
    link = folder / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with (
        pytest.raises(CollectionError, match=rf"{link} is a symbolic link"),
        open_place(folder).exclusive(wait),
    ):
        raise AssertionError("never reached")
    assert [path.name for path in elsewhere.iterdir()] == ["photo.jpg"]


def test_foreign_files_in_the_queue_are_kept(tmp_path: Path) -> None:
    (tmp_path / "writer.queue").mkdir()
    (tmp_path / "writer.queue" / "photo.jpg").touch()
    with (
        open_place(tmp_path).exclusive(),
        pytest.raises(CollectionLockedError),
        open_place(tmp_path).exclusive(0.1),
    ):
        raise AssertionError("never reached")
    with open_place(tmp_path).exclusive(5):
        assert [path.name for path in (tmp_path / "writer.queue").iterdir()] == ["photo.jpg"]


def test_lock_note_is_not_written_through_a_symbolic_link(tmp_path: Path) -> None:
    folder, precious = tmp_path / "index", tmp_path / "precious"
    folder.mkdir()
    precious.write_text("mine")
    for name in ("writer.json", "writer.lock"):
        (folder / name).symlink_to(precious)
        with pytest.raises(CollectionError), open_place(folder).exclusive():
            raise AssertionError("never reached")
        shutil.rmtree(folder)
        folder.mkdir()
    assert precious.read_text() == "mine"


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_lock_without_a_note_still_holds(tmp_path: Path) -> None:
    with open_place(tmp_path).exclusive():
        (tmp_path / "writer.json").write_text("{}")
        with (
            pytest.raises(CollectionLockedError, match=r"by another process;"),
            open_place(tmp_path).exclusive(),
        ):
            raise AssertionError("never reached")
