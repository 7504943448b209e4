"""Kinds of stores by the name in the manifest of an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from vidkin._base.registry import Registry, missing_scale, parse_name
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.manifest import DISK, INDEX_REMEDY, MANIFEST_FILE, Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.store import DiskStore


class LastingStore(VectorStore, Protocol):
    """A store on a disk, parts of which can be damaged."""

    def discard_features(self, video_ids: Iterable[int]) -> None:
        """Delete the features of videos, so that :meth:`recover` marks them as stale."""

    def check_videos(self) -> None:
        """Read the list of videos whole; :class:`CollectionDamagedError` if it is damaged."""

    def remove_damaged_windows(self) -> dict[str, str]:
        """Read all windows; if that fails, delete them, so that :meth:`recover` rebuilds them.

        Returns:
            The cause by the path of what was deleted.
        """


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of store for the records, features and windows of an index.

    Attributes:
        open: Opens the store of an index.
        places: The places of its parts, from
            the place of the index and the address in the name (``4`` of ``shards:4``) or None. Raises
            :class:`InvalidArgumentError` for an address that it does not take. A store of several parts keeps them in
            the folder :data:`~vidkin.index.storage.manifest.PARTS_FOLDER`.
    """

    open: Callable[[Place, Manifest], LastingStore]
    places: Callable[[Place, str | None], Sequence[Place]]


def _open_disk(place: Place, manifest: Manifest) -> DiskStore:
    return DiskStore(place)


def _disk_places(place: Place, address: str | None) -> list[Place]:
    if address is not None:
        raise InvalidArgumentError(f"the store disk has no address, got {address!r}")
    return [place]


STORES: Registry[StoreKind] = Registry(
    "store", {DISK: StoreKind(open=_open_disk, places=_disk_places)}, group="vidkin.stores"
)
"""Kinds of stores; the package vidkin-scale provides ``lance`` and ``shards:N``."""


def find_store_kind(name: str, place: Place) -> StoreKind:
    """The kind of the store that a new index at a place is to have.

    Raises:
        InvalidArgumentError: There is no such kind, or it does not take the address in the name.
        MissingPartError: The package that provides it is not installed.
    """
    named = parse_name(name)
    kind = STORES.find(named.prefix)
    if kind is None:
        raise missing_scale(f"{place.uri}: an index with the store {name}") or STORES.unknown(name)
    kind.places(place, named.address)
    return kind


def open_store(place: Place, manifest: Manifest) -> LastingStore:
    """The store of an index.

    Raises:
        CollectionDamagedError: The manifest names no store.
        MissingPartError: The package that provides it is not installed.
    """
    return _kind_of(place, manifest).open(place, manifest)


def _kind_of(place: Place, manifest: Manifest) -> StoreKind:
    try:
        return find_store_kind(manifest.store, place)
    except InvalidArgumentError as error:
        raise CollectionDamagedError(f"{place.address(MANIFEST_FILE)} is damaged ({error}); {INDEX_REMEDY}") from error
