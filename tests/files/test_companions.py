"""Companions of a video share its name and belong to no other video; photographs are never companions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from tests.support.plans import proven_group
from vidkin.files.companions import belongs_to, find_companions, find_photograph
from vidkin.index import DuplicateMember, plan_removal


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(name.encode())


def companions(folder: Path, video: str) -> set[str]:
    return {os.path.basename(path) for path in find_companions(str(folder / video))}


@pytest.mark.parametrize(
    "name",
    [
        *("film.srt", "film.en.srt", "film.pt-BR.srt", "film.zh_Hans.ass", "film.eng.forced.SRT", "film.2.vtt"),
        *("film.nfo", "film.xmp", "film.mp4.xmp", "film.mp4.json", "film.info.json", "film.description", "film.txt"),
        *("film.chapters.txt", "film-chapters.xml", "film.chapter.xml", "film.ffmetadata", "film.edl"),
        *("film.jpg", "film-poster.jpg", "film-fanart2.png", "film.tbn", "film.THM", "film.mp4.jpg", "film.webp"),
        "film.mp4.supplemental-metadata.json",
    ],
)
def test_companion_names_are_recognized(name: str) -> None:
    assert belongs_to(name, "film.mp4")


@pytest.mark.parametrize(
    "name",
    [
        *("film.mp4", "film.mkv", "film 2.srt", "film2.nfo", "Film.srt", "fil.srt", "film", "film.srt.bak"),
        *("film.part one.srt", "film.a.b.c.d.srt", "film.zip", "film.prproj", "film.mp3", "film.heic", "film.mkv.xmp"),
        *("film-notes.txt", "film-poster.txt", "film.en.jpg"),
    ],
)
def test_other_names_are_not_companions(name: str) -> None:
    assert not belongs_to(name, "film.mp4")


def test_files_shared_by_two_videos_belong_to_neither(tmp_path: Path) -> None:
    make(tmp_path, "film.mp4", "film.MKV", "film.srt", "film.nfo", "film.mp4.xmp", "film.mkv.xmp")
    make(tmp_path, "day.mp4", "day.en.mp4", "day.srt", "day.en.srt", "day.en.forced.srt", "day-poster.jpg")
    assert companions(tmp_path, "film.mp4") == {"film.mp4.xmp"}
    assert companions(tmp_path, "film.MKV") == set()
    assert companions(tmp_path, "day.mp4") == {"day.srt", "day-poster.jpg"}
    assert companions(tmp_path, "day.en.mp4") == set()


def test_links_and_folders_are_not_companions_and_undecodable_names_are(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    make(tmp_path, "film.mp4", "elsewhere.txt")
    (tmp_path / f"{odd}.mp4").write_bytes(b"")
    (tmp_path / f"{odd}.srt").write_bytes(b"")
    (tmp_path / "film.srt").symlink_to(tmp_path / "elsewhere.txt")
    (tmp_path / "film.nfo").mkdir()
    assert companions(tmp_path, "film.mp4") == set()
    assert companions(tmp_path, f"{odd}.mp4") == {f"{odd}.srt"}
    assert find_companions(str(tmp_path / "none" / "film.mp4")) == ()


def test_live_photo_is_distinguished_from_a_video_with_a_cover_image(tmp_path: Path) -> None:
    make(tmp_path, "live.mov", "live.HEIC", "short.mp4", "short.jpg", "long.mp4", "long.jpg", "raw.mp4", "raw.dng")
    make(tmp_path, "camera.mp4", "apple.mov", "apple.JPG")
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    Image.new("RGB", (8, 8)).save(tmp_path / "camera.jpg", exif=exif)
    found = {
        name: os.path.basename(find_photograph(str(tmp_path / name), duration))
        for name, duration in {
            "live.mov": 3.0,
            "short.mp4": 3.0,
            "long.mp4": 60.0,
            "raw.mp4": 60.0,
            "camera.mp4": 60.0,
            "apple.mov": 60.0,
        }.items()
    }
    assert found == {
        "live.mov": "live.HEIC",
        "short.mp4": "short.jpg",
        "long.mp4": "",
        "raw.mp4": "raw.dng",
        "camera.mp4": "camera.jpg",
        "apple.mov": "apple.JPG",
    }
    assert companions(tmp_path, "long.mp4") == {"long.jpg"}
    # Indexed images have no photograph of their own.
    assert find_photograph(str(tmp_path / "short.jpg"), 0.0) == ""
    assert companions(tmp_path, "short.jpg") == set()
    # Photographs are never moved with a video.
    assert companions(tmp_path, "camera.mp4") == set()
    assert companions(tmp_path, "live.mov") == set()


def test_plan_lists_companions_and_leaves_live_photos_alone(tmp_path: Path) -> None:
    make(tmp_path, "best.mp4", "best.srt", "spare.mp4", "spare.en.srt", "spare.nfo", "live.mov", "live.heic")

    def member(name: str, *, best: bool = False) -> DuplicateMember:
        return DuplicateMember(str(tmp_path / name), 0.9, 8, 8, 3.0, 9, best)

    (group,) = plan_removal(
        [proven_group((member("best.mp4", best=True), member("spare.mp4"), member("live.mov")))]
    ).groups
    (file,) = group.remove
    assert [Path(item.path).name for item in file.companions] == ["spare.en.srt", "spare.nfo"]
    assert [item.size for item in file.companions] == [12, 9]
    (stays,) = group.stay
    assert stays.why == f"it is the video part of a photograph, {tmp_path / 'live.heic'}"
