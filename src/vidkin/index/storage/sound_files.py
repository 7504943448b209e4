"""Audio fingerprints of an index: the landmarks of each file, and a table of landmark pairs for searching.

Landmarks are keyed by content hash, so that a moved file, a copy, or a file that was removed and added again keeps
them, in any kind of store. Landmarks that no record refers to are deleted at the end of an update.

The table consists of a small file that lists its parts, and the parts. New files form a new part, small parts are
merged, and removed files are excluded, so the cost of adding a file hardly depends on the size of the index. A part is
named by its contents and never changes, so readers see the parts from either before or after an update.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import struct
import sys
import zlib
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import check_regular_file
from vidkin._base.values import LONG_JSON_LIMITS, parse_json
from vidkin.errors import CollectionDamagedError
from vidkin.features.sound import fingerprint_of_landmarks
from vidkin.index.storage.files import reading, writing
from vidkin.index.storage.manifest import SOUND_TABLE
from vidkin.index.storage.place import Place
from vidkin.similarity.sound import (
    Hypothesis,
    PairTable,
    PairTables,
    SoundFeatures,
    SoundScore,
    compare_sounds,
    fingerprint_of_sound,
)

_logger = logging.getLogger(__name__)

_FOLDER, _SUFFIX = "sound", ".landmarks"
_PARTS, _PART_SUFFIX = "sound/tables", ".pairs"
_HEAD = struct.Struct("<4sII")
_MARK, _TABLE_MARK, _PART_MARK = b"VKS1", b"VKT2", b"VKP1"
# A landmark takes four bytes: its time in steps, 7 bits of pitch, and one bit that says whether it is strong.
_PITCH_BITS = 8


class SoundFiles:
    """Landmarks of files, keyed by content hash.

    Args:
        place: Location of the index.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def write(self, content: str, tracks: Sequence[SoundFeatures]) -> None:
        """Save the landmarks of all audio tracks of a file; ``tracks`` is empty for a file without sound."""
        entries = [
            {"landmarks": len(t), "length": t.length, "language": t.language, "is_default": t.is_default}
            for t in tracks
        ]
        header = json.dumps({"made": fingerprint_of_landmarks(), "tracks": entries}).encode()
        codes = b"".join(_codes(track).tobytes() for track in tracks)
        body = header + codes
        with writing(self._place.address(_FOLDER)):
            self._place.write(_name(content), _HEAD.pack(_MARK, len(header), zlib.crc32(body)) + body, sync=False)

    def read(self, content: str) -> tuple[SoundFeatures, ...] | None:
        """Read the landmarks of a file's tracks; None if they were not extracted, or by a different version.

        Raises:
            CollectionDamagedError: The landmarks are truncated or corrupted.
        """
        name = _name(content)
        with reading(self._place.address(name)):
            stored = self._place.read(name)
            if stored is None:
                return None
            header, data = _open(stored, _MARK)
            if header["made"] != fingerprint_of_landmarks():
                return None
            codes = np.frombuffer(data, "<u4")
            tracks, first = [], 0
            for entry in header["tracks"]:
                count = int(entry["landmarks"])
                if first + count > len(codes):
                    raise ValueError("landmarks are missing")
                tracks.append(_track(codes[first : first + count], entry))
                first += count
            return tuple(tracks)

    def read_many(self, contents: Sequence[str]) -> list[tuple[SoundFeatures, ...] | None]:
        """Read the landmarks of several files, in order; see :meth:`read`."""
        return self._place.map(self.read, contents)

    def contents(self) -> set[str]:
        """Content hashes of all files with landmarks, whether complete or not."""
        with reading(self._place.address(_FOLDER)):
            names = self._place.sizes(_FOLDER)
        return {name.rpartition("/")[2].removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)}

    def remove(self, contents: Iterable[str]) -> None:
        """Delete the landmarks of these files."""
        with writing(self._place.address(_FOLDER)):
            self._place.delete([_name(content) for content in contents])

    def remove_damaged(self) -> dict[str, str]:
        """Check all landmarks; delete damaged ones and, if there are any, the table. Return hashes and causes."""
        damaged: dict[str, str] = {}
        for content in sorted(self.contents()):
            try:
                self.read(content)
            except CollectionDamagedError as error:
                damaged[content] = str(error)
        self.remove(damaged)
        try:
            SoundTable.open(self._place)
        except CollectionDamagedError as error:
            damaged[SoundTable.FILE] = str(error)
        if damaged:
            with writing(self._place.uri):
                self._place.delete([SoundTable.FILE])
        return damaged

    def update(self, contents: Iterable[str]) -> None:
        """Delete landmarks that no record refers to, and update the table if anything has changed.

        Args:
            contents: Content hashes of all readable files in the index.
        """
        with writing(self._place.address(_FOLDER)):
            self._place.delete_unfinished(_FOLDER)
        stored, needed = self.contents(), set(contents)
        self.remove(stored - needed)
        there = stored & needed
        try:
            known = SoundTable.open(self._place)
        except CollectionDamagedError as error:
            _logger.info("%s; rebuilding it from the landmarks of all files", error)
            known = None
        if known is not None and known.read == there and all(part.name for part in known.parts):
            return
        # Drop parts of which at least half is no longer needed.
        parts = (
            [part for part in known.parts if 2 * len(there.intersection(part.read)) > len(part.read)] if known else []
        )
        missing = sorted(there.difference(*(part.read for part in parts)))
        for first in range(0, len(missing), _FILES_PER_PART):
            parts.append(self._read_part(missing[first : first + _FILES_PER_PART]))
            _join_small(parts)
        SoundTable.write(self._place, parts, there)

    def _read_part(self, contents: Sequence[str]) -> TablePart:
        """Build a part of the table from the landmarks of these files; damaged landmarks are deleted."""
        tracks: list[tuple[str, int, SoundFeatures]] = []
        read = []
        for content in contents:
            try:
                found = self.read(content)
            except CollectionDamagedError:
                self.remove([content])
                continue
            read.append(content)
            tracks += [(content, number, track) for number, track in enumerate(found or ()) if len(track)]
        pairs = PairTable.of([track for _, _, track in tracks])
        return TablePart(pairs, tuple((content, number) for content, number, _ in tracks), tuple(read))


def _codes(track: SoundFeatures) -> NDArray[np.uint32]:
    times = track.times.astype(np.uint32) << np.uint32(_PITCH_BITS)
    return (times | (track.pitches.astype(np.uint32) << np.uint32(1)) | track.strong).astype("<u4")


def _track(codes: NDArray[np.uint32], entry: Mapping[str, Any]) -> SoundFeatures:
    return SoundFeatures(
        (codes >> np.uint32(_PITCH_BITS)).astype(np.int32),
        ((codes >> np.uint32(1)) & np.uint32(127)).astype(np.uint8),
        (codes & np.uint32(1)).astype(np.bool_),
        float(entry["length"]),
        str(entry["language"]),
        bool(entry["is_default"]),
    )


def _name(content: str) -> str:
    return f"{_FOLDER}/{content[-2:]}/{content}{_SUFFIX}"


def _open(stored: bytes | memoryview, mark: bytes, *, is_checked: bool = True) -> tuple[dict[str, Any], memoryview]:
    """Parse a file into its header and data.

    Raises:
        ValueError: The file is truncated or corrupted.
    """
    content = memoryview(stored)
    if len(content) < _HEAD.size:
        raise ValueError(f"it has {len(content)} bytes")
    found, length, checksum = _HEAD.unpack(content[: _HEAD.size])
    body = content[_HEAD.size :]
    if found != mark or length > len(body):
        raise ValueError("its content is corrupted")
    if zlib.crc32(body if is_checked else body[:length]) != checksum:
        raise ValueError("its checksum is wrong")
    header = parse_json(bytes(body[:length]), LONG_JSON_LIMITS)
    if not isinstance(header, dict):
        raise ValueError("it has no header")
    return header, body[length:]


# Number of files whose landmarks are in memory at a time.
_FILES_PER_PART = 256
# A part is merged with the next unless it has at least this many pairs, and this many times the pairs of the next. Thus
# each pair is rewritten only a few times in total, and the number of parts stays small.
_MIN_PAIRS, _MIN_PART_RATIO = 200_000, 4
# Maximum number of attempts to read a table whose parts are being replaced.
_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class TablePart:
    """Landmark pairs of some tracks.

    Attributes:
        pairs: The pairs.
        tracks: Content hash and number of each track, in the order of the pairs.
        read: Content hashes of all files processed for this part, including those without sound.
        name: Name that its file is derived from; empty until it is written.
    """

    pairs: PairTable
    tracks: tuple[tuple[str, int], ...]
    read: tuple[str, ...]
    name: str = ""

    @classmethod
    def of(cls, stored: memoryview, name: str) -> TablePart | None:
        """Parse a stored part; None if it has a different version.

        Raises:
            ValueError: The part is truncated or corrupted.
        """
        # The checksum does not cover the pairs: a wrong pair leads to a track that its landmarks do not confirm.
        header, data = _open(stored, _PART_MARK, is_checked=False)
        if header["made"] != fingerprint_of_sounds():
            return None
        counts = [int(count) for count in header["counts"]]
        tracks = tuple((str(content), int(number)) for content, number in header["tracks"])
        if len(data) != 4 * (counts[0] + counts[1]) + 8 * counts[2] or counts[2] != len(tracks) + 1:
            raise ValueError("its tables are corrupted")
        starts = np.frombuffer(data[: 8 * counts[2]], "<i8")
        rest = np.frombuffer(data[8 * counts[2] :], "<u4")
        pairs = PairTable(rest[: counts[0]], rest[counts[0] :], starts)
        pairs.check()
        return cls(pairs, tracks, tuple(map(str, header["read"])), name)

    def written(self, place: Place) -> TablePart:
        """Save this part; return it with its name."""
        pairs = self.pairs
        header = json.dumps(
            {
                "made": fingerprint_of_sounds(),
                "counts": [len(pairs.offsets), len(pairs.positions), len(pairs.starts)],
                "tracks": [[content, number] for content, number in self.tracks],
                "read": list(self.read),
            }
        ).encode()
        # Align arrays to multiples of eight bytes, because they are memory-mapped.
        header += b" " * (-(len(header) + _HEAD.size) % 8)
        arrays = (pairs.starts.astype("<i8"), pairs.offsets.astype("<u4"), pairs.positions.astype("<u4"))
        name = hashlib.blake2b(header, digest_size=16).hexdigest()
        body = header + b"".join(array.tobytes() for array in arrays)
        with writing(place.address(_PARTS)):
            place.write(_part_file(name), _HEAD.pack(_PART_MARK, len(header), zlib.crc32(header)) + body)
        return replace(self, name=name)

    def merged_with(self, other: TablePart) -> TablePart:
        """Merge two parts; the result equals a part built from the tracks of both."""
        own, others = self.pairs, other.pairs
        moved = others.positions + own.starts[-1:].astype(np.uint32)
        counts = others.offsets[1:] - others.offsets[:-1]
        behind = np.repeat(own.offsets[1:], counts).astype(np.int64)
        starts = np.concatenate([own.starts, own.starts[-1] + others.starts[1:]])
        pairs = PairTable(own.offsets + others.offsets, np.insert(own.positions, behind, moved), starts)
        return TablePart(pairs, self.tracks + other.tracks, self.read + other.read)

    def can_merge(self, other: TablePart) -> bool:
        """Whether the time steps and pairs of both parts fit in 32-bit integers."""
        own, others = self.pairs, other.pairs
        most = max(int(own.starts[-1] + others.starts[-1]), len(own.positions) + len(others.positions))
        return most < 1 << 32


def _join_small(parts: list[TablePart]) -> None:
    """Merge the last parts until each is much smaller than the one before it."""
    while len(parts) > 1 and parts[-2].can_merge(parts[-1]):
        before, last = (len(part.pairs.positions) for part in parts[-2:])
        if before >= max(_MIN_PAIRS, _MIN_PART_RATIO * last):
            return
        parts[-2:] = [parts[-2].merged_with(parts[-1])]


def _part_file(name: str) -> str:
    return f"{_PARTS}/{name}{_PART_SUFFIX}"


def _map_file(place: Place, name: str) -> memoryview | None:
    """Return the content of a file; None if it does not exist.

    Local files are memory-mapped (except on Windows), because a search needs only a small part of them.
    """
    # On Windows, a mapped file cannot be replaced, so updates would be blocked.
    if place.folder is None or sys.platform.startswith("win"):
        stored = place.read(name)
        return None if stored is None else memoryview(stored)
    try:
        check_regular_file(place.folder / name)
        return memoryview(np.memmap(place.folder / name, np.uint8, "r"))  # type: ignore[arg-type]
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class SoundTable:
    """Landmark pairs of all tracks in an index.

    Attributes:
        pairs: The pairs to search; they do not depend on the division into parts.
        tracks: Content hash and number of each track, in order.
        read: Content hashes of all files processed, including those without sound.
        heard: Content hashes of files with landmarks, that is, with sound other than silence.
        parts: The parts, which may still contain files that have been removed.
    """

    FILE = SOUND_TABLE

    pairs: PairTables
    tracks: tuple[tuple[str, int], ...]
    read: frozenset[str]
    heard: frozenset[str] = frozenset()
    parts: tuple[TablePart, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[TablePart], left_out: Collection[str]) -> SoundTable:
        """Combine parts to a table without the contents in ``left_out``."""
        tracks = sorted(track for part in parts for track in part.tracks if track[0] not in left_out)
        numbers = {track: number for number, track in enumerate(tracks)}
        positions = [np.array([numbers.get(track, -1) for track in part.tracks], np.int64) for part in parts]
        pairs = PairTables.of([part.pairs for part in parts], positions)
        read = frozenset(content for part in parts for content in part.read).difference(left_out)
        return cls(pairs, tuple(tracks), read, frozenset(content for content, _ in tracks), tuple(parts))

    @classmethod
    def open(cls, place: Place, known: SoundTable | None = None) -> SoundTable | None:
        """Load the table of an index; None if there is none, or if it has a different version.

        Args:
            place: Location of the index.
            known: A previously loaded table, whose parts are reused.

        Raises:
            CollectionDamagedError: The table is truncated or corrupted.
        """
        loaded = {part.name: part for part in known.parts} if known is not None else {}
        with reading(place.address(cls.FILE)):
            for _ in range(_MAX_ATTEMPTS):
                stored = _map_file(place, cls.FILE)
                if stored is None:
                    return None
                header, _ = _open(stored, _TABLE_MARK)
                if header["made"] != fingerprint_of_sounds():
                    return None
                parts = [loaded.get(name) or _read_stored(place, name) for name in map(str, header["parts"])]
                there = [part for part in parts if part is not None]
                if len(there) == len(parts):
                    return cls.of(there, frozenset(map(str, header["left_out"])))
                # An update has replaced a part, so read the list of parts again.
            raise ValueError("it refers to a missing part")

    @classmethod
    def write(cls, place: Place, parts: Sequence[TablePart], needed: Collection[str]) -> None:
        """Save a table that consists of these parts, and delete all other parts.

        Args:
            place: Location of the index.
            parts: The parts; new ones are saved.
            needed: Contents that searches may find.
        """
        stored = [part if part.name else part.written(place) for part in parts]
        names = [part.name for part in stored]
        left_out = sorted({content for part in stored for content in part.read}.difference(needed))
        header = json.dumps({"made": fingerprint_of_sounds(), "parts": names, "left_out": left_out}).encode()
        with writing(place.address(cls.FILE)):
            place.write(cls.FILE, _HEAD.pack(_TABLE_MARK, len(header), zlib.crc32(header)) + header)
        with writing(place.address(_PARTS)):
            place.delete(set(place.sizes(_PARTS)).difference(map(_part_file, names)))


def _read_stored(place: Place, name: str) -> TablePart | None:
    """Read a part by name; None if it no longer exists.

    Raises:
        ValueError: The part is corrupted, or has an invalid name or a different version.
    """
    if not re.fullmatch("[0-9a-f]{32}", name):
        raise ValueError("it refers to a part with an invalid name")
    stored = _map_file(place, _part_file(name))
    if stored is None:
        return None
    part = TablePart.of(stored, name)
    if part is None:
        raise ValueError("it refers to a part with a different version")
    return part


def fingerprint_of_sounds() -> str:
    """Fingerprint of everything that sound scores depend on, apart from the files."""
    return f"{fingerprint_of_landmarks()} {fingerprint_of_sound()}"


# Maximum number of promising tracks whose landmarks are compared with those of the query.
_MAX_COMPARED = 30


class SoundSearch:
    """Finds videos of an index that share sound with a query.

    Args:
        place: Location of the index.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._files = SoundFiles(place)
        self._version: Hashable | None = None
        self._table: SoundTable | None = None

    @property
    def table(self) -> SoundTable | None:
        """The current table of landmark pairs; None if the index has none.

        Raises:
            CollectionDamagedError: The table exists but cannot be read.
        """
        version = self._place.version(SoundTable.FILE)
        if version != self._version:
            self._table, self._version = SoundTable.open(self._place, self._table), version
        return self._table

    def find(
        self,
        query: Sequence[SoundFeatures],
        asked: Sequence[SoundFeatures] | None = None,
        skip: Container[str] = frozenset(),
        tried: Sequence[Hypothesis] | None = None,
    ) -> dict[str, SoundScore]:
        """Return the scores of contents that share sound with a query, keyed by content hash.

        Args:
            query: Tracks of the query.
            asked: Part of each track to look up, to save time; None to look up whole tracks.
            skip: Contents to skip.
            tried: Hypotheses about changes of speed and pitch to try; None for all.
        """
        table = self.table
        scores: dict[str, SoundScore] = {}
        for track, part in zip(query, query if asked is None else asked, strict=True) if table is not None else ():
            assert table is not None
            for number, lines in table.pairs.lines(part, limit=_MAX_COMPARED, tried=tried).items():
                content, track_number = table.tracks[number]
                if content in skip:
                    continue
                try:
                    tracks = self._files.read(content)
                except CollectionDamagedError:
                    continue  # `vidkin doctor` reports damage; other files can still be found
                if tracks is None or track_number >= len(tracks):
                    continue
                score = compare_sounds(track, tracks[track_number], lines)
                if content not in scores or score.score > scores[content].score:
                    scores[content] = score
        return scores

    def tracks(self, content: str) -> tuple[SoundFeatures, ...] | None:
        """Return the landmarks of a content's tracks, empty without sound; None if they are unknown."""
        return self._files.read(content)

    @property
    def has_tracks(self) -> bool:
        """Whether the index has landmarks of any track."""
        return self.table is not None and bool(self.table.tracks)

    def is_heard(self, content: str) -> bool:
        """Whether a content has landmarks."""
        table = self.table
        return table is not None and content in table.heard
