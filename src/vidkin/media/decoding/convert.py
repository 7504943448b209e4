"""Convert a decoded picture of any form to an upright 8-bit RGB array with square pixels."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av
import av.filter
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter
from numpy.typing import NDArray

from vidkin.media.decoding.hdr import needs_mapping, to_standard_range
from vidkin.media.decoding.orientation import Orienter

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

_UNSPECIFIED = 2
# No film is that wide. A strip of 60,000 x 100 pixels would keep its size if only its short side were limited.
_MOST_ELONGATED = 8
# Without the latter, scaled pictures are darker by up to two levels.
_FLAGS = Interpolation.BILINEAR | Interpolation.FULL_CHR_H_INT
# With it, pictures of 16 bits that are not scaled lose their green.
_DEEP_FLAGS = Interpolation.BILINEAR


def clean_aspect(ratio: Fraction | None) -> Fraction:
    """The ratio of a pixel's sides, 1 if it is missing or implausible."""
    if ratio is None or not Fraction(1, 10) <= ratio <= 10:
        return Fraction(1)
    return ratio


def display_size(width: int, height: int, aspect: Fraction, turns: int = 0) -> tuple[int, int]:
    """Width and height in square pixels, upright: the width is stretched by the pixel's aspect, then turned."""
    width = max(1, round(width * aspect))
    return (height, width) if turns % 2 else (width, height)


def fit(width: int, height: int, short_side: int | None) -> tuple[int, int]:
    """The size with this short side and a long side of at most eight times that, never larger than the original."""
    shorter, longer = sorted((width, height))
    if short_side is None:
        return width, height
    if longer > _MOST_ELONGATED * shorter:
        side, target = longer, _MOST_ELONGATED * short_side
    else:
        side, target = shorter, short_side
    if side <= target:
        return width, height
    return max(1, round(width * target / side)), max(1, round(height * target / side))


def is_high_definition(width: int, height: int) -> bool:
    """Whether video of this size has the colors of BT.709 unless it says otherwise."""
    return width >= 1280 or height > 576


class Converter:
    """Converts the pictures of one video, all to the size of the first.

    Args:
        orient: Function that returns how pictures must be turned.
        aspect: Ratio of width to height of a pixel.
        short_side: Scale down so that the shorter side has this many pixels; None keeps the size.
    """

    def __init__(self, orient: Orienter, aspect: Fraction, short_side: int | None = None) -> None:
        self._orient = orient
        self._aspect = aspect
        self._short_side = short_side
        self._size: tuple[int, int] | None = None
        self._scaler = VideoReformatter()
        self._field: tuple[tuple[Any, ...], Any] | None = None

    def __call__(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """The picture as [H, W, 3] uint8 RGB.

        An interlaced picture is reduced to its upper field, doubled, which avoids combing and keeps frames
            independent.
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
        target = "rgb48le" if mapped else "rgba" if has_alpha else "rgb24"
        scaled = self._scaler.reformat(
            frame,
            width=width,
            height=height,
            format=target,
            src_colorspace=space,
            dst_color_range=ColorRange.JPEG,
            interpolation=_DEEP_FLAGS if mapped else _FLAGS,
            threads=1,
        )
        image = scaled.to_ndarray()
        if mapped:
            return to_standard_range(image, frame.color_trc, frame.color_primaries)  # type: ignore[arg-type]
        if target == "rgba":
            # On a white background.
            alpha = image[..., 3:].astype(np.uint16)
            if int(alpha.min(initial=255)) == 255:
                return np.ascontiguousarray(image[..., :3])
            color = image[..., :3].astype(np.uint16)
            return ((color * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)
        return image  # type: ignore[return-value]
