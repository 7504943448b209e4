"""The default extractor: vidkin's own small frame encoder, applied to views of every frame."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.contracts import Turn, Views
from vidkin.features.information import detailed_cells, information_of_share, look_at
from vidkin.features.resizing import Edges, resize_parts, resize_planes
from vidkin.features.sessions import SquareEncoder, open_square_encoder
from vidkin.features.views import (
    check_views,
    grid_suffix,
    mirror_boxes,
    place_boxes,
    predict_turned,
    shares_of_edges,
)
from vidkin.media.frames import LUMINANCE
from vidkin.similarity import WHOLE, FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Part of the fingerprint: increment it when the same frame would get different numbers.
_REVISION = 1
# Side of the square that views are cut from: a view of half the side still has as many pixels as the encoder sees.
_CANVAS = 128
# Frames whose views are cut at a time: few enough to stay in the processor's cache.
_FRAMES_A_PASS = 4
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
        pictures = mirror_boxes(prepared.pictures) if mirror else prepared.pictures
        values = self._describe(prepared.canvas, _edges(boxes, _CANVAS, mirror), mirror)
        # A part without detail looks like any other such part, so it is left empty.
        shares = _shares(prepared.cells, _edges(boxes[1:], prepared.cells.shape[-1], mirror))
        values[:, 1:] *= (information_of_share(shares) >= _LEAST_INFORMATION)[:, :, None, None]
        return FrameFeatures(
            values,
            frames.timestamps.copy(),
            prepared.information,
            self.fingerprint,
            boxes=place_boxes(boxes, pictures),
        )

    def predict_turned(self, features: FrameFeatures, turn: Turn) -> FrameFeatures | None:
        """See :class:`vidkin.features.contracts.PredictsTurns`."""
        return predict_turned(features, turn, encoder=self._encoder.digest)

    def extract_turned(self, frames: Frames, degrees: int, *, mirror: bool = False) -> FrameFeatures:
        """See :class:`vidkin.features.contracts.PredictsTurns`. The square that every view is cut from is turned, so
        that no frame is resized again."""
        prepared = self._prepare(frames)
        canvas = np.ascontiguousarray(np.rot90(prepared.canvas, -degrees // 90, axes=(0, 3)))
        values = self._describe(canvas, [(0, 0, _CANVAS, _CANVAS)], mirror)
        return FrameFeatures(values, frames.timestamps.copy(), prepared.information, self.fingerprint)

    @property
    def side(self) -> int:
        """Side of the squares that the encoder takes, pixels."""
        return self._encoder.side

    def _prepare(self, frames: Frames) -> _Prepared:
        for described, prepared in self._prepared:
            if described is frames:
                return prepared
        look = look_at(frames.images)
        edges = look.edges
        canvas = np.empty((_CANVAS, len(frames), 3, _CANVAS), np.uint8)
        for top, bottom, left, right in np.unique(edges, axis=0).tolist():
            alike = np.flatnonzero((edges == (top, bottom, left, right)).all(axis=1))
            for rows in np.split(alike, range(_FRAMES_A_PASS, len(alike), _FRAMES_A_PASS)):
                images = frames.images[rows, top:bottom, left:right]
                canvas[:, rows] = resize_planes(np.array(images.transpose(1, 0, 3, 2), np.float32, order="C"), _CANVAS)
        prepared = _Prepared(
            canvas,
            detailed_cells(np.einsum("ytcx,c->tyx", canvas, np.array(LUMINANCE, dtype=np.float32))),
            look.information,
            shares_of_edges(edges, frames.images.shape),
        )
        self._prepared.append((frames, prepared))
        return prepared

    def _describe(self, canvas: NDArray[np.uint8], parts: list[Edges], mirror: bool) -> NDArray[np.float32]:
        """Vectors [T, V, 1, D] of parts of the canvas [128, T, 3, 128]."""
        count, side = canvas.shape[1], self.side
        values = np.empty((count, len(parts), 1, self._encoder.dimension), np.float32)
        squares = np.empty((min(count, _FRAMES_A_PASS), len(parts), 3, side, side), np.float32)
        for first in range(0, count, _FRAMES_A_PASS):
            planes = canvas[:, first : first + _FRAMES_A_PASS].astype(np.float32)
            cut = resize_parts(planes, parts, side, out=squares[: planes.shape[1]])
            cut = cut[..., ::-1] if mirror else cut
            vectors = self._encoder.encode(cut.reshape(-1, 3, side, side))
            values[first : first + _FRAMES_A_PASS] = vectors.reshape(-1, *values.shape[1:])
        return values


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
        canvas: [128, T, 3, 128] uint8, the pictures without their bars as squares: row, frame, channel, column.
        cells: [T, 16, 16], whether a cell of the canvas has detail.
        information: [T] float32.
        pictures: [T, 4] float32, boxes of the pictures as shares of the frames.
    """

    canvas: NDArray[np.uint8]
    cells: NDArray[np.bool_]
    information: NDArray[np.float32]
    pictures: NDArray[np.float32]


def _edges(boxes: NDArray[np.float32], side: int, mirror: bool) -> list[Edges]:
    """Left, top, right, bottom of boxes [V, 4] on a square, back on the unflipped one if they lie on the mirrored."""
    edges = np.rint(boxes * side).astype(int)
    if mirror:
        edges[:, [0, 2]] = side - edges[:, [2, 0]]
    return [tuple(box) for box in edges.tolist()]


def _shares(cells: NDArray[np.bool_], parts: list[Edges]) -> NDArray[np.float32]:
    """Share of the cells [T, 16, 16] that have detail in each part, [T, V]."""
    shares = np.empty((len(cells), len(parts)), np.float32)
    for view, (left, top, right, bottom) in enumerate(parts):
        part = cells[:, top : max(bottom, top + 1), left : max(right, left + 1)]
        shares[:, view] = part.mean(axis=(1, 2), dtype=np.float32)
    return shares
