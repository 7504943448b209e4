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
from vidkin.features.information import (
    Edges,
    detailed_cells,
    distinct_boxes,
    information_of_share,
    look_at,
    resize_parts,
    resize_planes,
)
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

# Part of the fingerprint: increment it whenever the same frame would get different vectors.
_REVISION = 1
# Side of the square from which views are cut: a view of half the side still fills the encoder's input.
_CANVAS = 128
# Number of frames processed at a time: few enough to stay in the CPU's cache.
_FRAMES_PER_PASS = 4
# Minimum information of a part of the frame; parts with less are left empty.
_MIN_INFORMATION = 0.03
# Regions of a box by their number: the box alone, or 3 x 3 squares of half its sides followed by the box. On the canvas
# a square of half the side still fills the encoder's input.
_REGIONS = {
    1: (WHOLE,),
    10: (*((left, top, left + 0.5, top + 0.5) for top in (0.0, 0.25, 0.5) for left in (0.0, 0.25, 0.5)), WHOLE),
}


class FrameEncoderExtractor:
    """Unit vectors of the views of frames: [T, V, R, D].

    Black bars are cut off first: views are parts of the content area, and their boxes are shares of the frame. The
    content area is resized to a square once; every view is cut from that square, so the number of views does not
    multiply the cost of resizing.

    Args:
        encoder: The network that describes a square.
        name: The name under which it was opened.
        views: Side of a comparison that is also described in parts: ``both``, only the ``query`` (a smaller index that
            misses crops), or ``none``.
        regions: Number of descriptors of a view: 1 for the view as one square; or 10 for 3 x 3 overlapping squares of
            half its sides and the view, as for `classical`, so that a comparator can choose among regions.

    Attributes:
        fingerprint: A short hash of the network's settings and weights, plus any views, grid of views and number of
            regions that differ from the defaults.

    Raises:
        InvalidArgumentError: The number of regions is not supported.
    """

    # Between .0001, the most that noise and compression change a still image, and .002 for a moving hand.
    scorer = "copies?change_energy=0.001"
    short_side = 160

    def __init__(
        self, encoder: SquareEncoder, *, name: str = "vidkin", views: Views = "both", regions: int = 1
    ) -> None:
        if regions not in _REGIONS:
            raise InvalidArgumentError(f"regions must be {' or '.join(map(str, _REGIONS))}, got {regions}")
        self.name: Final = name
        self.views: Final = views
        self._encoder = encoder
        self._regions = np.array(_REGIONS[regions], np.float32)
        views_suffix = "" if views == "both" else f"-{views}"
        regions_suffix = "" if regions == 1 else f"-regions-{regions}"
        self.fingerprint: Final = (
            f"frame-encoder-{_REVISION}-{encoder.digest[:12]}{views_suffix}{grid_suffix(views)}{regions_suffix}"
        )
        # The most recently described frames, because their mirror images are usually requested next.
        self._prepared: deque[tuple[Frames, _Prepared]] = deque(maxlen=2)

    def extract(
        self, frames: Frames, *, mirror: bool = False, boxes: NDArray[np.float32] | None = None
    ) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        boxes = np.array([WHOLE], dtype=np.float32) if boxes is None else boxes
        prepared = self._prepare(frames)
        pictures = mirror_boxes(prepared.pictures) if mirror else prepared.pictures
        parts = self._parts(boxes)
        # A part without detail matches any other such part, so it is left empty; the whole frame never is.
        shares = _shares(prepared.cells, _edges(parts, prepared.cells.shape[-1], mirror))
        kept = information_of_share(shares) >= _MIN_INFORMATION
        kept[:, len(self._regions) - 1] = True
        values = self._describe(prepared.canvas, _edges(parts, _CANVAS, mirror), mirror, kept)
        return FrameFeatures(
            values.reshape(len(values), len(boxes), len(self._regions), values.shape[-1]),
            frames.timestamps.copy(),
            prepared.information,
            self.fingerprint,
            boxes=place_boxes(boxes, pictures),
        )

    def predict_turned(self, features: FrameFeatures, turn: Turn) -> FrameFeatures | None:
        """See :class:`vidkin.features.contracts.PredictsTurns`; None with several regions, whose order changes."""
        return predict_turned(features, turn, encoder=self._encoder.digest)

    def extract_turned(self, frames: Frames, degrees: int, *, mirror: bool = False) -> FrameFeatures:
        """See :class:`vidkin.features.contracts.PredictsTurns`. The canvas is rotated, so that no frame is resized
        again."""
        prepared = self._prepare(frames)
        canvas = np.ascontiguousarray(np.rot90(prepared.canvas, -degrees // 90, axes=(0, 3)))
        values = self._describe(canvas, _edges(self._parts(np.array([WHOLE], np.float32)), _CANVAS, mirror), mirror)
        return FrameFeatures(values[:, None], frames.timestamps.copy(), prepared.information, self.fingerprint)

    @property
    def side(self) -> int:
        """Side of the encoder's input, pixels."""
        return self._encoder.side

    def _prepare(self, frames: Frames) -> _Prepared:
        for described, prepared in self._prepared:
            if described is frames:
                return prepared
        look = look_at(frames.images)
        edges = look.edges
        canvas = np.empty((_CANVAS, len(frames), 3, _CANVAS), np.uint8)
        for top, bottom, left, right in distinct_boxes(edges):
            alike = np.flatnonzero((edges == (top, bottom, left, right)).all(axis=1))
            for rows in np.split(alike, range(_FRAMES_PER_PASS, len(alike), _FRAMES_PER_PASS)):
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

    def _parts(self, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """The regions [V R, 4] of boxes [V, 4], each box after its parts."""
        if len(self._regions) == 1:
            return boxes
        return place_boxes(self._regions, boxes).reshape(-1, 4).astype(np.float32)

    def _describe(
        self, canvas: NDArray[np.uint8], parts: list[Edges], mirror: bool, kept: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float32]:
        """Vectors [T, P, D] of P parts of the canvas [128, T, 3, 128]; zeros where ``kept`` [T, P] is False."""
        count, side = canvas.shape[1], self.side
        values = np.zeros((count, len(parts), self._encoder.dimension), np.float32)
        squares = np.empty((min(count, _FRAMES_PER_PASS), len(parts), 3, side, side), np.float32)
        for first in range(0, count, _FRAMES_PER_PASS):
            planes = canvas[:, first : first + _FRAMES_PER_PASS].astype(np.float32)
            cut = resize_parts(planes, parts, side, out=squares[: planes.shape[1]])
            cut = cut[..., ::-1] if mirror else cut
            rows = np.ones(cut.shape[:2], np.bool_) if kept is None else kept[first : first + _FRAMES_PER_PASS]
            chosen = cut.reshape(-1, 3, side, side) if rows.all() else cut[rows]
            values[first : first + _FRAMES_PER_PASS][rows] = self._encoder.encode(chosen)
        return values


def open_frame_extractor(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> FrameEncoderExtractor:
    """Open the extractor ``vidkin``; the target of the entry point ``vidkin.extractors: vidkin``.

    Args:
        name: ``vidkin``, ``vidkin?views=query`` or ``vidkin?views=none``; ``vidkin?regions=10`` describes 10 regions of
            the whole picture (and of each view, if ``views`` is set, too).
        weights: Weights of another frame encoder; default: the bundled weights.
        whitening: Not accepted, because the encoder's vectors need none.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: The name includes a model.
        InvalidArgumentError: The weights are damaged, a whitening was passed, or a setting is unknown.
    """
    parsed = parse_name(name)
    if parsed.path != "vidkin":
        raise UnknownExtractorError(f"extractor 'vidkin' takes no model, got {name!r}")
    settings = parsed.typed_settings({"views": str, "regions": int})
    regions = settings.get("regions", 1)
    views = check_views(settings.get("views", "both" if regions == 1 else "none"))
    if whitening is not None:
        raise InvalidArgumentError(f"extractor 'vidkin' takes no whitening, got {os.fspath(whitening)!r}")
    return FrameEncoderExtractor(open_square_encoder(weights, device=device), name=name, views=views, regions=regions)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Resized frames from which all views are cut.

    Attributes:
        canvas: [128, T, 3, 128] uint8, content areas resized to squares: row, frame, channel, column.
        cells: [T, 16, 16], whether each cell of the canvas has detail.
        information: [T] float32.
        pictures: [T, 4] float32, boxes of the content areas as shares of the frames.
    """

    canvas: NDArray[np.uint8]
    cells: NDArray[np.bool_]
    information: NDArray[np.float32]
    pictures: NDArray[np.float32]


def _edges(boxes: NDArray[np.float32], side: int, mirror: bool) -> list[Edges]:
    """Pixel edges (left, top, right, bottom) of boxes [V, 4] on the canvas; boxes on a mirrored canvas are flipped
    back."""
    edges = np.rint(boxes * side).astype(int)
    if mirror:
        edges[:, [0, 2]] = side - edges[:, [2, 0]]
    return [tuple(box) for box in edges.tolist()]


def _shares(cells: NDArray[np.bool_], parts: list[Edges]) -> NDArray[np.float32]:
    """Share [T, V] of cells [T, 16, 16] with detail in each part."""
    shares = np.empty((len(cells), len(parts)), np.float32)
    for view, (left, top, right, bottom) in enumerate(parts):
        part = cells[:, top : max(bottom, top + 1), left : max(right, left + 1)]
        shares[:, view] = part.mean(axis=(1, 2), dtype=np.float32)
    return shares
