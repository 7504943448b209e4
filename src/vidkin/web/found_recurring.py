"""What recurs in the index that a server shows: found by a search, and true to decisions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from vidkin.index import RecurringGroup
from vidkin.index.query.sound import By
from vidkin.index.storage.decisions import Decisions
from vidkin.web.collection import Listing, SharedIndex


@dataclass(frozen=True, slots=True)
class RecurringWish:
    """What to look for.

    Attributes:
        least: Number of files that share it; with ``inside`` number of times in one file.
        shortest: Seconds of its longest occurrence.
        inside: What one file shows again, and not what files share.
        by: What shows that it recurs; with ``inside`` the picture.
    """

    least: Annotated[int, Field(ge=2, le=10_000)] = 2
    shortest: Annotated[float, Field(ge=2, le=36_000)] = 3.0
    inside: bool = False
    by: By = "picture"


@dataclass(frozen=True, slots=True)
class FoundRecurring:
    """What recurs, as it was at one moment.

    Attributes:
        wish: What was looked for.
        groups: What was found, true to decisions.
        rejected: Groups that people said are none.
        listing: The videos then.
        decisions: Version of the decisions then.
    """

    wish: RecurringWish
    groups: tuple[RecurringGroup, ...]
    rejected: tuple[RecurringGroup, ...]
    listing: Listing
    decisions: object


class ShownRecurring:
    """What recurs in one index, for all pages of a server.

    Attributes:
        found: What was found last; None before anybody looked.

    Args:
        index: The index.
    """

    def __init__(self, index: SharedIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        self.found: FoundRecurring | None = None

    @property
    def was_searched(self) -> bool:
        """Whether something is stored from which the groups follow without reading videos."""
        return self._index.place.version("recurring.json") is not None

    @property
    def is_current(self) -> bool:
        """Whether the groups are those of the index as it is now."""
        found = self.found
        return (
            found is not None
            and found.listing is self._index.listing()
            and found.decisions == self._index.place.version(Decisions.FILE)
        )

    def search(self, wish: RecurringWish, on_progress: Callable[[int, int], None] | None = None) -> FoundRecurring:
        """Look for what recurs; only videos that were not compared before are."""
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
