"""What stands in for worker processes where a test is not about them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.index import ProcessExecutor, SerialExecutor, WorkerSpec

__all__ = ["ExecutorHere", "index_in_processes", "index_in_this_process"]


class ExecutorHere(SerialExecutor):
    """Takes what :class:`ProcessExecutor` takes, and reads one file after the other in this process."""

    def __init__(self, spec: WorkerSpec, *, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InvalidArgumentError(f"workers must be at least 1, got {workers}")
        super().__init__(spec)


@contextmanager
def index_in_this_process() -> Iterator[None]:
    """``Index.add`` without an executor, and so `vidkin index`, starts no processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[ProcessExecutor.__module__], "ProcessExecutor", ExecutorHere)
        yield


@contextmanager
def index_in_processes() -> Iterator[None]:
    """Undo :func:`index_in_this_process` for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[ProcessExecutor.__module__], "ProcessExecutor", ProcessExecutor)
        yield
