"""Filters and sort orders of the library, and the tree of its folders."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import BeforeValidator, Field, WithJsonSchema

from vidkin.index import VideoRecord
from vidkin.rendering.text import printable
from vidkin.web.routes import address_of
from vidkin.web.site import Site

Sort = Literal["name", "path", "duration", "shortest", "size", "smallest", "newest", "oldest"]
FileFilter = Literal["all", "ok", "broken", "stale", "damaged"]
KnownFilter = Literal["", "yes", "no"]
_MAX_BOUND = 1e15
# A form sends an empty string for an empty field.
Bound = Annotated[
    Annotated[float, Field(ge=0, le=_MAX_BOUND)] | None,
    BeforeValidator(lambda value: None if value == "" else value),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0, "maximum": _MAX_BOUND}, {"type": "string", "maxLength": 0}]}
    ),
    Query(),
]

SORTS: dict[Sort, tuple[str, Callable[[VideoRecord], tuple[Any, ...]]]] = {
    "name": ("name", lambda record: (os.path.basename(record.path).casefold(), record.path)),
    "path": ("path", lambda record: (record.path,)),
    "duration": ("longest", lambda record: (-record.duration, record.path)),
    "shortest": ("shortest", lambda record: (record.duration, record.path)),
    "size": ("largest", lambda record: (-record.size, record.path)),
    "smallest": ("smallest", lambda record: (record.size, record.path)),
    "newest": ("added last", lambda record: (-record.added_at, record.path)),
    "oldest": ("added first", lambda record: (record.added_at, record.path)),
}
"""Label and key of each sort order."""
_DAY, _MEGABYTE = 86_400.0, 1e6
# Maximum number of subfolders shown.
_MAX_FOLDERS = 500
_REPLACED = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class LibraryFilter:
    """Filter and order of the videos to show.

    Attributes:
        q: Words that must all occur in the path.
        sort: Sort order.
        state: Status; ``damaged`` means that a part of the video cannot be read.
        folder: Only files in this folder and below.
        path: Only the file with this path.
        list: Only videos in this list.
        min_seconds, max_seconds: Bounds of the duration; None for no bound.
        min_megabytes, max_megabytes: Bounds of the size, in millions of bytes.
        added_days: Only videos added in this many last days.
        copies: Whether copies are known.
        shots: Whether shots were detected from a page.
    """

    q: str = ""
    sort: Sort = "name"
    state: FileFilter = "all"
    folder: str = ""
    path: str = ""
    list: str = ""
    min_seconds: Bound = None
    max_seconds: Bound = None
    min_megabytes: Bound = None
    max_megabytes: Bound = None
    added_days: Bound = None
    copies: KnownFilter = ""
    shots: KnownFilter = ""

    @property
    def has_more(self) -> bool:
        """Whether any filter under "More filters" is set."""
        bounds = self.min_seconds, self.max_seconds, self.min_megabytes, self.max_megabytes, self.added_days
        return bool(self.copies or self.shots) or any(bound is not None for bound in bounds)

    def address(self, page: int = 1, **changes: Any) -> str:
        """The address of a library page with this filter, optionally with some fields changed."""
        return address_of("/", replace(self, **changes), page)


ChosenFilter = Annotated[LibraryFilter, Depends()]
"""The filter in the address of a page, as a function parameter."""


@dataclass(frozen=True, slots=True)
class FolderNode:
    """A folder of the index.

    Attributes:
        path: Path of the folder.
        name: Last part of the path; the whole path at the top.
        count: Number of indexed files in and below it.
        has_folders: Whether it contains further folders of the index.
        folders: Its subfolders, if unfolded.
        more: Number of subfolders beyond the display limit.
    """

    path: str
    name: str
    count: int
    has_folders: bool
    folders: list[FolderNode] | None = None
    more: int = 0


def choose_records(site: Site, wish: LibraryFilter) -> list[VideoRecord]:
    """The records that pass a filter, in its order."""
    checks = _checks(site, wish)
    chosen = [record for record in site.index.listing().records if all(check(record) for check in checks)]
    chosen.sort(key=SORTS[wish.sort][1])
    return chosen


def _checks(site: Site, wish: LibraryFilter) -> list[Callable[[VideoRecord], bool]]:
    """A predicate for each part of the filter that is set, fast ones first."""
    words, inside = wish.q.casefold().split(), os.path.join(wish.folder, "")
    # Pages show a name that is not valid Unicode with replaced letters.
    folder_of = printable if _REPLACED in wish.folder else str
    since = None if wish.added_days is None else time.time() - wish.added_days * _DAY
    listed = site.lists_of_videos().contents.get(wish.list, {}) if wish.list else {}
    groups = site.groups.found.groups if wish.copies and site.groups.found else ()
    copies = {member.path for group in groups for member in group.members}
    detector = site.detector() if wish.shots else ""
    checks: list[tuple[object, Callable[[VideoRecord], bool]]] = [
        (wish.state == "damaged", lambda record: bool(record.damage)),
        (wish.state not in ("all", "damaged"), lambda record: record.status == wish.state),
        (True, _within(wish.min_seconds, wish.max_seconds, lambda record: record.duration)),
        (True, _within(wish.min_megabytes, wish.max_megabytes, lambda record: record.size / _MEGABYTE)),
        (True, _within(since, None, lambda record: record.added_at)),
        (wish.path, lambda record: wish.path in (record.path, printable(record.path))),
        (wish.folder, lambda record: folder_of(record.path).startswith(inside)),
        (words, lambda record: all(word in record.path.casefold() for word in words)),
        (wish.list, lambda record: record.content_hash in listed),
        (wish.copies, lambda record: (record.path in copies) == (wish.copies == "yes")),
        (wish.shots, lambda record: site.has_shots(record, detector) == (wish.shots == "yes")),
    ]
    return [check for is_set, check in checks if is_set]


def _within(
    low: float | None, high: float | None, measure: Callable[[VideoRecord], float]
) -> Callable[[VideoRecord], bool]:
    least, most = -1.0 if low is None else low, float("inf") if high is None else high
    return lambda record: least <= measure(record) <= most


def folder_tree(records: Sequence[VideoRecord], *, under: str = "", open_to: str = "") -> list[FolderNode]:
    """The folders of the index directly below a folder.

    Args:
        records: All records.
        under: The folder; empty means the common folder of all files.
        open_to: Unfold the folders that lead to this one.
    """
    files = Counter(os.path.dirname(record.path) for record in records)
    if not files:
        return []
    if under:
        return _children(_in_letters(files, under), files, open_to)[0]
    top = os.path.commonpath(files) if all(map(os.path.isabs, files)) else os.sep
    inside, more = _children(top, files, open_to or top)
    return [FolderNode(printable(top), printable(top), sum(files.values()), bool(inside), inside, more)]


def _children(path: str, files: Counter[str], open_to: str) -> tuple[list[FolderNode], int]:
    """The subfolders of a folder, by name, and the number beyond the display limit."""
    inside = os.path.join(path, "")
    counts: Counter[str] = Counter()
    deeper = set()
    for folder, count in files.items():
        if folder.startswith(inside):
            name, _, rest = folder[len(inside) :].partition(os.sep)
            counts[name] += count
            if rest:
                deeper.add(name)
    names = sorted(counts, key=lambda name: (name.casefold(), name))
    nodes = []
    for name in names[:_MAX_FOLDERS]:
        own = inside + name
        is_open = name in deeper and (open_to == own or open_to.startswith(own + os.sep))
        below, more = _children(own, files, open_to) if is_open else (None, 0)
        nodes.append(FolderNode(printable(own), printable(name), counts[name], name in deeper, below, more))
    return nodes, max(len(names) - _MAX_FOLDERS, 0)


def _in_letters(files: Counter[str], shown: str) -> str:
    """The folder that a page shows as ``shown``, where unprintable letters are replaced."""
    if _REPLACED not in shown:
        return shown.rstrip(os.sep) or os.sep
    length = shown.rstrip(os.sep).count(os.sep)
    ways = {os.sep.join(folder.split(os.sep)[: length + 1]) for folder in files}
    return next((way for way in ways if printable(way) == shown), shown)
