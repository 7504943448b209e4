"""Labeled collections: items with a category and, if there are two levels of labels, a subcategory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError

SPLITS = ("train", "validation", "test")
"""The splits of a collection; an item without a split has ``""``."""


@check_constructor
@dataclass(frozen=True, kw_only=True)
class LabelledItem:
    """An image, a video or a drawing with its labels.

    Attributes:
        path: The file, or the archive that contains it.
        category: The coarse label, or the only label.
        subcategory: The fine label, a name within its category; empty if there is only one level of labels.
        group: Name shared by items that must be in the same split, such as the items of one recording.
        member: Name of the file inside the archive; empty for a plain file.
        split: ``"train"``, ``"validation"``, ``"test"``, or ``""`` if not assigned.
        start: Start of the item within a video in seconds; its first frame is the first one at or after this time.
        end: End of the item within a video in seconds, exclusive; None is the end of the file.
    """

    path: Path
    category: str
    subcategory: str = ""
    group: str
    member: str = ""
    split: str = ""
    start: float = 0.0
    end: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("category", self.category), ("subcategory", self.subcategory)):
            if "/" in value or not (value or name == "subcategory"):
                raise InvalidArgumentError(f"{name} of {self.path} must be a non-empty name without '/', got {value!r}")
        if self.split not in ("", *SPLITS):
            raise InvalidArgumentError(
                f"split of {self.path} must be one of {', '.join(SPLITS)}, or '' (undecided), got {self.split!r}"
            )
        last = self.start if self.end is None else self.end
        if not (0 <= self.start <= last < math.inf and (self.end is None or self.start < self.end)):
            raise InvalidArgumentError(
                f"start of {self.path} must be at least 0 s, and end after it, got {self.start} s and {self.end} s"
            )

    @property
    def label(self) -> str:
        """``"category/subcategory"``, or ``"category"`` if there is only one level of labels."""
        return f"{self.category}/{self.subcategory}" if self.subcategory else self.category

    def key(self, root: Path | None = None) -> str:
        """Return text that identifies the item in its collection and stays the same if the collection is moved.

        Args:
            root: The collection's folder; None uses the full path.
        """
        path = self.path
        if root is not None and path.is_relative_to(root):
            path = path.relative_to(root)
        name = path.as_posix() + (f"!{self.member}" if self.member else "")
        if self.start == 0.0 and self.end is None:
            return name
        return f"{name}@{self.start:.3f}-{'' if self.end is None else f'{self.end:.3f}'}"


@dataclass(frozen=True)
class LabelNames:
    """Names of numeric labels: each label is the position of its name.

    Attributes:
        categories: Sorted names of the categories.
        subcategories: Sorted ``"category/subcategory"``, or the categories if there is only one level of labels.
    """

    categories: tuple[str, ...]
    subcategories: tuple[str, ...]

    @classmethod
    def of(cls, items: Iterable[LabelledItem]) -> LabelNames:
        """Collect the label names of items."""
        labels = {item.label: item.category for item in items}
        return cls(tuple(sorted(set(labels.values()))), tuple(sorted(labels)))


@check_constructor
@dataclass(frozen=True, repr=False)
class LabelledSet:
    """Items with one or two levels of labels, in a stable order.

    With one level, every category has itself as its only subcategory, so that any two items have either the same
    subcategory or different categories.

    Attributes:
        name: Name of the collection.
        kind: Kind of the items: ``"image"``, ``"video"``, or a kind added by :func:`vidkin.datasets.register_kind`.
        items: The items, without duplicates.
        root: Folder of the collection; the files in a stored split are relative to it.
        names: Names for the numbers of :meth:`labels`; default: the labels of the items. A split keeps the names of
            the whole set, so that a label has the same number in every split.
    """

    name: str
    kind: str
    items: tuple[LabelledItem, ...]
    root: Path | None = None
    names: LabelNames | None = None

    def __post_init__(self) -> None:
        keys = Counter(item.key() for item in self.items)
        repeated = sorted(key for key, count in keys.items() if count > 1)
        if repeated:
            raise InvalidArgumentError(
                f"{self.name} must contain each item once, got {len(repeated)} more than once, the first is "
                f"{repeated[0]}"
            )

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        counts = self.split_counts()
        parts = ", ".join(f"{name or 'undecided'} {count}" for name, count in counts.items())
        return (
            f"LabelledSet({self.name!r}, {self.kind}, {len(self.items)} items ({parts}), "
            f"{len(self.categories())} categories, {len(self.subcategories())} subcategories)"
        )

    @property
    def label_names(self) -> LabelNames:
        """Names for the numbers of :meth:`labels`."""
        return self.names if self.names is not None else LabelNames.of(self.items)

    @property
    def has_one_level(self) -> bool:
        """Whether no item has a subcategory in addition to its category."""
        return self.subcategories() == self.categories()

    def categories(self) -> tuple[str, ...]:
        """Return the sorted names of the categories; for a split, those of the whole set."""
        return self.label_names.categories

    def subcategories(self) -> tuple[str, ...]:
        """Return the sorted ``"category/subcategory"`` names; for a split, those of the whole set."""
        return self.label_names.subcategories

    def labels(self, *, names: LabelNames | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the labels as numbers: coarse [N] and fine [N], int64.

        Args:
            names: Names for the numbers, for example the ``label_names`` of the set that a model was trained with; None
                uses the names of this set. Fine numbers are unique across categories.

        Raises:
            InvalidArgumentError: An item's label is not among ``names``.
        """
        names = names or self.label_names
        coarse_of = {name: number for number, name in enumerate(names.categories)}
        fine_of = {name: number for number, name in enumerate(names.subcategories)}
        unknown = sorted({item.label for item in self.items if item.label not in fine_of})
        if unknown:
            raise InvalidArgumentError(
                f"names must include all labels of {self.name}, {len(unknown)} are missing, the first is {unknown[0]}"
            )
        coarse = np.array([coarse_of[item.category] for item in self.items], dtype=np.int64)
        return coarse, np.array([fine_of[item.label] for item in self.items], dtype=np.int64)

    def part(self, split: str) -> LabelledSet:
        """Return the items of one split, in the same order; label names and numbers are those of the whole set.

        Raises:
            InvalidArgumentError: The split is unknown or has no items.
        """
        if split not in ("", *SPLITS):
            raise InvalidArgumentError(f"split must be one of {', '.join(SPLITS)}, or '' (undecided), got {split!r}")
        items = tuple(item for item in self.items if item.split == split)
        if not items:
            counts = ", ".join(f"{name or 'undecided'} {count}" for name, count in self.split_counts().items())
            raise InvalidArgumentError(
                f"{self.name} has no {split or 'undecided'} items, only: {counts or 'none'}; "
                "choose one of these, or split it (make_split, read_split; in a recipe data.test and data.validation)"
            )
        return replace(self, items=items, names=self.label_names)

    def split_counts(self) -> dict[str, int]:
        """Return the number of items per split, without empty splits; ``""`` counts items without a split."""
        counts = Counter(item.split for item in self.items)
        return {name: counts[name] for name in (*SPLITS, "") if counts[name]}

    def with_items(self, items: Iterable[LabelledItem]) -> LabelledSet:
        """Return the same collection with other items; label names stay the same."""
        return replace(self, items=tuple(items), names=self.label_names)
