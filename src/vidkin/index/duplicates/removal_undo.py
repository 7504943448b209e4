"""Take a removal back, the last step first.

What is in the way of a file is renamed aside, and removed only when it is known to be a link of ours whose content has
another name.
"""

from __future__ import annotations

import os
import stat
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

from vidkin._base import disk
from vidkin._base.arguments import check_arguments
from vidkin.index.duplicates import trash, trash_elsewhere
from vidkin.index.duplicates.plans import DuplicatePlan, FileState
from vidkin.index.duplicates.plans_signature import PlanKey
from vidkin.index.duplicates.removal_files import NOT_PLANNED, FileAction, PlannedFile, cause_of, planned_files
from vidkin.index.duplicates.removal_locks import hold_files, hold_removals
from vidkin.index.duplicates.removal_log import Journal, RemovalStep
from vidkin.index.duplicates.removal_moves import (
    aside_name,
    is_other_name,
    move_file,
    real_path,
    remove_original,
    remove_partial,
    stat_at,
)


@check_arguments
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
        CollectionLockedError: Another removal of this user is at work.
    """
    steps = journal.steps()
    planned = None if plan is None else {(entry.path, entry.keep.path): entry for entry in planned_files(plan)}
    actions: list[FileAction] = []
    with nullcontext() if dry_run else journal.held(), nullcontext() if dry_run else hold_removals():
        if not dry_run:
            steps = journal.steps()  # another process may just have ended
        for step in reversed(steps):
            if step.state == "undone":
                continue
            entry = None if planned is None else planned.get((step.source, step.kept))
            cause = "" if planned is None else _why_not_planned(step, entry, key)
            with hold_files(() if dry_run or cause else (step.kept, step.place)) as busy:
                if busy:
                    cause = f"another process moves or keeps {busy}; try again later"
                if cause:
                    actions.append(FileAction(step.source, "skipped", step.place, cause, video=step.video))
                    continue
                done = take_back(Return.of(step), journal, dry_run=dry_run)
            actions += [replace(action, video=step.video) for action in done]
    return actions


@dataclass(frozen=True, slots=True)
class Return:
    """A file on its way back.

    Attributes:
        step: The step of the log, with the place.
        held: What the file must hold.
        kept: What a hard link in its place must hold; None if the file that it is a link to is gone.
    """

    step: RemovalStep
    held: FileState
    kept: FileState | None

    @classmethod
    def of(cls, step: RemovalStep) -> Return:
        """From the log."""
        file = FileState(step.source, step.size, 0, step.content)
        keep = None
        with suppress(OSError):
            keep = FileState(step.kept, os.lstat(step.kept).st_size, 0, step.kept_content)
        # A file that never left is not looked for.
        if not (step.state != "done" and file.is_at(step.source)):
            step = replace(step, place=_locate(step, file))
        return cls(step, file, keep)


def _locate(step: RemovalStep, file: FileState) -> str:
    """Where a file is now: what was sent to the trash is looked for there if it is not where the log says."""
    if step.place:
        if trash.IS_WRITTEN_HERE and not trash.is_place(step.place):
            return step.place  # a folder of --move-to
        with suppress(OSError):
            status = os.lstat(step.place)
            if (status.st_size, status.st_ino) == (file.size, step.inode) or file.is_at(step.place):
                return step.place
    return trash.find_in_trash(step.source, file, step.device, step.inode) or step.place


def _why_not_planned(step: RemovalStep, entry: PlannedFile | None, key: PlanKey | None) -> str:
    """Why a step of a log is not one of a plan; empty if it is."""
    if entry is None or step.video != ("" if entry.video is None else entry.video.path):
        return "the plan does not name it with this file to keep"
    if key is not None and not entry.is_signed(key):
        return NOT_PLANNED
    file = entry.file
    if (step.size, step.content) != (file.size, file.content):
        return "the plan names another content than the log"
    return ""


def take_back(item: Return, journal: Journal, *, dry_run: bool) -> list[FileAction]:
    """Undo one step; what happened, nothing for a step that had not begun."""
    step, held = item.step, item.held
    is_here = step.state in ("begun", "undoing") and held.is_at(step.source)
    if (
        not step.place
        or not os.path.lexists(step.place)
        # Another program was faster to take that name in the trash.
        or (is_here and not trash.is_reserved(step.place, step.source))
    ):
        return _end_without_place(item, journal, dry_run=dry_run)
    size = os.lstat(step.place).st_size
    before = stat_at(step.place, held)
    # A copy between disks was complete, and only its original was left to be removed.
    is_twice = is_here and is_other_name(step.source, step.place)
    if before is None:
        cause = f"{step.place} does not hold what was moved there"
    elif os.path.lexists(step.source) and not is_twice:
        cause = _why_no_link(step, step.source, item.kept)
    else:
        cause = ""
    if not cause and before is not None and not dry_run:
        try:
            cause = _put_back(item, journal, before, is_twice=is_twice)
        except OSError as error:
            cause = cause_of(error)
    if cause:
        return [FileAction(step.source, "skipped", step.place, cause, size)]
    return [FileAction(step.source, "planned" if dry_run else "restored", step.place, size=size)]


def _put_back(item: Return, journal: Journal, before: os.stat_result, *, is_twice: bool) -> str:
    """Put a file back whose content was read; returns why that was not done, empty if it was.

    Raises:
        OSError: It cannot be moved there; what was in its place is there again.
    """
    step, held = item.step, item.held
    aside = aside_name(step.source)
    journal.write(replace(step, state="undoing"))
    if is_twice:
        remove_original(step.place, before)
    else:
        if os.path.lexists(step.source):
            _set_aside(step.source, aside)
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
    return _end(item, journal)


def _set_aside(path: str, aside: str) -> None:
    """Give what is in the way another name; OSError if that fails."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(path), os.lstat(aside)):
            # Where renaming is a second name and the loss of the first one, a crash leaves both.
            disk.unlink(path)
            return
    disk.rename_new(path, aside)


def _put_in_place_again(step: RemovalStep, held: FileState, journal: Journal) -> None:
    """After a file did not come back: what was in its place gets its name again, if nothing else has it."""
    aside = aside_name(step.source)
    if os.path.lexists(aside) and not os.path.lexists(step.source):
        with suppress(OSError):
            disk.rename_new(aside, step.source)
            disk.sync_folder(os.path.dirname(step.source))
    if os.path.lexists(step.place) and not held.is_at(step.source):
        journal.write(step)


def _end(item: Return, journal: Journal) -> str:
    """Remove the link that a file that is back replaced, and its note in the trash; then the step is undone. Returns
    what is in the way of that, empty for nothing."""
    step = item.step
    aside = aside_name(step.source)
    if os.path.lexists(aside):
        cause = _why_no_link(step, aside, None)
        if cause:
            return f"it is back, but {aside}, which was in its place, stays: {cause}"
        disk.unlink(aside)
        disk.sync_folder(os.path.dirname(aside))
    if trash.IS_WRITTEN_HERE:
        trash.release(step.place, step.source)
    else:
        trash_elsewhere.remove_note(step.place)
    journal.write(replace(step, state="undone"))
    return ""


def _end_without_place(item: Return, journal: Journal, *, dry_run: bool) -> list[FileAction]:
    """Undo a step whose file is not where the log says: it never left, or is back already, or somebody took it."""
    step = item.step
    here = item.held.is_at(step.source)
    cause = f"it is no longer in {step.place}"
    if not step.place:
        cause = "the trash does not tell where it is; open the trash, and restore the file there"
    try:
        if step.state == "begun" and os.path.lexists(step.source):
            if here and not dry_run:
                if step.place:
                    remove_partial(step.place)
                    trash.release(step.place, step.source)
                journal.write(replace(step, state="undone"))
            return []  # a step that had not begun has nothing to undo
        if step.state == "undoing" and here:
            cause = "" if dry_run else _end(item, journal)
    except OSError as error:
        cause = cause_of(error)
    if cause:
        return [FileAction(step.source, "skipped", step.place, cause)]
    return [FileAction(step.source, "planned" if dry_run else "restored", step.place, size=step.size)]


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
