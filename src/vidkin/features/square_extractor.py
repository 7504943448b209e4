"""Describe frames, or ten regions of them, with a small-square network trained by `vidkin train frame-encoder`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.information import (
    Edges,
    detailed_cells,
    information_of_share,
    look_at,
    make_thumbnails,
    resize_parts,
    resize_planes,
)
from vidkin.features.sessions import SquareEncoder, open_square_encoder
from vidkin.media.frames import LUMINANCE
from vidkin.similarity import WHOLE, FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Part of the fingerprint; increment it whenever the same frame would get different vectors.
_REVISION = 1
# Side of the square from which views are cropped; a view of half this side still fills the encoder's input.
_CANVAS = 128
# Number of frames to process at a time; few enough to stay in the CPU's cache.
_FRAMES_PER_PASS = 4
# Minimum information of a part of the frame; the vectors of other parts are zero.
_MIN_INFORMATION = 0.03
# Regions of a box, by their number: the box alone, or 3 x 3 squares of half its sides followed by the box. On the
# canvas, a square of half the side still fills the encoder's input.
_REGIONS = {
    1: (WHOLE,),
    10: (*((left, top, left + 0.5, top + 0.5) for top in (0.0, 0.25, 0.5) for left in (0.0, 0.25, 0.5)), WHOLE),
}


class SquareExtractor:
    """Extracts unit vectors [T, V, R, D] with a network for small squares.

    The frame is resized to a square once, including any black bars, and all views are cropped from that square.

    Args:
        encoder: The network that describes a square.
        name: The name under which the extractor was opened.
        regions: Number of descriptors per view: 1 for the view as one square, or 10 for 3 x 3 overlapping squares of
            half its sides followed by the view, as in `classical`, so that a comparator can choose among regions.

    Attributes:
        fingerprint: A short hash of the network's settings and weights, followed by the number of regions if not 1.

    Raises:
        InvalidArgumentError: The number of regions is not supported.
    """

    scorer = "copies"
    short_side = 160

    def __init__(self, encoder: SquareEncoder, *, name: str = "squares", regions: int = 1) -> None:
        if regions not in _REGIONS:
            raise InvalidArgumentError(f"regions must be {' or '.join(map(str, _REGIONS))}, got {regions}")
        self.name: Final = name
        self.describes_boxes: Final = regions == 1
        self._encoder = encoder
        self._regions = np.array(_REGIONS[regions], np.float32)
        regions_suffix = "" if regions == 1 else f"-regions-{regions}"
        self.fingerprint: Final = f"squares-{_REVISION}-{encoder.digest[:12]}{regions_suffix}"

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Describe frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        boxes = np.array([WHOLE], dtype=np.float32) if boxes is None else boxes
        prepared = self._prepare(frames)
        parts = self._parts(boxes)
        # A part without detail would match any other such part, so its vector stays zero, except for the whole frame.
        shares = _detail_fractions(prepared.cells, _edges(parts, prepared.cells.shape[-1]))
        kept = information_of_share(shares) >= _MIN_INFORMATION
        kept[:, len(self._regions) - 1] = True
        values = self._describe(prepared.canvas, _edges(parts, _CANVAS), kept)
        return FrameFeatures(
            values.reshape(len(values), len(boxes), len(self._regions), values.shape[-1]),
            frames.timestamps.copy(),
            prepared.information,
            self.fingerprint,
            boxes=np.tile(boxes, (len(values), 1, 1)),
            thumbnails=make_thumbnails(prepared.luma, boxes),
        )

    @property
    def side(self) -> int:
        """Side of the encoder's input in pixels."""
        return self._encoder.side

    def _prepare(self, frames: Frames) -> _Prepared:
        look = look_at(frames.images)
        canvas = np.empty((_CANVAS, len(frames), 3, _CANVAS), np.uint8)
        for first in range(0, len(frames), _FRAMES_PER_PASS):
            rows = slice(first, first + _FRAMES_PER_PASS)
            images = frames.images[rows].transpose(1, 0, 3, 2)
            canvas[:, rows] = resize_planes(np.array(images, np.float32, order="C"), _CANVAS)
        cells = detailed_cells(np.einsum("ytcx,c->tyx", canvas, np.array(LUMINANCE, dtype=np.float32)))
        return _Prepared(canvas, cells, look.luma, look.information)

    def _parts(self, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the regions [V R, 4] of boxes [V, 4]; each box follows its parts."""
        if len(self._regions) == 1:
            return boxes
        corner, size = boxes[:, None, [0, 1, 0, 1]], (boxes[:, 2:] - boxes[:, :2])[:, None, [0, 1, 0, 1]]
        return np.asarray((corner + size * self._regions).reshape(-1, 4), np.float32)

    def _describe(self, canvas: NDArray[np.uint8], parts: list[Edges], kept: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Compute vectors [T, P, D] of P parts of the canvas [128, T, 3, 128]; zeros where ``kept`` [T, P] is False."""
        count, side = canvas.shape[1], self.side
        values = np.zeros((count, len(parts), self._encoder.dimension), np.float32)
        squares = np.empty((min(count, _FRAMES_PER_PASS), len(parts), 3, side, side), np.float32)
        for first in range(0, count, _FRAMES_PER_PASS):
            planes = canvas[:, first : first + _FRAMES_PER_PASS].astype(np.float32)
            cut = resize_parts(planes, parts, side, out=squares[: planes.shape[1]])
            rows = kept[first : first + _FRAMES_PER_PASS]
            chosen = cut.reshape(-1, 3, side, side) if rows.all() else cut[rows]
            values[first : first + _FRAMES_PER_PASS][rows] = self._encoder.encode(chosen)
        return values


def open_square_extractor(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> SquareExtractor:
    """Open the extractor ``squares``; factory for the registry.

    Args:
        name: ``squares``, or ``squares?regions=10`` for 10 regions of the full frame.
        weights: Weights of another frame encoder; default: the bundled weights.
        whitening: Not accepted, because the encoder's vectors need none.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: The name includes a model.
        InvalidArgumentError: The weights are damaged, a whitening was passed, or a setting is unknown.
    """
    parsed = parse_name(name)
    if parsed.path != "squares":
        raise UnknownExtractorError(f"extractor 'squares' takes no model, got {name!r}")
    regions = parsed.typed_settings({"regions": int}).get("regions", 1)
    if whitening is not None:
        raise InvalidArgumentError(f"extractor 'squares' takes no whitening, got {os.fspath(whitening)!r}")
    return SquareExtractor(open_square_encoder(weights, device=device), name=name, regions=regions)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Resized frames from which all views are cropped.

    Attributes:
        canvas: [128, T, 3, 128] uint8, frames resized to squares: row, frame, channel, column.
        cells: [T, 16, 16], whether each cell of the canvas has detail.
        luma: [T, 128, 128] float32.
        information: [T] float32.
    """

    canvas: NDArray[np.uint8]
    cells: NDArray[np.bool_]
    luma: NDArray[np.float32]
    information: NDArray[np.float32]


def _edges(boxes: NDArray[np.float32], side: int) -> list[Edges]:
    """Return the pixel edges (left, top, right, bottom) of boxes [V, 4] on the canvas."""
    return [tuple(box) for box in np.rint(boxes * side).astype(int).tolist()]


def _detail_fractions(cells: NDArray[np.bool_], parts: list[Edges]) -> NDArray[np.float32]:
    """Return the fraction [T, V] of cells [T, 16, 16] with detail in each part."""
    shares = np.empty((len(cells), len(parts)), np.float32)
    for view, (left, top, right, bottom) in enumerate(parts):
        part = cells[:, top : max(bottom, top + 1), left : max(right, left + 1)]
        shares[:, view] = part.mean(axis=(1, 2), dtype=np.float32)
    return shares
