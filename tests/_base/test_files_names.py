"""File names that are valid on every system, and different paths to the same file."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin._base.files import (
    check_length,
    describe_missing,
    drive_name,
    is_within,
    open_regular_file,
    read_at,
    safe_name,
)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("film", "film"),
        ("Amélie – 日本 (2001)", "Amélie – 日本 (2001)"),
        ("What? 1:2", "What_ 1_2"),
        ('a<b>c|d*e"f', "a_b_c_d_e_f"),
        ("a/b\\c", "a_b_c"),
        ("tab\tnew\nline\0", "tab_new_line_"),
        ("CON", "_CON"),
        ("aux.txt", "_aux.txt"),
        ("nul .mp4", "_nul .mp4"),
        ("COM1.tar.gz", "_COM1.tar.gz"),
        ("lpt²", "_lpt²"),
        ("console", "console"),
        ("com10", "com10"),
        ("The End...", "The End..._"),
        ("space ", "space _"),
        ("..", ".._"),
        ("", "_"),
    ],
)
def test_name_is_changed_only_if_some_system_rejects_it(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text(max_size=400))
def test_every_name_is_valid_on_windows(name: str) -> None:
    name = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    safe = safe_name(name)
    assert PureWindowsPath(safe).name == safe
    assert not PureWindowsPath(safe).is_reserved()
    assert safe[-1] not in ". "
    assert not set(safe) & set('<>:"/\\|?*')
    assert not any(ord(character) < 32 for character in safe)
    assert len(safe.encode()) <= 202
    assert safe_name(safe) == safe


def test_long_name_is_truncated_between_characters() -> None:
    assert safe_name("x" * 300) == "x" * 200
    assert safe_name("🎬" * 100) == "🎬" * 50
    assert safe_name("é" * 300, longest=21) == "é" * 10


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        (r"C:\films\a.mp4", "C"),
        (r"d:a.mp4", "d"),
        (r"\\server\films\a.mp4", "server-films"),
        (r"\\?\C:\films\a.mp4", "C"),
        (r"\\?\UNC\server\films\a.mp4", "UNC-server-films"),
        (r"\films\a.mp4", ""),
    ],
)
def test_drive_or_network_share_becomes_a_single_safe_folder_name(path: str, folder: str) -> None:
    name = drive_name(PureWindowsPath(path).drive)
    assert name == folder
    assert not name or safe_name(name) == name


def test_path_is_within_a_folder_under_any_name_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "Videos" / "keep"
    folder.mkdir(parents=True)
    film = folder / "a.mp4"
    film.touch()
    (tmp_path / "link").symlink_to(folder)
    for inside in (film, folder, tmp_path / "link" / "a.mp4", folder / ".." / "keep" / "gone.mp4"):
        assert is_within(inside, folder)
        assert is_within(inside, tmp_path / "link")
    for outside in (tmp_path / "a.mp4", tmp_path / "Videos" / "keeper" / "a.mp4", folder.parent):
        assert not is_within(outside, folder)
    assert not is_within(film, tmp_path / "no such folder")


def test_folders_are_the_same_if_the_system_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a case-insensitive file system on which `realpath` keeps the case of the given path (macOS)."""
    (tmp_path / "Keep").mkdir()
    film = tmp_path / "Keep" / "a.mp4"
    film.touch()
    stat = os.stat

    def ignoring_case(path: str | os.PathLike[str]) -> os.stat_result:
        return stat(str(path).replace("keep", "Keep"))

    assert not is_within(film, tmp_path / "keep")
    monkeypatch.setattr("vidkin._base.files.os.stat", ignoring_case)
    assert is_within(film, tmp_path / "keep")
    assert not is_within(tmp_path / "b.mp4", tmp_path / "keep")


@pytest.mark.parametrize("has_pread", [True, False])
def test_threads_sharing_a_file_read_their_own_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pread: bool
) -> None:
    if not has_pread:
        monkeypatch.delattr(os, "pread", raising=False)
    content = bytes(range(256)) * 100
    (tmp_path / "a").write_bytes(content)
    wrong: list[int] = []
    with open_regular_file(tmp_path / "a") as file:

        def read(start: int) -> None:
            for place in range(start, start + 1000, 10):
                if read_at(file.fileno(), 10, place) != content[place : place + 10]:
                    wrong.append(place)

        threads = [threading.Thread(target=read, args=(start,)) for start in (0, 3000, 7001)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert read_at(file.fileno(), 10, len(content)) == b""
    assert not wrong


def test_error_for_a_path_too_long_for_windows_states_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    long = os.path.abspath(os.sep + "a" * 259)
    monkeypatch.setattr("vidkin._base.files._MAX_PATH", sys.maxsize)
    assert describe_missing(long) == "there is no such file"  # systems without the limit
    monkeypatch.setattr("vidkin._base.files._MAX_PATH", 259)
    assert describe_missing(long[:-1]) == "there is no such file"
    assert describe_missing(long) == (
        f"its path has {len(long)} characters, and Windows opens at most 259; enable long paths (LongPathsEnabled in "
        "the registry), or move it to a folder with a shorter path"
    )
    assert describe_missing(long[:-1], "file or folder") == "there is no such file or folder"
    check_length(long[:-1])
    with pytest.raises(
        OSError, match=f"would have {len(long)} characters, and Windows opens at most 259; choose a folder"
    ):
        check_length(long)
