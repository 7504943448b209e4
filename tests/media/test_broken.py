"""Every broken file raises a `MediaError` with file and cause, and damage is reported."""

from __future__ import annotations

import errno
import io
import logging
import os
import pickle
import re
import struct
import subprocess
import sys
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image as PILImage

from tests.media.makers import encode_with, flat, quarters
from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin.media import PictureReader, iter_frames, probe, read_frames, thumbnail, write_clip
from vidkin.media import reader as reader_module


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 seconds with a key frame every second."""
    path = tmp_path_factory.mktemp("broken") / "good.mp4"
    return encode(path, pan("coffee", 200), rate=25, options={"g": "25", "preset": "veryfast"})


def missing(folder: Path, good: Path) -> Path:
    return folder / "nothing.mp4"


def folder(folder: Path, good: Path) -> Path:
    return folder


def empty(folder: Path, good: Path) -> Path:
    (folder / "empty.mp4").touch()
    return folder / "empty.mp4"


def text(folder: Path, good: Path) -> Path:
    (folder / "notes.mp4").write_text("Dear diary,\n" * 100, encoding="utf-8")
    return folder / "notes.mp4"


def noise(folder: Path, good: Path) -> Path:
    (folder / "noise.mkv").write_bytes(np.random.default_rng(0).bytes(20_000))
    return folder / "noise.mkv"


def zeros(folder: Path, good: Path) -> Path:
    (folder / "zeros.avi").write_bytes(bytes(20_000))
    return folder / "zeros.avi"


def sound(folder: Path, good: Path) -> Path:
    with wave.open(str(folder / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16_000))
    return folder / "a.wav"


def cover(folder: Path, good: Path) -> Path:
    path = folder / "song.mp4"
    with av.open(str(path), "w") as container:
        audio = container.add_stream("aac", rate=8000)
        picture = container.add_stream("png", rate=1)
        picture.width, picture.height, picture.pix_fmt = 96, 64, "rgb24"
        picture.disposition = av.stream.Disposition.attached_pic
        container.mux(picture.encode(av.VideoFrame.from_ndarray(quarters(), format="rgb24")))
        for index in range(8):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), dtype=np.float32), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 8000, 1024 * index
            container.mux(audio.encode(frame))
        container.mux(audio.encode())
    return path


def no_index(folder: Path, good: Path) -> Path:
    data = good.read_bytes()
    (folder / "cut.mp4").write_bytes(data[: len(data) // 2])
    return folder / "cut.mp4"


def before_any_frame(folder: Path, good: Path) -> Path:
    whole = encode(folder / "whole.mkv", pan("coffee", 20), options={"preset": "veryfast"})
    (folder / "head.mkv").write_bytes(whole.read_bytes()[:650])
    return folder / "head.mkv"


def no_frame_decodes(folder: Path, good: Path) -> Path:
    data = bytearray(good.read_bytes())
    start, end = data.index(b"mdat") + 4, data.index(b"moov")
    data[start:end] = bytes(end - start)
    (folder / "blank.mp4").write_bytes(data)
    return folder / "blank.mp4"


def pipe(folder: Path, good: Path) -> Path:
    os.mkfifo(folder / "pipe.mp4")
    return folder / "pipe.mp4"


def too_large(folder: Path, good: Path) -> Path:
    PILImage.new("1", (18_000, 18_000)).save(folder / "a.png")
    return folder / "a.png"


def bomb(folder: Path, good: Path) -> Path:
    """An image of 144 million pixels in 20 kB."""
    PILImage.new("L", (12_000, 12_000)).save(folder / "a.png")
    return folder / "a.png"


def large_video(folder: Path, good: Path) -> Path:
    """A video with frames of 9,000 x 9,000 pixels in a few kB."""
    frame = av.VideoFrame(9000, 9000, "gray")
    frame.planes[0].update(bytes(frame.planes[0].buffer_size))
    with av.open(str(folder / "a.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=5)
        stream.width, stream.height, stream.pix_fmt = 9000, 9000, "gray"
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return folder / "a.mkv"


def claimed_too_large(folder: Path, good: Path) -> Path:
    """A photograph whose header states 65,000 x 65,000 pixels."""
    (folder / "a.mjpg").write_bytes(photograph_of_size(65_000))
    return folder / "a.mjpg"


def photograph_of_size(side: int) -> bytes:
    """A small JPEG whose header states a square of this size."""
    content = io.BytesIO()
    PILImage.fromarray(quarters()).save(content, "JPEG")
    data = bytearray(content.getvalue())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", side, side)
    return bytes(data)


def playlist(folder: Path, good: Path) -> Path:
    """A list of addresses, which must not be opened; tests/media/test_disguised_lists.py tests lists of files."""
    (folder / "list.m3u8").write_text(
        "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n",
        encoding="utf-8",
    )
    return folder / "list.m3u8"


TOO_LARGE = "its frames must have at most 80 million pixels$"

CAUSES: dict[Callable[[Path, Path], Path], str] = {
    missing: "there is no such file$",
    folder: "this is a folder, not a video file$",
    empty: r"the file is empty \(0 bytes\)$",
    text: "this is text, not video",
    noise: "this is not a video, or it is damaged",
    zeros: "this is not a video, or it is damaged",
    sound: "the file has no video, only sound$",
    cover: "the file has no video, only sound with a cover image$",
    no_index: r"its index \(moov\) is missing: the recording or the download was cut off",
    before_any_frame: "no frame can be decoded|this is not a video, or it is damaged",
    no_frame_decodes: "no frame can be decoded; the file is damaged or incomplete$",
    pipe: "this is not a regular file$",
    too_large: TOO_LARGE,
    bomb: TOO_LARGE,
    large_video: TOO_LARGE,
    claimed_too_large: TOO_LARGE,
    playlist: "this is a list of other files, not a video; name the videos themselves$",
}


@pytest.mark.large
@pytest.mark.parametrize("make", CAUSES, ids=lambda make: make.__name__)
def test_every_reader_reports_the_cause(
    make: Callable[[Path, Path], Path], good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path, good)
    readers: list[Callable[[], object]] = [
        lambda: probe(path),
        lambda: read_frames(path),
        lambda: read_frames(path, rate=None, start=1.0),
        lambda: list(iter_frames(path, rate=0.1)),
        lambda: thumbnail(path),
        lambda: write_clip(path, tmp_path / "clip.mp4", start=0, end=1),
    ]
    for read in readers:
        with pytest.raises(MediaError, match=CAUSES[make]) as caught:
            read()
        assert caught.value.path == str(path)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "clip.mp4").exists()
    assert capfd.readouterr().err == ""


def test_a_file_without_read_permission_is_reported(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reader_module, "open_regular_file", refuse)
    with pytest.raises(MediaError, match=r"good\.mp4: the file cannot be read \(permission denied\)$") as caught:
        read_frames(good)
    assert caught.value.temporary


def test_failing_drive_is_reported_as_temporary_and_not_as_damage(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg reports the same error for a file that ends early; only the system can distinguish them."""
    failure = av.error.OSError(errno.EIO, "Input/output error", str(good))

    class FailingContainer:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def demux(self, stream: object) -> Iterator[object]:
            raise self.error

    with av.open(str(good)) as container:
        reader = PictureReader(str(good), container, container.streams.video[0])
        reader.container = FailingContainer(failure)  # type: ignore[assignment]
        assert list(reader.packets()) == []
        assert reader.failures == 1

        class Failing(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(reader_module, "open_regular_file", lambda name: Failing())
        with pytest.raises(MediaError, match=r"the file cannot be read \(input/output error\)$") as caught:
            list(reader.packets())
        assert caught.value.temporary


def test_running_out_of_memory_is_a_temporary_error(good: Path) -> None:
    error = reader_module.media_error(str(good), av.error.MemoryError(errno.ENOMEM, "Cannot allocate memory"))
    assert (error.cause, error.temporary) == ("not enough memory to read the file", True)


def test_name_that_no_system_allows_is_reported() -> None:
    with pytest.raises(MediaError, match="the file cannot be reached"):
        probe("a\0b.mp4")


def test_the_error_can_be_pickled(tmp_path: Path) -> None:
    with pytest.raises(MediaError) as caught:
        probe(tmp_path / "none.mp4")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.path, copy.cause, str(copy)) == (
        caught.value.path,
        "there is no such file",
        str(caught.value),
    )


@pytest.mark.parametrize("filling", ["noise", "zeros"])
@pytest.mark.parametrize(
    ("ending", "codec"),
    [
        ("mp4", "libx264"),
        ("mkv", "libx264"),
        ("ts", "libx264"),
        ("mpg", "mpeg2video"),
        ("webm", "libvpx"),
        ("avi", "mpeg4"),
    ],
)
def test_damage_in_the_middle_loses_only_the_damaged_frames(
    tmp_path: Path, ending: str, codec: str, filling: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = encode(tmp_path / f"a.{ending}", pan("coffee", 200), rate=25, codec=codec, options={"g": "25"})
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = np.random.default_rng(0).bytes(3000) if filling == "noise" else bytes(3000)
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING, "vidkin"):
        frames = read_frames(path, rate=None)
    assert 150 <= len(frames) <= 200
    assert frames.timestamps[-1] > 6.5
    if ending not in ("webm", "mkv"):  # in Matroska, missing data looks like a pause
        assert re.search(rf"a.{ending}: the file is damaged: \d+ (packets? skipped|frames? with errors)", caplog.text)
    assert 7 <= len(read_frames(path, rate=1)) <= 8


@pytest.mark.parametrize("ending", ["mkv", "ts"])
def test_a_truncated_file_yields_its_existing_frames(tmp_path: Path, ending: str) -> None:
    path = encode(tmp_path / f"a.{ending}", pan("coffee", 200), rate=25, options={"g": "25"})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    frames = read_frames(path, rate=1)
    assert 3 <= len(frames) <= 6
    assert probe(path).duration == pytest.approx(frames.timestamps[-1] + 0.5, abs=0.6)


def test_a_truncated_photograph_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    picture = np.random.default_rng(0).integers(0, 255, (64, 96, 3), dtype=np.uint8)
    PILImage.fromarray(picture).save(tmp_path / "a.jpg", quality=95)
    data = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(data[: len(data) * 2 // 3])
    assert read_frames(tmp_path / "a.jpg").images.shape == (1, 64, 96, 3)


def test_image_with_a_huge_stated_size_does_not_affect_other_files(tmp_path: Path) -> None:
    content = io.BytesIO()
    PILImage.fromarray(quarters()).save(content, "JPEG")
    path = tmp_path / "a.mjpg"
    path.write_bytes(photograph_of_size(65_000) + content.getvalue() * 3)
    assert read_frames(path).images.shape[1:] == (64, 96, 3)


def test_ffmpeg_prints_nothing(tmp_path: Path) -> None:
    path = encode_with(tmp_path / "a.mp4", [flat(10 * i) for i in range(20)], options={"g": "5"})
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + 200
    data[start : start + 100] = bytes(100)
    path.write_bytes(data)
    code = f"from vidkin.media import read_frames; print(len(read_frames({str(path)!r}, rate=None)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 5
    # Without a handler, Python prints the warning as a single line, and FFmpeg adds nothing.
    assert all("the file is damaged" in line for line in done.stderr.splitlines())
