"""One door to all readers."""

from __future__ import annotations

from pathlib import Path

import pytest

import vidkin.datasets as room
from vidkin.datasets import available_readers, open_labelled
from vidkin.errors import DatasetError, InvalidArgumentError


def test_all_readers_are_there() -> None:
    assert available_readers() == (
        "aerial",
        "aircraft",
        "cars",
        "classes",
        "dogs",
        "events",
        "flowers102",
        "fruit",
        "grocery",
        "head_pose",
        "manifest",
        "nabirds",
        "omniglot",
        "pet",
        "photographs",
        "tree",
        "vb100",
        "zappos",
    )
    for name in room.__all__:
        assert getattr(room, name) is not None


@pytest.mark.parametrize("reader", sorted(set(available_readers()) - {"events", "manifest", "photographs"}))
def test_every_reader_says_what_is_missing(reader: str, tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError,
        match=r"nowhere: does not exist; choose the folder of ",
    ):
        open_labelled(tmp_path / "nowhere", reader=reader)
    with pytest.raises(DatasetError, match=rf"{tmp_path.name}: (has no|has neither|lacks)"):
        open_labelled(tmp_path, reader=reader)


def test_unknown_readers_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match="'cifar' is not a reader; choose from aerial, aircraft, cars, classes, dogs, events, flowers102, fruit",
    ):
        open_labelled(tmp_path, reader="cifar")
    with pytest.raises(
        InvalidArgumentError, match="the reader fruit has no option axis; choose from validation"
    ):
        open_labelled(tmp_path, reader="fruit", axis=1)


@pytest.mark.parametrize(
    ("reader", "folders", "message"),
    [
        (
            "grocery",
            ("train", "val", "test"),
            r"holds no photographs; get the set from github.com/marcusklasson",
        ),
        (
            "zappos",
            ("Boots", "Sandals", "Shoes", "Slippers"),
            r"holds no photographs; get vision.cs.utexas.edu",
        ),
        (
            "fruit",
            ("apple/apple-1",),
            r"has no category/variety/axis\*.mp4; make it from the images of Fruits-360",
        ),
        ("vb100", ("birds",), r"has no species/\*.mp4; get VB100 Bird Dataset"),
    ],
)
def test_folders_without_files_are_refused(
    tmp_path: Path, reader: str, folders: tuple[str, ...], message: str
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(DatasetError, match=message):
        open_labelled(tmp_path, reader=reader)
