"""HSV histograms of frames, as used by the baselines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["HSV_BINS", "HistogramStore", "hsv_histogram"]

HSV_BINS = (18, 12, 8)
"""Number of hue (20 degrees each), saturation and value bins: 1,728 in total."""


def hsv_histogram(image: NDArray[np.uint8], bins: tuple[int, int, int] = HSV_BINS) -> NDArray[np.float64]:
    """Return the fraction of pixels in each bin of hue, saturation and value.

    With M and m the largest and smallest of R, G and B: value = M / 255, saturation = (M - m) / M, and hue is the angle
    on the color wheel; hue and saturation of black and the hue of gray are 0. The last bin of each axis includes its
    upper end.

    Args:
        image: [H, W, 3] uint8 RGB.
        bins: Number of bins for hue, saturation and value.

    Returns:
        [bins[0] * bins[1] * bins[2]] float64 with sum 1, value varying fastest.
    """
    hues, saturations, values = bins
    pixels = image.reshape(-1, 3).astype(np.float32)
    red, green, blue = pixels[:, 0], pixels[:, 1], pixels[:, 2]
    largest = np.maximum(np.maximum(red, green), blue)
    spread = largest - np.minimum(np.minimum(red, green), blue)
    # The divisor is zero only for black and gray, whose numerator is zero as well.
    safe = np.maximum(spread, 1.0)
    hue = np.where(
        largest == red,
        (green - blue) / safe % 6.0,
        np.where(largest == green, (blue - red) / safe + 2.0, (red - green) / safe + 4.0),
    )
    bin_index = np.minimum((hue * (hues / 6.0)).astype(np.int64), hues - 1)
    bin_index *= saturations
    bin_index += np.minimum((spread / np.maximum(largest, 1.0) * saturations).astype(np.int64), saturations - 1)
    bin_index *= values
    bin_index += np.minimum((largest * (values / 255.0)).astype(np.int64), values - 1)
    return np.bincount(bin_index, minlength=hues * saturations * values) / len(pixels)


class HistogramStore:
    """Sparse HSV histograms of a video's frames, about 2 kB each because most bins are empty."""

    def __init__(self) -> None:
        self._sparse: list[tuple[NDArray[np.uint16], NDArray[np.float32]]] = []

    def __len__(self) -> int:
        return len(self._sparse)

    def append(self, image: NDArray[np.uint8]) -> None:
        """Add the histogram of the next frame, [H, W, 3] uint8 RGB."""
        histogram = hsv_histogram(image)
        bins = np.flatnonzero(histogram)
        self._sparse.append((bins.astype(np.uint16), histogram[bins].astype(np.float32)))

    def rows(self, first: int, last: int) -> NDArray[np.float64]:
        """Return the histograms [last - first + 1, 1728] of frames ``first`` to ``last``, inclusive."""
        histograms = np.zeros((last + 1 - first, int(np.prod(HSV_BINS))))
        for row, (bins, values) in enumerate(self._sparse[first : last + 1]):
            histograms[row, bins] = values
        return histograms
