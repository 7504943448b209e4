"""The sound of an index: landmarks by the content of files, and one table of their pairs for searches.

Landmarks are kept by the hash of a file's bytes. A moved file, a copy and a file that was removed and came back have
theirs, whatever keeps the records; what no record needs any more is deleted at the end of an update.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import LONG_JSON_LIMITS, parse_json
from vidkin.errors import CollectionDamagedError
from vidkin.features.sound import fingerprint_of_landmarks
from vidkin.index.storage.files import reading, writing
from vidkin.index.storage.manifest import SOUND_TABLE
from vidkin.index.storage.place import Place
from vidkin.similarity.sound import (
    Hypothesis,
    PairTable,
    SoundFeatures,
    SoundScore,
    compare_sounds,
    fingerprint_of_sound,
)

_FOLDER, _SUFFIX = "sound", ".landmarks"
_HEAD = struct.Struct("<4sII")
_MARK, _TABLE_MARK = b"VKS1", b"VKT1"
# A landmark takes four bytes: its time in steps, seven bits of pitch, and whether it is strong.
_PITCH_BITS = 8


class SoundFiles:
    """Landmarks of files by the hash of their content.

    Args:
        place: Place of the index.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def write(self, content: str, tracks: Sequence[SoundFeatures]) -> None:
        """Store the landmarks of all tracks of a file; none for a file without sound."""
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
        """The landmarks of a file's tracks; None if it was not described, or by another version.

        Raises:
            CollectionDamagedError: They are cut off or not what was written.
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
        """Read several, in this order; see :meth:`read`."""
        return self._place.map(self.read, contents)

    def contents(self) -> set[str]:
        """Hashes of all files that have landmarks, complete or not."""
        with reading(self._place.address(_FOLDER)):
            names = self._place.sizes(_FOLDER)
        return {name.rpartition("/")[2].removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)}

    def remove(self, contents: Iterable[str]) -> None:
        """Delete the landmarks of these files."""
        with writing(self._place.address(_FOLDER)):
            self._place.delete([_name(content) for content in contents])

    def remove_damaged(self) -> dict[str, str]:
        """Read all, delete what is damaged, and the table with it; hashes and causes."""
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
        """Delete what no record needs any more, and make the table of searches if there is something new.

        Args:
            contents: Hashes of all readable files of the index.
        """
        with writing(self._place.address(_FOLDER)):
            self._place.delete_unfinished(_FOLDER)
        stored, needed = self.contents(), set(contents)
        self.remove(stored - needed)
        there = sorted(stored & needed)
        try:
            known = SoundTable.open(self._place)
        except CollectionDamagedError:
            known = None
        if known is not None and known.read == frozenset(there):
            return
        tracks: list[tuple[str, int, SoundFeatures]] = []
        read = []
        for content in there:
            try:
                found = self.read(content)
            except CollectionDamagedError:
                self.remove([content])
                continue
            read.append(content)
            tracks += [(content, number, track) for number, track in enumerate(found or ()) if len(track)]
        SoundTable.write(self._place, read, tracks)


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
    """Header and data of a file."""
    content = memoryview(stored)
    if len(content) < _HEAD.size:
        raise ValueError(f"it has {len(content)} bytes")
    found, length, checksum = _HEAD.unpack(content[: _HEAD.size])
    body = content[_HEAD.size :]
    if found != mark or length > len(body):
        raise ValueError("it is not what was written")
    if zlib.crc32(body if is_checked else body[:length]) != checksum:
        raise ValueError("its checksum is wrong")
    header = parse_json(bytes(body[:length]), LONG_JSON_LIMITS)
    if not isinstance(header, dict):
        raise ValueError("it has no header")
    return header, body[length:]


# The table that searches read.


@dataclass(frozen=True, slots=True)
class SoundTable:
    """Pairs of the landmarks of all tracks, and whose they are.

    Attributes:
        pairs: The table.
        tracks: Content and number of each track, in the order of the table.
        read: Contents that were read for it, those without sound as well.
        heard: Contents that have sound and not only silence.
    """

    FILE = SOUND_TABLE

    pairs: PairTable
    tracks: tuple[tuple[str, int], ...]
    read: frozenset[str]
    heard: frozenset[str] = frozenset()

    @classmethod
    def open(cls, place: Place) -> SoundTable | None:
        """The table of an index; None if there is none, or one of another version. A local one is not read but mapped,
        but on Windows: a search touches a small part of it.

        Raises:
            CollectionDamagedError: It is cut off or not what was written.
        """
        if not place.has_file(cls.FILE):
            return None
        with reading(place.address(cls.FILE)):
            # Windows replaces no file that is mapped anywhere, so that no update could write the next table.
            if place.folder is not None and not sys.platform.startswith("win"):
                stored: Any = memoryview(np.memmap(place.folder / cls.FILE, np.uint8, "r"))  # type: ignore[arg-type]
            else:
                stored = place.read(cls.FILE) or b""
            # The tables are not covered: what is wrong there leads to a track that the landmarks do not confirm.
            header, data = _open(stored, _TABLE_MARK, is_checked=False)
            if header["made"] != fingerprint_of_sounds():
                return None
            counts = [int(count) for count in header["counts"]]
            if len(data) != 4 * (counts[0] + counts[1]) + 8 * counts[2] or counts[2] != len(header["tracks"]):
                raise ValueError("its tables are not what was written")
            starts = np.frombuffer(data[: 8 * counts[2]], "<i8")
            rest = np.frombuffer(data[8 * counts[2] :], "<u4")
            pairs = PairTable(rest[: counts[0]], rest[counts[0] :], starts)
            pairs.check()
            tracks = tuple((str(content), int(number)) for content, number in header["tracks"])
            heard = frozenset(content for content, _ in tracks)
            return cls(pairs, tracks, frozenset(map(str, header["read"])), heard)

    @classmethod
    def write(cls, place: Place, read: Sequence[str], tracks: Sequence[tuple[str, int, SoundFeatures]]) -> None:
        """Make and write the table of these tracks."""
        pairs = PairTable.of([track for _, _, track in tracks])
        header = json.dumps(
            {
                "made": fingerprint_of_sounds(),
                "counts": [len(pairs.offsets), len(pairs.positions), len(pairs.starts)],
                "tracks": [[content, number] for content, number, _ in tracks],
                "read": list(read),
            }
        ).encode()
        # Arrays begin at multiples of eight, as they are mapped.
        header += b" " * (-(len(header) + _HEAD.size) % 8)
        arrays = (pairs.starts.astype("<i8"), pairs.offsets.astype("<u4"), pairs.positions.astype("<u4"))
        body = header + b"".join(array.tobytes() for array in arrays)
        with writing(place.address(cls.FILE)):
            place.write(cls.FILE, _HEAD.pack(_TABLE_MARK, len(header), zlib.crc32(header)) + body)


def fingerprint_of_sounds() -> str:
    """Identifies what scores of sound depend on besides the files."""
    return f"{fingerprint_of_landmarks()} {fingerprint_of_sound()}"


# Searches.


# Videos whose landmarks are compared with those of the query, of the most promising ones.
_FOUND = 30


class SoundSearch:
    """Finds the videos of an index that have the sound of a query.

    Args:
        place: Place of the index.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._files = SoundFiles(place)
        self._version: Hashable | None = None
        self._table: SoundTable | None = None

    @property
    def table(self) -> SoundTable | None:
        """The table of pairs, as it is now; None if the index has none.

        Raises:
            CollectionDamagedError: It is there and cannot be read.
        """
        version = self._place.version(SoundTable.FILE)
        if version != self._version:
            self._table, self._version = SoundTable.open(self._place), version
        return self._table

    def find(
        self,
        query: Sequence[SoundFeatures],
        asked: Sequence[SoundFeatures] | None = None,
        skip: Container[str] = frozenset(),
        tried: Sequence[Hypothesis] | None = None,
    ) -> dict[str, SoundScore]:
        """Scores of the contents that have anything in common with a query, by their hashes.

        Args:
            query: Its tracks.
            asked: What of each track is looked up, to take less time; None looks up all.
            skip: Contents that are not compared.
            tried: How the others may differ; None tries all hypotheses.
        """
        table = self.table
        scores: dict[str, SoundScore] = {}
        for track, part in zip(query, query if asked is None else asked, strict=True) if table is not None else ():
            assert table is not None
            for number, lines in table.pairs.lines(part, limit=_FOUND, tried=tried).items():
                content, place = table.tracks[number]
                if content in skip:
                    continue
                try:
                    tracks = self._files.read(content)
                except CollectionDamagedError:
                    continue  # `vidkin doctor` says so; what else is there can be found
                if tracks is None or place >= len(tracks):
                    continue
                score = compare_sounds(track, tracks[place], lines)
                if content not in scores or score.score > scores[content].score:
                    scores[content] = score
        return scores

    def tracks(self, content: str) -> tuple[SoundFeatures, ...] | None:
        """Landmarks of a content's tracks, none without sound; None if they are not known."""
        return self._files.read(content)

    @property
    def has_tracks(self) -> bool:
        """Whether any sound is known that is not silence."""
        return self.table is not None and bool(self.table.tracks)

    def is_heard(self, content: str) -> bool:
        """Whether a content was read and has landmarks."""
        table = self.table
        return table is not None and content in table.heard
