"""The command that installs vidkin, one of its extras, or a companion package, from wherever vidkin runs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from vidkin._base.bundle import is_bundled

# src/vidkin/_base/install.py: three folders up is the root of the clone, if vidkin runs from one.
_ROOT = Path(__file__).resolve().parents[3]

# Folder of each package in the clone.
_FOLDERS = {"vidkin": "", "vidkin-research": "/research", "vidkin-scale": "/scale"}


def install_command(extra: str = "", package: Literal["vidkin", "vidkin-research", "vidkin-scale"] = "vidkin") -> str:
    """Return the command that installs a package, with an extra if one is given.

    Vidkin is not on a package index yet, so the command always installs from a clone. If vidkin runs from a clone (an
    editable installation, or its sources), the command contains the path of the clone and works in every folder.

    Args:
        extra: Name of an extra, or several names separated by commas.
        package: ``vidkin``, or a package in another folder of the clone: ``vidkin-research`` in ``research``,
            ``vidkin-scale`` in ``scale``.
    """
    part = f"[{extra}]" if extra else ""
    folder = _FOLDERS[package]
    if is_checkout():
        return f'pip install -e "{_ROOT.as_posix()}{folder}{part}"'
    hint = "in a clone of vidkin; this bundle cannot be extended" if is_bundled() else "in a clone of vidkin"
    return f'pip install ".{folder}{part}" ({hint})'


def is_checkout() -> bool:
    """Whether vidkin runs from a clone, not from a wheel."""
    return (_ROOT / "pyproject.toml").is_file() and (_ROOT / "research" / "pyproject.toml").is_file()
