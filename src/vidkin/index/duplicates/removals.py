"""Removals of an index: plans that were carried out from it, kept with their logs so that each can be undone."""

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
from vidkin._base.files import check_file_name, write_text
from vidkin._base.values import Result, read_json
from vidkin.errors import InvalidArgumentError, MediaError, NotIndexedError, VidkinError
from vidkin.index.duplicates.members import DuplicateGroup
from vidkin.index.duplicates.plans import (
    DuplicatePlan,
    PlannedGroup,
    plan_removal,
    read_plan,
    why_files_stay,
    write_plan,
)
from vidkin.index.duplicates.plans_signature import PlanKey, sign_plan
from vidkin.index.duplicates.removal import apply_plan
from vidkin.index.duplicates.removal_files import FileAction
from vidkin.index.duplicates.removal_log import Journal, StepState
from vidkin.index.duplicates.removal_undo import undo
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
_NAME = re.compile(r"\d{4}-\d\d-\d\d-\d{6}(-\d{1,4})?")
_APPLIED = ".applied.json"
_MOST_OF_A_SECOND = 1000


@dataclass(frozen=True, slots=True)
class RemovedFile(Result):
    """One file of a removal.

    Attributes:
        path: Where it was.
        kept: The file that was kept instead.
        size: Bytes.
        fate: ``removed``; ``restored``: it was removed and is back; ``unfinished``: the machine stopped meanwhile;
            ``stayed``: it was skipped.
        place: Where it is now; empty if the trash does not tell, or it is where it was.
    """

    path: str
    kept: str
    size: int
    fate: FileFate
    place: str = ""


@dataclass(frozen=True, slots=True)
class Removal(Result):
    """A plan that was carried out.

    Attributes:
        name: Names it within the index, for example ``2026-01-31-120000``.
        created: ISO 8601 time.
        plan: The plan's file; ``vidkin apply PLAN --undo`` takes it back as well.
        files: Its files, in the order of the plan.
    """

    derived: ClassVar = ("can_undo",)

    name: str
    created: str
    plan: str
    files: tuple[RemovedFile, ...]

    @property
    def can_undo(self) -> bool:
        """Whether a file of it is away."""
        return any(file.fate in ("removed", "unfinished") for file in self.files)


@check_constructor
class Removals:
    """What was removed from an index: each plan is in the folder ``removals`` of the index, its log beside it.

    The plans, their signatures and logs are those of ``vidkin duplicates --plan`` and ``vidkin apply``, which can also
    undo them. A plan elsewhere that ``vidkin apply`` carries out is named here by a file ``<name>.applied.json`` with
    its path: there is one log of each plan, beside it, whoever takes it back.

    Args:
        place: Place of the index, a folder.

    Raises:
        InvalidArgumentError: The index is on object storage.
    """

    FOLDER = "removals"

    def __init__(self, place: Place) -> None:
        if place.folder is None:
            raise InvalidArgumentError(f"an index must be in a folder to remove files from it, got {place.uri}")
        self._place = place
        self._folder = place.folder / self.FOLDER

    def carry_out(
        self,
        groups: Sequence[DuplicateGroup],
        *,
        folder: str | os.PathLike[str] | None = None,
        records: Iterable[VideoRecord] | None = None,
        on_progress: Callable[[int, int, str], None] | None = None,
    ) -> tuple[Removal | None, list[FileAction]]:
        """Plan the removal of the spare files of groups, sign and store the plan, and carry it out.

        Args:
            groups: Of each, the best file and those to be removed; what is not spare stays.
            folder: Where the files go; None for the trash.
            records: Records of the index: files that have changed since stay.
            on_progress: Callback that receives (steps done, total number of steps, what is being done): a step to read
                a group, and one to move a file. What it raises ends the run; what was moved is in the log.

        Returns:
            The removal, None if nothing could be planned; and what happened to each file.

        Raises:
            CollectionLockedError: Another process writes to the index.
            InvalidArgumentError: The folder holds one of the files.
            MediaError: The plan or its log cannot be written.
        """
        total = sum(len(group.members) for group in groups)
        known = {record.path: record for record in records or ()}

        def report(done: int, what: str, total: int = total) -> None:
            if on_progress is not None:
                on_progress(done, total, what)

        with self._place.exclusive():
            planned, skipped = list[PlannedGroup](), list[FileAction]()
            for position, group in enumerate(groups):
                report(position, f"reading {os.path.basename(group.best.path)}")
                members = [known[member.path] for member in group.members if member.path in known]
                try:
                    found = plan_removal([group], records=members).groups
                    planned += found
                    if not found:
                        reasons = why_files_stay(group, known=known)
                        skipped += [FileAction(path, "skipped", cause=why) for path, why in reasons.items() if why]
                except MediaError as error:
                    causes = [member.path for member in group.members if not member.best]
                    skipped += [FileAction(path, "skipped", cause=str(error)) for path in causes]
            plan = DuplicatePlan(tuple(planned), datetime.now().astimezone().isoformat(timespec="seconds"))
            staying = [FileAction(file.path, "skipped", cause=file.why) for group in planned for file in group.stay]
            if not planned:
                return None, skipped
            plan = sign_plan(plan, self._place)
            name, path = self._new_file()
            write_plan(plan, path)
            key = PlanKey.read(self._place)
            actions = apply_plan(
                plan,
                Journal.of_plan(path),
                folder=folder,
                key=key,
                on_progress=lambda done, count: report(len(groups) + done, "moving", len(groups) + count),
            )
        return self._read(name), [*actions, *staying, *skipped]

    def remember(self, plan: Path) -> None:
        """Name a plan that is elsewhere in the history, before it is carried out; nothing if it is named already.

        The caller holds the lock of the index.

        Args:
            plan: Path of the plan, without links.

        Raises:
            MediaError: The plan cannot be read, or the index cannot be written.
            InvalidArgumentError: It is not a plan, or the index has no folder for this.
        """
        if plan.parent == self._folder.resolve():
            return
        created = read_plan(plan).created
        entry = {"plan": os.fspath(plan), "created": created}
        if any(self._pointer(name) == entry for name in self._names()):
            return
        name, path = self._new_file()
        write_text(path.with_name(f"{name}{_APPLIED}"), json.dumps(entry) + "\n")

    def undo(self, name: str, *, paths: Sequence[str] | None = None) -> list[FileAction]:
        """Bring the files of a removal back.

        Args:
            name: Name of the removal.
            paths: Only these files; None for all.

        Raises:
            NotIndexedError: There is no such removal.
            CollectionLockedError: Another process writes to the index.
            MediaError: The log cannot be read or written.
        """
        with self._place.exclusive():
            plan, journal = self._open(name)
            chosen = None if paths is None else set(paths)
            if chosen is not None:
                groups = [
                    replace(group, remove=tuple(file for file in group.remove if file.path in chosen))
                    for group in plan.groups
                ]
                plan = replace(plan, groups=tuple(group for group in groups if group.remove))
            key = PlanKey.read(self._place)
            actions = undo(journal, plan=plan, key=key)
        return [action for action in actions if chosen is None or action.path in chosen or action.video in chosen]

    def all(self, *, limit: int = 100) -> list[Removal]:
        """The removals of the index, newest first; what cannot be read is left out, with a warning."""
        names = sorted(self._names(), reverse=True)[:limit]
        removals = []
        for name in names:
            try:
                removals.append(self._read(name))
            except VidkinError as error:  # a plan elsewhere may be gone, or another one by now
                _logger.warning("%s", error)
        return removals

    def _names(self) -> Iterator[str]:
        try:
            entries = sorted(self._folder.iterdir())
        except OSError:
            return
        for entry in entries:
            name = entry.name.removesuffix(_APPLIED if entry.name.endswith(_APPLIED) else ".json")
            if name != entry.name and _NAME.fullmatch(name) and not entry.is_symlink():
                yield name

    def _pointer(self, name: str) -> dict[str, str] | None:
        """The path of a plan elsewhere, and when it was made; None if the plan is in the index.

        Raises:
            InvalidArgumentError: The file that says so is damaged.
        """
        path = self._folder / f"{name}{_APPLIED}"
        if path.is_symlink() or not path.is_file():
            return None
        try:
            table = read_json(path)
            plan, created = table["plan"], table["created"]
            if not isinstance(created, str) or not os.path.isabs(check_file_name("plan", plan)):
                raise ValueError("it must name a plan by its whole path, and when that was made")
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InvalidArgumentError(
                f"{path} is damaged ({error}); delete it to leave it out of the history"
            ) from error
        return {"plan": plan, "created": created}

    def _new_file(self) -> tuple[str, Path]:
        """A name that no removal has, and the file of its plan."""
        self._folder.mkdir(exist_ok=True)
        if self._folder.is_symlink():
            raise InvalidArgumentError(f"{self._folder} must be a folder, got a symbolic link; remove it")
        now = f"{datetime.now():%Y-%m-%d-%H%M%S}"
        for number in range(_MOST_OF_A_SECOND):
            name = f"{now}-{number}" if number else now
            path = self._folder / f"{name}.json"
            names = (path, Journal.of_plan(path).path, path.with_name(f"{name}{_APPLIED}"))
            if not any(map(os.path.lexists, names)):
                return name, path
        raise InvalidArgumentError(f"{self._folder} must have room for a plan, got {_MOST_OF_A_SECOND} of one second")

    def _open(self, name: str) -> tuple[DuplicatePlan, Journal]:
        if name not in self._names():
            raise NotIndexedError(f"there is no removal {name!r} in this index; look at the history again")
        path = self._path_of(name)
        plan, pointer = read_plan(path), self._pointer(name)
        if pointer is not None and plan.created != pointer["created"]:
            raise InvalidArgumentError(f"{path} is another plan now than the one that was carried out")
        return plan, Journal.of_plan(path)

    def _path_of(self, name: str) -> Path:
        pointer = self._pointer(name)
        return self._folder / f"{name}.json" if pointer is None else Path(pointer["plan"])

    def _read(self, name: str) -> Removal:
        plan, journal = self._open(name)
        steps = {step.source: step for step in journal.steps()} if journal.path.exists() else {}
        files = []
        for group in plan.groups:
            for file in group.remove:
                step = steps.get(file.path)
                fate = "stayed" if step is None else _FATES[step.state]
                is_away = step is not None and fate in ("removed", "unfinished")
                place = step.place if step is not None and is_away else ""
                files.append(RemovedFile(file.path, group.keep.path, file.size, fate, place))
        return Removal(name, plan.created, os.fspath(self._path_of(name)), tuple(files))
