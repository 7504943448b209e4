"""kill -9 at every step and at random times: recorded videos are complete, and the next run finishes the work."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.index.helpers import PLAIN, video
from tests.index.ingest.killed_writer import VIDEOS, entry, write
from tests.index.storage.test_stores import stored_ids
from vidkin.index import DiskStore, ProcessExecutor, VectorStore, open_place, scan
from vidkin.index.ingest.session import ingest

pytestmark = pytest.mark.kill

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
WRITER = [sys.executable, "-m", "tests.index.ingest.killed_writer"]
STEPS = [
    ("features", "write", 1, "before"),
    ("features", "write", 5, "after"),
    ("windows", "write", 1, "after"),
    ("windows", "write", 5, "before"),
    ("windows", "write", 5, "after"),
    ("videos", "commit", 1, "before"),
    ("videos", "commit", 1, "after"),
    ("videos", "commit", 6, "before"),
    ("videos", "commit", 6, "after"),
    ("videos", "commit", 14, "before"),
    ("videos", "commit", 14, "after"),
    ("videos", "commit", 15, "before"),
    ("videos", "commit", 15, "after"),
    ("windows", "copy_rows", 1, "before"),
    ("windows", "copy_rows", 1, "after"),
    ("videos", "commit", 16, "after"),
    ("index", "save", 1, "before"),
    ("index", "save", 1, "after"),
    ("features", "remove", 1, "before"),
    ("features", "remove", 1, "after"),
]


def check(store: VectorStore) -> None:
    """Every record is complete, and each path has one record."""
    records = store.videos()
    assert len({record.path for record in records}) == len(records)
    for record, features in zip(records, store.read_many([r.id for r in records]), strict=True):
        wanted = entry(record.size, version=record.mtime_ns)
        assert wanted.features is not None
        assert wanted.windows is not None
        assert np.array_equal(features.values, wanted.features.values)
        assert np.array_equal(features.timestamps, wanted.features.timestamps)
        assert np.array_equal(store.read_windows(record.id), wanted.windows.astype(np.float16))
    if records:
        query = entry(0).windows
        assert query is not None
        ids = store.nearest(query[:1], 1000).video_ids.flatten().tolist()
        assert set(ids) - {-1} == {record.id for record in records}


def check_without_remains(store: DiskStore) -> None:
    """No data remains that belongs to no record."""
    check(store)
    ids = sorted(record.id for record in store.videos())
    assert stored_ids(store) == ids
    assert sum(store._windows.counts().values()) == store.window_count()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: "-".join(map(str, step)))
def test_index_survives_a_kill_at_each_step(step: tuple[str, str, int, str], tmp_path: Path) -> None:
    table, method, turn, when = step
    command = [*WRITER, str(tmp_path / "store"), table, method, str(turn), when]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    check(DiskStore(open_place(tmp_path / "store")))
    again = DiskStore(open_place(tmp_path / "store"))
    write(again)
    check_without_remains(again)
    check_without_remains(DiskStore(open_place(tmp_path / "store")))
    assert again.count() == VIDEOS
    replaced = again.find("/videos/0.mp4")
    assert replaced is not None
    assert replaced.mtime_ns == 1


def test_index_survives_a_kill_at_a_random_time(tmp_path: Path) -> None:
    location = tmp_path / "store"
    moments = random.Random(7)
    for _ in range(4):
        with subprocess.Popen([*WRITER, str(location)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
            time.sleep(moments.uniform(0.05, 0.8))
            writer.kill()
        check(DiskStore(open_place(location)))
    store = DiskStore(open_place(location))
    store.recover()
    check_without_remains(store)
    store.optimize()
    check_without_remains(DiskStore(open_place(location)))
    assert store.count() > 0


def test_index_survives_a_kill_while_reading_videos(tmp_path: Path) -> None:
    for seed in range(12):
        video(tmp_path / "videos" / f"{seed:02}.mp4", seed=seed)
    code = (
        "import sys\nfrom tests.index.helpers import PLAIN\n"
        "from vidkin.index import DiskStore, ProcessExecutor, open_place, scan\n"
        "from vidkin.index.ingest import session as batch_writer, session\nbatch_writer.SECONDS_PER_COMMIT = 0\n"
        "session.ingest(DiskStore(open_place(sys.argv[2])), scan([sys.argv[1]]), ProcessExecutor(PLAIN, workers=2),\n"
        "       on_progress=lambda p: p.outcome and (print('one', flush=True), __import__('time').sleep(.3)))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "videos"), str(tmp_path / "store")]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        process.kill()
    store = DiskStore(open_place(tmp_path / "store"))
    before = store.count()
    assert 1 <= before < 12
    for record in store.videos():
        assert len(store.read(record.id)) == record.frames == 4
    store.recover()
    report = ingest(store, scan([tmp_path / "videos"]), ProcessExecutor(PLAIN, workers=2))
    assert (len(report.unchanged), len(report.added)) == (before, 12 - before)
    assert [os.path.basename(record.path) for record in store.videos()] == [f"{n:02}.mp4" for n in range(12)]
    assert stored_ids(store) == sorted(record.id for record in store.videos())
