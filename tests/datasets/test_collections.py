"""Every reader can open a collection."""

from __future__ import annotations

from pathlib import Path

import pytest

import vidkin.datasets as room
from vidkin.datasets import available_readers, open_labelled
from vidkin.errors import DatasetError, InvalidArgumentError


def test_all_readers_are_available() -> None:
    assert available_readers() == (
        "classes",
        "events",
        "manifest",
        "photographs",
        "stand_in",
        "tree",
    )
    for name in room.__all__:
        assert getattr(room, name) is not None


@pytest.mark.parametrize("reader", ["classes", "tree"])
def test_readers_report_what_is_missing(reader: str, tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError,
        match=r"nowhere: does not exist; choose the folder of ",
    ):
        open_labelled(tmp_path / "nowhere", reader=reader)
    with pytest.raises(DatasetError, match=rf"{tmp_path.name}: (has no|has neither|lacks)"):
        open_labelled(tmp_path, reader=reader)


def test_unknown_readers_and_options_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"'cifar' is not a reader; choose from classes, .*, tree; more .* run pip install .*research",
    ):
        open_labelled(tmp_path, reader="cifar")
    with pytest.raises(InvalidArgumentError, match="the reader stand_in has no option axis; choose from validation"):
        open_labelled(tmp_path, reader="stand_in", axis=1)
