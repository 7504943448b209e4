"""Keep an index up to date with folders that change; new files are added once they are complete."""

from __future__ import annotations

import logging
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin.errors import CollectionLockedError, InvalidArgumentError
from vidkin.index.collection import Index
from vidkin.index.ingest.executor import Executor
from vidkin.index.ingest.pruning import Prune
from vidkin.index.ingest.report import IngestReport, OnProgress
from vidkin.index.ingest.scan import Scan, VideoFile, rescan, scan
from vidkin.index.storage.folder_rules import FolderRules
from vidkin.index.storage.manifest import MANIFEST_FILE

_logger = logging.getLogger(__name__)

SETTLE = 3.0
"""A file is read once its size and modification time have not changed for this many seconds."""

# Seconds between scans even without a notification, because the system does not report changes made by other computers.
_RESCAN = 300.0
_RESCAN_UNWATCHED = 30.0
# Seconds to wait for another writer before scanning again.
_WAIT = 10.0
# Pauses in seconds: between checks for notifications, and while another process is writing.
_MIN_PAUSE = 0.25
_LOCKED_PAUSE = 5.0
# Pause after a full scan as a multiple of its duration, so that scans use at most a tenth of one CPU core.
_SCAN_PAUSE_FACTOR = 9.0
# Event types that indicate changes; merely reading a file causes other notifications.
_CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})


@check_arguments
def watch_folders(
    index: Index,
    paths: PathLike | Iterable[PathLike],
    *,
    settle: float = SETTLE,
    stop: threading.Event | None = None,
    workers: int | None = None,
    prune: Prune = False,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
) -> Iterator[IngestReport]:
    """Keep an index up to date with folders until the caller stops iterating.

    Files are added as by :meth:`Index.add`, with the rules saved in the index, once they have stopped changing: their
    size and modification time have been the same for ``settle`` seconds, and no process of this user has them open for
    writing (Linux only). The index is locked only during updates; while another process is writing, updates wait.

    Args:
        index: The index, which must not be read-only.
        paths: Folders, files or patterns.
        settle: How long a file must remain unchanged, in seconds; more than 0.
        stop: Event that ends the iteration soon after it is set, for example from another thread.
        workers, prune, on_progress, executor: As for :meth:`Index.add`.

    Yields:
        A report after each update; the first comes after ``settle`` seconds.

    Raises:
        InvalidArgumentError: ``settle`` is not positive.
        IngestInterrupted: Ctrl-C was pressed during an update; contains the report so far. Between updates, Ctrl-C
            raises KeyboardInterrupt.
    """
    if not 0 < settle < math.inf:
        raise InvalidArgumentError(f"settle must be more than 0 s, got {settle}")
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)

    def update(found: Scan) -> IngestReport:
        return index.add(
            names,
            workers=workers,
            prune=prune,
            on_progress=on_progress,
            executor=executor,
            wait=_WAIT,
            found=found,
        )

    return _follow(index, names, update, Settling(settle), stop or threading.Event())


@dataclass
class Settling:
    """Tracks which files have stopped changing.

    Args:
        seconds: How long a file must remain unchanged, in seconds.
    """

    seconds: float = SETTLE
    _seen: dict[str, tuple[VideoFile, float]] = field(default_factory=dict)
    _gone: dict[str, float] = field(default_factory=dict)
    _done: dict[str, VideoFile] = field(default_factory=dict)

    def look(self, scan: Scan, now: float) -> bool:
        """Record a scan made at time ``now`` (seconds); return whether there is anything to update."""
        before, self._seen = self._seen, {}
        for file in scan.files:
            known = before.get(file.path)
            self._seen[file.path] = known if known is not None and known[0] == file else (file, now)
        gone = {path: self._gone.get(path, now) for path in self._done if path not in self._seen}
        self._gone = gone
        # A moved file must settle under its new name before the old one counts as gone; otherwise its features would be
        # removed instead of moved.
        return any(now - since >= self.seconds for since in gone.values()) or bool(self.settled(now))

    def settled(self, now: float) -> dict[str, VideoFile]:
        """Files that have stopped changing but have not been processed in their current state."""
        waiting = {path: file for path, (file, _) in self._seen.items() if self._done.get(path) != file}
        return {path: file for path, file in waiting.items() if now - self._seen[path][1] >= self.seconds}

    def waits(self) -> bool:
        """Whether an update may be needed even without further changes."""
        return bool(self._gone) or any(self._done.get(path) != file for path, (file, _) in self._seen.items())

    def unsettled(self) -> set[str]:
        """Files that have not been processed in their current state and may still be changing."""
        return {path for path, (file, _) in self._seen.items() if self._done.get(path) != file} | set(self._gone)

    def hold(self, paths: Collection[str], now: float) -> None:
        """Mark files as still changing, regardless of their size and modification time."""
        for path in paths:
            self._seen[path] = (self._seen[path][0], now)

    def finish(self, files: dict[str, VideoFile]) -> None:
        """Mark these files as processed in their current state, and missing files as handled."""
        self._done = {path: file for path, file in self._done.items() if path not in self._gone} | files
        self._gone = {}

    def is_finished(self, file: VideoFile) -> bool:
        """Whether a file has been processed in its current state."""
        return self._done.get(file.path) == file


def _follow(
    index: Index,
    names: Sequence[PathLike],
    update: Callable[[Scan], IngestReport],
    settling: Settling,
    stop: threading.Event,
) -> Iterator[IngestReport]:
    """Watch for changes and update the index with the files that have settled."""
    changed = ChangedPaths()
    with ExitStack() as stack:
        begun = time.monotonic()
        files = scan(names, index.manifest.rules)
        took, scanned = time.monotonic() - begun, time.monotonic()
        folders = _identities(files)
        is_watched = _watch(files, changed, index.place.folder, stack)
        while not stop.is_set():
            pause = _RESCAN if is_watched else _RESCAN_UNWATCHED
            now = time.monotonic()
            if settling.look(files, now):
                settling.hold(open_for_writing(settling.settled(now)), now)
            if settling.look(files, now):
                ready = settling.settled(now)
                try:
                    report = update(files.only(partial(_is_chosen, ready, settling)))
                except CollectionLockedError as error:
                    _logger.info("%s; trying again", error)
                    pause = _LOCKED_PAUSE
                else:
                    settling.finish(ready)
                    yield report
            elif settling.waits():
                pause = settling.seconds / 2
            end = time.monotonic() + pause
            while not (stop.wait(_MIN_PAUSE) or changed.has_any() or time.monotonic() >= end):
                pass
            is_due = time.monotonic() >= scanned + (_RESCAN if is_watched else _RESCAN_UNWATCHED)
            looked = None if is_due else _rescan(files, changed.take() | settling.unsettled(), index.manifest.rules)
            if looked is not None:
                files = looked
                continue
            stop.wait(max(scanned + _SCAN_PAUSE_FACTOR * took - time.monotonic(), 0.0))
            changed.take()
            begun = time.monotonic()
            files = scan(names, index.manifest.rules)
            took, scanned = time.monotonic() - begun, time.monotonic()
            if (present := _identities(files)) != folders:
                # Restart the observer: if a folder was recreated or mounted, it would still watch the old one.
                stack.close()
                folders, is_watched = present, _watch(files, changed, index.place.folder, stack)


class ChangedPaths:
    """Thread-safe set of paths reported as changed by the operating system."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: set[str] = set()

    def add(self, paths: Iterable[str]) -> None:
        """Add changed paths."""
        with self._lock:
            self._paths.update(paths)

    def has_any(self) -> bool:
        """Whether any path has changed."""
        return bool(self._paths)

    def take(self) -> set[str]:
        """Return all changed paths and clear them."""
        with self._lock:
            paths, self._paths = self._paths, set()
        return paths


def _rescan(files: Scan, changed: Collection[str], rules: FolderRules) -> Scan | None:
    """Update a scan after changes to some paths; return None if a full scan is necessary.

    Known files are only checked for size and modification time. Files that are not videos, such as partial downloads,
    are ignored. For new and missing files, only the containing folder is read.
    """
    known = {file.path: file for file in files.files}
    beside_named = {os.path.dirname(path) for path in files.named if path not in files.folders}
    grown: dict[str, VideoFile] = {}
    folders: set[str] = set()
    for path in changed:
        parent = os.path.dirname(path)
        if os.path.basename(path) == MANIFEST_FILE:
            folders.add(os.path.dirname(parent))  # the parent folder has become an index, or ceased to be one
            continue
        try:
            state = os.lstat(path)
        except OSError:
            if path in files.named:
                return None
            if path in known or path in files.listed:
                folders.add(parent)
            continue  # otherwise it was not part of the scan
        is_file = stat.S_ISREG(state.st_mode)
        if path in known and is_file:
            grown[path] = VideoFile(path, state.st_size, state.st_mtime_ns)
        elif path in files.listed and path not in files.named:
            folders.add(path)  # recreated
        elif not is_file or _has_indexed_extension(path, rules):
            if path in files.named or parent in beside_named:
                return None
            folders.add(parent)
    if grown:
        files = replace(files, files=tuple(grown.get(file.path, file) for file in files.files))
    # Ignore folders that the scan skipped; new folders are read recursively.
    folders &= files.listed
    return rescan(files, folders, rules) if folders else files


def _has_indexed_extension(path: str, rules: FolderRules) -> bool:
    """Whether a file has an extension that is indexed."""
    return os.path.splitext(path)[1].lower() in rules.extensions


def _identities(scan: Scan) -> dict[str, tuple[int, int]]:
    """Device and inode of each existing folder of a scan, to detect folders that were replaced."""
    found = {}
    for folder in scan.folders:
        with suppress(OSError):
            state = os.stat(folder)
            found[folder] = (state.st_dev, state.st_ino)
    return found


def _is_chosen(ready: Mapping[str, VideoFile], settling: Settling, file: VideoFile) -> bool:
    return ready.get(file.path) == file or settling.is_finished(file)


def open_for_writing(paths: Collection[str]) -> set[str]:
    """Files that are open for writing in a process of this user; empty on systems other than Linux."""
    found: set[str] = set()
    names = {os.path.realpath(path): path for path in paths}
    if not names:
        return found
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return found
    for process in processes:
        folder = f"/proc/{process}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:  # the process has exited, or belongs to another user
            continue
        for descriptor in descriptors:
            try:
                name = names.get(os.readlink(f"{folder}/{descriptor}"))
                if name is not None and os.lstat(f"{folder}/{descriptor}").st_mode & 0o200:
                    found.add(name)
            except OSError:
                continue
    return found


def _watch(scan: Scan, changed: ChangedPaths, ignored: Path | None, stack: ExitStack) -> bool:
    """Start recording file system changes in ``changed``; return whether all folders are watched.

    Changes in the folder ``ignored``, the index itself, are not recorded.
    """
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    inside = None if ignored is None else os.path.join(os.path.abspath(ignored), "")

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.event_type not in _CHANGES or (event.is_directory and event.event_type == "modified"):
                return  # changes to files in the folder are reported separately
            paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
            changed.add(path for path in paths if inside is None or not os.path.join(path, "").startswith(inside))

    observer = Observer()
    handler = Handler()
    parents = {os.path.dirname(path) for path in scan.named if path not in scan.folders}
    try:
        for folder in scan.folders:
            observer.schedule(handler, folder, recursive=True)
        for folder in parents - set(scan.folders):
            if os.path.isdir(folder):
                observer.schedule(handler, folder, recursive=False)
        observer.start()
    except OSError as error:
        _logger.warning(
            "these folders cannot be watched for changes (%s); scanning them every %d s instead",
            error,
            _RESCAN_UNWATCHED,
        )
        observer.unschedule_all()
        return False
    stack.callback(observer.join)
    stack.callback(observer.stop)
    return True
