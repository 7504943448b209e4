"""Files that commands leave in a folder."""

from __future__ import annotations

from pathlib import Path

from vidkin._base.outputs import LIST_FILE

__all__ = ["made_in"]


def made_in(folder: Path) -> list[Path]:
    """Names of everything in a folder, except the list of files that vidkin wrote."""
    return sorted(path for path in folder.iterdir() if path.name != LIST_FILE)
