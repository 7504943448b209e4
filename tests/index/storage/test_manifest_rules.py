"""Patterns exclude files and folders according to the documented rules of `--exclude`."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.index import FolderRules

CLIP = "/films/2024/trip proxy.mp4"


@pytest.mark.parametrize(
    ("pattern", "path", "is_folder"),
    [
        ("*proxy*", CLIP, False),
        ("*proxy*", "/films/proxy files", True),
        ("trip ?????.mp4", CLIP, False),
        ("Trash/", "/films/Trash", True),
        ("2024/*.mp4", CLIP, False),
        ("/films/2024/*", CLIP, False),
        ("[tT]rip*", CLIP, False),
    ],
)
def test_pattern_excludes_matching_files(pattern: str, path: str, is_folder: bool) -> None:
    assert FolderRules((pattern,)).excluded_by(path, is_folder=is_folder) == pattern


@pytest.mark.parametrize(
    ("pattern", "path", "is_folder"),
    [
        ("proxy", CLIP, False),  # the whole name, not just a part of it
        ("Trash/", "/films/Trash", False),  # a file with that name
        ("*PROXY*", CLIP, False),  # case matters
        ("04/trip*", CLIP, False),  # not a part of a folder name
        ("/2024/*", CLIP, False),  # anchored at the root
    ],
)
def test_pattern_keeps_other_files(pattern: str, path: str, is_folder: bool) -> None:
    assert FolderRules((pattern,)).excluded_by(path, is_folder=is_folder) is None


def test_first_matching_pattern_is_reported() -> None:
    rules = FolderRules(("*.mkv", "trip*", "*.mp4"))
    assert rules.excluded_by(CLIP, is_folder=False) == "trip*"


def test_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    rules = FolderRules(("~/old/*",))
    assert rules.excluded_by(f"{tmp_path}/old/a.mp4", is_folder=False) == "~/old/*"
    assert rules.excluded_by("/old/a.mp4", is_folder=False) is None


def test_file_in_an_excluded_folder_is_excluded() -> None:
    rules = FolderRules(("cache/",))
    assert rules.excludes_below("/films/cache/deep/a.mp4", "/films")
    assert not rules.excludes_below("/films/deep/a.mp4", "/films")
    # A scanned folder itself is never excluded, whatever its name.
    assert not rules.excludes_below("/films/cache/a.mp4", "/films/cache")


def test_file_in_a_trash_folder_is_excluded_unless_these_are_included() -> None:
    assert FolderRules().excludes_below("/films/#recycle/2024/a.mp4", "/films")
    assert FolderRules().excludes_below("/films/.zfs/snapshot/monday/a.mp4", "/films")
    assert not FolderRules().excludes_below("/films/#recycle/2024/a.mp4", "/films/#recycle")
    assert not FolderRules(include_bins=True).excludes_below("/films/#recycle/2024/a.mp4", "/films")


def test_changed_rules_replace_values_and_none_keeps_them() -> None:
    rules = FolderRules(("a*",), follow_links=True)
    assert rules.changed(None, None, None) == rules
    assert rules.changed("b*", None, True) == FolderRules(("b*",), follow_links=True, images=True)
    assert rules.changed([], False, None) == FolderRules()
    assert rules.changed(include_bins=True) == FolderRules(("a*",), follow_links=True, include_bins=True)
    assert rules.changed(include_bins=True).changed().include_bins


@pytest.mark.parametrize("pattern", ["", "/", "//"])
def test_pattern_without_a_name_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"for example .*, got '{pattern}'"):
        FolderRules(("a", pattern))
