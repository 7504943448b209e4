"""Removal plans: files that a person can read and edit before anything happens."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from vidkin._base.arguments import check_arguments
from vidkin._base.files import check_file_name, is_within
from vidkin._base.outputs import open_output
from vidkin._base.values import Result, read_json
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files.proof_record import PROOF_REVISION, Proof
from vidkin.index.duplicates.companions import MOST_COMPANIONS, belongs_to, find_companions, find_photograph
from vidkin.index.duplicates.members import DuplicateGroup, DuplicateMember
from vidkin.index.duplicates.removal_log import Journal
from vidkin.index.storage.files import content_hash
from vidkin.index.storage.records import VideoRecord

_logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
_VERSION = 1
# A plan for a million files; what is longer is none.
_MOST_NUMBER = 1 << 63
# ReFS of Windows numbers files with 128 bits.
_MAX_INODE = 1 << 128
# A whole number as text, of at most as many digits as 128 bits have.
_WHOLE = re.compile("-?[0-9]{1,39}")


@dataclass(frozen=True, slots=True)
class FolderState(Result):
    """The folder of a file as it was when the plan was made.

    Attributes:
        path: Absolute, without symbolic links.
        device: Number of the disk that it is on.
        inode: Number of the folder on that disk.
    """

    path: str
    device: int
    inode: int

    @classmethod
    def of(cls, path: str) -> FolderState:
        """Read the current state of the folder that a file is in; OSError if there is none.

        Args:
            path: The file.
        """
        folder = os.path.realpath(os.path.dirname(path))
        status = os.stat(folder)
        return cls(folder, status.st_dev, status.st_ino)


@dataclass(frozen=True, slots=True)
class PlannedProof(Result):
    """What proves that a file may be removed.

    Attributes:
        kept_content, removed_content: Hashes of all bytes of both files when they were decoded.
        revision: Of the method, see :data:`vidkin.files.PROOF_REVISION`.
        accepted: What the kept file lacks, in words, and somebody said does not matter.
    """

    kept_content: str
    removed_content: str
    revision: int
    accepted: tuple[str, ...] = ()

    @classmethod
    def of(cls, proof: Proof) -> PlannedProof:
        """The part of a proof that a plan keeps; all its findings were accepted."""
        accepted = tuple(finding.text for finding in proof.findings)
        return cls(proof.kept_content, proof.removed_content, proof.revision, accepted)

    def is_of(self, keep: FileState, file: FileState) -> bool:
        """Whether it is about these contents, by the method of now."""
        return (self.kept_content, self.removed_content, self.revision) == (keep.content, file.content, PROOF_REVISION)


@dataclass(frozen=True, slots=True)
class FileState(Result):
    """A file as it was when the plan was made.

    Attributes:
        path: Absolute.
        size: Bytes.
        mtime_ns: Time of its last change, nanoseconds since the epoch.
        content: Hash of its bytes, see :func:`vidkin.index.storage.files.content_hash`.
        signature: What shows that an index planned to remove it, see
            :class:`vidkin.index.duplicates.plans_signature.PlanKey`; empty if nobody signed it.
        companions: Files beside it that belong to it and go where it goes, such as subtitles.
        folder: The folder that it is in; None for a state that is not of a plan.
        proof: Of a file to remove: what proves that the kept file holds everything in it. None if nothing does.
    """

    path: str
    size: int
    mtime_ns: int
    content: str
    signature: str = field(default="", compare=False)
    companions: tuple[FileState, ...] = field(default=(), compare=False)
    folder: FolderState | None = field(default=None, compare=False)
    proof: PlannedProof | None = field(default=None, compare=False)

    @classmethod
    def of(cls, path: str) -> FileState:
        """Read the current state of a file, all its bytes.

        Raises:
            MediaError: It cannot be read.
        """
        try:
            status = os.stat(path)
            text = content_hash(path, status.st_size, whole=True).text
            return cls(path, status.st_size, status.st_mtime_ns, text, folder=FolderState.of(path))
        except OSError as error:
            raise MediaError(path, f"cannot be read: {error.strerror or error}") from error

    def is_at(self, path: str) -> bool:
        """Whether a regular file with this content is at a path; links are none, and times do not count."""
        try:
            status = os.lstat(path)
            return (
                stat.S_ISREG(status.st_mode)
                and status.st_size == self.size
                and content_hash(path, self.size, whole=True).text == self.content
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
    """

    keep: FileState
    reason: str
    remove: tuple[FileState, ...]
    stay: tuple[StayingFile, ...] = ()


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


@check_arguments
def plan_removal(
    groups: Iterable[DuplicateGroup],
    *,
    protected: Sequence[PathLike] = (),
    records: Iterable[VideoRecord] | None = None,
) -> DuplicatePlan:
    """Make a plan that removes the files that are proven to be held by one that stays.

    A file stays if nothing proves that another one holds everything in it, if it has other names (hard links), if it or
    the other one is a symbolic link, if it is in a protected folder, or if it is the movie of a photograph; and if it
    or the other one is another file by now than the one that was compared or decoded. What belongs to a file, such as
    its subtitles, goes with it. Every file of the plan is read whole.

    Args:
        groups: Result of :meth:`vidkin.Index.duplicates` with ``prove=True``; without it nothing is proven.
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
        members = {member.path: member for member in group.members}
        keepers = dict.fromkeys(members[path].kept_by or "" for path, why in reasons.items() if why is None)
        kept = {path: FileState.of(path) for path in keepers}
        removed: dict[str, list[FileState]] = {path: [] for path in kept}
        for path, why in reasons.items():
            member = members[path]
            if why is not None or member.kept_by is None or member.proof is None:
                continue
            state, proof = _state_with_companions(path), PlannedProof.of(member.proof)
            if proof.is_of(kept[member.kept_by], state):
                removed[member.kept_by].append(replace(state, proof=proof))
            else:
                reasons[path] = "it or the file to keep changed since they were decoded"
        stay = [StayingFile(path, why) for path, why in reasons.items() if why is not None]
        for path, remove in removed.items():
            if remove:
                reason = group.reason if path == group.best.path else "holds all of the others of it"
                planned.append(PlannedGroup(kept[path], reason, tuple(remove), tuple(stay)))
                stay = []
    return DuplicatePlan(tuple(planned), datetime.now().astimezone().isoformat(timespec="seconds"))


def why_files_stay(
    group: DuplicateGroup, *, protected: Sequence[str] = (), known: Mapping[str, VideoRecord]
) -> dict[str, str | None]:
    """The reason not to remove each file of a group but the best one, by path; None for those that may go.

    Args:
        group: One of :meth:`vidkin.Index.duplicates`.
        protected: Real paths of folders in which no file is touched.
        known: Records of the index by path; files without one are taken for unchanged.
    """
    return {
        member.path: "it changed since it was indexed; run `vidkin index` again"
        if _has_changed(member.path, known.get(member.path))
        else _why_it_stays(member, protected) or _why_not_for(member.kept_by or group.best.path, known)
        for member in group.members
        if not member.best
    }


def _why_not_for(kept: str, known: Mapping[str, VideoRecord]) -> str | None:
    """Why nothing can be removed for a file that stays; None if it can."""
    if os.path.islink(kept):  # what it points to may be the other one
        return "the file to keep is a symbolic link"
    if _has_changed(kept, known.get(kept)):
        return "the file to keep changed since it was indexed; run `vidkin index` again"
    return None


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


@check_arguments
def write_plan(plan: DuplicatePlan, path: PathLike, *, source: str | None = None) -> None:
    """Write a plan as JSON; names that are not valid Unicode survive.

    Args:
        plan: The plan.
        path: The file to write.
        source: What it is a plan for, see :func:`vidkin._base.outputs.open_output`.

    Raises:
        InvalidArgumentError: The file is a plan that was carried out and whose files are still away: only that plan can
            bring them back.
        MediaError: The file cannot be written.
    """
    check_plan_is_settled(path)
    with open_output(path, source=source) as partial:
        partial.write_text(plan_text(plan), encoding="ascii")


def plan_text(plan: DuplicatePlan, *, largest: int | None = None) -> str:
    """A plan as JSON, which :func:`read_plan` reads.

    Args:
        plan: The plan.
        largest: Larger whole numbers become text, for readers that would round them; None for none.
    """
    table: dict[str, Any] = {"vidkin_plan": _VERSION, **asdict(plan)}
    for group in table["groups"]:
        # The signature of a file to remove is of both; what belongs to the kept file, or to a companion, is not asked.
        del group["keep"]["signature"], group["keep"]["companions"], group["keep"]["proof"]
        for companion in (item for file in group["remove"] for item in file["companions"]):
            del companion["companions"], companion["proof"]
    if largest is not None:
        table = _with_text(table, largest)
    return json.dumps(table, indent=1, ensure_ascii=True) + "\n"


def _with_text(value: Any, largest: int) -> Any:
    """Plain values in which larger whole numbers are text."""
    if isinstance(value, dict):
        return {name: _with_text(each, largest) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text(each, largest) for each in value]
    return str(value) if isinstance(value, int) and abs(value) > largest else value


@check_arguments
def check_plan_is_settled(path: PathLike) -> None:
    """Check that no removal can be undone only with the plan in this file, so that the file may be replaced.

    Reads the log next to the plan, if there is one; never the plan.

    Args:
        path: Where a plan is, or will be.

    Raises:
        InvalidArgumentError: Files that this plan moved are not back, or its log is not a log.
        MediaError: The log cannot be read.
    """
    journal = Journal.of_plan(path)
    count = journal.count_steps_to_undo()
    if count:
        files = "1 file" if count == 1 else f"{count} files"
        raise InvalidArgumentError(
            f"{os.fspath(path)} is a plan that moved {files}, and only with it can `vidkin apply --undo` restore them; "
            f"choose another name, undo this plan first, or delete {journal.path} if you do not want them back"
        )


@check_arguments
def read_plan(path: PathLike) -> DuplicatePlan:
    """Read a plan from its file; deleted groups and files are not part of it.

    Raises:
        MediaError: The file cannot be read.
        InvalidArgumentError: It is not a plan.
    """
    try:
        table = read_json(path, follow_links=True)
        if table["vidkin_plan"] != _VERSION:
            raise ValueError(f"its version is {table['vidkin_plan']!r}, not {_VERSION}")
        groups = [
            PlannedGroup(
                _file(group["keep"]),
                str(group.get("reason", "")),
                tuple(map(_file_to_remove, group["remove"])),
                tuple(StayingFile(str(item["path"]), str(item["why"])) for item in group.get("stay", [])),
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
    return FileState(
        path,
        _whole(table, "size", -_MOST_NUMBER, _MOST_NUMBER, "64 bits"),
        _whole(table, "mtime_ns", -_MOST_NUMBER, _MOST_NUMBER, "64 bits"),
        str(table["content"]),
        str(table.get("signature", "")),
        folder=_folder(table["folder"]),
        proof=_proof(table["proof"]) if table.get("proof") is not None else None,
    )


def _proof(table: dict[str, Any]) -> PlannedProof:
    if type(table["revision"]) is not int:
        raise ValueError(f"revision of a proof must be a whole number, got {str(table['revision'])[:40]}")
    accepted = tuple(str(text) for text in table["accepted"])
    return PlannedProof(str(table["kept_content"]), str(table["removed_content"]), table["revision"], accepted)


def _folder(table: dict[str, Any]) -> FolderState:
    path = check_file_name("folder", table["path"])
    device = _whole(table, "device", 0, _MAX_INODE, "128 bits", " of a folder")
    inode = _whole(table, "inode", 0, _MAX_INODE, "128 bits", " of a folder")
    return FolderState(path, device, inode)


def _whole(table: dict[str, Any], name: str, low: int, high: int, bits: str, owner: str = "") -> int:
    """A whole number of a table, also one that was written as text so that no reader of JSON rounds it."""
    given = table[name]
    number = int(given) if isinstance(given, str) and _WHOLE.fullmatch(given) else given
    if type(number) is not int or not low <= number < high:
        raise ValueError(f"{name}{owner} must be a whole number of {bits}, got {str(given)[:40]}")
    return number


def _why_it_stays(member: DuplicateMember, protected: Sequence[str]) -> str | None:
    """The reason not to remove a file; None for one that is spare."""
    for folder in protected:
        if is_within(member.path, folder):
            return f"it is in {folder}, which is protected"
    if member.stays:
        return member.stays
    if member.doubt:
        return f"doubtful: {member.doubt}"
    if not member.is_proven:
        return "nothing proves that the kept file holds everything in it"
    if os.path.islink(member.path):
        return "it is a symbolic link"
    if member.links:
        return f"it has other names, as {member.links[0]}"
    if photograph := find_photograph(member.path, member.duration):
        return f"it is the movie of a photograph, {photograph}"
    return None
