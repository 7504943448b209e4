"""Write files next to videos for use by players; files not written by vidkin are never replaced."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vidkin._base import disk
from vidkin._base.arguments import check_arguments
from vidkin._base.files import read_regular_file
from vidkin._base.values import Result, parse_json
from vidkin.errors import CollectionDamagedError
from vidkin.index.storage.files import write_atomically
from vidkin.index.storage.place import Place

_FILE = "companions.json"
_MAX_BYTES = 1 << 20  # vidkin never writes a larger file next to a video


@dataclass(frozen=True, slots=True)
class Companion(Result):
    """Outcome of writing a file next to a video.

    Attributes:
        path: Path of the file.
        written: Whether the file now has the requested content.
        cause: One-line reason why the file was not changed; otherwise empty.
    """

    path: str
    written: bool
    cause: str = ""


@check_arguments
def write_companions(contents: Mapping[str, str], place: Place | None = None) -> list[Companion]:
    """Write small text files next to videos. Existing files are replaced only if vidkin wrote them and they have not
    been changed since.

    Because players read these files, they cannot contain a mark; instead, their hashes are saved in the index.

    Args:
        contents: Text of each file, keyed by path.
        place: Location of the index that stores the hashes; None to store no hashes and replace no files.

    Raises:
        CollectionDamagedError: The stored hashes cannot be read.
        CollectionError: The hashes cannot be written; in this case, no file is written.
    """
    known = {} if place is None else _read_known(place)
    outcomes, planned = [], dict(known)
    for path, text in contents.items():
        content = text.encode("utf-8", "surrogateescape")
        cause = _refusal_reason(path, content, known)
        if not cause:
            # Keep the previous hash as well, so that the file is recognized even after a crash before it is replaced.
            held = _digest_file(path)
            planned[path] = " ".join(dict.fromkeys(filter(None, (_digest(content), held))))
        outcomes.append(Companion(path, not cause, cause))
    if place is not None and planned != known:
        # Write the hashes before the files, because a file with an unknown hash would never be replaced again.
        write_atomically(place, _FILE, json.dumps(planned, indent=1).encode())
    written = []
    for outcome in outcomes:
        if outcome.written:
            try:
                outcome = _write(outcome, contents[outcome.path].encode("utf-8", "surrogateescape"), known)
            except OSError as error:
                outcome = Companion(outcome.path, False, f"cannot be written ({error.strerror or error})")
        written.append(outcome)
    return written


def _write(companion: Companion, content: bytes, known: Mapping[str, str]) -> Companion:
    """Write one file, unless another program has changed it in the meantime.

    Raises:
        OSError: The file cannot be written.
    """
    temporary = os.path.join(os.path.dirname(companion.path), f".{secrets.token_hex(8)}.part")
    disk.before("create", temporary)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        disk.sync_file(temporary)
        cause = _refusal_reason(companion.path, content, known)
        if cause:
            return Companion(companion.path, False, cause)
        if os.path.lexists(companion.path):
            disk.rename(temporary, companion.path)
        else:
            disk.rename_new(temporary, companion.path)
        disk.sync_folder(os.path.dirname(companion.path) or ".")
    finally:
        with suppress(FileNotFoundError):
            disk.unlink(temporary)
    return companion


def _digest_file(path: str) -> str:
    """Hash of an existing file; empty if it does not exist or cannot be read."""
    try:
        return _digest(read_regular_file(path, _MAX_BYTES))
    except (OSError, ValueError):
        return ""


def _refusal_reason(path: str, content: bytes, known: Mapping[str, str]) -> str:
    """Return why a file must not be replaced; empty if it may be written."""
    file = Path(path)
    if not os.path.lexists(file):
        return ""
    if file.is_symlink() or not file.is_file():
        return "is not a regular file; move it away first"
    try:
        held = read_regular_file(file, _MAX_BYTES)
    except ValueError:
        return "was not written by vidkin; move it away first"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if held == content or _digest(held) in known.get(path, "").split():
        return ""
    return "was not written by vidkin, or has been changed since; move it away first"


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
            f"{place.address(_FILE)} is damaged ({error}); delete it, but note that existing files next to videos are "
            "then no longer replaced"
        ) from error
