"""Segments joined to a new video keep their frames, with sound in sync."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.media import join_spans, probe, read_frames, write_preview

RATE = 48_000


@dataclass(frozen=True)
class Stretch:
    start: float
    end: float
    start_frame: int
    end_frame: int


def stretch(start: int, end: int) -> Stretch:
    """A segment of a video with 10 frames per second."""
    return Stretch(start, end, 10 * start, 10 * end)


def tones(path: Path, *, seconds: int = 6, heard: int = 6) -> Path:
    """Write a 10 fps video whose sound in second k is a tone of 400 (k + 1) Hz, for ``heard`` seconds."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=10, options={"preset": "veryfast"})
        video.width, video.height, video.pix_fmt = 96, 64, "yuv420p"
        sound = container.add_stream("aac", rate=RATE, layout="stereo")
        for index, image in enumerate(pan("coffee", 10 * seconds, width=96, height=64)):
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            picture.pts, picture.time_base = index, Fraction(1, 10)
            container.mux(video.encode(picture))
            if index >= 10 * heard:
                continue
            at = np.arange(index * RATE // 10, (index + 1) * RATE // 10)
            wave = (np.sin(2 * np.pi * 400 * (index // 10 + 1) * at / RATE) / 4).astype(np.float32)
            samples = av.AudioFrame.from_ndarray(np.stack([wave, wave]), format="fltp", layout="stereo")
            samples.sample_rate, samples.pts, samples.time_base = RATE, int(at[0]), Fraction(1, RATE)
            container.mux(sound.encode(samples))
        container.mux(video.encode())
        container.mux(sound.encode())
    return path


def heard_in(path: Path) -> NDArray[np.float32]:
    """Decode the first channel, starting at the time of the first frame."""
    parts = []
    with av.open(str(path)) as container:
        for frame in container.decode(audio=0):
            assert frame.pts is not None
            parts.append((round(float(frame.pts * frame.time_base) * RATE), frame.to_ndarray()[0]))
    whole = np.zeros(max(at + len(part) for at, part in parts), np.float32)
    for at, part in parts:
        if at + len(part) > 0:
            whole[max(at, 0) : at + len(part)] = part[max(-at, 0) :]
    return whole


def pitch(wave: NDArray[np.float32], start: float, end: float) -> float:
    """Find the strongest frequency between two times, in Hz."""
    part = wave[round(start * RATE) : round(end * RATE)]
    return float(np.abs(np.fft.rfft(part * np.hanning(len(part)))).argmax() * RATE / len(part))


def test_preview_has_the_sound_of_its_segment_and_none_beyond_its_frames(tmp_path: Path) -> None:
    source, made = tones(tmp_path / "film.mp4"), tmp_path / "piece.mp4"
    assert write_preview(source, made, start=2, end=4, crf=30, short_side=48) is True
    info = probe(made)
    assert (info.codec, info.height, info.has_audio) == ("h264", 48, True)
    assert info.duration == pytest.approx(2, abs=0.1)
    wave = heard_in(made)
    assert [round(pitch(wave, at, at + 0.9), -1) for at in (0.05, 1.05)] == [1200, 1600]
    # The last segment extends beyond the end of the sound.
    last = tmp_path / "last.mp4"
    write_preview(source, last, start=5, end=15, crf=30, short_side=48)
    assert len(heard_in(last)) / RATE == pytest.approx(1, abs=0.15)
    silent = encode(tmp_path / "silent.mp4", pan("coffee", 10, width=96, height=64))
    assert write_preview(silent, tmp_path / "none.mp4", start=0, end=5, crf=30, short_side=48) is False
    assert not probe(tmp_path / "none.mp4").has_audio


def test_each_segment_keeps_its_frames_and_sound(tmp_path: Path) -> None:
    source = tones(tmp_path / "film.mp4")
    steps: list[tuple[int, int]] = []
    spans = [stretch(4, 5), stretch(5, 6), stretch(1, 2)]
    made = tmp_path / "clip.mp4"
    assert join_spans(source, made, spans, rate=10, on_progress=lambda done, total: steps.append((done, total))) is True
    assert (steps[0], steps[-1]) == ((0, 3), (2, 3))
    assert probe(made).duration == pytest.approx(3, abs=0.05)
    shown, original = read_frames(made, rate=None), read_frames(source, rate=None)
    assert shown.timestamps == pytest.approx(np.arange(30) / 10, abs=1e-3)
    expected = np.concatenate([original.images[40:60], original.images[10:20]]).astype(float)
    assert np.abs(shown.images - expected).mean(axis=(1, 2, 3)).max() < 8
    wave = heard_in(made)
    assert [round(pitch(wave, at, at + 0.9), -1) for at in (0.05, 1.05, 2.05)] == [2000, 2400, 800]
    # The tone of the last segment begins within 30 ms of its frames.
    assert pitch(wave, 1.87, 1.97) == pytest.approx(2400, abs=20)
    assert pitch(wave, 2.03, 2.13) == pytest.approx(800, abs=20)
    # The volume is constant, without a gap between adjacent segments.
    assert np.abs(wave[round(0.99 * RATE) : round(1.01 * RATE)]).max() == pytest.approx(0.25, abs=0.05)


def test_missing_sound_is_silence_and_a_silent_video_stays_silent(tmp_path: Path) -> None:
    source = tones(tmp_path / "film.mkv", heard=2)
    made = tmp_path / "clip.mp4"
    assert join_spans(source, made, [stretch(3, 4), stretch(1, 2)], rate=10)
    wave = heard_in(made)
    assert np.abs(wave[: round(0.9 * RATE)]).max() < 0.01
    assert pitch(wave, 1.1, 1.9) == pytest.approx(800, abs=20)
    mute = encode(tmp_path / "mute.mp4", pan("coffee", 20))
    silent = tmp_path / "silent.mp4"
    assert join_spans(mute, silent, [stretch(0, 1)], rate=10) is False
    assert probe(silent).has_audio is False
    with pytest.raises(InvalidArgumentError, match="spans must not be empty"):
        join_spans(mute, made, [], rate=10)
