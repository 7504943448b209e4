"""What FFmpeg says while a file is read."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.media import iter_frames
from vidkin.media.container import collect_complaints


@pytest.fixture
def cut_off(tmp_path: Path) -> Path:
    """A WebM without a duration in its header, as recorders in browsers write it, that ends in the middle."""
    path = encode(
        tmp_path / "a.webm",
        pan("coffee", 40, width=96, height=64),
        codec="libvpx",
        options={"deadline": "realtime", "cpu-used": "8"},
    )
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    return path


def test_errors_of_the_demuxer_are_collected_once_each(cut_off: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with collect_complaints() as complaints:
        list(iter_frames(cut_off, rate=None, threads=1))
        assert complaints == []
    assert any("File ended prematurely" in line for line in complaints)
    assert len(complaints) == len(set(complaints))
    assert capfd.readouterr().err == ""


def test_errors_of_other_threads_are_left_out(cut_off: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with collect_complaints() as complaints:
        reader = threading.Thread(target=lambda: list(iter_frames(cut_off, rate=None, threads=1)))
        reader.start()
        reader.join()
    assert complaints == []
    assert capfd.readouterr().err == ""


def test_a_whole_file_gives_no_complaint_and_logging_stays_as_it_was(tmp_path: Path) -> None:
    import av.logging

    before = av.logging.get_level()
    path = encode(tmp_path / "a.mp4", pan("coffee", 20, width=96, height=64))
    with collect_complaints() as complaints:
        list(iter_frames(path, rate=None, threads=1))
    assert complaints == []
    assert av.logging.get_level() == before
    assert logging.getLogger("libav").propagate is False
