"""Write changes to an index in batches: often enough to lose little, rarely enough to be fast."""

from __future__ import annotations

import time

from vidkin.index.ingest.report import FileOutcome, OutcomeKind
from vidkin.index.ingest.tally import Tally
from vidkin.index.records import Entry, VideoRecord
from vidkin.index.storage.contract import VectorStore

__all__ = ["VIDEOS_A_COMMIT", "BatchWriter"]

# Finished entries are written after at most this many seconds, videos or bytes.
SECONDS_A_COMMIT = 0.5
VIDEOS_A_COMMIT = 32
_BYTES_A_COMMIT = 64 << 20
# An update has no features, so more of them make a batch.
_UPDATES_A_COMMIT = 32 * VIDEOS_A_COMMIT


class BatchWriter:
    """Collects entries and updated records, and reports their outcomes once they are written.

    Args:
        store: Store to write to.
        tally: Receives the outcomes.
    """

    def __init__(self, store: VectorStore, tally: Tally) -> None:
        self._store = store
        self._tally = tally
        self._entries: list[tuple[Entry, OutcomeKind, str]] = []
        self._updates: list[tuple[VideoRecord, FileOutcome]] = []
        self._bytes = 0
        self._since = 0.0

    def append(self, entry: Entry, kind: OutcomeKind, cause: str) -> None:
        """Write this entry with the next batch."""
        self._entries.append((entry, kind, cause))
        if entry.features is not None:
            self._bytes += entry.features.values.nbytes

    def update(self, record: VideoRecord, outcome: FileOutcome) -> None:
        """Rewrite this record with the next batch."""
        self._updates.append((record, outcome))

    def write(self) -> None:
        """Commit everything, then report the outcomes."""
        updates, self._updates = self._updates, []
        self._store.update([record for record, _ in updates])
        for _, outcome in updates:
            self._tally.settle(outcome)
        entries, self._entries, self._bytes = self._entries, [], 0
        self._store.append_many([entry for entry, _, _ in entries])
        for entry, kind, cause in entries:
            self._tally.settle(FileOutcome(entry.record.path, kind, cause))
        self._since = time.monotonic()

    def write_if_due(self) -> None:
        """Commit if enough entries have collected or waited long enough."""
        if not self._entries and not self._updates:
            self._since = time.monotonic()
        elif (
            len(self._entries) >= VIDEOS_A_COMMIT
            or len(self._updates) >= _UPDATES_A_COMMIT
            or self._bytes >= _BYTES_A_COMMIT
            or time.monotonic() - self._since >= SECONDS_A_COMMIT
        ):
            self.write()
