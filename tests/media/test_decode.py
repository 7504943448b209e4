"""The right frames are read at the right times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image as PILImage

from tests.media.makers import encode_with, flat, quarters
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import Frames, iter_frames, iter_frames_at, read_frames, thumbnail, write_video
from vidkin.media import decode as decode_module


@pytest.fixture(scope="module")
def ten_fps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """95 frames at 10 per second; the brightness of the two halves of frame i encodes its two digits."""
    path = tmp_path_factory.mktemp("decode") / "digits.mp4"
    write_video(path, (np.hstack([flat(25 * (i // 10)), flat(25 * (i % 10))]) for i in range(95)), rate=10, crf=10)
    return path


def digits(frames: Frames) -> list[int]:
    """Decode the number of each frame of `ten_fps` from its halves."""
    middle = frames.images.shape[2] // 2
    tens, ones = (half.mean(axis=(1, 2, 3)) for half in (frames.images[:, :, :middle], frames.images[:, :, middle:]))
    return (10 * np.rint(tens / 25) + np.rint(ones / 25)).astype(int).tolist()


@pytest.mark.parametrize(
    ("arguments", "indices"),
    [
        ({}, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]),
        ({"rate": 0.25}, [0, 40, 80]),
        ({"rate": 3, "start": 2, "end": 3}, [20, 23, 26]),
        ({"rate": 3, "start": 2, "end": 3.01}, [20, 23, 26, 30]),
        ({"rate": 4, "start": 0.05, "end": 1}, [0, 3, 5, 8]),
        ({"rate": 25, "start": 9}, [90, 91, 92, 93, 94]),
        ({"rate": None, "start": 1.05, "end": 1.35}, [11, 12, 13]),
        ({"rate": None, "start": 1.1, "end": 1.3}, [11, 12]),
        ({"rate": None, "start": 1.11, "end": 1.15}, [11]),
        ({"rate": None, "start": 9.41}, [94]),
        ({"rate": 1, "start": 9.45}, [94]),
        ({"rate": 1e-3}, [0]),
        ({"rate": 1, "end": 0.001}, [0]),
        ({"rate": 10}, list(range(95))),
        ({"rate": None}, list(range(95))),
    ],
    ids=str,
)
def test_each_sample_is_the_frame_on_screen(ten_fps: Path, arguments: dict[str, float], indices: list[int]) -> None:
    frames = read_frames(ten_fps, **arguments)  # type: ignore[arg-type]
    assert digits(frames) == indices
    np.testing.assert_allclose(frames.timestamps, np.array(indices) / 10)


def test_batches_have_the_requested_length(ten_fps: Path) -> None:
    assert [len(frames) for frames in iter_frames(ten_fps, rate=10, batch=40)] == [40, 40, 15]


def test_batches_of_large_frames_are_shorter(ten_fps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_module, "BATCH_BYTES", 8 * flat(0).nbytes)
    assert [len(frames) for frames in iter_frames(ten_fps, rate=1, batch=40)] == [4, 4, 2]


def test_threads_and_batches_do_not_change_frames(ten_fps: Path) -> None:
    one, other = read_frames(ten_fps, threads=1, batch=3), read_frames(ten_fps, threads=4)
    np.testing.assert_array_equal(one.images, other.images)


def test_variable_frame_rate_follows_the_time_stamps(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.2, 1.7, 1.75, 4.2, 4.3]
    path = tmp_path / "vfr.mp4"
    write_video(path, (flat(20 * i) for i in range(7)), rate=30, times=times)
    frames = read_frames(path, rate=1)
    np.testing.assert_allclose(frames.timestamps, [0.0, 0.2, 1.75])
    np.testing.assert_allclose(frames.images.mean(axis=(1, 2, 3)), [0, 40, 80], atol=2)
    np.testing.assert_allclose(read_frames(path, rate=None).timestamps, times)
    np.testing.assert_allclose(read_frames(path, rate=2).timestamps, [0.0, 0.2, 1.75])


def test_times_count_from_the_first_frame_for_any_start_time(tmp_path: Path) -> None:
    path = encode_with(tmp_path / "late.ts", (flat(10 * i) for i in range(20)), first=123)
    frames = read_frames(path, rate=2)
    np.testing.assert_allclose(frames.timestamps, [0, 0.5, 1, 1.5])
    np.testing.assert_allclose(frames.images.mean(axis=(1, 2, 3)), [0, 50, 100, 150], atol=2)


@pytest.mark.parametrize("rate", [1.0, 30.0, None])
def test_a_single_frame_is_a_video(tmp_path: Path, rate: float | None) -> None:
    write_video(tmp_path / "one.mp4", [quarters()], rate=25)
    frames = read_frames(tmp_path / "one.mp4", rate=rate)
    assert frames.timestamps.tolist() == [0.0]


def test_a_video_of_a_third_of_a_second_yields_one_frame(tmp_path: Path) -> None:
    write_video(tmp_path / "short.mp4", pan("coffee", 9), rate=30)
    assert read_frames(tmp_path / "short.mp4").timestamps.tolist() == [0.0]


@pytest.mark.parametrize("name", ["still.png", "still.jpg", "100%03d done.png", "a:b é 字.bmp"])
def test_still_images_are_videos_of_one_frame(tmp_path: Path, name: str) -> None:
    PILImage.fromarray(quarters()).save(tmp_path / name, **({"quality": 95} if name.endswith("jpg") else {}))
    frames = read_frames(tmp_path / name)
    assert frames.timestamps.tolist() == [0.0]
    np.testing.assert_allclose(frames.images[0][8, 8], [255, 0, 0], atol=4)


def test_an_animated_gif_is_a_video(tmp_path: Path) -> None:
    pictures = [PILImage.fromarray(flat(40 * i)) for i in range(5)]
    pictures[0].save(tmp_path / "a.gif", save_all=True, append_images=pictures[1:], duration=400)
    frames = read_frames(tmp_path / "a.gif")
    np.testing.assert_allclose(frames.timestamps, [0.0, 0.8])
    np.testing.assert_allclose(frames.images.mean(axis=(1, 2, 3)), [0, 80], atol=2)


def test_names_with_spaces_and_other_alphabets_are_read(tmp_path: Path) -> None:
    path = tmp_path / "Мой отпуск – día 1 🎬 #%?.mp4"
    write_video(path, pan("coffee", 5), rate=5)
    assert len(read_frames(path)) == 1


def test_a_name_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    plain = tmp_path / "plain.mp4"
    write_video(plain, pan("coffee", 5), rate=5)
    odd = bytes(tmp_path) + b"/na\xefve.mp4"
    plain.rename(odd.decode("utf-8", "surrogateescape"))
    assert len(read_frames(odd.decode("utf-8", "surrogateescape"))) == 1


def test_a_stream_without_time_stamps_counts_frames(tmp_path: Path) -> None:
    path = encode_with(tmp_path / "raw.h264", (flat(8 * i) for i in range(30)), rate=25, options={"bf": "0"})
    frames = read_frames(path, rate=5)
    np.testing.assert_allclose(frames.timestamps, [0, 0.2, 0.4, 0.6, 0.8, 1.0], atol=1e-6)
    np.testing.assert_allclose(frames.images.mean(axis=(1, 2, 3)), [0, 40, 80, 120, 160, 200], atol=3)


def test_concatenated_recordings_have_continuous_times(tmp_path: Path) -> None:
    parts = []
    for part in range(2):
        path = encode_with(tmp_path / f"{part}.ts", (flat(100 * part + 5 * i) for i in range(20)), options={"bf": "0"})
        parts.append(path.read_bytes())
    (tmp_path / "glued.ts").write_bytes(b"".join(parts))
    frames = read_frames(tmp_path / "glued.ts", rate=1)
    np.testing.assert_allclose(frames.timestamps, [0, 1, 2, 3], atol=0.11)
    np.testing.assert_allclose(frames.images.mean(axis=(1, 2, 3)), [0, 50, 100, 150], atol=8)


def test_frames_of_changing_size_get_the_size_of_the_first(tmp_path: Path) -> None:
    parts = []
    for part, (width, height) in enumerate([(96, 64), (64, 96)]):
        path = encode_with(
            tmp_path / f"{part}.ts",
            [quarters(width, height)] * 10,
            options={"bf": "0"},
            first=10 * part,
        )
        parts.append(path.read_bytes())
    (tmp_path / "both.ts").write_bytes(b"".join(parts))
    frames = read_frames(tmp_path / "both.ts", rate=None)
    assert frames.images.shape[1:] == (64, 96, 3)
    assert len(frames) >= 18
    np.testing.assert_allclose(frames.images[-1][8, 8], [255, 0, 0], atol=12)
    np.testing.assert_allclose(frames.images[-1][56, 88], [255, 255, 255], atol=12)


def test_thumbnail_is_the_frame_on_screen(ten_fps: Path) -> None:
    image = thumbnail(ten_fps, 4.37, short_side=24)
    assert image.shape == (24, 64, 3)
    assert digits(Frames(image[None], np.zeros(1))) == [43]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"rate": 0},
            "rate must be above 0 and at most 100000 samples per second, or None for every frame, got 0",
        ),
        ({"rate": float("inf")}, "rate must be a number or None, got inf"),
        ({"start": -1}, "start must be at least 0 s, got -1"),
        ({"start": float("nan")}, "start must be a number, got nan"),
        ({"start": 3, "end": 3}, r"end must be after start, 3 s, got 3"),
        ({"short_side": 0}, "short_side must be at least 1, got 0"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"threads": -1}, r"threads must be at least 0, got -1"),
    ],
    ids=str,
)
def test_arguments_are_checked_at_the_call(ten_fps: Path, arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        iter_frames(ten_fps, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [1.0, None])
def test_a_start_beyond_the_end_is_reported(ten_fps: Path, rate: float | None) -> None:
    with pytest.raises(MediaError, match=r"digits\.mp4: start 30\.0 s is beyond the end \(9\.5 s\)$"):
        read_frames(ten_fps, rate=rate, start=30.0)


def test_the_file_is_closed_when_reading_stops_early(ten_fps: Path) -> None:
    pieces = iter_frames(ten_fps, rate=10, batch=1)
    next(pieces)
    assert str(ten_fps) in open_files()
    pieces.close()  # type: ignore[attr-defined]
    assert str(ten_fps) not in open_files()


def open_files() -> list[str]:
    return [file.path for file in psutil.Process().open_files()]


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
def test_frames_at_chosen_times_are_the_ones_on_screen(tmp_path: Path, suffix: str) -> None:
    """At 10 fps, frame 0 is on screen at 0.05 s, frame 20 at 2.0 and 2.05 s, and none after the end."""
    codec = "mpeg4" if suffix == ".avi" else "libx264"
    source = encode(tmp_path / f"clip{suffix}", pan("coffee", 40, width=96, height=64), codec=codec)
    whole = read_frames(source, rate=None)
    parts = list(iter_frames_at(source, [0.05, 1.0, 2.0, 2.05, 3.9, 60.0], batch=2))
    assert [time for part in parts for time in part.timestamps] == pytest.approx([0.0, 1.0, 2.0, 3.9])
    images = np.concatenate([part.images for part in parts])
    assert np.array_equal(images, whole.images[[0, 10, 20, 39]])


@pytest.mark.parametrize("times", [[], [-1.0], [1.0, 1.0], [2.0, 1.0]])
def test_chosen_times_must_increase(tmp_path: Path, times: list[float]) -> None:
    with pytest.raises(InvalidArgumentError, match="times must have at least one value, be at least 0 s, and increase"):
        iter_frames_at(tmp_path / "clip.mp4", times)


def test_chosen_times_after_the_end_yield_nothing(tmp_path: Path) -> None:
    source = encode(tmp_path / "clip.mp4", pan("coffee", 10, width=96, height=64))
    with pytest.raises(MediaError, match=r"start 60.0 s is beyond the end \(1.0 s\)"):
        list(iter_frames_at(source, [60.0]))
