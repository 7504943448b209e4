"""Documentation tests run in an empty folder and may use vidkin-research."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator

import pytest

from tests.cli.conftest import _own_folder, library
from tests.conftest import ENTRY_POINTS, FIND_SPEC, PACKAGES

__all__ = ["_own_folder", "library"]


@pytest.fixture(autouse=True, scope="package")
def _product_alone() -> Iterator[None]:
    """Do not hide vidkin-research; a hook of the other packages may still be active until the session ends."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.metadata, "entry_points", ENTRY_POINTS)
        patch.setattr(importlib.util, "find_spec", FIND_SPEC)
        patch.setattr(sys, "path", [path for path in sys.path if path != str(PACKAGES)])
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path != str(PACKAGES)))
        yield
