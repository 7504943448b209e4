"""Kinds of stores, by the name stored in the manifest of an index."""

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
    """A persistent store, parts of which may be damaged."""

    def discard_features(self, video_ids: Iterable[int]) -> None:
        """Delete the features of videos, so that :meth:`recover` marks the videos as stale."""

    def check_videos(self) -> None:
        """Check the whole video table.

        Raises:
            CollectionDamagedError: The table is damaged.
        """

    def remove_damaged_windows(self) -> dict[str, str]:
        """Check all windows; if any are damaged, delete them, so that :meth:`recover` rebuilds them.

        Returns:
            The cause, keyed by the path of the deleted file.
        """


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of store for the records, features and windows of an index.

    Attributes:
        open: Function that opens the store of an index.
        places: Function that returns the locations of the store's parts, given the location of the index and the
            address in the store's name (``4`` in ``shards:4``) or None. Raises :class:`InvalidArgumentError` if the
            address is invalid. A store with several parts keeps them in the folder
            :data:`~vidkin.index.storage.manifest.PARTS_FOLDER`.
    """

    open: Callable[[Place, Manifest], LastingStore]
    places: Callable[[Place, str | None], Sequence[Place]]


def _open_disk(place: Place, manifest: Manifest) -> DiskStore:
    return DiskStore(place)


def _disk_places(place: Place, address: str | None) -> list[Place]:
    if address is not None:
        raise InvalidArgumentError(f"store 'disk' must not have an address, got {address!r}")
    return [place]


STORES: Registry[StoreKind] = Registry(
    "store", {DISK: StoreKind(open=_open_disk, places=_disk_places)}, group="vidkin.stores"
)
"""Kinds of stores; the package vidkin-scale provides ``lance`` and ``shards:N``."""


def find_store_kind(name: str, place: Place) -> StoreKind:
    """Find a kind of store by name.

    Args:
        name: Name of the kind, optionally followed by an address.
        place: Location of the index.

    Raises:
        InvalidArgumentError: There is no such kind, or the address is invalid.
        MissingPartError: The package that provides this kind is not installed.
    """
    named = parse_name(name)
    kind = STORES.find(named.prefix)
    if kind is None:
        raise missing_scale(f"{place.uri}: an index with store {name}") or STORES.unknown(name)
    kind.places(place, named.address)
    return kind


def open_store(place: Place, manifest: Manifest) -> LastingStore:
    """Open the store of an index.

    Raises:
        CollectionDamagedError: The manifest contains an invalid store name.
        MissingPartError: The package that provides this kind of store is not installed.
    """
    return _kind_of(place, manifest).open(place, manifest)


def _kind_of(place: Place, manifest: Manifest) -> StoreKind:
    try:
        return find_store_kind(manifest.store, place)
    except InvalidArgumentError as error:
        raise CollectionDamagedError(f"{place.address(MANIFEST_FILE)} is damaged ({error}); {INDEX_REMEDY}") from error
