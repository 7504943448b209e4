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
            check_files(index.path)
            findings = [Finding(INDEX_FILES, "ok", "complete; --repair also reads all of them")]
            missing = index.store.missing()
            if missing:
                first, cause = next(iter(missing.items()))
                text = (
                    f"parts of {number(len(missing), 'video')} are missing, for example of "
                    f"{index.store.get(first).path}: {cause}; run `vidkin index` with these videos to rebuild them"
                )
                findings = [Finding(INDEX_FILES, "broken", text)]
            if index.extractor_name.startswith("model:"):
                try:
                    findings.append(Finding(_MODEL, "ok", index.extractor.fingerprint))
                except VidkinError as error:
                    findings.append(Finding(_MODEL, "broken", str(error)))
            return tuple(findings)
    except CollectionDamagedError as error:
        return (Finding(INDEX_FILES, "broken", str(error)),)
