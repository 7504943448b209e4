"""Packages that come with an extra of vidkin, imported where they are used."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from vidkin.errors import MissingPartError

__all__ = ["import_part", "research_hint"]

# Packages whose name is not that of their module.
_PACKAGES = {"sklearn": "scikit-learn"}


def import_part(module: str, *, extra: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: Such as ``sklearn.cluster``.
        extra: The extra of vidkin that installs its package.

    Raises:
        MissingPartError: The package is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name != top:
            raise
        package = _PACKAGES.get(top, top)
        raise MissingPartError(
            f"{package} is not installed; install it with: pip install 'vidkin[{extra}]'"
        ) from error


def research_hint(noun: str = "entries") -> str:
    """What to install to get more of something, or nothing if it is installed.

    Args:
        noun: Plural of what the package brings.
    """
    if importlib.util.find_spec("vidkin_research") is not None:
        return ""
    return f"more {noun} come with the package vidkin-research: run pip install vidkin-research"
