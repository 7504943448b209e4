"""Work on an index divided into tasks that any process with access to the index can do, here or on another machine."""

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
    """A part of the work on an index, whose result depends only on its arguments and the index.

    Attributes:
        method: Name of a method of the object that the job starts.
        arguments: Its arguments.
        home: A video that it reads, to run the task close to its features; None for anywhere.
        about: Path of a video, named in errors.
    """

    method: str
    arguments: tuple[Any, ...]
    home: int | None = None
    about: str = ""


class MappedJob(Protocol):
    """State shared by the tasks of one search, sent to every process once."""

    def start(self, place: Place, store: VectorStore) -> Any:
        """Create the object that does the tasks in one process.

        Args:
            place: Place of the index.
            store: Its store as this process sees it.
        """


class Mapper(Protocol):
    """Does tasks where the videos are. :class:`MapHere` is one; a package with machines brings others.

    A search has a block of tasks done at once and takes their results in order, so its answers are those of one
    process.
    """

    @property
    def width(self) -> int:
        """Number of tasks that are done at the same time."""

    def run(self, job: MappedJob, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield the results of tasks in order, each as soon as it and all earlier ones are available.

        Raises:
            VidkinError: An error raised by a task.
            ClusterError: The machines that do them cannot be reached, or one died again and again.
        """


MOST_JOBS = 4
"""Maximum number of jobs that a process keeps ready, enough for one or two searches."""


class MapHere:
    """A :class:`Mapper` that does tasks one after another in this process.

    Args:
        place: Place of the index.
        store: Its store.
        width: Value of :meth:`width`.
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
    """Refuse to work on a machine without access to these files.

    Raises:
        ClusterError: A file does not exist.
    """
    for path in paths:
        if not os.path.exists(path):
            raise ClusterError(
                f"machine {socket.gethostname()} of the cluster does not see {path}; mount the folder at the same path "
                "on every machine"
            )
