"""Carry out a plan: move spare files away, with what belongs to them, one logged step at a time.

At every moment each file is whole at one of the places that the log names, so that after a power cut the same command
ends what it began.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace

from vidkin._base import disk
from vidkin._base.arguments import check_arguments
from vidkin._base.files import drive_name, is_within
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files.proof_record import Proof
from vidkin.index.duplicates import trash, trash_elsewhere
from vidkin.index.duplicates.companions import find_other_owner
from vidkin.index.duplicates.plans import DuplicatePlan, FileState, FolderState
from vidkin.index.duplicates.plans_signature import PlanKey
from vidkin.index.duplicates.removal_files import NOT_PLANNED, FileAction, PlannedFile, cause_of, planned_files
from vidkin.index.duplicates.removal_locks import hold_files, hold_removals
from vidkin.index.duplicates.removal_log import Journal, Link, RemovalStep
from vidkin.index.duplicates.removal_moves import (
    is_other_name,
    is_unchanged,
    move_file,
    remove_original,
    remove_partial,
    stat_of,
)
from vidkin.index.duplicates.removal_undo import Return, take_back

PathLike = str | os.PathLike[str]

# Endings of one container: the bytes of one are right under the name of the other.
_SAME_CONTAINER = (
    frozenset((".mp4", ".m4v")),
    frozenset((".mov", ".qt")),
    frozenset((".mpg", ".mpeg", ".mpe")),
    frozenset((".ts", ".m2ts", ".mts", ".m2t")),
    frozenset((".wmv", ".asf")),
    frozenset((".avi", ".divx")),
    frozenset((".ogv", ".ogm")),
    frozenset((".h264", ".264")),
    frozenset((".h265", ".265", ".hevc")),
    frozenset((".jpg", ".jpeg")),
)


@dataclass(frozen=True, slots=True)
class _Task:
    """What holds for all files of a run.

    Attributes:
        journal: The log.
        kept: Paths that the plan keeps.
        protected: Folders in which no file is touched.
        link: What to put in the place of a removed file.
        key: Key that must have signed an entry; None for any.
        prove: Decodes the kept and the removed file where the plan has no proof of them; None leaves such files alone.
        verified: Files to keep of which all bytes were read, with the facts of that moment.
    """

    journal: Journal
    kept: frozenset[str]
    protected: tuple[str, ...]
    link: Link
    key: PlanKey | None
    prove: Callable[[str, str], Proof] | None = None
    verified: dict[FileState, os.stat_result] = field(default_factory=dict)


@check_arguments
def apply_plan(
    plan: DuplicatePlan,
    journal: Journal,
    *,
    folder: PathLike | None = None,
    link: Link = "",
    protected: Sequence[PathLike] = (),
    dry_run: bool = False,
    key: PlanKey | None = None,
    prove: Callable[[str, str], Proof] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[FileAction]:
    """Move the files that a plan removes into a folder or the trash, with what belongs to them; nothing is deleted.

    A file is skipped, with the cause, and stays in place if it or the file to keep has changed since the plan was made,
    all bytes of both read, or is a symbolic link, if a folder of either is another one than then or is reached through
    another link, if both are the same file, if it is protected, if another process moves or keeps one of them, or if it
    cannot be moved or its link cannot be made. A step that a crash interrupted is finished, or cleaned up and begun
    again. With a link nothing that belongs to a file moves, as its name stays. A hard link is not made under a name for
    another container, such as ``film.webm`` for an MP4 file.

    Args:
        plan: What to do.
        journal: Receives the steps, for :func:`undo`.
        folder: Where the files go, each below its former path; None for the system's trash.
        link: Put a link to the kept file where the removed one was.
        protected: Folders in which no file is touched.
        dry_run: Only say what would be done.
        key: Skip what the index with this key has not signed; None for a plan that is your own.
        prove: Called with the kept and the removed path where the plan has no proof of exactly these bytes: in a plan
            that somebody wrote or changed. None skips such files.
        on_progress: Callback that receives (files done, total number of files); what it raises ends the run between
            two files.

    Raises:
        MediaError: The log cannot be read or written, or another process uses it; finished steps are in it.
        CollectionLockedError: Another removal of this user is at work.
        InvalidArgumentError: The folder is one of the files' own folders.
    """
    target = None if folder is None else os.path.abspath(os.path.expanduser(folder))
    entries = list(planned_files(plan))
    task = _Task(
        journal,
        frozenset(group.keep.path for group in plan.groups),
        tuple(os.path.realpath(os.path.expanduser(item)) for item in protected),
        link,
        key,
        prove,
    )
    places = ["" if target is None else _place_in(target, entry.path) for entry in entries]
    actions: list[FileAction] = []
    with nullcontext() if dry_run else journal.held(), nullcontext() if dry_run else hold_removals():
        earlier = {step.source: step for step in journal.steps()} if journal.path.exists() else {}
        for done, (entry, place) in enumerate(zip(entries, places, strict=True)):
            if on_progress is not None and done:
                on_progress(done, len(entries))
            if entry.video is not None and _stays_with(entry.video, actions, earlier):
                continue
            paths = () if dry_run else (entry.path, entry.keep.path)
            with hold_files(paths) as busy:
                action = (
                    FileAction(entry.path, "skipped", cause=f"another process moves or keeps {busy}; try again later")
                    if busy
                    else _remove(task, entry, place, earlier.get(entry.path), dry_run=dry_run)
                )
            video = "" if entry.video is None else entry.video.path
            actions.append(replace(action, size=entry.file.size, video=video))
    if on_progress is not None:
        on_progress(len(entries), len(entries))
    return actions


def _stays_with(video: FileState, actions: Sequence[FileAction], earlier: Mapping[str, RemovalStep]) -> bool:
    """Whether a video is where it was, or a link is, so that what belongs to it stays as well."""
    outcome = next(action.outcome for action in reversed(actions) if action.path == video.path)
    if outcome == "planned":
        return False
    step = earlier.get(video.path)
    was_moved = outcome == "removed" or (step is not None and step.state == "done")
    return not was_moved or os.path.lexists(video.path)


def _remove(task: _Task, entry: PlannedFile, place: str, earlier: RemovalStep | None, *, dry_run: bool) -> FileAction:
    """Carry out one entry of a plan, or finish what an earlier run began."""
    file, keep = entry.file, entry.keep
    cause = _why_never(task, entry)
    if cause:
        return FileAction(file.path, "skipped", cause=cause)
    if earlier is not None and earlier.state == "undoing":
        return FileAction(file.path, "skipped", cause="its undo was interrupted; run that first, with --undo")
    if earlier is not None and earlier.state == "begun" and not dry_run:
        action = _resume(task, entry, earlier)
        if action is not None:
            return action
    elif earlier is not None and earlier.state in ("begun", "done") and _has_left(earlier):
        cause = f"it was moved to {earlier.place or 'the trash'} before"
        return FileAction(file.path, "skipped", cause=cause)
    before = _check(task, entry)
    if isinstance(before, str):
        return FileAction(file.path, "skipped", cause=before)
    if dry_run:
        return FileAction(file.path, "planned", place)
    video = "" if entry.video is None else entry.video.path
    link: Link = "" if video else task.link
    identity = before.st_dev, before.st_ino
    step = RemovalStep(
        file.path, place, link, keep.path, "begun", file.size, file.content, keep.content, video, *identity
    )
    try:
        if place:
            task.journal.write(step)
            move_file(file, before, place)
        elif trash.IS_WRITTEN_HERE:
            for target in trash.choose_places(file.path):
                step = task.journal.write(replace(step, place=target))
                if _move_to_trash(file, before, target):
                    break
        elif is_unchanged(file.path, before):
            task.journal.write(step)
            step = replace(step, place=trash_elsewhere.send_to_trash(file.path))
        else:
            raise OSError(errno.EBUSY, "it changed since it was read")
    except OSError as error:
        if not step.place and trash.IS_WRITTEN_HERE:  # there is no trash, and nothing was begun
            return FileAction(file.path, "skipped", cause=cause_of(error))
        # What was at the new place before is not ours to clean up, even if it holds the same.
        is_ours = not isinstance(error, FileExistsError)
        return _give_up(task.journal, step, cause_of(error), is_ours=is_ours)
    return _put_link(task.journal, step)


def _move_to_trash(file: FileState, before: os.stat_result, place: str) -> bool:
    """Move a file to a name in the trash; False if another program took that meanwhile.

    Raises:
        OSError: It cannot be moved there.
    """
    with suppress(FileExistsError):
        trash.reserve(place, file.path)
        try:
            move_file(file, before, place)
        except FileExistsError:  # another program puts files there without a note
            trash.release(place, file.path)
        else:
            return True
    return False


def _why_never(task: _Task, entry: PlannedFile) -> str:
    """Why a file is not touched, whatever it holds; empty if it may be."""
    path = entry.path
    for folder in task.protected:
        if is_within(path, folder):
            return f"it is in {folder}, which is protected"
    if path in task.kept:
        return "the plan keeps it, too"
    if task.key is not None and not entry.is_signed(task.key):
        return NOT_PLANNED
    if entry.video is not None and (owner := find_other_owner(path, entry.video.path)):
        return f"it belongs to {owner} as well, which is beside it"
    return ""


def _check(task: _Task, entry: PlannedFile) -> os.stat_result | str:
    """The facts of a file that may be moved, all bytes of it and of the one to keep read; otherwise the cause."""
    file, keep = entry.file, entry.keep
    if not os.path.lexists(file.path):
        return "it is gone"
    cause = _why_other_folder("its folder", file)
    if not cause and entry.video is None:
        cause = _why_not_kept(task, keep)
    if cause:
        return cause
    before = stat_of(file)
    if isinstance(before, str):
        return before if before.startswith("it ") else f"it {before}"
    if entry.video is not None:
        return before
    if os.path.samefile(file.path, keep.path):
        return "it is the file to keep under another name"
    if cause := _why_not_proven(task, entry):
        return cause
    if task.link == "hard":
        return _why_no_hard_link(file.path, keep.path) or before
    return before


def _why_not_proven(task: _Task, entry: PlannedFile) -> str:
    """Why it is not proven that the file to keep holds everything in another one; empty if it is."""
    file, keep = entry.file, entry.keep
    if file.proof is not None and file.proof.is_of(keep, file):
        return ""
    if task.prove is None:
        return "the plan has no proof that the file to keep holds everything in it; make the plan again"
    proof = task.prove(keep.path, file.path)
    if (proof.kept_content, proof.removed_content) != (keep.content, file.content):
        return "it or the file to keep changed while they were decoded"
    return "; ".join(finding.text for finding in proof.findings)


def _why_no_hard_link(path: str, keep: str) -> str:
    """Why a hard link to the kept file cannot be where a file is; empty if it can."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.stat(keep).st_dev != os.stat(folder).st_dev:
        return f"a hard link cannot reach another disk, that of {keep}; use --link symbolic"
    kept, other = (os.path.splitext(name)[1].lower() for name in (keep, path))
    if kept != other and not any({kept, other} <= same for same in _SAME_CONTAINER):
        return (
            f"a hard link would put the bytes of a {kept or 'file without ending'} under the name of a "
            f"{other or 'file without ending'}; use --link symbolic, or no link"
        )
    return ""


def _why_other_folder(words: str, file: FileState) -> str:
    """Why a folder is not the one in which the plan saw a file; empty if it is, or if the plan does not say.

    Args:
        words: Name of the folder at the beginning of the sentence.
        file: A file of the plan.
    """
    if file.folder is None:
        return ""
    try:
        now = FolderState.of(file.path)
    except OSError:
        return ""  # reading the file says what is wrong
    if now.path != file.folder.path:
        return f"{words} was {file.folder.path} when the plan was made and leads to {now.path} now; make the plan again"
    if now != file.folder:
        return f"{words}, {now.path}, is another folder than when the plan was made; make the plan again"
    return ""


def _why_not_kept(task: _Task, keep: FileState) -> str:
    """What is wrong with the file to keep; empty if it is as it was. It is read once, and again after each change."""
    if cause := _why_other_folder("the folder of the file to keep", keep):
        return cause
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
        back = take_back(Return.of(step), journal, dry_run=False)
        if back and back[0].cause:
            cause += f"; it is in {step.place}: {back[0].cause}"
        return FileAction(step.source, "skipped", cause=cause)
    if step.place:
        with suppress(OSError):  # whoever took it meanwhile, it is gone from here
            moved = os.lstat(step.place)
            step = replace(step, device=moved.st_dev, inode=moved.st_ino)
    journal.write(replace(step, state="done"))
    return FileAction(step.source, "removed", step.place)


def _give_up(journal: Journal, step: RemovalStep, cause: str, *, is_ours: bool) -> FileAction:
    """Clean up after a move that failed, as far as nothing is lost, and note what is true.

    Args:
        journal: The log.
        step: The step.
        cause: Why it failed.
        is_ours: Whether what is at the new place was put there by this step.
    """
    held = FileState(step.source, step.size, 0, step.content)
    if not os.path.lexists(step.source):
        # It has its new name, and the disk failed after that: the step stays begun.
        return FileAction(step.source, "skipped", step.place, f"{cause}; run the same command again")
    if is_ours and step.place and trash.is_reserved(step.place, step.source) and held.is_at(step.place):
        if held.is_at(step.source) and is_other_name(step.source, step.place):
            with suppress(OSError):
                disk.unlink(step.place)
        else:
            cause += f"; what it held before is in {step.place}"
    with suppress(OSError):  # a note without a file is harmless
        trash.release(step.place, step.source)
    journal.write(replace(step, state="undone"))
    return FileAction(step.source, "skipped", cause=cause)


def _resume(task: _Task, entry: PlannedFile, step: RemovalStep) -> FileAction | None:
    """Finish a step that a crash interrupted; None if it is to begin again."""
    journal, file = task.journal, entry.file
    held = FileState(step.source, step.size, 0, step.content) if step.content else file
    here = held.is_at(step.source)
    if not step.place and not here:
        found = trash.find_in_trash(step.source, held, step.device, step.inode)
        step = replace(step, place=found or "")
    try:
        if not _has_arrived(step, held, here=here):
            if here:
                if step.place:
                    remove_partial(step.place)
                    trash.release(step.place, step.source)
                journal.write(replace(step, state="undone"))
            return None
        if here:
            before = _check(task, entry)
            if isinstance(before, str):
                return FileAction(step.source, "skipped", step.place, before)
            remove_original(step.source, before)
        elif not _has_left(step):
            cause = f"it was moved to {step.place}, and there is another file in its place"
            return FileAction(step.source, "skipped", step.place, cause)
        else:
            cause = "" if entry.video is not None else _why_not_kept(task, entry.keep)
            if cause:
                back = take_back(Return.of(step), journal, dry_run=False)
                where = step.place if any(action.cause for action in back) else ""
                return FileAction(step.source, "skipped", where, cause)
        disk.sync_folder(os.path.dirname(step.source))
    except OSError as error:
        return FileAction(step.source, "skipped", step.place, cause_of(error))
    return _put_link(journal, step)


def _has_arrived(step: RemovalStep, held: FileState, *, here: bool) -> bool:
    """Whether a file is at its new place, perhaps besides its old one; OSError if that cannot be told."""
    if not step.place or not held.is_at(step.place):
        return False
    if not here:
        return True
    # What another program has put there under a note of its own is another file, whatever it holds.
    return trash.is_reserved(step.place, step.source) and is_other_name(step.source, step.place)


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
