"""The sound table grows by adding tracks, and gives the same results as a table built in one step."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from vidkin.errors import CollectionDamagedError
from vidkin.index import LocalPlace, SoundFiles
from vidkin.index.storage import sound_files
from vidkin.index.storage.sound_files import SoundSearch, SoundTable, fingerprint_of_sounds
from vidkin.similarity import PairTable, SoundFeatures, SoundScore

PARTS = "sound/tables"


def sound_of(number: int, *, count: int = 400) -> SoundFeatures:
    """Random landmarks, twenty per second."""
    random = np.random.default_rng(number)
    times = np.sort(random.integers(0, count * 3, count)).astype(np.int32)
    return SoundFeatures(times, random.integers(0, 126, count).astype(np.uint8), np.ones(count, np.bool_), count / 20)


def name_of(number: int) -> str:
    """A content hash whose order differs from that of the files."""
    return f"{(number * 7919) % 9973:064x}"


def fill(folder: Path, numbers: Sequence[int]) -> SoundFiles:
    """Write landmarks that are not in a table yet; every fifth file has no sound, every seventh has two tracks."""
    folder.mkdir(exist_ok=True)
    files = SoundFiles(LocalPlace(folder))
    for number in numbers:
        tracks = () if number % 5 == 4 else (sound_of(number), sound_of(number + 1000))[: 2 if number % 7 == 0 else 1]
        files.write(name_of(number), tracks)
    return files


def answers(folder: Path, numbers: Sequence[int]) -> list[dict[str, SoundScore]]:
    """Results of a search for a segment of each of these sounds."""
    search = SoundSearch(LocalPlace(folder))
    return [search.find([sound_of(number).between(4, 14)]) for number in numbers]


def table_of(folder: Path) -> SoundTable:
    table = SoundTable.open(LocalPlace(folder))
    assert table is not None
    return table


def part_files(folder: Path) -> list[Path]:
    return sorted((folder / PARTS).glob("*.pairs"))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge parts at a few tracks instead of thousands."""
    monkeypatch.setattr(sound_files, "_MIN_PAIRS", 2_000)
    monkeypatch.setattr(sound_files, "_FILES_PER_PART", 16)


@pytest.mark.thorough
@pytest.mark.usefixtures("small_parts")
def test_incrementally_built_sound_table_equals_one_built_at_once(tmp_path: Path) -> None:
    numbers = list(range(22))
    grown = fill(tmp_path / "grown", [])
    parts = []
    for number in numbers:
        fill(tmp_path / "grown", [number])
        grown.update(name_of(each) for each in numbers[: number + 1])
        parts.append(len(part_files(tmp_path / "grown")))
    fill(tmp_path / "whole", numbers).update(map(name_of, numbers))
    one, other = table_of(tmp_path / "grown"), table_of(tmp_path / "whole")
    assert (one.tracks, one.read, one.heard) == (other.tracks, other.read, other.heard)
    assert len(one.tracks) == 18 + 3  # every fifth file is silent, and files 0, 7 and 21 have two tracks
    assert np.array_equal(one.pairs.starts, other.pairs.starts)
    found = answers(tmp_path / "grown", numbers)
    assert found == answers(tmp_path / "whole", numbers)
    assert all(found[number][name_of(number)].score > 0.7 for number in numbers if number % 5 != 4)
    # There are several parts, but far fewer than files.
    assert 2 <= max(parts) <= 6


@pytest.mark.usefixtures("small_parts")
def test_adding_a_file_writes_a_small_part_and_keeps_the_large_one(tmp_path: Path) -> None:
    files = fill(tmp_path, range(20))
    files.update(map(name_of, range(20)))
    (large,) = part_files(tmp_path)
    before = large.stat()
    fill(tmp_path, [20])
    files.update(map(name_of, range(21)))
    after = part_files(tmp_path)
    assert len(after) == 2
    assert large in after
    assert (large.stat().st_mtime_ns, large.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    # Only the new file was read again.
    assert [part.read for part in table_of(tmp_path).parts][1] == (name_of(20),)


def test_merged_part_equals_a_part_built_from_all_tracks() -> None:
    def part_of(numbers: Sequence[int]) -> sound_files.TablePart:
        return sound_files.TablePart(
            PairTable.of([sound_of(number) for number in numbers]),
            tuple((name_of(number), 0) for number in numbers),
            tuple(map(name_of, numbers)),
        )

    joined, whole = part_of([1, 2]).merged_with(part_of([3])), part_of([1, 2, 3])
    assert (joined.tracks, joined.read) == (whole.tracks, whole.read)
    for name in ("offsets", "positions", "starts"):
        assert getattr(joined.pairs, name).tobytes() == getattr(whole.pairs, name).tobytes()


@pytest.mark.thorough
def test_removed_files_are_omitted_and_found_again_after_their_return(tmp_path: Path) -> None:
    files = fill(tmp_path, range(8))
    files.update(map(name_of, range(8)))
    files.update(name_of(number) for number in range(8) if number != 3)
    fill(tmp_path / "without", [0, 1, 2, 4, 5, 6, 7]).update(name_of(number) for number in range(8) if number != 3)
    assert answers(tmp_path, range(8)) == answers(tmp_path / "without", range(8))
    assert name_of(3) not in table_of(tmp_path).heard
    # The part keeps removed tracks until they outnumber the rest, so the file can return without being described again.
    assert name_of(3) in table_of(tmp_path).parts[0].read
    fill(tmp_path, [3])
    files.update(map(name_of, range(8)))
    assert name_of(3) in answers(tmp_path, [3])[0]
    files.update(map(name_of, range(3)))
    assert table_of(tmp_path).parts[0].read == tuple(sorted(map(name_of, range(3))))
    assert len(part_files(tmp_path)) == 1


@pytest.mark.thorough
def test_killed_writer_leaves_the_sound_table_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer is killed after writing a part, before the list of parts; the next update deletes that part."""
    files = fill(tmp_path, range(4))
    files.update(map(name_of, range(4)))
    before = answers(tmp_path, range(6))
    fill(tmp_path, [5])
    write = LocalPlace.write

    def killed(place: LocalPlace, name: str, content: bytes, *, sync: bool = True) -> None:
        if name == SoundTable.FILE:
            raise KeyboardInterrupt
        write(place, name, content, sync=sync)

    with monkeypatch.context() as patch:
        patch.setattr(LocalPlace, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            files.update(map(name_of, [0, 1, 2, 3, 5]))
    assert len(part_files(tmp_path)) == 2
    assert answers(tmp_path, range(6)) == before
    fill(tmp_path, [6])
    files.update(map(name_of, [0, 1, 2, 3, 5, 6]))
    assert len(part_files(tmp_path)) == len(table_of(tmp_path).parts) == 1
    assert name_of(5) in answers(tmp_path, [5])[0]


def test_reader_during_a_replacement_gets_the_new_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = fill(tmp_path, range(4))
    files.update(map(name_of, range(4)))
    read, calls = sound_files._map_file, []

    def replaced(place: LocalPlace, name: str) -> memoryview | None:
        calls.append(name)
        if len(calls) == 2:  # the list of parts was read, the part was not
            fill(tmp_path, [4, 5])
            files.update(map(name_of, range(6)))
        return read(place, name)

    monkeypatch.setattr(sound_files, "_map_file", replaced)
    assert table_of(tmp_path).read == {name_of(number) for number in range(6)}


def test_reopening_a_table_does_not_reread_its_parts(tmp_path: Path) -> None:
    files = fill(tmp_path, range(4))
    files.update(map(name_of, range(4)))
    search = SoundSearch(LocalPlace(tmp_path))
    first = search.table
    assert first is not None
    files.update(map(name_of, range(3)))
    second = search.table
    assert second is not None
    assert second.parts[0] is first.parts[0]
    assert second.read == {name_of(number) for number in range(3)}


def write_atomically(folder: Path, numbers: Sequence[int]) -> None:
    """Write the table in the format of earlier versions: one file, with gaps between tracks."""
    tracks = [(name_of(number), 0, sound_of(number)) for number in numbers]
    table = PairTable.of([track for _, _, track in tracks])
    moved = table.positions + np.searchsorted(table.starts[1:-1], table.positions, side="right").astype(np.uint32) * 5
    starts = table.starts[:-1] + np.arange(len(tracks)) * 5
    header = json.dumps(
        {
            "made": fingerprint_of_sounds(),
            "counts": [len(table.offsets), len(moved), len(starts)],
            "tracks": [[content, number] for content, number, _ in tracks],
            "read": [content for content, _, _ in tracks],
        }
    ).encode()
    header += b" " * (-(len(header) + 12) % 8)
    arrays = starts.astype("<i8").tobytes() + table.offsets.tobytes() + moved.astype("<u4").tobytes()
    head = struct.pack("<4sII", b"VKT1", len(header), zlib.crc32(header))
    (folder / SoundTable.FILE).write_bytes(head + header + arrays)


def test_update_without_changes_writes_nothing(tmp_path: Path) -> None:
    files = fill(tmp_path, range(3))
    files.update(map(name_of, range(3)))
    before = [path.stat().st_mtime_ns for path in (tmp_path / SoundTable.FILE, *part_files(tmp_path))]
    files.update(map(name_of, range(3)))
    assert [path.stat().st_mtime_ns for path in (tmp_path / SoundTable.FILE, *part_files(tmp_path))] == before


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        (["0" * 32], "it refers to a missing part"),
        (["../../etc/passwd"], "it refers to a part with an invalid name"),
    ],
)
def test_table_with_missing_parts_is_damaged(tmp_path: Path, names: list[str], cause: str) -> None:
    fill(tmp_path, range(2)).update(map(name_of, range(2)))
    header = json.dumps({"made": fingerprint_of_sounds(), "parts": names, "left_out": []}).encode()
    head = struct.pack("<4sII", b"VKT2", len(header), zlib.crc32(header))
    (tmp_path / SoundTable.FILE).write_bytes(head + header)
    with pytest.raises(CollectionDamagedError, match=cause):
        SoundTable.open(LocalPlace(tmp_path))
    SoundFiles(LocalPlace(tmp_path)).update(map(name_of, range(2)))
    assert table_of(tmp_path).read == {name_of(0), name_of(1)}


def test_table_of_another_version_is_rebuilt_and_such_a_part_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, range(2)).update(map(name_of, range(2)))
    fill(tmp_path / "other", range(2))
    with monkeypatch.context() as patch:
        patch.setattr(sound_files, "fingerprint_of_sounds", lambda: "another version")
        SoundFiles(LocalPlace(tmp_path / "other")).update(map(name_of, range(2)))
    assert SoundTable.open(LocalPlace(tmp_path / "other")) is None
    (own,), (others,) = part_files(tmp_path), part_files(tmp_path / "other")
    own.write_bytes(others.read_bytes())
    with pytest.raises(CollectionDamagedError, match="it refers to a part with a different version"):
        SoundTable.open(LocalPlace(tmp_path))
    SoundFiles(LocalPlace(tmp_path / "other")).update(map(name_of, range(2)))
    assert table_of(tmp_path / "other").read == {name_of(0), name_of(1)}


def test_parts_that_would_exceed_32_bits_are_not_merged() -> None:
    part = sound_files.TablePart(PairTable.of([sound_of(1)]), ((name_of(1), 0),), (name_of(1),))
    far = sound_files.TablePart(
        PairTable(part.pairs.offsets, part.pairs.positions, np.array([0, (1 << 32) - 100])), part.tracks, part.read
    )
    parts = [far, part]
    sound_files._join_small(parts)
    assert parts == [far, part]
