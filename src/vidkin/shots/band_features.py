"""The band of a video's self-similarity: how far every frame is from those shortly before it, in four respects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin.media import FramePlanes

__all__ = ["BAND_CHANNELS", "BAND_LAGS", "BandFeatures", "band_features"]

BAND_LAGS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Distances in frames at which frames are compared."""

_VIEWS = ("structure", "colour", "histogram", "layout")
_BRIGHTNESS = 4
BAND_CHANNELS = len(_VIEWS) * len(BAND_LAGS) + 2 * _BRIGHTNESS

# Bins: 16 of luma in each quarter of the picture, 16 x 16 of chroma in all of it.
_BIN_SHIFT, _BINS = 4, 16
_DARK = 40
# Contrast below this is noise (of 255).
_LEAST_CONTRAST = 4.0
_CHANGE_GAIN = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class _Views:
    """What frames are compared by. Rows are frames; distances between rows are Euclidean.

    Attributes:
        views: Of each of `_VIEWS` [T, D]: luma without its mean and contrast; small luma and chroma; square roots of
            histograms; very small luma.
        brightness: [T, 4] mean, contrast, maximum, dark share of luma.
    """

    views: tuple[torch.Tensor, ...]
    brightness: torch.Tensor

    def last(self, count: int) -> _Views:
        return _Views(tuple(view[-count:] for view in self.views), self.brightness[-count:])

    def followed_by(self, other: _Views) -> _Views:
        pairs = zip(self.views, other.views, strict=True)
        return _Views(
            tuple(torch.cat(pair) for pair in pairs), torch.cat([self.brightness, other.brightness])
        )


class BandFeatures:
    """Makes band features block by block: memory holds the last 32 frames and 48 numbers a frame.

    The result for a frame does not depend on how the frames were cut into blocks.
    """

    def __init__(self) -> None:
        self._held: _Views | None = None
        self._rows: list[torch.Tensor] = []

    def push(self, planes: FramePlanes) -> None:
        """Take the next frames."""
        if not len(planes):
            return
        fresh = _views(planes)
        before = 0 if self._held is None else len(self._held.brightness)
        views = fresh if self._held is None else self._held.followed_by(fresh)
        self._rows.append(_compared(views)[before:])
        self._held = views.last(BAND_LAGS[-1])

    def finish(self) -> torch.Tensor:
        """[T, BAND_CHANNELS] of all frames."""
        return torch.cat(self._rows) if self._rows else torch.zeros(0, BAND_CHANNELS)


def band_features(planes: FramePlanes) -> torch.Tensor:
    """Band features [T, BAND_CHANNELS] of a whole sequence.

    For each of four views of a frame and each of ten lags k the distance ``||v(t) - v(t - k)||`` (0 where t < k), then
    mean, contrast, maximum and dark share of luma, and eight times their change from the frame before.
    """
    features = BandFeatures()
    features.push(planes)
    return features.finish()


def _views(planes: FramePlanes) -> _Views:
    luma = torch.from_numpy(planes.luma).float()
    chroma = torch.from_numpy(planes.chroma).float() - 128
    flat = luma.flatten(1)
    contrast, mean = torch.std_mean(flat, dim=1, correction=0)
    structure = (flat - mean[:, None]) / ((contrast[:, None] + _LEAST_CONTRAST) * flat.shape[1] ** 0.5)
    small = functional.avg_pool2d(luma[:, None], 2)[:, 0]
    colours = functional.avg_pool2d(chroma, 2).flatten(1)
    layout = functional.adaptive_avg_pool2d(small[:, None], (2, 4)).flatten(1)
    pieces = [values / (255 * values.shape[1] ** 0.5) for values in (small.flatten(1), colours, layout)]
    brightness = [mean / 255, contrast / 128, flat.amax(1) / 255, (flat < _DARK).float().mean(1)]
    return _Views(
        (structure, torch.cat(pieces[:2], 1), _histograms(planes), pieces[2]), torch.stack(brightness, 1)
    )


def _histograms(planes: FramePlanes) -> torch.Tensor:
    """[T, 320] square roots of shares: distances are those of Hellinger."""
    length, rows, columns = planes.luma.shape
    frames = np.arange(length, dtype=np.int32)[:, None, None]
    quarters = 2 * (np.arange(rows) >= rows // 2)[:, None] + (np.arange(columns) >= columns // 2)
    places = (planes.luma >> _BIN_SHIFT) + (_BINS * quarters).astype(np.int32) + 4 * _BINS * frames
    blue, red = (planes.chroma[:, part] >> _BIN_SHIFT for part in range(2))
    pairs = blue * np.int32(_BINS) + red + _BINS * _BINS * frames
    shares = [_counted(places, 4 * _BINS, length), _counted(pairs, _BINS * _BINS, length)]
    return torch.from_numpy(np.sqrt(np.concatenate(shares, 1) / 2))


def _counted(places: NDArray[np.int32], bins: int, length: int) -> NDArray[np.float32]:
    """[T, bins] shares from numbers of bins that count on from frame to frame."""
    counts = np.bincount(places.ravel(), minlength=bins * length).reshape(length, bins)
    return counts.astype(np.float32) / np.float32(places[0].size)


def _compared(views: _Views) -> torch.Tensor:
    """[T, BAND_CHANNELS]; the first rows compare with what came before the sequence as far as it is there."""
    length = len(views.brightness)
    columns = []
    for view in views.views:
        squares = (view * view).sum(1)
        for lag in BAND_LAGS:
            distance = torch.zeros(length)
            if lag < length:
                products = (view[lag:] * view[:-lag]).sum(1)
                distance[lag:] = (squares[lag:] + squares[:-lag] - 2 * products).clamp(min=0).sqrt()
            columns.append(distance)
    change = torch.zeros_like(views.brightness)
    change[1:] = views.brightness[1:] - views.brightness[:-1]
    return torch.cat([torch.stack(columns, 1), views.brightness, _CHANGE_GAIN * change], 1)
