"""Convert decoded frames of any format and dynamic range to upright 8-bit RGB arrays with square pixels."""

from __future__ import annotations

import logging
import struct
import warnings
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import av
import av.filter
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin.media.frames import LUMINANCE

if TYPE_CHECKING:
    from av.video.frame import VideoFrame


_UNSPECIFIED = 2
# Codes of color spaces with BT.601 luma, which small video has by default.
_BT601_SPACES = (_UNSPECIFIED, 5, 6)

# Maximum aspect ratio. Without this limit, a strip of 60,000 x 100 pixels would keep its size, because only its short
# side is limited.
_MAX_ASPECT = 8

# Without FULL_CHR_H_INT, scaled frames would be darker by up to two levels.
_FLAGS = Interpolation.BILINEAR | Interpolation.FULL_CHR_H_INT

# With FULL_CHR_H_INT, unscaled 16-bit frames would lose their green component.
_DEEP_FLAGS = Interpolation.BILINEAR


def clean_aspect(ratio: Fraction | None) -> Fraction:
    """Return the pixel aspect ratio, or 1 if it is missing or implausible."""
    if ratio is None or not Fraction(1, 10) <= ratio <= 10:
        return Fraction(1)
    return ratio


def display_size(width: int, height: int, aspect: Fraction, turns: int = 0) -> tuple[int, int]:
    """Return the width and height in square pixels after a rotation by ``turns`` quarter turns."""
    width = max(1, round(width * aspect))
    return (height, width) if turns % 2 else (width, height)


def fit(width: int, height: int, short_side: int | None) -> tuple[int, int]:
    """Fit a size to this short side, with a long side of at most eight times that, without upscaling."""
    shorter, longer = sorted((width, height))
    if short_side is None:
        return width, height
    if longer > _MAX_ASPECT * shorter:
        side, target = longer, _MAX_ASPECT * short_side
    else:
        side, target = shorter, short_side
    if side <= target:
        return width, height
    return max(1, round(width * target / side)), max(1, round(height * target / side))


def shrink(image: NDArray[np.uint8], short_side: int | None) -> NDArray[np.uint8]:
    """Downscale an RGB image [H, W, 3] to the size given by :func:`fit`."""
    height, width = image.shape[:2]
    size = fit(width, height, short_side)
    if size == (width, height):
        return image
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
    scaled = VideoReformatter().reformat(frame, width=size[0], height=size[1], interpolation=_FLAGS)
    return scaled.to_ndarray()  # type: ignore[return-value]  # 8 bits per sample


def is_high_definition(width: int, height: int) -> bool:
    """Whether video of this size uses BT.709 colors by default."""
    return width >= 1280 or height > 576


class Converter:
    """Converts the frames of one video, all to the size of the first frame.

    Args:
        orient: Function that returns the orientation of a frame.
        aspect: Pixel aspect ratio (width to height).
        short_side: Downscale so that the shorter side has this many pixels; None keeps the size.
        gray: Return gray levels, weighted by :data:`~vidkin.media.frames.LUMINANCE`.
        coded: Return luma and color differences as stored in the file; see `Converter.__call__`.
    """

    def __init__(
        self,
        orient: Orienter,
        aspect: Fraction,
        short_side: int | None = None,
        *,
        gray: bool = False,
        coded: bool = False,
    ) -> None:
        self._orient = orient
        self._aspect = aspect
        self._short_side = short_side
        self._gray = gray
        self._coded = coded
        self._size: tuple[int, int] | None = None
        self._scaler = VideoReformatter()
        self._field: tuple[tuple[Any, ...], Any] | None = None

    def __call__(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Convert a frame to [H, W, 3] uint8 RGB, [H, W] gray levels, or coded values.

        Coded values are [H, W, 3] uint8 Y', Cb, Cr in the color matrix of the file, each from 0 to 255, where 128 means
        no color. Colors outside RGB are not clipped, because clipping would change their luma. RGB frames, frames with
        alpha and frames mapped to standard range use the BT.601 matrix.

        Interlaced frames are reduced to their upper field, with doubled lines, which avoids combing and keeps frames
        independent of each other.
        """
        turns, mirrored = self._orient(frame)
        if self._size is None:
            upright = display_size(frame.width, frame.height, self._aspect, turns)
            self._size = fit(*upright, self._short_side)
        width, height = self._size if turns % 2 == 0 else self._size[::-1]
        space = (
            int(Colorspace.ITU709)
            if frame.colorspace == _UNSPECIFIED
            and not frame.format.is_rgb
            and is_high_definition(frame.width, frame.height)
            else None
        )
        if frame.interlaced_frame and frame.height > 1:
            key = (frame.width, frame.height, frame.format.name)
            if self._field is None or self._field[0] != key:
                graph = av.filter.Graph()
                source = graph.add_buffer(
                    width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 1000)
                )
                field = graph.add("field", "type=top")
                sink = graph.add("buffersink")
                graph.link_nodes(source, field, sink).configure()
                self._field = (key, graph)
            graph = self._field[1]
            graph.push(frame)
            frame = graph.vpull()
        image = self._scale(frame, width, height, space)
        if mirrored:
            image = image[:, ::-1]
        return np.rot90(image, turns)

    def _scale(self, frame: VideoFrame, width: int, height: int, space: int | None) -> NDArray[np.uint8]:
        mapped = needs_mapping(frame.color_trc, frame.color_primaries) and not frame.format.is_rgb
        name = frame.format.name
        has_alpha = name.startswith(("yuva", "gbrap", "ya", "pal8", "rgba", "bgra", "argb", "abgr"))
        # Stored luma can be used only if it is BT.601; other matrices weight red and blue differently.
        has_levels = self._gray and not mapped and not has_alpha and not frame.format.is_rgb
        has_levels = has_levels and frame.colorspace in _BT601_SPACES and space is None
        is_coded = self._coded and not mapped and not has_alpha and not frame.format.is_rgb
        target = "rgb48le" if mapped else "rgba" if has_alpha else "gray" if has_levels else "rgb24"
        if is_coded:
            # With the same matrix on both sides, no conversion takes place.
            target, space = "yuv444p", int(Colorspace.ITU601)
        scaled = self._scaler.reformat(
            frame,
            width=width,
            height=height,
            format=target,
            src_colorspace=space,
            dst_colorspace=space if is_coded else None,
            dst_color_range=ColorRange.JPEG,
            interpolation=_DEEP_FLAGS if mapped else _FLAGS,
            threads=1,
        )
        image = scaled.to_ndarray()
        if is_coded:
            planes: NDArray[np.uint8] = np.moveaxis(image, 0, -1)  # type: ignore[arg-type]  # 8 bits per sample
            return planes
        if self._coded:
            return to_coded(self._to_rgb(image, target, frame))
        if self._gray and not has_levels:
            return np.rint(self._to_rgb(image, target, frame) @ np.array(LUMINANCE, np.float32)).astype(np.uint8)
        return image if has_levels else self._to_rgb(image, target, frame)  # type: ignore[return-value]

    @staticmethod
    def _to_rgb(image: NDArray[Any], target: str, frame: VideoFrame) -> NDArray[np.uint8]:
        """Convert the output of the scaler to RGB [H, W, 3]."""
        if target == "rgb48le":
            return to_standard_range(image, frame.color_trc, frame.color_primaries)
        if target == "rgba":
            # Blend with a white background, as a viewer would see it.
            alpha = image[..., 3:].astype(np.uint16)
            if int(alpha.min(initial=255)) == 255:
                return np.ascontiguousarray(image[..., :3])
            color = image[..., :3].astype(np.uint16)
            return ((color * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)
        return image


def to_coded(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert R'G'B' [..., 3] to Y', Cb, Cr from 0 to 255 (ITU-R BT.601)."""
    luma = image @ np.array(LUMINANCE, np.float32)
    blue = (image[..., 2] - luma) / 1.772 + 128
    red = (image[..., 0] - luma) / 1.402 + 128
    planes = np.stack([luma, blue, red], axis=-1)
    return np.asarray(np.clip(np.rint(planes), 0, 255), np.uint8)


# Codes from ITU-T H.273, as decoders report them.
PQ: Final = 16

HLG: Final = 18

BT2020_PRIMARIES: Final = 9

# Diffuse white of HDR video in candelas per square meter (ITU-R BT.2408).
WHITE: Final = 203.0

# Fraction of diffuse white above which highlights are compressed; below it, standard footage is unchanged.
KNEE: Final = 0.75

# Linear BT.2020 to linear BT.709 (ITU-R BT.2087).
TO_709: Final = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], dtype=np.float32
)

# Converts linear light in steps of 1/4095 to 8 bits, with a gamma of 2.2.
_GAMMA: Final = np.rint((np.arange(4096) / 4095) ** (1 / 2.2) * 255).astype(np.uint8)


def needs_mapping(transfer: int, primaries: int) -> bool:
    """Whether video with these codes (ITU-T H.273) looks wrong if its values are displayed unchanged."""
    return transfer in (PQ, HLG) or primaries == BT2020_PRIMARIES


def to_standard_range(image: NDArray[np.uint16], transfer: int, primaries: int) -> NDArray[np.uint8]:
    """Map [H, W, 3] 16-bit R'G'B' of HDR or BT.2020 video to 8-bit BT.709.

    Light is linearized (SMPTE ST 2084, or ARIB STD-B67 at 1,000 cd/m2), converted to BT.709 primaries, and scaled so
    that diffuse white is 1. Light above k = 3/4 is rolled off smoothly toward 1 without changing the hue: f(x) = k + (1
    - k) (1 - exp(-(x - k) / (1 - k))) for x > k. Values are then encoded with a gamma of 2.2.
    """
    light: NDArray[Any] = _linear_table(transfer)[image]
    if transfer == HLG:
        luminance = light @ np.array([0.2627, 0.6780, 0.0593], dtype=np.float32)
        light = light * (np.maximum(luminance, 1e-6)[..., None] ** np.float32(0.2)) * np.float32(1000.0 / WHITE)
    if primaries == BT2020_PRIMARIES:
        light = np.maximum(light @ TO_709.T, 0)
    if transfer in (PQ, HLG):
        brightest = light.max(axis=-1, keepdims=True)
        over = np.maximum(brightest - KNEE, 0) / (1 - KNEE)
        rolled = KNEE + (1 - KNEE) * (1 - np.exp(-over))
        light = np.where(brightest > KNEE, light * (rolled / np.maximum(brightest, 1e-6)), light)
    codes = np.rint(np.clip(light, 0, 1) * 4095).astype(np.uint16)
    return np.asarray(_GAMMA[codes])


@cache
def _linear_table(transfer: int) -> NDArray[np.float32]:
    """Return the light for each of the 65,536 codes; diffuse white is 1 (for HLG: scene light with a peak of 1)."""
    value = np.arange(65536) / 65535
    if transfer == PQ:
        power = value ** (1 / 78.84375)
        light = (np.maximum(power - 0.8359375, 0) / (18.8515625 - 18.6875 * power)) ** (1 / 0.1593017578125)
        light = light * 10000.0 / WHITE
    elif transfer == HLG:
        low = value**2 / 3
        high = (np.exp((value - 0.55991073) / 0.17883277) + 0.28466892) / 12
        light = np.where(value <= 0.5, low, high)
    else:
        light = value**2.2
    return light.astype(np.float32)


logger = logging.getLogger(__name__)

# Counterclockwise quarter turns, and whether the frame is mirrored (left to right) before turning.
Orientation = tuple[int, bool]

_EXIF_TAG = 0x0112

# Orientations for the values of the EXIF tag, which start at 1.
_EXIF_ORIENTATIONS: tuple[Orientation, ...] = (
    (0, False), (0, True), (2, False), (2, True), (1, True), (3, False), (3, True), (1, False)
)  # fmt: skip

# Image codecs whose decoders attach color profiles. PyAV's side data objects free the dictionary of a color profile
# twice when they are collected, which crashes the process, so the side data of these codecs is never read.
_IMAGE_CODECS = frozenset({"mjpeg", "png", "apng", "tiff", "webp", "gif", "bmp", "jpegxl", "jpeg2000", "ppm"})


@check_constructor
class Orienter:
    """Determines the orientation of the frames of one video.

    Args:
        name: Name of the file.
        codec: Codec name of the video.
    """

    def __init__(self, name: str, codec: str) -> None:
        self._name = name
        self._is_image = codec in _IMAGE_CODECS
        # Orientations by reported angle. PyAV's side data keeps its frame alive until the next garbage collection, so
        # it is read for only one frame per angle.
        self._known: dict[int, Orientation] = {}

    def __call__(self, frame: VideoFrame) -> Orientation:
        """Return the orientation from the display matrix, or for photographs from EXIF, to the nearest 90 degrees."""
        angle = frame.rotation
        if angle not in self._known:
            upright: Orientation = (round(angle / 90) % 4, False)
            if not self._is_image:
                self._known[angle] = _from_matrix(frame) or upright
            else:
                self._known[angle] = self._from_exif() or upright
        return self._known[angle]

    def _from_exif(self) -> Orientation | None:
        from PIL import Image as PILImage

        try:
            with warnings.catch_warnings(action="ignore"), PILImage.open(self._name) as image:
                tag = image.getexif().get(_EXIF_TAG)
        # A video with an image codec, a format unknown to Pillow, or a damaged or malicious header, on which Pillow's
        # parsers can raise anything; only the orientation of the image is lost.
        except Exception as error:  # noqa: BLE001
            logger.debug("%s: the orientation cannot be read: %s", self._name, error)
            return None
        return _EXIF_ORIENTATIONS[tag - 1] if isinstance(tag, int) and 1 <= tag <= 8 else None


def is_too_large(name: str, limit: int) -> bool:
    """Whether a file is an image with more pixels than the limit; FFmpeg does not report the size of images that it
    cannot decode."""
    from PIL import Image as PILImage

    try:
        with warnings.catch_warnings(action="ignore"), PILImage.open(name) as image:
            return image.width * image.height > limit
    except PILImage.DecompressionBombError:
        return True
    except Exception as error:  # noqa: BLE001 - on damaged headers, Pillow's parsers can raise anything
        logger.debug("%s: the size cannot be read: %s", name, error)
        return False


def _from_matrix(frame: VideoFrame) -> Orientation | None:
    try:
        side_data: list[Any] = list(iter(frame.side_data))
        matrix = next((data for data in side_data if data.type.name == "DISPLAYMATRIX"), None)
    except ValueError:  # from PyAV, for an unknown type of side data
        return None
    if matrix is None:
        return None
    # (x, y) is displayed at (a x + c y, b x + d y), with y pointing down.
    a, b, _, c, d = struct.unpack("=9i", bytes(matrix))[:5]
    mirrored = a * d - b * c < 0
    if mirrored:
        a, b = -a, -b
    if abs(a) >= abs(b):
        return (0 if a >= 0 else 2), mirrored
    return (3 if b > 0 else 1), mirrored
