"""Small frames around the ends of segments: all frames of the surrounding seconds, read once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin.index import VideoRecord
from vidkin.index.recurring.ends import REACH, Clips

RATE, LENGTH = 25, 20  # frames per second; seconds


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> VideoRecord:
    path = tmp_path_factory.mktemp("clips") / "a.mp4"
    encode(path, pan("astronaut", RATE * LENGTH), rate=RATE, options={"g": "60"})
    return VideoRecord(path=str(path), size=1, mtime_ns=1, content_hash="", duration=float(LENGTH))


@pytest.mark.parametrize(("time", "middle"), [(0.2, 0), (4.7, 4), (5.2, 6), (19.5, 20), (24.0, 20)])
def test_clip_has_all_frames_around_a_time(record: VideoRecord, time: float, middle: int) -> None:
    clip = Clips().around(record, time)
    first, last = max(0.0, middle - REACH), min(float(LENGTH), middle + REACH)
    frames = np.arange(np.ceil(first * RATE), np.ceil(last * RATE)) / RATE
    np.testing.assert_allclose(clip.times, frames, atol=1e-6)
    assert (clip.is_first, clip.is_last) == (middle == 0, middle == LENGTH)


def test_clips_are_cached(record: VideoRecord) -> None:
    clips = Clips()
    assert clips.around(record, 5.2) is clips.around(record, 6.8)


def test_missing_file_raises_an_error(record: VideoRecord, tmp_path: Path) -> None:
    gone = VideoRecord(path=str(tmp_path / "gone.mp4"), size=1, mtime_ns=1, content_hash="", duration=9.0)
    with pytest.raises(MediaError, match="gone"):
        Clips().around(gone, 3.0)
