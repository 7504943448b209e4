"""Labeled items and sets: integer labels, subsets and keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.datasets import LabelledItem, LabelledSet, LabelNames
from vidkin.errors import InvalidArgumentError

ROOT = Path("collection")


def item(label: str, name: str, split: str = "", **more: object) -> LabelledItem:
    category, _, subcategory = label.partition("/")
    return LabelledItem(
        path=ROOT / label / name,
        category=category,
        subcategory=subcategory,
        group=name,
        split=split,
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture
def animals() -> LabelledSet:
    items = (
        item("dog/terrier", "a.mp4", "train"),
        item("bird/tern", "b.mp4", "train"),
        item("bird/auk", "c.mp4", "test"),
        item("cat/terrier", "d.mp4", "test"),
        item("dog/terrier", "e.mp4", "test"),
    )
    return LabelledSet("animals", "video", items, ROOT)


def test_names_are_sorted_and_unique(animals: LabelledSet) -> None:
    assert animals.categories() == ("bird", "cat", "dog")
    assert animals.subcategories() == ("bird/auk", "bird/tern", "cat/terrier", "dog/terrier")
    assert len(animals) == 5


def test_integer_labels_are_positions_in_the_sorted_names(animals: LabelledSet) -> None:
    coarse, fine = animals.labels()
    assert coarse.tolist() == [2, 0, 0, 1, 2]
    # "terrier" occurs in two categories, so fine numbers are unique across categories.
    assert fine.tolist() == [3, 1, 0, 2, 3]
    assert coarse.dtype == fine.dtype == "int64"


def test_subset_keeps_the_integer_labels_of_the_whole_set(animals: LabelledSet) -> None:
    part = animals.part("train")
    assert [item.path.name for item in part.items] == ["a.mp4", "b.mp4"]
    assert part.subcategories() == animals.subcategories()
    coarse, fine = part.labels()
    assert (coarse.tolist(), fine.tolist()) == ([2, 0], [3, 1])
    assert part.part("train").labels()[1].tolist() == [3, 1]


def test_labels_can_follow_the_names_of_another_set(animals: LabelledSet) -> None:
    other = LabelledSet("one", "video", (item("bird/tern", "x.mp4"),))
    assert other.labels()[1].tolist() == [0]
    coarse, fine = other.labels(names=animals.label_names)
    assert (coarse.tolist(), fine.tolist()) == ([0], [1])
    with pytest.raises(
        InvalidArgumentError,
        match="names must include all labels of animals, 3 are missing, the first is bird/auk",
    ):
        animals.labels(names=LabelNames.of(other.items))


def test_empty_or_unknown_subset_is_rejected(animals: LabelledSet) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match="animals has no validation items, only: train 2, test 3; choose one of these, or split it",
    ):
        animals.part("validation")
    with pytest.raises(
        InvalidArgumentError,
        match=r"split must be one of train, validation, test, or '' \(undecided\), got 'gallery'",
    ):
        animals.part("gallery")


def test_repr_shows_the_content(animals: LabelledSet) -> None:
    assert repr(animals) == ("LabelledSet('animals', video, 5 items (train 2, test 3), 3 categories, 4 subcategories)")


def test_keys_do_not_change_when_the_folder_moves() -> None:
    assert item("a/b", "c.mp4").key(ROOT) == "a/b/c.mp4"
    assert item("a/b", "c.zip", member="x/y.png").key(ROOT) == "a/b/c.zip!x/y.png"
    assert item("a/b", "c.mp4", start=1.5).key(ROOT) == "a/b/c.mp4@1.500-"
    assert item("a/b", "c.mp4", end=2.25).key(ROOT) == "a/b/c.mp4@0.000-2.250"
    assert item("a/b", "c.mp4").key() == "collection/a/b/c.mp4"
    assert item("a/b", "c.mp4").key(Path("elsewhere")) == "collection/a/b/c.mp4"


def test_excerpts_of_one_file_are_separate_items() -> None:
    pair = (item("a/b", "c.mp4", end=1.0), item("a/b", "c.mp4", start=1.0))
    assert len(LabelledSet("pair", "video", pair)) == 2
    with pytest.raises(
        InvalidArgumentError,
        match=r"pair must contain each item once, got 1 more than once, the first is collection/a/b/c\.mp4",
    ):
        LabelledSet("pair", "video", (item("a/b", "c.mp4"), item("a/b", "c.mp4")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"category": ""}, "category of x must be a non-empty name without '/', got ''"),
        (
            {"subcategory": "a/b"},
            "subcategory of x must be a non-empty name without '/', got 'a/b'",
        ),
        (
            {"split": "dev"},
            r"split of x must be one of train, validation, test, or '' \(undecided\), got 'dev'",
        ),
        ({"start": -1.0}, r"start of x must be at least 0 s, and end after it, got -1\.0 s and None s"),
        (
            {"start": 2.0, "end": 2.0},
            r"start of x must be at least 0 s, and end after it, got 2\.0 s and 2\.0 s",
        ),
    ],
)
def test_invalid_items_are_rejected(change: dict[str, object], message: str) -> None:
    good = {"path": Path("x"), "category": "a", "subcategory": "b", "group": "g"}
    with pytest.raises(InvalidArgumentError, match=message):
        LabelledItem(**(good | change))  # type: ignore[arg-type]
