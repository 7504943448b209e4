"""The index class that most programs use, with a real extractor and real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from tests.index.helpers import video
from tests.support.videos import encode, pan
from vidkin.errors import (
    CollectionError,
    CollectionLockedError,
    CollectionMismatchError,
    CollectionNotFoundError,
    NotIndexedError,
    UnknownExtractorError,
)
from vidkin.features import fit_edit_whitening, open_extractor
from vidkin.index import Index, Progress, SerialExecutor, WorkerSpec, open_place

HERE = SerialExecutor(WorkerSpec("classical"))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    for seed, name in enumerate(["a.mp4", "b.mp4", "sub/c.mp4"]):
        video(folder / name, seed=seed)
    return folder


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty index with a described background, which takes seconds to compute; tests copy it."""
    folder = tmp_path_factory.mktemp("calibrated") / "c.vidkin"
    with Index.open(folder, extractor="classical", create=True) as index:
        assert str(index.add([])) == "0 added, 0 unchanged, 0 moved, 0 broken, 0 removed"
    return folder


@pytest.fixture
def empty(calibrated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(calibrated, tmp_path / "c.vidkin")


@pytest.fixture(scope="module")
def prepared(originals: Path, calibrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the original videos; tests copy it."""
    folder = shutil.copytree(calibrated, tmp_path_factory.mktemp("prepared") / "c.vidkin")
    with Index.open(folder) as index:
        index.add(originals, executor=HERE)
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return shutil.copytree(prepared, tmp_path / "c.vidkin")


@pytest.mark.usefixtures("worker_processes")
def test_new_index_is_filled_by_worker_processes(originals: Path, empty: Path) -> None:
    seen: list[Progress] = []
    with Index.open(empty, extractor="classical") as index:
        report = index.add([originals], workers=2, on_progress=seen.append)
        assert str(report) == "3 added, 0 unchanged, 0 moved, 0 broken, 0 removed"
        assert seen[-1].done == seen[-1].total == 3
        assert index.extractor_name == "classical"
        assert repr(index) == f"Index('{empty}', extractor='classical', videos=3)"
        features = index.store.read(index.videos()[0].id)
        described = features.baselines[features.values.any(axis=(2, 3))]
        assert 0 < float(described.min()) <= float(described.max()) < 1
        info = index.info()
    assert (info.videos, info.broken, info.frames, info.seconds) == (3, 0, 12, 6.0)
    assert info.windows > 0
    assert info.bytes > features.values.nbytes * 3
    assert info.fingerprint.startswith("classical")
    with Index.open(empty) as index:
        assert [os.path.basename(record.path) for record in index.videos()] == ["a.mp4", "b.mp4", "c.mp4"]


@pytest.mark.process
def test_script_without_a_main_guard_works(originals: Path, empty: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, vidkin.index\n"
        "index = vidkin.index.Index.open(sys.argv[2])\n"
        "print(index.add(sys.argv[1], workers=2))\n"
    )
    done = subprocess.run([sys.executable, script, originals, empty], capture_output=True, text=True, check=True)
    assert done.stdout == "3 added, 0 unchanged, 0 moved, 0 broken, 0 removed\n"
    assert done.stderr == ""


def test_opening_a_missing_index_raises_an_error(tmp_path: Path) -> None:
    read_only = {"extractor": "classical", "create": True, "read_only": True}
    for options in ({}, {"extractor": "classical"}, {"whitening": tmp_path / "w.safetensors"}, read_only):
        with pytest.raises(
            CollectionNotFoundError, match=r"there is no index at .*none; create one with .*create=True"
        ) as told:
            Index.open(tmp_path / "none", **options)
        assert str(told.value).count(str(tmp_path)) == 1
    assert not (tmp_path / "none").exists()
    with pytest.raises(UnknownExtractorError):
        Index.open(tmp_path / "none", extractor="nonsense", create=True)
    assert not (tmp_path / "none").exists()


def test_another_extractor_is_refused(folder: Path) -> None:
    path = folder / "collection.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "fingerprint": "classical-0-000000000000"}))
    with pytest.raises(
        CollectionMismatchError, match=r"created with extractor classical-0-000000000000, got classical-1"
    ):
        Index.open(folder, extractor="classical")
    # Without naming an extractor, the list of videos can be read, but operations that need the extractor raise this
    # error.
    with Index.open(folder) as index:
        assert len(index.videos()) == 3
        with pytest.raises(CollectionMismatchError, match="cannot be compared"):
            index.add(folder, executor=HERE)


def test_read_only_index_cannot_be_changed(folder: Path, originals: Path) -> None:
    with Index.open(folder, read_only=True) as index:
        for write in (index.add, index.remove):
            with pytest.raises(CollectionError, match="was opened read-only; open it with read_only=False"):
                write(originals)
        assert len(index.videos()) == 3


def test_files_and_folders_are_removed(folder: Path, originals: Path) -> None:
    with Index.open(folder) as index:
        with pytest.raises(NotIndexedError, match=r"not-there\.mp4 is not in the index"):
            index.remove([originals / "a.mp4", originals / "not-there.mp4"])
        assert len(index.videos()) == 3
        assert index.remove(originals / "a.mp4") == 1
        assert index.remove(str(originals / "sub")) == 1
        assert [os.path.basename(record.path) for record in index.videos()] == ["b.mp4"]
        report = index.add([originals / "a.mp4", originals / "sub"], executor=HERE)
        assert str(report) == "2 added, 0 unchanged, 0 moved, 0 broken, 0 removed"


def test_accents_may_be_composed_or_decomposed_when_removing(folder: Path, tmp_path: Path) -> None:
    path = video(tmp_path / unicodedata.normalize("NFD", "café.mp4"), seed=4)
    with Index.open(folder) as index:
        index.add(path, executor=HERE)
        assert index.remove(unicodedata.normalize("NFC", str(path))) == 1


def test_second_writer_fails_but_readers_do_not(folder: Path, originals: Path) -> None:
    with Index.open(folder) as index, open_place(folder).exclusive():
        with pytest.raises(CollectionLockedError, match="being written to by this process"):
            index.add(originals)
        with pytest.raises(CollectionLockedError, match=r"still after 0.1 s"):
            index.remove(originals, wait=0.1)
        with Index.open(folder) as reader:
            assert len(reader.videos()) == 3


def test_reader_sees_consistent_snapshots_during_a_write(folder: Path, originals: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    for seed in range(4):
        video(more / f"{seed}.mp4", seed=20 + seed)
    reader = Index.open(folder, read_only=True)
    dimension = reader.store.read_windows(reader.videos()[0].id).shape[1]
    seen: list[int] = []

    def read(progress: Progress) -> None:
        assert len(reader.videos()) == (seen[-1] if seen else 3), "a snapshot does not move by itself"
        reader.refresh()
        for record in reader.videos():
            assert len(reader.store.read(record.id)) == record.frames
            assert len(reader.store.read_windows(record.id)) == record.windows
        found = reader.store.nearest(np.eye(dimension, dtype=np.float32)[:1], 50).video_ids
        assert set(found.flatten().tolist()) <= {-1, *(record.id for record in reader.videos())}
        seen.append(len(reader.videos()))

    with Index.open(folder) as index:
        index.add(more, executor=HERE, on_progress=read)
    assert seen == sorted(seen)
    assert seen[-1] == 7


@pytest.mark.kill
def test_ctrl_c_leaves_a_usable_index_and_no_processes(empty: Path, tmp_path: Path) -> None:
    videos = tmp_path / "videos"
    for seed in range(8):
        video(videos / f"{seed}.mp4", seed=seed)
    code = (
        "import sys, time\nfrom vidkin.index import Index, IngestInterrupted\n"
        "def slowly(progress):\n"
        "    if progress.outcome: print('one', flush=True); time.sleep(0.5)\n"
        "try:\n    Index.open(sys.argv[2]).add(sys.argv[1], workers=2, on_progress=slowly)\n"
        "except IngestInterrupted as stop:\n    print(len(stop.report.added)); sys.exit(130)\n"
    )
    command = [sys.executable, "-c", code, str(videos), str(empty)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    settled = int(output.split()[-1])
    with Index.open(empty) as index:
        before = len(index.videos())
        # On a fast machine, all videos may be added before the signal is handled; added videos are complete either way.
        assert 1 <= settled <= before <= 8
        report = index.add(videos, executor=HERE)
        assert (len(report.unchanged), len(report.added)) == (before, 8 - before)


@pytest.mark.thorough
def test_new_path_of_a_moved_whitening_is_stored(tmp_path: Path) -> None:
    first, second = tmp_path / "w.safetensors", tmp_path / "moved.safetensors"
    fit_edit_whitening(open_extractor("classical"), pan("coffee", 5), dimension=16).save(first)
    videos = tmp_path / "videos"
    clip = video(videos / "a.mp4")
    with Index.open(tmp_path / "c", whitening=first, create=True) as index:
        index.add(videos, executor=SerialExecutor(index.worker_spec))
    first.rename(second)
    with (
        Index.open(tmp_path / "c", read_only=True) as index,
        pytest.raises(CollectionError, match=r"which no longer exists; .*--whitening FILE.*to save it in the index"),
    ):
        index.search(clip)
    with Index.open(tmp_path / "c", whitening=second, read_only=True) as index:
        assert index.search(clip)  # only for this session, because the index is read-only
    with pytest.raises(CollectionError), Index.open(tmp_path / "c") as index:
        index.search(clip)
    Index.open(tmp_path / "c", whitening=second).close()
    with Index.open(tmp_path / "c") as index:
        assert index.search(clip)


def test_manifest_lost_during_a_run_is_reported(tmp_path: Path) -> None:
    """Simulates that another program deletes the folder, which later writes create again."""
    encode(tmp_path / "a.mp4", pan("coffee", 20, width=96, height=64))
    index = Index.open(tmp_path / "i.vidkin", extractor="classical", create=True)

    def delete(*_: object) -> None:
        (tmp_path / "i.vidkin" / "collection.json").unlink(missing_ok=True)

    with pytest.raises(CollectionError, match="was deleted or moved while videos were being added"):
        index.add([tmp_path / "a.mp4"], workers=1, on_progress=delete)
