"""The default extractor: vidkin's own small frame encoder, applied to views of every frame."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.contracts import Views
from vidkin.features.information import bar_boxes, detailed_cells, frame_information, information_of_share
from vidkin.features.square_encoder import SquareEncoder, open_square_encoder
from vidkin.features.views import check_views, grid_suffix, mirror_boxes, place_boxes, shares_of_edges
from vidkin.media.frames import LUMINANCE
from vidkin.similarity import WHOLE, FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Part of the fingerprint: increment it when the same frame would get different numbers.
_REVISION = 1
# Side of the square that views are cut from: a view of half the side still has as many pixels as the encoder sees.
_CANVAS = 128
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
        views: Which side of a comparison is also described in parts: ``both``, only the ``query`` (a smaller index
            that misses crops), or ``none``.

    Attributes:
        fingerprint: A short hash of the network's settings and weights, wherever they come from, its views unless both,
            and their grid if it is another than that of the first version.
    """

    # Noise and compression change a still picture by up to .0001, a moving hand by .002.
    scorer = "copies?change_energy=0.001"
    short_side = 160

    def __init__(self, encoder: SquareEncoder, *, name: str = "vidkin", views: Views = "both") -> None:
        self.name: Final = name
        self.views: Final = views
        self._encoder = encoder
        of_views = "" if views == "both" else f"-{views}"
        self.fingerprint: Final = f"frame-encoder-{_REVISION}-{encoder.digest[:12]}{of_views}{grid_suffix(views)}"
        # The most recently described frames: usually their mirror image is requested next.
        self._prepared: deque[tuple[Frames, _Prepared]] = deque(maxlen=2)

    def extract(
        self, frames: Frames, *, mirror: bool = False, boxes: NDArray[np.float32] | None = None
    ) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        boxes = np.array([WHOLE], dtype=np.float32) if boxes is None else boxes
        prepared = self._prepare(frames)
        canvas, pictures = prepared.canvas, prepared.pictures
        if mirror:
            canvas = canvas[:, :, ::-1]
            pictures = mirror_boxes(pictures)
        squares = np.empty((len(frames), len(boxes), self.side, self.side, 3), dtype=np.uint8)
        for view, (left, top, right, bottom) in enumerate(np.rint(boxes * _CANVAS).astype(int).tolist()):
            for square, picture in zip(squares[:, view], canvas[:, top:bottom, left:right], strict=True):
                square[:] = _resize(picture, self.side)
        values = self._encoder.encode(squares.reshape(-1, *squares.shape[2:]))
        values = values.reshape(len(frames), len(boxes), 1, self._encoder.dimension)
        # A part without detail looks like any other such part, so it is left empty.
        values[:, 1:] *= (_view_information(canvas, boxes[1:]) >= _LEAST_INFORMATION)[:, :, None, None]
        return FrameFeatures(
            values,
            frames.timestamps.copy(),
            prepared.information,
            self.fingerprint,
            boxes=place_boxes(boxes, pictures),
        )

    @property
    def side(self) -> int:
        """Side of the squares that the encoder takes, pixels."""
        return self._encoder.side

    def _prepare(self, frames: Frames) -> _Prepared:
        for described, prepared in self._prepared:
            if described is frames:
                return prepared
        edges = bar_boxes(frames.images)
        canvas = np.empty((len(frames), _CANVAS, _CANVAS, 3), dtype=np.uint8)
        for square, image, (top, bottom, left, right) in zip(canvas, frames.images, edges.tolist(), strict=True):
            square[:] = _resize(image[top:bottom, left:right], _CANVAS)
        prepared = _Prepared(canvas, frame_information(frames.images), shares_of_edges(edges, frames.images.shape))
        self._prepared.append((frames, prepared))
        return prepared


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
    return FrameEncoderExtractor(open_square_encoder(weights, device=device), name=name, views=views)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What every view of frames is made of.

    Attributes:
        canvas: [T, 128, 128, 3] uint8, the pictures without their bars as squares.
        information: [T] float32.
        pictures: [T, 4] float32, boxes of the pictures as shares of the frames.
    """

    canvas: NDArray[np.uint8]
    information: NDArray[np.float32]
    pictures: NDArray[np.float32]


def _view_information(canvas: NDArray[np.uint8], boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Information in each box of the canvas [T, 128, 128, 3], computed as for whole frames: [T, V] in [0, 1]."""
    cells = detailed_cells(canvas @ np.array(LUMINANCE, dtype=np.float32))
    edges = np.rint(boxes * cells.shape[-1]).astype(int).tolist()
    shares = [
        cells[:, top : max(bottom, top + 1), left : max(right, left + 1)].mean(axis=(1, 2), dtype=np.float32)
        for left, top, right, bottom in edges
    ]
    return information_of_share(np.stack(shares, axis=1) if shares else np.zeros((len(cells), 0), np.float32))


def _resize(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Resize an image [H, W, 3] to a square."""
    picture = Image.fromarray(np.ascontiguousarray(image))
    return np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR))
