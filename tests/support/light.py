"""Where torch is not installed, as on the runners of Windows and macOS: a plugin of pytest.

Tests of what learns are skipped there, and tests that compare with torch. A test fails if a module that runs, and does
not learn, is the one that misses a package.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Generator
from pathlib import Path

import pytest

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
_IS_LIGHT = importlib.util.find_spec("torch") is None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of rooms that learn."""
    if not _IS_LIGHT:
        return None
    learning = {path for pattern in _TESTS for path in (_ROOT / "tests").glob(pattern)}
    return True if collection_path in learning or collection_path.is_relative_to(_ROOT / "research") else None


class _LightModule(pytest.Module):
    def _getobj(self) -> object:
        try:
            return super()._getobj()
        except self.CollectError as error:
            if isinstance(error.__cause__, ImportError | MissingPartError):
                _skip_if_learning(error.__cause__)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip a whole file of tests that imports a package at the top."""
    return _LightModule.from_parent(parent, path=module_path) if _IS_LIGHT else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test whose fixtures import one."""
    yield from _skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that imports one."""
    yield from _skipping()


def _skipping() -> Generator[None, None, None]:
    try:
        yield
    except (ImportError, MissingPartError) as error:
        if _IS_LIGHT:
            _skip_if_learning(error)
        raise


def _skip_if_learning(error: BaseException) -> None:
    """Skip if a test, or a part of vidkin that learns, is what misses a package."""
    cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
    if not isinstance(cause, ModuleNotFoundError) or (missing := missing_part(cause)) is None:
        return
    package = _ROOT / "src" / "vidkin"
    files = [Path(frame.filename) for frame in traceback.extract_tb(cause.__traceback__)]
    # The registry imports for others.
    ours = [path.relative_to(package).as_posix() for path in files if path.is_relative_to(package)]
    ours = [path for path in ours if path != "_base/registry.py"]
    if not ours or ours[-1].startswith(LEARNERS):
        pytest.skip(str(missing), allow_module_level=True)
