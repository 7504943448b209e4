"""Files that are made once."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vidkin.web.cache import DiskCache


def test_file_is_made_once_for_simultaneous_requests(tmp_path: Path) -> None:
    cache, made = DiskCache(tmp_path / "cache", most=10_000), []

    def make(path: Path) -> None:
        made.append(path.suffix)
        time.sleep(0.05)
        path.write_bytes(b"picture")

    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: cache.get("a key \udcff", ".webp", make), range(16)))
    assert made == [".webp"]
    (path,) = paths
    assert path.read_bytes() == b"picture"
    # Another process finds it, too; another key is another file.
    again = DiskCache(tmp_path / "cache", most=10_000)
    assert again.get("a key \udcff", ".webp", make) == path
    assert again.get("another", ".webp", make) != path
    assert len(made) == 2


def test_failure_leaves_no_file_and_is_retried(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", most=10_000)

    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            cache.get("key", ".mp4", fail)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
    assert cache.get("key", ".mp4", lambda path: path.write_bytes(b"x") and None).read_bytes() == b"x"


def test_least_recently_used_files_are_deleted_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", most=1000)
    paths = [cache.get(str(number), ".bin", lambda path: path.write_bytes(bytes(300)) and None) for number in range(3)]
    for age, path in enumerate(reversed(paths), start=1):
        os.utime(path, (time.time() - 100 * age,) * 2)
    cache.get("0", ".bin", lambda path: pytest.fail("it is there"))  # used now: younger than 1 and 2
    new = cache.get("3", ".bin", lambda path: path.write_bytes(bytes(300)) and None)
    assert [path.exists() for path in (*paths, new)] == [True, False, True, True]


def test_unwritable_folder_is_replaced_for_this_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "ab").symlink_to(elsewhere)  # its oldest files would be deleted
    for folder in (tmp_path / "file", tmp_path / "link", tmp_path / "parts"):
        cache = DiskCache(folder, most=1000)
        path = cache.get("key", ".bin", lambda path: path.write_bytes(b"x") and None)
        assert tmp_path not in path.parents
        cache.close()
        assert not path.exists()
    assert list(elsewhere.iterdir()) == []


def test_different_keys_do_not_block_each_other(tmp_path: Path) -> None:
    cache, gate = DiskCache(tmp_path / "cache", most=10_000), threading.Event()

    def slow(path: Path) -> None:
        assert gate.wait(10)
        path.write_bytes(b"slow")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cache.get, "slow", ".bin", slow)
        assert cache.get("fast", ".bin", lambda path: path.write_bytes(b"x") and None).is_file()
        gate.set()
        assert waiting.result().read_bytes() == b"slow"
