"""Frames are converted to upright images with square pixels and correct colors, without combing."""

from __future__ import annotations

import gc
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from av.video.stream import VideoStream
from PIL import Image as PILImage
from PIL import ImageCms, ImageOps

from tests.media.makers import BLUE, GREEN, RED, WHITE, corners, encode_with, flat, quarters
from vidkin.media import LUMINANCE, iter_frames, probe, read_frames, read_gray
from vidkin.media.convert import BT2020_PRIMARIES, HLG, PQ, clean_aspect, display_size, fit, to_standard_range

R, G, B, W = (list(color) for color in (RED, GREEN, BLUE, WHITE))


@pytest.mark.parametrize(
    ("degrees", "hflip", "vflip", "expected", "rotation", "mirrored"),
    [
        (0, False, False, [R, G, B, W], 0, False),
        (90, False, False, [G, W, R, B], 90, False),
        (180, False, False, [W, B, G, R], 180, False),
        (270, False, False, [B, R, W, G], 270, False),
        (0, True, False, [G, R, W, B], 0, True),
        (0, False, True, [B, W, R, G], 180, True),
        (90, True, False, [W, G, B, R], 270, True),
    ],
)
def test_the_display_matrix_is_applied(
    tmp_path: Path,
    degrees: int,
    hflip: bool,
    vflip: bool,
    expected: list[object],
    rotation: int,
    mirrored: bool,
) -> None:
    def setup(stream: VideoStream) -> None:
        stream.set_display_rotation(degrees, hflip=hflip, vflip=vflip)  # type: ignore[attr-defined]

    path = encode_with(tmp_path / "turned.mp4", [quarters(96, 64)] * 3, stream_setup=setup)
    image = read_frames(path).images[0]
    assert corners(image) == expected
    assert image.shape == ((96, 64, 3) if degrees % 180 else (64, 96, 3))
    info = probe(path)
    assert (info.rotation, info.mirrored, info.height, info.width) == (rotation, mirrored, *image.shape[:2])


@pytest.mark.parametrize(
    ("aspect", "size"), [((4, 3), (128, 64)), ((1, 2), (48, 64)), ((1, 1), (96, 64)), ((1, 40), (96, 64))]
)
def test_pixels_become_square(tmp_path: Path, aspect: tuple[int, int], size: tuple[int, int]) -> None:
    def setup(stream: VideoStream) -> None:
        stream.codec_context.sample_aspect_ratio = Fraction(*aspect)

    path = encode_with(tmp_path / "aspect.mkv", [quarters(96, 64)] * 3, stream_setup=setup)
    image = read_frames(path).images[0]
    assert image.shape[1::-1] == size == (probe(path).width, probe(path).height)
    assert corners(image) == [R, G, B, W]


@pytest.mark.parametrize(
    ("short_side", "size"), [(None, (96, 64)), (32, (48, 32)), (64, (96, 64)), (500, (96, 64)), (1, (2, 1))]
)
def test_short_side_scales_down_but_never_up(tmp_path: Path, short_side: int | None, size: tuple[int, int]) -> None:
    path = encode_with(tmp_path / "a.mp4", [quarters(96, 64)])
    assert read_frames(path, short_side=short_side).images.shape[2:0:-1] == size


def test_scaling_down_averages(tmp_path: Path) -> None:
    checked = np.indices((64, 96)).sum(axis=0) % 2 * 200
    image = np.repeat(checked[..., None], 3, axis=2).astype(np.uint8)
    path = encode_with(tmp_path / "a.mp4", [image], pixel_format="yuv444p", options={"crf": "1"})
    np.testing.assert_allclose(read_frames(path, short_side=16).images[0], 100, atol=8)


@pytest.mark.parametrize("width", [33, 35])
@pytest.mark.parametrize("pixel_format", ["yuv444p", "yuv444p10le"])
def test_odd_sizes_are_read_exactly(tmp_path: Path, width: int, pixel_format: str) -> None:
    path = encode_with(tmp_path / "odd.mp4", [quarters(width, 21)] * 2, pixel_format=pixel_format)
    image = read_frames(path).images[0]
    assert image.shape == (21, width, 3)
    assert corners(image) == [R, G, B, W]


@pytest.mark.parametrize(
    ("codec", "pixel_format", "depth"),
    [
        ("libx264", "yuv420p10le", 10),
        ("libx265", "yuv420p12le", 12),
        ("ffv1", "gbrp10le", 10),
        ("ffv1", "gray16le", 16),
    ],
)
def test_deep_samples_become_eight_bits(tmp_path: Path, codec: str, pixel_format: str, depth: int) -> None:
    options = {"x265-params": "log-level=none"} if codec == "libx265" else {}
    path = encode_with(tmp_path / "deep.mkv", [flat(137)] * 2, codec=codec, pixel_format=pixel_format, options=options)
    assert probe(path).bit_depth == depth
    np.testing.assert_allclose(read_frames(path).images[0], 137, atol=2)


@pytest.mark.parametrize("limits", [ColorRange.MPEG, ColorRange.JPEG])
@pytest.mark.parametrize(("space", "code"), [(Colorspace.ITU601, 5), (Colorspace.ITU709, 1), (Colorspace.BT2020, 9)])
def test_color_matrix_and_range_are_respected(tmp_path: Path, space: Colorspace, code: int, limits: ColorRange) -> None:
    scaler = VideoReformatter()

    def tag(stream: VideoStream) -> None:
        stream.codec_context.colorspace = code
        stream.codec_context.color_range = int(limits)

    def convert(frame: av.VideoFrame) -> av.VideoFrame:
        return scaler.reformat(
            frame,
            format="yuv444p",
            dst_colorspace=space,
            dst_color_range=limits,
            src_color_range=ColorRange.JPEG,
        )

    path = encode_with(
        tmp_path / "tagged.mkv",
        [quarters()] * 2,
        pixel_format="yuv444p",
        options={"crf": "1"},
        stream_setup=tag,
        frame_setup=convert,
    )
    image = read_frames(path).images[0]
    for (y, x), color in zip([(16, 24), (16, 72), (48, 24), (48, 72)], (R, G, B, W), strict=True):
        np.testing.assert_allclose(image[y, x], color, atol=3)


@pytest.mark.parametrize(("size", "space"), [((640, 480), Colorspace.ITU601), ((1280, 720), Colorspace.ITU709)])
def test_untagged_colors_are_guessed_from_the_size(tmp_path: Path, size: tuple[int, int], space: Colorspace) -> None:
    scaler = VideoReformatter()

    def convert(frame: av.VideoFrame) -> av.VideoFrame:
        frame = scaler.reformat(frame, format="yuv444p", dst_colorspace=space, dst_color_range=ColorRange.MPEG)
        frame.colorspace = 2
        return frame

    path = encode_with(
        tmp_path / "a.mkv",
        [quarters(*size)],
        pixel_format="yuv444p",
        options={"crf": "4"},
        frame_setup=convert,
    )
    assert corners(read_frames(path).images[0]) == [R, G, B, W]


@pytest.mark.parametrize(("ending", "codec"), [("mp4", "libx264"), ("mpg", "mpeg2video")])
def test_interlaced_video_is_reduced_to_one_field(tmp_path: Path, ending: str, codec: str) -> None:
    combed = flat(40, 96, 64)
    combed[::2] = 200
    options = {"flags": "+ildct+ilme"}
    options |= {"x264-params": "tff=1", "crf": "5"} if codec == "libx264" else {"qmin": "1", "qmax": "2"}
    path = encode_with(tmp_path / f"a.{ending}", [combed] * 8, rate=25, codec=codec, options=options)
    assert probe(path).interlaced
    frames = read_frames(path, rate=None)
    assert frames.images.shape[1:] == (64, 96, 3)
    np.testing.assert_allclose(frames.images, 200, atol=6)


@pytest.mark.parametrize("code", [2, 5, 1, 9])
@pytest.mark.parametrize(("pixel_format", "limits"), [("yuv420p", 1), ("yuv444p", 2), ("yuv420p10le", 1)])
def test_gray_levels_are_the_luminance_of_the_colors(tmp_path: Path, pixel_format: str, limits: int, code: int) -> None:
    def tag(stream: VideoStream) -> None:
        stream.codec_context.colorspace = code
        stream.codec_context.color_range = limits
        stream.set_display_rotation(90)  # type: ignore[attr-defined]

    path = encode_with(tmp_path / "a.mkv", [quarters(96, 64)] * 3, pixel_format=pixel_format, stream_setup=tag)
    colors = read_frames(path, rate=None, short_side=16)
    times, levels = read_gray(path, start=0.0, end=1.0, short_side=16)
    assert times.tolist() == colors.timestamps.tolist()
    assert (levels.shape, levels.dtype) == (colors.images.shape[:3], np.uint8)
    corner = np.s_[:, [3, 3, -4, -4], [3, -4, 3, -4]]  # away from edges, where colors are blurred
    np.testing.assert_allclose(levels[corner], (colors.images @ np.array(LUMINANCE))[corner], atol=2.5)


@pytest.mark.parametrize(("pixel_format", "size"), [("yuv444p", 64), ("yuv420p10le", 720), ("gray", 64)])
def test_coded_colors_are_as_stored_even_outside_the_rgb_range(tmp_path: Path, pixel_format: str, size: int) -> None:
    deep = 4 if pixel_format.endswith("10le") else 1
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=10)
        stream.width = stream.height = size
        stream.pix_fmt = pixel_format
        frame = av.VideoFrame(size, size, pixel_format)
        for plane, value in zip(frame.planes, (63, 102, 240), strict=False):
            kind = np.uint8 if deep == 1 else np.uint16
            plane.update(np.full(plane.buffer_size // np.dtype(kind).itemsize, value * deep, kind).tobytes())
        frame.pts, frame.time_base = 0, Fraction(1, 10)
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    images = next(iter_frames(tmp_path / "a.mkv", short_side=32, coded=True)).images
    expected = (63, 128, 128) if pixel_format == "gray" else ((63 - 16) * 255 / 219, 128 - 26 * 255 / 224, 255)
    assert images.shape == (1, 32, 32, 3)
    np.testing.assert_allclose(images.reshape(-1, 3), np.tile(expected, (32 * 32, 1)), atol=1.5)


def test_coded_colors_of_rgb_use_bt601(tmp_path: Path) -> None:
    PILImage.new("RGB", (30, 20), (200, 0, 100)).save(tmp_path / "a.png")
    images = next(iter_frames(tmp_path / "a.png", coded=True)).images
    assert images[0, 5, 5].tolist() == [71, 144, 220]


def test_gray_levels_of_transparent_images_have_a_white_background(tmp_path: Path) -> None:
    picture = np.zeros((20, 30, 4), dtype=np.uint8)
    picture[:, 15:] = (200, 0, 0, 255)
    PILImage.fromarray(picture).save(tmp_path / "a.png")
    _, levels = read_gray(tmp_path / "a.png", start=0.0, end=1.0, short_side=20)
    assert levels[0, 5, [5, 25]].tolist() == [255, 60]


def test_transparent_images_have_a_white_background(tmp_path: Path) -> None:
    picture = np.zeros((20, 30, 4), dtype=np.uint8)
    picture[:, 10:] = (200, 0, 0, 128)
    picture[:, 20:] = (0, 0, 200, 255)
    PILImage.fromarray(picture).save(tmp_path / "a.png")
    image = read_frames(tmp_path / "a.png").images[0]
    assert image[5, [5, 15, 25]].tolist() == [[255, 255, 255], [227, 127, 127], [0, 0, 200]]


@pytest.mark.parametrize("tag", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_photographs_are_oriented_by_exif(tmp_path: Path, tag: int, ending: str) -> None:
    exif = PILImage.Exif()
    exif[0x0112] = tag
    path = tmp_path / f"a.{ending}"
    PILImage.fromarray(quarters(96, 64)).save(path, exif=exif, quality=98)
    with PILImage.open(path) as picture:
        expected = np.asarray(ImageOps.exif_transpose(picture))
    image = read_frames(path).images[0]
    assert image.shape == expected.shape
    assert corners(image) == corners(expected)


@pytest.mark.large
@pytest.mark.parametrize("ending", ["jpg", "png", "tiff"])
def test_images_with_a_color_profile_do_not_crash(tmp_path: Path, ending: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    PILImage.fromarray(quarters(96, 64)).save(tmp_path / f"a.{ending}", icc_profile=profile)
    for _ in range(4):  # collecting PyAV's objects for such profiles crashes
        assert corners(read_frames(tmp_path / f"a.{ending}").images[0]) == [R, G, B, W]
        probe(tmp_path / f"a.{ending}")
        gc.collect()


@pytest.mark.parametrize("short_side", [None, 32])
@pytest.mark.parametrize("transfer", [PQ, HLG, 14])
def test_hdr_and_wide_gamut_keep_their_hues(tmp_path: Path, transfer: int, short_side: int | None) -> None:
    def tag(stream: VideoStream) -> None:
        context = stream.codec_context
        context.color_trc, context.color_primaries, context.colorspace = transfer, BT2020_PRIMARIES, 9

    path = encode_with(
        tmp_path / "a.mp4",
        [quarters()] * 2,
        pixel_format="yuv420p10le",
        options={"crf": "4"},
        stream_setup=tag,
        frame_setup=lambda frame: VideoReformatter().reformat(
            frame, format="yuv420p10le", dst_colorspace=Colorspace.BT2020, dst_color_range=ColorRange.MPEG
        ),
    )
    assert probe(path).hdr == (transfer in (PQ, HLG))
    image = read_frames(path, short_side=short_side).images[0].astype(int)
    height, width = image.shape[:2]
    red, green, blue, white = (image[y * height // 4, x * width // 4] for y, x in ((1, 1), (1, 3), (3, 1), (3, 3)))
    assert red[0] > 240 > 40 > red[1:].max()
    assert green[1] > 180 > 80 > green[[0, 2]].max()
    assert blue[2] > 240 > 60 > blue[0]
    assert white.min() > 240


def test_pq_is_mapped_as_computed_from_the_standard() -> None:
    """SMPTE ST 2084: code 0.5807 is 203 cd/m2, 0.4284 is 203 / 4.94 cd/m2, computed here with the inverse formula."""

    def code(light: float) -> int:
        power = (light / 10000) ** 0.1593017578125
        return round(65535 * ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375)

    levels = [0.0, 203 * 0.25, 203 * 0.75, 203.0, 4000.0]
    image = np.repeat(np.array([[code(level) for level in levels]], dtype=np.uint16)[..., None], 3, axis=2)
    gray = to_standard_range(image, PQ, 1)[0, :, 0].astype(int)
    # Gamma 2.2: 0.25 -> 136, 0.75 -> 224; light above 3/4 is rolled off: 1 -> 0.75 + 0.25 (1 - 1/e) = 0.908 -> 244.
    np.testing.assert_allclose(gray, [0, 136, 224, 244, 255], atol=1)


def test_hlg_is_monotone_and_white_stays_white() -> None:
    ramp = np.repeat(np.linspace(0, 65535, 50).astype(np.uint16)[None, :, None], 3, axis=2)
    gray = to_standard_range(ramp, HLG, BT2020_PRIMARIES)[0]
    assert (np.diff(gray[:, 0].astype(int)) >= 0).all()
    assert gray[0].tolist() == [0, 0, 0]
    assert (gray[-1] >= 252).all()


def test_wide_gamut_keeps_gray_and_raises_saturation() -> None:
    image = np.array([[[30000, 30000, 30000], [50000, 20000, 20000]]], dtype=np.uint16)
    gray, reddish = to_standard_range(image, 1, BT2020_PRIMARIES)[0].astype(int)
    np.testing.assert_allclose(gray, 30000 / 257, atol=1)
    assert reddish[0] > 50000 / 257
    assert reddish[1] < 20000 / 257


def test_sizes_are_scaled_and_rotated() -> None:
    assert clean_aspect(None) == clean_aspect(Fraction(0)) == clean_aspect(Fraction(100)) == 1
    assert display_size(720, 576, Fraction(64, 45)) == (1024, 576)
    assert display_size(720, 576, Fraction(64, 45), turns=3) == (576, 1024)
    assert fit(1920, 1080, 160) == (284, 160)
    assert fit(1080, 1920, 160) == (160, 284)
