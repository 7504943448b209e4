"""CSV files that list labeled files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.labelled import counting_clip, picture, shown
from vidkin.datasets import open_labelled, read_item
from vidkin.errors import DatasetError, InvalidArgumentError


def write_list(folder: Path, text: str, *, encoding: str = "utf-8") -> Path:
    path = folder / "list.csv"
    path.write_text(text, encoding=encoding)
    return path


def test_columns_can_be_in_any_order_after_a_byte_order_mark(tmp_path: Path) -> None:
    for name in ("one.png", "two, with comma.png"):
        picture(tmp_path / "files" / name)
    path = write_list(
        tmp_path,
        "subcategory,note,category,path,split\r\n"
        "pug,good,dog,files/one.png,train\r\n"
        'persian,,cat,"files/two, with comma.png",VAL\r\n',
        encoding="utf-8-sig",
    )
    labelled = open_labelled(path, reader="manifest")
    assert (labelled.name, labelled.kind) == ("list", "image")
    assert labelled.split_counts() == {"train": 1, "validation": 1}
    assert labelled.subcategories() == ("cat/persian", "dog/pug")
    assert [item.group for item in labelled.items] == ["files/one.png", "files/two, with comma.png"]


def test_labels_can_have_one_level(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        picture(tmp_path / name)
    labelled = open_labelled(write_list(tmp_path, "path,category\na.png,rose\nb.png,aster\n"), reader="manifest")
    assert labelled.subcategories() == labelled.categories() == ("aster", "rose")
    assert labelled.has_one_level
    assert [level.tolist() for level in labelled.labels()] == [[1, 0], [1, 0]]


def test_rows_can_have_groups_and_excerpts(tmp_path: Path) -> None:
    counting_clip(tmp_path / "clip.mp4", 20)
    path = write_list(
        tmp_path,
        "path,category,subcategory,group,start,end\nclip.mp4,a,x,g,0,1\nclip.mp4,a,x,g,1,\n",
    )
    labelled = open_labelled(path, reader="manifest")
    assert [(item.start, item.end, item.group) for item in labelled.items] == [
        (0.0, 1.0, "g"),
        (1.0, None, "g"),
    ]
    assert shown(read_item(labelled.items[1], "video", size=16, frames=2)) == [12, 17]


def test_paths_can_be_relative_to_another_folder_and_fractions_make_a_split(tmp_path: Path) -> None:
    for number in range(10):
        picture(tmp_path / "data" / f"{number}.png")
    lines = "".join(f"{number}.png,a,x\n" for number in range(10))
    path = write_list(tmp_path, "path,category,subcategory\n" + lines)
    labelled = open_labelled(path, reader="manifest", root=tmp_path / "data", test=0.4)
    assert labelled.split_counts() == {"train": 6, "test": 4}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "path,subcategory\n",
            r"list\.csv: lacks the columns category; it needs path, category and may have subcategory, split,",
        ),
        ("", r"lacks the columns path, category; it needs"),
        ("path,category,subcategory\n", r"list\.csv: lists no files"),
        ("path,category,subcategory\na.png,dog,\n", r"list.csv, line 2: subcategory is empty"),
        (
            "path,category,subcategory,split\na.png,d,x,dev\n",
            r"list\.csv, line 2: split must be train, validation, test or empty, got 'dev'",
        ),
        (
            "path,category,subcategory,start\na.png,d,x,1s\n",
            r"line 2: start must be a number of seconds, got '1s'",
        ),
        (
            "path,category,subcategory,end\na.png,d,x,0\n",
            r"list\.csv, line 2: start of .* must be at least 0 s, and end after it, got 0\.0 s and 0\.0 s",
        ),
        (
            "path,category,subcategory\nb.png,d,x\nc.png,d,x\n",
            r"list\.csv: 2 of 2 files do not exist, the first is .*; paths must be relative to .*",
        ),
        (
            "path,category,subcategory\na.png,d,x\na.txt,d,x\n",
            r"a\.txt: is not an image or video; its extension must be one of \.264, \.265,",
        ),
        (
            "path,category,subcategory,split,group\na.png,d,x,train,g\nA.png,d,x,test,g\n",
            r"leaks: group 'g' is in train",
        ),
        (
            'path,category,subcategory\n"a.png,d,x\n',
            r"list\.csv: is not CSV in UTF-8, unexpected end of data",
        ),
    ],
)
def test_invalid_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    for name in ("a.png", "A.png"):
        picture(tmp_path / name)
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(DatasetError, match=message):
        open_labelled(write_list(tmp_path, text), reader="manifest")


def test_missing_file_and_folder_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"nowhere\.csv: does not exist; choose a CSV with path,category"):
        open_labelled(tmp_path / "nowhere.csv", reader="manifest")
    with pytest.raises(
        DatasetError,
        match="is a folder; choose the CSV, or use the reader tree",
    ):
        open_labelled(tmp_path, reader="manifest")
    with pytest.raises(
        DatasetError,
        match=r"list\.csv: is not CSV in UTF-8, 'utf-8' codec can't decode byte 0xe4 in position 26: invalid",
    ):
        open_labelled(
            write_list(tmp_path, "path,category,subcategory\nä.png,d,x", encoding="latin-1"), reader="manifest"
        )


def test_fractions_are_rejected_for_files_with_splits(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    path = write_list(tmp_path, "path,category,subcategory,split\na.png,d,x,train\n")
    with pytest.raises(InvalidArgumentError, match=r"list\.csv: has splits; leave out test and validation"):
        open_labelled(path, reader="manifest", validation=0.1)
