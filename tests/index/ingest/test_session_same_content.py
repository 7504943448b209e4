"""Identical files, files that only look identical, and files replaced by something else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.index.helpers import PLAIN
from tests.support.videos import encode
from vidkin.index import Index, MemoryStore, SerialExecutor, VideoRecord, scan
from vidkin.index.ingest.session import Copy, Extract, Fail, Keep, Plan, content_hash, ingest
from vidkin.index.storage.files import has_same_bytes

MIB = 1 << 20


def digest(path: Path) -> str:
    return content_hash(str(path), path.stat().st_size).text


def test_hash_of_a_large_video_covers_start_middle_and_end(tmp_path: Path) -> None:
    content = bytearray(5 * MIB)
    content[100:104] = b"avc1"
    hashes = []
    for at in (None, 0, 5 * MIB // 2, 5 * MIB - 1):
        changed = bytearray(content)
        if at is not None:
            changed[at] = 1
        path = tmp_path / f"{at}.mp4"
        path.write_bytes(changed)
        hashes.append(digest(path))
    assert len(set(hashes)) == 4
    assert all(len(text) == 32 for text in hashes)
    (tmp_path / "copy.mp4").write_bytes(content)
    assert digest(tmp_path / "copy.mp4") == hashes[0]
    # Changes that the hash misses are found by comparing bytes.
    content[3 * MIB // 2] = 1
    (tmp_path / "other.mp4").write_bytes(content)
    assert digest(tmp_path / "other.mp4") == hashes[0]
    assert not has_same_bytes(str(tmp_path / "other.mp4"), str(tmp_path / "copy.mp4"))
    assert has_same_bytes(str(tmp_path / "None.mp4"), str(tmp_path / "copy.mp4"))


@pytest.mark.parametrize("size", [1000, 3 * MIB, 5 * MIB])
def test_constant_rate_codecs_are_hashed_completely(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.y4m"
    path.write_bytes(bytes(size))
    plain = digest(path)
    for at in (0, size // 3, size - 1):
        content = bytearray(size)
        content[at] = 1
        path.write_bytes(content)
        assert digest(path) != plain


def film(path: Path, seed: int, *, frames: int = 90) -> Path:
    """Write 3.5 MB of Y4M whose start, middle and end do not depend on the seed."""
    width, height = 192, 128
    generator = np.random.default_rng(seed)
    head = f"YUV4MPEG2 W{width} H{height} F10:1 Ip A1:1 C420\n".encode()
    parts = [head]
    for index in range(frames):
        moving = index % 60 >= 30 and not 40 <= index < 50
        level = generator.integers(0, 255, (4, 6)) if moving else np.full((4, 6), 16)
        luma = np.kron(level, np.ones((32, 32))).astype(np.uint8)
        parts.append(b"FRAME\n" + luma.tobytes() + bytes([128]) * (width * height // 2))
    path.write_bytes(b"".join(parts))
    return path


def test_different_videos_of_the_same_size_are_distinguished(tmp_path: Path) -> None:
    one, other = film(tmp_path / "a.y4m", 1), film(tmp_path / "b.y4m", 2)
    assert one.stat().st_size == other.stat().st_size > 3 * MIB
    store = MemoryStore()
    report = ingest(store, scan([tmp_path]), SerialExecutor(PLAIN))
    assert [outcome.cause for outcome in report.added] == ["", ""]
    first, second = store.videos()
    assert first.content_hash != second.content_hash


def test_file_with_a_forged_partial_hash_is_read(tmp_path: Path) -> None:
    content = bytearray(np.random.default_rng(0).bytes(5 * MIB))
    content[100:104] = b"avc1"
    (tmp_path / "a.mp4").write_bytes(content)
    (tmp_path / "b.mp4").write_bytes(content)
    content[3 * MIB // 2] ^= 1
    (tmp_path / "c.mp4").write_bytes(content)
    steps = list(Plan([]).steps(scan([tmp_path]).files))
    assert [type(step) for step in steps] == [Extract, Copy, Extract]
    assert steps[0].hash == steps[1].hash != steps[2].hash  # type: ignore[union-attr]


def test_changed_file_is_distinguished_from_its_former_duplicate(tmp_path: Path) -> None:
    content = bytearray(np.random.default_rng(0).bytes(5 * MIB))
    content[100:104] = b"avc1"
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / name).write_bytes(content)
    shared = digest(tmp_path / "a.mp4")
    records = [
        VideoRecord(path=file.path, size=file.size, mtime_ns=file.mtime_ns, content_hash=shared, id=number)
        for number, file in enumerate(scan([tmp_path]).files)
    ]
    os.utime(tmp_path / "b.mp4", (1, 1))
    steps = list(Plan(records).steps(scan([tmp_path]).files))
    assert [type(step) for step in steps] == [Keep, Keep]  # touched, with unchanged content
    content[3 * MIB // 2] ^= 1
    (tmp_path / "b.mp4").write_bytes(content)
    (tmp_path / "moved.mp4").write_bytes(content)
    assert digest(tmp_path / "b.mp4") == shared
    gone = replace(records[0], path=str(tmp_path / "gone.mp4"), id=2)
    first, *others = Plan([*records, gone]).steps(scan([tmp_path]).files)
    assert isinstance(first, Keep)
    assert all(isinstance(step, Extract | Copy) and step.hash != shared for step in others)


def sampled_alike(source: Path, target: Path) -> Path:
    """Write a Matroska file with frames other than the source, but the same start, middle, end and length."""
    content = bytearray(source.read_bytes())
    size = len(content)
    for start, end in ((MIB, (size - MIB) // 2), ((size + MIB) // 2 + 1, size - MIB)):
        content[start:end] = np.random.default_rng(start).bytes(end - start)
    target.write_bytes(content)
    assert digest(target) == digest(source)
    return target


@pytest.mark.large
def test_equal_partial_hash_alone_gives_no_perfect_score(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (40, 256, 384, 3), dtype=np.uint8)
    options = {"crf": "4", "preset": "ultrafast", "g": "1"}
    black = [np.zeros((256, 384, 3), np.uint8)] * 2
    one = encode(tmp_path / "a.mkv", [*black, *noise, *black], rate=5, options=options)
    assert one.stat().st_size > 4 * MIB
    assert not content_hash(str(one), one.stat().st_size).is_whole
    other = sampled_alike(one, tmp_path / "elsewhere.mkv")
    with Index.open(tmp_path / "index", create=True) as index:
        index.add(one, workers=1)
        assert index.search(one)[0].score == 1.0
        copy = tmp_path / "copy.mkv"
        copy.write_bytes(one.read_bytes())
        assert index.search(copy)[0].score == 1.0
        assert all(match.score < 1.0 for match in index.search(other))
        report = index.add(other, workers=1)
        assert len(report.added) == 1
        first, second = index.videos()
        assert first.content_hash != second.content_hash


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_pipe_that_replaced_a_file_does_not_block(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"a video that will be gone")
    files = scan([tmp_path]).files
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    (step,) = Plan([]).steps(files)
    assert isinstance(step, Fail)
    assert step.cause == "cannot be read: this is not a regular file"


def test_growing_file_is_read_only_to_its_recorded_size(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(bytes(1000))
    before = content_hash(str(path), 1000)
    path.write_bytes(bytes(2000))
    assert content_hash(str(path), 1000) == before
