"""Files that a person names, such as ``--output FILE``: nothing that exists is written over.

A file gets a name that is free, or takes the place of one that vidkin made before from the same source and that nobody
changed since. What was made is noted in a hidden list in the folder, one line of JSON a file: its name, its source, its
size and its hash. The list can only allow to replace a regular file that still has this hash; a lost or damaged line,
or a folder in which no list can be written, means that the next run is refused, never that something is lost.
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
"""Name of the list in each folder of what vidkin made there."""

# The end of a list that is read; one of so many bytes tells of some 60,000 files.
_MAX_LIST = 16 << 20
# Characters of a source; what is longer is told by its hash. A line of the list stays below what one write appends.
_MAX_SOURCE = 1000
_APPEND = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
# An index has this file, a JSON object with this key.
_INDEX_FILE, _INDEX_KEY, _MAX_INDEX_FILE = "collection.json", "format_version", 1 << 20
_CHUNK = 1 << 20
_MEDIA_EXTENSIONS = VIDEO_EXTENSIONS | IMAGE_EXTENSIONS


def describe_source(what: str, *paths: PathLike) -> str:
    """What an output is, and of which files or folders: the same text for the same source, for :func:`open_output`.

    Of a file its size and date count as well: a card of a camera brings other videos under the same names.

    Args:
        what: What the output shows: ``"groups of copies as CSV"``.
        paths: The files, folders and addresses that it was made of, in any order.
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
            # Whole seconds, which every file system keeps.
            changed = datetime.fromtimestamp(state.st_mtime_ns // 10**9, UTC).isoformat()
            return f"{name} ({state.st_size} bytes, {changed})"
    return name


def check_outputs(
    outputs: Mapping[str, tuple[PathLike | None, str]], *, inputs: Iterable[PathLike | None] = ()
) -> None:
    """Raise an error before any work if one of the files of a command could not be written later.

    Args:
        outputs: For each option, the file (None if it was not given) and its source, see :func:`describe_source`.
        inputs: Files that the command reads; None and files that do not exist are ignored.

    Raises:
        InvalidArgumentError: A file may not be written, see :func:`open_output`, is one of the inputs, or is named by
            two options.
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
            # First, because the sentence about it says most.
            for item in read:
                with suppress(OSError, ValueError):
                    if os.path.samefile(item, target):
                        raise _RefusedError(f"is also an input; choose another output file{_expanded(target, option)}")
            _look(target, source)
        except _MediaInTheWayError as refused:
            raise InvalidArgumentError(f"{name}: {refused}{_expanded(target, option)}") from None
        except _RefusedError as refused:
            raise InvalidArgumentError(f"{name}: {refused}") from None
        except OSError as error:
            raise InvalidArgumentError(f"{name}: cannot be written: {error.strerror or error}") from error


@contextmanager
def open_output(path: PathLike, *, source: str | None = None) -> Iterator[Path]:
    """Yield a temporary file that gets the name ``path`` when the block succeeds, as
    :func:`~vidkin._base.files.replace_file` does.

    The name must be free: there is nothing, or an empty file; or, with a ``source``, a file that was made from it
    before and is unchanged. What appears there while the block runs stays, too.

    Args:
        path: The file to write.
        source: What it is made of, see :func:`describe_source`; None makes new files only, and notes nothing.

    Raises:
        MediaError: The folder does not exist, there is something else at ``path``, it is in the folder of an index, or
            writing fails, inside the block as well; nothing is left behind.
    """
    target = Path(path)
    temporary: Path | None = None
    try:
        if is_unfinished(target.name):  # a temporary file of a caller, who gives it its name
            with replace_file(target) as temporary:
                yield temporary
            return
        held = _look(target, source)
        with replace_file(target, rename=partial(_put, held=held, source=source)) as temporary:
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
    """Raise the error of :func:`open_output` before the work for a file begins.

    Raises:
        MediaError: The file may not be written.
    """
    try:
        _look(Path(path), source)
    except _RefusedError as refused:
        raise MediaError(path, str(refused)) from None
    except OSError as error:
        raise MediaError(path, f"cannot be written: {error.strerror or error}") from error


class _RefusedError(Exception):
    """Why a file may not be written, and what to do."""


class _MediaInTheWayError(_RefusedError):
    """There is a video or an image."""


def _expanded(target: Path, option: str) -> str:
    """What explains that an option for a file names a media file, as the end of a sentence."""
    if target.suffix.lower() not in _MEDIA_EXTENSIONS:
        return ""
    return f"; the shell has probably expanded a pattern such as *{target.suffix}: put a file name after {option}"


def _look(target: Path, source: str | None) -> os.stat_result | None:
    """What is at the name of an output and may be replaced; None for nothing.

    Raises:
        _RefusedError: It may not be written there.
        OSError: It cannot be looked at.
    """
    folder = target.absolute().parent
    if not folder.is_dir():
        raise _RefusedError(
            f"cannot be written: there is no folder {replace_controls(os.fspath(folder))}; create it first"
        )
    if source is not None and (index := _index_around(folder)):
        raise _RefusedError(f"is in the folder of the index {replace_controls(index)}; choose a file elsewhere")
    try:
        held = target.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(held.st_mode):
        raise _RefusedError("cannot be written: it is a folder, not a file")
    if stat.S_ISLNK(held.st_mode):
        raise _RefusedError("cannot be written: it is a link, not a file")
    if not stat.S_ISREG(held.st_mode):
        raise _RefusedError("cannot be written: it is a device or a pipe, not a file")
    if not held.st_size:
        return held
    known = [] if source is None else _made_before(target)
    if any(made.source == source and made.size == held.st_size for made in known):
        size, digest = _measure(target)
        known = _made_before(target)  # another process may have noted and made it anew
        if any((made.source, made.size, made.sha256) == (source, size, digest) for made in known):
            return held
    what = "would be written over"
    if any(made.source == source for made in known):
        what += ", and it changed since vidkin made it"
    elif known:
        what += f", and vidkin made it from something else ({replace_controls(known[-1].source)})"
    if target.suffix.lower() in _MEDIA_EXTENSIONS:
        raise _MediaInTheWayError(f"{what}; choose another name")
    raise _RefusedError(f"{what}; choose another name, or move it away first")


def _put(temporary: Path, target: Path, *, held: os.stat_result | None, source: str | None) -> None:
    """Give a written file its name, in the place of what was found there before; _RefusedError if that changed."""
    if source is not None:
        # Before the name is given: a file that is not in the list would never be replaced again.
        _note(target, source, *_measure(temporary))
    appeared = _RefusedError("would be written over: it appeared or changed in the meantime; choose another name")
    if held is None:
        try:
            disk.rename_new(os.fspath(temporary), os.fspath(target))
        except FileExistsError:
            raise appeared from None
        return
    try:
        if not _is_same(target.lstat(), held):
            raise appeared
        if not disk.exchange(os.fspath(temporary), os.fspath(target)):
            disk.rename(temporary, target)
            return
    except FileNotFoundError:  # deleted meanwhile
        _put(temporary, target, held=None, source=None)
        return
    # Now the earlier file has the temporary name. If it is another one than before, it goes back.
    if not _is_same(temporary.lstat(), held):
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


def _index_around(folder: Path) -> str:
    """The index that a folder is, or is in; empty if there is none."""
    real = Path(os.path.realpath(folder))
    for parent in (real, *real.parents):
        with suppress(OSError, ValueError), open_regular_file(parent / _INDEX_FILE) as file:
            document = parse_json(file.read(_MAX_INDEX_FILE))
            if isinstance(document, dict) and _INDEX_KEY in document:
                return os.fspath(parent)
    return ""


@dataclass(frozen=True, slots=True)
class _Made:
    """A file as vidkin made it."""

    source: str
    size: int
    sha256: str


@dataclass(slots=True)
class _ReadList:
    """What was read of a list, up to which byte of which file."""

    path: str = ""
    inode: int = 0
    end: int = 0
    files: dict[str, list[_Made]] = field(default_factory=dict)

    def read_on(self, path: str) -> None:
        """Read what is new in a list, or a list that is not the last one from its beginning."""
        with open_regular_file(path) as file:
            state = os.fstat(file.fileno())
            if (self.path, self.inode) != (path, state.st_ino) or self.end > state.st_size:
                self.path, self.inode, self.end, self.files = path, state.st_ino, 0, {}
            file.seek(max(self.end, state.st_size - _MAX_LIST))
            content = file.read(_MAX_LIST) or b""
            whole, _, rest = content.rpartition(b"\n")
            for line in whole.split(b"\n"):
                with suppress(ValueError, TypeError, KeyError):
                    table = parse_json(line)
                    made = _Made(str(table["source"]), int(table["size"]), str(table["sha256"]))
                    self.files.setdefault(str(table["name"]), []).append(made)
            self.end = file.tell() - len(rest)


# The last list that was read: a thousand images in one folder do not read it a thousand times.
_last = _ReadList()
_LAST_LOCK = threading.Lock()


def _made_before(target: Path) -> list[_Made]:
    """As what vidkin made a file before, the newest last; nothing if there is no list that can be read."""
    with _LAST_LOCK, suppress(OSError):
        _last.read_on(os.fspath(target.absolute().parent / LIST_FILE))
        return list(_last.files.get(target.name, ()))
    return []


def _note(target: Path, source: str, size: int, digest: str) -> None:
    """Append a line to the list of a folder, in one write, so that lines of other processes stay whole."""
    folder, made = target.absolute().parent, _Made(source, size, digest)
    if made in _made_before(target):
        return
    # It begins with a line end: the last line of somebody who was interrupted has none.
    line = f"\n{json.dumps({'name': target.name, **asdict(made)})}\n".encode("ascii")
    path = folder / LIST_FILE
    try:
        descriptor = os.open(path, _APPEND, 0o666)
    except OSError as error:
        _logger.info("%s: not noted in %s, so it will not be replaced: %s", target, LIST_FILE, error)
        return
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            _logger.info("%s: not noted in %s, which is not a file of its own", target, LIST_FILE)
            return
        disk.write(descriptor, line, os.fspath(path))
    finally:
        os.close(descriptor)
    disk.sync_file(path)


def _measure(path: Path) -> tuple[int, str]:
    """Bytes of a file, and their hash."""
    digest = hashlib.sha256()
    with open_regular_file(path) as file:
        while content := file.read(_CHUNK):
            digest.update(content)
        return file.tell(), digest.hexdigest()
