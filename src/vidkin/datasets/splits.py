"""Make, write and read splits of labeled collections, without leakage."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, write_text
from vidkin._base.values import check_choice, read_json
from vidkin.datasets.labeled import SPLITS, LabelledItem, LabelledSet
from vidkin.errors import DatasetError, InvalidArgumentError

_FORMAT = "vidkin split"
_VERSION = 1


@check_arguments
def make_split(
    labelled: LabelledSet,
    *,
    by: Literal["group", "item", "subcategory"] = "group",
    test: float = 0.3,
    validation: float = 0.1,
    seed: int = 0,
) -> LabelledSet:
    """Split a collection into training, validation and test without leakage.

    Groups stay together. If every group belongs to one subcategory, each subcategory is split separately, so that all
    splits have all subcategories if there are enough groups: a single group goes to train, two groups go to train and
    test, and validation gets a group only if two remain for training. If groups span subcategories, the collection is
    split as a whole. The same arguments give the same split.

    Args:
        labelled: The collection; existing splits of its items are replaced.
        by: ``"group"`` keeps groups together. ``"item"`` treats every item as a group; use it only if the items are
            independent. ``"subcategory"`` holds out whole subcategories of each category, to evaluate on subcategories
            not seen in training.
        test: Fraction of the items for the test split, at least 0 and below 1; approximate, because groups stay whole.
        validation: Fraction for the validation split.
        seed: Seed of the split.

    Returns:
        The collection with a split for every item; the group of each item is the unit that was kept together.

    Raises:
        InvalidArgumentError: A fraction is out of range, or there are fewer groups than requested splits.
    """
    if not (0 <= test < 1 and 0 <= validation < 1 and test + validation < 1):
        raise InvalidArgumentError(
            f"test and validation must be at least 0, and their sum below 1, got {test} and {validation}"
        )
    keys: dict[str, Callable[[LabelledItem], str]] = {
        "group": lambda item: item.group,
        "item": lambda item: item.key(labelled.root),
        "subcategory": lambda item: item.label,
    }
    check_choice("by", by, sorted(keys))
    items = [replace(item, group=keys[by](item)) for item in labelled.items]
    chosen: dict[str, str] = {}
    shares = {"test": test, "validation": validation}
    counts: defaultdict[str, int] = defaultdict(int)
    labels: defaultdict[str, set[str]] = defaultdict(set)
    categories: dict[str, str] = {}
    for one in items:
        counts[one.group] += 1
        labels[one.group].add(one.label)
        categories[one.group] = one.category
    inside = all(len(names) == 1 for names in labels.values())
    strata: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for group in sorted(counts):
        inner = categories[group] if by == "subcategory" else next(iter(labels[group]))
        strata[inner if inside else ""][group] = counts[group]
    for stratum, groups in strata.items():
        generator = np.random.default_rng([seed, *stratum.encode()])
        # Training needs two groups per subcategory, or two subcategories per category, so validation gets none if fewer
        # would remain. If groups span subcategories, training needs one.
        chosen |= _divide(groups, shares, generator, spare=2 if stratum else 1)
    given = set(chosen.values())
    lacking = [name for name, share in shares.items() if share > 0 and name not in given]
    if lacking:
        raise InvalidArgumentError(
            f"{labelled.name} has {len(chosen)} groups, too few for a {' and a '.join(lacking)} split; set "
            f"{' and '.join(lacking)} to 0 (in a recipe {' and '.join(f'data.{name}' for name in lacking)}), or split "
            "by item if the items are independent (data.split_by = 'item')"
        )
    return labelled.with_items(replace(item, split=chosen[item.group]) for item in items)


@check_arguments
def check_split(labelled: LabelledSet) -> None:
    """Check that no group is in more than one split.

    Raises:
        DatasetError: A group is in several splits; the message names the group and the splits.
    """
    parts: defaultdict[str, set[str]] = defaultdict(set)
    for item in labelled.items:
        if item.split:
            parts[item.group].add(item.split)
    leaks = sorted(group for group, splits in parts.items() if len(splits) > 1)
    if leaks:
        first = ", ".join(name for name in SPLITS if name in parts[leaks[0]])
        raise DatasetError(
            f"the split of {labelled.name} leaks: group {leaks[0]!r} is in {first}"
            + (f", and so are {len(leaks) - 1} more groups" if len(leaks) > 1 else "")
            + "; a group must be in only one split"
        )


@check_arguments
def write_split(labelled: LabelledSet, path: PathLike) -> None:
    """Write a split as JSON with one line per item, which is easy to read and to compare.

    For every item, the file contains its key (the path relative to the collection's folder), split and group.

    Raises:
        DatasetError: The split leaks, see :func:`check_split`.
        InvalidArgumentError: Some items have no split.
    """
    undecided = labelled.split_counts().get("", 0)
    if undecided:
        raise InvalidArgumentError(f"{undecided} items of {labelled.name} have no split; use make_split first")
    check_split(labelled)
    head = {
        "format": _FORMAT,
        "version": _VERSION,
        "name": labelled.name,
        "kind": labelled.kind,
        "counts": labelled.split_counts(),
    }
    lines = [
        f"{json.dumps(item.key(labelled.root), ensure_ascii=False)}: "
        f"{json.dumps([item.split, item.group], ensure_ascii=False)}"
        for item in labelled.items
    ]
    text = json.dumps(head, ensure_ascii=False)[:-1] + ',\n"items": {\n' + ",\n".join(lines) + "\n}}\n"
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)


@check_arguments
def read_split(labelled: LabelledSet, path: PathLike) -> LabelledSet:
    """Read a split written by :func:`write_split`, and return the collection with its splits and groups.

    Raises:
        DatasetError: The file is not a split, belongs to another collection, leaks, or lists other items.
    """
    file = Path(path)
    try:
        content = read_json(file, follow_links=True)
    except FileNotFoundError as error:
        raise DatasetError(f"{file}: does not exist; choose a file written by write_split") from error
    except ValueError as error:
        raise DatasetError(f"{file}: is not JSON, {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DatasetError(f"{file}: is not a split, its format is not {_FORMAT!r}")
    if content.get("version") != _VERSION:
        raise DatasetError(f"{file}: version must be {_VERSION}, got {content.get('version')!r}")
    if not isinstance(content.get("items"), dict) or "kind" not in content:
        raise DatasetError(f"{file}: lacks its items or its kind; write it again with write_split")
    if content["kind"] != labelled.kind:
        raise DatasetError(f"{path}: must be for a collection of kind {labelled.kind}, got {content['kind']}")
    entries: Mapping[str, Any] = content["items"]
    keys = [item.key(labelled.root) for item in labelled.items]
    missing = [key for key in keys if key not in entries]
    unknown = sorted(set(entries) - set(keys))
    if missing or unknown:
        example = missing[0] if missing else unknown[0]
        raise DatasetError(
            f"{path}: does not match {labelled.name}: lacks {len(missing)} of its items and has {len(unknown)} others "
            f"(first: {example}); open the collection with the options of the split, or make a new split"
        )
    items = []
    for key, item in zip(keys, labelled.items, strict=True):
        entry = entries[key]
        if not (isinstance(entry, list) and len(entry) == 2 and entry[0] in SPLITS):
            raise DatasetError(
                f"{path}: {key} must have [split, group] with a split of {', '.join(SPLITS)}, got {entry!r}"
            )
        items.append(replace(item, split=entry[0], group=str(entry[1])))
    divided = labelled.with_items(items)
    check_split(divided)
    return divided


def _divide(
    groups: Mapping[str, int], shares: Mapping[str, float], generator: np.random.Generator, *, spare: int
) -> dict[str, str]:
    """Assign a split to each group. A split takes groups until it is as close to its fraction as possible; the test
    split leaves at least one group for training, validation at least ``spare``."""
    names = [sorted(groups)[index] for index in generator.permutation(len(groups))]
    total = sum(groups.values())
    chosen: dict[str, str] = {}
    for split, share in shares.items():
        target, taken, kept = share * total, 0, 1 if split == "test" else spare
        while share > 0 and len(names) > kept:
            size = groups[names[-1]]
            # At least one group, then others only if they bring the split nearer to its share.
            if taken and taken + size / 2 > target:
                break
            chosen[names.pop()] = split
            taken += size
    return chosen | dict.fromkeys(names, "train")
