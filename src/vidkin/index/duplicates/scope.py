"""Which pairs of files are compared: all pairs, pairs within some folders, or only pairs between folders."""

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
# Maximum number of saved lookup sets: those of the most recent scopes, each with up to three sets of sides and two
# kinds.
_MAX_SAVED = 48


@dataclass(frozen=True, slots=True)
class Scope:
    """Which files, and which pairs of them, are compared; by default, all.

    A folder includes its subfolders. A file with several names (hard links) is in the folders of all its names.

    Attributes:
        only: Folders to which the search is limited; empty for no limit.
        across: Only compare files from different folders in this list; a file belongs to the deepest folder that
            contains it.
        incoming: Only compare new files, those in these folders, with the library, which is everything else. Library
            files are always kept.
    """

    only: tuple[str, ...] = ()
    across: tuple[str, ...] = ()
    incoming: tuple[str, ...] = ()
    _known: dict[str, int] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, *, only: FolderNames = (), across: Sequence[PathLike] = (), incoming: FolderNames = ()) -> Scope:
        """Create a scope from folders, converted to absolute paths.

        Raises:
            InvalidArgumentError: An entry is not a folder, ``across`` has fewer than two different folders or repeats a
                folder, or both ``across`` and ``incoming`` are given.
        """
        if across and incoming:
            raise InvalidArgumentError("across and incoming are mutually exclusive; choose one of them")
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
        """Whether pairs on the same side are excluded."""
        return bool(self.across or self.incoming)

    @property
    def key(self) -> str:
        """Hash that identifies the scope within an index."""
        text = json.dumps([sorted(self.only), self.across, sorted(self.incoming)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def sides(self, file: FileRecord) -> frozenset[int]:
        """Return the sides that a file is on; empty if it is out of scope. For ``incoming``, side 1 is new, 0 the
        library."""
        if self.is_everything:
            return frozenset((_LIBRARY,))
        sides = {self._side(os.path.dirname(name)) for name in (file.record.path, *file.links)}
        if self.incoming and _LIBRARY in sides:
            # A file belongs to the library if any of its names does.
            return frozenset((_LIBRARY,))
        return frozenset(sides - {-1})

    def is_library(self, file: FileRecord) -> bool:
        """Whether a file must be kept because it is in the library."""
        return bool(self.incoming) and _LIBRARY in self.sides(file)

    def has_pair(self, first: FileRecord, second: FileRecord) -> bool:
        """Whether a pair of files is in scope."""
        return _is_pair(self.sides(first), self.sides(second), self.is_between)

    def present(self, files: Sequence[FileRecord]) -> list[FileRecord]:
        """Return the files in scope; log a warning for each folder without any."""
        inside = [file for file in files if self.sides(file)]
        if not self.is_everything:
            names = [name for file in files for name in (file.record.path, *file.links)]
            for folder in (*self.only, *self.across, *self.incoming):
                if not any(is_within(parent, folder) for parent in {os.path.dirname(name) for name in names}):
                    _logger.warning("the index has no videos in %s; add them with `vidkin index`", folder)
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
    """A scope applied to contents: which pairs of them may be compared.

    Attributes:
        scope: The scope of files.
        sides: Sides of all files with a content, keyed by content.
    """

    scope: Scope = field(default_factory=Scope)
    sides: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: Scope, files: Iterable[FileRecord]) -> PairScope:
        """Apply a scope to the contents of these files."""
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
    """Tracks the contents whose neighbors were looked up, so that all their pairs within a scope are complete.

    A pair is complete if either content is, because it was compared when the later content was added.

    Attributes:
        pairs: The scope.
        everywhere: Contents that were looked up among all contents, in runs without a scope.
        within: Contents that were looked up within scopes, keyed by scope, kind and sides.
        kind: Kind of lookup, ``searched`` (whole copies) or ``parts``.
    """

    pairs: PairScope
    everywhere: set[str]
    within: MutableMapping[str, set[str]]
    kind: str

    def pending(self, contents: Iterable[str]) -> list[str]:
        """Return the contents that must be looked up to complete all pairs in the scope.

        For ``incoming``, these are either all incomplete contents or all new contents, whichever are fewer, so that
        adding ten new files does not require a lookup of the whole library.
        """
        contents = [content for content in contents if not self._is_alone(content)]
        pending = [content for content in contents if not self.has(content)]
        if self.pairs.scope.incoming:
            new = [content for content in contents if _NEW in self.pairs.sides[content]]
            if len(new) < len(pending):
                return new
        return pending

    def has(self, content: str) -> bool:
        """Whether all pairs of a content in the scope are complete."""
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
            self.within[name] = found  # keep the most recently used scope last
        while len(self.within) > _MAX_SAVED:
            del self.within[next(iter(self.within))]

    def settle(self, contents: Iterable[str], asked: Iterable[str]) -> None:
        """Mark the remaining contents as complete if all pending lookups were done.

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
