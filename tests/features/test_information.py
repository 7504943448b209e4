"""Frame information and bars in synthetic images, encoded images and real videos."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError
from vidkin.features import bar_boxes, frame_information
from vidkin.features.information import look_at, make_thumbnails, small_luma

Picture = NDArray[np.uint8]


def information(image: Picture) -> float:
    return float(frame_information(image[None])[0])


def decode_frames(path: Path, *, every: int = 1) -> Picture:
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return np.stack(frames[::every]).astype(np.uint8)


def plain(color: tuple[int, int, int] = (0, 0, 0), *, height: int = 256, width: int = 454) -> Picture:
    return np.full((height, width, 3), color, dtype=np.uint8)


def title(lines: list[str]) -> Picture:
    image = Image.fromarray(plain((20, 20, 60)))
    draw = ImageDraw.Draw(image)
    for index, line in enumerate(lines):
        draw.text((120, 110 + 35 * index), line, font=ImageFont.load_default(20), fill=(255, 255, 255))
    return np.asarray(image)


@pytest.mark.parametrize("color", [(0, 0, 0), (255, 255, 255), (200, 30, 30)])
def test_flat_frames_have_no_information(color: tuple[int, int, int]) -> None:
    assert information(plain(color)) == 0


def test_gradients_and_color_bars_have_no_information() -> None:
    slope = np.linspace(0, 255, 454).astype(np.uint8)
    assert information(np.broadcast_to(slope[None, :, None], (256, 454, 3)).copy()) == 0
    y, x = np.mgrid[:256, :454]
    vignette = np.clip(255 - np.hypot(y - 128, x - 227), 0, 255).astype(np.uint8)
    assert information(np.stack([vignette] * 3, axis=-1)) == 0
    bars = plain()
    for index, color in enumerate([(255, 255, 255), (255, 255, 0), (0, 255, 255), (0, 255, 0), (255, 0, 0)]):
        bars[:, index * 91 : index * 91 + 91] = color
    assert information(bars) == 0


def test_fade_between_flat_frames_has_no_information() -> None:
    fade = np.stack([plain((level, level, level)) for level in range(0, 256, 15)])
    assert frame_information(fade).max() == 0


def test_text_and_logos_have_little_information_and_photographs_the_maximum() -> None:
    line = information(title(["A Film by Somebody Else"]))
    credits = information(title(["A Film by Somebody Else", "Second Line of Cast", "Third Line of Cast"]))
    assert 0 < line < 0.1 < credits < 0.5
    logo = Image.fromarray(plain((255, 255, 255)))
    ImageDraw.Draw(logo).ellipse((190, 90, 260, 160), fill=(200, 0, 0))
    assert 0 < information(np.asarray(logo)) < 0.1
    for name in ("astronaut", "coffee", "chelsea", "brick"):
        assert information(photograph(name)) == 1


def test_information_of_a_checkerboard_matches_a_hand_computed_value() -> None:
    # A one-sample checkerboard in 32 of the 256 cells of the 128 x 128 grid: (3 * 32 / 256)^2.
    image = np.zeros((128, 128, 3), dtype=np.uint8)
    image[:16][np.indices((16, 128)).sum(axis=0) % 2 == 0] = 200
    assert information(image) == pytest.approx((3 / 8) ** 2)


@pytest.mark.parametrize("size", [(64, 96), (100, 300), (1, 127), (130, 128), (256, 257)])
def test_luma_samples_are_means_of_the_pixels_they_touch(size: tuple[int, int]) -> None:
    height, width = size
    images = np.random.default_rng(0).integers(0, 256, size=(2, height, width, 3), dtype=np.uint8)
    rows, columns = (
        [slice(place * side // 128, -(-(place + 1) * side // 128)) for place in range(128)] for side in size
    )
    luma = images @ np.array([0.299, 0.587, 0.114])
    expected = [[[image[row, column].mean() for column in columns] for row in rows] for image in luma]
    np.testing.assert_allclose(small_luma(images), expected, atol=1e-3)


def test_darkening_and_mirroring_preserve_the_information() -> None:
    image = photograph("coffee")
    assert information((image * 0.25).astype(np.uint8)) == 1
    rocket = photograph("rocket")
    assert information(rocket[:, ::-1]) == information(rocket)


def test_compression_noise_adds_no_information(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    noisy = [np.clip(generator.normal(60, 4, (144, 256, 3)), 0, 255).astype(np.uint8) for _ in range(5)]
    images = decode_frames(encode(tmp_path / "noise.mp4", noisy, options={"crf": "23"}))
    assert frame_information(images).max() < 0.01


def test_information_is_computed_per_frame(tmp_path: Path) -> None:
    images = decode_frames(encode(tmp_path / "a.mp4", [*pan("coffee", 3), *[plain(height=128, width=192)] * 2]))
    whole = frame_information(images)
    assert whole.dtype == np.float32
    assert whole.tolist() == [1, 1, 1, 0, 0]
    assert np.array_equal(whole, np.concatenate([frame_information(images[:2]), frame_information(images[2:])]))
    assert frame_information(images[:0]).shape == (0,)


@pytest.mark.thorough
@pytest.mark.data
def test_real_fades_have_no_information(shared_data: Path) -> None:
    assert frame_information(decode_frames(shared_data / "shots" / "fades.mp4", every=20)).max() == 0
    assert frame_information(decode_frames(shared_data / "videos" / "mdn" / "elf.mp4", every=60)).min() == 1


# ---------------------------------------------------------------------------------------------- bars


def add_bars(
    image: Picture, *, top: int = 0, bottom: int = 0, left: int = 0, right: int = 0, color: int = 0
) -> Picture:
    widths = ((top, bottom), (left, right), (0, 0))
    return np.pad(image, widths, constant_values=color).astype(np.uint8)


def scene(height: int = 128, width: int = 192, gain: float = 1.0) -> Picture:
    return (next(pan("coffee", 1, width=width, height=height)) * gain).astype(np.uint8)


@pytest.mark.parametrize(
    ("bars", "color"),
    [
        ({"top": 24, "bottom": 24}, 0),
        ({"top": 24, "bottom": 26}, 255),
        ({"left": 90, "right": 90}, 0),
        ({"left": 40, "right": 40, "top": 20, "bottom": 20}, 128),
        ({"bottom": 40}, 0),
        ({}, 0),
    ],
)
def test_bars_survive_compression(tmp_path: Path, bars: dict[str, int], color: int) -> None:
    frames = [add_bars(frame, **bars, color=color) for frame in pan("coffee", 5, width=192, height=128)]
    images = decode_frames(encode(tmp_path / "bars.mp4", frames, options={"crf": "30"}))
    height, width = images.shape[1:3]
    truth = [
        bars.get("top", 0),
        height - bars.get("bottom", 0),
        bars.get("left", 0),
        width - bars.get("right", 0),
    ]
    boxes = bar_boxes(images)
    assert boxes.dtype == np.int64
    # Ringing may hide up to one block of the bar; at most two lines of content may be lost.
    inward = (boxes - truth) * np.array([1, -1, 1, -1])
    assert inward.max() <= 2
    assert inward.min() >= -8


def test_bars_are_exact_without_compression() -> None:
    image = add_bars(scene(), top=30, bottom=30)
    assert bar_boxes(image[None]).tolist() == [[30, 158, 0, 192]]
    assert bar_boxes(np.ascontiguousarray(image.transpose(1, 0, 2))[None]).tolist() == [[0, 192, 30, 158]]


@pytest.mark.parametrize(
    "bars",
    [
        {"top": 50, "left": 80},
        {"bottom": 50, "left": 20},
        {"top": 40, "bottom": 16, "left": 60, "right": 24},
        {"top": 12, "bottom": 60},
    ],
    ids=["an L of thirds", "another L", "all around", "above and below"],
)
def test_bars_may_be_asymmetric(bars: dict[str, int], tmp_path: Path) -> None:
    images = decode_frames(
        encode(tmp_path / "bars.mp4", [add_bars(frame, **bars) for frame in pan("coffee", 3, width=192, height=128)])
    )
    height, width = images.shape[1:3]
    sides = [bars.get(side, 0) for side in ("top", "bottom", "left", "right")]
    truth = [sides[0], height - sides[1], sides[2], width - sides[3]]
    inward = (bar_boxes(images) - truth) * np.array([1, -1, 1, -1])
    assert inward.max() <= 2
    assert inward.min() >= -8


def test_gray_corner_belongs_to_the_content() -> None:
    assert bar_boxes(add_bars(scene(), top=40, left=60, color=90)[None]).tolist() == [[0, 168, 0, 252]]


def test_dark_scenes_are_not_cropped() -> None:
    for gain in (0.02, 0.05, 0.1, 0.2):
        dark = scene(gain=gain)
        assert bar_boxes(dark[None]).tolist() == [[0, 128, 0, 192]]
    lamp = plain(height=128, width=192)
    lamp[70:90, 30:50] = 220
    assert bar_boxes(lamp[None]).tolist() == [[0, 128, 0, 192]]


def test_skies_and_gradients_are_not_cropped() -> None:
    sky = scene()
    sky[:40] = (120, 170, 230)
    assert bar_boxes(sky[None]).tolist() == [[0, 128, 0, 192]]
    y = np.arange(128)
    hills = np.where(y[:, None] < 60 + 20 * np.sin(np.arange(192) / 15), 0, 120).astype(np.uint8)
    assert bar_boxes(np.stack([hills] * 3, axis=-1)[None]).tolist() == [[0, 128, 0, 192]]
    slope = np.broadcast_to(np.linspace(0, 255, 128).astype(np.uint8)[:, None, None], (128, 192, 3))
    assert bar_boxes(slope[None]).tolist() == [[0, 128, 0, 192]]


def test_bars_must_be_uniform_and_not_too_large() -> None:
    image = add_bars(scene(), top=30, bottom=30, color=90)
    image[-30:] = (10, 200, 10)
    assert bar_boxes(image[None]).tolist() == [[0, 188, 0, 192]]
    assert bar_boxes(add_bars(scene(height=30), top=90, bottom=90)[None]).tolist() == [[0, 210, 0, 192]]


def test_flat_frames_have_no_bars() -> None:
    assert bar_boxes(np.stack([plain(), plain((255, 255, 255))])).tolist() == [[0, 256, 0, 454]] * 2
    assert bar_boxes(np.zeros((0, 4, 4, 3), dtype=np.uint8)).shape == (0, 4)
    assert bar_boxes(np.zeros((1, 1, 1, 3), dtype=np.uint8)).tolist() == [[0, 1, 0, 1]]


@pytest.mark.data
def test_bars_are_detected_per_frame_in_a_batch() -> None:
    """Frames with varied edge pixels are skipped early, without affecting their neighbors."""
    noise = np.random.default_rng(3).integers(0, 255, (3, 96, 128, 3), dtype=np.uint8)
    noise[1, :20] = noise[1, -20:] = 0
    noise[2, :, :16] = noise[2, :, -16:] = 200
    assert bar_boxes(noise).tolist() == [[0, 96, 0, 128], [20, 76, 0, 128], [0, 96, 16, 112]]
    assert bar_boxes(noise[:0]).shape == (0, 4)


@pytest.mark.large
def test_bars_are_detected_in_encoded_video(shared_data: Path) -> None:
    images = decode_frames(shared_data / "videos" / "tmk" / "chair-22-sd-grey-bar.mp4", every=60)
    assert np.unique(bar_boxes(images), axis=0).tolist() == [[0, 720, 32, 448]]
    images = decode_frames(shared_data / "shots" / "sintel_trailer.mp4", every=30)
    assert np.unique(bar_boxes(images), axis=0).tolist() == [[0, 204, 0, 480]]


@pytest.mark.parametrize("function", [frame_information, bar_boxes])
def test_images_must_be_a_uint8_batch(function: object) -> None:
    assert callable(function)
    with pytest.raises(InvalidArgumentError, match=r"images must be \[T, H, W, 3\] uint8.*got \[4, 4, 3\] uint8"):
        function(np.zeros((4, 4, 3), dtype=np.uint8))
    with pytest.raises(InvalidArgumentError, match=r"got \[1, 0, 4, 3\] uint8"):
        function(np.zeros((1, 0, 4, 3), dtype=np.uint8))


def test_frames_are_analyzed_once() -> None:
    images = np.stack([plain(), *pan("coffee", 1, width=454, height=256)])
    look = look_at(images)
    assert np.array_equal(look.information, frame_information(images))
    assert np.array_equal(look.luma, small_luma(images))
    assert look_at(images) is look
    assert look_at(images.copy()) is not look


def test_thumbnails_are_cell_means_of_a_box() -> None:
    luma = np.random.default_rng(0).uniform(0, 255, (2, 128, 128)).astype(np.float32)
    boxes = np.array([[0, 0, 1, 1], [0.25, 0.5, 0.75, 1]], np.float32)
    thumbnails = make_thumbnails(luma, boxes)
    assert thumbnails.shape == (2, 2, 8, 8)
    assert thumbnails.dtype == np.uint8
    whole = luma.reshape(2, 8, 16, 8, 16).mean(axis=(2, 4))
    part = luma[:, 64:, 32:96].reshape(2, 8, 8, 8, 8).mean(axis=(2, 4))
    np.testing.assert_allclose(thumbnails[:, 0], whole, atol=0.51)
    np.testing.assert_allclose(thumbnails[:, 1], part, atol=0.51)


def test_thumbnail_of_an_empty_box_shows_one_pixel() -> None:
    luma = np.arange(128 * 128, dtype=np.float32).reshape(1, 128, 128) / 100
    boxes = np.array([[0, 0, 0, 0], [1, 1, 1, 1]], np.float32)
    thumbnails = make_thumbnails(luma, boxes)
    assert np.unique(thumbnails[0, 0]).tolist() == [0]
    assert np.unique(thumbnails[0, 1]).tolist() == [164]


def test_thumbnails_of_mirrored_frames_are_mirrored() -> None:
    image = photograph("coffee")
    whole = np.array([[0, 0, 1, 1]], np.float32)
    plain, mirrored = (make_thumbnails(small_luma(each[None]), whole)[0, 0] for each in (image, image[:, ::-1]))
    assert int(np.abs(mirrored[:, ::-1].astype(int) - plain).max()) <= 1
