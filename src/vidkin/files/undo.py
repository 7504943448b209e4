"""Undo a removal, last step first.

A file that is in the way is renamed, and is removed only if it is known to be a link made by vidkin whose content also
exists under another name.
"""

from __future__ import annotations

import os
import stat
from contextlib import nullcontext
from dataclasses import replace

from vidkin._base import disk
from vidkin._base.arguments import check_arguments
from vidkin._base.files import hash_file
from vidkin.files import moving, trash
from vidkin.files.journal import Journal, RemovalStep
from vidkin.files.locks import hold_files, hold_removals
from vidkin.files.plan import DuplicatePlan, FileAction, PlannedFile, planned_files


@check_arguments
def undo_plan(journal: Journal, *, plan: DuplicatePlan | None = None, dry_run: bool = False) -> list[FileAction]:
    """Undo every step of a log, last step first; steps that have already been undone are skipped.

    A file is restored only if it is identical, byte for byte, to the file that was moved away, and only if its original
    path is free or holds the link that replaced it. Otherwise, it is skipped with a cause and left unchanged.

    Args:
        journal: Log written by :func:`apply_plan`.
        plan: The plan; steps that are not part of it are skipped. None for a trusted log.
        dry_run: Only report the actions.

    Raises:
        MediaError: The log cannot be read or written.
        CollectionLockedError: Another removal by this user is running.
    """
    planned = None if plan is None else {(entry.file.path, entry.keep.path): entry for entry in planned_files(plan)}
    actions: list[FileAction] = []
    with nullcontext() if dry_run else hold_removals():
        for step in reversed(journal.steps()):
            if step.state == "undone":
                continue
            cause = "" if planned is None else _plan_mismatch_reason(step, planned.get((step.source, step.kept)))
            with hold_files(() if dry_run or cause else (step.kept, step.place)) as busy:
                if cause := cause or busy:
                    actions.append(FileAction(step.source, "skipped", step.place, cause, video=step.video))
                elif (action := undo_step(journal, step, dry_run=dry_run)) is not None:
                    actions.append(action)
    return actions


def undo_step(journal: Journal, step: RemovalStep, *, dry_run: bool = False) -> FileAction | None:
    """Undo one step, even if a crash interrupted it at any point; return None for a step that had not begun.

    Raises:
        MediaError: The log cannot be written.
    """
    # After a complete copy to another disk, the original may still exist; a hard link can have the same content.
    is_here = (
        step.state != "done"
        and moving.read_matching(step.source, step.size, step.content) is not None
        and link_mismatch_reason(step, step.source) != ""
    )
    before = moving.read_matching(step.place, step.size, step.content)
    if before is None and step.in_trash and not is_here:
        step = replace(step, place=trash.find_in_trash(step.source, step.size, step.content, step.inode) or step.place)
        before = moving.read_matching(step.place, step.size, step.content)
    cause = ""
    if not is_here and before is None:
        if step.state == "begun" and os.path.lexists(step.source):
            return None
        cause = f"it is no longer in {step.place}"
        if not step.place:
            cause = "the trash does not report where it is; open the trash, and restore the file there"
        elif os.path.lexists(step.place):
            cause = f"{step.place} is not the file that was moved there"
    elif not is_here and os.path.lexists(step.source):
        cause = link_mismatch_reason(step, step.source, read=True)
    if not cause and not dry_run:
        try:
            cause = _restore(journal, step, before, is_here=is_here)
        except OSError as error:
            cause = describe_error(error)
    if cause:
        return FileAction(step.source, "skipped", step.place, cause, step.size, step.video)
    if is_here and step.state == "begun":
        return None
    return FileAction(step.source, "planned" if dry_run else "restored", step.place, "", step.size, step.video)


def link_mismatch_reason(step: RemovalStep, path: str, *, read: bool = False) -> str:
    """Return the reason the file at ``path`` is not the link created by ``step``, or "" if it is and can be removed.

    A hard link created by vidkin is a regular file: an additional name of the kept file.

    Args:
        step: The step.
        path: Path where the link should be.
        read: Whether to check as well that the content of a hard link equals the recorded content of the kept file.
    """
    other = "there is another file in its place"
    try:
        status = os.lstat(path)
        if step.link == "symbolic":
            return "" if stat.S_ISLNK(status.st_mode) and disk.read_link(path) == step.kept else other
        if step.link != "hard" or not stat.S_ISREG(status.st_mode):
            return other
        kept = os.lstat(step.kept)
        if not stat.S_ISREG(kept.st_mode) or not os.path.samestat(status, kept):
            return f"{other}, not a link to {step.kept}"
        if status.st_nlink < 2 or moving.real_path(path) == moving.real_path(step.kept):
            return "the file in its place has no other name"
        if read and hash_file(path) != step.kept_content:
            return "the file in its place has changed since the link was made"
    except OSError as error:
        return f"{other}: {error.strerror or error}"
    return ""


def is_gone(step: RemovalStep) -> bool:
    """Whether the original path of a file is free or holds the link that replaced the file."""
    return not os.path.lexists(step.source) or not link_mismatch_reason(step, step.source)


def make_link(step: RemovalStep) -> None:
    """Create the link of a step at the original path, if the step has one; raise OSError if the system refuses."""
    if step.link:
        (disk.link if step.link == "hard" else disk.symlink)(step.kept, step.source)
        disk.sync_folder(os.path.dirname(step.source))


def describe_error(error: OSError) -> str:
    """Describe why a file was not moved."""
    return f"it cannot be moved: {error.strerror or error}"


def _plan_mismatch_reason(step: RemovalStep, entry: PlannedFile | None) -> str:
    """Return the reason a step of a log is not part of a plan, or "" if it is."""
    if entry is None or step.video != entry.video:
        return "the plan does not list it with this file to keep"
    if (step.size, step.content) != (entry.file.size, entry.file.content):
        return "the plan and the log record different contents"
    return ""


def _restore(journal: Journal, step: RemovalStep, before: os.stat_result | None, *, is_here: bool) -> str:
    """Move a file back, and remove its replacement and any remains of a crash; return the reason if this is refused.

    Args:
        journal: The log.
        step: The step.
        before: Status of the file at its new path, after reading all of it; None if it is not there.
        is_here: Whether the file is at its original path.

    Raises:
        OSError: The system refuses; the same call can be repeated to finish.
    """
    aside = moving.hidden_name(step.source, "aside")
    cause = _remove_link(step, aside)
    if not is_here:
        journal.write(replace(step, state="undoing"))
        if not cause and os.path.lexists(step.source):
            # The file in the way is renamed first, so that the file that is checked is the file that is removed.
            disk.rename_new(step.source, aside)
            cause = _remove_link(step, aside)
    if cause:
        if not os.path.lexists(step.source):
            disk.rename_new(aside, step.source)
        return cause
    if not is_here and before is not None:
        moving.move_file(step.place, before, step.content, step.source)
    elif (
        before is not None
        and moving.is_other_name(step.source, step.place)
        and (not step.in_trash or trash.is_reserved(step.place, step.source))
    ):
        moving.remove_original(step.place, before)
    if step.place:
        moving.remove_partial(step.place)
        if step.in_trash:
            trash.release(step.place, step.source)
    journal.write(replace(step, state="undone"))
    return ""


def _remove_link(step: RemovalStep, path: str) -> str:
    """Remove the link of a step from a path, if a file exists; return the reason if the file is not that link.

    Raises:
        OSError: The system refuses.
    """
    if not os.path.lexists(path):
        return ""
    cause = link_mismatch_reason(step, path)
    if not cause:
        disk.unlink(path)
        disk.sync_folder(os.path.dirname(path))
    return cause
