"""Readers of public collections, opened by name through vidkin."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.datasets import available_readers, open_labelled
from vidkin.errors import DatasetError

PUBLIC = (
    "aerial",
    "aircraft",
    "cars",
    "dogs",
    "flowers102",
    "fruit",
    "grocery",
    "head_pose",
    "nabirds",
    "omniglot",
    "pet",
    "vb100",
    "zappos",
)


def test_all_readers_are_installed() -> None:
    assert set(PUBLIC) < set(available_readers())


@pytest.mark.parametrize("reader", PUBLIC)
def test_every_reader_names_missing_files(reader: str, tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError,
        match=r"nowhere: does not exist; choose the folder of ",
    ):
        open_labelled(tmp_path / "nowhere", reader=reader)
    with pytest.raises(DatasetError, match=rf"{tmp_path.name}: (no |has neither|missing)"):
        open_labelled(tmp_path, reader=reader)


@pytest.mark.parametrize(
    ("reader", "folders", "message"),
    [
        (
            "grocery",
            ("train", "val", "test"),
            r"no photographs; get the set from github.com/marcusklasson",
        ),
        (
            "zappos",
            ("Boots", "Sandals", "Shoes", "Slippers"),
            r"no photographs; get vision.cs.utexas.edu",
        ),
        (
            "fruit",
            ("apple/apple-1",),
            r"no category/variety/axis\*.mp4; make them from the images of Fruits-360",
        ),
        ("vb100", ("birds",), r"no species/\*.mp4; get VB100 Bird Dataset"),
    ],
)
def test_empty_folders_are_rejected(tmp_path: Path, reader: str, folders: tuple[str, ...], message: str) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(DatasetError, match=message):
        open_labelled(tmp_path, reader=reader)
