"""The snapshot of the tables: it gives the same results, and is ignored once the tables have changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.index.storage.test_stores import entry, record, unit
from vidkin.index import VectorStore, open_place
from vidkin_scale.lance_snapshot import SNAPSHOT_FILE, read_snapshot
from vidkin_scale.lance_store import TABLES, LanceStore

QUERY = unit([1.0, 2.0, 0.0, 0.0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two videos, one of them with two windows, and a file that cannot be read."""
    store = LanceStore(open_place(tmp_path / "store"))
    store.append_many([entry("/a.mp4"), entry("/\udcff.mp4", vectors=unit([0.0, 1, 0, 0], [1.0, 1, 1, 1]), seed=1)])
    store.append(record("/b.mp4", status="broken", cause="it's no video"))
    store.optimize()
    store.close()
    return tmp_path / "store"


def is_open(store: LanceStore) -> bool:
    return store._tables is not None


def answers(store: VectorStore) -> tuple[object, ...]:
    """Read everything that a store has about its videos."""
    nearest = store.nearest(QUERY, 3)
    columns = [nearest.video_ids, nearest.windows, nearest.scores]
    for video in store.videos():
        if video.status == "ok":
            windows = store.read_windows(video.id)
            assert windows.dtype == np.float16
            columns.append(windows)
    return store.videos(), store.count(), store.window_count(), [column.tolist() for column in columns]


def test_snapshot_gives_the_results_of_the_tables(folder: Path) -> None:
    copy = LanceStore(open_place(folder))
    found = answers(copy)
    assert not is_open(copy)
    (folder / SNAPSHOT_FILE).unlink()
    tables = LanceStore(open_place(folder))
    assert is_open(tables)
    assert answers(tables) == found


def test_removal_rewrites_the_snapshot(folder: Path) -> None:
    writer = LanceStore(open_place(folder))
    gone = writer.find("/a.mp4")
    assert gone is not None
    writer.remove([gone.id])
    writer.close()
    reader = LanceStore(open_place(folder))
    assert [video.path for video in reader.videos()] == ["/b.mp4", "/\udcff.mp4"]
    assert reader.nearest(QUERY, 3).video_ids.tolist() == [[2, 2, -1]]
    assert not is_open(reader)


def test_snapshot_is_read_without_lance_or_arrow(folder: Path) -> None:
    code = (
        "import sys\nimport numpy as np\nfrom vidkin.index import open_place\n"
        "from vidkin_scale.lance_store import LanceStore\n"
        "store = LanceStore(open_place(sys.argv[1]))\n"
        "assert len(store.videos()) == 3 and not store.refresh()\n"
        "store.nearest(np.ones((1, 4), np.float32), 2)\n"
        "print(*{'lance', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_reader_sees_changes_after_refresh(folder: Path) -> None:
    reader, writer = LanceStore(open_place(folder)), LanceStore(open_place(folder))
    before = reader.videos()
    assert not reader.refresh()
    (added,) = writer.append_many([entry("/c.mp4", vectors=QUERY)])
    assert is_open(writer)
    assert reader.videos() == before
    assert reader.refresh()
    assert is_open(reader)
    assert added in reader.videos()
    assert reader.nearest(QUERY, 1).video_ids.tolist() == [[added.id]]
    assert not reader.refresh()


def test_writer_reads_tables_instead_of_the_snapshot(folder: Path) -> None:
    store = LanceStore(open_place(folder))
    first = store.find("/a.mp4")
    assert first is not None
    store.remove([first.id])
    assert first.id not in store.nearest(QUERY, 3).video_ids
    (added,) = store.append_many([entry("/c.mp4", vectors=QUERY)])
    assert added.id == 4
    assert store.nearest(QUERY, 1).video_ids.tolist() == [[added.id]]
    assert read_snapshot(open_place(folder), TABLES) is None
    store.optimize()
    again = LanceStore(open_place(folder))
    assert not is_open(again)
    assert answers(again) == answers(store)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage", [_cut, _flip, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"x" * 99)]
)
def test_damaged_snapshot_is_ignored(folder: Path, damage: Callable[[Path], object]) -> None:
    expected = answers(LanceStore(open_place(folder)))
    damage(folder / SNAPSHOT_FILE)
    store = LanceStore(open_place(folder))
    assert is_open(store)
    assert answers(store) == expected


def test_changed_tables_are_read_instead_of_the_snapshot(folder: Path) -> None:
    (data, *_) = (folder / "windows.lance" / "data").iterdir()
    status = data.stat()
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert is_open(LanceStore(open_place(folder)))


def test_unwritable_folder_has_no_snapshot(folder: Path) -> None:
    (folder / SNAPSHOT_FILE).unlink()
    (folder / SNAPSHOT_FILE).mkdir()
    store = LanceStore(open_place(folder))
    store.optimize()
    assert is_open(LanceStore(open_place(folder)))


def test_snapshot_omits_windows_searched_by_lance(tmp_path: Path) -> None:
    store = LanceStore(open_place(tmp_path / "store"), exact_below=100)
    vectors = unit(*np.random.default_rng(0).standard_normal((300, 8)).tolist())
    store.append_many([entry(f"/{n}.mp4", frames=1, vectors=vectors) for n in range(2)])
    store.optimize()
    reader = LanceStore(open_place(tmp_path / "store"))
    assert len(reader.videos()) == 2
    assert not is_open(reader)
    assert reader.nearest(vectors[:1], 2).video_ids.tolist() in ([[1, 2]], [[2, 1]])
    assert is_open(reader)
