"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, *targets: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose surface is wider than what most of its users load.

    Args:
        package: Name of the package, ``__name__`` in its ``__init__``.
        targets: Where its names come from, each as ``"package.module:name"``.
    """
    homes = {name: module for module, _, name in (target.partition(":") for target in targets)}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
