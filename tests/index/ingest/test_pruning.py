"""Which videos ``prune`` removes, and when it refuses because a drive or share may not be connected."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index.helpers import video
from vidkin.errors import CollectionDamagedError
from vidkin.index import Index, IngestReport, Removals, SerialExecutor, WorkerSpec, check_files, scan
from vidkin.index.ingest import pruning
from vidkin.index.ingest.pruning import Device, identify_device

HERE = SerialExecutor(WorkerSpec("classical"))
NAMES = ("a.mp4", "b.mp4", "c.mp4", "sub/d.mp4")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four videos and an index of them; tests copy both."""
    root = tmp_path_factory.mktemp("made")
    for seed, name in enumerate(NAMES):
        video(root / "videos" / name, seed=seed, frames=5)
    with Index.open(root / "c.vidkin", extractor="classical", create=True) as index:
        index.use_sound(False)
        index.add(root / "videos", executor=HERE)
    return root


@pytest.fixture
def videos(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made / "videos", tmp_path / "videos")


@pytest.fixture
def index(made: Path, videos: Path) -> Iterator[Index]:
    """An index in which the copied videos are recognized."""
    with Index.open(shutil.copytree(made / "c.vidkin", videos.parent / "c.vidkin")) as opened:
        add(opened, videos)
        opened.remove(made / "videos")
        yield opened


def add(index: Index, *names: Path, **options: object) -> IngestReport:
    return index.add(names, executor=HERE, **options)  # type: ignore[arg-type]


def names(report: IngestReport) -> list[str]:
    return [os.path.basename(item.path) for item in report.removed]


def empty(folder: Path) -> None:
    """Simulate an empty mount point."""
    shutil.rmtree(folder)
    folder.mkdir()


def test_videos_on_an_unmounted_share_are_kept(index: Index, videos: Path) -> None:
    shutil.move(videos, videos.parent / "unmounted")
    videos.mkdir()
    (videos / "README").touch()
    report = add(index, videos, prune=True)
    assert report.prune_refused == (
        f"nothing was pruned: {videos} no longer contains videos, as if its drive or share were disconnected, and 4 "
        "videos in the index were in it; connect it and run the command again, or add --prune-anyway if they were "
        "deleted intentionally"
    )
    assert (report.removed, len(report.missing), len(index)) == ((), 4, 4)
    # When the share is connected again, nothing is refused.
    shutil.rmtree(videos)
    shutil.move(videos.parent / "unmounted", videos)
    assert (add(index, videos, prune=True).prune_refused, len(index)) == ("", 4)


def test_empty_folder_is_pruned_on_explicit_request(index: Index, videos: Path) -> None:
    empty(videos)
    report = add(index, videos, prune="anyway")
    assert (len(report.removed), report.prune_refused, len(index)) == (4, "", 0)


def test_nothing_is_pruned_if_one_of_several_folders_is_missing(index: Index, videos: Path) -> None:
    shutil.move(videos / "sub", videos.parent / "sub")
    add(index, videos.parent / "sub")
    add(index, videos, prune=True)
    other = videos.parent / "sub"
    (videos / "a.mp4").unlink()
    shutil.rmtree(other)
    report = add(index, videos, other, prune=True)
    assert report.prune_refused.startswith(
        f"nothing was pruned: {other} is missing, and 1 video in the index was in it; connect its drive or share"
    )
    assert (report.removed, len(index)) == ((), 4)
    report = add(index, videos, other, prune="anyway")
    assert (sorted(names(report)), report.broken, len(index)) == (["a.mp4", "d.mp4"], (), 2)


def test_different_drive_at_the_same_mount_point_is_noticed(
    index: Index, videos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (videos / "a.mp4").unlink()
    monkeypatch.setattr(pruning, "identify_device", lambda path: Device("/mnt", "UUID=other"))
    # Only folders that contain videos are recorded, so a run without --prune in between changes nothing.
    add(index, videos)
    report = add(index, videos, prune=True)
    assert report.prune_refused.startswith(f"nothing was pruned: {videos} is on another drive or share (UUID=other at")
    assert "1 video in the index was in it" in report.prune_refused
    assert (report.removed, len(index)) == ((), 4)
    assert names(add(index, videos, prune="anyway")) == ["a.mp4"]
    # From now on, this is the recorded drive of the folder.
    (videos / "b.mp4").unlink()
    assert names(add(index, videos, prune=True)) == ["b.mp4"]


def test_complete_library_copied_to_a_new_drive_is_accepted(
    index: Index, videos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "identify_device", lambda path: Device("/mnt", "UUID=new"))
    add(index, videos)
    (videos / "a.mp4").unlink()
    assert names(add(index, videos, prune=True)) == ["a.mp4"]


def test_single_files_on_another_drive_are_kept(index: Index, videos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (videos / "a.mp4").unlink()
    assert names(add(index, videos / "a.mp4", prune=True)) == ["a.mp4"]  # on the same drive, so it was deleted
    (videos / "b.mp4").unlink()
    monkeypatch.setattr(pruning, "identify_device", lambda path: Device("/mnt"))
    report = add(index, videos / "b.mp4", prune=True)
    assert f"{videos} is on another drive or share (/mnt) than before" in report.prune_refused
    assert report.removed == ()


def test_videos_on_a_missing_drive_below_a_folder_are_kept(index: Index, videos: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == videos.stat().st_dev:
        pytest.skip("there is no second file system")
    drive = memory / f"vidkin-{os.getpid()}"
    shutil.move(videos / "sub", drive)
    try:
        (videos / "sub").symlink_to(drive)
        assert add(index, videos, follow_links=True, prune=True).prune_refused == ""
        assert len(index) == 4
        (videos / "sub").unlink()
        (videos / "sub").mkdir()
        report = add(index, videos, prune=True)
        assert f"{videos / 'sub'} is on another drive or share" in report.prune_refused
        (videos / "sub").rmdir()
        report = add(index, videos, prune=True)
        assert f"{videos / 'sub'} is missing, and 1 video in the index was in it" in report.prune_refused
        assert (report.removed, len(index)) == ((), 4)
    finally:
        shutil.rmtree(drive)


def test_up_to_half_of_the_videos_are_pruned_without_confirmation(index: Index, videos: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        (videos / name).unlink()
    report = add(index, videos, prune=True)
    assert (names(report), report.prune_refused) == (["a.mp4", "b.mp4"], "")


def test_more_than_half_of_the_videos_are_pruned_only_on_request(index: Index, videos: Path) -> None:
    for name in NAMES[:3]:
        (videos / name).unlink()
    report = add(index, videos, prune=True)
    assert report.prune_refused == (
        "nothing was pruned: 3 of 4 videos indexed from these folders are gone or excluded, more than half; check the "
        "folders and options, or add --prune-anyway to remove them from the index"
    )
    assert len(index) == 4
    assert len(add(index, videos, prune="anyway").removed) == 3


def test_moved_videos_count_as_present(index: Index, videos: Path) -> None:
    (videos / "new").mkdir()
    for name in NAMES[:3]:
        (videos / name).rename(videos / "new" / name)
    report = add(index, videos, prune=True)
    assert (len(report.moved), report.prune_refused, report.removed) == (3, "", ())


def test_excluding_most_videos_needs_confirmation(index: Index, videos: Path) -> None:
    report = add(index, videos, prune=True, exclude="*.mp4")
    assert "4 of 4 videos indexed from these folders are gone or excluded" in report.prune_refused
    assert (len(report.excluded), len(index)) == (4, 4)


def test_indexed_videos_in_trash_folders_count_as_excluded(index: Index, videos: Path) -> None:
    (videos / "sub").rename(videos / "#recycle")
    add(index, videos, include_bins=True)
    report = add(index, videos, include_bins=False)
    assert [item.path for item in report.excluded] == [str(videos / "#recycle/d.mp4")]
    assert names(add(index, videos, prune=True)) == ["d.mp4"]
    # Files given by name are indexed.
    assert [item.path for item in add(index, videos / "#recycle").added] == [str(videos / "#recycle/d.mp4")]


def test_folder_with_a_file_being_written_is_not_empty(index: Index, videos: Path) -> None:
    add(index, videos / "sub")
    empty(videos / "sub")
    video(videos / "sub" / "new.mp4", seed=9, frames=5)
    found = scan([videos, videos / "sub"]).only(lambda file: "new" not in file.path)
    report = add(index, videos, videos / "sub", prune=True, found=found)
    assert (names(report), report.prune_refused) == (["d.mp4"], "")


def test_files_moved_away_by_a_plan_are_pruned_without_confirmation(index: Index, videos: Path) -> None:
    for number in range(6):
        shutil.copy(videos / "a.mp4", videos / f"copy {number}.mp4")
    add(index, videos)
    _, actions = Removals(index.place).carry_out(
        index.duplicates(prove=True), folder=videos.parent / "spare", records=index.videos()
    )
    moved = [action.path for action in actions if action.outcome == "removed"]
    assert len(moved) == 6
    report = add(index, videos, prune=True)
    assert ([item.path for item in report.removed], report.prune_refused) == (sorted(moved), "")
    assert len(index) == 4


def test_error_for_a_damaged_device_list_states_the_remedy(index: Index, videos: Path) -> None:
    for content in ("{", '{"devices": {"/v": {"mount": 3}}}', '{"devices": []}'):
        (index.path / "devices.json").write_text(content)
        with pytest.raises(CollectionDamagedError, match=r"devices\.json is damaged .*; delete it and run"):
            add(index, videos)
        with pytest.raises(CollectionDamagedError, match=r"devices\.json"):
            check_files(index.place)
    (index.path / "devices.json").unlink()
    add(index, videos)
    assert list(json.loads((index.path / "devices.json").read_text())["devices"]) == [str(videos)]


def test_device_id_survives_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uuids, mounts = tmp_path / "by-uuid", tmp_path / "mountinfo"
    uuids.mkdir()
    (uuids / "1234-ABCD").symlink_to("/dev/sdx1")
    mounts.write_text(
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "30 27 0:40 / /mnt/my\\040nas rw shared:1 - autofs /etc/auto.nas rw\n"
        "31 27 0:41 / /mnt/my\\040nas rw shared:1 master:2 - nfs4 nas:/volume\\0401 rw\n"
        "32 27 8:1 / /mnt/usb rw - ext4 /dev/sdx1 rw\n"
        "33 27 8:1 / /mnt/crypt rw - ext4 /dev/mapper/crypt rw\n"
    )
    monkeypatch.setattr(pruning, "_MOUNTS", str(mounts))
    monkeypatch.setattr(pruning, "_UUIDS", str(uuids))
    assert identify_device("/mnt/my nas/films") == Device("/mnt/my nas", "nas:/volume 1")
    assert identify_device("/mnt/my nas") == Device("/mnt/my nas", "nas:/volume 1")
    assert identify_device("/mnt/my") == Device("/")
    assert identify_device("/mnt/usb/films") == Device("/mnt/usb", "UUID=1234-ABCD")
    assert identify_device("/mnt/crypt") == Device("/mnt/crypt", "/dev/mapper/crypt")
    # A device without an id may be the same one.
    assert not Device("/mnt/usb").differs_from(Device("/mnt/usb", "UUID=1"))
    assert Device("/mnt/usb", "UUID=2").differs_from(Device("/mnt/usb", "UUID=1"))
    assert Device("/").differs_from(Device("/mnt/usb"))


@pytest.mark.skipif(sys.platform == "win32", reason="volumes have numbers there")
def test_mount_points_are_found_without_a_mount_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_MOUNTS", str(tmp_path / "none"))
    monkeypatch.setattr(os.path, "ismount", lambda path: path == str(tmp_path))
    (tmp_path / "films/old").mkdir(parents=True)
    assert identify_device(str(tmp_path / "films/old")) == Device(str(tmp_path))
