"""Removal plans: JSON files that users can read and edit before the plans are carried out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, check_file_name, hash_file
from vidkin._base.outputs import open_output
from vidkin._base.values import Result, read_json
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files.companions import MAX_COMPANIONS, belongs_to
from vidkin.files.journal import Journal

_VERSION = 2
_MAX_SIZE = 1 << 63


@dataclass(frozen=True, slots=True)
class FileState(Result):
    """State of a file when the plan was made.

    Attributes:
        path: Absolute path.
        size: Size in bytes.
        modified: Modification time in nanoseconds since the epoch, as text so that no JSON reader rounds it.
        content: Hash of all its bytes; see :func:`vidkin._base.files.hash_file`.
        folder: Its folder, with symbolic links resolved.
        folder_number: Device and inode of the folder, as ``device:inode``.
        companions: For a file to remove, the files next to it that are moved with it, such as subtitles.
        accepted: For a file to remove, the descriptions of the findings that the user accepted.
    """

    path: str
    size: int
    modified: str
    content: str
    folder: str = field(compare=False)
    folder_number: str = field(compare=False)
    companions: tuple[FileState, ...] = field(default=(), compare=False)
    accepted: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, path: str) -> FileState:
        """Read the current state of a file, including all its bytes.

        Raises:
            MediaError: The file cannot be read.
        """
        try:
            status = os.stat(path)
            return cls(path, status.st_size, str(status.st_mtime_ns), hash_file(path), *folder_of(path))
        except OSError as error:
            raise MediaError(path, f"cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class StayingFile(Result):
    """A copy that is not moved.

    Attributes:
        path: The file.
        why: The reason, in one line.
    """

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class PlannedGroup(Result):
    """One group of copies.

    Attributes:
        keep: The file to keep.
        reason: Why this file is kept.
        remove: Files that the kept file replaces.
        stay: Copies that are not moved, with reasons; for information only.
    """

    keep: FileState
    reason: str = ""
    remove: tuple[FileState, ...] = ()
    stay: tuple[StayingFile, ...] = ()


@dataclass(frozen=True, slots=True)
class DuplicatePlan(Result):
    """A plan for removing duplicates from an index.

    Attributes:
        groups: Groups with files to remove.
        created: Time of creation in ISO 8601.
    """

    groups: tuple[PlannedGroup, ...]
    created: str = ""

    @property
    def savings(self) -> int:
        """Total size in bytes of the files to be removed, without their companions."""
        return sum(file.size for group in self.groups for file in group.remove)


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file that a plan moves.

    Attributes:
        file: The file.
        keep: The file that replaces it, or that replaces its video.
        video: Path of the video that the file belongs to; empty for a video.
    """

    file: FileState
    keep: FileState
    video: str = ""


@dataclass(frozen=True, slots=True)
class FileAction(Result):
    """Outcome for one file.

    Attributes:
        path: The file.
        outcome: ``removed``, ``restored``, ``skipped``, or ``planned`` in a dry run.
        place: Its current path; empty if the trash does not report it.
        cause: Why it was skipped.
        size: Size in bytes.
        video: The video that the file belongs to; empty for a video itself.
    """

    path: str
    outcome: Literal["removed", "restored", "skipped", "planned"]
    place: str = ""
    cause: str = ""
    size: int = 0
    video: str = ""


def folder_of(path: str) -> tuple[str, str]:
    """Resolve the folder of a file, and return it with its device and inode; raise OSError if there is none."""
    folder = os.path.realpath(os.path.dirname(path))
    status = os.stat(folder)
    return folder, f"{status.st_dev}:{status.st_ino}"


def planned_files(plan: DuplicatePlan) -> Iterator[PlannedFile]:
    """Yield all files that a plan moves, each video before its companions."""
    for group in plan.groups:
        for file in group.remove:
            yield PlannedFile(file, group.keep)
            for companion in file.companions:
                yield PlannedFile(companion, group.keep, file.path)


@check_arguments
def write_plan(plan: DuplicatePlan, path: PathLike, *, source: str | None = None) -> None:
    """Write a plan as JSON; names that are not valid Unicode are preserved.

    Args:
        plan: The plan.
        path: The file to write.
        source: Description of the source of the plan; see :func:`vidkin._base.outputs.open_output`.

    Raises:
        InvalidArgumentError: The file is a plan that was carried out, and is still needed to restore files.
        MediaError: The file cannot be written.
    """
    check_plan_is_settled(path)
    with open_output(path, source=source) as partial:
        partial.write_text(plan_text(plan), encoding="ascii")


@check_arguments
def plan_text(plan: DuplicatePlan) -> str:
    """Return a plan as JSON that :func:`read_plan` can read."""
    return json.dumps({"vidkin_plan": _VERSION, **plan.to_dict()}, indent=1, ensure_ascii=True) + "\n"


@check_arguments
def check_plan_is_settled(path: PathLike) -> None:
    """Check that the plan in this file is not needed to undo a removal, so that the file may be replaced.

    Only the log next to the plan is read, if there is one, not the plan itself.

    Args:
        path: Path of an existing or a future plan.

    Raises:
        InvalidArgumentError: Files that this plan moved have not been restored, or its log is malformed.
        MediaError: The log cannot be read.
    """
    journal = Journal.of_plan(path)
    count = sum(step.state != "undone" for step in journal.steps()) if os.path.lexists(journal.path) else 0
    if count:
        files = "1 file" if count == 1 else f"{count} files"
        raise InvalidArgumentError(
            f"{os.fspath(path)} is a plan that moved {files}, and `vidkin apply --undo` needs it to restore them; "
            f"choose another name, undo this plan first, or delete {journal.path} if you do not want them back"
        )


@check_arguments
def read_plan(path: PathLike) -> DuplicatePlan:
    """Read a plan from an untrusted file; groups and files that the user deleted from it are left out.

    Raises:
        MediaError: The file cannot be read.
        InvalidArgumentError: The file is not a plan.
    """
    try:
        table = read_json(path, follow_links=True)
        version = table.get("vidkin_plan") if isinstance(table, dict) else None
        if version != _VERSION:
            raise ValueError(f"vidkin_plan must be {_VERSION}, got {version!r}")
        plan = DuplicatePlan.from_dict(table)
        for group in plan.groups:
            _check_file(group.keep)
            for file in group.remove:
                _check_file(file)
                _check_companions(file)
    except OSError as error:
        raise MediaError(path, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidArgumentError(
            f"{os.fspath(path)} must be a plan from `vidkin duplicates --plan`: {error}"
        ) from error
    return plan


def _check_file(file: FileState) -> None:
    check_file_name("path", file.path)
    check_file_name("folder", file.folder)
    if not 0 <= file.size < _MAX_SIZE:
        raise ValueError(f"size must be a nonnegative number of at most 63 bits, got {str(file.size)[:40]}")


def _check_companions(file: FileState) -> None:
    if len(file.companions) > MAX_COMPANIONS:
        raise ValueError(f"companions must be a list of at most {MAX_COMPANIONS} files")
    for companion in file.companions:
        _check_file(companion)
        folder, name = os.path.split(companion.path)
        if folder != os.path.dirname(file.path) or not belongs_to(name, os.path.basename(file.path)):
            raise ValueError(f"a companion must be next to its file and share its name, got {companion.path!a}")
