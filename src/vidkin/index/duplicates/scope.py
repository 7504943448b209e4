"""Which pairs of an index are compared: all pairs, pairs within some folders, or only pairs between folders."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from vidkin._base.files import is_within
from vidkin.errors import InvalidArgumentError
from vidkin.index.duplicates.comparisons import FileRecord, content_of

_logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
FolderNames = PathLike | Sequence[PathLike]

_LIBRARY, _NEW = 0, 1
# Maximum number of remembered lookups: those of the latest scopes, each with up to three sets of files and two kinds.
_MAX_REMEMBERED = 48


@dataclass(frozen=True, slots=True)
class Scope:
    """Which files and which pairs of them are compared; everything if no folder is named.

    A folder includes everything below it. A file with several names (hard links) is in the folders of all of them.

    Attributes:
        only: Folders to which the search is limited; empty for no limit.
        across: Only compare files in two different folders of these; a file belongs to the deepest folder that contains
            it.
        incoming: Only compare new files, which are in these folders, with the library, which is everything else. Files
            of the library always stay.
    """

    only: tuple[str, ...] = ()
    across: tuple[str, ...] = ()
    incoming: tuple[str, ...] = ()
    _known: dict[str, int] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, *, only: FolderNames = (), across: Sequence[PathLike] = (), incoming: FolderNames = ()) -> Scope:
        """The scope for a caller's folders, as absolute paths.

        Raises:
            InvalidArgumentError: An entry is not a folder, ``across`` has only one folder or one twice, or both
                ``across`` and ``incoming`` are given.
        """
        if across and incoming:
            raise InvalidArgumentError("across and incoming exclude each other; choose one of them")
        checked = cls(_folders("only", only), _folders("across", across), _folders("incoming", incoming))
        if across and len({os.path.realpath(folder) for folder in checked.across}) != max(2, len(checked.across)):
            raise InvalidArgumentError(f"across must be two or more different folders, got {', '.join(checked.across)}")
        return checked

    @property
    def is_everything(self) -> bool:
        """Whether all pairs are compared."""
        return not (self.only or self.across or self.incoming)

    @property
    def is_between(self) -> bool:
        """Whether pairs within one side are left out."""
        return bool(self.across or self.incoming)

    @property
    def key(self) -> str:
        """Identifies the scope among those of an index."""
        text = json.dumps([sorted(self.only), self.across, sorted(self.incoming)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def sides(self, file: FileRecord) -> frozenset[int]:
        """The sides that a file is on; none if it is out of scope. For ``incoming``, 1 is new and 0 the library."""
        if self.is_everything:
            return frozenset((_LIBRARY,))
        sides = {self._side(os.path.dirname(name)) for name in (file.record.path, *file.links)}
        if self.incoming and _LIBRARY in sides:
            # A file with any name in the library belongs to the library.
            return frozenset((_LIBRARY,))
        return frozenset(sides - {-1})

    def is_library(self, file: FileRecord) -> bool:
        """Whether a file must stay because it is not new."""
        return bool(self.incoming) and _LIBRARY in self.sides(file)

    def has_pair(self, first: FileRecord, second: FileRecord) -> bool:
        """Whether a pair of files is in scope."""
        return _is_pair(self.sides(first), self.sides(second), self.is_between)

    def present(self, files: Sequence[FileRecord]) -> list[FileRecord]:
        """The files in scope; warns of a folder without any."""
        inside = [file for file in files if self.sides(file)]
        if not self.is_everything:
            names = [name for file in files for name in (file.record.path, *file.links)]
            for folder in (*self.only, *self.across, *self.incoming):
                if not any(is_within(parent, folder) for parent in {os.path.dirname(name) for name in names}):
                    _logger.warning("the index has no video in %s; `vidkin index` adds what is there", folder)
        return inside

    def _side(self, folder: str) -> int:
        if folder not in self._known:
            self._known[folder] = self._find_side(folder)
        return self._known[folder]

    def _find_side(self, folder: str) -> int:
        if self.only and not any(is_within(folder, item) for item in self.only):
            return -1
        if self.incoming:
            return _NEW if any(is_within(folder, item) for item in self.incoming) else _LIBRARY
        if not self.across:
            return _LIBRARY
        holding = [side for side, item in enumerate(self.across) if is_within(folder, item)]
        return max(holding, key=lambda side: len(os.path.realpath(self.across[side])), default=-1)


@dataclass(frozen=True, slots=True)
class PairScope:
    """A scope over contents: which of them may be compared.

    Attributes:
        scope: The folders.
        sides: Sides of each content: the sides of all files with that content.
    """

    scope: Scope = field(default_factory=Scope)
    sides: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: Scope, files: Iterable[FileRecord]) -> PairScope:
        """The scope over the contents of these files."""
        sides: dict[str, frozenset[int]] = {}
        for file in files:
            content = content_of(file.record)
            sides[content] = sides.get(content, frozenset()) | scope.sides(file)
        return cls(scope, sides)

    def allows(self, first: str, second: str) -> bool:
        """Whether two contents may be compared."""
        if self.scope.is_everything:
            return True
        none: frozenset[int] = frozenset()
        return _is_pair(self.sides.get(first, none), self.sides.get(second, none), self.scope.is_between)


@dataclass(slots=True)
class Lookups:
    """Contents whose pairs within a scope are complete, because their neighbors were looked up.

    A pair is complete if either content is, because it was compared when the later content was added.

    Attributes:
        pairs: The scope.
        everywhere: Contents that were looked up among all contents; runs without a scope add to it.
        within: Contents that were looked up within scopes, by scope, kind and sides.
        kind: What was looked up, ``searched`` or ``parts``.
    """

    pairs: PairScope
    everywhere: set[str]
    within: MutableMapping[str, set[str]]
    kind: str

    def pending(self, contents: Iterable[str]) -> list[str]:
        """The contents to look up in order to complete all pairs of the scope.

        For ``incoming``, the smaller set is looked up: all incomplete contents or all new contents. So ten new files do
        not cause a lookup of a whole library the first time.
        """
        contents = [content for content in contents if not self._is_alone(content)]
        pending = [content for content in contents if not self.has(content)]
        if self.pairs.scope.incoming:
            new = [content for content in contents if _NEW in self.pairs.sides[content]]
            if len(new) < len(pending):
                return new
        return pending

    def has(self, content: str) -> bool:
        """Whether all pairs of a content in this scope are complete."""
        return content in self.everywhere or content in self.within.get(self._name(content), ())

    def add(self, contents: Iterable[str]) -> None:
        """Mark all pairs of these contents in the scope as complete."""
        if self.pairs.scope.is_everything:
            self.everywhere.update(contents)
            return
        for content in contents:
            name = self._name(content)
            found = self.within.pop(name, set())
            found.add(content)
            self.within[name] = found  # the scope used last comes last
        while len(self.within) > _MAX_REMEMBERED:
            del self.within[next(iter(self.within))]

    def settle(self, contents: Iterable[str], asked: Iterable[str]) -> None:
        """Mark the remaining contents as complete if all of these lookups were done.

        Args:
            contents: All contents.
            asked: Result of :meth:`pending`.
        """
        if self.pairs.scope.incoming and all(map(self.has, asked)):
            self.add([content for content in contents if not (self._is_alone(content) or self.has(content))])

    def _is_alone(self, content: str) -> bool:
        return not (self.pairs.scope.is_everything or self.pairs.sides.get(content))

    def _name(self, content: str) -> str:
        sides = "".join(f" {side}" for side in sorted(self.pairs.sides.get(content, ())))
        return f"{self.pairs.scope.key} {self.kind}{sides}"


def _is_pair(first: frozenset[int], second: frozenset[int], is_between: bool) -> bool:
    return bool(first and second) and (not is_between or len(first | second) > 1)


def _folders(name: str, folders: FolderNames) -> tuple[str, ...]:
    items = (folders,) if isinstance(folders, (str, os.PathLike)) else tuple(folders)
    paths = tuple(os.path.abspath(os.path.expanduser(item)) for item in items)
    for path in paths:
        if not os.path.isdir(path):
            given = "is a file" if os.path.exists(path) else "does not exist"
            raise InvalidArgumentError(f"{name} must be a folder or a list of folders; {path} {given}")
    return paths
