"""Choose which files of a group to keep, by an explainable order of preference among files that contain the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from vidkin.errors import InvalidArgumentError
from vidkin.index.duplicates.comparisons import FileRecord
from vidkin.index.duplicates.differences import Difference
from vidkin.index.duplicates.traits import Traits

Preferences = str | Sequence[str]
"""Columns, and folders whose files are preferred; with the prefix ``outside:``, files outside the folder are."""

_OUTSIDE = "outside:"
# Maximum ratios at which frame rates, bit rates and pixel counts are considered equal.
_SAME_RATE, _SAME_BITS, _SAME_PIXELS = 1.05, 1.02, 1.05
# Maximum difference in seconds at which durations are considered equal.
_SAME_DURATION = 0.1
# Overlays that the other copy does not have; each lowers the rank of a file.
_OVERLAYS = frozenset({"caption", "logo"})
# Kinds of added surroundings, whose area does not count as picture.
_SURROUNDINGS = frozenset({"bars added", "borders added", "inside another picture"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file in a group, with the properties it is ranked by.

    Attributes:
        file: The file.
        traits: Its traits; default values if the file was not opened.
        differences: Its differences from the file with the most pixels; empty if unknown.
    """

    file: FileRecord
    traits: Traits = field(default_factory=Traits)
    differences: tuple[Difference, ...] = ()

    @property
    def picture(self) -> tuple[float, ...]:
        """Sort key, highest first: no overlays, in color, pixels without borders, no border."""
        record, kinds = self.file.record, {each.kind: each.amount or 0.0 for each in self.differences}
        around = max((amount for kind, amount in kinds.items() if kind in _SURROUNDINGS), default=0.0)
        pixels = record.width * record.height * (1.0 - min(around, 0.9))
        return -len(_OVERLAYS & kinds.keys()), -("without color" in kinds), pixels, -around

    @property
    def bit_rate(self) -> float:
        """Bytes per second."""
        return self.file.record.size / max(self.file.record.duration, 1e-3)


_VALUES: Mapping[str, tuple[str, Callable[[Candidate], float]]] = {
    "frame-rate": ("highest frame rate", lambda one: one.traits.frame_rate),
    "dynamic-range": ("highest dynamic range", lambda one: _rank_dynamic_range(one.traits.dynamic_range)),
    "sound": ("most audio channels", lambda one: one.traits.channels),
    "streams": ("most subtitles and other tracks", lambda one: one.traits.streams),
    "metadata": (
        "most metadata",
        lambda one: sum(map(bool, (one.traits.date, one.traits.location, one.traits.camera))),
    ),
    "bit-rate": ("highest bit rate", lambda one: one.bit_rate),
    "size": ("largest file", lambda one: one.file.record.size),
    "age": ("oldest", lambda one: -one.file.record.mtime_ns),
    "newest": ("newest", lambda one: one.file.record.mtime_ns),
    "longest": ("longest", lambda one: one.file.record.duration),
    "smallest": ("smallest file", lambda one: -one.file.record.size),
}

COLUMNS = ("picture", *_VALUES)
"""Names of the columns by which files can be ranked; the first nine are the default order."""

DEFAULT_ORDER = COLUMNS[:9]


def _rank_dynamic_range(name: str) -> int:
    return 2 if "HDR" in name or "HLG" in name else int("bit" in name)


def check_preferences(prefer: Preferences) -> tuple[str, ...]:
    """Check an order of preference; return it with absolute folders, and with the default columns appended.

    Raises:
        InvalidArgumentError: An entry is neither a column nor a folder.
    """
    names = [prefer] if isinstance(prefer, str) else list(prefer)
    order = [_check_preference(name.strip()) for text in names for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys([*order, *DEFAULT_ORDER]))


def _check_preference(name: str) -> str:
    if name in COLUMNS:
        return name
    outside = _OUTSIDE if name.startswith(_OUTSIDE) else ""
    folder = os.path.abspath(os.path.expanduser(name.removeprefix(outside)))
    if not os.path.isdir(folder):
        raise InvalidArgumentError(
            f"prefer must be one of {', '.join(COLUMNS)}, FOLDER or {_OUTSIDE}FOLDER, got {name!r}; there is no folder "
            f"{folder}"
        )
    return f"{outside}{folder}"


def is_folder(name: str) -> bool:
    """Whether an entry of an order of preference is a folder."""
    return name not in COLUMNS


def rank_by_folders(file: FileRecord, order: Sequence[str]) -> tuple[bool, ...]:
    """For each folder in the order, whether it prefers the file."""
    return tuple(_is_preferred(file, name) for name in order if is_folder(name))


def _is_preferred(file: FileRecord, name: str) -> bool:
    folder = os.path.normcase(os.path.join(name.removeprefix(_OUTSIDE), ""))
    return os.path.normcase(file.record.path).startswith(folder) != name.startswith(_OUTSIDE)


def sort_by_preference(candidates: Sequence[Candidate], order: Sequence[str]) -> list[tuple[Candidate, str]]:
    """Sort candidates, best first, each with a description of the column that ranks it above the next."""
    left, result = list(candidates), []
    while left:
        first, reason = _pick_best(left, order)
        result.append((first, reason))
        left.remove(first)
    return result


def _pick_best(candidates: Sequence[Candidate], order: Sequence[str]) -> tuple[Candidate, str]:
    chosen, reason = list(candidates), "first by name"
    for name in order:
        if len(chosen) == 1:
            break
        fewer = [one for one in chosen if _is_preferred(one.file, name)] if is_folder(name) else _best_by(chosen, name)
        if fewer and len(fewer) < len(chosen):
            chosen, reason = fewer, _describe_reason(name)
    if len(chosen) > 1:
        # Removing one name of a file with hard links would not free any space.
        names = max(len(one.file.links) for one in chosen)
        linked = [one for one in chosen if len(one.file.links) == names]
        reason = "has hard links" if len(linked) < len(chosen) else "first by name"
        chosen = linked
    return min(chosen, key=lambda one: one.file.record.path), reason


def _describe_reason(name: str) -> str:
    if name in COLUMNS:
        return "best frames" if name == "picture" else _VALUES[name][0]
    return f"outside {name.removeprefix(_OUTSIDE)}" if name.startswith(_OUTSIDE) else f"in {name}"


def _best_by(candidates: Sequence[Candidate], column: str) -> list[Candidate]:
    if column == "picture":
        best = max(one.picture for one in candidates)
        # Borders are measured only to within a pixel or two, so among similar pixel counts prefer frames without a
        # border.
        alike = [one for one in candidates if one.picture[:2] == best[:2] and one.picture[2] * _SAME_PIXELS >= best[2]]
        return [one for one in alike if not one.picture[3]] or alike
    if column == "bit-rate" and len({one.file.record.codec for one in candidates}) > 1:
        return list(candidates)  # bit rates of different codecs are not comparable
    values = [float(_VALUES[column][1](one)) for one in candidates]
    least = max(values) - (_SAME_DURATION if column == "longest" else 0.0)
    least /= {"frame-rate": _SAME_RATE, "bit-rate": _SAME_BITS}.get(column, 1.0)
    return [one for one, value in zip(candidates, values, strict=True) if value >= least]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files of a group to keep.

    Attributes:
        best: Position of the preferred file.
        removable: For the position of each removable file, the position of the kept file that contains everything in
            it.
    """

    best: int
    removable: Mapping[int, int]


def choose_kept(
    count: int,
    contains: Callable[[int, int], bool],
    may_contain: Callable[[int, int], bool],
    *,
    fixed: Collection[int] = (),
    ranks: Sequence[tuple[bool, ...]] = (),
) -> Choice:
    """Choose as few files as possible to keep, such that each of the others is contained in a kept file.

    Args:
        count: Number of files, in order of preference.
        contains: Returns whether the first file is proven to contain everything in the second; called as rarely as
            possible, because it is slow.
        may_contain: Fast check; returns False if the first file is known not to contain everything in the second.
        fixed: Positions of files that must be kept.
        ranks: Rank of each file by folders; a file is never removed in favor of one with a lower rank.
    """
    left, staying, removable = set(range(count)), set(fixed), dict[int, int]()
    refuted: set[tuple[int, int]] = set()
    best = None

    def allowed(keeper: int, file: int) -> bool:
        if file == keeper or file in fixed or (keeper, file) in refuted or not may_contain(keeper, file):
            return False
        return not ranks or ranks[keeper] >= ranks[file]

    while True:
        open_files = {
            keeper: [file for file in sorted(left - staying) if allowed(keeper, file)] for keeper in sorted(left)
        }
        # Try the file that may contain the most others first; break ties by preference.
        keeper = max(open_files, key=lambda one: (len(open_files[one]), -one), default=None)
        if keeper is None or not open_files[keeper]:
            break
        for file in open_files[keeper]:
            if contains(keeper, file):
                removable[file] = keeper
                left.discard(file)
                staying.add(keeper)
                best = keeper if best is None else best
            else:
                refuted.add((keeper, file))
    return Choice(min(left) if best is None else best, removable)
