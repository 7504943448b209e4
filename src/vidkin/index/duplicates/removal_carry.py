"""Dates and tags of a removed copy, carried to the kept file, and taken back."""

from __future__ import annotations

import base64
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vidkin._base import disk

# Extended attributes of programs and persons; those of the system, such as access rights, stay where they are.
_SPACE = "user."
# Tags as desktops write them, with commas between them: those of both files are joined.
_TAGS = "user.xdg.tags"
_MOST_BYTES = 1 << 17
_MOST_NUMBER = 1 << 63
# Nanoseconds to which the coarsest file systems round times.
_COARSE = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Carried:
    """What a kept file gets of a removed one, and what it had before.

    Attributes:
        before, after: Time of its last change, nanoseconds since the epoch; the older one of both files.
        attributes: Name, value before and value after of each extended attribute that it gets, the values in Base64;
            None for one that it did not have.
    """

    before: int
    after: int
    attributes: tuple[tuple[str, str | None, str], ...] = ()

    @classmethod
    def between(cls, file: str, keep: str) -> Carried | None:
        """What the kept file lacks of a file; None for nothing.

        Raises:
            OSError: One of them cannot be read, or has more attributes than can be logged.
        """
        had, given = _attributes(keep), _attributes(file)
        rows: list[tuple[str, str | None, str]] = []
        for name, value in sorted(given.items()):
            if name not in had:
                rows.append((name, None, _text(value)))
            elif name == _TAGS and (joined := _join_tags(had[name], value)) != had[name]:
                rows.append((name, _text(had[name]), _text(joined)))
        before, other = (os.lstat(path).st_mtime_ns for path in (keep, file))
        if not rows and other >= before:
            return None
        return cls(before, min(before, other), tuple(rows))

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Carried:
        """From a line of a log that anyone may have written; ValueError, TypeError or KeyError if it is not one."""
        for name in ("before", "after"):
            if type(table[name]) is not int or not -_MOST_NUMBER <= table[name] < _MOST_NUMBER:
                raise ValueError(f"{name} must be a whole number of 64 bits")
        rows = tuple(
            (str(name), None if before is None else str(before), str(after))
            for name, before, after in table["attributes"]
        )
        for name, before, after in rows:
            if not _is_carried(name):
                raise ValueError(f"an attribute must begin with {_SPACE}, got {name!a}")
            _bytes(before or "")
            _bytes(after)
        return cls(table["before"], table["after"], rows)

    def describe(self) -> str:
        """What is carried, in a few words."""
        parts = ["its date"] if self.after != self.before else []
        names = [name.removeprefix(_SPACE) for name, _, _ in self.attributes]
        return " and ".join(parts + ([", ".join(names)] if names else []))

    def is_time(self, time: int) -> bool:
        """Whether the kept file may have this time because of it, as its file system rounds it."""
        return _is_about(time, self.before) or _is_about(time, self.after)

    def carry(self, keep: str) -> None:
        """Give the kept file what it lacks, and wait until that is on the disk; again is as once.

        Raises:
            OSError: It has other values than when this was planned, or the system refuses.
        """
        now = _attributes(keep)
        for name, before, after in self.attributes:
            value = now.get(name)
            if value == _bytes(after):
                continue
            if value != (None if before is None else _bytes(before)):
                raise OSError(errno.EBUSY, f"the attribute {name} of {keep} changed meanwhile")
            disk.set_attribute(keep, name, _bytes(after))
        if self.after != self.before:
            disk.set_time(keep, self.after)
        disk.sync_file(keep)

    def hand_over(self, later: Carried, keep: str) -> tuple[Carried, Carried]:
        """Take this back while what was carried after it stays: what the later one takes back then, and what this one.

        Where the kept file has what the later one made of it, that one gives back what was there before both.

        Raises:
            OSError: The kept file cannot be read.
        """
        mine, other, now = self, later, _attributes(keep)
        time = os.lstat(keep).st_mtime_ns
        if (
            later.before != later.after
            and self.before != self.after
            and _is_about(later.before, self.after)
            and not (_is_about(time, self.after) and not _is_about(time, later.after))
        ):
            other, mine = replace(other, before=self.before), replace(mine, before=self.after)
        rows = {name: (before, after) for name, before, after in later.attributes}
        for row in self.attributes:
            name, before, after = row
            if name in rows and rows[name][0] == after and now.get(name) != _bytes(after):
                rows[name] = before, rows[name][1]
                mine = replace(mine, attributes=tuple(item for item in mine.attributes if item != row))
        return replace(other, attributes=tuple((name, *values) for name, values in rows.items())), mine

    def take_back(self, keep: str) -> str:
        """Give the kept file back what it had; returns what stays because it was changed since, empty if nothing.

        Raises:
            OSError: The system refuses.
        """
        if not os.path.lexists(keep) or os.path.islink(keep):
            return f"{keep} is gone, with what was carried to it"
        now = _attributes(keep)
        changed = []
        for name, before, after in reversed(self.attributes):
            value = now.get(name)
            if value == (None if before is None else _bytes(before)):
                continue
            if value != _bytes(after):
                changed.append(name.removeprefix(_SPACE))
            elif before is None:
                disk.remove_attribute(keep, name)
            else:
                disk.set_attribute(keep, name, _bytes(before))
        if self.after != self.before:
            time = os.lstat(keep).st_mtime_ns
            if _is_about(time, self.after):
                disk.set_time(keep, self.before)
            elif not _is_about(time, self.before):
                changed.insert(0, "date")
        disk.sync_file(keep)
        return f"{' and '.join(changed)} of {keep} changed since and stay" if changed else ""


def _is_about(time: int, other: int) -> bool:
    return abs(time - other) < _COARSE


def _attributes(path: str) -> dict[str, bytes]:
    """Extended attributes of a file; none where Python or the file system has none.

    Raises:
        OSError: They cannot be read, or are more than a line of a log holds.
    """
    names: list[str] = []
    if hasattr(os, "listxattr"):
        try:
            names = [name for name in os.listxattr(path, follow_symlinks=False) if _is_carried(name)]
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
    found = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
    if sum(map(len, found.values())) > _MOST_BYTES:
        raise OSError(errno.E2BIG, f"{path} has more than {_MOST_BYTES} bytes of extended attributes")
    return found


def _is_carried(name: str) -> bool:
    return name.startswith(_SPACE) and name.isprintable()


def _join_tags(had: bytes, given: bytes) -> bytes:
    """Tags of both, each once, those that were there first."""
    tags = [tag for value in (had, given) for tag in value.split(b",") if tag.strip()]
    return b",".join(dict.fromkeys(tags))


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _bytes(text: str) -> bytes:
    """The bytes of a value; ValueError if it is not Base64."""
    return base64.b64decode(text, validate=True)
