"""Texture descriptors of dense local patches, like SIFT but with Gabor energies instead of gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import torch
from torch.nn import functional

from vidkin_research.features.feature import Image, iter_chunks, squares

__all__ = ["PATCH_LENGTH", "describe_patches", "patches_of"]

_SIDE, _MARGIN = 128, 16
_ORIENTATIONS = 8
_WAVELENGTHS = (4.0, 8.0)
_CELL, _CELLS = 6, 3
_CLIP = 0.2
# Minimum energy of a patch, for gray values from 0 to 1; anything below is noise.
_MIN_ENERGY = 1e-2
_LUMA = (0.299, 0.587, 0.114)

PATCH_LENGTH = _ORIENTATIONS * len(_WAVELENGTHS) * _CELLS**2
"""Length of a patch's descriptor, 144."""


def describe_patches(images: Sequence[Image]) -> torch.Tensor:
    """Return SIFT-like descriptors [T, 361, 144] of overlapping patches; zeros for patches without texture.

    Images are resized to 128 x 128 and converted to gray. Amplitudes of Gabor wavelets (8 orientations, wavelengths of
    4 and 8 pixels, one octave wide) are averaged in cells of 6 x 6 pixels; a patch is 3 x 3 cells, with a stride of one
    cell. Its vector is scaled to length 1, clipped at 0.2 and scaled again, as in SIFT (Lowe, 1999).
    """
    gray = torch.from_numpy(squares(images, _SIDE)) @ torch.tensor(_LUMA)
    padded = functional.pad(gray[:, None], (_MARGIN,) * 4, mode="reflect")
    amplitudes = torch.fft.ifft2(torch.fft.fft2(padded) * _wavelets()).abs()
    inner = amplitudes[:, :, _MARGIN : _MARGIN + _SIDE, _MARGIN : _MARGIN + _SIDE]
    cells = functional.avg_pool2d(inner, _CELL)
    patches = functional.unfold(cells, _CELLS).transpose(1, 2)
    has_texture = patches.norm(dim=2, keepdim=True) > _MIN_ENERGY
    clipped = functional.normalize(patches, dim=2).clamp(max=_CLIP)
    described: torch.Tensor = functional.normalize(clipped, dim=2) * has_texture
    return described


def patches_of(images: Iterable[Image]) -> Iterator[torch.Tensor]:
    """Yield the patch descriptors [361, 144] of each image; memory use does not grow with the number of images."""
    for chunk in iter_chunks(images):
        yield from describe_patches(chunk)


@cache
def _wavelets() -> torch.Tensor:
    """Return transfer functions [16, S, S] for the padded image, each a Gaussian around one frequency and 0 at DC."""
    side = _SIDE + 2 * _MARGIN
    frequency = torch.fft.fftfreq(side)
    rows, columns = torch.meshgrid(frequency, frequency, indexing="ij")
    filters = []
    for wavelength in _WAVELENGTHS:
        # For a bandwidth of one octave, sigma is 0.56 wavelengths.
        sigma = 1 / (2 * math.pi * 0.56 * wavelength)
        for step in range(_ORIENTATIONS):
            angle = math.pi * step / _ORIENTATIONS
            off = (columns - math.cos(angle) / wavelength) ** 2 + (rows - math.sin(angle) / wavelength) ** 2
            filters.append(torch.exp(-off / (2 * sigma**2)))
    bank = torch.stack(filters)
    bank[:, 0, 0] = 0
    return bank
