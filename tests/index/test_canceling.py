"""Running work can be canceled, reports progress, and keeps finished parts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vidkin
from tests.support.videos import encode, pan
from vidkin.index import Progress, SerialExecutor

Use = Callable[[vidkin.Index, Path], object]
USES: dict[str, Use] = {
    "search": lambda index, clip: index.search(clip),
    "match": lambda index, clip: index.match(clip, clip),
    "duplicates": lambda index, clip: index.duplicates(),
    "recurring": lambda index, clip: index.recurring(remember=False),
    "coverage": lambda index, clip: index.coverage(clip),
    "recall": lambda index, clip: index.recall(),
    "compare": lambda index, clip: vidkin.compare(clip, clip),
    "detect_shots": lambda index, clip: vidkin.detect_shots(clip),
}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("canceled")
    names = ("coffee", "rocket", "chelsea", "astronaut")
    return [encode(folder / f"{name}.mp4", pan(name, 60, width=96, height=64)) for name in names]


@pytest.fixture(scope="module")
def index(clips: list[Path]) -> Iterator[vidkin.Index]:
    with vidkin.Index.open(clips[0].with_name("i"), create=True) as opened:
        opened.add(clips, executor=SerialExecutor(opened.worker_spec))
        yield opened


@pytest.mark.parametrize("name", USES)
def test_canceled_work_stops_and_the_next_call_works(name: str, index: vidkin.Index, clips: list[Path]) -> None:
    asked = 0

    def is_unwanted() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    def use() -> None:
        for _ in range(4):  # short work checks only once or twice
            USES[name](index, clips[0])

    with pytest.raises(vidkin.StoppedError), vidkin.stopping_when(is_unwanted):
        use()
    USES[name](index, clips[0])


def test_canceled_add_keeps_complete_videos(tmp_path: Path, clips: list[Path]) -> None:
    stop = threading.Event()

    def note(progress: Progress) -> None:
        if progress.path == str(clips[2]):
            stop.set()

    with vidkin.Index.open(tmp_path / "i", extractor="classical", create=True) as index:
        executor = SerialExecutor(index.worker_spec)
        with pytest.raises(vidkin.StoppedError, match="canceled"), vidkin.stopping_when(stop.is_set):
            index.add(clips, executor=executor, on_progress=note)
        complete = len(index)
        assert 1 <= complete < 4
        assert len(index.add(clips, executor=executor).added) == 4 - complete
        assert len(index) == 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("search", {"query": "coffee"}),
        ("duplicates", {}),
        ("recurring", {"remember": False}),
        ("coverage", {"path": "rocket"}),
    ],
)
def test_progress_reaches_the_total_and_its_exceptions_stop_the_work(
    name: str, options: dict[str, Any], index: vidkin.Index, clips: list[Path]
) -> None:
    steps: list[tuple[int, int]] = []
    options = {
        key: clips[0].with_name(f"{value}.mp4") if isinstance(value, str) else value for key, value in options.items()
    }
    getattr(index, name)(**options, on_progress=lambda done, total: steps.append((done, total)))
    assert steps
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1][0] == steps[-1][1]

    def fail(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match=" of "):
        getattr(index, name)(**options, on_progress=fail)


def test_search_in_an_asyncio_thread_can_be_canceled(index: vidkin.Index, clips: list[Path]) -> None:
    stop = threading.Event()

    async def search() -> None:
        with vidkin.stopping_when(stop.is_set):
            await asyncio.to_thread(index.search, clips[0])
            stop.set()
            await asyncio.to_thread(index.search, clips[0])

    with pytest.raises(vidkin.StoppedError):
        asyncio.run(search())
