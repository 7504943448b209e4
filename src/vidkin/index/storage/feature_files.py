"""Feature files: the features of each video in a separate file next to the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import parse_json
from vidkin.index.storage.files import reading, writing
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import (
    restore_parts,
    round_parts,
    to_stored,
)
from vidkin.similarity import FrameFeatures
from vidkin.similarity.contracts import THUMBNAIL

_SUFFIX = ".safetensors"
_FILES_PER_FOLDER = 1000
_NAMES = ("values", "timestamps", "information", "baseline")
_NAMES_OF_PARTS = ("part_frames", "part_views", "parts", "part_baselines", "boxes", "box_frames")
_OPTIONAL_NAMES = (*_NAMES_OF_PARTS, "thumbnails", "part_thumbnails", "__metadata__")
# Bit pattern of 1.0 in half precision, plus a margin for rounding.
_MAX_BITS = 0x3C00 + 8
# Values of parts (boxes and crops) are quantized to -7..7 and stored with this offset, two per byte, so that zero bytes
# indicate damage.
_ZERO = 8
_MAX_NUMBER = 7
# Maximum fraction of extreme values in a vector of at least this dimension: normally about 1 in 128, but all of them in
# a bad sector.
_MAX_EXTREME, _LONG = 0.25, 32
_TYPES = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "I8": np.int8,
    "U8": np.uint8,
    "I32": np.int32,
}


class FeatureFiles:
    """Features keyed by video id.

    Every search reads hundreds of feature sets as a whole, so separate files are ten times faster than a columnar
    table, and nothing is ever rewritten. A file is used only once a record refers to its id, so partial files are
    harmless.

    Args:
        place: Location of the store.
        folder: Folder within the store.
    """

    def __init__(self, place: Place, folder: str = "features") -> None:
        self._place = place
        self._folder = folder

    def write(self, video_id: int, features: FrameFeatures) -> None:
        """Save the features of a video in half precision, replacing earlier ones."""
        from safetensors.numpy import save

        content = save({name: np.ascontiguousarray(array) for name, array in _arrays(features).items()})
        with writing(self._place.address(self._folder)):
            self._place.write(self._name(video_id), content)

    def write_many(self, videos: Sequence[tuple[int, FrameFeatures]]) -> None:
        """Save the features of several videos, given with their ids; see :meth:`write`."""
        self._place.map(lambda video: self.write(*video), videos)

    def read(self, video_id: int) -> FrameFeatures:
        """Read the features of one video.

        Raises:
            CollectionDamagedError: Its file is missing, truncated or damaged.
        """
        name = self._name(video_id)
        with reading(self._place.address(name)):
            stored = self._place.read(name)
            if stored is None:
                raise FileNotFoundError(name)
            content = np.frombuffer(bytearray(stored), np.uint8)
            if len(content) < 8:
                raise ValueError(f"it has {len(content)} bytes")
            start = 8 + int(content[:8].view("<u8")[0])
            if start > len(content):
                raise ValueError("it has no header")
            header: dict[str, Any] = parse_json(content[8:start].tobytes())
            data = content[start:]
            try:
                if not set(header) <= {*_NAMES, *_OPTIONAL_NAMES}:
                    raise ValueError("its header is corrupted")
                values, times, information, baseline = (_array(data, header[name]) for name in _NAMES)
                if values.dtype != np.float16:
                    raise ValueError("the stored values are corrupted")
                thumbnails = _thumbnails(data, header, "thumbnails", len(values))
                features = FrameFeatures.of_whole(values, times, information, baseline=baseline, thumbnails=thumbnails)
                if "boxes" in header:
                    features = _restore_views(features, data, header)
            except (KeyError, TypeError, IndexError) as error:
                raise ValueError(f"its header is corrupted: {error}") from error
            # A bad sector leaves values that cannot occur in unit vectors: half of all 16-bit patterns exceed 1.
            # Comparing bits is faster than comparing floats.
            bits = values.view(np.uint16) & 0x7FFF
            if bits.size and int(bits.max()) > _MAX_BITS:
                raise ValueError("the stored values are corrupted")
            seconds = features.timestamps
            columns = np.concatenate([seconds, features.information, features.baselines.ravel()])
            if not np.isfinite(columns).all() or not (np.diff(seconds) > 0).all():
                raise ValueError("its times or weights are corrupted")
            return features

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Read the features of several videos, in order; see :meth:`read`."""
        return self._place.map(self.read, video_ids)

    def remove(self, video_ids: Iterable[int]) -> None:
        """Delete the files of these videos; ids without a file are ignored."""
        with writing(self._place.address(self._folder)):
            self._place.delete(map(self._name, video_ids))

    def remove_unfinished(self) -> None:
        """Delete unfinished files left by a killed writer; the caller must hold the write lock."""
        with writing(self._place.address(self._folder)):
            self._place.delete_unfinished(self._folder)

    def any(self) -> bool:
        """Whether there is at least one file."""
        return bool(self.sizes())

    def sizes(self) -> dict[int, int]:
        """Size in bytes of each file, keyed by video id, whether complete or not."""
        with reading(self._place.address(self._folder)):
            listing = self._place.sizes(self._folder)
        files = ((name.rpartition("/")[2], size) for name, size in listing.items())
        stems = ((name.removesuffix(_SUFFIX), size) for name, size in files if name.endswith(_SUFFIX))
        return {int(stem): size for stem, size in stems if stem.isdigit()}

    def _name(self, video_id: int) -> str:
        return f"{self._folder}/{video_id // _FILES_PER_FOLDER:06d}/{video_id:09d}{_SUFFIX}"


def _arrays(features: FrameFeatures) -> dict[str, NDArray[Any]]:
    """Convert features to the arrays of a file.

    They consist of vectors and thumbnails of whole frames; vectors (half a byte per value) and thumbnails of parts, for
    frames that have them; and boxes, wherever they change.
    """
    # Parts are quantized below; this rounds the rest.
    stored = to_stored(features, parts=False)
    arrays: dict[str, NDArray[Any]] = {
        "values": stored.whole,
        "timestamps": stored.timestamps,
        "information": stored.information,
        "baseline": stored.baselines[:, 0],
    }
    if stored.thumbnails is not None:
        arrays["thumbnails"] = stored.thumbnails[:, 0]
    if stored.boxes is None:
        return arrays
    numbers = round_parts(features.values[:, 1:].astype(np.float16, copy=False))
    frames = np.flatnonzero(numbers.any(axis=(1, 2, 3)))
    # Store only views that are used: in most videos, the slots for detected boxes are empty.
    views = np.flatnonzero(numbers.any(axis=(0, 2, 3))) + 1
    changes = np.flatnonzero((stored.boxes[1:] != stored.boxes[:-1]).any(axis=(1, 2))) + 1
    firsts = np.concatenate([[0], changes]) if len(stored) else changes
    rows = frames[:, None]
    if stored.thumbnails is not None:
        arrays["part_thumbnails"] = stored.thumbnails[rows, views]
    return {
        **arrays,
        "part_frames": frames.astype(np.int32),
        "part_views": views.astype(np.int32),
        "parts": _pack(numbers[rows, views - 1]),
        "part_baselines": stored.baselines[rows, views],
        "boxes": stored.boxes[firsts],
        "box_frames": np.diff(firsts, append=len(stored)).astype(np.int32),
    }


def _restore_views(features: FrameFeatures, data: NDArray[np.uint8], header: dict[str, Any]) -> FrameFeatures:
    frames, views, parts, baselines, boxes, counts = (_array(data, header[name]) for name in _NAMES_OF_PARTS)
    lengths_fit = int(counts.sum()) == len(features) and len(counts) == len(boxes)
    if parts.shape[:2] != (len(frames), len(views)) or baselines.shape != parts.shape[:2] or not lengths_fit:
        raise ValueError("its parts are corrupted")
    restored = _unpack(parts, features.values.shape[-1])
    rows = frames[:, None]
    values = np.zeros((len(features), boxes.shape[1], *features.values.shape[2:]), np.float16)
    values[:, :1] = features.values
    values[rows, views] = restored
    baseline = np.zeros((len(features), boxes.shape[1]), np.float32)
    baseline[:, :1] = features.baselines
    baseline[rows, views] = baselines
    thumbnails = None
    of_parts = _thumbnails(data, header, "part_thumbnails", len(frames), len(views))
    if (of_parts is None) != (features.thumbnails is None):
        raise ValueError("its thumbnails are corrupted")
    if features.thumbnails is not None and of_parts is not None:
        thumbnails = np.zeros((*values.shape[:2], THUMBNAIL, THUMBNAIL), np.uint8)
        thumbnails[:, :1] = features.thumbnails
        thumbnails[rows, views] = of_parts
    return replace(
        features, values=values, baseline=baseline, boxes=boxes.repeat(counts, axis=0), thumbnails=thumbnails
    )


def _thumbnails(data: NDArray[np.uint8], header: dict[str, Any], name: str, *counts: int) -> NDArray[np.uint8] | None:
    """Read thumbnails [*counts, 8, 8]; None if the file has none."""
    if name not in header:
        return None
    found = _array(data, header[name])
    if found.dtype != np.uint8 or found.shape != (*counts, THUMBNAIL, THUMBNAIL):
        raise ValueError("its thumbnails are corrupted")
    return found


def _pack(numbers: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Pack integers [..., D] in [-7, 7] two per byte; return uint8 [..., (D + 1) // 2]."""
    halves = (numbers + _ZERO).astype(np.uint8)
    if numbers.shape[-1] % 2:
        halves = np.concatenate([halves, np.full_like(halves[..., :1], _ZERO)], axis=-1)
    packed: NDArray[np.uint8] = halves[..., ::2] * 16 + halves[..., 1::2]
    return packed


@cache
def _halves() -> tuple[NDArray[np.complex64], NDArray[np.float32]]:
    """Lookup tables for the bytes of :func:`_pack`: the two values, and how many of them have the largest magnitude."""
    bytes_ = np.arange(256)
    numbers = np.stack([bytes_ // 16, bytes_ % 16], axis=-1).astype(np.float32) - _ZERO
    # A complex number combines both values, so that one lookup suffices.
    return numbers.view(np.complex64)[:, 0], (np.abs(numbers) == _MAX_NUMBER).sum(axis=-1, dtype=np.float32)


def _unpack(packed: NDArray[np.uint8], dimension: int) -> NDArray[np.float16]:
    """Restore the unit vectors [..., D], in half precision, from the result of :func:`_pack`."""
    padded = 2 * packed.shape[-1]
    if packed.dtype != np.uint8 or padded != dimension + dimension % 2:
        raise ValueError("the stored values are corrupted")
    pairs, largest_of_bytes = _halves()
    numbers = pairs[packed].view(np.float32)
    largest = largest_of_bytes[packed] @ np.ones(packed.shape[-1], np.float32)
    damaged = (packed < 16).any() or (packed & 15 == 0).any() or numbers[largest == 0].any()
    if dimension >= _LONG:
        damaged = damaged or (largest > _MAX_EXTREME * padded).any()
    if damaged:
        raise ValueError("the stored values are corrupted")
    return restore_parts(numbers[..., :dimension])


def _array(data: NDArray[np.uint8], entry: dict[str, Any]) -> NDArray[Any]:
    start, end = entry["data_offsets"]
    if end > len(data):
        raise ValueError(f"the last {end - len(data)} bytes are missing")
    array: NDArray[Any] = data[start:end].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return array
