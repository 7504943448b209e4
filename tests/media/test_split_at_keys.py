"""Splitting without reencoding: packets are counted and compared, and frames decoded."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.support.folders import made_in
from tests.support.videos import encode, encode_with_sound, pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import read_frames, split_video

KEYS_EVERY_10 = {"x264-params": "keyint=10:min-keyint=10:scenecut=0"}


def payloads(path: str | Path) -> Counter[bytes]:
    """Count the packets of all streams of a file by content."""
    with av.open(str(path)) as container:
        return Counter(bytes(packet) for packet in container.demux() if packet.size)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_pieces_begin_at_key_frames_and_have_every_packet(tmp_path: Path, suffix: str) -> None:
    source = encode_with_sound(tmp_path / f"día 山 [2]{suffix}", 40, KEYS_EVERY_10)
    report = split_video(source, tmp_path / "out", [0.0, 1.0, 2.5])
    assert [Path(piece.path).name for piece in report.pieces] == [
        f"día 山 [2]-00{number}{suffix}" for number in (1, 2, 3)
    ]
    assert [(piece.start, piece.end, piece.parts) for piece in report.pieces] == [
        (0.0, 1.0, (0,)),
        (1.0, 2.0, (1,)),
        (2.0, pytest.approx(4.0, abs=0.002), (2,)),
    ]
    assert report.left_out == ()
    whole = payloads(source)
    parts = [payloads(piece.path) for piece in report.pieces]
    assert sum(parts, Counter()) == whole
    assert [piece.packets for piece in report.pieces] == [part.total() for part in parts]
    assert sorted(path.name for path in made_in(tmp_path / "out")) == [Path(piece.path).name for piece in report.pieces]


def test_every_piece_shows_the_frames_of_the_source(tmp_path: Path) -> None:
    source = encode_with_sound(tmp_path / "clip.mp4", 40, KEYS_EVERY_10)
    report = split_video(source, tmp_path, [0.0, 1.0, 2.0])
    original = read_frames(source, rate=None)
    start = 0
    for piece in report.pieces:
        frames = read_frames(piece.path, rate=None)
        assert np.array_equal(frames.images, original.images[start : start + len(frames)])
        assert frames.timestamps == pytest.approx(original.timestamps[start : start + len(frames)] - piece.start)
        start += len(frames)
    assert start == len(original)


def test_sound_stays_with_the_frames(tmp_path: Path) -> None:
    """An audio packet lasts 1024 / 16000 = 0.064 s, so sound starts within that time of the frames."""
    source = encode_with_sound(tmp_path / "clip.mkv", 40, KEYS_EVERY_10)
    for piece in split_video(source, tmp_path, [1.0, 3.0]).pieces[1:]:
        with av.open(piece.path) as container:
            first = {}
            for packet in container.demux():
                if packet.size:
                    first.setdefault(packet.stream.type, float(packet.pts * packet.time_base))
        assert first["video"] == pytest.approx(0.0, abs=0.002)
        assert 0.0 <= first["audio"] < 0.066


def test_segments_without_a_key_frame_between_them_share_a_piece(tmp_path: Path) -> None:
    source = encode(tmp_path / "clip.mp4", pan("rocket", 40), options=KEYS_EVERY_10)
    report = split_video(source, tmp_path, [0.5, 1.0, 1.2, 1.9, 3.0])
    assert [(piece.start, piece.parts) for piece in report.pieces] == [
        (0.0, (0,)),
        (1.0, (1, 2, 3)),
        (3.0, (4,)),
    ]


def test_a_time_rounded_to_a_float_finds_its_key_frame(tmp_path: Path) -> None:
    """At 29.97 frames per second, the 30th frame is at 1.001 s, which no float represents exactly."""
    options = {"x264-params": "keyint=30:min-keyint=30:scenecut=0"}
    rate = Fraction(30000, 1001)
    source = encode(tmp_path / "clip.mp4", pan("rocket", 90), rate=rate, options=options)
    starts = read_frames(source, rate=None).timestamps[[0, 30, 60]]
    report = split_video(source, tmp_path, starts.tolist())
    assert [piece.start for piece in report.pieces] == pytest.approx([0.0, 1.001, 2.002])


def test_a_variable_frame_rate_is_kept(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.5, 0.6, 1.4, 1.5, 1.6, 2.9, 3.0, 3.7]
    options = {"x264-params": "keyint=3:min-keyint=3:scenecut=0:bframes=0"}
    source = encode(tmp_path / "clip.mp4", pan("rocket", 10), times=times, options=options)
    report = split_video(source, tmp_path, [0.0, 1.0, 3.0])
    # There are key frames at 0, 0.6, 1.6 and 3.7 s.
    assert [piece.start for piece in report.pieces] == pytest.approx([0.0, 0.6, 1.6])
    assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [3, 3, 4]


def test_open_groups_of_pictures_are_not_split(tmp_path: Path) -> None:
    """In open groups, frames shown before a key frame are stored after it and depend on it, so it is no split point."""
    options = {"x264-params": "keyint=10:min-keyint=5:scenecut=0:open-gop=1:bframes=3:b-adapt=0"}
    source = encode(tmp_path / "clip.mkv", pan("rocket", 60), options=options)
    with av.open(str(source)) as container:
        assert sum(packet.is_keyframe for packet in container.demux(video=0) if packet.size) > 3
    report = split_video(source, tmp_path, [0.0, 2.0, 4.0])
    shown = [len(read_frames(piece.path, rate=None)) for piece in report.pieces]
    assert sum(shown) == 60
    assert sum((payloads(piece.path) for piece in report.pieces), Counter()) == payloads(source)


def test_a_format_that_cannot_be_written_becomes_matroska(tmp_path: Path) -> None:
    source = encode_with_sound(tmp_path / "clip.mp4", 40, KEYS_EVERY_10)
    odd = source.rename(tmp_path / "clip.video")
    report = split_video(odd, tmp_path, [0.0, 2.0])
    assert [Path(piece.path).name for piece in report.pieces] == ["clip-001.mkv", "clip-002.mkv"]
    assert sum((payloads(piece.path) for piece in report.pieces), Counter()) == payloads(odd)


def test_dropped_streams_are_reported(tmp_path: Path) -> None:
    """A QuickTime file with a data stream."""
    source = tmp_path / "clip.ts"
    with av.open(str(source), "w") as container:
        video = container.add_stream("mpeg2video", rate=10)
        video.width, video.height, video.pix_fmt = 96, 64, "yuv420p"
        data = container.add_data_stream()
        for index, image in enumerate(pan("coffee", 20, width=96, height=64)):
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            container.mux(video.encode(picture))
            if index == 5:
                packet = av.Packet(b"hello")
                packet.stream, packet.pts, packet.dts = data, 45000, 45000
                container.mux(packet)
        container.mux(video.encode())
    report = split_video(source, tmp_path / "out", [0.0])
    assert report.left_out == ("stream 1: data",)


@pytest.mark.parametrize("starts", [[], [1.0, 1.0], [-1.0], [float("nan")], [2.0, 1.0]])
def test_times_must_increase(tmp_path: Path, starts: list[float]) -> None:
    source = encode(tmp_path / "clip.mp4", pan("rocket", 4))
    with pytest.raises(InvalidArgumentError, match=r"split times must|starts must be a list of numbers"):
        split_video(source, tmp_path, starts)


def test_frames_without_times_cannot_be_split(tmp_path: Path) -> None:
    source = encode(tmp_path / "clip.h264", pan("rocket", 20))
    with pytest.raises(MediaError, match=r"clip.h264: its frames have no times, .* container first"):
        split_video(source, tmp_path / "out", [0.0, 1.0])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    source = encode(tmp_path / "clip.mp4", pan("rocket", 4))
    with pytest.raises(MediaError, match=r"clip.mp4: the folder cannot be created"):
        split_video(source, source, [0.0])


@pytest.mark.data
@pytest.mark.parametrize("name", ["sintel_trailer.mp4", "big_buck_bunny_0_30.webm", "bikes.mp4"])
def test_real_files_lose_nothing(shared_data: Path, tmp_path: Path, name: str) -> None:
    source = shared_data / "shots" / name
    report = split_video(source, tmp_path, [0.0, 4.0, 7.5])
    assert len(report.pieces) > 1 or name == "bikes.mp4"
    assert sum((payloads(piece.path) for piece in report.pieces), Counter()) == payloads(source)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".ts", ".flv"])
def test_the_last_frame_has_its_duration(tmp_path: Path, suffix: str) -> None:
    """Transport streams and Flash video state no duration for it."""
    images = pan("coffee", 30, width=96, height=64)
    path = encode(tmp_path / f"film{suffix}", images, options=KEYS_EVERY_10)
    report = split_video(path, tmp_path / "pieces", [0.0, 1.0, 2.0])
    assert [piece.end for piece in report.pieces] == pytest.approx([1.0, 2.0, 3.0], abs=2e-3)


def test_files_next_to_the_source_are_not_replaced(tmp_path: Path) -> None:
    path = encode(tmp_path / "film.mp4", pan("coffee", 30, width=96, height=64), options=KEYS_EVERY_10)
    (tmp_path / "film-002.mp4").write_bytes(b"another recording")
    with pytest.raises(MediaError, match=r"film-002\.mp4: would be overwritten"):
        split_video(path, tmp_path, [0.0, 1.0])
    assert (tmp_path / "film-002.mp4").read_bytes() == b"another recording"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["film-002.mp4", "film.mp4"]
    for _ in range(2):  # in a separate folder, pieces are overwritten
        assert len(split_video(path, tmp_path / "pieces", [0.0, 1.0]).pieces) == 2


def test_unwanted_segments_take_no_frames_from_their_neighbors(tmp_path: Path) -> None:
    """With a key frame every second, the segment from 1.5 to 2.5 s is in the piece from 1 to 3 s."""
    path = encode(tmp_path / "film.mp4", pan("coffee", 50, width=96, height=64), options=KEYS_EVERY_10)
    (piece,) = split_video(path, tmp_path / "out", [0.0, 1.5, 2.5], names=[None, "the one", None]).pieces
    assert (Path(piece.path).name, piece.parts) == ("the one.mp4", (1,))
    assert (piece.start, piece.end) == (pytest.approx(1.0), pytest.approx(3.0))
    assert len(read_frames(piece.path, rate=None)) == 20
    (last,) = split_video(path, tmp_path / "out", [0.0, 4.2], names=[None, "last"]).pieces
    assert (last.start, last.end, last.parts) == (pytest.approx(4.0), pytest.approx(5.0), (1,))
    with pytest.raises(InvalidArgumentError, match="names must be one per part, 2, got 1"):
        split_video(path, tmp_path / "out", [0.0, 1.0], names=["a"])
