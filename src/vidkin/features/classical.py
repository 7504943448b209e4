"""The classical extractor, which works on any machine: no weights and no network."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name, research_hint
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.contracts import FrameExtractor
from vidkin.features.information import bar_boxes
from vidkin.features.networks import unit_vectors
from vidkin.features.sessions import check_device
from vidkin.features.views import features_of_views
from vidkin.features.whitening import Whitening
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Part of the fingerprint; increment it whenever the same frame would get different descriptors.
_REVISION = 1


@check_constructor
class ClassicalExtractor:
    """Whitened color, gradient and texture descriptors of 3 x 3 overlapping regions and the whole frame: [T, 10, 128].

    Black bars are removed first and the frame is then resized to a square, so that letterboxing and squeezing have
    little effect. The whitening suppresses typical edits of copies (compression, size, crop, logos, captions,
    brightness, gray). The bundled whitening was fitted to photographs and edited copies of them;
    :meth:`vidkin.features.Whitening.fit_pairs` fits one to your own.

    Args:
        whitening: A file written by :meth:`vidkin.features.Whitening.save`; default: the bundled one.

    Raises:
        InvalidArgumentError: The whitening was made for other descriptors.
    """

    short_side = 240
    scorer = "copies"
    name = "classical"
    describes_boxes = True

    def __init__(self, whitening: PathLike | None = None) -> None:
        self._whitening = shipped_whitening() if whitening is None else Whitening.load(whitening)
        self._whitening.check_length(raw_dimension(), "the classical extractor")

    @property
    def fingerprint(self) -> str:
        """``classical-<revision>-<digest of the whitening>``."""
        return f"classical-{_REVISION}-{self._whitening.digest()[:12]}"

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Describe frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        return features_of_views(
            lambda images: self._whitening.apply(self.describe(images)), frames, self.fingerprint, boxes=boxes
        )

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Compute descriptors before whitening, [T, 10, 201], to fit a whitening to."""
        squares = (
            _resize(image[top:bottom, left:right])
            for image, (top, bottom, left, right) in zip(images, bar_boxes(images).tolist(), strict=True)
        )
        return _describe_squares(squares, len(images))


def open_classical(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> FrameExtractor:
    """Open ``classical``, which runs on the CPU.

    Raises:
        UnknownExtractorError: The name is not ``classical``.
        InvalidArgumentError: Weights were passed, a setting is unknown, the whitening was made for other descriptors,
            or the device is invalid.
    """
    parsed = parse_name(name)
    if parsed.path != "classical":
        hint = research_hint("classical features")
        raise UnknownExtractorError(
            f"{name!r} is not an extractor; choose 'classical' or 'classical:<feature>'" + (f"; {hint}" if hint else "")
        )
    parsed.typed_settings({})
    check_device(device)
    if weights is not None:
        raise InvalidArgumentError(
            f"the classical extractor has no weights, got {os.fspath(weights)!r}; leave weights out, or name a network "
            "such as timm:resnet50.tv_in1k"
        )
    return ClassicalExtractor(whitening)


@cache
def shipped_whitening() -> Whitening:
    """Load the bundled whitening, which `vidkin whiten` fitted to 1,000 photographs and frames that are in no
    benchmark."""
    with as_file(files("vidkin.features") / "data" / "classical.safetensors") as path:
        return Whitening.load(path)


# Color, gradients and texture of the regions of a frame, before whitening.
#
# The feature types are those of classical retrieval (Wang et al., "Learning fine-grained image similarity with deep
# ranking", supplement, section 4): LAB color, HOG-like oriented gradients and, for texture, band energies.
# Low-frequency cosine coefficients of the luminance, the basis of perceptual hashes, are added.
#
# Pixels are processed one frame at a time, so that planes stay in the processor's cache and results cannot depend on
# the batch. Block means are matrix products, which are several times faster than means over axes.


SIDE = 192  # pixels; a square, because copies may change the aspect ratio

CELLS = 12  # cells per side

CELL = SIDE // CELLS

BINS = 3  # bins of pooled cells per side of a region

ORIENTATIONS = 8

COSINES = 7  # per side

# (top, left, length) in cells: 3 x 3 regions of half the frame's side, overlapping by half, then the whole frame.
REGIONS: tuple[tuple[int, int, int], ...] = (
    *((row * CELLS // 4, column * CELLS // 4, CELLS // 2) for row in range(3) for column in range(3)),
    (0, 0, CELLS),
)

_OCTAVES = 3

# Columns of the values per cell: orientation votes, means and deviations of L, a and b, detail per octave.
_VOTES = slice(0, ORIENTATIONS)
_MEANS = slice(ORIENTATIONS, ORIENTATIONS + 3)
_DEVIATIONS = slice(ORIENTATIONS + 3, ORIENTATIONS + 6)
_DETAIL = slice(ORIENTATIONS + 6, ORIENTATIONS + 6 + _OCTAVES)


def raw_dimension() -> int:
    """Return the length D of a descriptor: gradients 72, cosines 48, brightness 9, color 18, contrast 27, texture
    27."""
    return BINS * BINS * (ORIENTATIONS + 1 + 2 + 3 + 3) + COSINES * COSINES - 1


def describe_regions(images: NDArray[np.floating] | NDArray[np.uint8]) -> NDArray[np.float32]:
    """Compute descriptors [T, R, D] (R = 10, D = 201, float32) of square frames.

    Args:
        images: [T, 3, 192, 192], RGB values in [0, 255], which are rounded.

    Each region is divided into 3 x 3 bins of cells. A descriptor contains, per bin: 8 orientations of the luminance
    gradient (L2-normalized over the region, clipped at 0.3, square root), the brightness relative to the region's mean,
    the means of a and b in LAB, the log standard deviations of L, a and b, and the log energies of three frequency
    bands; and per region: 48 cosine coefficients of a version reduced to 24 x 24. Flat regions stay near zero instead
    of being scaled up to unit length.
    """
    if images.ndim != 4 or tuple(images.shape[1:]) != (3, SIDE, SIDE):
        raise InvalidArgumentError(f"images must be [T, 3, {SIDE}, {SIDE}], got {list(images.shape)}")
    return _describe_squares(images, len(images))


def lab_from_rgb(images: NDArray[np.floating] | NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert sRGB [..., 3, H, W] in [0, 255] to CIE LAB (D65): L in [0, 100], a and b in about [-128, 127]."""
    # A channel has only 256 possible values, so a lookup table replaces a power per pixel.
    levels = np.rint(images).clip(0, 255).astype(np.uint8)
    linear = _linear_levels().take(levels).reshape(*images.shape[:-2], -1)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], np.float32)
    white = np.array([[0.9505], [1.0], [1.089]], np.float32)
    xyz = (matrix / white) @ linear
    root = np.cbrt(xyz)
    np.copyto(root, 7.787 * xyz + np.float32(16 / 116), where=xyz <= np.float32(0.008856))
    lab = np.empty_like(root)
    lab[..., 0, :] = 116 * root[..., 1, :] - 16
    lab[..., 1, :] = 500 * (root[..., 0, :] - root[..., 1, :])
    lab[..., 2, :] = 200 * (root[..., 1, :] - root[..., 2, :])
    return lab.reshape(images.shape)


def _describe_squares(squares: Iterable[NDArray[np.floating] | NDArray[np.uint8]], count: int) -> NDArray[np.float32]:
    """Compute descriptors [T, R, D] of T = ``count`` squares [3, 192, 192]."""
    cells = np.empty((count, _DETAIL.stop, CELLS, CELLS), np.float32)
    cosines = np.empty((count, len(REGIONS), COSINES * COSINES), np.float32)
    for index, square in enumerate(squares):
        cells[index], cosines[index] = _measure(lab_from_rgb(square))
    # [T, R, 17, 9]: the values of the cells, pooled into the nine bins of each region.
    bins = cells.reshape(count, _DETAIL.stop, CELLS * CELLS) @ _bin_weights()
    bins = bins.reshape(count, _DETAIL.stop, len(REGIONS), BINS * BINS).swapaxes(1, 2)
    parts = (
        _gradients(_flatten_bins(bins[:, :, _VOTES])),
        _normalize(cosines[:, :, 1:], 30),
        *_color(bins[:, :, _MEANS]),
        np.log1p(_flatten_bins(bins[:, :, _DEVIATIONS])) / 3,
        _flatten_bins(bins[:, :, _DETAIL]) / 2,
    )
    return np.concatenate(parts, axis=2)


def _measure(lab: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute the cell values [17, 12, 12] of one frame [3, 192, 192] in LAB, and the cosine coefficients [10, 49] of
    the regions."""
    cells = np.empty((_DETAIL.stop, CELLS, CELLS), np.float32)
    luminance = lab[0]
    cells[_VOTES] = _orientations(luminance)
    # Sum in pixel order: the deviation of a flat cell is only the rounding error of these sums, and stored features
    # contain that error.
    pixels = lab.reshape(3, CELLS, CELL, CELLS, CELL).transpose(2, 4, 0, 1, 3).reshape(CELL * CELL, -1)
    mean = np.add.reduce(pixels) / CELL**2
    variance = np.add.reduce(np.square(pixels)) / CELL**2 - np.square(mean)
    cells[_MEANS] = mean.reshape(3, CELLS, CELLS)
    cells[_DEVIATIONS] = np.sqrt(np.maximum(variance, 0)).reshape(3, CELLS, CELLS)
    image = luminance
    for octave in range(_OCTAVES):
        pool = _pooling(len(image))
        cells[_DETAIL.start + octave] = np.log1p(pool @ np.abs(image - _smooth(image)) @ pool.T)
        half = image[::2] + image[1::2]
        image = (half[:, ::2] + half[:, 1::2]) / 4
    basis = _cosine_basis()
    grid = basis @ luminance @ basis.T
    # The rows and columns of the grid are the three windows of the 3 x 3 regions, followed by the whole frame.
    own = grid[:-COSINES, :-COSINES].reshape(3, COSINES, 3, COSINES).swapaxes(1, 2).reshape(-1, COSINES * COSINES)
    return cells, np.concatenate([own, grid[-COSINES:, -COSINES:].reshape(1, -1)])


def _orientations(luminance: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute the mean gradient magnitude per unsigned orientation, [8, 12, 12], shared between adjacent ones."""
    padded = np.pad(luminance, 1, mode="edge")
    across = padded[1:-1, 2:] - padded[1:-1, :-2]
    down = padded[2:, 1:-1] - padded[:-2, 1:-1]
    magnitude = np.sqrt(across * across + down * down)
    # Eight steps are half a turn. Adding half a turn keeps the angle positive and does not change the orientation.
    angle = np.arctan2(down, across) * np.float32(ORIENTATIONS / math.pi) + ORIENTATIONS
    lower = np.floor(angle)
    upper_votes = magnitude * (angle - lower)
    index = lower.astype(np.intp)
    cell = _cell_numbers()
    # Equivalent to the remainder of a division by eight, but several times faster.
    last = ORIENTATIONS - 1
    places = np.concatenate([cell + (index & last), cell + (index + 1 & last)])
    votes = np.concatenate([magnitude - upper_votes, upper_votes])
    sums = np.bincount(places.ravel(), votes.ravel(), CELLS * CELLS * ORIENTATIONS)
    return sums.reshape(CELLS, CELLS, ORIENTATIONS).transpose(2, 0, 1) / (CELL * CELL)


def _smooth(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute means over 3 x 3 pixels of an image [S, S]; fewer pixels at the borders."""
    padded = np.pad(image, 1)
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    sums = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    share = np.full(len(image), np.float32(1 / 3))
    share[[0, -1]] = 0.5
    smooth: NDArray[np.float32] = sums * (share[:, None] * share)
    return smooth


def _gradients(votes: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = np.linalg.norm(votes, axis=-1, keepdims=True)
    rooted = unit_vectors(np.sqrt(np.minimum(votes / (norm + np.float32(0.5)), np.float32(0.3))))
    scaled: NDArray[np.float32] = rooted * norm / (norm + 2)
    return scaled


def _color(means: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute brightness relative to the region [T, R, 9], and color [T, R, 18], from means of L, a, b [T, R, 3, 9]."""
    brightness = means[:, :, 0] - means[:, :, 0].mean(axis=-1, keepdims=True)
    color: NDArray[np.float32] = _flatten_bins(means[:, :, 1:]) / np.float32(60)
    return _normalize(brightness, 6), color


def _flatten_bins(bins: NDArray[np.float32]) -> NDArray[np.float32]:
    """Reshape [T, R, C, 9] to [T, R, 9 C]."""
    return bins.reshape(*bins.shape[:2], bins.shape[2] * bins.shape[3])


def _normalize(values: NDArray[np.float32], least: float) -> NDArray[np.float32]:
    """Divide vectors by their length plus ``least``, so that weak vectors stay short."""
    scaled: NDArray[np.float32] = values / (np.linalg.norm(values, axis=-1, keepdims=True) + np.float32(least))
    return scaled


def _resize(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Resize an image [H, W, 3] to a square [3, 192, 192]: bilinear with antialiasing, as in Pillow and torch, but
    without intermediate rounding, which would change one pixel in ten."""
    height, width = picture.shape[:2]
    short = _resize_rows(picture.reshape(height, -1).astype(np.float32)).reshape(SIDE, width, 3)
    square = _resize_rows(np.ascontiguousarray(short.transpose(1, 2, 0)).reshape(width, -1))
    return square.reshape(SIDE, 3, SIDE).transpose(1, 2, 0)


def _resize_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute 192 weighted means of neighboring rows of [N, M]."""
    positions, weights = _taps(len(rows))
    total: NDArray[np.float32] = rows[positions[0]]
    total *= weights[0]
    part = np.empty_like(total)
    for position, weight in zip(positions[1:], weights[1:], strict=True):
        np.take(rows, position, axis=0, out=part, mode="clip")
        part *= weight
        total += part
    return total


@lru_cache(maxsize=16)
def _taps(length: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the rows out of ``length`` that contribute to each of 192 rows, [K, 192], and their weights [K, 192, 1]
    (triangle filter)."""
    scale = length / SIDE
    support = max(scale, 1.0)
    centers = (np.arange(SIDE) + 0.5) * scale
    first = np.maximum(centers - support + 0.5, 0).astype(np.intp)
    end = np.minimum((centers + support + 0.5).astype(np.intp), length)
    positions = first + np.arange((end - first).max())[:, None]
    weights = np.where(positions < end, 1 - np.abs(positions + 0.5 - centers) / support, 0).clip(0)
    weights /= weights.sum(axis=0)
    return np.minimum(positions, length - 1), weights.astype(np.float32)[:, :, None]


@cache
def _linear_levels() -> NDArray[np.float32]:
    """Return the linear intensities of the 256 sRGB levels."""
    levels = np.arange(256) / 255
    linear = np.where(levels > 0.04045, ((levels + 0.055) / 1.055) ** 2.4, levels / 12.92)
    return linear.astype(np.float32)


@cache
def _pooling(side: int) -> NDArray[np.float32]:
    """Return the matrix [12, side] that averages the rows of each cell."""
    length = side // CELLS
    means: NDArray[np.float32] = np.repeat(np.eye(CELLS, dtype=np.float32), length, axis=1) / np.float32(length)
    return means


@cache
def _cell_numbers() -> NDArray[np.intp]:
    """Return the index [192, 192] where the votes of each pixel's cell start."""
    cell = np.arange(SIDE) // CELL
    return (cell[:, None] * CELLS + cell) * ORIENTATIONS


@cache
def _bin_weights() -> NDArray[np.float32]:
    """Return the matrix [144, 90] that averages the cells in the nine bins of each region."""
    weights = np.zeros((len(REGIONS), BINS, BINS, CELLS, CELLS), np.float32)
    for region, (top, left, length) in enumerate(REGIONS):
        step = length // BINS
        for row, column in np.ndindex(BINS, BINS):
            first, before = top + row * step, left + column * step
            weights[region, row, column, first : first + step, before : before + step] = 1 / step**2
    return np.ascontiguousarray(weights.reshape(-1, CELLS * CELLS).T)


@cache
def _cosine_basis() -> NDArray[np.float32]:
    """Return the matrix [28, 192] of the seven lowest cosines over each of the three half-side windows, then over the
    whole side, each sampled at 24 steps."""
    steps = 24
    cosines = np.cos(math.pi * np.arange(COSINES)[:, None] * (np.arange(steps) + 0.5) / steps) * math.sqrt(2 / steps)
    cosines[0] *= math.sqrt(0.5)
    basis = np.zeros((4 * COSINES, SIDE))
    for window in range(3):
        rows, first = slice(window * COSINES, (window + 1) * COSINES), window * SIDE // 4
        basis[rows, first : first + SIDE // 2] = np.repeat(cosines, SIDE // 2 // steps, axis=1) / (SIDE // 2 // steps)
    basis[3 * COSINES :] = np.repeat(cosines, SIDE // steps, axis=1) / (SIDE // steps)
    return basis.astype(np.float32)
