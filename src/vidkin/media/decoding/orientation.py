"""How stored pictures must be turned to be upright."""

from __future__ import annotations

import logging
import struct
import warnings
from typing import TYPE_CHECKING, Any

from PIL import Image as PILImage

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

logger = logging.getLogger(__name__)

# Turns counter-clockwise by 90 degrees, and whether the picture is mirrored (left to right) before that.
Orientation = tuple[int, bool]

# The same for the values of the EXIF tag, starting at 1.
_EXIF_TAG = 0x0112
_EXIF_ORIENTATIONS: tuple[Orientation, ...] = (
    (0, False), (0, True), (2, False), (2, True), (1, True), (3, False), (3, True), (1, False)
)  # fmt: skip

# Codecs of single pictures. PyAV's objects for the side data of a frame free the dictionary of a color profile
# a second time when they are collected, which crashes the process, and these are the decoders that make such profiles.
_PICTURE_CODECS = frozenset(
    {"mjpeg", "png", "apng", "tiff", "webp", "gif", "bmp", "jpegxl", "jpeg2000", "ppm"}
)


class Orienter:
    """The orientation of the frames of one video.

    Args:
        name: Name of the file.
        codec: Name of the video's codec.
    """

    def __init__(self, name: str, codec: str) -> None:
        self._name = name
        self._is_picture = codec in _PICTURE_CODECS
        # By the angle that a frame states. PyAV's side data keep their frame until the next garbage collection: look
        # at one frame for each angle, not at all of them.
        self._known: dict[int, Orientation] = {}

    def __call__(self, frame: VideoFrame) -> Orientation:
        """The orientation from the display matrix, or from the EXIF tag of a photograph, to the nearest 90 degrees."""
        angle = frame.rotation
        if angle not in self._known:
            upright: Orientation = (round(angle / 90) % 4, False)
            if not self._is_picture:
                self._known[angle] = _from_matrix(frame) or upright
            else:
                self._known[angle] = self._from_exif() or upright
        return self._known[angle]

    def _from_exif(self) -> Orientation | None:
        try:
            with warnings.catch_warnings(action="ignore"), PILImage.open(self._name) as image:
                tag = image.getexif().get(_EXIF_TAG)
        # A video of pictures, a format Pillow does not know, or a damaged or malicious header, for which its parsers
        # can raise anything; only the orientation of the picture is lost.
        except Exception as error:  # noqa: BLE001
            logger.debug("%s: no orientation can be read: %s", self._name, error)
            return None
        return _EXIF_ORIENTATIONS[tag - 1] if isinstance(tag, int) and 1 <= tag <= 8 else None


def is_too_large(name: str, most: int) -> bool:
    """Whether this is a picture with more pixels than the limit; FFmpeg does not keep the size of one it cannot
    decode."""
    try:
        with warnings.catch_warnings(action="ignore"), PILImage.open(name) as image:
            return image.width * image.height > most
    except PILImage.DecompressionBombError:
        return True
    except Exception as error:  # noqa: BLE001 - damaged headers make its parsers raise anything
        logger.debug("%s: no size can be read: %s", name, error)
        return False


def _from_matrix(frame: VideoFrame) -> Orientation | None:
    try:
        side_data: list[Any] = list(iter(frame.side_data))
        matrix = next((data for data in side_data if data.type.name == "DISPLAYMATRIX"), None)
    except ValueError:  # from PyAV: a kind of data that it does not know
        return None
    if matrix is None:
        return None
    # (x, y) is shown at (a x + c y, b x + d y), y downwards.
    a, b, _, c, d = struct.unpack("=9i", bytes(matrix))[:5]
    mirrored = a * d - b * c < 0
    if mirrored:
        a, b = -a, -b
    if abs(a) >= abs(b):
        return (0 if a >= 0 else 2), mirrored
    return (3 if b > 0 else 1), mirrored
