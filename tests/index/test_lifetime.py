"""The lifetime of an index: closed while in use, shared by threads, and sent to another process."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.index.helpers import video
from vidkin.errors import CollectionLockedError, IndexClosedError, InvalidArgumentError
from vidkin.index import Index, Progress, SerialExecutor


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("clips")
    return [video(folder / f"{seed}.mp4", seed=seed) for seed in range(5)]


def open_index(tmp_path: Path) -> Index:
    return Index.open(tmp_path / "i", extractor="classical", create=True)


USES: dict[str, Callable[[Index, Path], object]] = {
    "add": lambda index, clip: index.add(clip),
    "remove": lambda index, clip: index.remove(clip),
    "search": lambda index, clip: index.search(clip),
    "match": lambda index, clip: index.match(clip, clip),
    "duplicates": lambda index, clip: index.duplicates(),
    "coverage": lambda index, clip: index.coverage(clip),
    "recurring": lambda index, clip: index.recurring(),
    "recall": lambda index, clip: index.recall(),
    "reject": lambda index, clip: index.reject(clip, clip),
    "decisions": lambda index, clip: index.decisions(),
    "lists": lambda index, clip: index.lists(),
    "change_list": lambda index, clip: index.change_list("a", add=[clip]),
    "rename_list": lambda index, clip: index.rename_list("a", "b"),
    "use_sound": lambda index, clip: index.use_sound(True),
    "uncompared": lambda index, clip: index.uncompared(),
    "rejected_recurring": lambda index, clip: index.rejected_recurring(),
    "videos": lambda index, clip: index.videos(),
    "info": lambda index, clip: index.info(),
    "refresh": lambda index, clip: index.refresh(),
    "extractor": lambda index, clip: index.extractor,
    "scorer": lambda index, clip: index.scorer,
    "store": lambda index, clip: index.store,
    "len": lambda index, clip: len(index),
    "iter": lambda index, clip: list(index),
    "contains": lambda index, clip: clip in index,
}


def test_every_use_of_a_closed_index_raises_an_error(tmp_path: Path, clips: list[Path]) -> None:
    index = open_index(tmp_path)
    index.add(clips[:2], executor=SerialExecutor(index.worker_spec))
    assert index.search(clips[0])[0].path == str(clips[0])
    store = index.store
    index.close()
    for use in USES.values():
        with pytest.raises(IndexClosedError, match=r"i was closed; open it again with vidkin\.Index\.open"):
            use(index, clips[0])
    with pytest.raises(IndexClosedError, match="was closed"):
        store.refresh()
    with pytest.raises(IndexClosedError, match="was closed"):
        store.recover()
    assert repr(index) == f"Index({str(tmp_path / 'i')!r}, extractor='classical', closed)"
    index.close()
    with open_index(tmp_path) as again:
        assert len(again) == 2


def test_closing_stops_an_add_in_another_thread_and_keeps_complete_videos(tmp_path: Path, clips: list[Path]) -> None:
    index = open_index(tmp_path)
    first, raised = threading.Event(), []

    def note(progress: Progress) -> None:
        if progress.outcome is not None:
            first.set()

    def add() -> None:
        try:
            index.add(clips, executor=SerialExecutor(index.worker_spec), on_progress=note)
        except IndexClosedError as error:
            raised.append(str(error))

    thread = threading.Thread(target=add)
    thread.start()
    assert first.wait(60)
    index.close()
    thread.join(60)
    assert not thread.is_alive()
    with open_index(tmp_path) as again:
        assert raised or len(again) == 5  # it may have finished before
        assert len(again) >= 1
        again.add(clips, executor=SerialExecutor(again.worker_spec))
        assert len(again) == 5
        assert again.store.missing() == {}


def test_add_stops_if_its_progress_callback_closes_the_index(tmp_path: Path, clips: list[Path]) -> None:
    index = open_index(tmp_path)
    with pytest.raises(IndexClosedError, match="was closed"):
        index.add(clips, executor=SerialExecutor(index.worker_spec), on_progress=lambda _: index.close())
    with open_index(tmp_path) as again:
        assert again.add(clips, executor=SerialExecutor(again.worker_spec)).broken == ()
        assert len(again) == 5


def test_adds_in_two_threads_run_one_after_the_other(tmp_path: Path, clips: list[Path]) -> None:
    with open_index(tmp_path) as index:
        reports = []

        def add(files: list[Path]) -> None:
            reports.append(index.add(files, executor=SerialExecutor(index.worker_spec)))

        threads = [threading.Thread(target=add, args=(part,)) for part in (clips[:2], clips[2:])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(len(report.added) for report in reports) == [2, 3]
        assert len(index) == 5


def test_error_for_a_lock_held_by_this_process_says_so(tmp_path: Path, clips: list[Path]) -> None:
    with open_index(tmp_path) as index, index.place.exclusive():
        other = open_index(tmp_path)
        with pytest.raises(CollectionLockedError, match="is being written to by this process, since"):
            other.remove(clips[0])


def test_pickling_an_index_says_how_to_open_it_in_another_process(tmp_path: Path) -> None:
    with (
        open_index(tmp_path) as index,
        pytest.raises(InvalidArgumentError, match=r"open it there: vidkin\.Index\.open\("),
    ):
        pickle.dumps(index)
