"""The default extractor: one vector per frame, from the network bundled with the package."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.content_boxes import BOX_NETWORK_FILE
from vidkin.features.onnx import OnnxNetwork
from vidkin.features.views import features_of_views
from vidkin.media.frames import fit_to_square

if TYPE_CHECKING:
    from vidkin.media import Frames
    from vidkin.similarity import FrameFeatures

__all__ = ["COHORT_FILE", "NETWORK_FILE", "FrameEncoderExtractor", "open_frame_extractor"]

# Part of the fingerprint; increment it whenever the same frame would get different vectors.
_REVISION = 2

NETWORK_FILE = Path(__file__).with_name("data") / "frame_encoder.onnx"
"""The network, which takes squares of bytes; ``frame_encoder.json`` in the same folder describes its training."""

COHORT_FILE = NETWORK_FILE.with_name("frame_encoder_cohort.safetensors")
"""This network's vectors of unrelated images; see :meth:`FrameEncoderExtractor.cohort`."""


@check_constructor
class FrameEncoderExtractor:
    """Extracts a unit vector of the full frame, and of each rectangle that may contain a video: [T, V, 1, D].

    The network is trained so that edited copies have nearly the same vectors, including mirrored, rotated, cropped and
    partly covered copies.

    Args:
        network: The network.
        name: The name under which the extractor was opened.

    Attributes:
        fingerprint: Short hashes of the files of the network, of the box network and of the cohort.
    """

    scorer = "copies"
    describes_boxes = True

    def __init__(self, network: OnnxNetwork, *, name: str = "vidkin") -> None:
        self.name: Final = name
        self.short_side: Final = network.size
        self.fingerprint: Final = f"frame-encoder-{_REVISION}-{network.digest[:12]}-{_digest_of_data()}"
        self._network = network

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Describe frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        return features_of_views(self._describe, frames, self.fingerprint, boxes=boxes)

    def cohort(self) -> NDArray[np.floating] | None:
        """Load vectors [N, 1, D] of unrelated images, which ship with the bundled network; None for other networks."""
        from safetensors import safe_open

        with safe_open(COHORT_FILE, framework="numpy") as file:
            is_own = file.metadata()["network"] == self._network.digest
            vectors: NDArray[np.floating] | None = file.get_tensor("vectors")[:, None] if is_own else None
        return vectors

    def _describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        size = self._network.size
        squares = np.empty((len(images), size, size, 3), np.uint8)
        for square, image in zip(squares, images, strict=True):
            square[:] = fit_to_square(image, size, "stretch")
        vectors = self._network.run(squares)
        units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        return np.asarray(units[:, None], np.float32)


def _digest_of_data() -> str:
    return hashlib.sha256(BOX_NETWORK_FILE.read_bytes() + COHORT_FILE.read_bytes()).hexdigest()[:8]


def open_frame_extractor(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> FrameEncoderExtractor:
    """Open the extractor ``vidkin``; factory for the registry.

    Args:
        name: ``vidkin``.
        weights: The ONNX file of another network with the same input; default: the bundled network.
        whitening: Not accepted, because the vectors need none.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: The name includes a model, or the weights file does not exist.
        InvalidArgumentError: The weights belong to another kind of network, a whitening was passed, or a setting is
            unknown.
    """
    parsed = parse_name(name)
    if parsed.path != "vidkin":
        raise UnknownExtractorError(f"extractor 'vidkin' takes no model, got {name!r}")
    parsed.typed_settings({})
    if whitening is not None:
        raise InvalidArgumentError(f"extractor 'vidkin' takes no whitening, got {os.fspath(whitening)!r}")
    network = OnnxNetwork(NETWORK_FILE if weights is None else weights, device=device)
    if not network.takes_bytes or len(network.shape) != 1:
        raise InvalidArgumentError(
            f"{weights}: the network must take bytes and return one vector per image; use --model onnx:FILE instead"
        )
    return FrameEncoderExtractor(network, name=name)
