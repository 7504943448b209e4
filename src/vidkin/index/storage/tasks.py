"""Work on an index in tasks that any process can do that sees the index, here or on another machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vidkin.errors import ClusterError
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.place import Place


@dataclass(frozen=True, slots=True)
class Task:
    """A part of the work on an index, whose result depends on nothing but its arguments and the index.

    Attributes:
        method: Name of a method of what the job starts.
        arguments: Its arguments.
        home: A video that it reads, near whose features it is done; None: wherever there is time.
        about: Path of a video, to be named where it cannot be done.
    """

    method: str
    arguments: tuple[Any, ...]
    home: int | None = None
    about: str = ""


class MappedJob(Protocol):
    """What the tasks of one search have in common; it is sent to every process once."""

    def start(self, place: Place, store: VectorStore) -> Any:
        """What does the tasks in one process.

        Args:
            place: Place of the index.
            store: Its store as this process sees it.
        """


class Mapper(Protocol):
    """Does tasks where the videos are. :class:`MapHere` is one; a package with machines brings others.

    What does a search in steps, each of which depends on those before, has what the next steps will probably ask
    computed ahead by this, and takes it from there; so its answers are those of one process.
    """

    @property
    def width(self) -> int:
        """Number of tasks that are done at the same time."""

    def run(self, job: MappedJob, tasks: Sequence[Task]) -> Iterator[Any]:
        """The results of tasks, in their order, each as soon as it and those before it are there.

        Raises:
            VidkinError: What a task raised.
            ClusterError: The machines that do them cannot be reached, or one died again and again.
        """


MOST_JOBS = 4
"""Jobs that a process holds ready at a time: those of one search or two."""


class MapHere:
    """A :class:`Mapper` that does one task after the other in this process: what other machines do, without them.

    Args:
        place: Place of the index.
        store: Its store.
        width: What it says to do at the same time.
    """

    def __init__(self, place: Place, store: VectorStore, width: int = 2) -> None:
        self._place, self._store = place, store
        self.width = width
        self._started: list[tuple[MappedJob, Any]] = []

    def run(self, job: MappedJob, tasks: Sequence[Task]) -> Iterator[Any]:
        worker = next((worker for known, worker in self._started if known is job), None)
        if worker is None:
            worker = job.start(self._place, self._store)
            self._started = [*self._started[1 - MOST_JOBS :], (job, worker)]
        for task in tasks:
            yield getattr(worker, task.method)(*task.arguments)


def check_files_here(paths: Iterable[str]) -> None:
    """Refuse to work on a machine that does not see these files.

    Raises:
        ClusterError: One of them is not there.
    """
    for path in paths:
        if not os.path.exists(path):
            raise ClusterError(
                f"machine {socket.gethostname()} of the cluster does not see {path}; mount the folder at the same path "
                "on every machine"
            )
