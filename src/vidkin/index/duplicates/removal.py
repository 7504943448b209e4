"""Carry out a plan: move spare files away, one logged step at a time, and undo it."""

from __future__ import annotations

import configparser
import errno
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import unquote

from vidkin._base.values import Result, parse_json
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index.duplicates.plans import DuplicatePlan, FileState
from vidkin.index.storage.files import has_same_bytes

__all__ = ["FileAction", "Journal", "RemovalStep", "apply_plan", "find_in_trash", "undo"]

PathLike = str | os.PathLike[str]

_GONE = "it is gone"


@dataclass(frozen=True, slots=True)
class FileAction(Result):
    """What happened to one file.

    Attributes:
        path: The file.
        outcome: ``removed``, ``restored``, ``skipped``; ``planned`` in a dry run.
        place: Where it is now; empty if the trash does not tell.
        cause: Why it was skipped.
        size: Bytes.
    """

    path: str
    outcome: Literal["removed", "restored", "skipped", "planned"]
    place: str = ""
    cause: str = ""
    size: int = 0


def apply_plan(
    plan: DuplicatePlan,
    journal: Journal,
    *,
    folder: PathLike | None = None,
    link: Link = "",
    protected: Sequence[PathLike] = (),
    dry_run: bool = False,
) -> list[FileAction]:
    """Move the files that a plan removes into a folder or the trash; nothing is deleted.

    A file is skipped, with the cause, and stays in place if it or the file to keep has changed since the plan was made,
    if both are the same file, if it is protected, or if it cannot be moved or its link cannot be made.

    Args:
        plan: What to do.
        journal: Receives the steps, for :func:`undo`.
        folder: Where the files go, each below its former path; None for the system's trash.
        link: Put a link to the kept file where the removed one was.
        protected: Folders in which no file is touched.
        dry_run: Only say what would be done.

    Raises:
        MediaError: The log cannot be read or written; finished steps are in it.
        InvalidArgumentError: The folder is one of the files' own folders.
    """
    target = None if folder is None else os.path.abspath(os.path.expanduser(folder))
    folders = [os.path.realpath(os.path.expanduser(item)) for item in protected]
    kept = {group.keep.path for group in plan.groups}
    away = {}
    if journal.path.exists():
        away = {step.source: step.place for step in journal.steps() if step.state == "done"}
    actions = []
    for group in plan.groups:
        for file in group.remove:
            cause = _why_not(file, group.keep, kept, folders, link)
            if cause == _GONE and file.path in away:
                cause = f"it was moved to {away[file.path] or 'the trash'} before"
            if cause is not None:
                action = FileAction(file.path, "skipped", cause=cause)
            else:
                place = "" if target is None else _place_in(target, file.path)
                action = FileAction(file.path, "planned", place)
                if not dry_run:
                    action = _put_away(RemovalStep(file.path, place, link, group.keep.path), journal)
            actions.append(replace(action, size=file.size))
    return actions


def undo(journal: Journal, *, dry_run: bool = False) -> list[FileAction]:
    """Undo every step of a log, the last one first; steps that were already undone are skipped.

    Args:
        journal: Journal written by :func:`apply_plan`.
        dry_run: Only say what would be done.

    Raises:
        MediaError: The log cannot be read or written.
    """
    actions = []
    for step in reversed(journal.steps()):
        if step.state == "undone":
            continue
        place = step.place or find_in_trash(step.source) or ""
        if not place or not os.path.lexists(place):
            if step.state == "done":
                actions.append(
                    FileAction(step.source, "skipped", cause=f"it is no longer in {place or 'the trash'}")
                )
            continue  # a step that had not begun has nothing to undo
        if os.path.lexists(step.source) and not _is_link_of(step):
            actions.append(FileAction(step.source, "skipped", place, "there is another file in its place"))
            continue
        size = os.lstat(place).st_size
        if dry_run:
            actions.append(FileAction(step.source, "planned", place, size=size))
            continue
        try:
            _take_back(replace(step, place=place), journal)
        except OSError as error:
            actions.append(FileAction(step.source, "skipped", place, _cause(error), size))
        else:
            actions.append(FileAction(step.source, "restored", place, size=size))
    return actions


def _why_not(
    file: FileState, keep: FileState, kept: set[str], protected: Sequence[str], link: Link
) -> str | None:
    real = os.path.realpath(file.path)
    for folder in protected:
        if real.startswith(os.path.join(folder, "")):
            return f"it is in {folder}, which is protected"
    if file.path in kept:
        return "the plan keeps it, too"
    if not os.path.lexists(file.path):
        return _GONE
    for item, name in ((keep, "the file to keep"), (file, "it")):
        try:
            now = FileState.of(item.path)
        except MediaError as error:
            return f"{name} {error.cause}" if item is file else f"{name}, {item.path}, {error.cause}"
        if now != item:
            return f"{name} changed since the plan was made"
    if os.path.samefile(file.path, keep.path):
        return "it is the file to keep under another name"
    if link == "hard" and os.stat(keep.path).st_dev != os.stat(os.path.dirname(real)).st_dev:
        return f"a hard link cannot reach another disk, that of {keep.path}; use --symlink"
    return None


def _put_away(step: RemovalStep, journal: Journal) -> FileAction:
    """Carry out one step completely, or leave the file where it was."""
    journal.write(step)
    try:
        if step.place:
            _move(step.source, step.place)
            place = step.place
        else:
            place = put_in_trash(step.source) or ""
    except OSError as error:
        journal.write(replace(step, state="undone"))
        return FileAction(step.source, "skipped", cause=_cause(error))
    done = replace(step, place=place, state="done")
    journal.write(done)
    try:
        if step.link == "hard":
            os.link(step.kept, step.source)
        elif step.link:
            os.symlink(step.kept, step.source)
    except OSError as error:
        cause = f"a link to {step.kept} cannot be made: {error.strerror or error}"
        if not place:  # The trash does not tell where the file is.
            raise MediaError(step.source, f"it is in the trash, but {cause}") from error
        _take_back(done, journal)
        return FileAction(step.source, "skipped", cause=cause)
    return FileAction(step.source, "removed", place)


def _take_back(step: RemovalStep, journal: Journal) -> None:
    """Put a file back where it was.

    Raises:
        OSError: It cannot be moved there.
    """
    if os.path.lexists(step.source):
        os.unlink(step.source)  # our own link; the file that it shows stays
    _move(step.place, step.source)
    held = Path(step.place)
    if held.parent.name == "files":
        (held.parent.parent / "info" / f"{held.name}.trashinfo").unlink(missing_ok=True)
    journal.write(replace(step, state="undone"))


def _place_in(folder: str, path: str) -> str:
    """Target path of a file: its full path below the folder, so that no two files collide."""
    if os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), "")):
        raise InvalidArgumentError(
            f"the folder for removed files must hold none of them, got {folder} for {path}"
        )
    drive, rest = os.path.splitdrive(path)
    return os.path.join(folder, drive.rstrip(":\\/"), rest.lstrip("\\/"))


def _move(source: str, target: str) -> None:
    """Move a file: rename it, or between disks copy it, compare all bytes and only then remove the source.

    Raises:
        OSError: It cannot be moved; the source is unchanged.
    """
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, f"there is a file {target} already; choose another folder")
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        try:
            shutil.copy2(source, target)
            if not has_same_bytes(source, target):
                raise OSError(errno.EIO, f"the copy {target} differed from it")
        # Even Ctrl-C must not leave half a copy behind.
        except BaseException:
            Path(target).unlink(missing_ok=True)
            raise
        os.unlink(source)


def _cause(error: OSError) -> str:
    return f"it cannot be moved: {error.strerror or error}"


def _is_link_of(step: RemovalStep) -> bool:
    """Whether the source is now the link that the step put there."""
    if step.link == "symbolic":
        return os.path.islink(step.source) and os.readlink(step.source) == step.kept
    return step.link == "hard" and os.path.exists(step.kept) and os.path.samefile(step.source, step.kept)


# The log of file removals: one line of JSON before and after each step.


StepState = Literal["begun", "done", "undone"]

Link = Literal["", "hard", "symbolic"]


@dataclass(frozen=True, slots=True)
class RemovalStep:
    """One file that was moved away.

    Attributes:
        source: Where it was.
        place: Where it is now; empty if the trash does not tell.
        link: What was put in its place.
        kept: The file that the link points to.
        state: ``begun`` before the step, ``done`` after it, ``undone`` when it was undone.
    """

    source: str
    place: str
    link: Link
    kept: str
    state: StepState = "begun"


class Journal:
    """Steps in a file; each is on disk before the next begins.

    Args:
        path: The file; created if missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def write(self, step: RemovalStep) -> RemovalStep:
        """Add one line.

        Raises:
            MediaError: The file cannot be written.
        """
        try:
            with self.path.open("a", encoding="ascii") as file:
                file.write(json.dumps(asdict(step)) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise MediaError(self.path, f"the log cannot be written: {error.strerror or error}") from error
        return step

    def steps(self) -> list[RemovalStep]:
        """The latest state of each step, in the order in which they began.

        Raises:
            MediaError: The file cannot be read.
            InvalidArgumentError: It is not a log.
        """
        try:
            lines = self.path.read_text(encoding="ascii").splitlines()
        except FileNotFoundError as error:
            raise MediaError(self.path, "there is no such log: nothing was done with this plan") from error
        except (OSError, ValueError) as error:
            raise MediaError(self.path, f"the log cannot be read: {error}") from error
        newest: dict[str, RemovalStep] = {}
        for number, line in enumerate(lines, start=1):
            try:
                step = RemovalStep(**parse_json(line))
                texts = (step.source, step.place, step.kept)
                if (
                    not all(isinstance(text, str) for text in texts)
                    or step.state not in get_args(StepState)
                    or step.link not in get_args(Link)
                ):
                    raise ValueError("it has other values")
            except (ValueError, TypeError) as error:
                if number == len(lines):
                    break  # The machine stopped while the last line was written; its step had not begun.
                raise InvalidArgumentError(
                    f"{self.path} must be a log of `vidkin apply`: line {number}: {error}"
                ) from error
            known = newest.get(step.source)
            # The trash tells where a file is only once it is there.
            newest[step.source] = replace(step, place=step.place or (known.place if known else ""))
        return list(newest.values())


# The system's trash: move a file there, and find it again to restore it.


def put_in_trash(path: str) -> str | None:
    """Move a file to the trash; returns where it is now, None if the system does not tell.

    Raises:
        OSError: The system refuses.
    """
    from send2trash import send2trash

    send2trash(path)
    return find_in_trash(path)


def find_in_trash(path: str) -> str | None:
    """Find the file in the trash that was at ``path`` (the one deleted last); None if there is none.

    Follows the freedesktop.org specification (Linux and BSD): the home trash, and one at the root of each volume.
    """
    newest: tuple[str, str] | None = None
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    # Trash folders that may hold the file, and what the paths in their notes are relative to.
    folders = [(Path(home) / "Trash", home)]
    volume = os.path.dirname(os.path.realpath(path))
    while not os.path.ismount(volume):
        volume = os.path.dirname(volume)
    if hasattr(os, "getuid"):
        folders.append((Path(volume) / ".Trash" / str(os.getuid()), volume))
        folders.append((Path(volume) / f".Trash-{os.getuid()}", volume))
    for folder, root in folders:
        for note in sorted((folder / "info").glob("*.trashinfo")):
            table = configparser.ConfigParser(interpolation=None)
            try:
                table.read_string(note.read_text(encoding="utf-8", errors="surrogateescape"))
                named = unquote(table["Trash Info"]["Path"], errors="surrogateescape")
                deleted = table["Trash Info"].get("DeletionDate", "")
            except (OSError, configparser.Error, KeyError):
                continue  # a note of another program that cannot be read is about another file
            held = folder / "files" / note.stem
            if _real(os.path.join(root, named)) == _real(path) and os.path.lexists(held):
                newest = max(newest or ("", ""), (deleted, os.fspath(held)))
    return newest[1] if newest else None


def _real(path: str) -> str:
    """The path without links to folders in it: the trash of a volume names files from the root of that volume."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
