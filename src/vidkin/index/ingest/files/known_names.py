"""Files that were scanned through a link and are in the index under another path."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from vidkin.index.ingest.files.scan import Scan

__all__ = ["use_known_names"]


def use_known_names(scan: Scan, paths: Iterable[str]) -> Scan:
    """Rename scanned files to the paths that the index has for them, so that a link does not add a file twice.

    Args:
        scan: Scan of the paths named now.
        paths: Paths of the files in the index.
    """
    known = set(paths)
    new = [file for file in scan.files if file.path not in known]
    if not new or not known:
        return scan
    real_folders: dict[str, str] = {}

    def real_path(path: str) -> str:
        if os.path.islink(path):
            return os.path.realpath(path)
        folder, name = os.path.split(path)
        if folder not in real_folders:
            real_folders[folder] = os.path.realpath(folder)
        return os.path.join(real_folders[folder], name)

    names = {real_path(path): path for path in sorted(known)}
    files = {file.path: file for file in scan.files if file.path in known}
    for file in new:
        name = names.get(real_path(file.path), file.path)
        files.setdefault(name, replace(file, path=name))
    return replace(scan, files=tuple(files[path] for path in sorted(files)))
