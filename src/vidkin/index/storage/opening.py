"""Open a place by its name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.index.storage.local import LocalPlace
from vidkin.index.storage.objects import SCHEMES, ObjectPlace
from vidkin.index.storage.place import Location, Place

__all__ = ["folder_of", "open_place"]

_ADDRESS = re.compile(r"(\w{2,})://(.*)")
# pathlib.Path merges the two slashes.
_ADDRESS_AS_PATH = re.compile(rf"({'|'.join(SCHEMES)}):/(?!/)(.*)")


def open_place(location: Location) -> Place:
    """Open the place that a path or an address names; an open place is returned as it is.

    Nothing is read or written yet.

    Raises:
        InvalidArgumentError: The address has an unknown scheme or no bucket.
        MissingPartError: The address is on object storage, and the package for that is not installed.
    """
    if not isinstance(location, str | os.PathLike):
        return location
    name = os.fspath(location)
    if merged := _ADDRESS_AS_PATH.fullmatch(name):
        raise InvalidArgumentError(
            f"{name} must have two slashes, {merged[1]}://{merged[2]}: pass addresses of object storage as text, not "
            "as pathlib.Path"
        )
    address = _ADDRESS.fullmatch(name)
    if address is None:
        return LocalPlace(Path(name).expanduser().absolute())
    scheme, root = address[1].lower(), address[2].strip("/")
    if scheme not in SCHEMES or not root:
        accepted = " or ".join(f"{known}://BUCKET/PREFIX" for known in SCHEMES)
        raise InvalidArgumentError(f"index must be a folder or {accepted}, got {name}")
    return ObjectPlace(scheme, *root.partition("/")[::2])


def folder_of(place: Place) -> Path:
    """The folder of this machine that a place is; :class:`CollectionError` where it is on object storage."""
    if place.folder is None:
        raise CollectionError(
            f"{place.uri} is not a folder of this machine; copy the index into one for this"
        )
    return place.folder
