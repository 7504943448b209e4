"""Omniglot, in archives and extracted."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.labelled import picture
from vidkin.datasets import open_labelled, read_item
from vidkin.errors import DatasetError, InvalidArgumentError

STROKES = "START\n10,-50,0\n90,-50,1000\nBREAK\n"


@pytest.fixture
def omniglot(tmp_path: Path) -> Path:
    """Two alphabets, of four and three characters, by twenty writers."""
    picture(tmp_path / "ink.png", (0, 0, 0), (105, 105))
    for name, alphabets in (("small1", {"Greek": 4}), ("small2", {"Latin": 3})):
        with (
            zipfile.ZipFile(tmp_path / f"images_{name}.zip", "w") as images,
            zipfile.ZipFile(tmp_path / f"strokes_{name}.zip", "w") as strokes,
        ):
            strokes.writestr(f"__MACOSX/strokes_{name}/Greek/character01/._0001_01.txt", "x")
            strokes.writestr(f"strokes_{name}/.DS_Store", "x")
            for alphabet, characters in alphabets.items():
                for character in range(1, characters + 1):
                    for drawer in range(1, 21):
                        stem = f"{alphabet}/character{character:02d}/{character:04d}_{drawer:02d}"
                        images.write(tmp_path / "ink.png", f"images_{name}/{stem}.png")
                        strokes.writestr(f"strokes_{name}/{stem}.txt", STROKES)
    return tmp_path


def test_each_writer_is_in_one_split(omniglot: Path) -> None:
    labelled = open_labelled(omniglot, reader="omniglot")
    assert labelled.kind == "image"
    assert labelled.subcategories()[0] == "Greek/character01"
    assert labelled.split_counts() == {"train": 84, "validation": 21, "test": 35}
    sides = {item.group: item.split for item in labelled.items}
    assert [sides[f"drawer {number:02d}"] for number in (1, 12, 13, 15, 16, 20)] == [
        "train",
        "train",
        "validation",
        "validation",
        "test",
        "test",
    ]
    assert read_item(labelled.items[0], "image", size=20).max() == 0


def test_strokes_can_be_read_as_films(omniglot: Path) -> None:
    labelled = open_labelled(omniglot, reader="omniglot", kind="strokes", train=10, validation=0)
    assert labelled.kind == "strokes"
    assert labelled.split_counts() == {"train": 70, "test": 70}
    film = read_item(labelled.items[0], "strokes", size=32, frames=4)
    assert film.shape == (4, 32, 32, 3)
    assert (film[-1] < 128).sum() > (film[0] < 128).sum() > 0


def test_unseen_characters_are_in_the_test_split(omniglot: Path) -> None:
    labelled = open_labelled(omniglot, reader="omniglot", split="character")
    held = {item.label for item in labelled.items if item.split == "test"}
    trained = {item.label for item in labelled.items if item.split == "train"}
    assert not held & trained
    assert {label.split("/")[0] for label in held} == {"Greek", "Latin"}
    # All drawings of a character are in the same split.
    assert labelled.split_counts()["test"] == 20 * len(held)


def test_archive_equals_its_folder_and_overlaps_count_once(omniglot: Path) -> None:
    packed = open_labelled(omniglot, reader="omniglot")
    with zipfile.ZipFile(omniglot / "images_small1.zip") as archive:
        archive.extractall(omniglot)
    both = open_labelled(omniglot, reader="omniglot")
    assert [(i.label, i.group, i.split) for i in both.items] == [(i.label, i.group, i.split) for i in packed.items]
    assert both.items[0].member == ""
    (omniglot / "images_small1.zip").unlink()
    (omniglot / "images_small2.zip").unlink()
    assert open_labelled(omniglot, reader="omniglot").categories() == ("Greek",)


def test_error_names_invalid_data(omniglot: Path, tmp_path: Path) -> None:
    for options, message in (
        ({"kind": "films"}, r"kind must be images or strokes, got 'films'"),
        ({"split": "alphabet"}, r"split must be drawer or character, got 'alphabet'"),
        (
            {"train": 18, "validation": 2},
            r"train 18 and validation 2 must leave some of the 20 drawers for testing",
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            open_labelled(omniglot, reader="omniglot", **options)
    (tmp_path / "images_small1.zip").write_bytes((tmp_path / "images_small1.zip").read_bytes()[:200])
    with pytest.raises(
        DatasetError,
        match=r"images_small1\.zip: damaged or incomplete zip archive \(File is not a zip file\); get it again from",
    ):
        open_labelled(omniglot, reader="omniglot")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DatasetError, match=r"has neither strokes_\*.zip nor strokes_\*/alphabet/character; get github"):
        open_labelled(empty, reader="omniglot", kind="strokes")


@pytest.mark.data
def test_small_background_sets_can_be_read(shared_data: Path) -> None:
    folder = shared_data / "labelled" / "omniglot"
    images = open_labelled(folder, reader="omniglot")
    strokes = open_labelled(folder, reader="omniglot", kind="strokes")
    assert len(images) == len(strokes) == 4840
    assert (len(images.categories()), len(images.subcategories())) == (8, 242)
    assert len({item.group for item in images.items}) == 20
    assert [(i.label, i.group) for i in images.items] == [(i.label, i.group) for i in strokes.items]
    # The last frame of the pen film matches the image: its ink is within two pixels of the image's ink.
    for index in range(0, 4840, 400):
        image = read_item(images.items[index], "image", size=105)[..., 0] < 128
        film = read_item(strokes.items[index], "strokes", size=105, frames=2)[-1, ..., 0] < 128
        near = np.zeros_like(image)
        for dy in range(-2, 3):
            for dx in range(-2, 3):
                near |= np.roll(image, (dy, dx), axis=(0, 1))
        assert (film & near).sum() > 0.97 * film.sum()
