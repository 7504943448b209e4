"""The band of a video's self-similarity: how far every frame is from those shortly before it, in four views."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vidkin._base.files import PathLike
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.media import PLANE_HEIGHT, PLANE_WIDTH, FramePlanes
from vidkin.shots.contract import Curve, DetectedCut, DetectedCuts

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
    """

    def __init__(self) -> None:
        self._views: _Views | None = None
        self._rows: list[Rows] = []

    def push(self, planes: FramePlanes) -> None:
        """Process the next frames, all of the same size."""
        for start in range(0, len(planes), _BLOCK):
            luma, chroma = planes.luma[start : start + _BLOCK], planes.chroma[start : start + _BLOCK]
            if self._views is None:
                self._views = _Views(luma.shape[1:], chroma.shape[2:])
            self._rows.append(self._views.compare(luma, chroma))

    def finish(self) -> torch.Tensor:
        """Features [T, BAND_CHANNELS] of all frames pushed."""
        return torch.from_numpy(self.take())

    def take(self) -> Rows:
        """Features [T, BAND_CHANNELS] of the frames pushed since the last call, which are then released."""
        rows, self._rows = self._rows, []
        return np.concatenate(rows) if rows else np.zeros((0, BAND_CHANNELS), np.float32)


def band_features(planes: FramePlanes) -> torch.Tensor:
    """Band features [T, BAND_CHANNELS] of a whole sequence.

    For each of four views of a frame and each of ten lags k the distance ``||v(t) - v(t - k)||`` (0 if t < k), then
    mean, contrast, maximum and dark share of luma, and eight times their change from the frame before.
    """
    features = BandFeatures()
    features.push(planes)
    return features.finish()


class _Views:
    """The views of the last frames: rows are frames, distances between rows are Euclidean.

    NumPy rather than torch: these are thousands of tiny steps next to a decoder that keeps every core busy, and
    threads that wait for each other would cost many times the work. Buffers are reused from block to block, because
    allocating them costs more than the work in them.
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

    def compare(self, luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> Rows:
        """Features [T, BAND_CHANNELS] of the next frames, at most `_BLOCK`, against those before them."""
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
        self._held = min(end, BAND_LAGS[-1])
        for rows in (self._structure, self._color, self._histogram, self._layout, self._brightness):
            rows[: self._held] = rows[end - self._held : end]
        return features

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
        brightness[:, 3] = np.count_nonzero(flat < _DARK, axis=1) / size


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
    (_, rows, columns), (down, across) = images.shape, _LAYOUT
    means = [
        images[
            :,
            row * rows // down : -(-(row + 1) * rows // down),
            column * columns // across : -(-(column + 1) * columns // across),
        ].mean((1, 2))
        for row in range(down)
        for column in range(across)
    ]
    return np.stack(means, 1)


def _shares(places: NDArray[np.intp], bins: int) -> Rows:
    """Shares [T, bins] from bin numbers [T, N] that continue from frame to frame."""
    counts = np.bincount(places.ravel(), minlength=bins * len(places)).reshape(len(places), bins)
    return counts.astype(np.float32) / np.float32(places.shape[1])


# A small temporal network that reads transitions from the band of a video's self-similarity.


# (kernel, dilation) of the layers: together they see 64 frames to each side.
_LAYERS = ((5, 1), (5, 1), (5, 2), (3, 4), (3, 8), (3, 16), (3, 24))

_CONTEXT = sum((kernel // 2) * dilation for kernel, dilation in _LAYERS)

_FRAMES_A_PASS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionThresholds:
    """Least probabilities that count, fitted on composed videos and stored with the weights.

    Attributes:
        hard: Least probability of a hard cut at its frame.
        gradual: Least probability of a frame inside a gradual transition.
    """

    hard: float = 0.5
    gradual: float = 0.5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 < value < 1:
                raise InvalidArgumentError(f"threshold {name} must be above 0 and below 1, got {value}")


class TransitionNetwork(nn.Module):
    """Logits [B, T, 2] from band features [B, T, 48]: hard cut at this frame, and this frame inside a gradual
    transition.

    Seven convolutions over time with growing dilation on 32 channels, each added to its input: 29,000 parameters,
    about 4 microseconds per frame. A frame's answer depends on 62 frames to each side.

    Args:
        width: Number of channels.
        outputs: Number of logits per frame; after the first two, one for each kind of gradual transition.
    """

    def __init__(self, width: int = 32, outputs: int = 2) -> None:
        super().__init__()
        self.thresholds = TransitionThresholds()
        self.enter = nn.Conv1d(BAND_CHANNELS, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding=kernel // 2 * dilation, dilation=dilation)
            for kernel, dilation in _LAYERS
        )
        self.leave = nn.Conv1d(width, outputs, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Logits [B, T, 2] of features [B, T, 48]."""
        # Distances span orders of magnitude: a slow dissolve beside a cut.
        values = torch.log1p(20 * features.clamp(min=-0.049)).transpose(1, 2)
        values = torch.relu(self.enter(values))
        for layer in self.layers:
            values = values + torch.relu(layer(values))
        logits: torch.Tensor = self.leave(values)
        return logits.transpose(1, 2)

    @torch.no_grad()
    def probabilities(self, features: torch.Tensor) -> torch.Tensor:
        """Probabilities [T, 2] of features [T, 48], in blocks to bound memory; the blocks do not change the result."""
        self.eval()
        parts = []
        with one_thread():
            for start in range(0, len(features), _FRAMES_A_PASS):
                before = min(start, _CONTEXT)
                block = features[start - before : start + _FRAMES_A_PASS + _CONTEXT]
                parts.append(torch.sigmoid(self(block[None]))[0, before : before + _FRAMES_A_PASS])
        return torch.cat(parts) if parts else torch.zeros(0, self.leave.out_channels)

    def save(self, path: PathLike) -> None:
        """Write weights and thresholds as one safetensors file."""
        write_network(self, path, {"thresholds": asdict(self.thresholds)})

    @classmethod
    def load(cls, path: PathLike | None = None) -> TransitionNetwork:
        """Load the network from a file written by :meth:`save`; None is the bundled network.

        Raises:
            InvalidArgumentError: The file does not hold a transition network.
        """
        shipped = resources.files("vidkin.shots").joinpath("data/band.safetensors")
        file = str(shipped) if path is None else os.fspath(path)
        with refuse_unreadable(f"{file}: not a network of transitions"):
            network, metadata = read_network(file)
            network.thresholds = TransitionThresholds(**parse_json(metadata["thresholds"]))
        return network


def write_network(network: TransitionNetwork, path: PathLike, notes: Mapping[str, Any]) -> None:
    """Write the weights as a safetensors file with notes as JSON in its metadata."""
    from safetensors.torch import save_file

    state = {name: value.contiguous() for name, value in network.state_dict().items()}
    save_file(state, os.fspath(path), {name: json.dumps(note) for name, note in notes.items()})


def read_network(path: PathLike, *, outputs: int | None = None) -> tuple[TransitionNetwork, Mapping[str, str]]:
    """The network in a safetensors file, in eval mode, and the file's metadata; use it in `refuse_unreadable`.

    Args:
        path: The file.
        outputs: Number of logits per frame that it must have; None takes that of the file.
    """
    from safetensors import safe_open

    with safe_open(os.fspath(path), framework="pt") as file:
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata() or {}
    for name, tensor in state.items():
        if not bool(tensor.isfinite().all()):
            raise InvalidArgumentError(f"{os.fspath(path)}: {name} has values that are not finite; train it again")
    network = TransitionNetwork(width=state["enter.weight"].shape[0], outputs=outputs or state["leave.weight"].shape[0])
    network.load_state_dict(state)
    return network.eval(), metadata


@contextmanager
def refuse_unreadable(message: str) -> Iterator[None]:
    """Raise InvalidArgumentError with this message if the file read inside is damaged or something else."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{message}: {' '.join(str(error).split())}") from error


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for steps so small that several would wait for each other, hundreds of times longer on a busy
    machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# From probabilities per frame to cuts: peaks become hard cuts, stretches become gradual transitions.


# No second hard cut within this many frames of a stronger one.
_NEIGHBORS = 2

# Shorter stretches are noise, or the uncertain edge of a hard cut.
_MIN_FRAMES = 3

# Gaps of up to this many frames do not divide a transition.
_GAP = 2

# A stretch no longer than this with a hard cut in it is that cut, blurred by encoding; in a longer one only a certain
# cut counts by itself.
_BLURRED = 8

_SURE = 0.8

Probabilities = NDArray[np.float32]

"""[T, 2], probabilities of a hard cut at the frame, and of the frame being inside a gradual transition."""


def cuts_from_probabilities(probabilities: Probabilities, thresholds: TransitionThresholds) -> tuple[DetectedCut, ...]:
    """Cuts in order of frames.

    Args:
        probabilities: [T, 2] probabilities from a network.
        thresholds: Least probabilities that count.

    Returns:
        The cuts. The confidence of a hard cut is its probability; the confidence of a gradual transition is the mean
        over its frames, and its frame is the middle one. A video does not start with a cut, or with a transition that
        leaves it no first frame.
    """
    hard, gradual = probabilities[:, 0], probabilities[:, 1]
    # Frames from 1 on that are above the threshold and the largest, or first of equals, of their neighborhood.
    peaks: list[int] = []
    for frame in (np.flatnonzero(hard[1:] > thresholds.hard) + 1).tolist():
        start = max(0, frame - _NEIGHBORS)
        around = hard[start : frame + _NEIGHBORS + 1]
        if hard[frame] >= around.max() and not (peaks and frame - peaks[-1] <= _NEIGHBORS):
            peaks.append(frame)
    hard_cuts = set(peaks)
    cuts: list[DetectedCut] = []
    for first, last in find_stretches(gradual > thresholds.gradual):
        inside = [peak for peak in peaks if first - 1 <= peak <= last + 1]
        if inside and last - first <= _BLURRED:
            continue
        hard_cuts -= {peak for peak in inside if hard[peak] < _SURE}
        if hard_cuts.isdisjoint(inside) and last >= 1:
            cuts.append(
                DetectedCut(
                    max(1, (first + last + 1) // 2),
                    "gradual",
                    float(gradual[first : last + 1].mean()),
                    start_frame=first,
                    end_frame=last,
                )
            )
    cuts += [DetectedCut(peak, "hard", float(hard[peak])) for peak in hard_cuts]
    return tuple(sorted(cuts, key=lambda cut: cut.frame))


def find_stretches(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last frames of the stretches that are long enough, across small gaps."""
    frames = np.flatnonzero(inside)
    if not len(frames):
        return []
    breaks = np.flatnonzero(np.diff(frames) > _GAP + 1)
    firsts = frames[np.concatenate([[0], breaks + 1])]
    lasts = frames[np.concatenate([breaks, [len(frames) - 1]])]
    return [
        (int(first), int(last)) for first, last in zip(firsts, lasts, strict=True) if last - first + 1 >= _MIN_FRAMES
    ]


# The detector ``band``: the band of the video's self-similarity, read by a small network, without an image network.


class BandDetector:
    """Finds hard cuts and gradual transitions from the distances of every frame to the 32 before it.

    Each frame becomes 3,500 samples of its decoded planes; their distances at ten lags in four views (structure without
    brightness, color, histograms, layout) are the band of the self-similarity matrix. A network of 29,000 parameters,
    trained only on composed videos, tells for every frame whether a shot begins there and whether it is inside a
    transition: it has learned that a scene that returns after a flash, moves or shakes is not a cut.

    Args:
        weights: A file written by `TransitionNetwork.save`; None is the bundled network.
        hard: Least probability of a hard cut, in (0, 1); None uses the value stored with the weights. Raise it for
            fewer false cuts.
        gradual: Least probability of a frame inside a gradual transition, in (0, 1).

    The curve is the larger of both probabilities. Memory: about 200 bytes per frame. Shots get no critical score,
    which requires a learned distance.
    """

    def __init__(
        self, *, weights: PathLike | None = None, hard: float | None = None, gradual: float | None = None
    ) -> None:
        self.name = "band"
        self.grid = (PLANE_HEIGHT, PLANE_WIDTH)
        self._network = _default_network() if weights is None else TransitionNetwork.load(weights)
        stored = self._network.thresholds
        self._thresholds = TransitionThresholds(
            hard=stored.hard if hard is None else hard,
            gradual=stored.gradual if gradual is None else gradual,
        )
        self._features = BandFeatures()
        self._times: list[float] = []

    def push_planes(self, planes: FramePlanes) -> None:
        """Process the next frames."""
        self._features.push(planes)
        self._times += planes.timestamps.tolist()

    def finish(self) -> DetectedCuts:
        """The cuts of all frames pushed."""
        probabilities = self._network.probabilities(self._features.finish()).numpy()
        cuts = cuts_from_probabilities(probabilities, self._thresholds)
        curve = Curve(np.array(self._times), probabilities.max(1).astype(np.float64), "transition probability")
        return DetectedCuts(cuts, curve)


# Shared by all detectors, which never change it.
_default_network = cache(TransitionNetwork.load)
