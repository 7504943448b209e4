"""Carry out a plan: move spare files away, one logged step at a time, and undo it.

At every moment each file is whole at one of the places that the log names, so that after a power cut the same command
ends what it began. What is in the way of an undo is renamed aside, and removed only when it is known to be a link of
ours whose content has another name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from vidkin._base import disk
from vidkin._base.files import drive_name, is_within
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index.duplicates.plans import DuplicatePlan, FileState
from vidkin.index.duplicates.plans_signature import PlanKey
from vidkin.index.duplicates.removal_log import Journal, Link, RemovalStep
from vidkin.index.duplicates.removal_moves import (
    aside_name,
    find_in_trash,
    is_unchanged,
    move_file,
    put_in_trash,
    real_path,
    remove_original,
    remove_partial,
    stat_at,
    stat_of,
)

PathLike = str | os.PathLike[str]

_NOT_PLANNED = "its index did not plan this: the entry is unsigned or was changed; make the plan again, or --any-file"


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


@dataclass(frozen=True, slots=True)
class _Task:
    """What holds for all files of a run.

    Attributes:
        journal: The log.
        kept: Paths that the plan keeps.
        protected: Folders in which no file is touched.
        link: What to put in the place of a removed file.
        key: Key that must have signed an entry; None for any.
        verified: Files to keep of which all bytes were read, with the facts of that moment.
    """

    journal: Journal
    kept: frozenset[str]
    protected: tuple[str, ...]
    link: Link
    key: PlanKey | None
    verified: dict[FileState, os.stat_result] = field(default_factory=dict)


def apply_plan(
    plan: DuplicatePlan,
    journal: Journal,
    *,
    folder: PathLike | None = None,
    link: Link = "",
    protected: Sequence[PathLike] = (),
    dry_run: bool = False,
    key: PlanKey | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[FileAction]:
    """Move the files that a plan removes into a folder or the trash; nothing is deleted.

    A file is skipped, with the cause, and stays in place if it or the file to keep has changed since the plan was made,
    all bytes of both read, or is a symbolic link, if both are the same file, if it is protected, or if it cannot be
    moved or its link cannot be made. A step that a crash interrupted is finished, or cleaned up and begun again.

    Args:
        plan: What to do.
        journal: Receives the steps, for :func:`undo`.
        folder: Where the files go, each below its former path; None for the system's trash.
        link: Put a link to the kept file where the removed one was.
        protected: Folders in which no file is touched.
        dry_run: Only say what would be done.
        key: Skip what the index with this key has not signed; None for a plan that is your own.
        on_progress: Callback that receives (files done, total number of files); what it raises ends the run between
            two files.

    Raises:
        MediaError: The log cannot be read or written, or another process uses it; finished steps are in it.
        InvalidArgumentError: The folder is one of the files' own folders.
    """
    target = None if folder is None else os.path.abspath(os.path.expanduser(folder))
    removals = [(group.keep, file) for group in plan.groups for file in group.remove]
    task = _Task(
        journal,
        frozenset(group.keep.path for group in plan.groups),
        tuple(os.path.realpath(os.path.expanduser(item)) for item in protected),
        link,
        key,
    )
    places = ["" if target is None else _place_in(target, file.path) for _, file in removals]
    actions = []
    with nullcontext() if dry_run else journal.held():
        earlier = {step.source: step for step in journal.steps()} if journal.path.exists() else {}
        for (keep, file), place in zip(removals, places, strict=True):
            action = _remove(task, file, keep, place, earlier.get(file.path), dry_run=dry_run)
            actions.append(replace(action, size=file.size))
            if on_progress is not None:
                on_progress(len(actions), len(removals))
    return actions


def undo(
    journal: Journal,
    *,
    plan: DuplicatePlan | None = None,
    dry_run: bool = False,
    key: PlanKey | None = None,
) -> list[FileAction]:
    """Undo every step of a log, the last one first; steps that were already undone are skipped.

    A file comes back only if it holds, byte for byte, what was moved away, and only to where nothing is, or the link
    that replaced it. Anything else is skipped, with the cause, and left as it is.

    Args:
        journal: Journal written by :func:`apply_plan`.
        plan: The plan; steps that it does not name are skipped. None for a log that is your own.
        dry_run: Only say what would be done.
        key: Skip what the index with this key has not signed.

    Raises:
        MediaError: The log cannot be read or written, or another process uses it.
    """
    steps = journal.steps()
    planned = None
    if plan is not None:
        planned = {(file.path, group.keep.path): (group.keep, file) for group in plan.groups for file in group.remove}
    actions = []
    with nullcontext() if dry_run else journal.held():
        if not dry_run:
            steps = journal.steps()  # another process may just have ended
        for step in reversed(steps):
            if step.state == "undone":
                continue
            keep, file = (None, None) if planned is None else planned.get((step.source, step.kept), (None, None))
            cause = "" if planned is None else _why_not_planned(step, keep, file, key)
            if cause:
                actions.append(FileAction(step.source, "skipped", step.place, cause))
                continue
            actions += _take_back(_Return.of(step, keep, file), journal, dry_run=dry_run)
    return actions


# Moving away.


def _remove(
    task: _Task, file: FileState, keep: FileState, place: str, earlier: RemovalStep | None, *, dry_run: bool
) -> FileAction:
    """Carry out one entry of a plan, or finish what an earlier run began."""
    cause = _why_never(task, file, keep)
    if cause:
        return FileAction(file.path, "skipped", cause=cause)
    if earlier is not None and earlier.state == "undoing":
        return FileAction(file.path, "skipped", cause="its undo was interrupted; run that first, with --undo")
    if earlier is not None and earlier.state == "begun" and not dry_run:
        action = _resume(task, file, keep, earlier)
        if action is not None:
            return action
    elif earlier is not None and earlier.state in ("begun", "done") and _has_left(earlier):
        cause = f"it was moved to {earlier.place or 'the trash'} before"
        return FileAction(file.path, "skipped", cause=cause)
    before = _check(task, file, keep)
    if isinstance(before, str):
        return FileAction(file.path, "skipped", cause=before)
    if dry_run:
        return FileAction(file.path, "planned", place)
    contents = [item.content if item.whole else FileState.of(item.path).content for item in (file, keep)]
    step = RemovalStep(file.path, place, task.link, keep.path, "begun", file.size, contents[0], contents[1])
    task.journal.write(step)
    try:
        if step.place:
            move_file(file, before, step.place)
        elif not is_unchanged(file.path, before):
            raise OSError("it changed since it was read")
        else:
            step = replace(step, place=put_in_trash(step.source) or "")
    except OSError as error:
        return _give_up(task.journal, step, error)
    return _put_link(task.journal, step)


def _why_never(task: _Task, file: FileState, keep: FileState) -> str:
    """Why a file is not touched, whatever it holds; empty if it may be."""
    for folder in task.protected:
        if is_within(file.path, folder):
            return f"it is in {folder}, which is protected"
    if file.path in task.kept:
        return "the plan keeps it, too"
    if task.key is not None and not task.key.has_signed(keep, file):
        return _NOT_PLANNED
    return ""


def _check(task: _Task, file: FileState, keep: FileState) -> os.stat_result | str:
    """The facts of a file that may be moved, all bytes of it and of the one to keep read; otherwise the cause."""
    if not os.path.lexists(file.path):
        return "it is gone"
    cause = _why_not_kept(task, keep)
    if cause:
        return cause
    before = stat_of(file)
    if isinstance(before, str):
        return before if before.startswith("it ") else f"it {before}"
    if os.path.samefile(file.path, keep.path):
        return "it is the file to keep under another name"
    folder = os.path.dirname(os.path.realpath(file.path))
    if task.link == "hard" and os.stat(keep.path).st_dev != os.stat(folder).st_dev:
        return f"a hard link cannot reach another disk, that of {keep.path}; use --symlink"
    return before


def _why_not_kept(task: _Task, keep: FileState) -> str:
    """What is wrong with the file to keep; empty if it is as it was. It is read once, and again after each change."""
    with suppress(OSError):
        if keep in task.verified and is_unchanged(keep.path, task.verified[keep]):
            return ""
    now = stat_of(keep)
    if isinstance(now, str):
        return f"the file to keep, {keep.path}, {now}" if now.startswith("cannot") else f"the file to keep {now}"
    task.verified[keep] = now
    return ""


def _put_link(journal: Journal, step: RemovalStep) -> FileAction:
    """Put the link where a moved file was and note that the step is done; otherwise put the file back."""
    try:
        if step.link and not _has_left(replace(step, link="")):
            pass  # an earlier run made the link
        elif step.link == "hard":
            disk.link(step.kept, step.source)
        elif step.link:
            disk.symlink(step.kept, step.source)
        if step.link:
            disk.sync_folder(os.path.dirname(step.source))
    except OSError as error:
        cause = f"a link to {step.kept} cannot be made: {error.strerror or error}"
        if not step.place:  # The trash does not tell where the file is.
            journal.write(replace(step, state="done"))
            raise MediaError(step.source, f"it is in the trash, but {cause}") from error
        back = _take_back(_Return.of(step, None, None), journal, dry_run=False)
        if back and back[0].cause:
            cause += f"; it is in {step.place}: {back[0].cause}"
        return FileAction(step.source, "skipped", cause=cause)
    journal.write(replace(step, state="done"))
    return FileAction(step.source, "removed", step.place)


def _give_up(journal: Journal, step: RemovalStep, error: OSError) -> FileAction:
    """Clean up after a move that failed, as far as nothing is lost, and note what is true."""
    held = FileState(step.source, step.size, 0, step.content)
    cause = _cause(error)
    if not os.path.lexists(step.source):
        # It has its new name, and the disk failed after that: the step stays begun.
        return FileAction(step.source, "skipped", step.place, f"{cause}; run the same command again")
    if step.place and held.is_at(step.place):
        if held.is_at(step.source) and not os.path.samefile(step.source, step.place):
            with suppress(OSError):
                disk.unlink(step.place)
        else:
            cause += f"; what it held before is in {step.place}"
    journal.write(replace(step, state="undone"))
    return FileAction(step.source, "skipped", cause=cause)


def _resume(task: _Task, file: FileState, keep: FileState, step: RemovalStep) -> FileAction | None:
    """Finish a step that a crash interrupted; None if it is to begin again."""
    journal = task.journal
    held = FileState(step.source, step.size, 0, step.content) if step.content else file
    here = held.is_at(step.source)
    # What the trash has of a file that is still here was there before.
    step = replace(step, place=step.place or ("" if here else find_in_trash(step.source)) or "")
    if not (step.place and held.is_at(step.place)):
        if here:
            if step.place:
                remove_partial(step.place)
            journal.write(replace(step, state="undone"))
        return None
    try:
        if here:
            before = _check(task, file, keep)
            if isinstance(before, str):
                return FileAction(step.source, "skipped", step.place, before)
            remove_original(step.source, before)
        elif not _has_left(step):
            cause = f"it was moved to {step.place}, and there is another file in its place"
            return FileAction(step.source, "skipped", step.place, cause)
        else:
            cause = _why_not_kept(task, keep)
            if cause:
                back = _take_back(_Return.of(step, keep, file), journal, dry_run=False)
                where = step.place if any(action.cause for action in back) else ""
                return FileAction(step.source, "skipped", where, cause)
        disk.sync_folder(os.path.dirname(step.source))
    except OSError as error:
        return FileAction(step.source, "skipped", step.place, _cause(error))
    return _put_link(journal, step)


def _has_left(step: RemovalStep) -> bool:
    """Whether nothing is where a file was, or what looks like the link that replaced it."""
    if not os.path.lexists(step.source):
        return True
    if step.link == "symbolic":
        return os.path.islink(step.source) and disk.read_link(step.source) == step.kept
    return step.link == "hard" and os.path.exists(step.kept) and os.path.samefile(step.source, step.kept)


def _place_in(folder: str, path: str) -> str:
    """Target path of a file: its full path below the folder, so that no two files collide."""
    if is_within(path, folder):
        raise InvalidArgumentError(f"the folder for removed files must hold none of them, got {folder} for {path}")
    drive, rest = os.path.splitdrive(path)
    return os.path.join(folder, drive_name(drive), rest.lstrip("\\/"))


def _cause(error: OSError) -> str:
    return f"it cannot be moved: {error.strerror or error}"


# Taking back.


@dataclass(frozen=True, slots=True)
class _Return:
    """A file on its way back.

    Attributes:
        step: The step of the log, with the place.
        held: What the file must hold; None if neither log nor plan says.
        kept: What a hard link in its place must hold; None if neither says.
    """

    step: RemovalStep
    held: FileState | None
    kept: FileState | None

    @classmethod
    def of(cls, step: RemovalStep, keep: FileState | None, file: FileState | None) -> _Return:
        """From the log, and for logs of earlier versions from the plan."""
        if step.content:
            file = FileState(step.source, step.size, 0, step.content)
        if step.kept_content:
            with suppress(OSError):
                keep = FileState(step.kept, os.lstat(step.kept).st_size, 0, step.kept_content)
        place = step.place
        # What the trash has of a file that never left was there before.
        if not place and not (step.state == "begun" and file is not None and file.is_at(step.source)):
            place = find_in_trash(step.source) or ""
        return cls(replace(step, place=place), file, keep)


def _why_not_planned(step: RemovalStep, keep: FileState | None, file: FileState | None, key: PlanKey | None) -> str:
    """Why a step of a log is not one of a plan; empty if it is."""
    if keep is None or file is None:
        return "the plan does not name it with this file to keep"
    if key is not None and not key.has_signed(keep, file):
        return _NOT_PLANNED
    if step.content and (step.size != file.size or (file.whole and step.content != file.content)):
        return "the plan names another content than the log"
    return ""


def _take_back(item: _Return, journal: Journal, *, dry_run: bool) -> list[FileAction]:
    """Undo one step; what happened, nothing for a step that had not begun."""
    step, held = item.step, item.held
    if not step.place or not os.path.lexists(step.place):
        return _end_without_place(item, journal, dry_run=dry_run)
    size = os.lstat(step.place).st_size
    before = None if held is None else stat_at(step.place, held)
    # A copy between disks was complete, and only its original was left to be removed.
    is_twice = (
        held is not None
        and step.state in ("begun", "undoing")
        and held.is_at(step.source)
        and not os.path.samefile(step.source, step.place)
    )
    if held is None:
        cause = "the log does not say what it held; undo it together with its plan"
    elif before is None:
        cause = f"{step.place} does not hold what was moved there"
    elif os.path.lexists(step.source) and not is_twice:
        cause = _why_no_link(step, step.source, item.kept)
    else:
        cause = ""
    if not cause and before is not None and not dry_run:
        try:
            cause = _put_back(item, journal, before, is_twice=is_twice)
        except OSError as error:
            cause = _cause(error)
    if cause:
        return [FileAction(step.source, "skipped", step.place, cause, size)]
    return [FileAction(step.source, "planned" if dry_run else "restored", step.place, size=size)]


def _put_back(item: _Return, journal: Journal, before: os.stat_result, *, is_twice: bool) -> str:
    """Put a file back whose content was read; returns why that was not done, if it was not.

    Raises:
        OSError: It cannot be moved there; what was in its place is there again.
    """
    step, held = item.step, item.held
    if held is None:
        raise ValueError("what a file held must be known before it is put back")
    aside = aside_name(step.source)
    note = _note_of(step)
    journal.write(replace(step, state="undoing"))
    if is_twice:
        remove_original(step.place, before)
    else:
        if os.path.lexists(step.source):
            disk.rename_new(step.source, aside)
        try:
            # What was in the way has a name of its own now: what is seen there is what would be removed.
            cause = _why_no_link(step, aside, item.kept) if os.path.lexists(aside) else ""
            if not cause:
                move_file(replace(held, path=step.place), before, step.source)
        except OSError:
            _put_in_place_again(step, held, journal)
            raise
        if cause:
            _put_in_place_again(step, held, journal)
            return cause
    return _end(item, journal, note)


def _put_in_place_again(step: RemovalStep, held: FileState, journal: Journal) -> None:
    """After a file did not come back: what was in its place gets its name again, if nothing else has it."""
    aside = aside_name(step.source)
    if os.path.lexists(aside) and not os.path.lexists(step.source):
        with suppress(OSError):
            disk.rename_new(aside, step.source)
            disk.sync_folder(os.path.dirname(step.source))
    if os.path.lexists(step.place) and not held.is_at(step.source):
        journal.write(step)


def _end(item: _Return, journal: Journal, note: Path | None) -> str:
    """Remove the link that a file that is back replaced, and its note in the trash; then the step is undone."""
    step = item.step
    aside = aside_name(step.source)
    if os.path.lexists(aside):
        cause = _why_no_link(step, aside, None)
        if cause:
            return f"it is back, but {aside}, which was in its place, stays: {cause}"
        disk.unlink(aside)
        disk.sync_folder(os.path.dirname(aside))
    if note is not None:
        with suppress(FileNotFoundError):
            disk.unlink(note)
    journal.write(replace(step, state="undone"))
    return ""


def _end_without_place(item: _Return, journal: Journal, *, dry_run: bool) -> list[FileAction]:
    """Undo a step whose file is not where the log says: it never left, or is back already, or somebody took it."""
    step = item.step
    here = item.held is not None and item.held.is_at(step.source)
    size = item.held.size if item.held is not None else 0
    cause = f"it is no longer in {step.place or 'the trash'}"
    try:
        if step.state == "begun" and os.path.lexists(step.source):
            if here and not dry_run:
                if step.place:
                    remove_partial(step.place)
                journal.write(replace(step, state="undone"))
            return []  # a step that had not begun has nothing to undo
        if step.state == "undoing" and here:
            cause = "" if dry_run else _end(item, journal, _note_of(step))
    except OSError as error:
        cause = _cause(error)
    if cause:
        return [FileAction(step.source, "skipped", step.place, cause)]
    return [FileAction(step.source, "planned" if dry_run else "restored", step.place, size=size)]


def _why_no_link(step: RemovalStep, path: str, kept: FileState | None) -> str:
    """Why what is at a path is not the link that a step put there; empty if it is, and nothing is lost with it.

    A hard link of ours is a regular file, the same as the kept one, which has this name besides, and holds what it
    held.

    Args:
        step: The step.
        path: Where the link is.
        kept: What it must hold; None if that is not known.
    """
    other = "there is another file in its place"
    try:
        status = os.lstat(path)
        if step.link == "symbolic":
            return "" if stat.S_ISLNK(status.st_mode) and disk.read_link(path) == step.kept else other
        if step.link != "hard" or not stat.S_ISREG(status.st_mode):
            return other
        kept_status = os.lstat(step.kept)
        if not stat.S_ISREG(kept_status.st_mode) or not os.path.samestat(status, kept_status):
            return f"{other}, not a link to {step.kept}"
        if status.st_nlink < 2 or real_path(path) == real_path(step.kept):
            return "the file in its place has no other name"
        if kept is not None and not kept.is_at(path):
            return "the file in its place changed since the link was made"
    except OSError as error:
        return f"{other}: {error.strerror or error}"
    return ""


def _note_of(step: RemovalStep) -> Path | None:
    """The note of the trash on a file in it; None if the file is not there."""
    held = Path(step.place)
    if not step.place or held.parent.name != "files":
        return None
    note = held.parent.parent / "info" / f"{held.name}.trashinfo"
    return note if find_in_trash(step.source) == step.place else None
