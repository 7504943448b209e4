"""The default detector on versions of one film: cuts do not depend on the encoding, nor memory use on the length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.peak import measure_peak
from tests.support.videos import Image, encode, pan
from vidkin.shots import detect

RATE, TIMES_AS_MANY = 30, 4
SCENES = ("coffee", "chelsea", "rocket", "astronaut")
SECONDS = 2.0


@pytest.fixture(scope="module")
def film() -> list[Image]:
    """Four camera moves over photographs, two seconds each at 120 frames per second."""
    count = int(RATE * TIMES_AS_MANY * SECONDS)
    return [image for name in SCENES for image in pan(name, count, seed=1)]


def usual(path: Path, film: list[Image]) -> Path:
    return encode(path, film[::TIMES_AS_MANY], rate=RATE)


def ten_bits(path: Path, film: list[Image]) -> Path:
    return encode(path, film[::TIMES_AS_MANY], rate=RATE, pixel_format="yuv420p10le")


def fast(path: Path, film: list[Image]) -> Path:
    return encode(path, film, rate=RATE * TIMES_AS_MANY)


def variable(path: Path, film: list[Image]) -> Path:
    """Drop every third frame in the second half of each second."""
    kept = [n for n in range(len(film) // TIMES_AS_MANY) if n % RATE < RATE // 2 or n % 3]
    times = [n / RATE for n in kept]
    return encode(path, [film[TIMES_AS_MANY * n] for n in kept], rate=RATE, times=times)


def write_interlaced(path: Path, film: list[Image]) -> Path:
    """Interlace frames; the lower field is half a frame later than the upper one."""
    woven = []
    for upper, lower in zip(film[::TIMES_AS_MANY], film[TIMES_AS_MANY // 2 :: TIMES_AS_MANY], strict=True):
        frame = upper.copy()
        frame[1::2] = lower[1::2]
        woven.append(frame)
    return encode(path, woven, rate=RATE, options={"x264-params": "tff=1"})


@pytest.mark.large
@pytest.mark.parametrize("version", [usual, ten_bits, fast, variable, write_interlaced])
def test_every_version_of_a_film_has_the_same_cuts(
    version: Callable[[Path, list[Image]], Path], film: list[Image], tmp_path: Path
) -> None:
    detection = detect(version(tmp_path / "film.mp4", film))
    assert [cut.kind for cut in detection.cuts] == ["hard"] * 3
    expected = [SECONDS * number for number in (1, 2, 3)]
    assert [cut.time for cut in detection.cuts] == pytest.approx(expected, abs=1.5 / RATE)


@pytest.mark.large
@pytest.mark.parametrize("rate", [1, 2])
def test_cuts_at_very_low_frame_rates_are_found(rate: int, tmp_path: Path) -> None:
    """From each of eight frames to the next, the camera moves as far as in 0.2 s of the usual film."""
    slow = [image for name in SCENES for image in list(pan(name, 48, seed=2))[::6]]
    found = detect(encode(tmp_path / "film.mp4", slow, rate=rate))
    assert [cut.frame for cut in found.cuts if cut.kind == "hard"] == [8, 16, 24]
    assert [shot.start for shot in found.shots] == pytest.approx([8 * number / rate for number in range(4)])
    assert len(found.curve.times) == len(found.curve.values) == 32


@pytest.mark.process
def test_memory_does_not_grow_with_the_length_of_a_film(tmp_path: Path) -> None:
    """20,000 frames take at most 400 bytes per frame more than 2,000 frames; a frame itself takes 12 KiB."""
    before = (
        "import numpy as np\nfrom vidkin.media import FramePlanes\nfrom vidkin.shots import open_detector\n"
        "random, detector = np.random.default_rng(0), open_detector()\n"
        "height, width = detector.grid\n"
        "luma = random.integers(16, 235, (2, 1, 8, 8), np.uint8).repeat(height // 8, 2).repeat(width // 8, 3)\n"
        "luma = luma.repeat(100, 1).reshape(200, height, width)\n"
        "chroma = np.full((200, 2, height // 2, width // 2), 128, np.uint8)\n"
        "def show(scenes):\n"
        "    for number in range(scenes):\n"
        "        times = (200 * number + np.arange(200)) / 25\n"
        "        detector.push_planes(FramePlanes(luma, chroma, times))\n"
    )
    work = "show({})\nassert len(detector.finish().cuts) == {}"
    peaks = [measure_peak(before, work.format(scenes, 2 * scenes - 1), tmp_path) for scenes in (10, 100)]
    assert [peak.said for peak in peaks] == ["done", "done"]
    few, many = (peak.memory for peak in peaks)
    assert many - few < 400 * 18_000
