"""Measures of dissolves, wipes and motion: how far a frame lies between earlier and later ones, and blocks that
move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.band import BAND_CHANNELS, BAND_CONTEXT, Rows, TransitionReader

SPANS = (4, 8, 16, 24, 32, 48)

"""Distances in frames of the frames before and after that a frame is compared with."""

BETWEEN_CHANNELS = 5 * len(SPANS)

_LAGS = tuple(sorted({lag for span in SPANS for lag in (span, 2 * span)}))

# Luma of 18 x 32 and chroma of 9 x 16, in cells across the picture.
_LUMA, _CHROMA, _CELLS = (18, 32), (9, 16), (3, 4)

# Squared distance of two equal frames after encoding, and the distance below which a residual is noise.
_NOISE, _SMALL = 1e-5, 0.02

_BLOCK = 128


class BetweenFeatures:
    """Computes features block by block; memory holds 96 small frames, and the distances of as many.

    For a frame m and the frames a and b so many frames before and after it, as small pictures: m is the mixture
    ``(1 - s) a + s b`` that fits best. A dissolve fits in all parts of the picture with one share s, a wipe in every
    part with a share of 0 or 1, and a moving camera not at all. The film goes on with its first and last frame.
    """

    def __init__(self) -> None:
        self._frames = np.zeros((0, _CELLS[0] * _CELLS[1], 0), np.float32)
        self._squares = np.zeros((0, len(_LAGS), _CELLS[0] * _CELLS[1]), np.float32)

    def push(self, colors: Rows) -> Rows:
        """Features [N, BETWEEN_CHANNELS] of the frames that these complete: those up to 48 frames before the last.

        Args:
            colors: [T, 864] half-size luma and chroma of the next frames, as the band compares them.
        """
        parts = [np.zeros((0, BETWEEN_CHANNELS), np.float32)]
        if not len(colors):
            return parts[0]
        cells = _shrink(colors)
        if not len(self._frames):
            self._frames = np.repeat(cells[:1], _LAGS[-1], 0)
        for start in range(0, len(cells), _BLOCK):
            parts.append(self._add(cells[start : start + _BLOCK]))
        return np.concatenate(parts)

    def finish(self) -> Rows:
        """Features of the last 48 frames, or of as many as there are."""
        if not len(self._frames):
            return np.zeros((0, BETWEEN_CHANNELS), np.float32)
        return self._add(np.repeat(self._frames[-1:], SPANS[-1], 0))

    def _add(self, cells: NDArray[np.float32]) -> Rows:
        reach, count, ahead = _LAGS[-1], len(cells), SPANS[-1]
        frames = np.concatenate([self._frames, cells])
        squares = np.empty((count, len(_LAGS), cells.shape[1]), np.float32)
        for place, lag in enumerate(_LAGS):
            step = cells - frames[reach - lag : reach - lag + count]
            np.einsum("tcd,tcd->tc", step, step, out=squares[:, place])
        self._frames = frames[-reach:]
        held = np.concatenate([self._squares, squares])
        done = max(0, len(held) - ahead)
        features = _mixtures(held, done)
        self._squares = held[done:]
        return features


def _mixtures(squares: NDArray[np.float32], end: int) -> Rows:
    """For each span the distance of the frames around, the share, its deviation over cells, and what does not fit with
    one share and with one share in each cell, for the first ``end`` frames."""
    columns = []
    for span in SPANS:
        near, far = _LAGS.index(span), _LAGS.index(2 * span)
        before, after = squares[:end, near], squares[span : end + span, near]
        apart = squares[span : end + span, far]
        noise = np.float32(_NOISE)
        shares = ((before + apart - after + noise) / (2 * (apart + noise))).clip(0, 1)
        whole, total = apart.sum(1), before.sum(1)
        share = ((total + whole - after.sum(1) + noise) / (2 * (whole + noise))).clip(0, 1)
        distance = np.sqrt(whole)
        spread = np.sqrt(((apart + noise) * (shares - share[:, None]) ** 2).sum(1) / (whole + 12 * noise))
        # |m - a - s (b - a)|^2 = |m - a|^2 (1 - s) + |m - b|^2 s - s (1 - s) |b - a|^2.
        misfit = total * (1 - share) + after.sum(1) * share - share * (1 - share) * whole
        own = (before * (1 - shares) + after * shares - shares * (1 - shares) * apart).clip(0).sum(1)
        scale = distance + np.float32(_SMALL)
        columns += [distance, share, spread, np.sqrt(misfit.clip(0)) / scale, np.sqrt(own) / scale]
    return np.stack(columns, 1).astype(np.float32)


def _shrink(colors: Rows) -> NDArray[np.float32]:
    """[T, cells, samples] of [T, 864]: luma of 9 x 16 and one blue and one red difference per cell.

    Distances stay root mean squares: what stands for several samples weighs as many.
    """
    count, (rows, columns) = len(colors), _CELLS
    luma = colors[:, : _LUMA[0] * _LUMA[1]].reshape(count, _LUMA[0] // 2, 2, _LUMA[1] // 2, 2)
    fine = (luma[:, :, 0, :, 0] + luma[:, :, 0, :, 1] + luma[:, :, 1, :, 0] + luma[:, :, 1, :, 1]) / 2
    fine = fine.reshape(count, rows, _LUMA[0] // 2 // rows, columns, -1).swapaxes(2, 3)
    chroma = colors[:, _LUMA[0] * _LUMA[1] :].reshape(count, 2, rows, _CHROMA[0] // rows, columns, -1)
    own = np.sqrt(np.float32(_CHROMA[0] // rows * (_CHROMA[1] // columns)))
    coarse = np.einsum("tprycx->trcp", chroma) / own
    return np.concatenate(
        [fine.reshape(count, rows * columns, -1), coarse.reshape(count, rows * columns, 2)], 2, dtype=np.float32
    )


SMALL, REACH = 32, 4

"""Rows and columns of the pictures compared, and how far their blocks are looked for."""

# Rows and columns of a block.
_PART = 4

PARTS, SHIFTS = SMALL // _PART, 2 * REACH + 1

"""Blocks across a picture, and places in which each is looked for, in either direction."""

# Share of a block's own variance, beside that of noise, below which a block is found again.
_SHARE_LEFT = 0.3

# Columns of `_IN_PART` add up the columns of each block.
_IN_PART = np.kron(np.eye(PARTS, dtype=np.float32), np.ones((_PART, 1), np.float32))

# Of places that fit as well, the nearest one counts.
_DETOURS = (0.5 * _PART * (np.arange(-REACH, REACH + 1)[:, None] ** 2 + np.arange(-REACH, REACH + 1) ** 2)).astype(
    np.float32
)[..., None, None]


class BlockSearch(NamedTuple):
    """Blocks of a picture that are looked for in another.

    Attributes:
        found: [8, 8] whether each is found.
        moved: [8, 8] whether each shows something, is found, and does not fit where it was.
        best: [8, 8] number of the place that fits best, among 9 x 9.
    """

    found: NDArray[np.bool_]
    moved: NDArray[np.bool_]
    best: NDArray[np.intp]


def search_blocks(old: NDArray[np.float32], new: NDArray[np.float32], *, noise: float) -> BlockSearch:
    """Look for the blocks of a picture in another, up to an eighth of the picture away.

    Args:
        old: [32, 32] luma of the picture in which is searched.
        new: [32, 32] luma of the picture whose blocks are looked for.
        noise: Variance of noise.
    """
    wide = np.pad(old, REACH, mode="edge")
    errors = np.empty((SHIFTS, SHIFTS, PARTS, PARTS), np.float32)
    columns = np.lib.stride_tricks.sliding_window_view(wide, SMALL, axis=1)
    for down in range(SHIFTS):
        step = columns[down : down + SMALL] - new[:, None]
        step *= step
        rows = step.reshape(PARTS, _PART, SHIFTS, SMALL).sum(1)
        errors[down] = (rows @ _IN_PART).swapaxes(0, 1)
    variances = new.reshape(PARTS, _PART, PARTS, _PART).var((1, 3))
    limits = _PART * _PART * (noise + _SHARE_LEFT * variances)
    best = (errors + _DETOURS).reshape(-1, PARTS, PARTS).argmin(0)
    found = errors.reshape(-1, PARTS, PARTS)[best, np.arange(PARTS)[:, None], np.arange(PARTS)] <= limits
    moved = found & (variances > 2 * noise) & (errors[REACH, REACH] > limits)
    return BlockSearch(found, moved, best)


class GradualReader:
    """Reads from the band and the features between frames whether each frame lies in a transition, and in which kind.

    Args:
        network: Network with five answers per frame from 78 features: hard, gradual, and the kinds of gradual
            transitions.
    """

    def __init__(self, network: TransitionReader) -> None:
        self._network = network
        self._between = BetweenFeatures()
        self._band = np.zeros((0, BAND_CHANNELS), np.float32)
        self._rows = np.zeros((0, BAND_CHANNELS + BETWEEN_CHANNELS), np.float32)
        self._answered = 0  # number of leading rows that are answered already

    def push(self, band: Rows, colors: Rows) -> Rows:
        """Answers [N, 5] of the frames that are settled: 110 frames after them have been seen.

        Args:
            band: [T, 48] band features of the next frames.
            colors: [T, 864] their small luma and chroma.
        """
        self._band = np.concatenate([self._band, band])
        self._join(self._between.push(colors))
        return self._answer(len(self._rows) - BAND_CONTEXT)

    def finish(self) -> Rows:
        """Answers of the remaining frames."""
        rest = self._between.finish()
        self._join(rest[len(rest) - len(self._band) :])
        return self._answer(len(self._rows))

    def _join(self, between: Rows) -> None:
        rows = np.concatenate([self._band[: len(between)], between], 1)
        self._band = self._band[len(between) :]
        self._rows = np.concatenate([self._rows, rows])

    def _answer(self, until: int) -> Rows:
        if until <= self._answered:
            return np.zeros((0, 5), np.float32)
        answers = self._network.probabilities(self._rows)[self._answered : until]
        kept = max(0, until - BAND_CONTEXT)
        self._rows, self._answered = self._rows[kept:], until - kept
        return answers
