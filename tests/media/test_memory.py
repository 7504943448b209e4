"""Memory does not grow with the length of a video."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.media.makers import encode_with, flat
from vidkin.media import iter_frames, probe, write_video

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
    """Frames read in a process of their own, and the peak of its memory in MiB."""
    command = [sys.executable, "-c", MEASURE, str(path), str(rate)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, peak = done.stdout.split()
    return int(count), int(peak)


def test_ten_times_as_long_takes_no_more(tmp_path: Path) -> None:
    write_video(
        tmp_path / "short.mp4", (flat(i % 250, 480, 270) for i in range(150)), rate=25, preset="ultrafast"
    )
    write_video(
        tmp_path / "long.mp4", (flat(i % 250, 480, 270) for i in range(1500)), rate=25, preset="ultrafast"
    )
    count, short = frames_and_peak(tmp_path / "short.mp4", 0)
    assert count == 150
    count, long = frames_and_peak(tmp_path / "long.mp4", 0)
    assert count == 1500
    # All frames together would be 580 MB.
    assert long < short + 40
    assert long < 300


def test_a_strip_of_a_video_is_scaled_at_both_sides(tmp_path: Path) -> None:
    """60,000 x 100 pixels: 18 MB a frame, with a short side that needs no scaling."""
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
    # All frames together are 540 MB.
    assert peak - before < 300


@pytest.mark.slow
def test_two_hours_stay_below_a_gibibyte(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    write_video(path, (flat(i % 250, 640, 360) for i in range(5 * 7200)), rate=5, preset="ultrafast")
    assert probe(path).duration == pytest.approx(7200, abs=0.5)
    count, peak = frames_and_peak(path, 1.0)
    assert count == 7200
    assert peak < 1024
