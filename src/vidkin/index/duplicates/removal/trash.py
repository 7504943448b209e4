"""The system's trash: move a file there, and find it again to restore it."""

from __future__ import annotations

import configparser
import os
from pathlib import Path
from urllib.parse import unquote

__all__ = ["find_in_trash", "put_in_trash"]


def put_in_trash(path: str) -> str | None:
    """Move a file to the trash; returns where it is now, None if the system does not tell.

    Raises:
        OSError: The system refuses.
    """
    from send2trash import send2trash

    send2trash(path)
    return find_in_trash(path)


def find_in_trash(path: str) -> str | None:
    """Find the file in the trash that was at ``path`` (the one deleted last); None if there is none.

    Follows the freedesktop.org specification (Linux and BSD): the home trash, and one at the root of each volume.
    """
    newest: tuple[str, str] | None = None
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    # Trash folders that may hold the file, and what the paths in their notes are relative to.
    folders = [(Path(home) / "Trash", home)]
    volume = os.path.dirname(os.path.realpath(path))
    while not os.path.ismount(volume):
        volume = os.path.dirname(volume)
    if hasattr(os, "getuid"):
        folders.append((Path(volume) / ".Trash" / str(os.getuid()), volume))
        folders.append((Path(volume) / f".Trash-{os.getuid()}", volume))
    for folder, root in folders:
        for note in sorted((folder / "info").glob("*.trashinfo")):
            table = configparser.ConfigParser(interpolation=None)
            try:
                table.read_string(note.read_text(encoding="utf-8", errors="surrogateescape"))
                named = unquote(table["Trash Info"]["Path"], errors="surrogateescape")
                deleted = table["Trash Info"].get("DeletionDate", "")
            except (OSError, configparser.Error, KeyError):
                continue  # a note of another program that cannot be read is about another file
            held = folder / "files" / note.stem
            if _real(os.path.join(root, named)) == _real(path) and os.path.lexists(held):
                newest = max(newest or ("", ""), (deleted, os.fspath(held)))
    return newest[1] if newest else None


def _real(path: str) -> str:
    """The path without links to folders in it: the trash of a volume names files from the root of that volume."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
