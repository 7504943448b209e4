"""Whether an index is whole and its model is still there; what ``vidkin doctor`` reports about an index."""

from __future__ import annotations

from pathlib import Path

from vidkin.errors import CollectionDamagedError, VidkinError
from vidkin.index import Index, check_files
from vidkin.rendering.machine import Finding
from vidkin.rendering.text import number

__all__ = ["INDEX_FILES", "inspect_index"]

INDEX_FILES = "files of the index"
"""Name of the finding about the files of an index."""

_MODEL = "model of the index"


def inspect_index(folder: Path) -> tuple[Finding, ...]:
    """Findings about the index in a folder; none if the folder does not exist.

    Raises:
        CollectionNotFoundError: The folder is not an index.
    """
    if not folder.expanduser().exists():
        return ()
    try:
        with Index.open(folder.expanduser(), create=False, read_only=True) as index:
            return (_inspect_files(index), *_inspect_model(index))
    except CollectionDamagedError as error:
        return (Finding(INDEX_FILES, "broken", str(error)),)


def _inspect_files(index: Index) -> Finding:
    check_files(index.path)
    missing = index.store.missing()
    if not missing:
        return Finding(INDEX_FILES, "ok", "complete; --repair also reads all of them")
    first, cause = next(iter(missing.items()))
    return Finding(
        INDEX_FILES,
        "broken",
        f"parts of {number(len(missing), 'video')} are missing, for example of {index.store.get(first).path}: {cause}; "
        "run `vidkin index` with these videos to rebuild them",
    )


def _inspect_model(index: Index) -> tuple[Finding, ...]:
    if not index.extractor_name.startswith("model:"):
        return ()
    try:
        return (Finding(_MODEL, "ok", index.extractor.fingerprint),)
    except VidkinError as error:
        return (Finding(_MODEL, "broken", str(error)),)
