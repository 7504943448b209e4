"""How far each frame is from those shortly before it, in four views (the band of a video's self-similarity), and the
network that reads transitions from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike, check_regular_file
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import open_session, run_session, weights_digest
from vidkin.media import FramePlanes

BAND_LAGS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)

"""Distances, in frames, at which frames are compared."""

_VIEWS = ("structure", "color", "histogram", "layout")

_BRIGHTNESS = 4

BAND_CHANNELS = len(_VIEWS) * len(BAND_LAGS) + 2 * _BRIGHTNESS

# Bins: 16 of luma in each quarter of the frame, 16 x 16 of chroma in all of it.
_BIN_SHIFT, _BINS = 4, 16

_DARK = 40

# Contrast below this is noise (of 255).
_MIN_CONTRAST = 4.0

_CHANGE_GAIN = 8.0

# Rows and columns of the view of the layout.
_LAYOUT = (2, 4)

# Frames compared at a time.
_BLOCK = 64

Rows = NDArray[np.float32]

"""[T, D], one row per frame."""


class BandFeatures:
    """Computes band features block by block; memory holds 96 frames, and 48 numbers for every frame.

    The features of a frame do not depend on how the frames are divided into blocks.

    Args:
        keep_colors: Whether the small luma and chroma that colors are compared by are wanted as well.
    """

    def __init__(self, *, keep_colors: bool = False) -> None:
        self._views: _Views | None = None
        self._keeps_colors = keep_colors
        self._rows: list[Rows] = []
        self._colors: list[Rows] = []

    def push(self, planes: FramePlanes) -> None:
        """Process the next frames, all of the same size."""
        for start in range(0, len(planes), _BLOCK):
            luma, chroma = planes.luma[start : start + _BLOCK], planes.chroma[start : start + _BLOCK]
            if self._views is None:
                self._views = _Views(luma.shape[1:], chroma.shape[2:])
            rows, colors = self._views.compare(luma, chroma)
            self._rows.append(rows)
            if self._keeps_colors:
                self._colors.append(colors)

    def take(self) -> Rows:
        """Features [T, BAND_CHANNELS] of the frames pushed since the last call, which are then released."""
        rows, self._rows = self._rows, []
        return np.concatenate(rows) if rows else np.zeros((0, BAND_CHANNELS), np.float32)

    def take_colors(self) -> Rows:
        """Half-size luma and chroma [T, D] of the frames pushed since the last call, which are then released."""
        colors, self._colors = self._colors, []
        return np.concatenate(colors) if colors else np.zeros((0, 0), np.float32)


def band_features(planes: FramePlanes) -> Rows:
    """Band features [T, BAND_CHANNELS] of a whole sequence.

    For each of four views of a frame and each of ten lags k the distance ``||v(t) - v(t - k)||`` (0 if t < k), then
    mean, contrast, maximum and dark share of luma, and eight times their change from the frame before.
    """
    features = BandFeatures()
    features.push(planes)
    return features.take()


class _Views:
    """The views of the last frames: rows are frames, distances between rows are Euclidean.

    Buffers are reused from block to block, because allocating them costs more than the work in them.
    """

    def __init__(self, luma: tuple[int, ...], chroma: tuple[int, ...]) -> None:
        capacity = BAND_LAGS[-1] + _BLOCK
        pixels, color_samples = luma[0] * luma[1], chroma[0] * chroma[1]
        small, halves = (luma[0] // 2) * (luma[1] // 2), 2 * (chroma[0] // 2) * (chroma[1] // 2)
        self._held = 0
        # Luma without its mean and contrast; half-size luma and chroma; square roots of histograms; very small luma.
        self._structure = np.empty((capacity, pixels), np.float32)
        self._color = np.empty((capacity, small + halves), np.float32)
        self._histogram = np.empty((capacity, 4 * _BINS + _BINS * _BINS), np.float32)
        self._layout = np.empty((capacity, _LAYOUT[0] * _LAYOUT[1]), np.float32)
        self._brightness = np.empty((capacity, _BRIGHTNESS), np.float32)
        self._small = small
        rows, columns = np.arange(luma[0]) >= luma[0] // 2, np.arange(luma[1]) >= luma[1] // 2
        frames = np.arange(_BLOCK, dtype=np.uint16)[:, None]
        quarters = _BINS * (2 * rows[:, None] + columns).reshape(1, -1).astype(np.uint16)
        self._first_luma = quarters + 4 * _BINS * frames
        self._first_pair = _BINS * _BINS * frames
        self._places = np.empty((_BLOCK, pixels), np.intp)
        self._pairs = np.empty((_BLOCK, color_samples), np.intp)

    def compare(self, luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> tuple[Rows, Rows]:
        """Features [T, BAND_CHANNELS] of the next frames, at most `_BLOCK`, against those before them, and their
        half-size luma and chroma."""
        held, end = self._held, self._held + len(luma)
        self._view(luma, chroma, slice(held, end))
        features = np.zeros((len(luma), BAND_CHANNELS), np.float32)
        column = 0
        for view in (self._structure, self._color, self._histogram, self._layout):
            squares = _products(view[:end], view[:end])
            for lag in BAND_LAGS:
                first = max(lag, held)
                if first < end:
                    products = _products(view[first:end], view[first - lag : end - lag])
                    distance = squares[first:end] + squares[first - lag : end - lag] - 2 * products
                    features[first - held :, column] = np.sqrt(distance.clip(min=0))
                column += 1
        brightness = self._brightness[:end]
        features[:, column : column + _BRIGHTNESS] = brightness[held:]
        first = max(1, held)
        change = brightness[first:] - brightness[first - 1 : -1]
        features[first - held :, column + _BRIGHTNESS :] = _CHANGE_GAIN * change
        colors = self._color[held:end].copy()
        self._held = min(end, BAND_LAGS[-1])
        for rows in (self._structure, self._color, self._histogram, self._layout, self._brightness):
            rows[: self._held] = rows[end - self._held : end]
        return features, colors

    def _view(self, luma: NDArray[np.uint8], chroma: NDArray[np.uint8], rows: slice) -> None:
        """Fill the rows of all views."""
        flat = luma.reshape(len(luma), -1)
        structure = self._structure[rows]
        structure[:] = flat
        mean = structure.mean(1)
        structure -= mean[:, None]
        size = np.float32(structure.shape[1])
        contrast = np.sqrt(_products(structure, structure) / size)
        structure /= ((contrast + np.float32(_MIN_CONTRAST)) * np.sqrt(size))[:, None]
        # Subtract middle gray, which cancels out in distances, so that they lose no digits.
        small = _halve(luma) - np.float32(128)
        small_chroma = (_halve(chroma) - np.float32(128)).reshape(len(luma), -1)
        color = self._color[rows]
        np.divide(small.reshape(len(luma), -1), _norm(self._small), out=color[:, : self._small])
        np.divide(small_chroma, _norm(small_chroma.shape[1]), out=color[:, self._small :])
        self._layout[rows] = _layout_cells(small) / _norm(self._layout.shape[1])
        # Square roots of shares of luma and of chroma pairs: distances are those of Hellinger.
        length = len(flat)
        histogram = self._histogram[rows]
        places = np.add(flat >> _BIN_SHIFT, self._first_luma[:length], out=self._places[:length])
        histogram[:, : 4 * _BINS] = _shares(places, 4 * _BINS)
        blue, red = chroma[:, 0] & (0xFF << _BIN_SHIFT & 0xFF), chroma[:, 1] >> _BIN_SHIFT
        pairs = (blue + red).reshape(length, -1)
        np.add(pairs, self._first_pair[:length], out=self._pairs[:length])
        histogram[:, 4 * _BINS :] = _shares(self._pairs[:length], _BINS * _BINS)
        np.sqrt(histogram / 2, out=histogram)
        brightness = self._brightness[rows]
        brightness[:, 0] = mean / np.float32(255)
        brightness[:, 1] = contrast / np.float32(128)
        brightness[:, 2] = flat.max(1) / np.float32(255)
        # Added up as floats, which is many times faster than counting.
        brightness[:, 3] = (flat < _DARK).astype(np.float32).sum(1) / size


def _products(one: Rows, other: Rows) -> Rows:
    """[T] inner products of rows."""
    products: Rows = np.einsum("td,td->t", one, other)
    return products


def _norm(count: int) -> np.float32:
    """Divisor that turns distances of rows of ``count`` samples into root mean square differences in shares of 255."""
    return np.float32(255 * count**0.5)


def _halve(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """[..., H, W] as the means of 2 x 2 pixels; an odd last row or column is ignored."""
    rows, columns = (side // 2 * 2 for side in images.shape[-2:])
    whole = images[..., :rows, :columns]
    total = whole[..., ::2, ::2].astype(np.uint16)
    for down, across in ((0, 1), (1, 0), (1, 1)):
        total += whole[..., down::2, across::2]
    return total.astype(np.float32) * np.float32(0.25)


def _layout_cells(images: NDArray[np.float32]) -> Rows:
    """[T, H, W] as the means of `_LAYOUT` cells, which overlap by a pixel if a side does not divide evenly."""
    inside = _inside_cells(*images.shape[1:])
    # Quarters of whole numbers: the sums are exact in any order.
    means: Rows = images.reshape(len(images), -1) @ inside / inside.sum(0)
    return means


@cache
def _inside_cells(rows: int, columns: int) -> NDArray[np.float32]:
    """Whether each pixel [rows * columns] lies in each of the `_LAYOUT` cells, as 0 or 1."""
    down, across = _LAYOUT
    cells = np.zeros((rows, columns, down, across), np.float32)
    for row in range(down):
        for column in range(across):
            cells[
                row * rows // down : -(-(row + 1) * rows // down),
                column * columns // across : -(-(column + 1) * columns // across),
                row,
                column,
            ] = 1
    return cells.reshape(rows * columns, down * across)


def _shares(places: NDArray[np.intp], bins: int) -> Rows:
    """Shares [T, bins] from bin numbers [T, N] that continue from frame to frame."""
    counts = np.bincount(places.ravel(), minlength=bins * len(places)).reshape(len(places), bins)
    return counts.astype(np.float32) / np.float32(places.shape[1])


BAND_LAYERS = ((5, 1), (5, 1), (5, 2), (3, 4), (3, 8), (3, 16), (3, 24))

"""(kernel, dilation) of the network's layers: together they see 62 frames to each side."""

BAND_CONTEXT = sum((kernel // 2) * dilation for kernel, dilation in BAND_LAYERS)

_FRAMES_A_PASS = 4096

Probabilities = NDArray[np.float32]

"""[T, 2], probabilities of a hard cut at the frame, and of the frame being inside a gradual transition."""


class TransitionReader(Protocol):
    """A network that reads transitions from band features.

    `TransitionSession` runs one; what is trained is another, in a package of its own.
    """

    def probabilities(self, features: Rows) -> Probabilities:
        """Probabilities [T, outputs] of features [T, C]; 62 frames to each side decide a frame's."""
        ...


class TransitionSession:
    """A network of transitions, run by ONNX Runtime: about a microsecond per frame.

    Args:
        network: An ONNX file, or its content, that takes features [1, T, C] and gives probabilities [1, T, outputs].
    """

    def __init__(self, network: bytes | PathLike) -> None:
        # One thread: for steps so small, several would only wait for each other beside a busy decoder.
        self._session = open_session(network, threads=1)

    @property
    def digest(self) -> str:
        """Digest of the weights by `features.square_encoder.weights_digest`; empty if the file does not tell it."""
        return str(self._session.get_modelmeta().custom_metadata_map.get("weights", ""))

    def probabilities(self, features: Rows) -> Probabilities:
        """Probabilities [T, outputs] of features [T, C], in blocks to bound memory; the blocks do not change the
        result."""
        parts = [np.zeros((0, self._session.get_outputs()[0].shape[-1]), np.float32)]
        for start in range(0, len(features), _FRAMES_A_PASS):
            before = min(start, BAND_CONTEXT)
            block = features[start - before : start + _FRAMES_A_PASS + BAND_CONTEXT]
            (answers,) = run_session(self._session, None, {"features": block[None]})
            parts.append(answers[0, before : before + _FRAMES_A_PASS])
        return np.concatenate(parts)


def open_network(path: PathLike, *, outputs: int) -> tuple[TransitionReader, Mapping[str, str]]:
    """The network whose weights are in a safetensors file, and the file's metadata; use it in `refuse_unreadable`.

    FILE.onnx beside FILE.safetensors is run.

    Args:
        path: The file of weights.
        outputs: Number of probabilities per frame that it must have.

    Raises:
        InvalidArgumentError: There is no such ONNX file, or it is of other weights or answers.
    """
    weights, metadata = read_weights(path)
    if len(weights["leave.weight"]) != outputs:
        raise InvalidArgumentError(f"it must give {outputs} answers a frame, got {len(weights['leave.weight'])}")
    exported = Path(path).with_suffix(".onnx")
    if exported.is_file():
        session = TransitionSession(exported)
        if session.digest == weights_digest({}, weights):
            return session, metadata
    raise InvalidArgumentError(f"{exported}: is missing or of other weights than {Path(path).name}; train it again")


def read_weights(path: PathLike) -> tuple[dict[str, NDArray[np.float32]], Mapping[str, str]]:
    """Weights by name and metadata of a safetensors file; use it in `refuse_unreadable`."""
    from safetensors import safe_open

    check_regular_file(path, follow_links=True)
    with safe_open(os.fspath(path), framework="np") as file:
        weights = {name: file.get_tensor(name) for name in sorted(file.keys())}
        metadata = file.metadata() or {}
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise InvalidArgumentError(f"{os.fspath(path)}: {name} has values that are not finite; train it again")
    return weights, metadata


@contextmanager
def refuse_unreadable(message: str) -> Iterator[None]:
    """Raise InvalidArgumentError with this message if the file read inside is damaged or something else."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{message}: {' '.join(str(error).split())}") from error
