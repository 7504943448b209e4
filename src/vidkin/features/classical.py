"""The extractor that works on any machine: no weights, no network."""

from __future__ import annotations

import math
import os
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name, research_hint
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.contracts import FrameExtractor, Views
from vidkin.features.information import bar_boxes
from vidkin.features.views import check_views, features_of_views, grid_suffix
from vidkin.features.whitening import Whitening
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Part of the fingerprint: increment it when the same frame would get different numbers.
_REVISION = 1

_CHUNK = 32


class ClassicalExtractor:
    """Color, gradients and texture of 3 x 3 overlapping regions and the whole frame, whitened: [T, 10, 128].

    Black bars are cut off first, then the picture is resized to a square, so letterboxing and squeezing change
    little. The whitening suppresses what copies change (compression, size, crop, logos, captions, brightness, gray);
    the bundled one was fitted on photographs and their edited copies, and :meth:`vidkin.features.Whitening.fit_pairs`
    fits one on your own.

    Args:
        whitening: A file written by :meth:`vidkin.features.Whitening.save`; default: the bundled one.
        views: Which side of a comparison is also described in parts: ``none``, only the ``query``, or ``both``. Each
            of about 25 parts takes as long as another frame.

    Raises:
        InvalidArgumentError: The whitening is for other descriptors.
    """

    short_side = 240
    scorer = "copies"

    def __init__(self, whitening: PathLike | None = None, *, views: Views = "none") -> None:
        self.views = views
        self._whitening = shipped_whitening() if whitening is None else Whitening.load(whitening)
        self._whitening.check_length(raw_dimension(), "the classical extractor")

    @property
    def name(self) -> str:
        """``classical``, with its views unless they are ``none``."""
        return "classical" if self.views == "none" else f"classical?views={self.views}"

    @property
    def fingerprint(self) -> str:
        """``classical-<revision>-<digest of the whitening>``, with its views unless they are ``none``."""
        of_views = "" if self.views == "none" else f"-{self.views}"
        return f"classical-{_REVISION}-{self._whitening.digest()[:12]}{of_views}{grid_suffix(self.views)}"

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        return features_of_views(
            lambda images: self._whitening.apply(self.describe(images)),
            frames,
            self.fingerprint,
            mirror=mirror,
            boxes=boxes,
        )

    def describe(self, images: NDArray[np.uint8], *, mirror: bool = False) -> torch.Tensor:
        """Descriptors before whitening, [T, 10, 201], to fit a whitening on."""
        if len(images) == 0:
            return torch.zeros(0, 10, raw_dimension())
        parts = []
        for first in range(0, len(images), _CHUNK):
            pictures = []
            chunk = images[first : first + _CHUNK]
            for image, (top, bottom, left, right) in zip(chunk, bar_boxes(chunk).tolist(), strict=True):
                picture = image[top:bottom, left:right]
                if mirror:
                    picture = picture[:, ::-1]
                # One frame at a time, so that it does not matter which frames are described together.
                tensor = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].float()
                pictures.append(
                    functional.interpolate(tensor, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False)
                )
            parts.append(describe_regions(torch.cat(pictures)))
        return torch.cat(parts)


def open_classical(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> FrameExtractor:
    """Open ``classical``, ``classical?views=query`` or ``classical?views=both``, which run on the CPU.

    Raises:
        UnknownExtractorError: Another name.
        InvalidArgumentError: Weights were passed to ``classical``, a setting is unknown, or the whitening is for other
            descriptors.
    """
    parsed = parse_name(name)
    if parsed.path != "classical":
        hint = research_hint("classical features")
        raise UnknownExtractorError(
            f"{name!r} is not an extractor; choose 'classical' or 'classical:<feature>'" + (f"; {hint}" if hint else "")
        )
    views = check_views(parsed.typed_settings({"views": str}).get("views", "none"))
    if weights is not None:
        raise InvalidArgumentError(
            f"the classical extractor has no weights, got {os.fspath(weights)!r}; leave weights out, or name a network "
            "such as timm:resnet50.tv_in1k"
        )
    return ClassicalExtractor(whitening, views=views)


@cache
def shipped_whitening() -> Whitening:
    """The bundled whitening, fitted by `vidkin whiten`; ``docs/decisions.md`` describes the data."""
    with as_file(files("vidkin.features") / "data" / "classical.safetensors") as path:
        return Whitening.load(path)


# Color, gradients and texture of the regions of a frame, as plain numbers before whitening.
#
# The families are those of classical retrieval (Wang et al., "Learning fine-grained image similarity with deep
# ranking", supplement, section 4): LAB color, HOG-like oriented gradients, band energies for texture; plus the low
# cosine coefficients of the luminance, which perceptual hashes are made of.


SIDE = 192  # pixels, a square: the aspect ratio of a copy cannot be trusted

CELLS = 12  # cells per side

CELL = SIDE // CELLS

BINS = 3  # pooled cells per side of a region

ORIENTATIONS = 8

COSINES = 7  # per side

# (top, left, length) in cells: 3 x 3 regions of half the frame's side, overlapping by half, then the whole frame.
REGIONS: tuple[tuple[int, int, int], ...] = (
    *((row * CELLS // 4, column * CELLS // 4, CELLS // 2) for row in range(3) for column in range(3)),
    (0, 0, CELLS),
)


def raw_dimension() -> int:
    """Length D of a descriptor: gradients 72, cosines 48, brightness 9, color 18, contrast 27, texture 27."""
    return BINS * BINS * (ORIENTATIONS + 1 + 2 + 3 + 3) + COSINES * COSINES - 1


def describe_regions(images: torch.Tensor) -> torch.Tensor:
    """Descriptors [T, R, D] (R = 10, D = 201, float32) of square frames.

    Args:
        images: [T, 3, 192, 192] float, RGB values in [0, 255].

    Each region is cut into 3 x 3 bins of cells. Per bin: 8 orientations of the luminance gradient (L2-normalized over
    the region, clipped at .3, square root), brightness relative to the region's mean, mean a and b of LAB, log
    standard deviations of L, a, b, log energies of three frequency bands; per region 48 cosine coefficients of a 24 x
    24 reduction. Flat regions stay near zero instead of being scaled up to unit length.
    """
    if images.ndim != 4 or tuple(images.shape[1:]) != (3, SIDE, SIDE):
        raise InvalidArgumentError(f"images must be [T, 3, {SIDE}, {SIDE}], got {list(images.shape)}")
    lab = lab_from_rgb(images)
    luminance = lab[:, :1]
    # Mean gradient magnitude per unsigned orientation: [T, 8, 12, 12], split linearly between neighbors.
    padded = functional.pad(luminance, (1, 1, 1, 1), mode="replicate")
    across = padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2]
    down = padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]
    magnitude = torch.hypot(across, down)
    angle = torch.remainder(torch.atan2(down, across), math.pi) * (ORIENTATIONS / math.pi)
    lower = angle.floor()
    share = angle - lower
    index = lower.long() % ORIENTATIONS
    votes = luminance.new_zeros(len(luminance), ORIENTATIONS, SIDE, SIDE)
    votes.scatter_add_(1, index, magnitude * (1 - share))
    votes.scatter_add_(1, (index + 1) % ORIENTATIONS, magnitude * share)
    orientations = functional.avg_pool2d(votes, CELL)
    mean = functional.avg_pool2d(lab, CELL)
    deviation = (functional.avg_pool2d(lab.square(), CELL) - mean.square()).clamp_min(0).sqrt()
    # Log mean detail per cell in three octaves: [T, 3, 12, 12].
    bands = []
    image = luminance
    for octave in range(3):
        smooth = functional.avg_pool2d(image, 3, 1, 1, count_include_pad=False)
        bands.append(functional.avg_pool2d((image - smooth).abs(), CELL >> octave))
        image = functional.avg_pool2d(image, 2)
    texture = torch.log1p(torch.cat(bands, dim=1))
    positions = torch.arange(24) + 0.5
    rows = torch.arange(COSINES)[:, None]
    cosines = torch.cos(math.pi * rows * positions / 24) * math.sqrt(2 / 24)
    cosines[0] *= math.sqrt(0.5)
    basis = cosines.to(images)
    regions = [
        torch.cat(
            [
                _gradients(_bins(orientations, region)),
                _cosines(luminance, region, basis),
                *_color(_bins(mean, region)),
                torch.log1p(_bins(deviation, region).flatten(1)) / 3,
                _bins(texture, region).flatten(1) / 2,
            ],
            dim=1,
        )
        for region in REGIONS
    ]
    return torch.stack(regions, dim=1)


def lab_from_rgb(images: torch.Tensor) -> torch.Tensor:
    """CIE LAB (D65) of sRGB [T, 3, H, W] in [0, 255]: L in [0, 100], a and b in about [-128, 127]."""
    # A channel has 256 possible values: a table replaces a power per pixel.
    levels = torch.arange(256, dtype=images.dtype, device=images.device) / 255
    table = torch.where(levels > 0.04045, ((levels + 0.055) / 1.055) ** 2.4, levels / 12.92)
    linear = table[images.round().clamp(0, 255).long()]
    matrix = images.new_tensor(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    ) / images.new_tensor([[0.9505], [1.0], [1.089]])
    x, y, z = torch.einsum("ij,tjhw->ithw", matrix, linear).unbind(0)
    fx, fy, fz = (torch.where(c > 0.008856, c.clamp_min(1e-6) ** (1 / 3), 7.787 * c + 16 / 116) for c in (x, y, z))
    return torch.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], dim=1)


def _bins(cells: torch.Tensor, region: tuple[int, int, int]) -> torch.Tensor:
    top, left, length = region
    return functional.avg_pool2d(cells[:, :, top : top + length, left : left + length], length // BINS)


def _gradients(bins: torch.Tensor) -> torch.Tensor:
    values = bins.flatten(1)
    norm = values.norm(dim=1, keepdim=True)
    rooted = functional.normalize((values / (norm + 0.5)).clamp(0, 0.3).sqrt(), dim=1)
    scaled: torch.Tensor = rooted * norm / (norm + 2)
    return scaled


def _color(bins: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    brightness = (bins[:, 0] - bins[:, 0].mean(dim=(1, 2), keepdim=True)).flatten(1)
    brightness = brightness / (brightness.norm(dim=1, keepdim=True) + 6)
    return brightness, bins[:, 1:].flatten(1) / 60


def _cosines(luminance: torch.Tensor, region: tuple[int, int, int], basis: torch.Tensor) -> torch.Tensor:
    top, left, length = (value * CELL for value in region)
    patch = functional.interpolate(luminance[:, :, top : top + length, left : left + length], (24, 24), mode="area")
    values = (basis @ patch[:, 0] @ basis.T).flatten(1)[:, 1:]
    scaled: torch.Tensor = values / (values.norm(dim=1, keepdim=True) + 30)
    return scaled
