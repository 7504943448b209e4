"""Removal plans: files that a person can read and edit before anything happens."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from vidkin._base.files import is_within
from vidkin._base.outputs import open_output
from vidkin._base.values import Result, parse_json
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index.duplicates.companions import MOST_COMPANIONS, belongs_to, find_companions, find_photograph
from vidkin.index.duplicates.find import DuplicateGroup, DuplicateMember
from vidkin.index.storage.files import content_hash
from vidkin.index.storage.records import VideoRecord

_logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
_VERSION = 1
# A plan for a million files; what is longer is none.
_MOST_TEXT = 1 << 29
_MOST_NUMBER = 1 << 63


@dataclass(frozen=True, slots=True)
class FileState(Result):
    """A file as it was when the plan was made.

    Attributes:
        path: Absolute.
        size: Bytes.
        mtime_ns: Time of its last change, nanoseconds since the epoch.
        content: Hash of its bytes, see :func:`vidkin.index.storage.files.content_hash`.
        whole: Whether the hash is of all bytes; plans of earlier versions have one of samples of large files.
        signature: What shows that an index planned to remove it, see
            :class:`vidkin.index.duplicates.plans_signature.PlanKey`; empty if nobody signed it.
        companions: Files beside it that belong to it and go where it goes, such as subtitles.
    """

    path: str
    size: int
    mtime_ns: int
    content: str
    whole: bool = True
    signature: str = field(default="", compare=False)
    companions: tuple[FileState, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, path: str, *, whole: bool = True) -> FileState:
        """Read the current state of a file, all its bytes unless not ``whole``.

        Raises:
            MediaError: It cannot be read.
        """
        try:
            status = os.stat(path)
            text = content_hash(path, status.st_size, whole=whole).text
            return cls(path, status.st_size, status.st_mtime_ns, text, whole)
        except OSError as error:
            raise MediaError(path, f"cannot be read: {error.strerror or error}") from error

    def is_at(self, path: str) -> bool:
        """Whether a regular file with this content is at a path; links are none, and times do not count."""
        try:
            status = os.lstat(path)
            return (
                stat.S_ISREG(status.st_mode)
                and status.st_size == self.size
                and content_hash(path, self.size, whole=self.whole).text == self.content
            )
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class StayingFile(Result):
    """A copy that stays in place.

    Attributes:
        path: The file.
        why: One line.
    """

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class PlannedGroup(Result):
    """One group of copies.

    Attributes:
        keep: The file that stays where it is.
        reason: Why it is kept.
        remove: Files that the kept one replaces.
        stay: Copies that stay in place, with the reason; for the reader.
        untouched: Whether the kept file is in the library of new files, so that its dates and tags stay as well.
    """

    keep: FileState
    reason: str
    remove: tuple[FileState, ...]
    stay: tuple[StayingFile, ...] = ()
    untouched: bool = False


@dataclass(frozen=True, slots=True)
class DuplicatePlan(Result):
    """What to do with the duplicates of an index.

    Attributes:
        groups: Groups with something to remove.
        created: ISO 8601 time.
        index: Folder or address of the index that signed it; empty if none did.
    """

    groups: tuple[PlannedGroup, ...]
    created: str = ""
    index: str = ""

    @property
    def savings(self) -> int:
        """Bytes of all files to be removed, without what belongs to them."""
        return sum(file.size for group in self.groups for file in group.remove)


def plan_removal(
    groups: Iterable[DuplicateGroup],
    *,
    protected: Sequence[PathLike] = (),
    records: Iterable[VideoRecord] | None = None,
) -> DuplicatePlan:
    """Make a plan that keeps the best file of each group and removes the spare ones.

    A file stays if it shows something that the best one lacks, if it may not be a copy, if it has other
    names (hard links), if it or the best one is a symbolic link, if it is in a protected folder, or if it is the movie
    of a photograph; and if it or the best one is another file by now than the one that was compared. What belongs to a
    file, such as its subtitles, goes with it. Every file of the plan is read whole.

    Args:
        groups: Result of :meth:`vidkin.Index.duplicates`.
        protected: Folders in which no file is touched.
        records: Records of the index from which the groups are, to tell which files have changed since they were read;
            None takes every file for unchanged.

    Raises:
        MediaError: A file can no longer be read.
    """
    folders = [os.path.realpath(os.path.expanduser(folder)) for folder in protected]
    known = {record.path: record for record in records or ()}
    planned = []
    for group in groups:
        reasons = why_files_stay(group, protected=folders, known=known)
        remove = [_state_with_companions(path) for path, why in reasons.items() if why is None]
        if remove:
            stay = tuple(StayingFile(path, why) for path, why in reasons.items() if why is not None)
            keep = FileState.of(group.best.path)
            planned.append(PlannedGroup(keep, group.reason, tuple(remove), stay, bool(group.best.stays)))
    return DuplicatePlan(tuple(planned), datetime.now().astimezone().isoformat(timespec="seconds"))


def why_files_stay(
    group: DuplicateGroup, *, protected: Sequence[str] = (), known: Mapping[str, VideoRecord]
) -> dict[str, str | None]:
    """The reason not to remove each file of a group but the best one, by path; None for those that are spare.

    Args:
        group: One of :meth:`vidkin.Index.duplicates`.
        protected: Real paths of folders in which no file is touched.
        known: Records of the index by path; files without one are taken for unchanged.
    """
    best = group.best.path
    others = [member for member in group.members if not member.best]
    if os.path.islink(best):  # what it points to may be one of the others
        return {member.path: "the file to keep is a symbolic link" for member in others}
    if _has_changed(best, known.get(best)):
        why = "the file to keep changed since it was indexed; run `vidkin index` again"
        return {member.path: why for member in others}
    return {
        member.path: "it changed since it was indexed; run `vidkin index` again"
        if _has_changed(member.path, known.get(member.path))
        else _why_it_stays(member, protected)
        for member in others
    }


def _has_changed(path: str, record: VideoRecord | None) -> bool:
    """Whether a file has another content than when it was indexed; one that cannot be read is reported later."""
    if record is None:
        return False
    try:
        state = os.stat(path)
        if (state.st_size, state.st_mtime_ns) == (record.size, record.mtime_ns):
            return False
        changed = state.st_size != record.size or all(
            content_hash(path, state.st_size, whole=whole).text != record.content_hash for whole in (False, True)
        )
    except OSError:
        return False
    if changed:
        _logger.warning("%s: changed since it was indexed, and stays; run `vidkin index` again", path)
    return changed


def write_plan(plan: DuplicatePlan, path: PathLike, *, source: str | None = None) -> None:
    """Write a plan as JSON; names that are not valid Unicode survive.

    Args:
        plan: The plan.
        path: The file to write.
        source: What it is a plan for, see :func:`vidkin._base.outputs.open_output`.

    Raises:
        MediaError: The file cannot be written.
    """
    table = {"vidkin_plan": _VERSION, **asdict(plan)}
    for group in table["groups"]:
        # The signature of a file to remove is of both; what belongs to the kept file, or to a companion, is not asked.
        del group["keep"]["signature"], group["keep"]["companions"]
        for companion in (item for file in group["remove"] for item in file["companions"]):
            del companion["companions"]
    with open_output(path, source=source) as partial:
        partial.write_text(json.dumps(table, indent=1, ensure_ascii=True) + "\n", encoding="ascii")


def read_plan(path: PathLike) -> DuplicatePlan:
    """Read a plan from its file; deleted groups and files are not part of it.

    Raises:
        MediaError: The file cannot be read.
        InvalidArgumentError: It is not a plan.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_MOST_TEXT + 1)
        if len(text) > _MOST_TEXT:
            raise ValueError(f"it has more than {_MOST_TEXT} characters")
        table = parse_json(text)
        if table["vidkin_plan"] != _VERSION:
            raise ValueError(f"its version is {table['vidkin_plan']!r}, not {_VERSION}")
        groups = [
            PlannedGroup(
                _file(group["keep"]),
                str(group.get("reason", "")),
                tuple(map(_file_to_remove, group["remove"])),
                tuple(StayingFile(str(item["path"]), str(item["why"])) for item in group.get("stay", [])),
                group.get("untouched") is True,
            )
            for group in table["groups"]
        ]
        return DuplicatePlan(tuple(groups), str(table.get("created", "")), str(table.get("index", "")))
    except OSError as error:
        raise MediaError(path, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{os.fspath(path)} must be a plan from `vidkin duplicates --plan`: {type(error).__name__}: {error}"
        ) from error


def check_file_name(name: str, path: object) -> str:
    """An absolute path that this system can open, from a file that anyone may have written.

    Args:
        name: What the path is, for the message.
        path: Any value.

    Raises:
        ValueError: It is not one.
    """
    if not isinstance(path, str) or not os.path.isabs(path):
        raise ValueError(f"{name} must be absolute, got {path!r}")
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ValueError(f"{name} must be a possible file name, got {path!a}")
    return path


def _file_to_remove(table: dict[str, Any]) -> FileState:
    file = _file(table)
    listed = table.get("companions", [])
    if not isinstance(listed, list) or len(listed) > MOST_COMPANIONS:
        raise ValueError(f"companions must be a list of at most {MOST_COMPANIONS} files")
    companions = tuple(map(_file, listed))
    for companion in companions:
        folder, name = os.path.split(companion.path)
        if folder != os.path.dirname(file.path) or not belongs_to(name, os.path.basename(file.path)):
            raise ValueError(f"a companion must be beside its file and have its name, got {companion.path!a}")
    return replace(file, companions=companions)


def _state_with_companions(path: str) -> FileState:
    """The state of a file and of what belongs to it; a companion that cannot be read stays."""
    companions = []
    for companion in find_companions(path):
        with suppress(MediaError):
            companions.append(FileState.of(companion))
    return replace(FileState.of(path), companions=tuple(companions))


def _file(table: dict[str, Any]) -> FileState:
    path = check_file_name("path", table["path"])
    for name in ("size", "mtime_ns"):
        if type(table[name]) is not int or not -_MOST_NUMBER <= table[name] < _MOST_NUMBER:
            raise ValueError(f"{name} must be a whole number of 64 bits, got {str(table[name])[:40]}")
    return FileState(
        path,
        table["size"],
        table["mtime_ns"],
        str(table["content"]),
        table.get("whole") is True,
        str(table.get("signature", "")),
    )


def _why_it_stays(member: DuplicateMember, protected: Sequence[str]) -> str | None:
    """The reason not to remove a file; None for one that is spare."""
    for folder in protected:
        if is_within(member.path, folder):
            return f"it is in {folder}, which is protected"
    if member.stays:
        return member.stays
    if member.doubt:
        return f"doubtful: {member.doubt}"
    if not member.is_spare:
        return f"the kept file lacks {member.lacking:.1f} s of it"
    if os.path.islink(member.path):
        return "it is a symbolic link"
    if member.links:
        return f"it has other names, as {member.links[0]}"
    if photograph := find_photograph(member.path, member.duration):
        return f"it is the movie of a photograph, {photograph}"
    return None
