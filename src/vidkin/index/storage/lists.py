"""Saved lists of videos of an index: favorites, tags, selections."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, parse_json
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import write_whole
from vidkin.index.storage.place import Place

FAVORITES = "favorites"
"""The list behind the star on pages."""

# Limits on lists, characters of a name and videos, because the file may come from an untrusted source.
_MAX_LISTS, _MAX_NAME, _MAX_VIDEOS = 1000, 100, 500_000


@check_constructor
@dataclass(frozen=True, slots=True)
class SavedList(Result):
    """A list of videos of an index, by name.

    Attributes:
        name: Name of the list, unique in its index.
        paths: Files of the index with listed content, sorted, including all files with the same bytes.
        absent: Number of entries without a file in the index; they stay in the list.
    """

    name: str
    paths: tuple[str, ...]
    absent: int

    def __post_init__(self) -> None:
        check_list_name(self.name)


@dataclass(slots=True)
class SavedLists:
    """The lists of an index; videos are identified by content hash, so that lists survive renames.

    Attributes:
        contents: Name of a list -> content hashes in the order added, as keys with the value None.
    """

    FILE = "lists.json"

    contents: dict[str, dict[str, None]] = field(default_factory=dict)

    def change(self, name: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Add content hashes to a list, created if it does not exist, and remove others; an empty list stays.

        Raises:
            InvalidArgumentError: The name is invalid, or there are too many lists or videos.
        """
        check_list_name(name)
        listed = self.contents.setdefault(name, {})
        listed.update(dict.fromkeys(add))
        for content in remove:
            listed.pop(content, None)
        if len(self.contents) > _MAX_LISTS:
            raise InvalidArgumentError(f"an index must have at most {_MAX_LISTS:,} lists; delete one first")
        if sum(map(len, self.contents.values())) > _MAX_VIDEOS:
            raise InvalidArgumentError(f"the lists of an index must have at most {_MAX_VIDEOS:,} videos in all")

    def rename(self, name: str, new_name: str) -> None:
        """Rename a list.

        Raises:
            InvalidArgumentError: There is no such list, or the new name is taken.
        """
        check_list_name(new_name)
        self._check_there(name)
        if new_name in self.contents and new_name != name:
            raise InvalidArgumentError(f"there is a list {new_name!r} already; choose another name")
        self.contents = {new_name if each == name else each: listed for each, listed in self.contents.items()}

    def delete(self, name: str) -> None:
        """Delete a list; its videos stay.

        Raises:
            InvalidArgumentError: There is no such list.
        """
        self._check_there(name)
        del self.contents[name]

    def _check_there(self, name: str) -> None:
        if name not in self.contents:
            raise InvalidArgumentError(f"there is no list {name!r}")

    @classmethod
    def open(cls, place: Place) -> SavedLists:
        """Load the lists of an index.

        Raises:
            CollectionDamagedError: The file is damaged; the message says where it is, nothing is deleted.
        """
        content = place.read(cls.FILE)
        if content is None:
            return cls()
        try:
            lists = cls()
            for row in parse_json(content)["lists"]:
                name, hashes = row["name"], row["videos"]
                if not isinstance(name, str) or not isinstance(hashes, list) or name in lists.contents:
                    raise ValueError("a list must have a name of its own and videos")
                if not all(isinstance(each, str) for each in hashes):
                    raise ValueError(f"the videos of list {name!r} must be content hashes")
                lists.change(name, add=hashes)
            return lists
        except (ValueError, KeyError, TypeError, InvalidArgumentError) as error:
            raise CollectionDamagedError(
                f"{place.address(cls.FILE)} is damaged ({error}); correct it, restore it from a backup or move it away"
            ) from error

    def save(self, place: Place) -> None:
        """Write to the index atomically."""
        rows = [{"name": name, "videos": list(listed)} for name, listed in self.contents.items()]
        write_whole(place, self.FILE, json.dumps({"lists": rows}, indent=1).encode())


def check_list_name(name: str) -> None:
    """Raise InvalidArgumentError unless a name has 1 to 100 printable characters and no space at its ends."""
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or name != name.strip():
        raise InvalidArgumentError(
            f"the name of a list must have 1 to {_MAX_NAME} printable characters and no space at its ends, "
            f"got {name[: 2 * _MAX_NAME]!r}"
        )


def read_saved_lists(place: Place, store: VectorStore) -> list[SavedList]:
    """Read all lists of an index by name, with the files of their videos."""
    paths: dict[str, list[str]] = {}
    for record in store.videos():
        if record.content_hash:
            paths.setdefault(record.content_hash, []).append(record.path)
    return [
        SavedList(
            name,
            tuple(sorted(path for content in listed for path in paths.get(content, ()))),
            sum(content not in paths for content in listed),
        )
        for name, listed in sorted(SavedLists.open(place).contents.items())
    ]


def change_saved_list(
    place: Place, name: str, *, add: Iterable[str] = (), remove: Iterable[str] = (), wait: float = 5.0
) -> None:
    """Add videos to a list of an index, created if it does not exist, and remove others.

    Args:
        place: Place of the index.
        name: Name of the list.
        add, remove: Content hashes.
        wait: Seconds to wait for another writer.

    Raises:
        InvalidArgumentError: The name is invalid, or there are too many lists or videos.
        CollectionLockedError: Another process is writing.
    """
    with place.exclusive(wait):
        lists = SavedLists.open(place)
        lists.change(name, add=add, remove=remove)
        lists.save(place)


def rename_saved_list(place: Place, name: str, new_name: str | None, *, wait: float = 5.0) -> None:
    """Rename a list of an index, or delete it if the new name is None; see :func:`change_saved_list`.

    Raises:
        InvalidArgumentError: There is no such list, or the new name is taken.
    """
    with place.exclusive(wait):
        lists = SavedLists.open(place)
        if new_name is None:
            lists.delete(name)
        else:
            lists.rename(name, new_name)
        lists.save(place)
