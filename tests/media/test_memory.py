"""Memory use does not grow with the length of a video."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from tests.media.makers import encode_with, flat
from vidkin.errors import MediaError
from vidkin.media import iter_frames, open_video, probe, read_frames, write_video

MEASURE = """
import sys, psutil
from vidkin.media import iter_frames
rate = float(sys.argv[2]) or None
count, peak = 0, 0
for frames in iter_frames(sys.argv[1], rate=rate, threads=1):
    count += len(frames)
    peak = max(peak, psutil.Process().memory_info().rss)
print(count, peak >> 20)
"""


MEASURE_FEATURES = """
import resource, sys
from vidkin.features import describe_file, open_extractor
from vidkin.media import probe
extractor = open_extractor("classical")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
probe(sys.argv[1])
for part in describe_file(sys.argv[1], extractor, duration=3.0, rate=10.0, threads=1):
    pass
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def frames_and_peak(path: Path, rate: float) -> tuple[int, int]:
    """Read frames in a separate process; return the frame count and the process's peak memory in MiB."""
    command = [sys.executable, "-c", MEASURE, str(path), str(rate)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, peak = done.stdout.split()
    return int(count), int(peak)


@pytest.mark.process
def test_a_video_ten_times_as_long_takes_no_more_memory(tmp_path: Path) -> None:
    write_video(tmp_path / "short.mp4", (flat(i % 250, 480, 270) for i in range(150)), rate=25, preset="ultrafast")
    write_video(tmp_path / "long.mp4", (flat(i % 250, 480, 270) for i in range(1500)), rate=25, preset="ultrafast")
    count, short = frames_and_peak(tmp_path / "short.mp4", 0)
    assert count == 150
    count, long = frames_and_peak(tmp_path / "long.mp4", 0)
    assert count == 1500
    # All frames together would take 580 MB.
    assert long < short + 40
    assert long < 300


@pytest.mark.process
def test_an_extremely_wide_video_is_scaled_on_both_sides(tmp_path: Path) -> None:
    """A video of 60,000 x 100 pixels has 18 MB per frame, and its short side needs no scaling."""
    path = encode_with(
        tmp_path / "strip.mov",
        [flat(i * 8, 60_000, 100) for i in range(30)],
        codec="png",
        pixel_format="rgb24",
    )
    (frames,) = iter_frames(path, rate=None, short_side=256)
    assert frames.images.shape == (30, 3, 2048, 3)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE_FEATURES, str(path)], capture_output=True, text=True, check=True
    )
    before, peak = map(int, done.stdout.split())
    # All frames together take 540 MB.
    assert peak - before < 300


@pytest.mark.parametrize(
    ("size", "wanted", "threads"),
    [((100, 80), 16, 16), ((7000, 5000), 16, 2), ((8900, 8900), 16, 1), ((8900, 8900), 1, 1)],
)
def test_large_frames_are_decoded_by_fewer_threads(
    size: tuple[int, int], wanted: int, threads: int, tmp_path: Path
) -> None:
    """Each thread holds its own frames; a frame of 80 million pixels with 16 bits per channel takes 480 MB."""
    Image.new("L", size).save(tmp_path / "flat.png")
    with open_video(tmp_path / "flat.png", threads=wanted) as (_, stream):
        assert stream.codec_context.thread_count == threads


@pytest.mark.thorough
def test_memory_is_limited_on_machines_with_many_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    Image.new("L", (8900, 8900)).save(tmp_path / "large.png")
    Image.new("L", (100, 80)).save(tmp_path / "small.png")
    for name, threads in (("large.png", 1), ("small.png", 0)):  # 0 lets FFmpeg choose
        with open_video(tmp_path / name) as (_, stream):
            assert stream.codec_context.thread_count == threads


@pytest.mark.slow
def test_two_hours_stay_below_a_gibibyte(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    write_video(path, (flat(i % 250, 640, 360) for i in range(5 * 7200)), rate=5, preset="ultrafast")
    assert probe(path).duration == pytest.approx(7200, abs=0.5)
    count, peak = frames_and_peak(path, 1.0)
    assert count == 7200
    assert peak < 1024


@pytest.mark.hostile
def test_small_file_does_not_keep_a_reader_busy_for_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GIF that changes one pixel per frame has a million pixels per 23 bytes."""
    monkeypatch.setattr("vidkin.media.reader._MAX_TOTAL_PIXELS", 50_000_000)
    monkeypatch.setattr("vidkin.media.reader._PIXELS_PER_BYTE", 10_000)
    path = tmp_path / "long.gif"
    head = b"GIF89a" + struct.pack("<HHBBB", 1000, 1000, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\x04\x0a\x00\x00\x00\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0)
    path.write_bytes(head + (frame + b"\x02\x02\x44\x01\x00") * 40 + b";")
    assert len(read_frames(path, rate=1)) == 4
    path.write_bytes(head + (frame + b"\x02\x02\x44\x01\x00") * 2000 + b";")
    with pytest.raises(MediaError, match="far more pixels than a video of this size can have"):
        read_frames(path, rate=1)


@pytest.mark.hostile
def test_black_film_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.media.reader._MAX_TOTAL_PIXELS", 0)
    path = tmp_path / "black.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"preset": "ultrafast", "g": "600"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        black = av.VideoFrame.from_ndarray(np.zeros((1080, 1920, 3), np.uint8), format="rgb24")
        for _ in range(120):
            black.pts = None
            container.mux(stream.encode(black))
        container.mux(stream.encode(None))
    assert len(read_frames(path, rate=1, short_side=90)) == 4
