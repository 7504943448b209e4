"""The writer's lock on object storage: a lease that expires unless its holder renews it."""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vidkin._base.values import parse_json
from vidkin.errors import CollectionError, CollectionLockedError

if TYPE_CHECKING:
    from vidkin_scale.objects import ObjectPlace, Tag

_logger = logging.getLogger(__name__)

LEASE_FILE = "writer.json"
# Seconds until a lease expires, and the margin before others may take it, since storage clocks have a resolution of one
# second.
SECONDS = 30.0
_GRACE = 2.0
_RENEWALS_PER_LEASE = 4
# Seconds between checks of another writer's lease.
_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class _Note:
    """Content of the lease object."""

    holder: str
    seconds: float
    count: int = 0
    released: bool = False
    needs_fence: bool = False

    @classmethod
    def parse(cls, content: bytes) -> _Note:
        try:
            table: dict[str, Any] = parse_json(content)
            return cls(
                str(table["holder"]),
                float(table["seconds"]),
                int(table["count"]),
                bool(table["released"]),
                bool(table["needs_fence"]),
            )
        except (ValueError, KeyError, TypeError):
            # Copied from a folder, or damaged: assume the default duration.
            return cls("another process", SECONDS)

    def content(self) -> bytes:
        # The nonce makes every content, and so every entity tag, different.
        return json.dumps({**asdict(self), "nonce": secrets.token_hex(8)}).encode()


class Lease:
    """The writer's lock, renewed by a thread until :meth:`release`.

    A writer replaces the object only if it is unchanged since it was read (``If-Match``), so only one of several wins.
    A lease that was not renewed in time can be taken over; only the clock of the storage decides that.
    A holder counts from before each renewal by its own clock, and so knows before the others when its time is up.

    Attributes:
        needs_fence: Whether an earlier holder did not release it and may still believe that it can write.
    """

    def __init__(self, place: ObjectPlace, note: _Note, tag: Tag, began: float) -> None:
        self.needs_fence = note.needs_fence
        self._place = place
        self._note = note
        self._tag = tag
        self._valid_until = began + note.seconds
        self._is_lost = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_release, name="vidkin-lease", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(cls, place: ObjectPlace, wait: float) -> Lease:
        """Acquire the lease.

        Args:
            place: Location of the lease.
            wait: Seconds to wait for another holder.

        Raises:
            CollectionLockedError: Another process, named in the message with the expiry of its lease, still holds it.
        """
        deadline = time.monotonic() + wait
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        me = f"process {os.getpid()} on {socket.gethostname()} since {since}"
        while True:
            stored = place.fetch(LEASE_FILE)
            before = _Note("", 0.0, released=True) if stored is None else _Note.parse(stored.content)
            remaining = 0.0
            if stored is not None and not before.released:
                remaining = before.seconds + _GRACE - (place.storage_time() - stored.modified)
            if remaining <= 0:
                note = _Note(me, SECONDS, needs_fence=before.needs_fence or not before.released)
                began = _clock()
                tag = place.replace(LEASE_FILE, note.content(), None if stored is None else stored.tag)
                if tag is not None:
                    return cls(place, note, tag, began)
                continue  # another writer was faster
            pause = min(remaining, _PAUSE)
            if time.monotonic() + pause > deadline:
                waited = f" still after {wait:g} s" if wait > 0 else ""
                raise CollectionLockedError(
                    f"{place.uri} is being written to{waited} by {before.holder}; try again later, or wait for it "
                    "(--wait SECONDS, in Python wait=SECONDS); if that process was killed, its lock ends in "
                    f"{remaining:.0f} s"
                )
            time.sleep(pause)

    def check(self, *, ask: bool) -> None:
        """Raise :class:`CollectionLockedError` if the lease is lost, or possibly lost.

        Args:
            ask: Renew it now, which fails if another process holds it; otherwise decide by time alone.
        """
        if ask:
            self._renew()
        if self._is_lost or _clock() >= self._valid_until:
            raise CollectionLockedError(
                f"{self._place.uri}: the right to write was lost, because it could not be renewed for "
                f"{self._note.seconds:g} s; finished work is saved: run the same command again to resume"
            )

    def release(self) -> None:
        """Release the lease, so that other writers need not wait for its expiry."""
        self._stop.set()
        self._thread.join()
        if self._is_lost:
            return
        note = replace(self._note, released=True, needs_fence=self.needs_fence)
        try:
            self._place.replace(LEASE_FILE, note.content(), self._tag)
        except CollectionError as error:
            _logger.info("%s; the lock ends by itself", error)

    def _renew_until_release(self) -> None:
        while not self._stop.wait(self._note.seconds / _RENEWALS_PER_LEASE) and not self._is_lost:
            try:
                self._renew()
            except CollectionError as error:
                _logger.info("%s; the lock is renewed again soon", error)

    def _renew(self) -> None:
        with self._lock:
            began = _clock()
            note = replace(self._note, count=self._note.count + 1, needs_fence=self.needs_fence)
            tag = self._place.replace(LEASE_FILE, note.content(), self._tag)
            if tag is None:
                self._is_lost = True
            else:
                self._note, self._tag, self._valid_until = note, tag, began + note.seconds


def _clock() -> float:
    """Monotonic seconds, including time asleep if the system supports that."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
