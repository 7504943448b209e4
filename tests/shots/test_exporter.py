"""Exported files of several videos: targets, names, errors before any work starts, and later failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.detections import cut_video, detection
from vidkin.errors import InvalidArgumentError, MediaError, MissingPartError
from vidkin.shots import ShotDetection, ShotExporter, ShotFormat


def note_path(_: ShotDetection, path: Path) -> None:
    path.write_text("written")


FORMATS = {"notes": ShotFormat(".txt", note_path)}


def test_target_of_one_video_is_a_file(tmp_path: Path) -> None:
    exporter = ShotExporter({"edl": tmp_path / "a.edl", "csv": tmp_path / "a.csv"}, ["film.mp4"])
    exported = exporter.export(detection("film.mp4"))
    assert exported.files == (("edl", tmp_path / "a.edl"),)
    assert (exported.thumbnails, exported.split, exported.failures) == ((), None, ())
    assert exporter.export_tables() == ({"csv": tmp_path / "a.csv"}, ())
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 4
    assert ShotExporter({"csv": tmp_path / "b.csv"}, ["film.mp4"]).export_tables() == ({}, ())


def test_target_of_several_videos_is_a_folder_with_files_named_after_them(tmp_path: Path) -> None:
    sources = ["film.mp4", "more/film.mp4", "more/FILM.mkv"]
    exporter = ShotExporter({"chapters": tmp_path / "lists"}, sources)
    written = [path for source in sources for _, path in exporter.export(detection(source)).files]
    assert [path.name for path in written] == [
        "film.chapters.txt",
        "film-2.chapters.txt",
        "FILM-3.chapters.txt",
    ]
    assert {path.parent for path in written} == {tmp_path / "lists"}


def test_existing_folder_gets_the_file_of_one_video(tmp_path: Path) -> None:
    exporter = ShotExporter({"notes": tmp_path}, ["film.mp4"], formats=FORMATS)
    assert exporter.export(detection("film.mp4")).files == (("notes", tmp_path / "film.txt"),)


def test_thumbnails_and_pieces_are_written(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    exporter = ShotExporter({"thumbnails": tmp_path / "images", "split": tmp_path / "pieces"}, [str(source)])
    exported = exporter.export(detection(source))
    assert [path.name for path in exported.thumbnails] == [f"film-00{number}.jpg" for number in (1, 2, 3)]
    assert exported.split is not None
    assert [Path(piece.path).name for piece in exported.split.pieces] == [
        f"film-00{number}.mp4" for number in (1, 2, 3)
    ]


def test_failure_is_reported_and_other_formats_are_still_written(tmp_path: Path) -> None:
    def fail(_: ShotDetection, path: Path) -> None:
        raise MediaError(path, "the disk is full")

    def refuse(_: ShotDetection, path: Path) -> None:
        raise InvalidArgumentError("nothing to draw")

    formats = {"a": ShotFormat(".a", fail), "b": ShotFormat(".b", refuse), **FORMATS}
    targets = {name: tmp_path / name for name in formats}
    exported = ShotExporter(targets, ["film.mp4"], formats=formats).export(detection("film.mp4"))
    assert exported.files == (("notes", tmp_path / "notes"),)
    assert exported.failures == (
        ("film.mp4", f"{tmp_path / 'a'}: the disk is full"),
        ("film.mp4", "nothing to draw"),
    )


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({"svg": "a.svg"}, "targets must be among thumbnails, split, edl, .*, got 'svg'"),
        ({"edl": "none/a.edl"}, r"edl: there is no folder .*none'; create it first"),
        ({"csv": "folder"}, r"csv must be a file, got the folder '.*folder'"),
        ({"split": "file"}, r"split must be a folder, got the file '.*file'"),
        (
            {"csv": "film.mp4"},
            r"csv would overwrite '.*film.mp4', which is one of the videos; choose another",
        ),
        (
            {"csv": "a", "edl": "a"},
            r"edl would overwrite '.*a', which is the file of csv; choose another name",
        ),
    ],
)
def test_targets_are_checked_before_work_starts(tmp_path: Path, targets: dict[str, str], message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgumentError, match=message):
        ShotExporter({name: tmp_path / target for name, target in targets.items()}, [str(tmp_path / "film.mp4")])


def test_unwritable_export_folder_is_rejected_before_work_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's answer is simulated, because some users, such as root in a container, can write to any folder."""
    locked = tmp_path / "locked"
    locked.mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != locked)
    with pytest.raises(InvalidArgumentError, match=r"split: '.*locked' cannot be written to; choose another"):
        ShotExporter({"split": locked / "not yet" / "there"}, ["film.mp4"])
    ShotExporter({"split": tmp_path / "not yet"}, ["film.mp4"])


def test_formats_are_checked_before_work_starts(tmp_path: Path) -> None:
    def missing() -> None:
        raise MissingPartError("install it")

    def refuse(path: Path) -> None:
        raise InvalidArgumentError(f"not {path.name}")

    formats = {
        "a": ShotFormat(".a", note_path, require=missing),
        "b": ShotFormat(".b", note_path, check=refuse),
    }
    for sources in (["film.mp4"], ["film.mp4", "other.mp4"]):
        with pytest.raises(MissingPartError, match="install it"):
            ShotExporter({"a": tmp_path / "a"}, sources, formats=formats)
    with pytest.raises(InvalidArgumentError, match="not file"):
        ShotExporter({"b": tmp_path / "file"}, ["film.mp4"], formats=formats)
    # With several videos, the target is a folder in which vidkin chooses the names.
    ShotExporter({"b": tmp_path / "file"}, ["film.mp4", "other.mp4"], formats=formats)


def test_piece_never_overwrites_a_video(tmp_path: Path) -> None:
    first = cut_video(tmp_path / "film.mp4")
    exporter = ShotExporter({"split": tmp_path}, [str(first), str(tmp_path / "film-002.mp4")])
    (failure,) = exporter.export(detection(first)).failures
    assert failure[0] == str(first)
    assert "split would overwrite" in failure[1]
    assert "which is one of the videos; choose another folder" in failure[1]
    assert not (tmp_path / "film-001.mp4").exists()
