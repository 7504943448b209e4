"""The extractor that works on any machine: no weights, no network."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin._base.names import parse_name
from vidkin._base.parts import research_hint
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.contracts import FrameExtractor, Views
from vidkin.features.descriptors import SIDE, describe_regions, raw_dimension
from vidkin.features.information import bar_boxes
from vidkin.features.views import check_views, features_of_views, grid_suffix
from vidkin.features.whitening import Whitening
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

__all__ = ["ClassicalExtractor", "open_classical", "shipped_whitening"]

PathLike = str | os.PathLike[str]

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

    def __init__(self, whitening: str | os.PathLike[str] | None = None, *, views: Views = "none") -> None:
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

    def extract(
        self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None
    ) -> FrameFeatures:
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
                    functional.interpolate(
                        tensor, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False
                    )
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
            f"{name!r} is not an extractor; choose 'classical' or 'classical:<feature>'"
            + (f"; {hint}" if hint else "")
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
