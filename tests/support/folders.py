"""What commands leave in a folder."""

from __future__ import annotations

from pathlib import Path

from vidkin._base.outputs import LIST_FILE

__all__ = ["made_in"]


def made_in(folder: Path) -> list[Path]:
    """Everything in a folder but the list of what vidkin made there, by name."""
    return sorted(path for path in folder.iterdir() if path.name != LIST_FILE)
