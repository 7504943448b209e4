"""Saved lists of videos of an index: favorites, tags, selections."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, parse_json
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import write_atomically
from vidkin.index.storage.place import Place

FAVORITES = "favorites"
"""Name of the list to which the star on web pages adds videos."""

# Maximum number of lists, of characters in a name, and of videos, because the file may be untrusted.
_MAX_LISTS, _MAX_NAME, _MAX_VIDEOS = 1000, 100, 500_000


@check_constructor
@dataclass(frozen=True, slots=True)
class SavedList(Result):
    """A named list of videos in an index.

    Attributes:
        name: Name of the list, unique within the index.
        paths: Sorted paths of all indexed files with the listed contents, including byte-identical ones.
        absent: Number of entries that currently have no file in the index.
    """

    name: str
    paths: tuple[str, ...]
    absent: int

    def __post_init__(self) -> None:
        check_list_name(self.name)


@dataclass(slots=True)
class SavedLists:
    """The lists of an index; videos are identified by content hash, so renaming files does not affect them.

    Attributes:
        contents: Content hashes of each list in the order added, as keys of a dictionary, keyed by list name.
    """

    FILE = "lists.json"

    contents: dict[str, dict[str, None]] = field(default_factory=dict)

    def change(self, name: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Add content hashes to a list and remove others; the list is created if necessary, and kept if empty.

        Raises:
            InvalidArgumentError: The name is invalid, or there are too many lists or videos.
        """
        check_list_name(name)
        listed = self.contents.setdefault(name, {})
        listed.update(dict.fromkeys(add))
        for content in remove:
            listed.pop(content, None)
        if len(self.contents) > _MAX_LISTS:
            raise InvalidArgumentError(f"an index can have at most {_MAX_LISTS:,} lists; delete one first")
        if sum(map(len, self.contents.values())) > _MAX_VIDEOS:
            raise InvalidArgumentError(f"the lists of an index can have at most {_MAX_VIDEOS:,} videos in total")

    def rename(self, name: str, new_name: str) -> None:
        """Rename a list.

        Raises:
            InvalidArgumentError: There is no such list, or the new name is taken.
        """
        check_list_name(new_name)
        self._check_there(name)
        if new_name in self.contents and new_name != name:
            raise InvalidArgumentError(f"list {new_name!r} already exists; choose another name")
        self.contents = {new_name if each == name else each: listed for each, listed in self.contents.items()}

    def delete(self, name: str) -> None:
        """Delete a list, but not its videos.

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
            CollectionDamagedError: The file is damaged; it is not deleted.
        """
        content = place.read(cls.FILE)
        if content is None:
            return cls()
        try:
            lists = cls()
            for row in parse_json(content)["lists"]:
                name, hashes = row["name"], row["videos"]
                if not isinstance(name, str) or not isinstance(hashes, list) or name in lists.contents:
                    raise ValueError("a list must have a unique name and videos")
                if not all(isinstance(each, str) for each in hashes):
                    raise ValueError(f"the videos of list {name!r} must be content hashes")
                lists.change(name, add=hashes)
            return lists
        except (ValueError, KeyError, TypeError, InvalidArgumentError) as error:
            raise CollectionDamagedError(
                f"{place.address(cls.FILE)} is damaged ({error}); correct it, restore it from a backup or move it away"
            ) from error

    def save(self, place: Place) -> None:
        """Save the lists in the index, atomically."""
        rows = [{"name": name, "videos": list(listed)} for name, listed in self.contents.items()]
        write_atomically(place, self.FILE, json.dumps({"lists": rows}, indent=1).encode())


def check_list_name(name: str) -> None:
    """Check the name of a list.

    Raises:
        InvalidArgumentError: The name does not have 1 to 100 printable characters, or has leading or trailing spaces.
    """
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or name != name.strip():
        raise InvalidArgumentError(
            f"the name of a list must have 1 to {_MAX_NAME} printable characters, without leading or trailing spaces, "
            f"got {name[: 2 * _MAX_NAME]!r}"
        )


def read_saved_lists(place: Place, store: VectorStore) -> list[SavedList]:
    """Read all lists of an index, sorted by name, with the files of their videos."""
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
    """Add videos to a list of an index and remove others; the list is created if it does not exist.

    Args:
        place: Location of the index.
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
