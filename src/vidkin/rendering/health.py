"""Whether an index is complete and its model still exists; what ``vidkin doctor`` reports about an index."""

from __future__ import annotations

import os

from vidkin.errors import CollectionDamagedError, VidkinError
from vidkin.index import Index, check_files
from vidkin.index.storage.places.opening import open_place
from vidkin.rendering.machine import Finding
from vidkin.rendering.text import number

__all__ = ["INDEX_FILES", "inspect_index"]

INDEX_FILES = "files of the index"
"""Name of the finding about the files of an index."""

_MODEL = "model of the index"


def inspect_index(index: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Findings about an index; none if there is nothing at this path.

    Raises:
        CollectionNotFoundError: There is something else at this path.
    """
    place = open_place(index)
    if not place.has_folder():
        return ()
    try:
        with Index.open(place, create=False, read_only=True) as opened:
            check_files(place)
            findings = [Finding(INDEX_FILES, "ok", "complete; --repair also reads all of them")]
            missing = opened.store.missing()
            if missing:
                first, cause = next(iter(missing.items()))
                text = (
                    f"parts of {number(len(missing), 'video')} are missing, for example of "
                    f"{opened.store.get(first).path}: {cause}; run `vidkin index` with these videos to rebuild them"
                )
                findings = [Finding(INDEX_FILES, "broken", text)]
            if opened.extractor_name.startswith("model:"):
                try:
                    findings.append(Finding(_MODEL, "ok", opened.extractor.fingerprint))
                except VidkinError as error:
                    findings.append(Finding(_MODEL, "broken", str(error)))
            return tuple(findings)
    except CollectionDamagedError as error:
        return (Finding(INDEX_FILES, "broken", str(error)),)
