"""Splits: whole groups, fractions, writing and reading."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin.datasets import LabelledItem, LabelledSet, check_split, make_split, read_split, write_split
from vidkin.errors import DatasetError, InvalidArgumentError

ROOT = Path("root")


def collection(groups: dict[str, list[int]]) -> LabelledSet:
    """A labeled set with groups of the given sizes per label."""
    items = [
        LabelledItem(
            path=ROOT / label / f"{group}-{number}.mp4",
            category=label.split("/")[0],
            subcategory=label.split("/")[1],
            group=f"{label}/{group}",
        )
        for label, sizes in groups.items()
        for group, size in enumerate(sizes)
        for number in range(size)
    ]
    return LabelledSet("made", "video", tuple(items), ROOT)


def drawers(count: int, labels: int) -> LabelledSet:
    """A labeled set whose groups span subcategories, such as drawings grouped by person."""
    items = [
        LabelledItem(path=ROOT / f"{label}-{who}", category="c", subcategory=f"s{label}", group=f"drawer {who}")
        for label in range(labels)
        for who in range(count)
    ]
    return LabelledSet("drawn", "image", tuple(items), ROOT)


def test_each_subcategory_is_split_separately() -> None:
    labelled = make_split(collection({"a/x": [1] * 10, "a/y": [1] * 20, "b/z": [1] * 10}), test=0.3, validation=0.2)
    counts = Counter((item.label, item.split) for item in labelled.items)
    assert counts["a/x", "test"] == 3
    assert counts["a/x", "validation"] == 2
    assert counts["a/x", "train"] == 5
    assert counts["a/y", "test"] == 6
    assert counts["b/z", "train"] == 5


def test_groups_stay_whole_and_items_keep_their_order() -> None:
    before = collection({"a/x": [5, 1, 1, 2, 1], "b/y": [3, 3, 3, 3]})
    after = make_split(before, test=0.3, validation=0.0, seed=3)
    assert [item.path for item in after.items] == [item.path for item in before.items]
    sides = defaultdict(set)
    for item in after.items:
        sides[item.group].add(item.split)
    assert all(len(side) == 1 for side in sides.values())
    assert after.split_counts()["test"] >= 2


def test_groups_that_span_subcategories_are_split_once() -> None:
    labelled = make_split(drawers(10, 4), test=0.3, validation=0.2, seed=1)
    assert labelled.split_counts() == {"train": 20, "validation": 8, "test": 12}
    assert len({item.group for item in labelled.items if item.split == "test"}) == 3


def test_small_subcategories_are_assigned_to_train_first() -> None:
    """A single group goes to train, two to train and test; a validation split needs four."""
    labelled = make_split(
        collection({"a/one": [4], "a/two": [2, 2], "a/three": [1] * 3, "a/four": [1] * 4}),
        test=0.25,
        validation=0.25,
    )
    splits = {
        name: sorted(item.split for item in labelled.items if item.subcategory == name)
        for name in ("one", "two", "three", "four")
    }
    assert splits["one"] == ["train"] * 4
    assert splits["two"] == ["test", "test", "train", "train"]
    assert splits["three"] == ["test", "train", "train"]
    assert splits["four"] == ["test", "train", "train", "validation"]


def test_whole_subcategories_of_each_category_are_held_out() -> None:
    labelled = make_split(
        collection({f"{c}/{s}": [2, 2] for c in "ab" for s in range(10)}),
        by="subcategory",
        test=0.3,
        validation=0.2,
    )
    held = Counter(item.category for item in labelled.items if item.split == "test")
    assert held == {"a": 12, "b": 12}
    assert {item.group for item in labelled.items} == set(labelled.subcategories())
    check_split(labelled)


def test_split_by_item_ignores_groups() -> None:
    labelled = make_split(collection({"a/x": [10]}), by="item", test=0.5, validation=0.0)
    assert labelled.split_counts() == {"train": 5, "test": 5}
    assert labelled.items[0].group == "a/x/0-0.mp4"


def test_seed_determines_the_split() -> None:
    labelled = collection({"a/x": [1] * 30})
    assert make_split(labelled, seed=1).items == make_split(labelled, seed=1).items
    assert make_split(labelled, seed=1).items != make_split(labelled, seed=2).items


@given(
    sizes=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=8), min_size=2, max_size=5),
    seed=st.integers(0, 9),
)
def test_splits_do_not_leak_and_train_has_every_subcategory(sizes: list[list[int]], seed: int) -> None:
    labelled = collection({f"c/{number}": groups for number, groups in enumerate(sizes)} | {"d/x": [1] * 4})
    divided = make_split(labelled, test=0.3, validation=0.1, seed=seed)
    check_split(divided)
    assert {item.label for item in divided.part("train").items} == set(labelled.subcategories())
    assert set(divided.split_counts()) == {"train", "validation", "test"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"test": 1.0},
            r"test and validation must be at least 0, and their sum below 1, got 1\.0 and 0\.1",
        ),
        (
            {"test": 0.6, "validation": 0.5},
            r"test and validation must be at least 0, and their sum below 1, got 0\.6 and 0\.5",
        ),
        ({"by": "color"}, "by must be one of 'group', 'item', 'subcategory', got 'color'"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make_split(collection({"a/x": [1] * 9}), **arguments)  # type: ignore[arg-type]


def test_too_few_groups_are_rejected() -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"made has 2 groups, too few for a test and a validation split; set test and validation to 0",
    ):
        make_split(collection({"a/x": [5], "a/y": [5]}))


def test_error_names_a_leaking_group() -> None:
    labelled = collection({"a/x": [2, 1, 2]})
    sides = ("train", "test", "train", "validation", "test")
    leaking = labelled.with_items(replace(item, split=side) for item, side in zip(labelled.items, sides, strict=True))
    with pytest.raises(
        DatasetError,
        match=r"the split of made leaks: group 'a/x/0' is in train, test, and so are 1 more groups; a group",
    ):
        check_split(leaking)


def test_split_is_restored_from_its_file(tmp_path: Path) -> None:
    labelled = collection({"a/x": [2, 1, 3], "b/ü": [1] * 6})
    divided = make_split(labelled, seed=4)
    write_split(divided, tmp_path / "new" / "split.json")
    again = read_split(labelled, tmp_path / "new" / "split.json")
    assert again.items == divided.items
    content = json.loads((tmp_path / "new" / "split.json").read_text(encoding="utf-8"))
    assert content["counts"] == divided.split_counts()
    assert content["items"]["b/ü/0-0.mp4"][1] == "b/ü/0"
    # One line per item keeps diffs between splits readable.
    assert (tmp_path / "new" / "split.json").read_text(encoding="utf-8").count("\n") == len(labelled) + 3


def test_split_remains_valid_if_the_collection_moves(tmp_path: Path) -> None:
    labelled = collection({"a/x": [1] * 6})
    divided = make_split(labelled)
    write_split(divided, tmp_path / "split.json")
    moved = replace(
        labelled,
        root=Path("other"),
        items=tuple(replace(i, path=Path("other") / i.path.relative_to(ROOT)) for i in labelled.items),
    )
    assert [i.split for i in read_split(moved, tmp_path / "split.json").items] == [i.split for i in divided.items]


def test_incomplete_and_leaking_splits_are_not_written(tmp_path: Path) -> None:
    labelled = collection({"a/x": [2, 2]})
    with pytest.raises(InvalidArgumentError, match=r"4 items of made have no split; use make_split first"):
        write_split(labelled, tmp_path / "split.json")
    torn = labelled.with_items(
        replace(item, split=side)
        for item, side in zip(labelled.items, ("train", "test", "train", "train"), strict=True)
    )
    with pytest.raises(
        DatasetError,
        match="the split of made leaks: group 'a/x/0' is in train, test; a group must be in only one split",
    ):
        write_split(torn, tmp_path / "split.json")
    assert not list(tmp_path.iterdir())


def test_split_of_other_items_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    write_split(make_split(collection({"a/x": [1] * 6})), path)
    with pytest.raises(
        DatasetError,
        match=r"split\.json: does not match made: lacks 1 of its items and has 0 others \(first: a/x/6-0\.mp4\);",
    ):
        read_split(collection({"a/x": [1] * 7}), path)
    with pytest.raises(
        DatasetError,
        match=r"split\.json: does not match made: lacks 0 of its items and has 1 others \(first: a/x/5-0\.mp4\);",
    ):
        read_split(collection({"a/x": [1] * 5}), path)
    with pytest.raises(DatasetError, match=r"split\.json: must be for a collection of kind image, got video"):
        read_split(replace(collection({"a/x": [1] * 6}), kind="image"), path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON, nested too deeply"),
        ("[]", r"split\.json: is not a split, its format is not 'vidkin split'"),
        ('{"format": "vidkin split", "version": 9}', r"split\.json: version must be 1, got 9"),
        ('{"format": "vidkin split", "version": 1}', "lacks its items or its kind"),
        (
            '{"format": "vidkin split", "version": 1, "kind": "video", "items": {"a/x/0-0.mp4": ["dev", "g"]}}',
            r"split\.json: a/x/0-0\.mp4 must have \[split, group\] with a split of train, validation, test,",
        ),
    ],
)
def test_invalid_split_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "split.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=message):
        read_split(collection({"a/x": [1]}), path)


def test_split_file_with_a_leak_is_rejected(tmp_path: Path) -> None:
    labelled = collection({"a/x": [2, 2]})
    path = tmp_path / "split.json"
    write_split(make_split(labelled, test=0.5, validation=0.0), path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["items"]["a/x/0-0.mp4"][0] = "validation"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"the split of made leaks: group 'a/x/0' is in"):
        read_split(labelled, path)


def test_error_for_a_missing_split_says_how_to_create_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"nowhere\.json: does not exist; choose a file written by write_split"):
        read_split(collection({"a/x": [1]}), tmp_path / "nowhere.json")
