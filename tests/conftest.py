"""Fixtures that every room uses."""

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

# `--hypothesis-profile full` is that of `make test-all`. How long an example takes says more of the machine.
settings.register_profile("quick", max_examples=15, deadline=None)
settings.register_profile("full", max_examples=100, deadline=None)
settings.load_profile("quick")

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "tests" / "support" / "packages"
# Packages that are beside vidkin in its repository.
OTHERS = ("vidkin_research", "vidkin_scale")
# As they are outside of tests; `_product_alone` replaces them.
ENTRY_POINTS, FIND_SPEC = importlib.metadata.entry_points, importlib.util.find_spec


def pytest_configure() -> None:
    """A shell starts jobs in the background deaf to Ctrl-C, and every process they start; tests of Ctrl-C need it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Thousands of tests and modules stay until the end: the collector of garbage need not look at them again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-minutes", default="0", help="length of the test that does everything at random")


def missing_part(reason: str) -> None:
    """Skip, unless this machine promised to have every part: then a missing one is a failure."""
    if os.environ.get("VIDKIN_REQUIRE_PARTS"):
        pytest.fail(f"VIDKIN_REQUIRE_PARTS is set, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real videos, weights and labels that measurements use (marker: data)."""
    folder = Path(os.environ.get("VIDKIN_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "MANIFEST.md").is_file():
        missing_part(f"there is no measurement data at {folder} (set VIDKIN_DATA)")
    return folder


@pytest.fixture(autouse=True, scope="package")
def _product_alone() -> Iterator[None]:
    """Tests of the product see a stand-in for other packages, and nothing of those beside it, installed or not."""

    @cache
    def points_of(path: tuple[str, ...], **selection: str) -> importlib.metadata.EntryPoints:
        # Reading what all packages bring takes longer than most tests, and it is read by every command.
        del path
        points = ENTRY_POINTS(**selection)
        return importlib.metadata.EntryPoints(point for point in points if not point.value.startswith(OTHERS))

    def entry_points(**selection: str) -> Any:
        if not selection:  # what other packages ask for; a table of groups on Python 3.11
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
    """Indexing starts no processes: each would import everything anew, and take longer for it than for the videos."""
    from tests.support.workers import index_in_this_process

    with index_in_this_process():
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What a test writes need not survive a power cut: tests of one count the calls. Programs that tests start wait."""

    def fsync(file: int | Any) -> None:
        os.fstat(file if isinstance(file, int) else file.fileno())  # one that is closed is still an error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each worker of pytest is a user of its own, of whom one removal runs at a time; the real user sees nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", os.fspath(tmp_path_factory.mktemp("state")))
        patch.setenv("VIDKIN_CACHE", os.fspath(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def worker_processes() -> Iterator[None]:
    """Indexing starts processes as it does outside of tests: for tests that are about them."""
    from tests.support.workers import index_in_processes

    with index_in_processes():
        yield


@pytest.fixture(autouse=True)
def _quiet_threads() -> None:
    """Networks of tests are so small that a second thread costs more than it brings, above all on a busy machine."""
    if FIND_SPEC("torch") is None:  # the product's tests run without it
        return
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _ordinary_scheduling() -> Iterator[None]:
    """A test that leaves a real-time process behind starves the tests after it."""
    scheduler = getattr(os, "sched_getscheduler", lambda _: 0)
    before = scheduler(0)
    yield
    assert scheduler(0) == before, "the test changed how this process is scheduled"
