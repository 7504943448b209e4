"""Compare the waveforms of two audio tracks block by block."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.media.sound import SOUND_RATE

Waveform = NDArray[np.float32]

WINDOW, HOP = 512, 256
"""Samples per spectrum (64 ms), and samples between the starts of adjacent spectra."""
BLOCK_FRAMES, BLOCK_STEP = 8, 4
"""Spectra per block (a quarter of a second), and spectra between the starts of adjacent blocks."""

BLOCK_SECONDS = BLOCK_FRAMES * HOP / SOUND_RATE
STEP_SECONDS = BLOCK_STEP * HOP / SOUND_RATE

MAX_DELAY = round(0.4 * SOUND_RATE)
"""Maximum offset of audio relative to frames in samples: encoders delay audio, and frames are aligned to one frame."""

# Spectral lines (15.6 Hz each) at which the bands start: 125 Hz wide up to 1 kHz, then 250 Hz. Frequencies below 80 Hz
# contain rumble, and resampling attenuates the highest frequencies.
_EDGES = np.array([*range(5, 64, 8), *range(69, 246, 16)])
# Energy of a band, relative to the loudest band of its block, below which the band is inaudible.
_MASKED = 1e-4


def find_delay(removed: Waveform, kept: Waveform) -> int:
    """Find the delay in samples of the removed audio in the kept audio, which has `MAX_DELAY` more on either side."""
    size = 1 << (len(kept) + len(removed) - 1).bit_length()
    cross = np.fft.rfft(kept, size) * np.conj(np.fft.rfft(removed, size))
    # Use partial whitening, because loud low tones alone would give many equal peaks.
    correlation = np.fft.irfft(cross / (np.abs(cross) ** 0.7 + 1e-9), size)
    return int(np.argmax(np.abs(correlation[: 2 * MAX_DELAY + 1]))) - MAX_DELAY


def measure_levels(samples: Waveform) -> NDArray[np.float32]:
    """Compute the mean square of each block of samples [S] within the compared bands."""
    scale = 2 / (BLOCK_FRAMES * WINDOW**2 * 0.375)  # from the energy of Hann windows to a mean square
    levels: NDArray[np.float32] = _compute_energies(_compute_spectra(samples)).sum(axis=1) * np.float32(scale)
    return levels


def measure_residuals(removed: Waveform, kept: Waveform) -> NDArray[np.float32]:
    """Compute the fraction of each block of the removed audio that filtering the aligned kept audio cannot explain.

    It is near 0 for the same audio at any volume, and near 1 for unrelated audio.
    """
    ours, theirs = _compute_spectra(removed), _compute_spectra(kept)
    energy, kept_energy = _compute_energies(ours), _compute_energies(theirs)
    common = np.abs(_sum_blocks(_sum_bands(ours * np.conj(theirs)))) ** 2
    residual = 1 - common / np.maximum(energy * kept_energy, 1e-20)
    # Perceived loudness is compressive, so quiet bands count, but less.
    weight = np.sqrt(energy) * (energy > _MASKED * energy.max(axis=1, keepdims=True))
    total = np.maximum(weight.sum(axis=1), 1e-12)
    shares: NDArray[np.float32] = ((weight * residual).sum(axis=1) / total).astype(np.float32)
    return shares


@cache
def _make_window() -> NDArray[np.float32]:
    window: NDArray[np.float32] = np.hanning(WINDOW + 1)[:-1].astype(np.float32)
    return window


def _compute_spectra(samples: Waveform) -> NDArray[np.complex64]:
    """Compute the spectra [T, F] of all windows."""
    count = (len(samples) - WINDOW) // HOP + 1
    windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[: count * HOP : HOP]
    return np.fft.rfft(windows * _make_window(), axis=1).astype(np.complex64)


def _compute_energies(spectra: NDArray[np.complex64]) -> NDArray[np.float32]:
    """Compute the energy of each band in each block, [B, bands]."""
    return _sum_blocks(_sum_bands((spectra.real**2 + spectra.imag**2).astype(np.float32)))


def _sum_bands(values: NDArray[Any]) -> NDArray[Any]:
    bands: NDArray[Any] = np.add.reduceat(values, _EDGES, axis=1)[:, :-1]
    return bands


def _sum_blocks(values: NDArray[Any]) -> NDArray[Any]:
    """Sum over the spectra of each block, [B, ...]."""
    steps = len(values) // BLOCK_STEP
    sums: NDArray[Any] = values[: steps * BLOCK_STEP].reshape(steps, BLOCK_STEP, *values.shape[1:]).sum(axis=1)
    blocks: NDArray[Any] = sums[:-1] + sums[1:]
    return blocks
