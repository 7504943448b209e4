"""Groups of duplicates and recurring segments that a server shows, kept up to date after verdicts and removals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field

from vidkin.index import DuplicateGroup, DuplicateMember, FoundGroup, RecurringGroup, is_gone
from vidkin.index.duplicates.comparisons import Comparisons
from vidkin.index.query.sound import By
from vidkin.index.storage.decisions import Decisions
from vidkin.similarity import SURE
from vidkin.web.collection import Listing, SharedIndex
from vidkin.web.routes import Body

Preference = Literal["best", "age", "newest", "size", "longest"]
# Minimum seconds between updates of the preview during a search.
_PREVIEW_SECONDS = 0.5


class Wish(Body):
    """Settings of a search for duplicates.

    Attributes:
        threshold: Minimum score for two videos to form a group.
        parts: Also group excerpts with the video they come from.
        prefer: Rule for choosing the file to keep: `best` by the default order of columns, otherwise by this column
            first.
        by: Basis of the scores; only `picture` makes a file removable.
    """

    threshold: float = Field(default=SURE, gt=0, le=1)
    parts: bool = False
    prefer: Preference = "best"
    by: By = "picture"

    def settings(self) -> dict[str, Any]:
        """Return the corresponding arguments of :meth:`vidkin.Index.duplicates`."""
        prefer = () if self.prefer == "best" else self.prefer
        return {"threshold": self.threshold, "parts": self.parts, "prefer": prefer, "by": self.by}


@dataclass(frozen=True, slots=True)
class FoundGroups:
    """Snapshot of the groups of duplicates.

    Attributes:
        wish: Settings of the search.
        groups: Groups ordered by the paths of their best copies.
        uncompared: Number of videos that have not been compared yet.
        videos: Number of videos that can be compared.
        is_preview: Whether a search is still running, so roles may change and nothing should be removed.
        listing: The records that they depend on.
        versions: Versions of the stored comparisons and decisions that they depend on.
        gone: Paths of files that were missing.
    """

    wish: Wish = field(default_factory=Wish)
    groups: tuple[DuplicateGroup, ...] = ()
    uncompared: int = 0
    videos: int = 0
    is_preview: bool = False
    listing: Listing | None = None
    versions: tuple[object, object] = (None, None)
    gone: frozenset[str] = frozenset()


class ShownGroups:
    """Groups of duplicates of one index, shared by all pages of a server.

    Attributes:
        found: Current groups; None before the first search.

    Args:
        index: The index.
    """

    def __init__(self, index: SharedIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        # Members that proofs found not removable, by path, and the version of the decisions at that time.
        self._doubts: dict[str, DuplicateMember] = {}
        self._doubted_at: object = None
        self.found: FoundGroups | None = None

    def is_current(self) -> bool:
        """Whether the groups reflect everything stored so far by this server or any other program."""
        found = self.found
        return (
            found is not None
            and not found.is_preview
            and found.listing is self._index.listing()
            and found.versions == self._versions()
            and all(is_gone(path) for path in found.gone)
            and not any(is_gone(member.path) for group in found.groups for member in group.members)
        )

    def _versions(self) -> tuple[object, object]:
        place = self._index.place
        return place.version(Comparisons.FILE), place.version(Decisions.FILE)

    def regroup(self, on_progress: Callable[[int, int], None] | None = None) -> FoundGroups:
        """Group the comparisons of earlier searches by this server or ``vidkin duplicates``."""
        with self._lock:
            if self.is_current() and self.found is not None:
                return self.found
            return self._find(self.found.wish if self.found else Wish(), True, on_progress)

    def search(self, wish: Wish, on_progress: Callable[[int, int, int], None]) -> FoundGroups:
        """Compare videos that have not been compared yet and group them, showing groups as they are found.

        Args:
            wish: Settings of the search.
            on_progress: Callback that receives (steps done, total number of steps, groups so far).
        """
        with self._lock:
            self._doubts = {}
            before = self.found.groups if self.found is not None and self.found.wish == wish else ()
            preview = _Preview(self, wish, before)

            def report(done: int, total: int) -> None:
                on_progress(done, total, preview.count)

            return self._find(wish, False, report, preview.add)

    def prove(
        self,
        groups: Sequence[DuplicateGroup],
        chosen: Collection[str] | None,
        on_progress: Callable[[int, int], None],
    ) -> list[DuplicateGroup]:
        """Prove by decoding which files can be removed; :meth:`regroup` then shows the result on all pages.

        Args:
            groups: Some of the groups.
            chosen: Paths of the files that may be removed; None for all.
            on_progress: Callback that receives (steps done, total number of steps); an exception from it stops the
                work.
        """
        with self._lock:
            _, decisions = self._versions()
            wish = self.found.wish if self.found else Wish()
            with self._index.reader() as index:
                proven = index.prove_groups(groups, chosen=chosen, **wish.settings(), on_progress=on_progress)
            before = self._doubts if self._doubted_at == decisions else {}
            doubtful = {member.path: member for group in proven for member in group.members if member.doubt}
            self._doubts, self._doubted_at = before | doubtful, decisions
            return proven

    def _find(
        self,
        wish: Wish,
        known_only: bool,
        on_progress: Callable[[int, int], None] | None,
        on_found: Callable[[FoundGroup], None] | None = None,
    ) -> FoundGroups:
        self._index.forget()
        listing, (_, decisions) = self._index.listing(), self._versions()
        gone = frozenset(record.path for record in listing.records if record.status == "ok" and is_gone(record.path))
        with self._index.reader() as index:
            groups = index.duplicates(
                **wish.settings(), known_only=known_only, on_progress=on_progress, on_found=on_found
            )
            uncompared, videos = index.uncompared()
        comparisons, _ = self._versions()
        shown, versions = tuple(map(self._add_doubts, groups)), (comparisons, decisions)
        self.found = FoundGroups(wish, shown, uncompared, videos, listing=listing, versions=versions, gone=gone)
        return self.found

    def _add_doubts(self, group: DuplicateGroup) -> DuplicateGroup:
        """Add doubts found during proofs that the index does not store: file properties, and files that could not be
        read."""
        if self._doubted_at != self._versions()[1]:
            return group
        members = (
            replace(member, doubt=doubted.doubt, findings=doubted.findings)
            if member.is_spare and not member.is_proven and (doubted := self._doubts.get(member.path))
            else member
            for member in group.members
        )
        return replace(group, members=tuple(members))


class _Preview:
    """Groups during a search: the ones reported so far and, for other files, the groups of the last similar search."""

    def __init__(self, shown: ShownGroups, wish: Wish, groups: tuple[DuplicateGroup, ...]) -> None:
        self._shown, self._wish = shown, wish
        self._before = groups
        self._now: dict[int, DuplicateGroup] = {}
        self._shown_at = 0.0
        self._show()

    @property
    def count(self) -> int:
        return len(self._shown.found.groups) if self._shown.found else 0

    def add(self, found: FoundGroup) -> None:
        if found.group is None:
            self._now.pop(found.id, None)
        else:
            self._now[found.id] = found.group
        self._show()

    def _show(self) -> None:
        if time.monotonic() - self._shown_at < _PREVIEW_SECONDS:
            return
        self._shown_at = time.monotonic()
        known = {member.path for group in self._now.values() for member in group.members}
        before = [group for group in self._before if not any(member.path in known for member in group.members)]
        groups = sorted([*self._now.values(), *before], key=lambda group: group.best.path)
        self._shown.found = FoundGroups(self._wish, tuple(groups), is_preview=True)


class RecurringWish(Body):
    """Settings of a search for recurring segments.

    Attributes:
        least: Minimum number of files that share a segment; with `inside` the number of times in one file.
        shortest: Minimum length in seconds.
        inside: Find segments repeated within one file.
        by: Evidence that a segment recurs; always `picture` with `inside`.
    """

    least: int = Field(default=2, ge=2, le=10_000)
    shortest: float = Field(default=3.0, ge=2, le=36_000)
    inside: bool = False
    by: By = "picture"


@dataclass(frozen=True, slots=True)
class FoundRecurring:
    """Snapshot of a search for recurring segments.

    Attributes:
        wish: Settings of the search.
        groups: Groups found, with decisions applied.
        rejected: Groups that a person rejected.
        listing: The videos at that time.
        decisions: Version of the decisions at that time.
    """

    wish: RecurringWish
    groups: tuple[RecurringGroup, ...]
    rejected: tuple[RecurringGroup, ...]
    listing: Listing
    decisions: object


class ShownRecurring:
    """Recurring segments of one index, shared by all pages of a server.

    Attributes:
        found: Last result; None before the first search.

    Args:
        index: The index.
    """

    def __init__(self, index: SharedIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        self.found: FoundRecurring | None = None

    @property
    def was_searched(self) -> bool:
        """Whether stored results give the groups without reading videos."""
        return self._index.place.version("recurring.json") is not None

    @property
    def is_current(self) -> bool:
        """Whether the groups reflect the current state of the index."""
        found = self.found
        return (
            found is not None
            and found.listing is self._index.listing()
            and found.decisions == self._index.place.version(Decisions.FILE)
        )

    def search(self, wish: RecurringWish, on_progress: Callable[[int, int], None] | None = None) -> FoundRecurring:
        """Find recurring segments, comparing only videos that have not been compared before."""
        with self._lock:
            self._index.forget()
            listing, decisions = self._index.listing(), self._index.place.version(Decisions.FILE)
            with self._index.reader() as index:
                groups = index.recurring(
                    least=wish.least, shortest=wish.shortest, inside=wish.inside, by=wish.by, on_progress=on_progress
                )
                rejected = index.rejected_recurring()
            self.found = FoundRecurring(wish, tuple(groups), tuple(rejected), listing, decisions)
            return self.found
