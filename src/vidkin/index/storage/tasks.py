"""Work on an index, split into tasks that any process with access to the index can run, possibly on other machines."""

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
    """A unit of work on an index, whose result depends only on its arguments and the index.

    Attributes:
        method: Name of a method of the worker that the job creates.
        arguments: Arguments of the method.
        home: Id of a video that the task reads, to run it close to the video's features; None to run it anywhere.
        about: Path of a video, for error messages.
    """

    method: str
    arguments: tuple[Any, ...]
    home: int | None = None
    about: str = ""


class MappedJob(Protocol):
    """State shared by the tasks of a search, sent to each process once."""

    def start(self, place: Place, store: VectorStore) -> Any:
        """Create the worker that runs the tasks in one process.

        Args:
            place: Location of the index.
            store: Store of the index, as opened by this process.
        """


class Mapper(Protocol):
    """Runs tasks where the videos are; :class:`MapHere` runs them in this process, cluster packages provide others.

    Searches submit blocks of tasks and process the results in order, so their results equal those of a single process.
    """

    @property
    def width(self) -> int:
        """Number of tasks that run in parallel."""

    def run(self, job: MappedJob, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield the results of tasks in order, each as soon as it and all earlier ones are available.

        Raises:
            VidkinError: A task failed.
            ClusterError: The machines that run the tasks cannot be reached, or a worker failed repeatedly.
        """


MOST_JOBS = 4
"""Maximum number of jobs whose workers a process keeps, enough for one or two searches."""


class MapHere:
    """A :class:`Mapper` that runs tasks one at a time in this process.

    Args:
        place: Location of the index.
        store: Store of the index.
        width: Value of :attr:`width`, which determines the size of blocks.
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
    """Check that this machine can access these files.

    Raises:
        ClusterError: A file does not exist on this machine.
    """
    for path in paths:
        if not os.path.exists(path):
            raise ClusterError(
                f"machine {socket.gethostname()} of the cluster cannot access {path}; mount the folder at the same "
                "path on every machine"
            )
