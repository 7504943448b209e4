"""The default extractor: vidkin's own small frame encoder, applied to views of every frame."""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch.nn import functional

from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.backbone import resolve_device
from vidkin.features.contracts import Views
from vidkin.features.frame_encoder import FrameEncoder, load_frame_encoder
from vidkin.features.information import bar_boxes, detailed_cells, frame_information, information_of_share
from vidkin.features.views import check_views, grid_suffix, mirror_boxes, place_boxes, shares_of_edges
from vidkin.media.frames import LUMINANCE
from vidkin.similarity import WHOLE, FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Part of the fingerprint: increment it when the same frame would get different numbers.
_REVISION = 1
# Side of the square that views are cut from: a view of half the side still has as many pixels as the encoder sees.
_CANVAS = 128
# Squares per pass: enough to keep the processor busy, few enough to stay in its cache.
_SQUARES_A_PASS = 64
# Least information of a part of the picture; a part with less is left out.
_LEAST_INFORMATION = 0.03


class FrameEncoderExtractor:
    """Unit vectors of the views of frames: [T, V, 1, D].

    Black bars are cut off first: views are parts of the picture between them, and their boxes are shares of the frame.
    The picture is resized to one square; every view is cut from it and resized to the encoder's input, so each frame
    is resized only once whatever the number of views.

    Args:
        encoder: The network that describes a square.
        name: As it was opened.
        device: Where it computes.
        views: Which side of a comparison is also described in parts: ``both``, only the ``query`` (a smaller index
            that misses crops), or ``none``.

    Attributes:
        fingerprint: A short hash of the network's settings and weights, wherever they come from, its views unless both,
            and their grid if it is another than that of the first version.
    """

    # Noise and compression change a still picture by up to .0001, a moving hand by .002.
    scorer = "copies?change_energy=0.001"
    short_side = 160

    def __init__(
        self,
        encoder: FrameEncoder,
        *,
        name: str = "vidkin",
        device: torch.device | None = None,
        views: Views = "both",
    ) -> None:
        self.name: Final = name
        self.views: Final = views
        self._device = device or torch.device("cpu")
        self._network = encoder.fold().to(self._device).requires_grad_(False)
        self._settings = encoder.settings
        of_views = "" if views == "both" else f"-{views}"
        digest = hashlib.sha256(json.dumps(encoder.settings.to_table(), sort_keys=True).encode())
        for weight, tensor in sorted(encoder.state_dict().items()):
            digest.update(weight.encode())
            digest.update(tensor.detach().float().cpu().numpy().tobytes())
        self.fingerprint: Final = f"frame-encoder-{_REVISION}-{digest.hexdigest()[:12]}{of_views}{grid_suffix(views)}"
        # The most recently described frames: usually their mirror image is requested next.
        self._prepared: deque[tuple[Frames, torch.Tensor, torch.Tensor, torch.Tensor]] = deque(maxlen=2)

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        boxes = torch.tensor([WHOLE]) if boxes is None else boxes
        canvas, information, pictures = self._prepare(frames)
        if mirror:
            canvas = canvas.flip(3)
            pictures = mirror_boxes(pictures)
        parts = [
            _resize(canvas[:, :, top:bottom, left:right], self._settings.side)
            for left, top, right, bottom in (boxes * _CANVAS).round().int().tolist()
        ]
        values = self.encode(torch.stack(parts, dim=1).flatten(0, 1))
        values = values.reshape(len(frames), len(boxes), 1, self._settings.dimension)
        # A part without detail looks like any other such part, so it is left empty.
        values[:, 1:] *= (_view_information(canvas, boxes[1:]) >= _LEAST_INFORMATION)[:, :, None, None]
        return FrameFeatures(
            values,
            torch.from_numpy(frames.timestamps.copy()),
            information,
            self.fingerprint,
            boxes=place_boxes(boxes, pictures),
        )

    def encode(self, squares: torch.Tensor) -> torch.Tensor:
        """Unit vectors [N, D] of squares [N, 3, side, side], uint8 or floating point, with values in 0..255."""
        parts = [
            self._network((part.to(self._device) / 255).contiguous(memory_format=torch.channels_last)).cpu()
            for part in torch.split(squares, _SQUARES_A_PASS)
        ]
        return torch.cat(parts) if parts else torch.zeros(0, self._settings.dimension)

    @property
    def side(self) -> int:
        """Side of the squares that :meth:`encode` takes, pixels."""
        return self._settings.side

    def _prepare(self, frames: Frames) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The pictures without their bars as squares, [T, 3, 128, 128] uint8; their information, [T]; and their boxes,
        [T, 4] shares of the frame."""
        for described, *prepared in self._prepared:
            if described is frames:
                canvas, information, pictures = prepared
                return canvas, information, pictures
        squares = []
        edges = bar_boxes(frames.images)
        for image, (top, bottom, left, right) in zip(frames.images, edges.tolist(), strict=True):
            picture = torch.from_numpy(np.ascontiguousarray(image[top:bottom, left:right]))
            squares.append(_resize(picture.permute(2, 0, 1)[None], _CANVAS))
        canvas = torch.cat(squares) if squares else torch.zeros(0, 3, _CANVAS, _CANVAS, dtype=torch.uint8)
        information = frame_information(frames.images)
        pictures = shares_of_edges(edges, frames.images.shape)
        self._prepared.append((frames, canvas, information, pictures))
        return canvas, information, pictures


def open_frame_extractor(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> FrameEncoderExtractor:
    """Open the extractor ``vidkin``; the target of the entry point ``vidkin.extractors: vidkin``.

    Args:
        name: ``vidkin``, ``vidkin?views=query`` or ``vidkin?views=none``.
        weights: Weights of another frame encoder; default: the bundled ones.
        whitening: Not accepted: the encoder's vectors need none.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: The name includes a model.
        InvalidArgumentError: The weights are damaged, a whitening was passed, or a setting is unknown.
    """
    parsed = parse_name(name)
    if parsed.path != "vidkin":
        raise UnknownExtractorError(f"extractor 'vidkin' takes no model, got {name!r}")
    views = check_views(parsed.typed_settings({"views": str}).get("views", "both"))
    if whitening is not None:
        raise InvalidArgumentError(f"extractor 'vidkin' takes no whitening, got {os.fspath(whitening)!r}")
    path = None if weights is None else Path(weights).expanduser()
    device_used = resolve_device(device)
    return FrameEncoderExtractor(load_frame_encoder(path), name=name, device=device_used, views=views)


def _view_information(canvas: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """Information in each box of the canvas [T, 3, 128, 128], computed as for whole frames: [T, V] in [0, 1]."""
    luma = torch.einsum("tchw,c->thw", canvas.float(), torch.tensor(LUMINANCE))
    cells = detailed_cells(luma)
    edges = (boxes * cells.shape[-1]).round().int().tolist()
    shares = [
        cells[:, top : max(bottom, top + 1), left : max(right, left + 1)].mean(dim=(1, 2))
        for left, top, right, bottom in edges
    ]
    return information_of_share(torch.stack(shares, dim=1)) if shares else torch.zeros(len(cells), 0)


def _resize(images: torch.Tensor, side: int) -> torch.Tensor:
    """Resize uint8 [T, 3, H, W] to squares; with channels last this is six times as fast as with floats."""
    images = images.contiguous(memory_format=torch.channels_last)
    return functional.interpolate(images, (side, side), mode="bilinear", antialias=True, align_corners=False)
