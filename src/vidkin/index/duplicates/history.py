"""Removal history of an index: executed plans, kept with their logs so that each can be undone."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal

from vidkin._base.arguments import check_constructor
from vidkin._base.files import PathLike, check_file_name, write_text
from vidkin._base.values import Result, read_json
from vidkin.errors import InvalidArgumentError, MediaError, NotIndexedError, VidkinError
from vidkin.files.apply import apply_plan
from vidkin.files.journal import Journal, StepState
from vidkin.files.plan import DuplicatePlan, FileAction, PlannedGroup, read_plan, write_plan
from vidkin.files.undo import undo_plan
from vidkin.index.duplicates.members import DuplicateGroup
from vidkin.index.duplicates.planning import plan_removal, reasons_to_keep
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord

_logger = logging.getLogger(__name__)

FileFate = Literal["removed", "restored", "unfinished", "stayed"]

_FATES: dict[StepState, FileFate] = {
    "begun": "unfinished",
    "done": "removed",
    "undoing": "unfinished",
    "undone": "restored",
}
_NAME = re.compile(r"(\d{4}-\d\d-\d\d-\d{6}(?:-\d{1,4})?)(\.applied)?\.json")
_MAX_PER_SECOND = 1000


@dataclass(frozen=True, slots=True)
class RemovedFile(Result):
    """One file of a removal.

    Attributes:
        path: Original path of the file.
        kept: The file that was kept instead.
        size: Size in bytes.
        fate: ``removed``; ``restored``: removed and later moved back; ``unfinished``: the move was interrupted;
            ``stayed``: the file was skipped.
        place: Current path of a removed file; empty if the trash does not report it, or the file was not moved.
    """

    path: str
    kept: str
    size: int
    fate: FileFate
    place: str = ""


@dataclass(frozen=True, slots=True)
class Removal(Result):
    """An executed removal plan.

    Attributes:
        name: Identifies the removal within the index, for example ``2026-01-31-120000``.
        created: When the plan was created, as an ISO 8601 time.
        plan: Path of the plan file, which ``vidkin apply PLAN --undo`` also accepts.
        files: The files of the plan, in order.
    """

    derived: ClassVar = ("can_undo",)

    name: str
    created: str
    plan: str
    files: tuple[RemovedFile, ...]

    @property
    def can_undo(self) -> bool:
        """Whether any file of the removal can be restored."""
        return any(file.fate in ("removed", "unfinished") for file in self.files)


@check_constructor
class Removals:
    """The removals of an index. Each plan is saved in the index's folder ``removals``, with its log next to it.

    If ``vidkin apply`` executes a plan from another folder, a file ``<name>.applied.json`` records its path, so that
    every plan has a single log, next to the plan.

    Args:
        place: Location of the index, which must be a folder.

    Raises:
        InvalidArgumentError: The index is on object storage.
    """

    FOLDER = "removals"

    def __init__(self, place: Place) -> None:
        if place.folder is None:
            raise InvalidArgumentError(f"the index must be a folder to remove its files, got {place.uri}")
        self._place = place
        self._folder = place.folder / self.FOLDER

    def carry_out(
        self,
        groups: Sequence[DuplicateGroup],
        *,
        folder: PathLike | None = None,
        records: Iterable[VideoRecord] | None = None,
        on_progress: Callable[[int, int, str], None] | None = None,
    ) -> tuple[Removal | None, list[FileAction]]:
        """Plan the removal of the spare files in groups, save the plan, and execute it.

        Args:
            groups: Groups with the best file and the files to remove, as proven by this process; files that are not
                spare are kept.
            folder: Destination of the files; None for the trash.
            records: Records of the index; files that have changed since they were indexed are kept.
            on_progress: Callback that receives (steps done, total number of steps, description): one step to read each
                group, and one to move each file. Raising an exception stops the run; files moved so far are logged.

        Returns:
            The removal (None if nothing could be planned), and the outcome for each file.

        Raises:
            CollectionLockedError: Another process is writing to the index.
            InvalidArgumentError: The folder contains one of the files.
            MediaError: The plan or its log cannot be written.
        """
        known = {record.path: record for record in records or ()}
        report = on_progress or _ignore
        planned, skipped = list[PlannedGroup](), list[FileAction]()
        with self._place.exclusive():
            for position, group in enumerate(groups):
                report(
                    position,
                    sum(len(each.members) for each in groups),
                    f"reading {os.path.basename(group.best.path)}",
                )
                members = [known[member.path] for member in group.members if member.path in known]
                reasons: dict[str, str | None] = {}
                try:
                    found = plan_removal([group], records=members).groups
                    planned += found
                    if not found:
                        reasons = reasons_to_keep(group, known=known)
                except MediaError as error:
                    reasons = {member.path: str(error) for member in group.members if not member.best}
                skipped += [FileAction(path, "skipped", cause=why) for path, why in reasons.items() if why]
            if not planned:
                return None, skipped
            staying = [FileAction(one.path, "skipped", cause=one.why) for group in planned for one in group.stay]
            plan = DuplicatePlan(tuple(planned), datetime.now().astimezone().isoformat(timespec="seconds"))
            name, path = self._new_file()
            write_plan(plan, path)
            # The plan already lists the accepted findings (for missing frames, pair by pair), so they are dropped here.
            proofs = {
                (member.kept_by, member.path): replace(member.proof, findings=())
                for group in groups
                for member in group.members
                if member.proof is not None
            }
            actions = apply_plan(
                plan,
                Journal.of_plan(path),
                prove=lambda kept, removed: proofs[kept, removed],
                folder=folder,
                on_progress=lambda done, count: report(len(groups) + done, len(groups) + count, "moving"),
            )
        return self._read(name), [*actions, *staying, *skipped]

    def remember(self, plan: Path) -> None:
        """Add a plan from another folder to the history before it is executed, unless it was added already.

        The caller must hold the write lock of the index.

        Args:
            plan: Path of the plan, with symbolic links resolved.

        Raises:
            MediaError: The plan cannot be read, or the index cannot be written.
            InvalidArgumentError: The file is not a plan, or the history folder cannot be used.
        """
        if plan.parent == self._folder.resolve():
            return
        entry = {"plan": os.fspath(plan), "created": read_plan(plan).created}
        if all(self._pointer(name) != entry for name in self._names()):
            name, path = self._new_file()
            write_text(path.with_name(f"{name}.applied.json"), json.dumps(entry) + "\n")

    def undo(self, name: str, *, paths: Sequence[str] | None = None) -> list[FileAction]:
        """Restore the files of a removal.

        Args:
            name: Name of the removal.
            paths: Only restore these files; None for all.

        Raises:
            NotIndexedError: There is no such removal.
            CollectionLockedError: Another process is writing to the index.
            MediaError: The log cannot be read or written.
        """
        with self._place.exclusive():
            plan, path = self._open(name)
            if paths is not None:
                chosen = set(paths)
                groups = (
                    replace(group, remove=tuple(file for file in group.remove if file.path in chosen))
                    for group in plan.groups
                )
                plan = replace(plan, groups=tuple(group for group in groups if group.remove))
            actions = undo_plan(Journal.of_plan(path), plan=plan)
        return [action for action in actions if paths is None or {action.path, action.video} & chosen]

    def all(self, *, limit: int = 100) -> list[Removal]:
        """Return the removals of the index, newest first; unreadable removals are skipped with a warning."""
        removals = []
        for name in sorted(self._names(), reverse=True)[:limit]:
            try:
                removals.append(self._read(name))
            except VidkinError as error:  # a plan in another folder may have been deleted or replaced
                _logger.warning("%s", error)
        return removals

    def _names(self) -> Iterator[str]:
        try:
            entries = sorted(self._folder.iterdir())
        except OSError:
            return
        for entry in entries:
            if (match := _NAME.fullmatch(entry.name)) and not entry.is_symlink():
                yield match[1]

    def _pointer(self, name: str) -> dict[str, str] | None:
        """Return path and creation time of a plan in another folder; None if the plan is in the index.

        Raises:
            InvalidArgumentError: The file that records the path is damaged.
        """
        path = self._folder / f"{name}.applied.json"
        if path.is_symlink() or not path.is_file():
            return None
        try:
            table = read_json(path)
            return {"plan": check_file_name("plan", table["plan"]), "created": str(table["created"])}
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InvalidArgumentError(
                f"{path} is damaged ({error}); delete it to drop this removal from the history"
            ) from error

    def _new_file(self) -> tuple[str, Path]:
        """Return an unused name for a removal, and the path for its plan."""
        self._folder.mkdir(exist_ok=True)
        if self._folder.is_symlink():
            raise InvalidArgumentError(f"{self._folder} must be a folder, got a symbolic link; remove it")
        now, taken = f"{datetime.now():%Y-%m-%d-%H%M%S}", set(self._names())
        for name in (now, *(f"{now}-{number}" for number in range(1, _MAX_PER_SECOND))):
            path = self._folder / f"{name}.json"
            if name not in taken and not os.path.lexists(path) and not os.path.lexists(Journal.of_plan(path).path):
                return name, path
        raise InvalidArgumentError(f"{self._folder} already has {_MAX_PER_SECOND} plans from this second; try again")

    def _open(self, name: str) -> tuple[DuplicatePlan, Path]:
        if name not in self._names():
            raise NotIndexedError(f"there is no removal {name!r} in this index; reload the history")
        pointer = self._pointer(name)
        path = self._folder / f"{name}.json" if pointer is None else Path(pointer["plan"])
        plan = read_plan(path)
        if pointer is not None and plan.created != pointer["created"]:
            raise InvalidArgumentError(f"{path} is no longer the plan that was executed; the file was replaced")
        return plan, path

    def _read(self, name: str) -> Removal:
        plan, path = self._open(name)
        journal = Journal.of_plan(path)
        steps = {step.source: step for step in journal.steps()} if journal.path.exists() else {}
        files = []
        for group in plan.groups:
            for file in group.remove:
                step = steps.get(file.path)
                fate = "stayed" if step is None else _FATES[step.state]
                place = step.place if step is not None and fate in ("removed", "unfinished") else ""
                files.append(RemovedFile(file.path, group.keep.path, file.size, fate, place))
        return Removal(name, plan.created, os.fspath(path), tuple(files))


def _ignore(done: int, total: int, what: str) -> None:
    """Do nothing; used if the caller passes no progress callback."""
