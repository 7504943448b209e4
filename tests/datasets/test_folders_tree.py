"""Readers of labeled folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.labelled import counting_clip, picture
from vidkin.datasets import open_labelled, read_item
from vidkin.errors import DatasetError, InvalidArgumentError


def test_images_are_listed_in_a_stable_order(tmp_path: Path) -> None:
    for name in (
        "dog/pug/2.jpg",
        "cat/persian/1.JPG",
        "dog/pug/1.jpg",
        "dog/.hidden/1.jpg",
        "dog/pug/.thumb.jpg",
    ):
        picture(tmp_path / name)
    (tmp_path / "dog" / "pug" / "notes.txt").write_text("no picture")
    (tmp_path / "readme.txt").write_text("no picture")
    labelled = open_labelled(tmp_path)
    assert labelled.kind == "image"
    assert labelled.name == tmp_path.name
    assert [item.key(tmp_path) for item in labelled.items] == [
        "cat/persian/1.JPG",
        "dog/pug/1.jpg",
        "dog/pug/2.jpg",
    ]
    assert labelled.subcategories() == ("cat/persian", "dog/pug")
    assert labelled.split_counts() == {"": 3}
    assert [item.group for item in labelled.items] == ["cat/persian/1.JPG", "dog/pug/1.jpg", "dog/pug/2.jpg"]


def test_read_classes_returns_labels_with_one_level(tmp_path: Path) -> None:
    for name in ("train/rose/1.jpg", "train/aster/1.jpg", "test/rose/1.jpg", "test/rose/walk/2.jpg"):
        picture(tmp_path / name)
    labelled = open_labelled(tmp_path, reader="classes")
    assert (labelled.split_counts(), labelled.subcategories()) == ({"train": 2, "test": 2}, ("aster", "rose"))
    assert labelled.has_one_level
    assert [item.group for item in labelled.items] == [
        "test/rose/1.jpg",
        "test/rose/walk",
        "train/aster/1.jpg",
        "train/rose/1.jpg",
    ]
    assert [level.tolist() for level in labelled.part("test").labels()] == [[1, 1], [1, 1]]
    with pytest.raises(DatasetError, match=r"1\.jpg: is not at category/subcategory/file .*reader classes"):
        open_labelled(tmp_path, reader="tree")


def test_videos_are_found_and_read(tmp_path: Path) -> None:
    counting_clip(tmp_path / "a" / "x" / "1.mp4", 4)
    labelled = open_labelled(tmp_path)
    assert labelled.kind == "video"
    assert read_item(labelled.items[0], labelled.kind, size=16, frames=2).shape == (2, 16, 16, 3)


def test_split_folders_define_the_splits(tmp_path: Path) -> None:
    for split in ("train", "Val", "test"):
        picture(tmp_path / split / "a" / "x" / "1.png")
    picture(tmp_path / "test" / "b" / "y" / "1.png")
    labelled = open_labelled(tmp_path)
    assert labelled.split_counts() == {"train": 1, "validation": 1, "test": 2}
    assert labelled.categories() == ("a", "b")
    # Equal names in different splits are different files and therefore not a leak.
    assert {item.group for item in labelled.items} >= {"train/a/x/1.png", "Val/a/x/1.png"}


def test_folders_below_the_subcategory_are_groups(tmp_path: Path) -> None:
    for session in ("monday", "tuesday"):
        for number in range(2):
            picture(tmp_path / "a" / "x" / session / "deep" / f"{number}.png")
    labelled = open_labelled(tmp_path, test=0.5)
    assert {item.group for item in labelled.items} == {"a/x/monday", "a/x/tuesday"}
    assert labelled.split_counts() == {"train": 2, "test": 2}


def test_a_fraction_creates_a_test_split(tmp_path: Path) -> None:
    for label in ("a/x", "a/y"):
        for number in range(10):
            picture(tmp_path / label / f"{number}.png")
    labelled = open_labelled(tmp_path, test=0.3, validation=0.2, seed=5)
    assert labelled.split_counts() == {"train": 10, "validation": 4, "test": 6}


def test_one_item_kind_can_be_selected_from_a_mixed_folder(tmp_path: Path) -> None:
    picture(tmp_path / "a" / "x" / "1.png")
    counting_clip(tmp_path / "a" / "x" / "2.mp4", 2)
    with pytest.raises(
        DatasetError,
        match=r"has 1 images and 1 videos; set the reader's option kind .*data.options.kind",
    ):
        open_labelled(tmp_path)
    assert [item.path.name for item in open_labelled(tmp_path, kind="video").items] == ["2.mp4"]
    assert [item.path.name for item in open_labelled(tmp_path, kind="image").items] == ["1.png"]


def test_folders_with_another_layout_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError,
        match="nowhere: does not exist; choose the folder of labeled files, category/subcategory/file",
    ):
        open_labelled(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"has no image or video at category/subcategory/file \(or at split/"):
        open_labelled(tmp_path)
    picture(tmp_path / "a" / "1.png")
    with pytest.raises(
        DatasetError,
        match=r"1\.png: is not at category/subcategory/file below .*; move it there, use the reader classes for",
    ):
        open_labelled(tmp_path)
    with pytest.raises(
        DatasetError,
        match=r"1\.png: is not a folder; choose the folder of labeled files, category/subcategory/file",
    ):
        open_labelled(tmp_path / "a" / "1.png")
    with pytest.raises(InvalidArgumentError, match="kind must be one of 'image', 'video' or None, got 'sound'"):
        open_labelled(tmp_path, kind="sound")


def test_fractions_are_rejected_for_folders_with_splits(tmp_path: Path) -> None:
    picture(tmp_path / "train" / "a" / "x" / "1.png")
    with pytest.raises(
        InvalidArgumentError,
        match=r"has splits \(train\); leave out test and validation",
    ):
        open_labelled(tmp_path, test=0.3)
