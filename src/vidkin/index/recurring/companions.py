"""Files written beside videos for players; one that vidkin did not write is never replaced."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vidkin._base.files import replace_file
from vidkin._base.values import Result, parse_json
from vidkin.errors import CollectionDamagedError
from vidkin.index.storage.files import write_whole
from vidkin.index.storage.place import Place

_FILE = "companions.json"
_LARGEST = 1 << 20  # bytes: no file that vidkin writes beside a video is larger


@dataclass(frozen=True, slots=True)
class Companion(Result):
    """What became of a file beside a video.

    Attributes:
        path: The file.
        written: Whether it has its content now.
        cause: Why it was left as it is, in one line, else "".
    """

    path: str
    written: bool
    cause: str = ""


def write_companions(contents: Mapping[str, str], place: Place | None = None) -> list[Companion]:
    """Write small text files beside videos. An existing file is replaced if it is still as vidkin wrote it.

    Players read such files without a mark of who wrote them, so that the index remembers the hash of each.

    Args:
        contents: Path and text of each file.
        place: The index that remembers what was written; None remembers nothing, and replaces nothing.

    Raises:
        CollectionDamagedError: The record of the index cannot be read.
        CollectionError: It cannot be written; then nothing else was.
    """
    known = {} if place is None else _read_known(place)
    outcomes, planned = [], dict(known)
    for path, text in contents.items():
        content = text.encode("utf-8", "surrogateescape")
        cause = _obstacle(path, content, known)
        if not cause:
            planned[path] = _digest(content)
        outcomes.append(Companion(path, not cause, cause))
    if place is not None and planned != known:
        # Before the files: a file of ours that the index does not know would never be replaced again.
        write_whole(place, _FILE, json.dumps(planned, indent=1).encode())
    written = []
    for outcome in outcomes:
        if outcome.written:
            try:
                with replace_file(outcome.path) as temporary:
                    temporary.write_bytes(contents[outcome.path].encode("utf-8", "surrogateescape"))
            except OSError as error:
                outcome = Companion(outcome.path, False, f"cannot be written ({error.strerror or error})")
        written.append(outcome)
    return written


def _obstacle(path: str, content: bytes, known: Mapping[str, str]) -> str:
    """Why a file must stay as it is; empty if it may be written."""
    file = Path(path)
    if not os.path.lexists(file):
        return ""
    if file.is_symlink() or not file.is_file():
        return "is not a plain file; move it away first"
    try:
        if file.stat().st_size > _LARGEST:
            return "was not written by vidkin; move it away first"
        held = file.read_bytes()
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if held == content or known.get(path) == _digest(held):
        return ""
    return "was not written by vidkin, or changed since; move it away first"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_known(place: Place) -> dict[str, str]:
    content = place.read(_FILE)
    if content is None:
        return {}
    try:
        table = parse_json(content)
        return {str(path): str(digest) for path, digest in table.items()}
    except (ValueError, AttributeError) as error:
        raise CollectionDamagedError(
            f"{place.address(_FILE)} is damaged ({error}); move it away, then files beside videos are left as they are"
        ) from error
