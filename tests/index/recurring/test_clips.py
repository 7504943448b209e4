"""Small pictures around ends: read once, whatever is asked for, and the same as if they were read alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin.index import VideoRecord
from vidkin.index.recurring import clips as clips_module
from vidkin.index.recurring.clips import REACH, Clips

RATE, LENGTH = 25, 20  # frames a second, seconds


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> VideoRecord:
    path = tmp_path_factory.mktemp("clips") / "a.mp4"
    encode(path, pan("astronaut", RATE * LENGTH), rate=RATE, options={"g": "60"})
    return VideoRecord(path=str(path), size=1, mtime_ns=1, content_hash="", duration=float(LENGTH))


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """What is decoded, start and end in seconds."""
    asked: list[tuple[float, float]] = []
    read = clips_module._read_run

    def read_and_tell(path: str, start: float, end: float, threads: int = 1) -> clips_module._Run:
        asked.append((start, end))
        return read(path, start, end, threads)

    monkeypatch.setattr(clips_module, "_read_run", read_and_tell)
    return asked


def test_a_clip_has_all_frames_of_its_seconds_however_they_were_read(record: VideoRecord) -> None:
    with Clips() as clips:
        clips.read_ahead([(record, 5.0), (record, 14.0)])
        for middle in (5, 14, 6, 9, 11, 1, 19):  # held, a little beyond, between two runs, both ends of the file
            clip = clips.around(record, middle + 0.2)
            with Clips() as fresh:
                alone = fresh.around(record, middle + 0.2)
            first, last = max(0.0, middle - REACH), min(float(LENGTH), middle + REACH)
            frames = np.arange(np.ceil(first * RATE), np.ceil(last * RATE)) / RATE
            np.testing.assert_allclose(clip.times, frames, atol=1e-6)
            np.testing.assert_array_equal(clip.images, alone.images)
            assert (clip.is_first, clip.is_last) == (middle == 1, middle == 19)


def test_a_clip_across_two_runs_too_long_to_be_joined_is_read_whole(
    record: VideoRecord, spans: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clips_module, "_LONGEST_BYTES", 1)
    with Clips() as clips:
        clips.around(record, 8.0)
        clip = clips.around(record, 11.0)
        assert spans[1:] == [(8 + REACH + 1, 11 + REACH + 1), (11 - REACH - 1, 11 + REACH + 1)]
        with Clips() as fresh:
            np.testing.assert_array_equal(clip.images, fresh.around(record, 11.0).images)
        count = len(spans)
        assert clips.around(record, 10.0).times[0] == pytest.approx(7.76)  # inside what was read whole
        assert len(spans) == count
        assert clips._bytes == sum(run.images.nbytes for run in clips._runs.values())


def test_no_second_is_decoded_twice(record: VideoRecord, spans: list[tuple[float, float]]) -> None:
    with Clips() as clips:
        clips.read_ahead([(record, 8.0)])
        clips.read_ahead([(record, 8.0), (record, 9.0)])  # while it is being read, and within the margin
        clips.around(record, 8.0)
        clips.around(record, 7.0)
        assert spans == [(8 - REACH - 1, 8 + REACH + 1)]
        clips.around(record, 11.0)  # two seconds beyond the margin
        assert spans[1:] == [(8 + REACH + 1, 11 + REACH + 1)]


def test_what_lies_beyond_the_end_of_a_file_is_asked_for_in_vain(record: VideoRecord) -> None:
    with Clips() as clips:
        clips.around(record, LENGTH - 2.0)  # decoded up to 1.25 s after the end
        clip = clips.around(record, float(LENGTH))
    assert clip.is_last
    assert clip.times[-1] == pytest.approx(LENGTH - 1 / RATE)


def test_a_file_that_is_gone_is_told_where_it_is_looked_at(record: VideoRecord, tmp_path: Path) -> None:
    gone = VideoRecord(path=str(tmp_path / "gone.mp4"), size=1, mtime_ns=1, content_hash="", duration=9.0)
    with Clips() as clips:
        clips.read_ahead([(gone, 3.0), (record, 3.0)])
        assert len(clips.around(record, 3.0).times) > 0
        with pytest.raises(MediaError, match="gone"):
            clips.around(gone, 3.0)
