"""Readers of public image sets, on tiny folders with the same layout."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.support.labelled import picture
from vidkin.datasets import LabelledSet, open_labelled, read_item
from vidkin.errors import DatasetError, InvalidArgumentError


def splits_of(labelled: LabelledSet) -> dict[str, str]:
    return {item.key(labelled.root): item.split for item in labelled.items}


@pytest.fixture
def pet(tmp_path: Path) -> Path:
    rows = {
        "trainval.txt": [
            "Abyssinian_1 1 1 1",
            "Abyssinian_2 1 1 1",
            "great_pyrenees_7 16 2 9",
            "great_pyrenees_8 16 2 9",
        ],
        "test.txt": ["Abyssinian_3 1 1 1", "great_pyrenees_9 16 2 9"],
    }
    for name, lines in rows.items():
        (tmp_path / "annotations").mkdir(exist_ok=True)
        (tmp_path / "annotations" / name).write_text("#Image CLASS-ID SPECIES BREED\n" + "\n".join(lines) + "\n")
        for line in lines:
            picture(tmp_path / "images" / f"{line.split()[0]}.jpg")
    return tmp_path


class TestPet:
    def test_labels_are_species_and_breeds(self, pet: Path) -> None:
        labelled = open_labelled(pet, reader="pet")
        assert labelled.kind == "image"
        assert labelled.subcategories() == ("cat/Abyssinian", "dog/great_pyrenees")
        assert labelled.split_counts() == {"train": 4, "test": 2}
        assert splits_of(labelled)["images/great_pyrenees_9.jpg"] == "test"
        assert read_item(labelled.items[0], "image", size=8).shape == (8, 8, 3)

    def test_validation_is_taken_from_train(self, pet: Path) -> None:
        lines = "".join(f"Abyssinian_{n} 1 1 1\n" for n in range(10, 20))
        for n in range(10, 20):
            picture(pet / "images" / f"Abyssinian_{n}.jpg")
        with (pet / "annotations" / "trainval.txt").open("a") as file:
            file.write(lines)
        labelled = open_labelled(pet, reader="pet", validation=0.25)
        counts = Counter((item.label, item.split) for item in labelled.items)
        assert counts["cat/Abyssinian", "validation"] == 3
        assert counts["cat/Abyssinian", "test"] == 1

    def test_error_names_missing_files(self, pet: Path) -> None:
        (pet / "images" / "Abyssinian_2.jpg").unlink()
        with pytest.raises(
            DatasetError, match=r"missing 1 of 6 photographs, the first is Abyssinian_2.jpg; get www.rob"
        ):
            open_labelled(pet, reader="pet")
        (pet / "annotations" / "test.txt").unlink()
        with pytest.raises(DatasetError, match=r"missing annotations/test.txt; get www.robots.ox.ac.uk/~vgg/data/pets"):
            open_labelled(pet, reader="pet")

    def test_error_names_invalid_line(self, pet: Path) -> None:
        (pet / "annotations" / "test.txt").write_text("Abyssinian_3 1 3 1\n")
        with pytest.raises(DatasetError, match=r"test.txt, line 1: 'Abyssinian_3 1 3 1' must be 'Breed_number class"):
            open_labelled(pet, reader="pet")


class TestZappos:
    @pytest.fixture
    def shoes(self, tmp_path: Path) -> Path:
        for label in ("Boots/Ankle", "Sandals/Flat", "Shoes/Oxfords", "Slippers/Boot"):
            for product in range(10):
                for color in range(3):
                    picture(tmp_path / "ut-zap50k-images-square" / label / "Acme" / f"{product}.{color}.jpg")
        return tmp_path

    def test_labels_are_types_and_products(self, shoes: Path) -> None:
        labelled = open_labelled(shoes, reader="zappos")
        assert labelled.categories() == ("Boots", "Sandals", "Shoes", "Slippers")
        assert len(labelled) == 120
        assert labelled.split_counts() == {"train": 72, "validation": 12, "test": 36}
        # All colors of a product are in the same split.
        sides: dict[str, set[str]] = {}
        for item in labelled.items:
            sides.setdefault(f"{item.label}/{item.path.name.split('.')[0]}", set()).add(item.split)
        assert all(len(side) == 1 for side in sides.values())
        inner = open_labelled(shoes / "ut-zap50k-images-square", reader="zappos")
        assert splits_of(inner) == splits_of(labelled)

    def test_error_names_missing_files(self, shoes: Path) -> None:
        picture(shoes / "ut-zap50k-images-square" / "Boots" / "Ankle" / "stray.jpg")
        with pytest.raises(DatasetError, match=r"stray\.jpg: must be at category/subcategory/brand/file; get"):
            open_labelled(shoes, reader="zappos")
        shutil.rmtree(shoes / "ut-zap50k-images-square" / "Boots")
        with pytest.raises(DatasetError, match=r"missing the folders Boots; get vision.cs.utexas.edu"):
            open_labelled(shoes, reader="zappos")


class TestHeadPose:
    @pytest.fixture
    def pointing(self, tmp_path: Path) -> Path:
        for person in ("01", "02"):
            for series in ("1", "2"):
                for number, pan in enumerate(("-90", "-15", "+0", "+15", "+45")):
                    name = f"person{person}{series}{number:02d}-30{pan}"
                    picture(tmp_path / f"Person{person}" / f"{name}.jpg")
                    (tmp_path / f"Person{person}" / f"{name}.txt").write_text("Face")
        picture(tmp_path / "Front" / "person01146+0+0.jpg")
        return tmp_path

    def test_angles_become_poses_and_series_determine_splits(self, pointing: Path) -> None:
        labelled = open_labelled(pointing, reader="head_pose", validation=0.0)
        assert len(labelled) == 20
        assert Counter(item.category for item in labelled.items) == {"front": 12, "left": 4, "right": 4}
        assert labelled.subcategories()[:2] == ("front/01", "front/02")
        assert splits_of(labelled)["Person01/person01102-30+0.jpg"] == "train"
        assert splits_of(labelled)["Person01/person01202-30+0.jpg"] == "test"
        assert {item.group for item in labelled.items} == {f"{p}/series {s}" for p in ("01", "02") for s in "12"}

    def test_validation_comes_from_train(self, pointing: Path) -> None:
        labelled = open_labelled(pointing, reader="head_pose", validation=0.3)
        assert labelled.split_counts() == {"train": 8, "validation": 2, "test": 10}

    def test_front_and_negative_are_applied(self, pointing: Path) -> None:
        labelled = open_labelled(pointing, reader="head_pose", front=0, negative="right", validation=0.0)
        assert Counter(item.category for item in labelled.items) == {"front": 4, "left": 8, "right": 8}

    def test_published_set_has_21_photographs_per_subject(self, tmp_path: Path) -> None:
        for subject in (1, 2, 90):
            for pan in range(-90, 91, 5):
                angle = f"{pan:+03d}" if pan else "0"
                picture(tmp_path / f"Subject{subject:02d}" / f"A_{subject:02d}_{angle}.jpg")
                picture(tmp_path / f"Subject{subject:02d}" / f"B_{subject:02d}_{angle}.jpg")
        labelled = open_labelled(tmp_path, reader="head_pose")
        # 21 photographs of each subject (1,890 of 90), as in the paper, seven of each pose and without mirror images.
        assert Counter(item.label for item in labelled.items) == {
            f"{pose}/{subject}": 7 for pose in ("front", "left", "right") for subject in ("01", "02", "90")
        }
        assert all(item.path.name.startswith("A_") for item in labelled.items)
        assert set(labelled.split_counts()) == {"train", "validation", "test"}
        whole = open_labelled(tmp_path, reader="head_pose", widest=90.0)
        assert len(whole) == 3 * 37
        assert {item.category for item in whole.items if "-90" in item.path.name} == {"left"}

    def test_own_names_are_accepted(self, tmp_path: Path) -> None:
        for person in range(3):
            for pan in range(-60, 61, 10):
                picture(tmp_path / f"s{person}_{pan}.png")
        labelled = open_labelled(tmp_path, reader="head_pose", pattern=r"s(?P<subject>\d+)_(?P<pan>-?\d+)")
        assert len(labelled) == 39
        assert len(labelled.subcategories()) == 9
        # Frontal poses are -10, 0 and 10 degrees.
        assert Counter(item.label for item in labelled.items)["front/0"] == 3
        assert set(labelled.split_counts()) == {"train", "validation", "test"}

    def test_folders_become_classes(self, tmp_path: Path) -> None:
        for pose in ("front", "left", "right"):
            for number in range(6):
                picture(tmp_path / pose / "anna" / f"{number}.png")
        labelled = open_labelled(tmp_path, reader="head_pose", test=0.34, validation=0.0)
        assert labelled.subcategories() == ("front/anna", "left/anna", "right/anna")
        assert labelled.split_counts() == {"train": 12, "test": 6}

    def test_error_names_invalid_data(self, tmp_path: Path) -> None:
        (tmp_path / "front").mkdir()
        with pytest.raises(DatasetError, match=r"has front but not left, right; get the set of the paper, robotics"):
            open_labelled(tmp_path, reader="head_pose")
        for options, message in (
            ({"pattern": "("}, r"pattern must be a regular expression, got '\('"),
            ({"pattern": "x"}, r"pattern 'x' must have the groups pan, subject; write them as \(\?P<subject>"),
            ({"widest": 5.0}, r"widest must be at least front, 15 degrees, got 5"),
            ({"front": -1.0}, r"front must be from 0 to below 180 degrees, got -1\.0"),
            ({"negative": "up"}, r"negative must be left or right, got 'up'"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                open_labelled(tmp_path, reader="head_pose", **options)


class TestGrocery:
    @pytest.fixture
    def shop(self, tmp_path: Path) -> Path:
        for split in ("train", "val", "test"):
            for name in ("Packages/Milk/Whole/1", "Packages/Milk/Skim/1", "Fruit/Lime/1"):
                picture(tmp_path / split / f"{name}.jpg")
        return tmp_path

    def test_label_levels_can_be_selected(self, shop: Path) -> None:
        labelled = open_labelled(shop, reader="grocery")
        # A coarse class without fine classes is its own fine class.
        assert labelled.subcategories() == ("Fruit/Lime", "Packages/Skim", "Packages/Whole")
        assert labelled.split_counts() == {"train": 3, "validation": 3, "test": 3}
        coarse = open_labelled(shop, reader="grocery", category="coarse")
        assert coarse.subcategories() == ("Lime/Lime", "Milk/Skim", "Milk/Whole")
        high = open_labelled(shop, reader="grocery", subcategory="coarse")
        assert high.subcategories() == ("Fruit/Lime", "Packages/Milk")

    def test_fine_class_has_one_coarse_class(self, shop: Path) -> None:
        shutil.move(shop / "val" / "Packages" / "Milk" / "Skim", shop / "val" / "Packages" / "Dairy" / "Skim")
        labelled = open_labelled(shop, reader="grocery", category="coarse")
        assert labelled.categories() == ("Lime", "Milk")

    def test_error_names_invalid_data(self, shop: Path) -> None:
        with pytest.raises(
            InvalidArgumentError,
            match=r"must be super and coarse, .*, got 'coarse' and 'coarse'",
        ):
            open_labelled(shop, reader="grocery", category="coarse", subcategory="coarse")
        picture(shop / "test" / "Fruit" / "1.jpg")
        with pytest.raises(DatasetError, match=r"1\.jpg: must be at split/super/coarse/fine/\*\.jpg; get the set from"):
            open_labelled(shop, reader="grocery")
        shutil.rmtree(shop / "val")
        with pytest.raises(DatasetError, match=r"missing the folders val; get the set from github.com/marcusklasson"):
            open_labelled(shop, reader="grocery")


@pytest.mark.data
def test_grocery_set_can_be_read(shared_data: Path) -> None:
    labelled = open_labelled(shared_data / "labelled" / "grocery", reader="grocery")
    assert labelled.split_counts() == {"train": 2640, "validation": 296, "test": 2485}
    assert (len(labelled.categories()), len(labelled.subcategories())) == (3, 81)
    coarse = open_labelled(shared_data / "labelled" / "grocery", reader="grocery", category="coarse")
    assert (len(coarse.categories()), len(coarse.subcategories())) == (43, 81)
    alone = Counter(label.split("/")[0] for label in coarse.subcategories())
    assert sum(count == 1 for count in alone.values()) == 31
    assert read_item(labelled.items[0], "image", size=32).std() > 10
