"""Several videos in parallel: results in order, with errors in place of unreadable files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.detections import cut_video
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.shots import detect_many


@pytest.mark.process
@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_the_order_of_the_videos(tmp_path: Path, workers: int) -> None:
    films = [cut_video(tmp_path / "a.mp4"), tmp_path / "missing.mp4", cut_video(tmp_path / "b.mp4", rate=25)]
    first, missing, last = detect_many(films, "shotdetect", workers=workers)
    assert not isinstance(first, MediaError)
    assert not isinstance(last, MediaError)
    assert [cut.frame for cut in first.cuts] == [cut.frame for cut in last.cuts] == [20, 45]
    assert isinstance(missing, MediaError)
    assert missing.path == str(films[1])


def test_invalid_workers_and_detectors_are_rejected_immediately() -> None:
    with pytest.raises(InvalidArgumentError, match="workers must be at least 1, got 0"):
        next(detect_many(["a.mp4", "b.mp4"], workers=0))
    with pytest.raises(InvalidArgumentError, match="'canny' is not a shot detector"):
        next(detect_many(["a.mp4", "b.mp4"], "canny"))
