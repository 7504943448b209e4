"""Images of shots: which frames, how many, in which format and under which names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.detections import cut_video, detection
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import read_frames
from vidkin.shots import BlackStretch, NameTemplate, write_thumbnails


def test_thumbnail_is_the_middle_frame_of_the_visible_part_of_its_shot(tmp_path: Path) -> None:
    """The shots begin at frames 0, 20 and 45, with a dissolve over frames 43 to 47."""
    source = cut_video(tmp_path / "film 山.mp4")
    paths = write_thumbnails(detection(source), tmp_path / "pictures", short_side=128)
    assert [path.name for path in paths] == ["film 山-001.jpg", "film 山-002.jpg", "film 山-003.jpg"]
    assert frames_shown(source, paths) == [9, 31, 53]


def test_several_images_are_spread_over_a_shot(tmp_path: Path) -> None:
    """The shots have 20, 23 and 12 frames outside the dissolve; the images show the centers of their halves."""
    source = cut_video(tmp_path / "film.mp4")
    paths = write_thumbnails(detection(source), tmp_path / "pictures", short_side=None, count=2, form="png")
    assert [path.name for path in paths] == [f"film-00{shot}-{image}.png" for shot in (1, 2, 3) for image in (1, 2)]
    assert frames_shown(source, paths) == [4, 14, 25, 36, 50, 56]


def test_black_middle_frame_is_skipped(tmp_path: Path) -> None:
    """Of the first shot only frames 3 to 6, at a quarter of its length, are not black; the second shot is all black."""
    coffee, black = list(pan("coffee", 60)), np.zeros((128, 192, 3), np.uint8)
    images = [image if 3 <= place < 7 or place >= 45 else black for place, image in enumerate(coffee)]
    images[22] = black + np.uint8(25)
    source = encode(tmp_path / "film.mp4", images, options={"crf": "4"})
    paths = write_thumbnails(detection(source), tmp_path / "pictures", form="png", short_side=128)
    assert frames_shown(source, [paths[0]]) == [4]
    with Image.open(paths[1]) as picture:
        assert np.asarray(picture).mean() < 30
    assert len(paths) == 3


def test_image_of_a_mostly_black_shot_shows_its_visible_part(tmp_path: Path) -> None:
    """Only two frames are visible, which sampling at a few fixed positions would miss."""
    coffee, black = list(pan("coffee", 60)), np.zeros((128, 192, 3), np.uint8)
    images = [image if place in (30, 31) or place >= 45 else black for place, image in enumerate(coffee)]
    source = encode(tmp_path / "film.mp4", images, options={"crf": "4"})
    given = detection(source)
    stretches = ((0, 30), (32, 45))
    marked = replace(
        given,
        black=tuple(
            BlackStretch(start=first / 10, end=last / 10, start_frame=first, end_frame=last)
            for first, last in stretches
        ),
    )
    paths = write_thumbnails(marked, tmp_path / "pictures", form="png", short_side=128)
    assert frames_shown(source, [paths[1]])[0] in (30, 31)


def test_title_on_black_is_preferred_to_the_end_of_a_fade(tmp_path: Path) -> None:
    """The second shot begins with the last gray frames of a fade, followed by white text on 0.5 % of the frame."""
    images = list(pan("coffee", 60))
    gray = (images[20] // 8).astype(np.uint8)
    title = np.zeros_like(gray)
    title[60:72, 90:102] = 255
    images[20:45] = [gray] * 4 + [title] * 21
    source = encode(tmp_path / "film.mp4", images, options={"crf": "4"})
    paths = write_thumbnails(detection(source), tmp_path / "pictures", form="png", short_side=128)
    with Image.open(paths[1]) as picture:
        assert np.asarray(picture).max() > 240


def test_shot_of_few_frames_has_few_images(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    given = detection(source)
    short = replace(given, shots=(replace(given.shots[0], end_frame=2, end=0.2),))
    assert len(write_thumbnails(short, tmp_path / "pictures", count=5)) == 2


def test_custom_names_are_accepted(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    template = NameTemplate("{shot:02d} {kind}")
    paths = write_thumbnails(detection(source), tmp_path / "pictures", template=template, count=2)
    assert [path.name for path in paths][:3] == ["01 start-1.jpg", "01 start-2.jpg", "02 hard-1.jpg"]


def test_thumbnails_are_scaled(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    for path in write_thumbnails(detection(source), tmp_path, short_side=64, form="webp"):
        with Image.open(path) as picture:
            assert (picture.size, picture.format) == ((96, 64), "WEBP")


def test_invalid_requests_are_rejected(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    with pytest.raises(MediaError, match=r"film.mp4: the folder cannot be created"):
        write_thumbnails(detection(source), source)
    with pytest.raises(InvalidArgumentError, match=r"form must be one of .*got 'tiff'"):
        write_thumbnails(detection(source), tmp_path, form="tiff")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"count must be at least 1, got 0"):
        write_thumbnails(detection(source), tmp_path, count=0)


def frames_shown(source: Path, paths: tuple[Path, ...] | list[Path]) -> list[int]:
    """Find the frames that the images show."""
    images = read_frames(source, rate=None).images.astype(int)
    found = []
    for path in paths:
        with Image.open(path) as picture:
            shown = np.asarray(picture).astype(int)
        found.append(int(np.abs(images - shown).mean((1, 2, 3)).argmin()))
    return found
