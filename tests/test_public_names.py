"""The public names of ``import vidkin``."""

from __future__ import annotations

import importlib
import sys
from pkgutil import iter_modules, walk_packages
from types import ModuleType

import pytest

import vidkin


@pytest.mark.parametrize(
    "name",
    ["CollectionNotFoundError", "DuplicateGroup", "DuplicateMember", "InvalidArgumentError", "MediaError"],
)
def test_types_that_callers_use_or_catch_are_public(name: str) -> None:
    assert name in vidkin.__all__
    assert getattr(vidkin, name).__name__ == name


def test_show_works_without_ipython_and_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """``show`` and ``Results`` are public and need neither package."""
    for name in ("IPython", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    assert {"Results", "show"} <= set(vidkin.__all__)
    assert vidkin.show(vidkin.Results()).html.startswith("<p><strong>0 results")


def test_every_package_lists_its_public_names() -> None:
    packages = [vidkin, *(importlib.import_module(found.name) for found in walk_packages(vidkin.__path__, "vidkin."))]
    public = [package for package in packages if hasattr(package, "__path__") and hasattr(package, "__all__")]
    assert len(public) > 15
    for package in public:
        assert set(package.__all__) <= set(dir(package)), package.__name__
        # Importing a module with the name of an export must not replace the export.
        for name in {found.name for found in iter_modules(package.__path__)} & set(package.__all__):
            importlib.import_module(f"{package.__name__}.{name}")
            assert not isinstance(getattr(package, name), ModuleType), f"{package.__name__}.{name}"
    assert [name for name in dir(vidkin) if name.startswith("_") and name != "__version__"] == []
