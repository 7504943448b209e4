"""Package names are imported on first use."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from vidkin._base.registry import lazy_names


def test_name_is_imported_on_first_use_and_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    package = import_module("tests")
    get = lazy_names("tests", "fractions:Fraction")
    monkeypatch.setattr(package, "Fraction", None, raising=False)
    value = get("Fraction")
    assert value is vars(package)["Fraction"] is import_module("fractions").Fraction


def test_unknown_name_raises_the_usual_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'tests' has no attribute 'nothing'"):
        lazy_names("tests", "fractions:Fraction")("nothing")


@pytest.mark.parametrize("package", ["vidkin.media", "vidkin.features", "vidkin.datasets", "vidkin.shots"])
def test_every_public_name_of_a_package_can_be_imported(package: str) -> None:
    module = import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.large
@pytest.mark.parametrize("package", ["vidkin.features", "vidkin.datasets", "vidkin.shots"])
def test_public_name_is_never_hidden_by_a_module_of_the_same_name(package: str) -> None:
    """Importing a module sets its name in the package, which would hide a lazy name."""
    code = (
        f"import importlib, pkgutil, types, {package} as package\n"
        "for found in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(found.name)\n"
        "print([name for name in package.__all__ if isinstance(getattr(package, name), types.ModuleType)])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_reading_frames_does_not_import_editing_splitting_or_networks() -> None:
    code = (
        "import sys, vidkin.media, vidkin.features; from vidkin.media import iter_frames;"
        "from vidkin.features import open_extractor;"
        "print([name for name in sys.modules if name.startswith('vidkin.')"
        " and any(word in name for word in ('edit', 'split', 'encode', 'network', 'whitening', 'fitting'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
