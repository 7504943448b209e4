"""Find where one image lies in another by correlation at many sizes.

Shapes: H, W pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.similarity import WHOLE, Box

# The same at any size: height of the picture in which the other one is searched for, how much smaller each attempt is,
# and the smallest.
_FIELD, _SMALLER, _SMALLEST = 64, 0.95, 0.28
# Variances (of template and picture, multiplied) up to which one of the two is flat but for rounding.
_FLAT = 1e-12


def template_correlation(picture: NDArray[np.floating], template: NDArray[np.floating]) -> NDArray[np.float64]:
    """Correlation in [-1, 1] of a template with the picture under it, for every place where it fits.

    Args:
        picture: [H, W].
        template: [h, w], no larger than the picture.

    Returns:
        [H - h + 1, W - w + 1] by the place of the template's upper left corner; 0 where the picture or the template is
        flat.

    Source: Lewis, Fast Normalized Cross-Correlation (1995).
    """
    height, width = template.shape
    rows, columns = picture.shape[0] - height + 1, picture.shape[1] - width + 1
    # What both have in common cancels; without it rounding stays small.
    whole, part = (values - values.mean(dtype=np.float64) for values in (picture, template))
    spectrum = np.fft.rfft2(whole) * np.fft.rfft2(part, s=whole.shape).conj()
    # Where the template fits, the transform, which takes the picture for periodic, meets no edge.
    products = np.fft.irfft2(spectrum, s=whole.shape)[:rows, :columns]
    sums, squares = (_window_sums(values, height, width) for values in (whole, whole**2))
    variations = (squares - sums**2 / part.size) * np.square(part).sum()
    is_flat = variations <= _FLAT * part.size**2
    correlation: NDArray[np.float64] = np.where(is_flat, 0.0, products / np.sqrt(np.where(is_flat, 1.0, variations)))
    return correlation


def find_part(outer: NDArray[np.float32], inner: NDArray[np.float32]) -> tuple[float, Box]:
    """The box of a picture [H, W] in which another one is shown, at any size, and the correlation there."""
    field = _shrunk(outer, _FIELD)
    height, width = field.shape
    largest = min(height / inner.shape[0], width / inner.shape[1])
    best, size = -1.0, largest
    box: Box = WHOLE
    while size >= _SMALLEST * largest:
        rows, columns = max(8, round(inner.shape[0] * size)), max(8, round(inner.shape[1] * size))
        rows, columns = min(rows, height), min(columns, width)
        similar = template_correlation(field, _resized(inner, rows, columns))
        top, left = np.unravel_index(int(np.argmax(similar)), similar.shape)
        if similar[top, left] > best:
            best = float(similar[top, left])
            box = (
                float(left / width), float(top / height),
                float((left + columns) / width), float((top + rows) / height),
            )  # fmt: skip
        size *= _SMALLER
    return best, box


def _shrunk(picture: NDArray[np.float32], height: int) -> NDArray[np.float32]:
    rows, columns = picture.shape
    # No side is shorter than this: an upright picture keeps as many lines as a lying one.
    factor = height / min(rows, columns)
    return _resized(picture, max(8, round(rows * factor)), max(8, round(columns * factor)))


def _resized(picture: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR), np.float32)


def _window_sums(values: NDArray[np.float64], height: int, width: int) -> NDArray[np.float64]:
    """Sums over all windows of this size."""
    totals = np.pad(values.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    sums: NDArray[np.float64] = (
        totals[height:, width:] - totals[:-height, width:] - totals[height:, :-width] + totals[:-height, :-width]
    )
    return sums
