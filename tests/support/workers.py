"""A replacement for worker processes in tests that are not about them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.index import ProcessExecutor, SerialExecutor, WorkerSpec

__all__ = ["ExecutorHere", "index_in_processes", "index_in_this_process"]


class ExecutorHere(SerialExecutor):
    """Accepts the arguments of :class:`ProcessExecutor`, but reads one file after the other in this process."""

    def __init__(self, spec: WorkerSpec, *, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InvalidArgumentError(f"workers must be at least 1, got {workers}")
        super().__init__(spec)


@contextmanager
def index_in_this_process() -> Iterator[None]:
    """Make ``Index.add`` without an executor, and therefore `vidkin index`, start no processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[ProcessExecutor.__module__], "ProcessExecutor", ExecutorHere)
        yield


@contextmanager
def index_in_processes() -> Iterator[None]:
    """Temporarily undo :func:`index_in_this_process`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[ProcessExecutor.__module__], "ProcessExecutor", ProcessExecutor)
        yield
