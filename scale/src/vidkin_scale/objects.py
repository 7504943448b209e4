"""Places on object storage: Amazon S3 and compatible services, or Google Cloud Storage.

Its lock is a lease (:mod:`vidkin_scale.lease`).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from vidkin.errors import CollectionError, CollectionLockedError
from vidkin_scale.lease import LEASE_FILE, Lease

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# A request takes tens of milliseconds, nearly all of it waiting.
_REQUESTS_AT_A_TIME = 16
# Timeouts, shorter than the library's defaults of several minutes.
_CONNECT = timedelta(seconds=5)
_TIMEOUT = timedelta(seconds=60)
_RETRIES, _RETRY_FOR = 4, timedelta(seconds=30)

CLOCK_FILE = "writer.clock"

_CREDENTIALS = (
    "set the credentials in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_REGION) for s3://, "
    "GOOGLE_APPLICATION_CREDENTIALS for gs://"
)

_UNREACHABLE = "the storage cannot be reached; check the network and AWS_ENDPOINT_URL"

# Fragments of error messages from obstore and Lance, which quote the server or the network; the first match decides.
_REFUSALS = (
    ("nosuchbucket", "there is no such bucket; create it or correct the address"),
    ("bucket does not exist", "there is no such bucket; create it or correct the address"),
    ("invalidaccesskeyid", f"the access key is unknown; {_CREDENTIALS}"),
    ("signaturedoesnotmatch", f"the secret key is wrong; {_CREDENTIALS}"),
    ("expiredtoken", f"the credentials have expired; {_CREDENTIALS}"),
    ("169.254.169.254", f"no credentials were found; {_CREDENTIALS}"),
    ("metadata.google.internal", f"no credentials were found; {_CREDENTIALS}"),
    ("403 forbidden", f"access denied; check the permissions of this key, or {_CREDENTIALS}"),
    ("401 unauthorized", f"access denied; {_CREDENTIALS}"),
    ("permissiondenied", f"access denied; {_CREDENTIALS}"),
    ("unauthenticated", f"access denied; {_CREDENTIALS}"),
    ("error sending request", _UNREACHABLE),
    ("error decoding response body", _UNREACHABLE),
    ("operation timed out", _UNREACHABLE),
    ("slowdown", "the storage asks for fewer requests; try again later"),
    ("503 service unavailable", "the storage is overloaded; try again later"),
    ("500 internal server error", "the storage has an internal error; try again later"),
    ("quotaexceeded", "the quota of the bucket is used up"),
)

Tag = tuple[tuple[str, str], ...]
"""Identifies a version of an object's content, as reported by the storage."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object read from storage.

    Attributes:
        tag: Changes with the content.
        modified: Time of the last change, seconds since the epoch by the clock of the storage.
        content: Full content; empty if only the metadata was requested.
    """

    tag: Tag
    modified: float
    content: bytes = b""


def open_objects(scheme: str, root: str) -> ObjectPlace:
    """Open the place at an address, for :func:`vidkin.index.open_place`.

    Args:
        scheme: ``s3`` or ``gs``.
        root: Bucket, and prefix after a slash.
    """
    return ObjectPlace(scheme, *root.partition("/")[::2])


class ObjectPlace:
    """A :class:`~vidkin.index.storage.place.Place` below a prefix of a bucket.

    Credentials, region and endpoint come from the environment (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``,
    ``GOOGLE_APPLICATION_CREDENTIALS``, or the role of a machine in the cloud). Writes are conditional, so the storage
    must know ``If-None-Match`` and ``If-Match`` on PUT.

    Args:
        scheme: ``s3`` or ``gs``.
        bucket: Name of the bucket.
        prefix: Root of the files, without slashes around it; "" is the whole bucket.
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
        # Tag of each file when it was last read or written here; None if it was missing.
        self._tags: dict[str, Tag | None] = {}
        self._lease: Lease | None = None

    def explain(self, text: str) -> str | None:
        lowered = text.lower()
        return next((cause for sign, cause in _REFUSALS if sign in lowered), None)

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
        """Read a file with its tag and time; None if it is missing."""
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
        """Write a file if it still has this tag or is still missing; returns its new tag, or None if it changed.

        Args:
            name: Name of the file.
            content: The whole content.
            tag: Tag of the file; None if the file is missing.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._requesting(name):
            try:
                return self._put(name, content, "create" if tag is None else dict(tag))
            # A deleted file no longer has that tag.
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                self._check_bucket(error)
        # If the answer was lost, the repeated request conflicts with its own first write.
        stored = self.fetch(name)
        return stored.tag if stored is not None and stored.content == content else None

    def storage_time(self) -> float:
        """Seconds since the epoch by the clock of the storage, because local clocks can be wrong."""
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
        return {path.removeprefix(self._prefix).strip("/") for path in paths} - {LEASE_FILE, CLOCK_FILE}

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
        pass  # writes of objects are atomic

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
        from obstore.store import GCSStore, S3Store

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
        """Convert exceptions of the library to a :class:`CollectionError` with advice."""
        from obstore.exceptions import BaseError

        try:
            yield
        # Some of its errors are built-in exceptions.
        except (BaseError, OSError, ValueError) as error:
            text = str(error)
            cause = self.explain(text) or text.strip().partition("\n")[0][:200] or type(error).__name__
            raise CollectionError(f"{self.address(name)}: {cause}") from error

    def _check_bucket(self, error: Exception) -> None:
        """Raise :class:`CollectionError` if the whole bucket is missing, not just a file."""
        cause = self.explain(str(error))
        if cause is not None:
            raise CollectionError(f"{self.uri}: {cause}") from error


def _tag_of(meta: Any) -> Tag:
    """Identifies one content of an object: S3 compares entity tags, Google the generation."""
    return tuple((key, meta[key]) for key in ("e_tag", "version") if meta[key] is not None)
