"""Flowers-102, FGVC-Aircraft, NABirds, Stanford Cars and Dogs, on small folders with the published layouts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from tests.support.labelled import picture
from vidkin.datasets import LabelledSet, open_labelled
from vidkin.errors import DatasetError


def flowers102(root: Path) -> None:
    for number in range(1, 7):
        picture(root / "jpg" / f"image_{number:05}.jpg")
    savemat(root / "imagelabels.mat", {"labels": np.array([[77, 77, 3, 3, 77, 3]])})
    savemat(root / "setid.mat", {"trnid": [[1, 3]], "valid": [[5]], "tstid": [[2, 4, 6]]})


def aircraft(root: Path) -> None:
    data = root / "data"
    for number in ("0034309", "0034958", "1025794"):
        picture(data / "images" / f"{number}.jpg")
    for level, names in (("variant", ("707-320", "F/A-18")), ("family", ("Boeing 707", "F/A-18"))):
        (data / f"images_{level}_train.txt").write_text(f"1025794 {names[0]}\n")
        (data / f"images_{level}_val.txt").write_text(f"0034309 {names[1]}\n")
        (data / f"images_{level}_test.txt").write_text(f"0034958 {names[0]}\n")


def nabirds(root: Path) -> None:
    rows = [
        ("a-1", "0817/a1.jpg", "817", "1"),
        ("b-2", "0817/b2.jpg", "817", "0"),
        ("c-3", "0860/c3.jpg", "860", "1"),
    ]
    for _, path, _, _ in rows:
        picture(root / "images" / path)
    for name, place in (("images", 1), ("image_class_labels", 2), ("train_test_split", 3)):
        (root / f"{name}.txt").write_text("".join(f"{row[0]} {row[place]}\n" for row in rows))
    (root / "classes.txt").write_text("22 Ducks\n817 Oak Titmouse\n860 Oak Titmouse\n")


def cars(root: Path) -> None:
    fields = [("class", "O"), ("fname", "O")]
    names = np.array(["AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012"], dtype=object)
    for split, rows in (("train", [(1, "00001.jpg"), (2, "00002.jpg")]), ("test", [(2, "00001.jpg")])):
        for _, name in rows:
            picture(root / f"cars_{split}" / name)
        (root / "devkit").mkdir(exist_ok=True)
        name = "devkit/cars_train_annos.mat" if split == "train" else "cars_test_annos_withlabels.mat"
        savemat(root / name, {"annotations": np.array([rows], dtype=fields)})
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": names})


def dogs(root: Path) -> None:
    for split, files in (
        ("train", ["n02085620-Chihuahua/n02085620_10.jpg", "n02116738-African_hunting_dog/n02116738_1.jpg"]),
        ("test", ["n02085620-Chihuahua/n02085620_7.jpg"]),
    ):
        for file in files:
            picture(root / "Images" / file)
        savemat(root / f"{split}_list.mat", {"file_list": np.array([[file] for file in files], dtype=object)})


MAKERS: dict[str, Callable[[Path], None]] = {
    make.__name__: make for make in (flowers102, aircraft, nabirds, cars, dogs)
}


def list_items(labelled: LabelledSet) -> list[tuple[str, str, str]]:
    assert labelled.root is not None
    return [(item.path.relative_to(labelled.root).as_posix(), item.label, item.split) for item in labelled.items]


@pytest.mark.parametrize(
    ("name", "items"),
    [
        (
            "flowers102",
            [
                ("jpg/image_00001.jpg", "077", "train"),
                ("jpg/image_00003.jpg", "003", "train"),
                ("jpg/image_00005.jpg", "077", "validation"),
                ("jpg/image_00002.jpg", "077", "test"),
                ("jpg/image_00004.jpg", "003", "test"),
                ("jpg/image_00006.jpg", "003", "test"),
            ],
        ),
        (
            "aircraft",
            [
                ("images/1025794.jpg", "707-320", "train"),
                ("images/0034309.jpg", "F-A-18", "validation"),
                ("images/0034958.jpg", "707-320", "test"),
            ],
        ),
        (
            "nabirds",
            [
                ("images/0817/a1.jpg", "Oak Titmouse 817", "train"),
                ("images/0817/b2.jpg", "Oak Titmouse 817", "test"),
                ("images/0860/c3.jpg", "Oak Titmouse 860", "train"),
            ],
        ),
        (
            "cars",
            [
                ("cars_train/00001.jpg", "AM General Hummer SUV 2000", "train"),
                ("cars_train/00002.jpg", "Ram C-V Cargo Van Minivan 2012", "train"),
                ("cars_test/00001.jpg", "Ram C-V Cargo Van Minivan 2012", "test"),
            ],
        ),
        (
            "dogs",
            [
                ("Images/n02085620-Chihuahua/n02085620_10.jpg", "Chihuahua", "train"),
                ("Images/n02116738-African_hunting_dog/n02116738_1.jpg", "African hunting dog", "train"),
                ("Images/n02085620-Chihuahua/n02085620_7.jpg", "Chihuahua", "test"),
            ],
        ),
    ],
)
def test_published_layout_can_be_read(tmp_path: Path, name: str, items: list[tuple[str, str, str]]) -> None:
    MAKERS[name](tmp_path)
    labelled = open_labelled(tmp_path, reader=name)
    assert (labelled.name, labelled.kind, labelled.has_one_level) == (name, "image", True)
    assert list_items(labelled) == items


@pytest.mark.parametrize("name", MAKERS)
def test_error_names_missing_photograph(tmp_path: Path, name: str) -> None:
    MAKERS[name](tmp_path)
    gone = sorted(tmp_path.rglob("*.jpg"))[0]
    gone.unlink()
    with pytest.raises(DatasetError, match=rf"missing 1 of \d photographs, the first is .*{gone.name}; get them from"):
        open_labelled(tmp_path, reader=name)


@pytest.mark.parametrize("name", MAKERS)
def test_error_for_an_empty_folder_lists_missing_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match=r"missing .*; get it from"):
        open_labelled(tmp_path, reader=name)


def test_aircraft_has_levels_and_missing_validation_splits_are_created(tmp_path: Path) -> None:
    aircraft(tmp_path / "planes")
    labelled = open_labelled(tmp_path / "planes" / "data", reader="aircraft", level="family")
    assert labelled.categories() == ("Boeing 707", "F-A-18")
    cars(tmp_path / "cars")
    path = tmp_path / "cars" / "devkit" / "cars_train_annos.mat"
    rows = [(1, f"{number:05}.jpg") for number in range(1, 11)]
    for _, name in rows:
        picture(tmp_path / "cars" / "cars_train" / name)
    savemat(path, {"annotations": np.array([rows], dtype=[("class", "O"), ("fname", "O")])})
    divided = open_labelled(tmp_path / "cars", reader="cars", validation=0.2)
    assert divided.split_counts() == {"train": 8, "validation": 2, "test": 1}


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        (
            "flowers102",
            "setid.mat",
            b"not matlab",
            "cannot be read as a MATLAB file with trnid, valid, tstid",
        ),
        (
            "aircraft",
            "data/images_variant_val.txt",
            b"0034309\n",
            "val.txt, line 1: must have 2 columns, got",
        ),
        ("nabirds", "classes.txt", b"817 Oak Titmouse\n", "image c-3 has no class or no split in the lists"),
        ("dogs", "test_list.mat", b"", "cannot be read as a MATLAB file with file_list"),
    ],
)
def test_damaged_lists_are_rejected(tmp_path: Path, name: str, file: str, content: bytes, message: str) -> None:
    MAKERS[name](tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        open_labelled(tmp_path, reader=name)


def test_numbers_without_an_image_or_a_name_are_rejected(tmp_path: Path) -> None:
    flowers102(tmp_path / "f")
    savemat(tmp_path / "f" / "setid.mat", {"trnid": [[1, 9]], "valid": [[5]], "tstid": [[2]]})
    with pytest.raises(DatasetError, match="has image 9 of 6"):
        open_labelled(tmp_path / "f", reader="flowers102")
    cars(tmp_path / "c")
    savemat(tmp_path / "c" / "devkit" / "cars_meta.mat", {"class_names": np.array(["One"], dtype=object)})
    with pytest.raises(DatasetError, match=r"00002\.jpg has class 2 of 1"):
        open_labelled(tmp_path / "c", reader="cars")
    (tmp_path / "c" / "cars_test_annos_withlabels.mat").unlink()
    with pytest.raises(DatasetError, match=r"missing cars_test_annos_withlabels\.mat, the test labels"):
        open_labelled(tmp_path / "c", reader="cars")


def test_files_of_matlab_7_3_are_rejected(tmp_path: Path) -> None:
    flowers102(tmp_path)
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "setid.mat").write_bytes(header + bytes(512))
    with pytest.raises(DatasetError, match=r"setid.mat: cannot be read as a MATLAB file with .*HDF"):
        open_labelled(tmp_path, reader="flowers102")
