"""Which files a scan finds."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.index import BIN, FolderRules, is_gone, scan


def touch(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(folder: Path, *given: str | os.PathLike[str]) -> list[str]:
    return [os.path.relpath(file.path, folder) for file in scan(given or [folder]).files]


def test_folders_are_searched_for_videos(tmp_path: Path) -> None:
    for name in ("b.mp4", "a.MKV", "sub/deep/c.webm", "notes.txt", "d.jpg", ".hidden.mp4", ".cache/e.mp4"):
        touch(tmp_path / name)
    assert names(tmp_path) == ["a.MKV", "b.mp4", "sub/deep/c.webm"]
    scanned = scan([tmp_path])
    assert scanned.folders == (str(tmp_path),)
    assert scanned.problems == ()
    assert (scanned.files[0].size, scanned.files[0].mtime_ns) == (1, (tmp_path / "a.MKV").stat().st_mtime_ns)


def test_file_given_by_name_may_have_any_extension(tmp_path: Path) -> None:
    touch(tmp_path / "clip.bin")
    touch(tmp_path / ".hidden.mp4")
    assert names(tmp_path, tmp_path / "clip.bin", tmp_path / ".hidden.mp4") == [".hidden.mp4", "clip.bin"]


def test_each_file_is_found_once(tmp_path: Path) -> None:
    touch(tmp_path / "sub/a.mp4")
    assert names(tmp_path, tmp_path, tmp_path / "sub", tmp_path / "sub/a.mp4", tmp_path / "sub/../sub/a.mp4") == [
        "sub/a.mp4"
    ]


def test_patterns_and_the_home_folder_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a1.mp4", "a2.mkv", "sub/a3.mp4", "odd[1].mp4"):
        touch(tmp_path / name)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names(tmp_path, "~/a*") == ["a1.mp4", "a2.mkv"]
    assert names(tmp_path, f"{tmp_path}/**/*.mp4") == ["a1.mp4", "odd[1].mp4", "sub/a3.mp4"]
    assert names(tmp_path, tmp_path / "odd[1].mp4") == ["odd[1].mp4"]
    assert scan(["~/z*"]).problems == ((f"{tmp_path}/z*", "no file matches this pattern"),)


def test_unusual_file_names_are_preserved(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "Müsli café.mp4") for form in ("NFC", "NFD"))
    undecodable = os.fsdecode(b"\xff\xfe bytes.mp4")
    for name in (composed, decomposed, "with  two spaces .mp4", "映画 🎬.mp4", "new\nline.mp4", undecodable):
        touch(tmp_path / name)
    found = scan([tmp_path]).files
    assert len(found) == 6
    assert {os.path.basename(file.path) for file in found} >= {composed, decomposed, undecodable}
    assert all(os.path.getsize(file.path) == 1 for file in found)


def test_link_to_a_scanned_file_is_skipped(tmp_path: Path) -> None:
    touch(tmp_path / "real/a.mp4")
    touch(tmp_path / "elsewhere/b.mp4")
    (tmp_path / "real/loop").symlink_to(tmp_path / "real")
    (tmp_path / "real/a again.mp4").symlink_to(tmp_path / "real/a.mp4")
    (tmp_path / "real/b1.mp4").symlink_to(tmp_path / "elsewhere/b.mp4")
    (tmp_path / "real/b2.mp4").symlink_to(tmp_path / "elsewhere/b.mp4")
    (tmp_path / "real/dead.mp4").symlink_to(tmp_path / "nowhere")
    scanned = scan([tmp_path / "real"])
    assert [os.path.basename(file.path) for file in scanned.files] == ["a.mp4", "b1.mp4"]
    assert scanned.problems == ((str(tmp_path / "real/dead.mp4"), "there is no such file or folder"),)


def test_unreadable_paths_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / "a.mp4")
    touch(tmp_path / "locked/b.mp4")
    os.mkfifo(tmp_path / "pipe.mp4")
    list_folder = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", refuse)
    scanned = scan([tmp_path, tmp_path / "pipe.mp4", tmp_path / "missing"])
    assert [os.path.basename(file.path) for file in scanned.files] == ["a.mp4"]
    assert dict(scanned.problems) == {
        str(tmp_path / "locked"): "cannot be listed: permission denied",
        str(tmp_path / "pipe.mp4"): "is neither a regular file nor a folder",
        str(tmp_path / "missing"): "there is no such file or folder",
    }


def test_scan_distinguishes_transport_streams_from_typescript(tmp_path: Path) -> None:
    touch(tmp_path / "code.ts", b"export const a = 1;")
    touch(tmp_path / "stream.ts", b"\x47\x40\x00\x10" + bytes(184))
    touch(tmp_path / "camera.ts", b"\x00\x00\x00\x00\x47" + bytes(187))
    assert names(tmp_path) == ["camera.ts", "stream.ts"]


def test_is_gone_only_if_the_file_certainly_does_not_exist(tmp_path: Path) -> None:
    path = touch(tmp_path / "a.mp4")
    assert not is_gone(str(path))
    assert is_gone(str(tmp_path / "b.mp4"))
    assert is_gone(str(path / "inside a file"))
    assert not is_gone(str(tmp_path / ("x" * 300)))


def test_photographs_are_found_on_request(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.JPG", "sub/c.png", "d.txt"):
        touch(tmp_path / name)
    scanned = scan([tmp_path], FolderRules(images=True))
    assert [os.path.relpath(file.path, tmp_path) for file in scanned.files] == ["a.mp4", "b.JPG", "sub/c.png"]
    assert names(tmp_path) == ["a.mp4"]


def test_followed_folder_links_do_not_hide_real_folders(tmp_path: Path) -> None:
    touch(tmp_path / "videos/real/a.mp4")
    touch(tmp_path / "elsewhere/b.mp4")
    (tmp_path / "videos/before").symlink_to("real")
    (tmp_path / "videos/loop").symlink_to(tmp_path / "videos")
    (tmp_path / "videos/out").symlink_to(tmp_path / "elsewhere")
    videos = tmp_path / "videos"
    assert names(videos) == ["real/a.mp4"]
    reasons = dict(scan([videos]).skipped)
    assert set(reasons) == {str(videos / name) for name in ("before", "loop", "out")}
    followed = scan([videos], FolderRules(follow_links=True))
    assert [os.path.relpath(file.path, videos) for file in followed.files] == ["out/b.mp4", "real/a.mp4"]
    assert {os.path.basename(path) for path, _ in followed.skipped} == {"before", "loop"}
    assert names(videos / "out") == ["b.mp4"]  # a link given by name is followed


def test_skipped_files_have_a_reason(tmp_path: Path) -> None:
    for name in (
        "a.mp4",
        "a proxy.mp4",
        "Trash/b.mp4",
        ".hidden.mp4",
        "notes.txt",
        "2019/raw/c.mp4",
        "code.ts",
    ):
        touch(tmp_path / name)
    (tmp_path / "link.mp4").symlink_to("a.mp4")
    scanned = scan([tmp_path], FolderRules(exclude=("*proxy*", "Trash/", "2019/raw", "a.mp4/")))
    assert [os.path.basename(file.path) for file in scanned.files] == ["a.mp4"]
    assert {os.path.relpath(path, tmp_path): reason for path, reason in scanned.skipped} == {
        ".hidden.mp4": "hidden",
        "2019/raw": "excluded by 2019/raw",
        "Trash": "excluded by Trash/",
        "a proxy.mp4": "excluded by *proxy*",
        "code.ts": "TypeScript",
        "link.mp4": f"a link to {tmp_path / 'a.mp4'}, which is already included",
        "notes.txt": "not a video file extension",
    }


def test_scan_ignores_index_folders(tmp_path: Path) -> None:
    """Files in an index are not the user's videos, although previews have video extensions."""
    touch(tmp_path / "films/a.mp4")
    touch(tmp_path / "films/collection.vidkin/collection.json")
    touch(tmp_path / "films/collection.vidkin/previews/b.mp4")
    scanned = scan([tmp_path / "films"])
    assert [os.path.basename(file.path) for file in scanned.files] == ["a.mp4"]
    assert scanned.skipped == ((str(tmp_path / "films/collection.vidkin"), "an index"),)


SYSTEM_FOLDERS = (
    *("#recycle", "@Recycle", "@Recently-Snapshot", "$RECYCLE.BIN", "RECYCLER", "System Volume Information"),
    *(".Trash", ".Trash-1000", ".Trashes", ".local/share/Trash", "#snapshot", "@eaDir", ".snapshots", ".zfs/snapshot"),
    *("~snapshot", ".AppleDouble", "lost+found", ".@__thumb", ".thumbnails", ".stversions", "Network Trash Folder"),
    *("My.photoslibrary/resources/derivatives", "$Recycle.Bin", "@EADIR", "sub/#recycle"),
)


def test_trash_snapshots_and_previews_are_skipped_and_listed(tmp_path: Path) -> None:
    for name in ("a.mp4", "Recycled things/b.mp4", "recycle/c.mp4", "share/Trash/d.mp4", "resources/derivatives/e.mp4"):
        touch(tmp_path / name)
    for name in SYSTEM_FOLDERS:
        touch(tmp_path / name / "deeper/deleted.mp4")
    scanned = scan([tmp_path])
    assert [os.path.relpath(file.path, tmp_path) for file in scanned.files] == [
        "Recycled things/b.mp4",
        "a.mp4",
        "recycle/c.mp4",
        "resources/derivatives/e.mp4",
        "share/Trash/d.mp4",
    ]
    listed = {os.path.relpath(path, tmp_path) for path, reason in scanned.skipped if reason == BIN}
    assert listed == set(SYSTEM_FOLDERS)


def test_trash_snapshots_and_previews_are_scanned_on_request(tmp_path: Path) -> None:
    for name in SYSTEM_FOLDERS:
        touch(tmp_path / name / "deeper/deleted.mp4")
    touch(tmp_path / ".cache/b.mp4")
    scanned = scan([tmp_path], FolderRules(include_bins=True))
    found = {os.path.relpath(file.path, tmp_path) for file in scanned.files}
    assert found == {f"{name}/deeper/deleted.mp4" for name in SYSTEM_FOLDERS}
    reasons = {os.path.relpath(path, tmp_path): reason for path, reason in scanned.skipped}
    assert reasons == {".cache": "hidden", ".local": "hidden", ".zfs": "hidden"}
    rules = FolderRules(exclude=("#recycle/", "Trash"), include_bins=True)
    excluded = {os.path.relpath(path, tmp_path): reason for path, reason in scan([tmp_path], rules).skipped}
    assert excluded["#recycle"] == "excluded by #recycle/"
    assert excluded[".local/share/Trash"] == "excluded by Trash"


def test_trash_folder_given_by_name_is_scanned(tmp_path: Path) -> None:
    for name in ("#recycle", ".Trash-1000", ".zfs/snapshot"):
        touch(tmp_path / name / "x/a.mp4")
        touch(tmp_path / name / "@eaDir/preview.mp4")
        for path in (tmp_path / name, tmp_path / name / "x", tmp_path / name / "x/a.mp4"):
            assert names(tmp_path, path) == [f"{name}/x/a.mp4"]
    assert names(tmp_path) == []


def test_file_named_like_a_trash_folder_is_scanned(tmp_path: Path) -> None:
    touch(tmp_path / ".Trash-1")
    assert scan([tmp_path]).skipped == ((str(tmp_path / ".Trash-1"), "hidden"),)


def test_pipe_in_a_folder_is_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mp4")
    assert scan([tmp_path]).skipped == ((str(tmp_path / "a.mp4"), "neither a regular file nor a folder"),)


def test_files_given_by_name_are_included_despite_exclusions(tmp_path: Path) -> None:
    path = touch(tmp_path / "Trash/b.mp4")
    rules = FolderRules(exclude=("Trash", "*.mp4"))
    assert [file.path for file in scan([path], rules).files] == [str(path)]
    assert scan([tmp_path / "Trash"], FolderRules(exclude=("Trash",))).files[0].path == str(path)
    assert scan([tmp_path], rules).files == ()


@pytest.mark.parametrize(
    ("pattern", "path", "is_folder", "matches"),
    [
        ("*.MOV", "/v/a.MOV", False, True),
        ("*.MOV", "/v/a.mov", False, False),
        ("cam?", "/v/cam1", True, True),
        ("cam?/", "/v/cam1", False, False),
        ("[ab].mp4", "/v/b.mp4", False, True),
        ("2019/*.mp4", "/v/2019/a.mp4", False, True),
        ("2019/*.mp4", "/v/12019/a.mp4", False, False),
        ("/v/a.mp4", "/v/a.mp4", False, True),
        ("/v/a.mp4", "/w/v/a.mp4", False, False),
    ],
)
def test_exclude_patterns_match_names_and_paths(pattern: str, path: str, is_folder: bool, matches: bool) -> None:
    found = FolderRules(exclude=(pattern,)).excluded_by(path, is_folder=is_folder)
    assert (found == pattern) is matches


def test_patterns_that_match_nothing_or_everything_are_refused() -> None:
    for pattern in ("", "/"):
        with pytest.raises(InvalidArgumentError, match=f"for example .*, got '{pattern}'"):
            FolderRules(exclude=(pattern,))
