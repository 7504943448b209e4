"""Media files that break naive code, with visually verified expected results."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from vidkin.errors import MediaError
from vidkin.media import Converter, Orienter, PictureReader, iter_frames, open_video, probe, read_frames
from vidkin.media.convert import clean_aspect
from vidkin.media.sampling import Sampler

pytestmark = pytest.mark.data

# name: (frames, width, height, last time, duration)
READABLE = {
    "BA_MW_D_IDR_LOST.264": (70, 176, 144, 2.76, 3.88),
    "Error_I_P.264": (6, 352, 288, 0.2, 0.24),
    "animated.gif": (4, 64, 48, 0.3, 0.4),
    "av1_video.mkv": (125, 640, 360, 4.96, 5.0),
    "bt2020_10bit.mp4": (60, 320, 240, 59 / 30, 2.0),
    "counter.mp4": (30, 1920, 1080, 2.9, 3.0),
    "delayed_start.mp4": (24, 480, 320, 0.92, 0.96),
    "discard_first_keyframe.mp4": (25, 64, 64, 0.96, 1.0),
    "frame_exceeds_screen.gif": (1, 4, 4, 0.0, 0.1),
    "gradient.gif": (1, 1280, 720, 0.0, 0.1),
    "h264_10bits.mp4": (30, 200, 200, 29 / 30, 1.0),
    "h265_10bits.mp4": (30, 200, 200, 29 / 30, 1.0),
    "nasa_13013_hdr.mp4": (325, 320, 180, 12.96, 13.0),
    "nasa_13013_mkv_duration_tag.mkv": (390, 480, 270, 12.98, 13.013),
    "nasa_13013_rotated.mp4": (17, 270, 480, 0.534, 0.567),
    "nasa_13013_vfr.mp4": (50, 480, 270, 3.904, 3.97),
    "sideways movie.mov": (25, 480, 640, 0.998, 1.02),
    "test-padded-dimensions.mp4": (150, 1080, 1080, 149 / 30, 5.0),
    "test_non_zero_start.mp4": (12, 199, 112, 11 / 30, 0.4),
    "testsrc2_444_12bit_hevc.mp4": (25, 321, 241, 0.96, 1.0),
    "testsrc2_mpeg4.mp4": (1, 64, 64, 0.0, 0.04),
    "testsrc2_odd_dims_10bit.mp4": (25, 321, 241, 0.96, 1.0),
    "testsrc2_odd_height_and_width_444.mp4": (25, 321, 241, 0.96, 1.0),
    "testsrc2_odd_height_and_width_mpeg2.mp4": (10, 121, 81, 0.36, 0.4),
    "testsrc2_odd_height_and_width_vp9.mp4": (25, 321, 241, 0.96, 1.0),
    "weird_aspect.small.mpg": (36, 501, 288, 1.44, 1.48),
}

BROKEN = {
    "broken.mp4": r"its index \(moov\) is missing: the recording or the download was cut off",
    "empty.flv": "this is not a video, or it is damaged",
    "nasa_13013.mp4.audio.mp3": "the file has no video, only sound",
}


@pytest.fixture
def odd(shared_data: Path) -> Path:
    return shared_data / "odd"


def test_every_file_is_expected(odd: Path) -> None:
    assert {path.name for path in odd.iterdir()} == set(READABLE) | set(BROKEN)


@pytest.mark.large
@pytest.mark.parametrize("name", READABLE)
def test_readable_files_give_the_expected_frames(odd: Path, name: str) -> None:
    count, width, height, last, duration = READABLE[name]
    short_side = 240 if height * width > 500_000 else None
    frames = read_frames(odd / name, rate=None, short_side=short_side)
    info = probe(odd / name)
    assert len(frames) == count
    assert (info.width, info.height) == (width, height)
    if short_side is None:
        assert frames.images.shape[1:3] == (height, width)
    assert frames.timestamps[0] == 0.0
    assert frames.timestamps[-1] == pytest.approx(last, abs=1e-3)
    # The duration of the last frame is uncertain if frames are not evenly spaced.
    assert info.duration == pytest.approx(duration, abs=0.045)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_give_the_expected_errors(odd: Path, name: str) -> None:
    for read in (probe, read_frames):
        with pytest.raises(MediaError, match=f"{name}: {BROKEN[name]}"):
            read(odd / name)  # type: ignore[operator]


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("rate", [1.0, 4.0])
def test_sampling_equals_decoding_everything(odd: Path, name: str, rate: float) -> None:
    """The reference is the plain reader and sampler, which decode every frame."""
    with open_video(odd / name, threads=1) as (container, stream):
        reader = PictureReader(str(odd / name), container, stream)
        convert = Converter(Orienter(str(odd / name), ""), clean_aspect(stream.sample_aspect_ratio), 64)
        images, times = [], []
        sampler: Sampler | None = None
        for picture in reader.pictures():
            sampler = sampler or Sampler(rate, 0.0, None, tick=reader.tick, base=picture[0])
            for time, frame in sampler.push(picture):
                images.append(convert(frame))
                times.append((time - (reader.base or 0)) * reader.tick)
        assert sampler is not None
        for time, frame in sampler.finish(reader.end):
            images.append(convert(frame))
            times.append((time - (reader.base or 0)) * reader.tick)
    frames = read_frames(odd / name, rate=rate, short_side=64, threads=1)
    np.testing.assert_allclose(frames.timestamps, times)
    np.testing.assert_array_equal(frames.images, np.stack(images))


def color(image: np.ndarray, y: float, x: float) -> list[int]:
    """Return the color at these fractions of height and width, rounded to multiples of 51."""
    pixel = image[int(y * image.shape[0]), int(x * image.shape[1])]
    return [int(value) for value in np.rint(pixel / 51) * 51]


@pytest.mark.parametrize(
    "name",
    [name for name in READABLE if name.startswith("testsrc2_odd") or name.endswith(("bits.mp4", "_hevc.mp4"))],
)
def test_bars_of_the_test_image_have_their_colors(odd: Path, name: str) -> None:
    """The bars below the clock are red, green, yellow, blue, magenta and cyan from left to right."""
    image = read_frames(odd / name).images[0]
    bars = [color(image, 0.95, (index + 0.5) / 6) for index in range(6)]
    assert bars == [[255, 0, 0], [0, 255, 0], [255, 255, 0], [0, 0, 255], [255, 0, 255], [0, 255, 255]]


def test_hdr_is_tone_mapped_and_keeps_its_hues(odd: Path) -> None:
    image = read_frames(odd / "bt2020_10bit.mp4").images[0].astype(int)
    for index, channels in enumerate([[0], [1], [0, 1], [2], [0, 2], [1, 2]]):
        pixel = image[int(0.95 * image.shape[0]), int((index + 0.5) / 6 * image.shape[1])]
        others = [channel for channel in range(3) if channel not in channels]
        assert pixel[channels].min() > pixel[others].max() + 80


def test_video_of_a_phone_held_upright_is_upright(odd: Path) -> None:
    """It shows a face left of the center, dark hair above it, and a dark jacket in both lower corners."""
    image = read_frames(odd / "sideways movie.mov").images[0].mean(axis=2)
    face, hair = image[320:480, 80:240].mean(), image[0:160, 80:240].mean()
    corners = (image[560:, :80].mean(), image[560:, 400:].mean())
    assert face > 150
    assert hair < 70
    assert max(corners) < 40


def test_the_rotated_file_shows_the_upright_video_rotated(odd: Path) -> None:
    turned = read_frames(odd / "nasa_13013_rotated.mp4").images[0]
    upright = read_frames(odd / "nasa_13013_mkv_duration_tag.mkv").images[0]
    difference = np.abs(turned.astype(int) - np.rot90(upright).astype(int)).mean()
    assert difference < 3 < np.abs(turned.astype(int) - np.rot90(upright, 3).astype(int)).mean()


def test_a_lost_first_key_frame_is_reported_as_damage(odd: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "vidkin"):
        read_frames(odd / "Error_I_P.264", rate=None)
    assert "Error_I_P.264: the file is damaged: 5 frames with errors" in caplog.text


@pytest.mark.large
def test_real_videos_are_sampled_once_a_second(shared_data: Path) -> None:
    for path in sorted((shared_data / "videos" / "mdn").iterdir()):
        times = np.concatenate([part.timestamps for part in iter_frames(path, short_side=32)])
        np.testing.assert_allclose(times, np.arange(int(np.ceil(probe(path).duration))), atol=0.034)
