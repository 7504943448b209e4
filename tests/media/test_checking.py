"""Files are decoded completely with strict error detection."""

from __future__ import annotations

import logging
from pathlib import Path

import av.logging
import numpy as np
import pytest

from tests.support.videos import broken_off, encode, pan
from vidkin.errors import MediaError
from vidkin.media import check_file

LAYOUTS = {
    "a.mp4": "libx264",
    "a.mkv": "libx264",
    "a.ts": "libx264",
    "a.avi": "mpeg4",
    "a.webm": "libvpx",
    "a.mpg": "mpeg2video",
    "a.wmv": "wmv2",
    "a.flv": "flv",
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve seconds in each layout, with a key frame every second."""
    folder = tmp_path_factory.mktemp("films")
    frames = list(pan("coffee", 300, width=96, height=64))
    for name, codec in LAYOUTS.items():
        encode(folder / name, frames, rate=25, codec=codec, options={"g": "25"})
    return folder


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_intact_file_decodes_without_an_error(films: Path, name: str) -> None:
    check = check_file(films / name)
    assert check.errors == ()
    assert check.is_whole
    assert check.frames == 300
    assert check.duration == pytest.approx(12.0, abs=0.11)


@pytest.mark.parametrize("filling", ["noise", "zeros"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_overwritten_bytes_are_reported_with_their_time(
    films: Path, tmp_path: Path, name: str, filling: str, capfd: pytest.CaptureFixture[str]
) -> None:
    content = bytearray((films / name).read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = np.random.default_rng(0).bytes(2000) if filling == "noise" else bytes(2000)
    (tmp_path / name).write_bytes(content)
    check = check_file(tmp_path / name)
    assert not check.is_whole
    assert check.error_count >= len(check.errors) >= 1
    times = [error.seconds for error in check.errors if error.seconds is not None]
    # FFmpeg scans a short FLV without sound completely before decoding begins.
    assert times or name == "a.flv"
    assert all(3.0 < time < 9.0 for time in times[:1])
    assert all(error.cause and "\n" not in error.cause for error in check.errors)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi", "a.webm", "a.wmv"])
def test_a_truncated_file_is_reported_as_cut_off(films: Path, tmp_path: Path, name: str) -> None:
    if name == "a.mp4":
        broken_off(films / name, tmp_path / name)
    else:
        content = (films / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
    check = check_file(tmp_path / name)
    assert check.duration < 10
    assert check.errors[-1].cause == f"the file is cut off: it has {check.duration:.1f} s of 12.0 s"


def test_missing_packets_of_a_transport_stream_are_reported(films: Path, tmp_path: Path) -> None:
    content = (films / "a.ts").read_bytes()
    middle = len(content) // 2 // 188 * 188
    (tmp_path / "a.ts").write_bytes(content[:middle] + content[middle + 3 * 188 :])
    check = check_file(tmp_path / "a.ts")
    assert any("Continuity check failed" in error.cause for error in check.errors)


def test_only_the_first_errors_are_listed(films: Path, tmp_path: Path) -> None:
    content = bytearray((films / "a.mp4").read_bytes())
    begin, end = content.index(b"mdat") + 2000, content.index(b"moov")
    content[begin:end] = np.random.default_rng(0).bytes(end - begin)
    (tmp_path / "a.mp4").write_bytes(content)
    check = check_file(tmp_path / "a.mp4")
    assert len(check.errors) == 10
    assert check.error_count > 10


def test_a_file_without_video_is_damaged_and_a_missing_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.mp4").write_text("Dear diary,\n" * 100, encoding="utf-8")
    check = check_file(tmp_path / "notes.mp4")
    assert (check.frames, check.is_whole) == (0, False)
    assert "this is text, not video" in check.errors[0].cause
    with pytest.raises(MediaError, match="there is no such file"):
        check_file(tmp_path / "nothing.mp4")


def test_the_log_level_of_ffmpeg_is_restored(films: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = av.logging.get_level(), av.logging.get_skip_repeated()
    with caplog.at_level(logging.DEBUG):
        check_file(films / "a.mp4")
    assert (av.logging.get_level(), av.logging.get_skip_repeated()) == before
