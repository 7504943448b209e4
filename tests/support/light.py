"""A pytest plugin that runs vidkin's tests without torch, and on Windows.

Without torch, tests of training code are skipped, as are tests that compare results to torch. If a module that is
needed
at run time misses a package, the test fails. On Windows, tests are skipped if they call POSIX functions themselves or
create a symbolic link without the privilege to do so; they fail if vidkin does. Tests that drive a browser or inspect
processes are skipped if the package they need is missing.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import traceback
from collections.abc import Generator
from pathlib import Path

import pytest

import vidkin
from vidkin._base.registry import missing_part
from vidkin.errors import MissingPartError

__all__ = ["LEARNERS"]

LEARNERS = (
    *("metric", "models", "datasets", "training", "shots/training", "review/measure_head.py"),
    *("features/backbone.py", "features/pretrained.py", "rendering/classifier.py", "rendering/pictures.py"),
)
"""Parts of vidkin that may miss a package of the extras `train` and `plots`."""

_ROOT = Path(__file__).resolve().parents[2]
_TESTS = (
    *("metric", "models", "datasets", "training", "documentation", "shots/training"),
    *("cli/test_train*", "cli/test_evaluate.py", "cli/test_classify.py", "cli/test_export*", "cli/test_comparator.py"),
)
# Used by tests, never imported by vidkin.
_TOOLS = ("axe_playwright_python", "huggingface_hub", "playwright", "psutil")
_IS_LIGHT = importlib.util.find_spec("torch") is None
_IS_WINDOWS = os.name == "nt"
# Error code; only administrators and developers may create symbolic links.
_NO_PRIVILEGE = 1314


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore the tests of training packages."""
    if not _IS_LIGHT:
        return None
    learning = {path for pattern in _TESTS for path in (_ROOT / "tests").glob(pattern)}
    return True if collection_path in learning or collection_path.is_relative_to(_ROOT / "research") else None


class _LightModule(pytest.Module):
    def _getobj(self) -> object:
        try:
            return super()._getobj()
        except (self.CollectError, MissingPartError) as error:
            _skip_if_missing(error if isinstance(error, MissingPartError) else error.__cause__ or error)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip a whole test file that imports a missing package at the top."""
    return _LightModule.from_parent(parent, path=module_path) if _IS_LIGHT or _IS_WINDOWS else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test if a fixture imports a missing package."""
    yield from _skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that imports a missing package."""
    yield from _skipping()


def _skipping() -> Generator[None, None, None]:
    try:
        yield
    except (ImportError, MissingPartError, AttributeError, OSError) as error:
        _skip_if_missing(error)
        raise


def _skip_if_missing(error: BaseException) -> None:
    """Skip if a test or a training module lacks a package, or if the test itself uses what only POSIX has."""
    if _IS_LIGHT and isinstance(error, ImportError | MissingPartError):
        cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        if isinstance(cause, ModuleNotFoundError) and (cause.name or "").partition(".")[0] in _TOOLS:
            pytest.skip(f"{cause.name} is not installed", allow_module_level=True)
        if isinstance(cause, ModuleNotFoundError) and (missing := missing_part(cause)) is not None:
            # The registry imports modules on behalf of others.
            parts = [part for part in _parts(cause) if part != "_base/registry.py"]
            if not parts or parts[-1].startswith(LEARNERS):
                pytest.skip(str(missing), allow_module_level=True)
    if _IS_WINDOWS and not _parts(error):
        is_posix = isinstance(error, AttributeError) and error.obj in (os, signal, socket)
        if is_posix or (isinstance(error, OSError) and error.winerror == _NO_PRIVILEGE):
            pytest.skip(f"the test needs POSIX: {error}", allow_module_level=True)


def _parts(error: BaseException) -> list[str]:
    """Files of vidkin in the traceback of an error, ending with the one that raised it."""
    package = Path(vidkin.__file__).parent
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    return [path.relative_to(package).as_posix() for path in files if path.is_relative_to(package)]
