"""Exact splitting: every piece is decoded and compared with its source frame by frame."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import pytest

from tests.support.folders import made_in
from tests.support.videos import encode, encode_with_sound, pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import SplitReport, probe, read_frames, split_exactly

FRAMES = 60
# Groups of 20 frames with B-frames.
GROUPS = {"x264-params": "keyint=20:min-keyint=20:scenecut=0:bframes=3:b-adapt=0"}


@dataclass(frozen=True)
class Part:
    start: float
    end: float
    start_frame: int
    end_frame: int


def clip(
    path: Path,
    *,
    frames: int = FRAMES,
    codec: str = "libx264",
    times: Sequence[float] | None = None,
    options: dict[str, str] | None = None,
    pixel_format: str = "yuv420p",
    size: tuple[int, int] = (96, 64),
) -> Path:
    images = pan("coffee", frames, width=size[0], height=size[1])
    return encode(
        path,
        images,
        codec=codec,
        options=GROUPS if options is None else options,
        times=times,
        pixel_format=pixel_format,
    )


def split(source: Path, folder: Path, frames: Sequence[tuple[int, int]], **more: int) -> SplitReport:
    times = read_frames(source, rate=None).timestamps
    ends = np.append(times[1:], max(probe(source).duration, 2 * times[-1] - times[-2]))
    parts = [Part(float(times[first]), float(ends[last - 1]), first, last) for first, last in frames]
    return split_exactly(source, folder, parts, times=times, **more)


def assert_exact(source: Path, report: SplitReport, frames: Sequence[tuple[int, int]]) -> None:
    """Check that each piece has exactly its frames at the right times, with increasing decoding times."""
    whole = read_frames(source, rate=None, short_side=64)
    assert len(report.pieces) == len(frames)
    for piece, (first, last) in zip(report.pieces, frames, strict=True):
        shown = read_frames(piece.path, rate=None, short_side=64)
        assert len(shown) == last - first
        expected = whole.timestamps[first:last] - whole.timestamps[first]
        assert shown.timestamps == pytest.approx(expected, abs=2e-3)
        for place, image in enumerate(shown.images, start=first):
            near = whole.images[max(0, place - 2) : place + 3].astype(np.int16)
            differences = np.abs(near - image).mean((1, 2, 3))
            assert differences[min(place, 2)] <= differences.min() + 0.3  # some neighboring frames are nearly identical
            assert differences.min() < 5
        with av.open(piece.path) as container:
            stamps = [packet.dts for packet in container.demux(video=0) if packet.dts is not None]
        assert stamps == sorted(set(stamps))
        assert probe(piece.path).duration == pytest.approx(piece.end - piece.start, abs=3e-3)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov", ".ts", ".flv"])
def test_frames_are_copied_if_possible(tmp_path: Path, suffix: str) -> None:
    """After the key frames at 0, 20 and 40, every fourth frame refers only to earlier ones: 0 4 1 2 3, 8 5 6 7, ..."""
    source = clip(tmp_path / f"día 山 [2]{suffix}")
    frames = [(0, 10), (10, 33), (33, 40), (40, 60)]
    report = split(source, tmp_path / "out put 山", frames)
    assert_exact(source, report, frames)
    # Frame 9 depends on 12; 10 to 19 and 33 to 39 lack their key frame; 32 ends its group of four; the end is complete.
    assert [piece.encoded for piece in report.pieces] == [1, 10, 7, 0]
    assert [Path(piece.path).name for piece in report.pieces] == [
        f"día 山 [2]-00{number}{suffix}" for number in (1, 2, 3, 4)
    ]
    assert len(made_in(tmp_path / "out put 山")) == 4


def test_copied_frames_equal_the_source_bit_by_bit(tmp_path: Path) -> None:
    source = clip(tmp_path / "clip.mp4")
    (piece,) = split(source, tmp_path / "out", [(15, 50)]).pieces
    shown, whole = read_frames(piece.path, rate=None).images, read_frames(source, rate=None).images
    assert piece.encoded == 5 + 1
    assert np.array_equal(shown[5:34], whole[20:49])
    assert np.abs(shown[:5].astype(int) - whole[15:20]).mean() < 3


def test_gap_between_segments_is_in_no_piece(tmp_path: Path) -> None:
    source = encode_with_sound(tmp_path / "clip.mp4", FRAMES, GROUPS)
    frames = [(5, 12), (30, 45)]
    report = split(source, tmp_path / "out", frames)
    assert_exact(source, report, frames)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("codec", "suffix", "options", "encoded"),
    [
        ("libx265", ".mp4", {"x265-params": "keyint=20:min-keyint=20:scenecut=0:log-level=error"}, 60),
        (
            "libvpx-vp9",
            ".webm",
            {"g": "20", "keyint_min": "20", "deadline": "realtime", "lag-in-frames": "0"},
            10 + 5,
        ),
        ("libvpx", ".webm", {"g": "20", "deadline": "realtime", "crf": "10", "b": "2000000"}, 60),
        ("mpeg4", ".mp4", {"g": "10", "bf": "2"}, 60),
        ("mpeg4", ".avi", {"g": "10", "bf": "2"}, 60),
        ("mjpeg", ".mov", {}, 0),
        ("ffv1", ".mkv", {"g": "1"}, 0),
    ],
)
def test_other_codecs_are_split_exactly(
    tmp_path: Path, codec: str, suffix: str, options: dict[str, str], encoded: int
) -> None:
    pixels = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    source = clip(tmp_path / f"clip{suffix}", codec=codec, options=options, pixel_format=pixels)
    frames = [(0, 10), (10, 35), (35, 60)]
    report = split(source, tmp_path / "out", frames)
    assert_exact(source, report, frames)
    assert sum(piece.encoded for piece in report.pieces) <= encoded


def test_a_variable_frame_rate_is_split_exactly(tmp_path: Path) -> None:
    times = np.cumsum([0.0, *([0.1, 0.4, 0.2] * 20)])[:FRAMES].tolist()
    source = clip(tmp_path / "clip.mkv", times=times)
    frames = [(0, 7), (7, 31), (31, 60)]
    assert_exact(source, split(source, tmp_path / "out", frames), frames)


def test_open_groups_of_pictures_are_encoded(tmp_path: Path) -> None:
    """Frames before a key frame depend on it and on earlier frames, so nothing is copied from there on."""
    options = {"x264-params": "keyint=10:min-keyint=5:scenecut=0:open-gop=1:bframes=3:b-adapt=0"}
    source = clip(tmp_path / "clip.mkv", options=options)
    frames = [(0, 20), (20, 45), (45, 60)]
    assert_exact(source, split(source, tmp_path / "out", frames), frames)


def test_interlaced_videos_are_split_between_frames(tmp_path: Path) -> None:
    options = {"x264-params": "keyint=20:min-keyint=20:scenecut=0:bframes=2:interlaced=1"}
    source = clip(tmp_path / "clip.mkv", options=options)
    frames = [(0, 11), (11, 60)]
    assert_exact(source, split(source, tmp_path / "out", frames), frames)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_sound_stays_with_the_frames(tmp_path: Path, suffix: str) -> None:
    """An audio packet lasts 1024 / 16000 = 0.064 s, so sound starts and ends within that time of the frames."""
    source = encode_with_sound(tmp_path / f"clip{suffix}", FRAMES, GROUPS)
    frames = [(0, 13), (13, 37), (37, 60)]
    report = split(source, tmp_path / "out", frames)
    assert_exact(source, report, frames)
    with av.open(str(source)) as container:
        whole = [bytes(packet) for packet in container.demux(audio=0) if packet.size]
    parts = []
    for piece in report.pieces:
        with av.open(piece.path) as container:
            packets = [packet for packet in container.demux(audio=0) if packet.size]
        assert -0.07 < packets[0].pts * packets[0].time_base < 0.066
        assert float(packets[-1].pts * packets[-1].time_base) < piece.end - piece.start
        assert piece.packets == len(packets) + round((piece.end - piece.start) * 10)
        parts += [bytes(packet) for packet in packets]
    assert parts == whole


def test_a_rotated_recording_stays_upright(tmp_path: Path) -> None:
    plain = clip(tmp_path / "plain.mp4")
    source = tmp_path / "phone.mp4"
    with av.open(str(plain)) as given, av.open(str(source), "w") as turned:
        stream = turned.add_stream_from_template(given.streams.video[0])
        stream.set_display_rotation(90)
        for packet in given.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                turned.mux(packet)
    assert probe(source).rotation == 90
    frames = [(0, 30), (30, 60)]
    report = split(source, tmp_path / "out", frames)
    assert_exact(source, report, frames)
    assert {probe(piece.path).rotation for piece in report.pieces} == {90}


def test_a_raw_stream_without_times_is_split(tmp_path: Path) -> None:
    source = clip(tmp_path / "clip.h264", frames=20)
    report = split(source, tmp_path / "out", [(0, 8), (8, 20)])
    assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [8, 12]
    assert [piece.encoded for piece in report.pieces] == [8, 12]


def test_lower_quality_gives_smaller_encoded_frames(tmp_path: Path) -> None:
    source = clip(tmp_path / "clip.mp4", frames=20)
    fine, coarse = (
        split(source, tmp_path / str(quality), [(3, 17)], quality=quality).pieces[0].path for quality in (10, 40)
    )
    assert os.path.getsize(fine) > 2 * os.path.getsize(coarse)


def test_progress_counts_up_to_all_frames(tmp_path: Path) -> None:
    source = clip(tmp_path / "clip.mp4")
    told: list[tuple[float, float | None]] = []
    times = read_frames(source, rate=None).timestamps
    parts = [Part(0.0, 1.0, 0, 10), Part(1.0, 6.0, 10, 60)]
    split_exactly(source, tmp_path / "out", parts, times=times, on_progress=lambda *step: told.append(step))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {60}


def test_an_existing_name_is_reported_before_any_piece_is_written(tmp_path: Path) -> None:
    source = clip(tmp_path / "clip.mp4")
    target = tmp_path / "out"
    (target / "clip-003.mp4").mkdir(parents=True)
    with pytest.raises(MediaError, match=r"clip-003\.mp4: cannot be written: it is a folder, not a file"):
        split(source, target, [(0, 10), (10, 35), (35, 60)])
    assert sorted(path.name for path in target.iterdir()) == ["clip-003.mp4"]


@pytest.mark.parametrize(
    ("frames", "more", "message"),
    [
        ([], {}, "parts to split into must not be empty"),
        ([(0, 10), (5, 20)], {}, r"got frames 5 to 20 after 10"),
        ([(0, 10)], {"quality": 0}, r"quality must be from 1 \(best\) to 51, got 0"),
    ],
)
def test_invalid_arguments_are_rejected(
    tmp_path: Path, frames: list[tuple[int, int]], more: dict[str, int], message: str
) -> None:
    source = clip(tmp_path / "clip.mp4", frames=20)
    with pytest.raises(InvalidArgumentError, match=message):
        split(source, tmp_path / "out", frames, **more)


@pytest.mark.large
@pytest.mark.data
@pytest.mark.parametrize("name", ["shots/bikes.mp4", "odd/nasa_13013_vfr.mp4", "odd/nasa_13013_mkv_duration_tag.mkv"])
def test_real_files_are_split_exactly(shared_data: Path, tmp_path: Path, name: str) -> None:
    source = shared_data / name
    count = min(len(read_frames(source, rate=None, short_side=16)), 50)
    frames = [(0, 11), (11, count - 7), (count - 7, count)]
    report = split(source, tmp_path, frames)
    assert_exact(source, report, frames)
