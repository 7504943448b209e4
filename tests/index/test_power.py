"""Power failures during indexing: recorded videos are complete, and the same call finishes the work."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from tests.index.helpers import video
from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin.errors import VidkinError
from vidkin.index import Index, SerialExecutor

# Each test builds and searches an index some seventy times.
pytestmark = [pytest.mark.kill, pytest.mark.timeout(900)]


def add(location: Path, videos: Path) -> None:
    """Index a folder as `vidkin index` does, and store a decision."""
    with Index.open(location, extractor="classical", create=True) as index:
        index.add([videos], executor=SerialExecutor(index.worker_spec))
        index.reject(videos / "0.mp4", videos / "1.mp4")


def check(location: Path, videos: Path) -> None:
    with Index.open(location, read_only=True) as index:
        records = index.videos()
        assert [Path(record.path).name for record in records] == ["0.mp4", "1.mp4"]
        assert [record.status for record in records] == ["ok", "ok"]
        assert len(index.store.read_many([record.id for record in records])) == 2
        assert index.search(videos / "0.mp4")[0].score == 1.0
        assert len(index.decisions()) == 1


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
def test_index_is_completed_after_a_power_failure_at_any_operation(
    tmp_path: Path, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    videos = tmp_path / "videos"
    for seed in range(2):
        video(videos / f"{seed}.mp4", seed=seed)
    operations = count_operations(monkeypatch, lambda: add(tmp_path / "whole", videos))
    assert {"create", "sync", "rename"} <= set(operations)
    for turn in range(len(operations)):
        power, location = PowerCut(turn, names), tmp_path / f"{turn}"
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", power)
            with pytest.raises(PowerCutError):
                add(location, videos)
        power.lose()
        add(location, videos)
        check(location, videos)


def test_index_is_completed_after_a_disk_error_at_any_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    videos = tmp_path / "videos"
    for seed in range(2):
        video(videos / f"{seed}.mp4", seed=seed)
    for turn in range(len(count_operations(monkeypatch, lambda: add(tmp_path / "whole", videos)))):
        location = tmp_path / f"{turn}"
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            with suppress(VidkinError):
                add(location, videos)
        add(location, videos)
        check(location, videos)
