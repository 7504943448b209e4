"""Write files that the user names, such as ``--output FILE``, without overwriting anything else.

An output is a new file, or replaces a file that vidkin made from the same source and that has not changed since.
Outputs are recorded in a hidden list in their folder, one line of JSON per file with name, source, size and hash. Only
a regular file that still has the recorded hash is replaced. If a line is lost or damaged, or the list cannot be
written, the next run refuses to overwrite the file, and nothing is lost.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from vidkin._base import disk
from vidkin._base.files import (
    IMAGE_EXTENSIONS,
    VIDEO_EXTENSIONS,
    PathLike,
    is_unfinished,
    open_regular_file,
    replace_file,
)
from vidkin._base.values import parse_json, replace_controls
from vidkin.errors import InvalidArgumentError, MediaError

_logger = logging.getLogger(__name__)

LIST_FILE = ".vidkin-outputs.jsonl"
"""Name of the list of outputs in each folder."""

# Number of bytes to read from the end of a list, enough for some 60,000 files.
_MAX_LIST_BYTES = 16 << 20
# A longer source text is replaced by its hash, so that a line can be appended in one write.
_MAX_SOURCE = 1000
_APPEND = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
# Every index has this file: a JSON object with this key.
_INDEX_FILE, _INDEX_KEY, _MAX_INDEX_FILE = "collection.json", "format_version", 1 << 20
_CHUNK = 1 << 20
_MEDIA_EXTENSIONS = VIDEO_EXTENSIONS | IMAGE_EXTENSIONS


def describe_source(what: str, *paths: PathLike) -> str:
    """Describe an output and its source files or folders for :func:`open_output`.

    The same sources always give the same text. File sizes and dates are included because cameras reuse file names, so
    different memory cards can hold different videos under the same names.

    Args:
        what: What the output contains, such as ``"groups of copies as CSV"``.
        paths: Source files, folders and URLs, in any order.
    """
    text = f"{what} of {', '.join(sorted(map(_describe_path, paths)))}"
    if len(text) <= _MAX_SOURCE:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{what} of {len(paths)} files ({digest})"


def _describe_path(path: PathLike) -> str:
    name = os.fspath(path)
    if "://" in name:  # an index on object storage
        return name
    name = os.path.realpath(os.path.expanduser(name))
    with suppress(OSError, ValueError):
        state = os.stat(name)
        if stat.S_ISREG(state.st_mode):
            # Whole seconds, because some file systems do not store fractions.
            changed = datetime.fromtimestamp(state.st_mtime_ns // 10**9, UTC).isoformat()
            return f"{name} ({state.st_size} bytes, {changed})"
    return name


def check_outputs(
    outputs: Mapping[str, tuple[PathLike | None, str]], *, inputs: Iterable[PathLike | None] = ()
) -> None:
    """Check before work starts that the output files of a command can be written.

    Args:
        outputs: For each option, the file (None if it was not given) and its source, see :func:`describe_source`.
        inputs: Files that the command reads; None and files that do not exist are ignored.

    Raises:
        InvalidArgumentError: A file must not be written (see :func:`open_output`), is also an input, or is named by two
            options.
    """
    read = [item for item in inputs if item is not None]
    taken: dict[str, str] = {}
    for option, (path, source) in outputs.items():
        if path is None:
            continue
        target = Path(path)
        name = replace_controls(os.fspath(path))
        real = os.path.normcase(os.path.realpath(target))
        if real in taken:
            raise InvalidArgumentError(f"{name}: {taken[real]} and {option} name the same file; choose another name")
        taken[real] = option
        try:
            # First, because this message is the most specific.
            for item in read:
                with suppress(OSError, ValueError):
                    if os.path.samefile(item, target):
                        hint = _explain_expansion(target, option)
                        raise _RefusedError(f"is also an input; choose another output file{hint}")
            _check_target(target, source)
        except _MediaExistsError as refused:
            raise InvalidArgumentError(f"{name}: {refused}{_explain_expansion(target, option)}") from None
        except _RefusedError as refused:
            raise InvalidArgumentError(f"{name}: {refused}") from None
        except OSError as error:
            raise InvalidArgumentError(f"{name}: cannot be written: {error.strerror or error}") from error


@contextmanager
def open_output(path: PathLike, *, source: str | None = None) -> Iterator[Path]:
    """Yield a temporary file that is renamed to ``path`` when the block succeeds, like
    :func:`~vidkin._base.files.replace_file`.

    Nothing or an empty file must exist at ``path``, or, with a ``source``, an unchanged file that was made from it. A
    file that appears there while the block runs is not replaced either.

    Args:
        path: The file to write.
        source: Source of the file, see :func:`describe_source`; with None, only new files are created and recorded
            nowhere.

    Raises:
        MediaError: The folder does not exist or belongs to an index, another file is at ``path``, or writing fails,
            inside the block or afterward. No partial file is left.
    """
    target = Path(path)
    temporary: Path | None = None
    try:
        if is_unfinished(target.name):  # a temporary file that the caller will rename
            with replace_file(target) as temporary:
                yield temporary
            return
        existing = _check_target(target, source)
        with replace_file(target, rename=partial(_move_into_place, existing=existing, source=source)) as temporary:
            yield temporary
    except _RefusedError as refused:
        raise MediaError(target, str(refused)) from None
    except MediaError as error:
        if temporary is None or error.path != os.fspath(temporary):
            raise
        raise MediaError(target, error.cause) from error
    except OSError as error:
        raise MediaError(target, f"cannot be written: {error.strerror or error}") from error


def check_free(path: PathLike, *, source: str | None = None) -> None:
    """Check before work starts that :func:`open_output` can write a file.

    Raises:
        MediaError: The file must not be written.
    """
    try:
        _check_target(Path(path), source)
    except _RefusedError as refused:
        raise MediaError(path, str(refused)) from None
    except OSError as error:
        raise MediaError(path, f"cannot be written: {error.strerror or error}") from error


class _RefusedError(Exception):
    """A file must not be written; the message states the cause and what to do."""


class _MediaExistsError(_RefusedError):
    """A file must not be written because it is an existing video or image."""


def _explain_expansion(target: Path, option: str) -> str:
    """Explain, as the end of a sentence, why an output option may name a media file by accident."""
    if target.suffix.lower() not in _MEDIA_EXTENSIONS:
        return ""
    return f"; the shell has probably expanded a pattern such as *{target.suffix}: put a file name after {option}"


def _check_target(target: Path, source: str | None) -> os.stat_result | None:
    """Check that an output can be written; return the state of the file it will replace, or None.

    Raises:
        _RefusedError: The file must not be written.
        OSError: The system refuses access.
    """
    folder = target.absolute().parent
    if not folder.is_dir():
        raise _RefusedError(
            f"cannot be written: there is no folder {replace_controls(os.fspath(folder))}; create it first"
        )
    if source is not None and (index := _find_index(folder)):
        raise _RefusedError(f"is in the folder of the index {replace_controls(index)}; choose a file elsewhere")
    try:
        existing = target.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(existing.st_mode):
        raise _RefusedError("cannot be written: it is a folder, not a file")
    if stat.S_ISLNK(existing.st_mode):
        raise _RefusedError("cannot be written: it is a link, not a file")
    if not stat.S_ISREG(existing.st_mode):
        raise _RefusedError("cannot be written: it is a device or a pipe, not a file")
    if not existing.st_size:
        return existing
    known = [] if source is None else _read_records(target)
    if any(made.source == source and made.size == existing.st_size for made in known):
        size, digest = _hash(target)
        known = _read_records(target)  # another process may have rewritten and recorded it since
        if any((made.source, made.size, made.sha256) == (source, size, digest) for made in known):
            return existing
    cause = "would be overwritten"
    if any(made.source == source for made in known):
        cause += ", and it changed since vidkin made it"
    elif known:
        cause += f", and vidkin made it from another source ({replace_controls(known[-1].source)})"
    if target.suffix.lower() in _MEDIA_EXTENSIONS:
        raise _MediaExistsError(f"{cause}; choose another name")
    raise _RefusedError(f"{cause}; choose another name, or move the file away first")


def _move_into_place(temporary: Path, target: Path, *, existing: os.stat_result | None, source: str | None) -> None:
    """Rename a finished file to its target, replacing the existing file; raise _RefusedError if that has changed."""
    if source is not None:
        # Record before renaming, because a file that is not in the list could never be replaced again.
        _record(target, source, *_hash(temporary))
    appeared = _RefusedError("would be overwritten: it appeared or changed in the meantime; choose another name")
    if existing is None:
        try:
            disk.rename_new(os.fspath(temporary), os.fspath(target))
        except FileExistsError:
            raise appeared from None
        return
    try:
        if not _is_same(target.lstat(), existing):
            raise appeared
        if not disk.exchange(os.fspath(temporary), os.fspath(target)):
            disk.rename(temporary, target)
            return
    except FileNotFoundError:  # deleted in the meantime
        _move_into_place(temporary, target, existing=None, source=None)
        return
    # The existing file now has the temporary name; restore it if it is not the expected file.
    if not _is_same(temporary.lstat(), existing):
        try:
            disk.exchange(os.fspath(temporary), os.fspath(target))
        except FileNotFoundError:
            disk.rename_new(os.fspath(temporary), os.fspath(target))
        raise appeared


def _is_same(state: os.stat_result, other: os.stat_result) -> bool:
    return (state.st_mode, state.st_ino, state.st_dev, state.st_size, state.st_mtime_ns) == (
        other.st_mode,
        other.st_ino,
        other.st_dev,
        other.st_size,
        other.st_mtime_ns,
    )


def _find_index(folder: Path) -> str:
    """Return the path of the index that this folder is in, or is; empty if there is none."""
    real = Path(os.path.realpath(folder))
    for parent in (real, *real.parents):
        with suppress(OSError, ValueError), open_regular_file(parent / _INDEX_FILE) as file:
            document = parse_json(file.read(_MAX_INDEX_FILE))
            if isinstance(document, dict) and _INDEX_KEY in document:
                return os.fspath(parent)
    return ""


@dataclass(frozen=True, slots=True)
class _OutputRecord:
    """Record of a file that vidkin made."""

    source: str
    size: int
    sha256: str


@dataclass(slots=True)
class _OutputList:
    """Content of an output list, up to the byte position read so far."""

    path: str = ""
    inode: int = 0
    end: int = 0
    files: dict[str, list[_OutputRecord]] = field(default_factory=dict)

    def read_new(self, path: str) -> None:
        """Read the lines that were added to the list, or another list from its beginning."""
        with open_regular_file(path) as file:
            state = os.fstat(file.fileno())
            if (self.path, self.inode) != (path, state.st_ino) or self.end > state.st_size:
                self.path, self.inode, self.end, self.files = path, state.st_ino, 0, {}
            file.seek(max(self.end, state.st_size - _MAX_LIST_BYTES))
            content = file.read(_MAX_LIST_BYTES) or b""
            whole, _, rest = content.rpartition(b"\n")
            for line in whole.split(b"\n"):
                with suppress(ValueError, TypeError, KeyError):
                    table = parse_json(line)
                    record = _OutputRecord(str(table["source"]), int(table["size"]), str(table["sha256"]))
                    self.files.setdefault(str(table["name"]), []).append(record)
            self.end = file.tell() - len(rest)


# The most recent list is cached, so that writing a thousand images to a folder does not read it a thousand times.
_last_list = _OutputList()
_LAST_LOCK = threading.Lock()


def _read_records(target: Path) -> list[_OutputRecord]:
    """Return the records of a file, newest last; empty if there is no readable list."""
    with _LAST_LOCK, suppress(OSError):
        _last_list.read_new(os.fspath(target.absolute().parent / LIST_FILE))
        return list(_last_list.files.get(target.name, ()))
    return []


def _record(target: Path, source: str, size: int, digest: str) -> None:
    """Append a line to the list of a folder in one write, so that lines from other processes stay intact."""
    folder, record = target.absolute().parent, _OutputRecord(source, size, digest)
    if record in _read_records(target):
        return
    # Begin with a newline, because an interrupted process may have left an incomplete line.
    line = f"\n{json.dumps({'name': target.name, **asdict(record)})}\n".encode("ascii")
    path = folder / LIST_FILE
    try:
        descriptor = os.open(path, _APPEND, 0o666)
    except OSError as error:
        _logger.info("%s: not recorded in %s, so it will not be replaced: %s", target, LIST_FILE, error)
        return
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            _logger.info("%s: not recorded in %s, which is a link or not a regular file", target, LIST_FILE)
            return
        disk.write(descriptor, line, os.fspath(path))
    finally:
        os.close(descriptor)
    disk.sync_file(path)


def _hash(path: Path) -> tuple[int, str]:
    """Return the size of a file and the hash of its bytes."""
    digest = hashlib.sha256()
    with open_regular_file(path) as file:
        while content := file.read(_CHUNK):
            digest.update(content)
        return file.tell(), digest.hexdigest()
