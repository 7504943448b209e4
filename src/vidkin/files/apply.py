"""Carry out a plan: move duplicate files away, along with their companions, one logged step at a time.

At every moment, each file is complete at one of the locations in the log. A step interrupted by a crash is undone by
:func:`vidkin.files.undo.undo_step` and then started again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, drive_name, is_within
from vidkin.errors import InvalidArgumentError
from vidkin.files import trash
from vidkin.files.companions import find_other_owner
from vidkin.files.findings import NEVER_ACCEPTED
from vidkin.files.journal import Journal, Link, RemovalStep
from vidkin.files.locks import hold_files, hold_removals
from vidkin.files.moving import is_unchanged, move_file, read_unchanged
from vidkin.files.plan import DuplicatePlan, FileAction, FileState, PlannedFile, folder_of, planned_files
from vidkin.files.proof_record import Proof
from vidkin.files.undo import describe_error, is_gone, make_link, undo_step


@dataclass(frozen=True, slots=True)
class _Task:
    """State shared by all files of a run: the arguments of :func:`apply_plan`, and the files verified so far.

    Attributes:
        kept: Paths that the plan keeps.
        verified: Files to keep whose bytes have all been read, with their file status at that moment.
    """

    journal: Journal
    protected: tuple[str, ...]
    link: Link
    prove: Callable[[str, str], Proof]
    kept: frozenset[str]
    verified: dict[FileState, os.stat_result] = field(default_factory=dict)


@check_arguments
def apply_plan(
    plan: DuplicatePlan,
    journal: Journal,
    *,
    prove: Callable[[str, str], Proof],
    folder: PathLike | None = None,
    link: Link = "",
    protected: Sequence[PathLike] = (),
    dry_run: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[FileAction]:
    """Move the files that a plan removes, along with their companions, to a folder or the trash; delete nothing.

    A file is skipped with a cause, and stays in place, if it or the file to keep has changed since the plan was made
    (all bytes of both are read) or is a symbolic link, if the folder of either was replaced or is now reached through
    another link, if both are the same file, if it is protected, if another process is moving or keeping one of them,
    or if the file cannot be moved or its link cannot be created. With a link, companions stay in place, because the
    name of the file stays. A hard link is not created under a name with another extension, such as ``film.webm`` for
    an MP4 file.

    Args:
        plan: The plan.
        journal: Log that records the steps, for :func:`vidkin.files.undo_plan`.
        prove: Called with the kept and the removed path, unless both files have the same bytes; for example,
            :func:`vidkin.index.prove_pair`. All its findings must be accepted in the plan; missing frames are never
            accepted.
        folder: Destination, in which each file keeps its full path; None for the system's trash.
        link: Replace each removed file with a link to the kept file.
        protected: Folders whose files are left alone.
        dry_run: Only report the actions.
        on_progress: Callback that receives (files done, total number of files); an exception raised by it ends the
            run between two files.

    Raises:
        MediaError: The log cannot be read or written; completed steps are recorded in it.
        CollectionLockedError: Another removal by this user is running.
        InvalidArgumentError: The destination contains one of the files.
    """
    target = None if folder is None else os.path.abspath(os.path.expanduser(folder))
    entries = list(planned_files(plan))
    task = _Task(
        journal,
        tuple(os.path.realpath(os.path.expanduser(item)) for item in protected),
        link,
        prove,
        frozenset(group.keep.path for group in plan.groups),
    )
    places = ["" if target is None else _path_in(target, entry.file.path) for entry in entries]
    actions: list[FileAction] = []
    with nullcontext() if dry_run else hold_removals():
        earlier = {step.source: step for step in journal.steps()} if journal.path.exists() else {}
        moved = {step.source for step in earlier.values() if step.state == "done"}
        for done, (entry, place) in enumerate(zip(entries, places, strict=True)):
            if on_progress is not None and done:
                on_progress(done, len(entries))
            # Companions of a video stay with it, or with the link that replaces it.
            if entry.video and (entry.video not in moved or (os.path.lexists(entry.video) and not dry_run)):
                continue
            path = entry.file.path
            with hold_files(() if dry_run else (path, entry.keep.path)) as cause:
                action = FileAction(path, "skipped", cause=cause)
                if not cause:
                    action = _remove(task, entry, place, earlier.get(path), dry_run=dry_run)
            actions.append(replace(action, size=entry.file.size, video=entry.video))
            if action.outcome != "skipped":
                moved.add(path)
    if on_progress is not None:
        on_progress(len(entries), len(entries))
    return actions


def _remove(task: _Task, entry: PlannedFile, place: str, earlier: RemovalStep | None, *, dry_run: bool) -> FileAction:
    """Carry out one entry of a plan, after undoing a step that an earlier run left unfinished."""
    file, keep = entry.file, entry.keep
    if cause := _permanent_refusal(task, entry):
        return FileAction(file.path, "skipped", cause=cause)
    if earlier is not None and earlier.state in ("begun", "undoing") and not dry_run:
        back = undo_step(task.journal, earlier)
        if back is not None and back.cause:
            return back
    elif earlier is not None and earlier.state == "done" and is_gone(earlier):
        return FileAction(file.path, "skipped", cause=f"it was already moved to {earlier.place or 'the trash'}")
    before = _check(task, entry)
    if isinstance(before, str):
        return FileAction(file.path, "skipped", cause=before)
    if dry_run:
        return FileAction(file.path, "planned", place)
    to_trash = not place
    try:
        if to_trash and trash.is_written_here():
            place = trash.choose_place(file.path)
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, f"{place} already exists; choose another folder")
    except OSError as error:
        return FileAction(file.path, "skipped", cause=describe_error(error))
    link: Link = "" if entry.video else task.link
    facts = file.size, file.content, keep.content, entry.video, before.st_ino, to_trash
    step = task.journal.write(RemovalStep(file.path, place, link, keep.path, "begun", *facts))
    try:
        if place:
            if to_trash:
                trash.reserve(place, file.path)
            move_file(file.path, before, file.content, place)
        elif is_unchanged(file.path, before):
            trash.send(file.path)
            step = replace(step, place=trash.find_in_trash(file.path, file.size, file.content, before.st_ino))
        else:
            raise OSError(errno.EBUSY, "it has changed since it was read")
    except OSError as error:
        return _roll_back(task.journal, step, describe_error(error), is_taken=isinstance(error, FileExistsError))
    try:
        make_link(step)
    except OSError as error:
        cause = f"a link to {step.kept} cannot be created: {error.strerror or error}"
        return _roll_back(task.journal, step, cause)
    with suppress(OSError):  # another program may have moved the file
        step = replace(step, inode=os.lstat(step.place).st_ino)
    task.journal.write(replace(step, state="done"))
    return FileAction(file.path, "removed", step.place)


def _roll_back(journal: Journal, step: RemovalStep, cause: str, *, is_taken: bool = False) -> FileAction:
    """Undo a step that failed.

    Args:
        journal: The log.
        step: The step.
        cause: Why the step failed.
        is_taken: Whether another program took the new name in the meantime, so that the file there is not ours.
    """
    if is_taken:
        journal.write(replace(step, state="undone"))
        return FileAction(step.source, "skipped", cause=cause)
    back = undo_step(journal, step)
    place = "" if back is None or not back.cause else step.place
    if back is not None and back.cause:
        cause += f"; it is in {place or 'the trash'}: {back.cause}"
    return FileAction(step.source, "skipped", place, cause)


def _permanent_refusal(task: _Task, entry: PlannedFile) -> str:
    """Return the reason a file must not be moved, regardless of its content, or "" if it may be moved."""
    for folder in task.protected:
        if is_within(entry.file.path, folder):
            return f"it is in {folder}, which is protected"
    if entry.file.path in task.kept:
        return "the plan also keeps it"
    if entry.video and (owner := find_other_owner(entry.file.path, entry.video)):
        return f"it also belongs to {owner}, which is next to it"
    return ""


def _check(task: _Task, entry: PlannedFile) -> os.stat_result | str:
    """Read all bytes of a file and return its status if it may be moved, otherwise the reason it must not be moved."""
    file, keep = entry.file, entry.keep
    if cause := _folder_mismatch("its folder", file) or ("" if entry.video else _kept_file_problem(task, keep)):
        return cause
    before = read_unchanged(file)
    if isinstance(before, str):
        return f"it {before}"
    if entry.video:
        return before
    if os.path.samefile(file.path, keep.path):
        return "it is the file to keep under another name"
    if task.link == "hard" and (cause := _hard_link_refusal(file.path, keep.path)):
        return cause
    return _proof_failure(task, entry) or _kept_file_problem(task, keep) or before


def _proof_failure(task: _Task, entry: PlannedFile) -> str:
    """Return what prevents a proof that the file to keep contains everything in another file, or "" if it does."""
    file, keep = entry.file, entry.keep
    if file.content == keep.content:
        return ""
    proof = task.prove(keep.path, file.path)
    missing = [one.text for one in proof.findings if one.kind in NEVER_ACCEPTED or one.text not in file.accepted]
    if not missing and (proof.kept_content, proof.removed_content) != (keep.content, file.content):
        return "it or the file to keep changed while they were decoded"
    return "; ".join(missing)


def _hard_link_refusal(path: str, keep: str) -> str:
    """Return the reason a file cannot be replaced with a hard link to the kept file, or "" if it can."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.stat(keep).st_dev != os.stat(folder).st_dev:
        return f"a hard link cannot point to {keep}, which is on another disk; use --link symbolic"
    kept, other = (os.path.splitext(name)[1].lower() or "no extension" for name in (keep, path))
    if kept != other:
        return f"its extension ({other}) differs from that of the file to keep ({kept}); use --link symbolic"
    return ""


def _folder_mismatch(words: str, file: FileState) -> str:
    """Return how the folder of a file differs from the one in the plan, or "" if it is the same.

    Args:
        words: Name of the folder, for the start of the message.
        file: A file of the plan.
    """
    folder, number = file.folder, file.folder_number
    with suppress(OSError):  # reading the file reports the problem
        folder, number = folder_of(file.path)
    if folder != file.folder:
        return f"{words} was {file.folder} when the plan was made and is now {folder}; create the plan again"
    if number != file.folder_number:
        return f"{words}, {folder}, was replaced after the plan was made; create the plan again"
    return ""


def _kept_file_problem(task: _Task, keep: FileState) -> str:
    """Return what is wrong with the file to keep, or "" if it is unchanged. It is read once, and after each change."""
    if cause := _folder_mismatch("the folder of the file to keep", keep):
        return cause
    with suppress(OSError):
        if keep in task.verified and is_unchanged(keep.path, task.verified[keep]):
            return ""
    now = read_unchanged(keep)
    if isinstance(now, str):
        return f"the file to keep, {keep.path}, {now}"
    task.verified[keep] = now
    return ""


def _path_in(folder: str, path: str) -> str:
    """Return the new path of a file: its full path inside the folder, so that files never collide."""
    if is_within(path, folder):
        raise InvalidArgumentError(f"the folder for removed files must contain none of them, got {folder} for {path}")
    drive, rest = os.path.splitdrive(path)
    return os.path.join(folder, drive_name(drive), rest.lstrip("\\/"))
