"""A prefix on object storage: Amazon S3 and what speaks its protocol, or Google Cloud Storage.

Its lock is a lease that the holder renews, and that expires otherwise.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from vidkin._base.install import install_command
from vidkin._base.values import parse_json
from vidkin.errors import CollectionError, CollectionLockedError, MissingPartError
from vidkin.index.storage.files import describe_refusal

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

SCHEMES = ("s3", "gs")
"""Schemes of addresses."""

# A request takes tens of milliseconds, nearly all of it waiting.
_REQUESTS_AT_A_TIME = 16
# A storage that does not answer is an error after this time, instead of the library's minutes.
_CONNECT = timedelta(seconds=5)
_TIMEOUT = timedelta(seconds=60)
_RETRIES, _RETRY_FOR = 4, timedelta(seconds=30)

LEASE_FILE = "writer.json"
CLOCK_FILE = "writer.clock"
# Seconds until a lease expires, and the margin before others may take it: storage clocks have full seconds.
SECONDS = 30.0
_GRACE = 2.0
_RENEWALS_A_LEASE = 4
# Seconds between checks of the lease of another writer.
_PAUSE = 1.0

Tag = tuple[tuple[str, str], ...]
"""Identifies one content of an object, as the storage names it."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it was read.

    Attributes:
        tag: Changes with the content.
        modified: Time of the last change, seconds since the epoch by the clock of the storage.
        content: Full content; empty if only the metadata was requested.
    """

    tag: Tag
    modified: float
    content: bytes = b""


class ObjectPlace:
    """A :class:`~vidkin.index.storage.place.Place` below a prefix of a bucket.

    Credentials, region and endpoint come from the environment (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``,
    ``GOOGLE_APPLICATION_CREDENTIALS``, or the role of a machine in the cloud). Writes are conditional, so the storage
    must know ``If-None-Match`` and ``If-Match`` on PUT.

    Args:
        scheme: One of :data:`SCHEMES`.
        bucket: Name of the bucket.
        prefix: Root of the files, without slashes around it; "" is the whole bucket.

    Raises:
        MissingPartError: obstore is not installed.
    """

    folder = None
    lock_ends_writing = False

    def __init__(self, scheme: str, bucket: str, prefix: str) -> None:
        self.uri = f"{scheme}://{bucket}/{prefix}".rstrip("/")
        endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
        # An endpoint without encryption was named deliberately.
        self._is_plain = scheme == "s3" and endpoint.startswith("http://")
        self.storage_options = {
            "connect_timeout": f"{_CONNECT.seconds}s",
            "timeout": f"{_TIMEOUT.seconds}s",
            "client_max_retries": str(_RETRIES),
            "client_retry_timeout": str(_RETRY_FOR.seconds),
            **({"allow_http": "true"} if self._is_plain else {}),
        }
        self._store = self._open_store(scheme, bucket)
        self._prefix = f"{prefix}/" if prefix else ""
        # What each file was when it was last read or written here; None where it was missing.
        self._tags: dict[str, Tag | None] = {}
        self._lease: Lease | None = None

    def prepare(self) -> None:
        pass

    def address(self, name: str) -> str:
        return f"{self.uri}/{name}" if name else self.uri

    def read(self, name: str) -> bytes | None:
        stored = self.fetch(name)
        self._tags[name] = None if stored is None else stored.tag
        return None if stored is None else stored.content

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        self.check_writer()
        if name not in self._tags:
            with self._requesting(name):
                self._tags[name] = self._put(name, content, "overwrite")
            return
        tag = self.replace(name, content, self._tags[name])
        if tag is None:
            raise CollectionLockedError(
                f"{self.address(name)} was changed by another process at the same time; run the same command again"
            )
        self._tags[name] = tag

    def version(self, name: str) -> Hashable | None:
        stat = self._stat(name)
        return None if stat is None else stat.tag

    def fetch(self, name: str) -> StoredObject | None:
        """A file with its tag and its time; None if the file is missing."""
        import obstore

        with self._requesting(name):
            try:
                result = obstore.get(self._store, self._prefix + name)
                return StoredObject(
                    _tag_of(result.meta), result.meta["last_modified"].timestamp(), bytes(result.bytes())
                )
            except FileNotFoundError as error:
                self._check_bucket(error)
                return None

    def replace(self, name: str, content: bytes, tag: Tag | None) -> Tag | None:
        """Write a file if it is still the one with this tag, or still missing; its new tag, or None if it is not.

        Args:
            name: Name of the file.
            content: All of it.
            tag: Tag of the file; None if the file is missing.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._requesting(name):
            try:
                return self._put(name, content, "create" if tag is None else dict(tag))
            # A file that is gone is not the one with that tag.
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                self._check_bucket(error)
        # If the answer was lost, the request was sent again and met what it had written itself.
        stored = self.fetch(name)
        return stored.tag if stored is not None and stored.content == content else None

    def storage_time(self) -> float:
        """Time by the clock of the storage in seconds since the epoch, because clocks of machines can be wrong."""
        with self._requesting(CLOCK_FILE):
            self._put(CLOCK_FILE, secrets.token_bytes(8), "overwrite")
        stat = self._stat(CLOCK_FILE)
        if stat is None:
            raise CollectionError(f"{self.address(CLOCK_FILE)} was deleted by another program; try again")
        return stat.modified

    def names(self) -> set[str]:
        import obstore

        with self._requesting(""):
            listing = obstore.list_with_delimiter(self._store, self._prefix or None)
        paths = [*listing["common_prefixes"], *(item["path"] for item in listing["objects"])]
        return {path.removeprefix(self._prefix).strip("/") for path in paths}

    def sizes(self, folder: str = "") -> dict[str, int]:
        return {name: size for names in self._list(folder) for name, size in names}

    def has_file(self, name: str) -> bool:
        return self._stat(name) is not None

    def has_folder(self, name: str = "") -> bool:
        return next(self._list(name, chunk=1), None) is not None

    def delete(self, names: Iterable[str]) -> None:
        import obstore

        self.check_writer()
        names = list(names)
        self._tags |= dict.fromkeys(self._tags.keys() & set(names))
        paths = [self._prefix + name for name in names]
        with self._requesting(""):
            try:
                obstore.delete(self._store, paths)
            except FileNotFoundError as error:
                self._check_bucket(error)

    def delete_folder(self, name: str) -> None:
        self.delete(self.sizes(name))

    def delete_unfinished(self, folder: str) -> None:
        pass  # an object is there whole or not at all

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        with ThreadPoolExecutor(_REQUESTS_AT_A_TIME, thread_name_prefix="vidkin-storage") as pool:
            return list(pool.map(function, items))

    @contextmanager
    def exclusive(self, wait: float = 0.0) -> Iterator[None]:
        lease = Lease.acquire(self, wait)
        self._lease = lease
        try:
            yield
        finally:
            lease.release()
            self._lease = None

    def check_writer(self, *, ask: bool = False) -> None:
        if self._lease is not None:
            self._lease.check(ask=ask)

    def needs_fence(self) -> bool:
        return self._lease is not None and self._lease.needs_fence

    def note_fence(self) -> None:
        if self._lease is not None:
            self._lease.needs_fence = False

    def _open_store(self, scheme: str, bucket: str) -> ObjectStore:
        try:
            from obstore.store import GCSStore, S3Store
        except ModuleNotFoundError as error:
            raise MissingPartError(
                f"{self.uri}: an index on object storage needs obstore, which is not installed; run "
                f"{install_command('cloud')}"
            ) from error
        with self._requesting(""):
            options: Any = {
                "client_options": {
                    "allow_http": self._is_plain,
                    "connect_timeout": _CONNECT,
                    "timeout": _TIMEOUT,
                },
                "retry_config": {"max_retries": _RETRIES, "retry_timeout": _RETRY_FOR},
            }
            return S3Store(bucket, **options) if scheme == "s3" else GCSStore(bucket, **options)

    def _put(self, name: str, content: bytes, mode: Any) -> Tag:
        import obstore

        result = obstore.put(self._store, self._prefix + name, content, mode=mode, use_multipart=False)
        return _tag_of(result)

    def _stat(self, name: str) -> StoredObject | None:
        import obstore

        with self._requesting(name):
            try:
                meta = obstore.head(self._store, self._prefix + name)
            except FileNotFoundError as error:
                self._check_bucket(error)
                return None
        return StoredObject(_tag_of(meta), meta["last_modified"].timestamp())

    def _list(self, folder: str, *, chunk: int = 1000) -> Iterator[list[tuple[str, int]]]:
        import obstore

        prefix = f"{self._prefix}{folder}".rstrip("/")
        with self._requesting(folder):
            for items in obstore.list(self._store, prefix or None, chunk_size=chunk):
                yield [(item["path"].removeprefix(self._prefix), item["size"]) for item in items]

    @contextmanager
    def _requesting(self, name: str) -> Iterator[None]:
        """Turn exceptions of the library into a :class:`CollectionError` that says what to do."""
        from obstore.exceptions import BaseError

        try:
            yield
        # Some of its errors are built-in exceptions.
        except (BaseError, OSError, ValueError) as error:
            text = str(error)
            cause = describe_refusal(text) or text.strip().partition("\n")[0][:200] or type(error).__name__
            raise CollectionError(f"{self.address(name)}: {cause}") from error

    def _check_bucket(self, error: Exception) -> None:
        """:class:`CollectionError` if not a file but the whole bucket is missing."""
        cause = describe_refusal(str(error))
        if cause is not None:
            raise CollectionError(f"{self.uri}: {cause}") from error


def _tag_of(meta: Any) -> Tag:
    """Identifies one content of an object: S3 compares entity tags, Google the generation."""
    return tuple((key, meta[key]) for key in ("e_tag", "version") if meta[key] is not None)


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
            # Copied from a folder, or damaged: whoever wrote it gets the usual time.
            return cls("another process", SECONDS)

    def content(self) -> bytes:
        # The nonce makes every content, and so every entity tag, different.
        return json.dumps({**asdict(self), "nonce": secrets.token_hex(8)}).encode()


class Lease:
    """The right to write, renewed by a thread of its own until :meth:`release`.

    A writer replaces the object only if it is unchanged since it was read (``If-Match``), so only one of several wins.
    A lease that was not renewed in time can be taken over; only the clock of the storage decides that.
    A holder counts from before each renewal by its own clock, and so knows before the others when its time is up.

    Attributes:
        needs_fence: An earlier holder did not release it, and may still believe that it can write.
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
            place: Place of the object.
            wait: Seconds to wait for another holder.

        Raises:
            CollectionLockedError: Another process still holds it; says which, and when its lease ends by itself.
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
                continue  # another one was faster
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
            ask: Renew it now, which fails if another process has it; without it the time alone decides.
        """
        if ask:
            self._renew()
        if self._is_lost or _clock() >= self._valid_until:
            raise CollectionLockedError(
                f"{self._place.uri}: the right to write was lost, because it could not be renewed for "
                f"{self._note.seconds:g} s; finished work is saved: run the same command again to resume"
            )

    def release(self) -> None:
        """Release it, so that nobody has to wait until it expires."""
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
        while not self._stop.wait(self._note.seconds / _RENEWALS_A_LEASE) and not self._is_lost:
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
