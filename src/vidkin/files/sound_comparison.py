"""How far the sound of one track is in another one, block by block, measured on their waveforms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.media.sound import SOUND_RATE

Waveform = NDArray[np.float32]

WINDOW, HOP = 512, 256
"""Samples of a spectrum, 64 ms, and samples from one to the next."""

BLOCK_FRAMES, BLOCK_STEP = 8, 4
"""Spectra of a block, a quarter of a second, and spectra from one block to the next."""

BLOCK_SECONDS = BLOCK_FRAMES * HOP / SOUND_RATE
STEP_SECONDS = BLOCK_STEP * HOP / SOUND_RATE

MAX_DELAY = round(0.4 * SOUND_RATE)
"""Samples by which sound may lie off the frames: encoders delay it, and times of frames are known to a frame."""

# Spectral lines, of 15.6 Hz each, from which the bands begin: 125 Hz wide up to 1 kHz, then 250 Hz. Below 80 Hz there
# is rumble, and resampling takes away what is near the end.
_EDGES = np.array([*range(5, 64, 8), *range(69, 246, 16)])
# Energy of a band that lies this far below the loudest one of its block is not heard.
_MASKED = 1e-4


def find_delay(removed: Waveform, kept: Waveform) -> int:
    """Samples by which the removed sound lies later in the kept sound, which has `MAX_DELAY` more on either side."""
    size = 1 << (len(kept) + len(removed) - 1).bit_length()
    cross = np.fft.rfft(kept, size) * np.conj(np.fft.rfft(removed, size))
    # Partly whitened: loud low tones alone have many equal peaks.
    correlation = np.fft.irfft(cross / (np.abs(cross) ** 0.7 + 1e-9), size)
    return int(np.argmax(np.abs(correlation[: 2 * MAX_DELAY + 1]))) - MAX_DELAY


def measure_levels(samples: Waveform) -> NDArray[np.float32]:
    """Mean square of each block of samples [S], without what is too low or too high to be compared."""
    scale = 2 / (BLOCK_FRAMES * WINDOW**2 * 0.375)  # of a spectrum with a Hann window to a mean square
    levels: NDArray[np.float32] = _energies(_spectra(samples)).sum(axis=1) * np.float32(scale)
    return levels


def measure_residuals(removed: Waveform, kept: Waveform) -> NDArray[np.float32]:
    """Share of each block of the removed sound that no filter makes of the kept sound that lies on it.

    It is near 0 for the same sound at any volume, and near 1 for unrelated sound.
    """
    ours, theirs = _spectra(removed), _spectra(kept)
    energy, kept_energy = _energies(ours), _energies(theirs)
    common = np.abs(_in_blocks(_in_bands(ours * np.conj(theirs)))) ** 2
    residual = 1 - common / np.maximum(energy * kept_energy, 1e-20)
    # Hearing goes by a compressed loudness: quiet bands count, but less.
    weight = np.sqrt(energy) * (energy > _MASKED * energy.max(axis=1, keepdims=True))
    total = np.maximum(weight.sum(axis=1), 1e-12)
    shares: NDArray[np.float32] = ((weight * residual).sum(axis=1) / total).astype(np.float32)
    return shares


@cache
def _hann() -> NDArray[np.float32]:
    window: NDArray[np.float32] = np.hanning(WINDOW + 1)[:-1].astype(np.float32)
    return window


def _spectra(samples: Waveform) -> NDArray[np.complex64]:
    """Spectra [T, F] of windows."""
    count = (len(samples) - WINDOW) // HOP + 1
    windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[: count * HOP : HOP]
    return np.fft.rfft(windows * _hann(), axis=1).astype(np.complex64)


def _energies(spectra: NDArray[np.complex64]) -> NDArray[np.float32]:
    """Energy of each band in each block, [B, bands]."""
    return _in_blocks(_in_bands((spectra.real**2 + spectra.imag**2).astype(np.float32)))


def _in_bands(values: NDArray[Any]) -> NDArray[Any]:
    bands: NDArray[Any] = np.add.reduceat(values, _EDGES, axis=1)[:, :-1]
    return bands


def _in_blocks(values: NDArray[Any]) -> NDArray[Any]:
    """Sums [B, ...] over the spectra of each block."""
    steps = len(values) // BLOCK_STEP
    sums: NDArray[Any] = values[: steps * BLOCK_STEP].reshape(steps, BLOCK_STEP, *values.shape[1:]).sum(axis=1)
    blocks: NDArray[Any] = sums[:-1] + sums[1:]
    return blocks
