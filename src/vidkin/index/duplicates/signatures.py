"""First stage for many videos at once: candidates for copies as a whole, by what each video shows on average.

A copy as a whole shows the same scenes, whatever their speed, so that the mean over time of its pictures is near that
of the original, or near the mean of one of its parts if it was cropped. One product of matrices compares all of them,
where looking up the windows of each video by itself takes a search each.

Shapes: V videos; N views of all videos; D dimensions.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import read_at
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import WindowVectors
from vidkin.similarity import FrameFeatures

# Videos whose windows are read at a time.
_VIDEOS_A_BLOCK = 128
# Videos that are looked up at a time, those that they are compared with before the best of them are kept, and views of
# these whose cosines are in the processor's cache at a time.
_ROWS_AT_ONCE, _VIDEOS_AT_ONCE, _VIEWS_AT_ONCE = 256, 8192, 2048
# Bytes of a piece of what is kept, at least and at most. The C library returns the memory of what is larger than 32 MiB
# as soon as it is freed, whatever lies beside it.
_SMALLEST_PIECE, _LARGEST_PIECE = 1 << 20, 33 << 20
_ROWS_AT_A_TIME = 1 << 14
# Least cosine of a candidate, as it is and after a turn. Of 840 pairs of edited copies one in a hundred was below .4 in
# one direction; so are half of all unrelated pairs.
_LEAST_ALIKE, _LEAST_TURNED = 0.25, 0.4

# What two videos must share: calibrated similarity beyond this (a score counts it from .3 on; a stretch of frames is a
# little less similar than its best frame), for this share of the longer one (`pairing` asks for .04 by frames). Parts
# of pictures are similar by chance, as in `vidkin.similarity.evidence`. Of 168 pairs of copies of eight films that were
# held back (crop, speed, caption, borders, mirror, encoding) and of 80 composed ones, none is left out.
_LEAST_SIMILAR, _LEAST_SHARED, _PART_FLOOR = 0.3, 0.02, 0.15
# Largest value of a byte, and bytes of windows that are held in memory: of about ten thousand videos of a minute. More
# are held in temporary files.
_BYTE, _MOST_HELD = 127.0, 384 << 20

_logger = logging.getLogger(__name__)
_Number = TypeVar("_Number", bound=np.generic)

MeasureBaseline = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""How similar unrelated pictures are to each of these, [N, D] to [N]."""

PoseName = str
"""A turn, see :data:`vidkin.features.contracts.Turn`, or one by degrees with a flip afterwards: "turned 90,
mirrored"."""

Predict = Callable[[FrameFeatures, PoseName], FrameFeatures | None]
"""Whole pictures after a turn, predicted; None if nobody can tell. See
:class:`vidkin.features.contracts.PredictsTurns`."""


@dataclass(frozen=True, slots=True, eq=False)
class Signatures:
    """Mean vectors of videos, for finding candidates of all of them.

    The mean of all videos is subtracted first: what all pictures have in common makes none of them alike.

    Attributes:
        rows: Id of a video -> its place among the V videos; videos without windows have none.
        ids: [V] int64.
        views: [N, D] float32, unit vectors of all views of all videos, the whole picture first.
        firsts: [V] int64, the first view of each video.
        turned: PoseName -> [V, D] float32, unit vectors of the whole pictures after it, as far as that can be told.
        windows: What candidates must share more closely; None leaves that to those who compare them.
    """

    rows: dict[int, int]
    ids: NDArray[np.int64]
    views: NDArray[np.float32]
    firsts: NDArray[np.int64]
    turned: dict[PoseName, NDArray[np.float32]]
    windows: _HeldWindows | None = None
    _wholes: NDArray[np.float32] = field(init=False)  # [V, D]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_wholes", self.views[self.firsts])

    @classmethod
    def of(
        cls,
        store: VectorStore,
        video_ids: Sequence[int],
        predict: Predict | None = None,
        turns: Sequence[PoseName] = (),
        measure: MeasureBaseline | None = None,
    ) -> Signatures:
        """Read the windows of these videos, block by block.

        Args:
            store: Store of the index.
            video_ids: The videos.
            predict: Predicts pictures after a turn; None if no turns are asked for.
            turns: The turns.
            measure: Baselines of pictures; with them, candidates that share nothing are left out.

        Raises:
            NotIndexedError: A video was removed meanwhile.
        """
        ids: list[int] = []
        means = _Rows[np.float32]()
        counts: list[int] = []
        after: dict[PoseName, _Rows[np.float32]] = {turn: _Rows() for turn in turns}
        held = None if measure is None else _HeldWindows(measure)
        for first in range(0, len(video_ids), _VIDEOS_A_BLOCK):
            block = video_ids[first : first + _VIDEOS_A_BLOCK]
            read = [
                (video, part) for video, part in zip(block, store.read_windows_many(block), strict=True) if len(part)
            ]
            if not read:
                continue
            ids += [video for video, _ in read]
            parts = [_views_of(part) for _, part in read]
            means.add(np.concatenate(parts))
            counts += map(len, parts)
            wholes = [part.of_whole() for _, part in read]
            foreseen: dict[PoseName, NDArray[np.float32]] = {}
            for turn, found in list(after.items()):
                predicted = None if predict is None else _predicted(wholes, turn, predict)
                if predicted is None:
                    del after[turn]  # for no video, then
                    continue
                found.add(_means_of(wholes, predicted))
                foreseen[turn] = predicted
            try:
                if held is not None:
                    held.add([part for _, part in read], wholes, foreseen)
            except OSError as error:  # a full disk
                _logger.info("%s; all candidates are compared, which takes longer", error)
                held = None
        views = means.join() if ids else np.zeros((0, 0), np.float32)
        number = np.array(counts, np.int64)
        firsts = np.cumsum(number) - number
        center = views[firsts].mean(axis=0) if len(ids) else np.zeros(0, np.float32)
        _center(views, center)
        turned = {turn: _center(found.join(), center) for turn, found in after.items() if ids}
        rows = {video: row for row, video in enumerate(ids)}
        return cls(rows, np.array(ids, np.int64), views, firsts, turned, None if held is None else held.joined())

    def neighbors(
        self, video_ids: Sequence[int], count: int, *, turn: PoseName | None = None, both: bool = False
    ) -> Iterator[tuple[int, list[int]]]:
        """The most similar other videos of each of these, best first; at most ``count``, and only what is alike at all.

        A video's whole picture is compared with all views of the others; turned by degrees, with their whole pictures.

        Args:
            video_ids: The videos; those without windows have no neighbors.
            count: Number of neighbors.
            turn: Compare the videos as they look after this turn; none are found if that cannot be told.
            both: Also compare their views with the whole pictures of the others, which else is left to the others.
        """
        wholes = self._wholes if turn is None else self.turned.get(turn)
        least = _LEAST_ALIKE if turn is None else _LEAST_TURNED
        for block in self.blocks(video_ids):
            rows = np.array([self.rows[video] for video in block if video in self.rows], np.int64)
            if wholes is None or not len(rows):
                yield from ((video, []) for video in block)
                continue
            best, last = _Best(rows, count, least), 0
            while last < len(self.ids):
                # The best of a few leave little to look at in the many that follow.
                first, last = last, min(4 * last + count, last + _VIDEOS_AT_ONCE, len(self.ids))
                alike = self._alike(wholes[rows], first, last, all_views=turn in (None, "mirrored"))
                if both and turn is None:
                    alike = np.maximum(alike, self._as_parts(rows, first, last))
                best.add(alike, first)
            near = zip(rows.tolist(), best.columns(), strict=True)
            found = {int(self.ids[row]): self._sharing(row, columns, turn, both=both) for row, columns in near}
            yield from ((video, found.get(video, [])) for video in block)

    def start(self, place: Place, store: VectorStore) -> Signatures:
        """Themselves: they are a :class:`~vidkin.index.storage.tasks.MappedJob` that finds neighbors anywhere."""
        return self

    def blocks(self, video_ids: Sequence[int]) -> Iterator[Sequence[int]]:
        """The videos in parts for :meth:`neighbors_of`, which compares the same arrays for all parts as for all."""
        yield from (video_ids[first : first + _ROWS_AT_ONCE] for first in range(0, len(video_ids), _ROWS_AT_ONCE))

    def neighbors_of(
        self, video_ids: Sequence[int], count: int, turn: PoseName | None, both: bool
    ) -> list[tuple[int, list[int]]]:
        """:meth:`neighbors` of one part."""
        return list(self.neighbors(video_ids, count, turn=turn, both=both))

    def _alike(self, ones: NDArray[np.float32], first: int, last: int, *, all_views: bool) -> NDArray[np.float32]:
        """The best cosine [R, last - first] of vectors [R, D] with any view of some videos, or with their whole
        pictures.

        A few views at a time: their cosines stay in the processor's cache until the best of each video is known.
        """
        if not all_views:
            return ones @ self._wholes[first:last].T
        best = np.empty((len(ones), last - first), np.float32)
        ends, begin = np.append(self.firsts[1:], len(self.views)), first
        while begin < last:
            view = int(self.firsts[begin])
            end = min(last, max(begin + 1, int(np.searchsorted(ends, view + _VIEWS_AT_ONCE, side="right"))))
            cosines = ones @ self.views[view : int(ends[end - 1])].T
            best[:, begin - first : end - first] = np.maximum.reduceat(cosines, self.firsts[begin:end] - view, axis=1)
            begin = end
        return best

    def _sharing(self, row: int, near: NDArray[np.int64], turn: PoseName | None, *, both: bool) -> list[int]:
        """Ids of those rows that may share a part of their length with a video."""
        if self.windows is not None and len(near):
            share = self.windows.share(row, near, turn)
            if both and turn is None:
                share |= np.array([bool(self.windows.share(other, np.array([row]))[0]) for other in near.tolist()])
            near = near[share]
        found: list[int] = self.ids[near].tolist()
        return found

    def _as_parts(self, rows: NDArray[np.int64], first: int, last: int) -> NDArray[np.float32]:
        """The best cosine [rows, last - first] of the views of some videos with the whole pictures of others."""
        ends = np.append(self.firsts[1:], len(self.views))
        wholes = self._wholes[first:last]
        best = [(wholes @ self.views[self.firsts[row] : ends[row]].T).max(axis=1) for row in rows.tolist()]
        return np.stack(best)


class _Best:
    """The best columns of rows, of columns that come in parts.

    Args:
        own: [R] the column of each row that is none of them: the video itself.
        count: Number of columns.
        least: Least value of any of them.
    """

    def __init__(self, own: NDArray[np.int64], count: int, least: float) -> None:
        self._own, self._count = own, count
        self._least = np.full((len(own), 1), least, np.float32)  # of each row, once it has so many
        nothing = np.zeros(0, np.int64)
        self._rows, self._columns, self._values = nothing, nothing, np.zeros(0, np.float32)

    def add(self, values: NDArray[np.float32], first: int) -> None:
        """Add columns [R, C] from the place ``first`` on, which are changed; those before were added before."""
        is_here = (self._own >= first) & (self._own < first + values.shape[1])
        values[np.flatnonzero(is_here), self._own[is_here] - first] = -2.0
        rows, columns = np.nonzero(values >= self._least)
        rows = np.concatenate([self._rows, rows])
        values = np.concatenate([self._values, values[rows[len(self._rows) :], columns]])
        columns = np.concatenate([self._columns, columns + first])
        order = np.lexsort((columns, -values, rows))  # of equals the lower place
        rows = rows[order]
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        self._least[rows[place == self._count - 1], 0] = values[order[place == self._count - 1]]
        order = order[place < self._count]
        self._rows, self._columns, self._values = rows[place < self._count], columns[order], values[order]

    def columns(self) -> list[NDArray[np.int64]]:
        """The columns of each row, best first."""
        return np.split(self._columns, np.searchsorted(self._rows, np.arange(1, len(self._own))))


class _HeldWindows:
    """Windows of all views of all videos in bytes, to see of two videos whether they share anything for a while.

    As the scorer does, similarities count from a baseline on, and every second of either video counts once with the
    best moment of the other; but stretches of similar frames are compared in place of frames, and nothing is read.

    Args:
        measure: Baselines of pictures.
    """

    def __init__(self, measure: MeasureBaseline) -> None:
        self._measure = measure
        self._nbytes = 0
        self._parts, self._seconds = _Rows[np.int8](), _Rows[np.float32]()
        self._sizes = _Rows[np.int64]()  # windows of each view
        self._views: list[int] = []  # views of each video
        self._floors: dict[PoseName | None, _Rows[np.float32]] = {None: _Rows()}
        self._wholes: dict[PoseName, _Rows[np.int8]] = {}

    def add(
        self,
        windows: Sequence[WindowVectors],
        wholes: Sequence[WindowVectors],
        turned: Mapping[PoseName, NDArray[np.float32]],
    ) -> None:
        """Add those of some videos, of their whole pictures alone, and of these after each turn.

        Raises:
            OSError: They do not fit into a temporary file.
        """
        for part in windows:
            self._parts.add(vectors := _in_bytes(part.vectors))
            self._count(vectors)
            starts = _view_starts(part)
            self._seconds.add(np.maximum(part.ends - part.starts, 1e-3).astype(np.float32))
            self._sizes.add(np.diff(np.append(starts, len(part))))
            self._views.append(len(starts))
        self._floors[None].add(self._measure(np.concatenate([whole.vectors for whole in wholes]).astype(np.float32)))

        for turn, predicted in turned.items():
            self._wholes.setdefault(turn, _Rows()).add(vectors := _in_bytes(predicted))
            self._floors.setdefault(turn, _Rows()).add(self._measure(predicted))
            self._count(vectors)

    def _count(self, vectors: NDArray[np.int8]) -> None:
        """Take vectors into account that were added; once there are too many, all are moved to files."""
        self._nbytes += vectors.nbytes
        if self._nbytes > _MOST_HELD:
            for rows in (self._parts, *self._wholes.values()):
                rows.move_to_file()

    def joined(self) -> _HeldWindows:
        """The same, ready for questions."""
        has_any = bool(self._views)
        self._all: _Vectors = self._parts.join() if has_any else np.zeros((0, 0), np.int8)
        self._all_seconds = self._seconds.join() if has_any else np.zeros(0, np.float32)
        sizes = self._sizes.join() if has_any else np.zeros(0, np.int64)
        self._window_ends = np.append(0, np.cumsum(sizes))  # [views + 1]
        self._view_ends = np.append(0, np.cumsum(np.array(self._views, np.int64)))  # [videos + 1]
        whole_sizes = sizes[self._view_ends[:-1]] if len(sizes) else sizes
        self._whole_ends = np.append(0, np.cumsum(whole_sizes))
        self._turned: dict[PoseName, _Vectors] = {turn: parts.join() for turn, parts in self._wholes.items()}
        self._all_floors = {turn: parts.join() for turn, parts in self._floors.items() if has_any}
        del self._measure  # it holds the store, which other processes have themselves
        return self

    def share(self, row: int, others: NDArray[np.int64], turn: PoseName | None = None) -> NDArray[np.bool_]:
        """Whether the whole picture of a video, after a turn, may show each of some others for a part of its length.

        Args:
            row: Place of the video.
            others: [M] places of the others: all their views, or after a turn by degrees their whole pictures.
            turn: The turn.
        """
        own = slice(int(self._whole_ends[row]), int(self._whole_ends[row + 1]))
        first = int(self._window_ends[self._view_ends[row]])
        seconds = self._all_seconds[first : first + own.stop - own.start]
        ones = self._all[first : first + own.stop - own.start] if turn is None else self._turned[turn][own]
        floors = self._all_floors[turn][own][:, None]
        first_views, last_views = self._view_ends[others], self._view_ends[others + 1]
        if turn not in (None, "mirrored"):
            last_views = first_views + 1
        begins, ends = self._window_ends[first_views], self._window_ends[last_views]
        theirs = np.concatenate([self._all[begin:end] for begin, end in zip(begins, ends, strict=True)])
        lengths = np.concatenate([self._all_seconds[begin:end] for begin, end in zip(begins, ends, strict=True)])
        views = np.concatenate([np.arange(*pair) for pair in zip(first_views, last_views, strict=True)])
        sizes = self._window_ends[views + 1] - self._window_ends[views]
        starts = np.cumsum(sizes) - sizes
        counts = last_views - first_views
        video_starts = np.cumsum(counts) - counts
        cosines = (ones.astype(np.float32) @ theirs.T.astype(np.float32)) / np.float32(_BYTE**2)
        # The best of many parts is similar by chance.
        is_part = np.ones(len(views), np.float32)
        is_part[video_starts] = 0.0
        floors = floors + np.repeat(is_part, sizes) * np.float32(_PART_FLOOR) * (1 - floors)
        excess = np.maximum((cosines - floors) / (1 - floors) - np.float32(_LEAST_SIMILAR), 0.0)
        of_own = (np.maximum.reduceat(excess, starts, axis=1) * seconds[:, None]).sum(axis=0)
        of_theirs = np.add.reduceat(excess.max(axis=0) * lengths, starts)
        shared = np.maximum.reduceat(np.minimum(of_own, of_theirs), video_starts)
        whole = np.add.reduceat(lengths, starts)[video_starts]
        return np.asarray(shared >= _LEAST_SHARED * np.maximum(whole, float(seconds.sum())))


class _RowsOfFile:
    """Vectors [N, D] in bytes in a temporary file, of which stretches are read when they are asked for."""

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="vidkin-")  # noqa: SIM115 - it is closed, and gone, when this is
        weakref.finalize(self, self._file.close)
        self._rows, self._width = 0, 0

    def add(self, rows: NDArray[np.int8]) -> None:
        """Add rows at the end."""
        self._file.write(rows.tobytes())
        self._file.flush()  # a full disk is noticed now
        self._rows, self._width = self._rows + len(rows), rows.shape[1]

    def __getitem__(self, stretch: slice) -> NDArray[np.int8]:
        first, last, _ = stretch.indices(self._rows)
        position, end = first * self._width, max(first, last) * self._width
        parts = []
        while position < end:  # a system reads at most two gigabytes at a time
            parts.append(read_at(self._file.fileno(), end - position, position))
            position += len(parts[-1])
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        return np.frombuffer(content, np.int8).reshape(-1, self._width)

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes, which may be on other machines, get the vectors themselves."""
        return np.array, (self[:],)


_Vectors = NDArray[np.int8] | _RowsOfFile


class _Rows(Generic[_Number]):
    """Rows that are added block by block and kept in few large pieces: many small ones, between what is read and freed,
    would keep the memory of all that was read."""

    def __init__(self) -> None:
        self._pieces: list[NDArray[_Number]] = []
        self._room = 0  # rows that the last piece can still take
        self._bytes = 0
        self._file: _RowsOfFile | None = None

    def move_to_file(self) -> None:
        """Keep what was added, and what will be, in a temporary file; only rows of bytes."""
        if self._file is None:
            self._file, pieces = _RowsOfFile(), self._pieces
            if pieces:
                pieces[-1] = pieces[-1][: len(pieces[-1]) - self._room]
            while pieces:
                self._file.add(pieces.pop(0))  # type: ignore[arg-type]

    def add(self, rows: NDArray[_Number]) -> None:
        """Add rows [N, ...]."""
        if self._file is not None:
            self._file.add(rows)  # type: ignore[arg-type]
            return
        while len(rows):
            if not self._room:
                size = min(max(self._bytes, _SMALLEST_PIECE), _LARGEST_PIECE)
                self._room = max(1, size // max(1, rows[:1].nbytes))
                self._pieces.append(np.empty((self._room, *rows.shape[1:]), rows.dtype))
            piece, part = self._pieces[-1], rows[: self._room]
            first = len(piece) - self._room
            piece[first : first + len(part)] = part
            self._room -= len(part)
            self._bytes += part.nbytes
            rows = rows[len(part) :]

    def join(self) -> Any:
        """All of at least one row, [N, ...] or in a file; the pieces are freed one by one, so that nothing is held
        twice."""
        if self._file is not None:
            return self._file
        self._pieces[-1] = self._pieces[-1][: len(self._pieces[-1]) - self._room]
        joined = np.empty((sum(map(len, self._pieces)), *self._pieces[0].shape[1:]), self._pieces[0].dtype)
        end = len(joined)
        while self._pieces:
            part = self._pieces.pop()
            joined[end - len(part) : end] = part
            end -= len(part)
        self._room = 0
        return joined


def _in_bytes(vectors: NDArray[np.floating]) -> NDArray[np.int8]:
    """Unit vectors [N, D] in bytes: cosines of them are off by less than .01."""
    return np.asarray(np.rint(vectors.astype(np.float32) * _BYTE), np.int8)


def _view_starts(windows: WindowVectors) -> NDArray[np.int64]:
    """The first window of each view: the windows of each start over in time."""
    return np.flatnonzero(np.append(True, windows.first_frames[1:] <= windows.last_frames[:-1]))


def _views_of(windows: WindowVectors) -> NDArray[np.float32]:
    """Mean vectors [views, D] of the views of one video: the windows of each start over in time."""
    return _means(windows.vectors.astype(np.float32), windows.ends - windows.starts, _view_starts(windows))


def _predicted(wholes: Sequence[WindowVectors], turn: PoseName, predict: Predict) -> NDArray[np.float32] | None:
    """Windows [windows, D] of whole pictures after a turn."""
    vectors = np.concatenate([whole.vectors for whole in wholes]).astype(np.float32)
    after = predict(FrameFeatures.of_whole(vectors[:, None], np.arange(float(len(vectors)))), turn)
    return None if after is None else np.asarray(after.values[:, 0, 0], np.float32)


def _means_of(wholes: Sequence[WindowVectors], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean vectors [videos, D] of the windows of whole pictures."""
    lengths = np.array([len(whole) for whole in wholes])
    seconds = np.concatenate([whole.ends - whole.starts for whole in wholes])
    return _means(vectors, seconds, np.cumsum(lengths) - lengths)


def _means(
    vectors: NDArray[np.float32], seconds: NDArray[np.float64], firsts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Means of runs of vectors, weighted by their seconds."""
    # Of a single frame nobody knows how long it lasts.
    weights = np.maximum(seconds, 1e-3).astype(np.float32)[:, None]
    sums, total = np.add.reduceat(vectors * weights, firsts), np.add.reduceat(weights, firsts)
    return np.asarray(sums / total, np.float32)


def _center(vectors: NDArray[np.float32], center: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract the center and make them unit vectors, in place."""
    vectors -= center
    for first in range(0, len(vectors), _ROWS_AT_A_TIME):
        # The squares of all would take as much again as they do.
        block = vectors[first : first + _ROWS_AT_A_TIME]
        block /= np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-6)
    return vectors
