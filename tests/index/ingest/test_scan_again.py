"""Rescanning only the changed folders gives the result of a full scan."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from vidkin.index import FolderRules
from vidkin.index.ingest.scan import Scan, rescan, scan

RULES = FolderRules(exclude=("out", "*.skip.mp4"))


def _write(path: Path, content: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _change(root: Path, random_: random.Random) -> set[str]:
    """Make a random change; return the folders whose entries changed."""
    folders = [root, *(path for path in sorted(root.rglob("*")) if path.is_dir())]
    folder = random_.choice(folders)
    name = random_.choice(["a.mp4", "b.mkv", "c.skip.mp4", "d.txt", ".h.mp4", "e.jpg"])
    below = random_.choice(["one", "two", "out", ".hidden", "#recycle"])
    kind = random_.choice(["file", "file", "gone", "folder", "remove", "move", "index"])
    if kind == "file":
        _write(folder / name, bytes(random_.randrange(1, 9)))
    elif kind == "gone":
        files = [path for path in folder.iterdir() if path.is_file()]
        if files:
            gone = random_.choice(files)
            gone.unlink()
            folder = folder.parent if gone.name == "collection.json" else folder
    elif kind == "folder":
        if (folder / below).exists():
            return set()
        _write(folder / below / "deep" / name)
    elif kind == "remove" and folder != root:
        shutil.rmtree(folder)
        folder = folder.parent
    elif kind == "move" and folder != root:
        target = root / f"moved {random_.random()}"
        folder.rename(target)
        return {str(folder.parent), str(root)}
    elif kind == "index" and folder != root:
        _write(folder / "collection.json", b"{}")
        folder = folder.parent
    return {str(folder)}


def _without_times(found: Scan) -> Scan:
    return replace(found, files=tuple(replace(file, mtime_ns=0) for file in found.files))


@pytest.mark.parametrize("seed", range(6))
def test_partial_rescan_equals_a_full_scan(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    root = tmp_path / "root"
    _write(root / "a.mp4")
    _write(root / "one" / "two" / "b.mkv")
    found, used = scan([root], RULES), 0
    for _ in range(60):
        changed = _change(root, random_) | _change(root, random_)
        # System notifications also name folders that the scan excluded or that no longer exist.
        changed = {path for path in changed if path in found.listed and os.path.isdir(path)}
        again = rescan(found, changed, RULES)
        whole = scan([root], RULES)
        if again is not None:
            used += 1
            assert _without_times(again) == _without_times(whole)
        found = whole
    assert used > 30


def test_rescan_reads_only_changed_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        _write(tmp_path / f"folder {number}" / "deep" / "a.mp4")
    found = scan([tmp_path])
    _write(tmp_path / "folder 3" / "b.mp4")
    _write(tmp_path / "folder 3" / "new" / "c.mp4")
    read: list[str] = []
    list_folder = os.scandir

    def noted(path: str) -> object:
        read.append(os.path.relpath(path, tmp_path))
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", noted)
    again = rescan(found, [str(tmp_path / "folder 3")], FolderRules())
    assert sorted(read) == ["folder 3", os.path.join("folder 3", "new")]
    monkeypatch.undo()
    assert again == scan([tmp_path])


def test_links_and_unreadable_folders_require_a_full_scan(tmp_path: Path) -> None:
    _write(tmp_path / "a" / "a.mp4")
    _write(tmp_path / "b" / "b.mp4")
    found = scan([tmp_path])
    assert rescan(found, [str(tmp_path / "other")], FolderRules()) is None
    (tmp_path / "b" / "link.mp4").symlink_to(tmp_path / "a" / "a.mp4")
    assert rescan(found, [str(tmp_path / "b")], FolderRules()) is None
    shutil.rmtree(tmp_path / "a")
    assert rescan(found, [str(tmp_path / "a")], FolderRules()) is None
