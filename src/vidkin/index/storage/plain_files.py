"""What readers take from plain files beside the tables: the features of each video, the whitening of windows, and a
copy of the tables."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import parse_json
from vidkin.errors import CollectionDamagedError, CollectionError, InvalidArgumentError
from vidkin.index.storage.contract import WindowMatrix
from vidkin.index.storage.files import REMEDY, WHITENING_FILE, read_units, reading, write_whole, writing
from vidkin.index.storage.opening import LocalPlace
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import (
    VideoRecord,
    WindowVectors,
    WindowWhitening,
    restore_parts,
    round_parts,
    to_stored,
)
from vidkin.similarity import FrameFeatures

_SUFFIX = ".safetensors"
_FILES_A_FOLDER = 1000
_NAMES = ("values", "timestamps", "information", "baseline")
_NAMES_OF_PARTS = ("part_frames", "part_views", "parts", "part_baselines", "boxes", "box_frames")
_OPTIONAL_NAMES = (*_NAMES_OF_PARTS, "__metadata__")
# Bits of 1.0 in half precision, plus a margin for rounding.
_LARGEST_BITS = 0x3C00 + 8
# Older indexes store parts as bytes: multiples of 1/127, and the tolerance of squared lengths around 1.
_BYTE_STEPS = 127
_ROUNDED = 0.1
# Added to the numbers -7 to 7 of parts, two of which take a byte: half bytes of 0 are damage.
_ZERO = 8
_LARGEST_NUMBER = 7
# Share of a long vector's numbers that may be that large: about one in 128, but all of them in a bad sector.
_MOST_LARGEST, _LONG = 0.25, 32
_TYPES = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "I8": np.int8,
    "U8": np.uint8,
    "I32": np.int32,
}


class FeatureFiles:
    """Features by video id.

    Plain files and not a table, because they are read whole, by the hundred for every search, and never
    searched: a hundred videos take a tenth of the time that a columnar table takes, and nothing is ever
    rewritten. A file counts only once a record refers to its id, so half a file does no harm.

    Args:
        place: Place of the store.
        folder: Folder within the store.
    """

    def __init__(self, place: Place, folder: str = "features") -> None:
        self._place = place
        self._folder = folder

    def write(self, video_id: int, features: FrameFeatures) -> None:
        """Store the features of a video, rounded to half precision; replaces earlier ones."""
        from safetensors.numpy import save

        content = save({name: np.ascontiguousarray(array) for name, array in _arrays(features).items()})
        with writing(self._place.address(self._folder)):
            self._place.write(self._name(video_id), content)

    def write_many(self, videos: Sequence[tuple[int, FrameFeatures]]) -> None:
        """Store features of several videos by id, see :meth:`write`."""
        self._place.map(lambda video: self.write(*video), videos)

    def read(self, video_id: int) -> FrameFeatures:
        """Read the features of one video.

        Raises:
            CollectionDamagedError: Its file is missing, cut off or not what was written.
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
                    raise ValueError("its header is not what was written")
                values, times, information, baseline = (_array(data, header[name]) for name in _NAMES)
                if values.dtype != np.float16:
                    raise ValueError("its values are not what was written")
                features = FrameFeatures.of_whole(values, times, information, baseline=baseline)
                if "boxes" in header:
                    features = _with_parts(features, data, header)
            except (KeyError, TypeError, IndexError) as error:
                raise ValueError(f"its header is not what was written: {error}") from error
            # A bad sector leaves numbers that no unit vector has: half of all 16-bit patterns are larger than 1.
            # Bits are compared faster than numbers.
            bits = values.view(np.uint16) & 0x7FFF
            if bits.size and int(bits.max()) > _LARGEST_BITS:
                raise ValueError("its values are not what was written")
            seconds = features.timestamps
            columns = np.concatenate([seconds, features.information, features.baselines.ravel()])
            if not np.isfinite(columns).all() or not (np.diff(seconds) > 0).all():
                raise ValueError("its times or weights are not what was written")
            return features

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Read the features of several videos, in this order; see :meth:`read`."""
        return self._place.map(self.read, video_ids)

    def remove(self, video_ids: Iterable[int]) -> None:
        """Delete the files of these videos; ids without a file are ignored."""
        with writing(self._place.address(self._folder)):
            self._place.delete(map(self._name, video_ids))

    def remove_unfinished(self) -> None:
        """Delete unfinished files of a killed writer; only the sole writer may call this."""
        with writing(self._place.address(self._folder)):
            self._place.delete_unfinished(self._folder)

    def any(self) -> bool:
        """Whether there is at least one file."""
        return bool(self.sizes())

    def sizes(self) -> dict[int, int]:
        """Size in bytes of each video's file, complete or not, by id."""
        with reading(self._place.address(self._folder)):
            listing = self._place.sizes(self._folder)
        files = ((name.rpartition("/")[2], size) for name, size in listing.items())
        stems = ((name.removesuffix(_SUFFIX), size) for name, size in files if name.endswith(_SUFFIX))
        return {int(stem): size for stem, size in stems if stem.isdigit()}

    def _name(self, video_id: int) -> str:
        return f"{self._folder}/{video_id // _FILES_A_FOLDER:06d}/{video_id:09d}{_SUFFIX}"


def _arrays(features: FrameFeatures) -> dict[str, NDArray[Any]]:
    """What a file holds: the whole picture of every frame; parts of it, half a byte a value, of the frames in which
    they were described; boxes where they change."""
    # Parts are rounded below: this rounds the rest.
    stored = to_stored(features, parts=False)
    arrays: dict[str, NDArray[Any]] = {
        "values": stored.whole,
        "timestamps": stored.timestamps,
        "information": stored.information,
        "baseline": stored.baselines[:, 0],
    }
    if stored.boxes is None:
        return arrays
    numbers = round_parts(features.values[:, 1:].astype(np.float16, copy=False))
    frames = np.flatnonzero(numbers.any(axis=(1, 2, 3)))
    # Slots for detected boxes are empty in most videos.
    views = np.flatnonzero(numbers.any(axis=(0, 2, 3))) + 1
    changes = np.flatnonzero((stored.boxes[1:] != stored.boxes[:-1]).any(axis=(1, 2))) + 1
    firsts = np.concatenate([[0], changes]) if len(stored) else changes
    rows = frames[:, None]
    return {
        **arrays,
        "part_frames": frames.astype(np.int32),
        "part_views": views.astype(np.int32),
        "parts": _packed(numbers[rows, views - 1]),
        "part_baselines": stored.baselines[rows, views],
        "boxes": stored.boxes[firsts],
        "box_frames": np.diff(firsts, append=len(stored)).astype(np.int32),
    }


def _with_parts(features: FrameFeatures, data: NDArray[np.uint8], header: dict[str, Any]) -> FrameFeatures:
    frames, views, parts, baselines, boxes, counts = (_array(data, header[name]) for name in _NAMES_OF_PARTS)
    lengths_fit = int(counts.sum()) == len(features) and len(counts) == len(boxes)
    if parts.shape[:2] != (len(frames), len(views)) or baselines.shape != parts.shape[:2] or not lengths_fit:
        raise ValueError("its parts are not what was written")
    if parts.dtype == np.int8:  # of an older index, in bytes
        numbers = parts.astype(np.float32)
        lengths = np.vecdot(numbers, numbers) / _BYTE_STEPS**2
        if ((np.abs(lengths - 1) > _ROUNDED) & (lengths > 0)).any():
            raise ValueError("its values are not what was written")
        restored = (numbers / np.float32(_BYTE_STEPS)).astype(np.float16)
    else:
        restored = _unpacked(parts, features.values.shape[-1])
    rows = frames[:, None]
    values = np.zeros((len(features), boxes.shape[1], *features.values.shape[2:]), np.float16)
    values[:, :1] = features.values
    values[rows, views] = restored
    baseline = np.zeros((len(features), boxes.shape[1]), np.float32)
    baseline[:, :1] = features.baselines
    baseline[rows, views] = baselines
    return replace(features, values=values, baseline=baseline, boxes=boxes.repeat(counts, axis=0))


def _packed(numbers: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Pack numbers [..., D] from -7 to 7 two per byte: uint8 [..., (D + 1) // 2]."""
    halves = (numbers + _ZERO).astype(np.uint8)
    if numbers.shape[-1] % 2:
        halves = np.concatenate([halves, np.full_like(halves[..., :1], _ZERO)], axis=-1)
    packed: NDArray[np.uint8] = halves[..., ::2] * 16 + halves[..., 1::2]
    return packed


@cache
def _halves() -> tuple[NDArray[np.complex64], NDArray[np.float32]]:
    """What each byte of :func:`_packed` holds: its two numbers side by side, and how many are the largest."""
    bytes_ = np.arange(256)
    numbers = np.stack([bytes_ // 16, bytes_ % 16], axis=-1).astype(np.float32) - _ZERO
    # A complex number takes both from the table in one step.
    return numbers.view(np.complex64)[:, 0], (np.abs(numbers) == _LARGEST_NUMBER).sum(axis=-1, dtype=np.float32)


def _unpacked(packed: NDArray[np.uint8], dimension: int) -> NDArray[np.float16]:
    """The unit vectors [..., D] of :func:`_packed`, in half precision."""
    padded = 2 * packed.shape[-1]
    if packed.dtype != np.uint8 or padded != dimension + dimension % 2:
        raise ValueError("its values are not what was written")
    pairs, largest_of_bytes = _halves()
    numbers = pairs[packed].view(np.float32)
    largest = largest_of_bytes[packed] @ np.ones(packed.shape[-1], np.float32)
    damaged = (packed < 16).any() or (packed & 15 == 0).any() or numbers[largest == 0].any()
    if dimension >= _LONG:
        damaged = damaged or (largest > _MOST_LARGEST * padded).any()
    if damaged:
        raise ValueError("its values are not what was written")
    return restore_parts(numbers[..., :dimension])


def _array(data: NDArray[np.uint8], entry: dict[str, Any]) -> NDArray[Any]:
    start, end = entry["data_offsets"]
    if end > len(data):
        raise ValueError(f"{end - len(data)} bytes are missing at its end")
    array: NDArray[Any] = data[start:end].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return array


# Windows of new indexes are whitened by the root of the covariance.
WHITENING_POWER = 0.5

# Vectors of the background that a covariance needs for each dimension.
_VECTORS_A_DIMENSION = 8

_SHIPPED = LocalPlace(Path(__file__).with_name("data"))


def fit_whitening(fingerprint: str) -> WindowWhitening | None:
    """How windows of a new index are whitened: by the root of the covariance of the background photographs.

    None where nobody measured what it does: for extractors whose background does not ship, which includes those with a
    whitening of their own, and where it has too few vectors for a covariance.
    """
    background = shipped_background(fingerprint)
    if background is None or background.shape[1] != 1:
        return None
    count, _, dimension = background.shape
    return WindowWhitening.fit(background[:, 0], WHITENING_POWER) if count >= _VECTORS_A_DIMENSION * dimension else None


def shipped_background(fingerprint: str) -> NDArray[np.floating] | None:
    """Descriptors [N, R, D] of the background photographs, measured once for our own extractors; else None."""
    # Photographs are described alike whichever side of a comparison is cut into parts.
    names = dict.fromkeys([fingerprint, fingerprint.replace("-query", "", 1)])
    found = (read_units(_SHIPPED, f"{name}.safetensors", "background") for name in names)
    return next((background for background in found if background is not None), None)


def read_whitening(place: Place) -> WindowWhitening:
    """How the windows of this index are whitened.

    Raises:
        CollectionDamagedError: The file is missing or damaged; nothing can be searched without it.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    address = place.address(WHITENING_FILE)
    with reading(address):
        content = place.read(WHITENING_FILE)
        if content is None:
            raise CollectionDamagedError(f"{address} is missing; {REMEDY}")
        try:
            arrays = load(content)
        except SafetensorError as error:
            raise ValueError(str(error)) from error
        mean, turn = arrays["mean"], arrays["turn"]
        if mean.dtype != np.float32 or turn.dtype != np.float32 or turn.shape != (len(mean),) * 2:
            raise ValueError("its values are not what was written")
        if not (mean @ mean < 1 and np.isfinite(turn).all() and np.linalg.matrix_rank(turn) == len(mean)):
            raise ValueError("its values are not what was written")
        return WindowWhitening(mean, turn)


def write_whitening(place: Place, whitening: WindowWhitening) -> None:
    """Write what :func:`read_whitening` reads, whole or not at all."""
    from safetensors.numpy import save

    arrays = {"mean": whitening.mean, "turn": np.ascontiguousarray(whitening.turn)}
    write_whole(place, WHITENING_FILE, save(arrays))


# A copy of the tables of an index in one file: what a search or a list of the videos reads, without loading Lance.
#
# Loading Lance and PyArrow takes longer than most searches, and more memory than most indexes. So the last step of an
# update writes what both tables hold into one file, with what identifies the files of the tables at that moment. A
# reader takes the copy if the files are still the same ones, and the tables in any other case: nothing depends on it.


SNAPSHOT_FILE = "tables.snapshot"

_CHECKSUM = struct.Struct("!I")

# Part of what identifies the tables, so that a copy of another layout is not read.
_LAYOUT = "1"

_WINDOW_TYPES = {
    "vectors": np.float16,
    "video_ids": np.int64,
    "windows": np.int64,
    "starts": np.float64,
    "ends": np.float64,
    "first_frames": np.int64,
    "last_frames": np.int64,
}


@dataclass(frozen=True)
class SnapshotWindows:
    """All windows of an index, in the order of the table.

    Attributes:
        vectors: [N, E] float16.
        video_ids, windows: [N] int64, as in :class:`~vidkin.index.storage.contract.WindowMatrix`.
        starts, ends, first_frames, last_frames: [N], as in :class:`~vidkin.index.storage.records.WindowVectors`.
    """

    vectors: NDArray[np.float16]
    video_ids: NDArray[np.int64]
    windows: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    first_frames: NDArray[np.int64]
    last_frames: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, kind in _WINDOW_TYPES.items():
            column = getattr(self, name)
            shape = column.shape if name != "vectors" else column.shape[:-1]
            if column.dtype != kind or shape != (len(self.vectors),):
                raise InvalidArgumentError(
                    f"{name} must be of {len(self.vectors)} windows and {np.dtype(kind)}, got {list(column.shape)} "
                    f"{column.dtype}"
                )

    @cached_property
    def matrix(self) -> WindowMatrix:
        """The window vectors as one matrix in float32, made when it is first asked for."""
        return WindowMatrix(self.vectors.astype(np.float32), self.video_ids, self.windows)

    def of_videos(self, video_ids: Sequence[int]) -> list[WindowVectors]:
        """The windows of each of these videos, vectors as float16."""
        rows = np.flatnonzero(np.isin(self.video_ids, video_ids))
        rows = rows[np.lexsort((self.windows[rows], self.video_ids[rows]))]
        owners = self.video_ids[rows]
        firsts, ends = (np.searchsorted(owners, video_ids, side) for side in ("left", "right"))
        return [self._of_rows(rows[first:end]) for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]

    def _of_rows(self, rows: NDArray[np.int64]) -> WindowVectors:
        return WindowVectors(
            self.vectors[rows], self.starts[rows], self.ends[rows], self.first_frames[rows], self.last_frames[rows]
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the tables held when it was written.

    Attributes:
        state: Identifies the files of the tables, from :func:`state_of_tables`.
        records: Records of all videos.
        windows: All windows; None if there are so many that Lance searches them.
    """

    state: str
    records: Sequence[VideoRecord]
    windows: SnapshotWindows | None


def state_of_tables(place: Place, tables: Iterable[str]) -> str | None:
    """Identify the files of tables as they are now: another commit, another text.

    None on object storage, where asking takes as long as opening the tables.
    """
    if place.folder is None:
        return None
    found = []
    for table in tables:
        root = place.address(table)
        for folder, _, files in os.walk(root):
            name = table + folder[len(root) :]
            for file in files:
                try:
                    status = os.stat(f"{folder}{os.sep}{file}")
                except FileNotFoundError:  # a writer has just removed it
                    continue
                found.append((f"{name}{os.sep}{file}", status.st_size, status.st_mtime_ns))
    return hashlib.blake2b(repr((_LAYOUT, sorted(found))).encode(), digest_size=16).hexdigest()


def read_snapshot(place: Place, tables: Iterable[str]) -> Snapshot | None:
    """Read the copy of the tables; None if there is none, if they have changed since, or if it is damaged."""
    state = state_of_tables(place, tables)
    if state is None:
        return None
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = place.read(SNAPSHOT_FILE)
        if content is None or _CHECKSUM.unpack_from(content)[0] != zlib.crc32(content[_CHECKSUM.size :]):
            return None
        arrays = load(content[_CHECKSUM.size :])
        if arrays["state"].tobytes().decode() != state:
            return None
        names, *rows = parse_json(arrays["records"].tobytes())
        at = names.index("path")
        for row in rows:
            # The bytes of a name are kept, as in the tables: another process may have another encoding for them.
            row[at] = os.fsdecode(row[at].encode("utf-8", "surrogateescape"))
        records = [VideoRecord(**dict(zip(names, row, strict=True))) for row in rows]
        windows = SnapshotWindows(**{name: arrays[name] for name in _WINDOW_TYPES}) if "vectors" in arrays else None
        return Snapshot(state, records, windows)
    except (OSError, struct.error, SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def write_snapshot(place: Place, snapshot: Snapshot) -> None:
    """Write the copy that :func:`read_snapshot` reads; whoever cannot has none."""
    from safetensors.numpy import save

    names = [field.name for field in fields(VideoRecord)]
    rows = [[getattr(record, name) for name in names] for record in snapshot.records]
    at = names.index("path")
    for row in rows:
        row[at] = os.fsencode(row[at]).decode("utf-8", "surrogateescape")
    records = json.dumps([names, *rows], separators=(",", ":"))
    arrays: dict[str, NDArray[Any]] = {"state": _bytes(snapshot.state), "records": _bytes(records)}
    if snapshot.windows is not None:
        arrays |= {name: np.ascontiguousarray(getattr(snapshot.windows, name)) for name in _WINDOW_TYPES}
    content = save(arrays)
    try:
        place.write(SNAPSHOT_FILE, _CHECKSUM.pack(zlib.crc32(content)) + content, sync=False)
    except (OSError, CollectionError):
        return  # the tables hold all of it


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)
