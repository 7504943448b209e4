"""Fixtures shared by all test packages."""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# `make test-all` uses `--hypothesis-profile full`. No deadline: run times depend mostly on the machine.
settings.register_profile("quick", max_examples=15, deadline=None)
settings.register_profile("full", max_examples=100, deadline=None)
settings.load_profile("quick")

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "tests" / "support" / "packages"
# Other packages of the repository.
OTHERS = ("vidkin_research", "vidkin_scale")
# The originals; `_product_alone` patches them.
ENTRY_POINTS, FIND_SPEC = importlib.metadata.entry_points, importlib.util.find_spec


def pytest_configure() -> None:
    """Restore the default SIGINT handler for tests of Ctrl-C: shells start background jobs with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Freeze collected tests and modules, which live until the end, so that garbage collection skips them."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-minutes", default="0", help="duration of the soak test in minutes")


def missing_part(reason: str) -> None:
    """Skip the test, or fail if VIDKIN_REQUIRE_PARTS promises that this machine has everything."""
    if os.environ.get("VIDKIN_REQUIRE_PARTS"):
        pytest.fail(f"VIDKIN_REQUIRE_PARTS is set, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the real videos, weights and labels used for measurements (marker: data)."""
    folder = Path(os.environ.get("VIDKIN_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "MANIFEST.md").is_file():
        missing_part(f"there is no measurement data at {folder} (set VIDKIN_DATA)")
    return folder


@pytest.fixture(autouse=True, scope="package")
def _product_alone() -> Iterator[None]:
    """Hide the repository's other packages, installed or not, from tests of vidkin, and add a stand-in package."""

    @cache
    def points_of(path: tuple[str, ...], **selection: str) -> importlib.metadata.EntryPoints:
        # Reading all entry points takes longer than most tests, and every command reads them.
        del path
        points = ENTRY_POINTS(**selection)
        return importlib.metadata.EntryPoints(point for point in points if not point.value.startswith(OTHERS))

    def entry_points(**selection: str) -> Any:
        if not selection:  # used by other packages; a dict of groups on Python 3.11
            return ENTRY_POINTS()
        return points_of(tuple(sys.path), **selection)

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name in OTHERS else FIND_SPEC(name, package)

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PACKAGES)
        patch.setenv(
            "PYTHONPATH",
            os.pathsep.join([str(PACKAGES), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        )
        patch.setattr(importlib.metadata, "entry_points", entry_points)
        patch.setattr(importlib.util, "find_spec", find_spec)
        yield


@pytest.fixture(scope="session", autouse=True)
def _workers_in_this_process() -> Iterator[None]:
    """Index in this process: importing everything in a worker process takes longer than indexing the test videos."""
    from tests.support.workers import index_in_this_process

    with index_in_this_process():
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Skip fsync, because test files need not survive a power failure. Subprocesses still sync."""

    def fsync(file: int | Any) -> None:
        os.fstat(file if isinstance(file, int) else file.fileno())  # a closed file is still an error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give each pytest worker its own state folder: a user can run only one removal at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", os.fspath(tmp_path_factory.mktemp("state")))
        patch.setenv("VIDKIN_CACHE", os.fspath(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def worker_processes() -> Iterator[None]:
    """Index in worker processes, as outside of tests."""
    from tests.support.workers import index_in_processes

    with index_in_processes():
        yield


@pytest.fixture(autouse=True)
def _quiet_threads() -> None:
    """Use one torch thread: test networks are so small that a second thread slows them down."""
    if FIND_SPEC("torch") is None:  # tests of vidkin run without torch
        return
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _ordinary_scheduling() -> Iterator[None]:
    """Fail a test that leaves this process with real-time scheduling, which would starve later tests."""
    scheduler = getattr(os, "sched_getscheduler", lambda _: 0)
    before = scheduler(0)
    yield
    assert scheduler(0) == before, "the test changed how this process is scheduled"
