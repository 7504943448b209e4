"""File properties are read without reading the whole file."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.container import InputContainer
from PIL import Image as PILImage

from tests.media.makers import encode_with, flat
from tests.support.videos import QUICK, broken_off, pan
from vidkin.errors import MediaError
from vidkin.media import Frames, iter_frames, open_probed, probe, read_frames, reader, time_in, write_video


def test_all_properties_of_a_plain_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    write_video(path, pan("coffee", 50, width=192, height=128), rate=Fraction(30000, 1001))
    info = probe(path)
    assert dataclasses.asdict(info) == {
        "path": str(path),
        "duration": pytest.approx(50 * 1.001 / 30, abs=1e-3),
        "width": 192,
        "height": 128,
        "rotation": 0,
        "mirrored": False,
        "sample_aspect_ratio": Fraction(1),
        "frame_rate": pytest.approx(30 / 1.001, abs=0.01),
        "codec": "h264",
        "container": "mov,mp4,m4a,3gp,3g2,mj2",
        "pixel_format": "yuv420p",
        "bit_depth": 8,
        "hdr": False,
        "interlaced": False,
        "stream": 0,
        "offset": 0.0,
        "time_code": "",
        "start_time": 0.0,
        "bit_rate": pytest.approx(path.stat().st_size * 8 / info.duration),
        "size_bytes": path.stat().st_size,
        "has_audio": False,
        "still": False,
        "stated_duration": pytest.approx(50 * 1.001 / 30, abs=1e-3),
    }
    assert not info.cut_off
    assert info.short_side == 128
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.width = 1  # type: ignore[misc]


@pytest.mark.parametrize("ending", ["mp4", "mkv", "ts", "avi", "mpg"])
def test_the_duration_is_measured_in_every_container(tmp_path: Path, ending: str) -> None:
    codec = "mpeg2video" if ending == "mpg" else "mpeg4" if ending == "avi" else "libx264"
    path = encode_with(tmp_path / f"a.{ending}", (flat(i) for i in range(75)), rate=25, codec=codec)
    assert probe(path).duration == pytest.approx(3.0, abs=0.041)


def test_the_duration_includes_the_last_frame(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [flat(i) for i in range(4)], rate=10, times=[0.0, 0.5, 3.0, 3.25])
    assert 3.25 < probe(tmp_path / "a.mp4").duration <= 3.6


def test_the_frames_of_a_stream_without_timestamps_are_counted(tmp_path: Path) -> None:
    path = encode_with(tmp_path / "a.h264", (flat(i) for i in range(30)), rate=25)
    assert probe(path).duration == pytest.approx(30 / 25, abs=0.05)


def test_a_late_start_is_recorded_and_does_not_count_toward_the_duration(tmp_path: Path) -> None:
    path = encode_with(tmp_path / "a.ts", (flat(i) for i in range(40)), rate=10, first=200, options={"bf": "0"})
    info = probe(path)
    assert info.start_time == pytest.approx(20, abs=3)
    assert info.duration == pytest.approx(4.0, abs=0.01)


def test_sound_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=10)
        audio = container.add_stream("aac", rate=8000)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        for index in range(10):
            frame = av.VideoFrame.from_ndarray(flat(index), format="rgb24")
            container.mux(video.encode(frame))
            sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), dtype=np.float32), format="fltp", layout="mono")
            sound.sample_rate, sound.pts = 8000, 1024 * index
            container.mux(audio.encode(sound))
        container.mux(video.encode())
        container.mux(audio.encode())
    assert probe(path).has_audio


@pytest.mark.parametrize(("ending", "codec"), [("jpg", "mjpeg"), ("png", "png"), ("webp", "webp")])
def test_still_images_are_recognized(tmp_path: Path, ending: str, codec: str) -> None:
    PILImage.fromarray(flat(9, 40, 30)).save(tmp_path / f"a.{ending}")
    info = probe(tmp_path / f"a.{ending}")
    assert (info.still, info.codec, info.width, info.height) == (True, codec, 40, 30)


def test_the_duration_agrees_with_reading_everything(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    write_video(path, pan("coffee", 33, width=50, height=30), rate=12)
    info, frames = probe(path), read_frames(path, rate=None)
    assert (info.height, info.width) == frames.images.shape[1:3]
    assert round(info.duration * info.frame_rate) == len(frames)


def test_a_partial_download_is_marked_as_cut_off(tmp_path: Path) -> None:
    """The index comes first and lists more frames than a partial download has."""
    whole = encode_with(tmp_path / "whole.mp4", pan("coffee", 60), options={"g": "10"})
    assert not probe(whole).cut_off
    cut = broken_off(whole, tmp_path / "cut.mp4")
    info = probe(cut)
    assert info.stated_duration == pytest.approx(6.0, abs=0.05)
    assert 1 < info.duration < 4.5
    assert info.cut_off
    # Some of the existing frames depend on missing frames.
    assert info.duration * 10 - 6 <= len(read_frames(cut, rate=10)) <= info.duration * 10 + 1


@pytest.mark.parametrize("with_sound", [False, True], ids=["silent", "sound"])
@pytest.mark.parametrize(
    ("ending", "codec", "sound"),
    [
        ("webm", "libvpx", "libopus"),
        ("mkv", "libx264", "aac"),
        ("avi", "mpeg4", "mp2"),
        ("avi", "mjpeg", "pcm_s16le"),
    ],
)
def test_a_missing_end_is_found_by_the_duration_in_the_header(
    tmp_path: Path, ending: str, codec: str, sound: str, with_sound: bool
) -> None:
    whole = with_a_tone(tmp_path / f"a.{ending}", codec, sound if with_sound else None)
    info = probe(whole)
    assert info.duration == pytest.approx(10.0, abs=0.11)
    assert not info.cut_off
    cut = tmp_path / f"cut.{ending}"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    info = probe(cut)
    assert 0 < info.duration < 8
    assert info.stated_duration == pytest.approx(10.0, abs=0.11)
    assert info.cut_off


def test_sound_longer_than_the_video_does_not_mark_it_as_cut_off(tmp_path: Path) -> None:
    for ending, codec, sound in (
        ("mkv", "libx264", "aac"),
        ("flv", "libx264", "aac"),
        ("avi", "mpeg4", "mp2"),
    ):
        path = with_a_tone(tmp_path / f"a.{ending}", codec, sound, frames=30, seconds=10.0)
        info = probe(path)
        assert info.duration == pytest.approx(3.0, abs=0.11)
        assert not info.cut_off


def with_a_tone(
    path: Path, codec: str, sound: str | None, *, frames: int = 100, seconds: float = 10.0, first: int = 0
) -> Path:
    """Write ten frames per second from a given start time, and a tone at 48 kHz."""
    with av.open(str(path), "w") as container:
        video = container.add_stream(codec, rate=10, options={**QUICK.get(codec, {}), "g": "10"})
        video.width, video.height = 96, 64
        video.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        audio = None if sound is None else container.add_stream(sound, rate=48000, layout="mono")
        for index, image in enumerate(pan("coffee", max(frames, round(10 * seconds)), width=96, height=64)):
            if first <= index < frames:
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
                frame.pts, frame.time_base = index, Fraction(1, 10)
                container.mux(video.encode(frame))
            if audio is not None:
                wave = np.sin(np.arange(4800) / 20)[None] * 0.1
                whole_numbers = audio.format.name.startswith("s16")
                samples = (wave * 30_000).astype(np.int16) if whole_numbers else wave.astype(np.float32)
                piece = av.AudioFrame.from_ndarray(samples, format=audio.format.name, layout="mono")
                piece.sample_rate, piece.pts, piece.time_base = 48000, 4800 * index, Fraction(1, 48000)
                container.mux(audio.encode(piece))
        container.mux(video.encode())
        if audio is not None:
            container.mux(audio.encode())
    return path


@pytest.mark.parametrize("codec", ["mpeg4", "libx264"])
@pytest.mark.parametrize("first", [-48, -10, -3, 5])
def test_negative_times_count(tmp_path: Path, first: int, codec: str) -> None:
    """Matroska can store negative times; for H.264, they are read as missing."""
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w", options={"avoid_negative_ts": "disabled"}) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(50):
            frame = av.VideoFrame.from_ndarray(flat(index), format="rgb24")
            frame.pts, frame.time_base = first + index, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    info = probe(path)
    assert info.duration == pytest.approx(5.0, abs=0.01)
    assert info.start_time == pytest.approx(first / 10, abs=0.01)
    assert not info.cut_off
    assert len(read_frames(path, rate=1)) == 5
    assert len(read_frames(path, rate=None)) == 50


@pytest.mark.parametrize("ending", ["mkv", "ts", "avi", "mpg", "webm"])
def test_intact_files_are_not_reported_as_cut_off(tmp_path: Path, ending: str) -> None:
    codec = {"webm": "libvpx-vp9", "mpg": "mpeg2video"}.get(ending, "libx264")
    assert not probe(encode_with(tmp_path / f"a.{ending}", pan("coffee", 50), rate=25, codec=codec)).cut_off


@pytest.mark.parametrize("ending", ["mkv", "mp4", "ts"])
def test_a_late_start_is_not_reported_as_a_missing_end(tmp_path: Path, ending: str) -> None:
    info = probe(encode_with(tmp_path / f"late.{ending}", pan("coffee", 50), first=200))
    assert info.duration == pytest.approx(5.0, abs=0.05)
    assert not info.cut_off


def test_addresses_are_refused_with_advice_to_download() -> None:
    for name in ("https://example.org/a.mp4", "http:/example.org/a.mp4", "s3://bucket/a.mp4"):
        with pytest.raises(MediaError, match="this is a URL, not a file; download it first"):
            probe(name)
    with pytest.raises(MediaError, match="there is no such file"):
        probe("folder:/a.mp4")


@pytest.mark.parametrize(
    ("ending", "codec", "openings"),
    [
        ("mp4", "libx264", 1),
        ("mkv", "libx264", 1),
        ("webm", "libvpx-vp9", 1),
        ("ts", "libx264", 2),
        ("avi", "mpeg4", 2),
    ],
)
def test_reading_continues_with_a_probed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, codec: str, openings: int
) -> None:
    """If seeking back to the first packet is unreliable, the file is opened again; the frames are the same."""
    path = encode_with(tmp_path / f"a.{ending}", pan("coffee", 60, width=96, height=64), rate=20, codec=codec)
    expected = read_frames(path, rate=7)
    opened: list[str] = []
    original = reader._open

    def count(name: str, **options: str) -> AbstractContextManager[InputContainer]:
        opened.append(name)
        return original(name, **options)

    monkeypatch.setattr(reader, "_open", count)
    with open_probed(path) as video:
        assert video.info == probe(path)
        opened.remove(str(path))  # opened by probe
        assert_same(list(iter_frames(video, rate=7)), expected)
        assert len(opened) == openings
        # A second reader opens the file again.
        assert_same(list(iter_frames(video, rate=7)), expected)
        assert len(opened) == openings + 1


def test_a_probed_file_that_starts_late_or_is_damaged_reads_the_same(tmp_path: Path) -> None:
    late, cut = tmp_path / "late.mkv", tmp_path / "cut.mkv"
    frames = pan("coffee", 40, width=96, height=64)
    write_video(late, frames, rate=10, times=[5 + i / 10 for i in range(40)])
    cut.write_bytes(late.read_bytes()[: late.stat().st_size * 2 // 3])
    for path in (late, cut):
        with open_probed(path, threads=1) as video:
            assert_same(list(iter_frames(video, rate=5, start=0.3)), read_frames(path, rate=5, start=0.3))


def test_the_start_of_a_probed_file_is_decoded_once(tmp_path: Path) -> None:
    """Reading continues with the packets and frames that probing has decoded, then with new ones."""
    path = encode_with(tmp_path / "a.mp4", pan("coffee", 30, width=96, height=64), rate=10, codec="libx264")
    expected = read_frames(path, rate=None, threads=1)
    with open_probed(path, threads=1) as video:
        begun = video._begun
        assert begun is not None
        # With B-frames, the decoder needs several packets before it returns a frame.
        assert [len(pictures) for _, pictures in begun.packets[:-1]] == [0] * (len(begun.packets) - 1)
        assert len(begun.packets) > 1
        assert len(begun.packets[-1][1]) == 1
        following = next(packet for packet in begun.container.demux(begun.stream))
        assert following.dts == begun.packets[-1][0].dts + begun.packets[-1][0].duration
    with open_probed(path, threads=1) as video:
        assert_same(list(iter_frames(video, rate=None)), expected)
    # The frame of a single-frame file is returned only when the decoder is drained.
    single = encode_with(tmp_path / "b.mp4", pan("coffee", 1, width=96, height=64), rate=10, codec="libx264")
    with open_probed(single, threads=1) as video:
        assert video._begun is not None
        assert video._begun.packets == []
        assert_same(list(iter_frames(video, rate=None)), read_frames(single, rate=None))


def test_errors_of_a_probed_file_name_it(tmp_path: Path) -> None:
    path = encode_with(tmp_path / "a.mp4", (flat(i) for i in range(20)), rate=10)
    with (
        pytest.raises(MediaError, match=r"a\.mp4: start 9.0 s is beyond the end \(2.0 s\)"),
        open_probed(path) as video,
    ):
        list(iter_frames(video, start=9))


def assert_same(parts: list[Frames], expected: Frames) -> None:
    assert np.array_equal(np.concatenate([part.images for part in parts]), expected.images)
    assert np.concatenate([part.timestamps for part in parts]).tolist() == expected.timestamps.tolist()


def test_a_frame_number_becomes_a_time_just_before_the_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"  # whose times are rounded to milliseconds
    write_video(path, pan("coffee", 50, width=64, height=48), rate=Fraction(30000, 1001))
    times = read_frames(path, rate=None).timestamps
    assert [int(np.searchsorted(times, time_in(path, f"{number}f"))) for number in range(50)] == list(range(50))


def test_other_times_need_no_file() -> None:
    assert [time_in("gone.mp4", moment) for moment in (1.5, "1.5", "0:01.5")] == [1.5, 1.5, 1.5]
    with pytest.raises(MediaError, match=r"gone\.mp4: there is no such file"):
        time_in("gone.mp4", "250f")


def with_two_videos(path: Path) -> Path:
    """Write a file with two videos, like a dashcam: the front view, and a larger rear view."""
    with av.open(str(path), "w") as container:
        streams = []
        for width, height in ((96, 64), (192, 128)):
            stream = container.add_stream("libx264", rate=10, options={"g": "10", "bf": "3"})
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            streams.append(stream)
        for number in range(30):
            for stream, level in zip(streams, (60, 180), strict=True):
                image = flat(level + number, stream.width, stream.height)
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 10)
                container.mux(stream.encode(frame))
        for stream in streams:
            container.mux(stream.encode())
    return path


@pytest.mark.parametrize("ending", ["mp4", "mkv", "ts", "mov"])
def test_first_video_of_a_file_is_read_unless_another_is_chosen(tmp_path: Path, ending: str) -> None:
    path = with_two_videos(tmp_path / f"front_and_rear.{ending}")
    assert (probe(path).stream, probe(path).width) == (0, 96)
    assert (probe(path, stream=1).stream, probe(path, stream=1).width) == (1, 192)
    assert read_frames(path).images[0].mean() == pytest.approx(60, abs=3)
    with open_probed(path, stream=1) as opened:
        assert next(iter_frames(opened)).images[0].mean() == pytest.approx(180, abs=3)
        assert next(iter_frames(opened)).images[0].mean() == pytest.approx(180, abs=3)
    with pytest.raises(MediaError, match=r"there is no video in stream 2; choose from 0, 1"):
        probe(path, stream=2)


def test_a_still_before_the_video_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "still_first.mp4"
    with av.open(str(path), "w") as container:
        still, film = container.add_stream("mjpeg", rate=10), container.add_stream("libx264", rate=10)
        still.width, still.height, still.pix_fmt = 320, 240, "yuvj420p"
        film.width, film.height, film.pix_fmt = 96, 64, "yuv420p"
        for number in range(20):
            for stream in (still, film) if number == 0 else (film,):
                frame = av.VideoFrame.from_ndarray(flat(100, stream.width, stream.height), format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 10)
                container.mux(stream.encode(frame))
        for stream in (still, film):
            container.mux(stream.encode())
    assert (probe(path).codec, probe(path).stream) == ("h264", 1)


@pytest.mark.parametrize(
    ("ending", "codec"), [("mkv", "libx264"), ("mp4", "libx264"), ("ts", "libx264"), ("flv", "libx264")]
)
def test_video_that_starts_after_the_sound_is_not_cut_off(tmp_path: Path, ending: str, codec: str) -> None:
    path = with_a_tone(tmp_path / f"late.{ending}", codec, "aac", first=30)
    info = probe(path)
    assert info.duration == pytest.approx(7.0, abs=0.11)
    assert info.offset == pytest.approx(3.0, abs=0.11)
    assert not info.cut_off


def test_a_start_that_cannot_be_decoded_is_not_a_missing_end(tmp_path: Path) -> None:
    whole = encode_with(tmp_path / "whole.ts", pan("coffee", 100), options={"g": "40", "sc_threshold": "0"})
    content = whole.read_bytes()
    packets = [content[place : place + 188] for place in range(0, len(content), 188)]
    joined = tmp_path / "joined.ts"
    joined.write_bytes(b"".join(packets[len(packets) // 20 :]))
    info = probe(joined)
    assert info.duration == pytest.approx(6.0, abs=0.05)
    assert not info.cut_off


@pytest.mark.parametrize(("ending", "codec"), [("ts", "libx264"), ("mpg", "mpeg2video")])
@pytest.mark.parametrize("order", [(40, 75), (75, 40), (50, 50)])
def test_concatenated_recordings_have_their_total_duration(
    tmp_path: Path, ending: str, codec: str, order: tuple[int, int]
) -> None:
    parts = [
        encode_with(tmp_path / f"{part}.{ending}", pan("coffee", count), rate=25, codec=codec, options={"bf": "2"})
        for part, count in enumerate(order)
    ]
    path = tmp_path / f"whole.{ending}"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    info = probe(path)
    assert info.duration == pytest.approx(sum(order) / 25, abs=0.09)
    assert not info.cut_off
