"""Time code, subtitles and sound of concatenated recordings in pieces, and files with a second video."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from tests.support.streams import write_streams
from tests.support.videos import encode_with_sound, pan
from vidkin.media import SplitReport, probe, read_frames, split_exactly, split_video


@dataclass(frozen=True)
class Part:
    start: float
    end: float
    start_frame: int
    end_frame: int


def split_at(source: Path, folder: Path, frames: list[int], *, copy: bool = False, **more: object) -> SplitReport:
    """Split a video of ten frames per second at these frames."""
    if copy:
        return split_video(source, folder, [frame / 10 for frame in frames[:-1]], **more)
    parts = [Part(first / 10, last / 10, first, last) for first, last in pairwise(frames)]
    return split_exactly(source, folder, parts, times=np.arange(frames[-1]) / 10, **more)


def codes_of(report: SplitReport) -> list[str]:
    return [probe(piece.path).time_code for piece in report.pieces]


@pytest.mark.parametrize("copy", [False, True], ids=["exact", "copied"])
@pytest.mark.parametrize("ending", ["mp4", "mkv", "mov"])
def test_pieces_continue_the_time_code_of_the_file(tmp_path: Path, ending: str, copy: bool) -> None:
    """Time code counts ten frames per second."""
    plain = encode_with_sound(tmp_path / f"plain.{ending}", 40, {"g": "10", "sc_threshold": "0"})
    film = tmp_path / f"film.{ending}"
    with av.open(str(plain)) as source, av.open(str(film), "w") as target:
        target.metadata["timecode"] = "10:00:00:05"
        streams = {stream.index: target.add_stream_from_template(stream) for stream in source.streams}
        for packet in source.demux():
            if packet.size:
                packet.stream = streams[packet.stream_index]
                target.mux(packet)
    report = split_at(film, tmp_path / "pieces", [0, 10, 30, 40], copy=copy)
    assert codes_of(report) == ["10:00:00:05", "10:00:01:05", "10:00:03:05"]
    assert report.left_out == ()
    without = split_at(film, tmp_path / "zero", [0, 10, 30, 40], copy=copy, time_code="")
    assert codes_of(without) == ["", "", ""]
    assert [text.partition(": ")[2] for text in without.left_out] == (["time code"] if ending != "mkv" else [])


@pytest.mark.parametrize("copy", [False, True], ids=["exact", "copied"])
@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_a_second_video_is_left_out_and_can_be_split_separately(tmp_path: Path, ending: str, copy: bool) -> None:
    film = write_streams(tmp_path / f"film.{ending}", second_video=True)
    for stream, other in ((None, 1), (1, 0)):
        report = split_at(film, tmp_path / f"pieces {other}", [0, 7, 20], copy=copy, stream=stream)
        assert report.left_out == (f"stream {other}: another video; split it with --stream {other}",)
        for piece in report.pieces:
            with av.open(piece.path) as container:
                assert len(container.streams.video) == 1
        assert sum(len(read_frames(piece.path, rate=None)) for piece in report.pieces) == 20


@pytest.mark.parametrize("copy", [False, True], ids=["exact", "copied"])
@pytest.mark.parametrize(("ending", "codec"), [("mkv", "subrip"), ("mp4", "mov_text")])
def test_subtitle_ends_with_its_piece(tmp_path: Path, ending: str, codec: str, copy: bool) -> None:
    lines = [(0.2, 0.5, "one"), (0.6, 1.1, "across the cut"), (1.2, 30.0, "far too long")]
    film = write_streams(tmp_path / f"film.{ending}", subtitles=[("eng", lines)], subtitle_codec=codec)
    report = split_at(film, tmp_path / "pieces", [0, 20] if copy else [0, 10, 20], copy=copy)
    for piece in report.pieces:
        with av.open(piece.path) as container:
            shown = [packet for packet in container.demux(subtitles=0) if packet.size > 2]
            assert shown
            ends = [(packet.pts + packet.duration) * packet.time_base for packet in shown]
            assert max(ends) <= Fraction(piece.end - piece.start).limit_denominator(1000)
            assert container.duration / av.time_base == pytest.approx(piece.end - piece.start, abs=0.02)


def test_the_sound_of_concatenated_recordings_stays_in_sync(tmp_path: Path) -> None:
    """Recordings of 24 and 36 frames, each with a tone of the same duration; both are split in the middle."""
    parts = []
    for count in (24, 36):
        part = tmp_path / f"{count}.ts"
        with av.open(str(part), "w") as container:
            video = container.add_stream("libx264", rate=10, options={"g": "12", "bf": "0"})
            video.width, video.height, video.pix_fmt = 96, 64, "yuv420p"
            sound = container.add_stream("mp2", rate=48_000, layout="mono")
            for number, image in enumerate(pan("coffee", count, width=96, height=64)):
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 10)
                container.mux(video.encode(frame))
                samples = (np.sin(np.arange(4800) * count / 300)[None] * 9000).astype(np.int16)
                piece = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
                piece.sample_rate, piece.pts, piece.time_base = 48_000, 4800 * number, Fraction(1, 48_000)
                container.mux(sound.encode(piece))
            container.mux(video.encode())
            container.mux(sound.encode())
        parts.append(part)
    film = tmp_path / "film.ts"
    film.write_bytes(b"".join(part.read_bytes() for part in parts))
    report = split_at(film, tmp_path / "pieces", [0, 12, 24, 40, 60])
    for piece, tone in zip(report.pieces, (24, 24, 36, 36), strict=True):
        with av.open(piece.path) as container:
            samples = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)]).astype(float)
        assert len(samples) / 48_000 == pytest.approx(piece.end - piece.start, abs=0.06)
        middle = samples[len(samples) // 4 : -len(samples) // 4]
        loudest = np.argmax(np.abs(np.fft.rfft(middle))) / len(middle) * 2 * np.pi
        assert loudest == pytest.approx(tone / 300, rel=0.02)
