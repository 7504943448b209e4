"""Keep an index up to date with folders while they change: what appears is added once it is complete."""

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
from vidkin.index.ingest.scan import Scan, VideoFile, scan, scan_again
from vidkin.index.storage.folder_rules import FolderRules
from vidkin.index.storage.manifest import MANIFEST_FILE

_logger = logging.getLogger(__name__)

SETTLE = 3.0
"""Seconds for which size and modification time of a file must stay as they are before it is read."""

# Seconds after which folders are looked at without a message of the system: it has none for what other computers write.
_RESCAN = 300.0
_RESCAN_UNWATCHED = 30.0
# Seconds to wait for another writer before the folders are looked at again.
_WAIT = 10.0
# Pauses while many messages arrive, and while another process writes.
_SHORTEST_PAUSE = 0.25
_LOCKED_PAUSE = 5.0
# After a scan of all folders so many times as long without another one: they take a tenth of a processor at most.
_SHARE_OF_SCANS = 9.0
# Own reading makes messages, too: only these kinds say that something may be new.
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
    """Keep an index up to date with folders: a report after each change, until the caller stops.

    Files are handled as by :meth:`Index.add`, by the rules that the index remembers, once they have stopped changing:
    size and modification time have stayed the same for ``settle`` seconds, and no process of this account has them open
    for writing (Linux). The first report comes after ``settle`` seconds. Between two updates the index is not locked;
    while another process writes, this waits.

    Args:
        index: The index, not opened read-only.
        paths: Folders, files or patterns.
        settle: Seconds without change, more than 0.
        stop: Ends the iteration soon after it is set, also from another thread.
        workers, prune, on_progress, executor: As of :meth:`Index.add`.

    Raises:
        InvalidArgumentError: ``settle`` is not above 0.
        IngestInterrupted: On Ctrl-C during an update, with the report so far; at other times it is KeyboardInterrupt.
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
    """Which files have stopped changing.

    Args:
        seconds: How long a file must stay as it is.
    """

    seconds: float = SETTLE
    _seen: dict[str, tuple[VideoFile, float]] = field(default_factory=dict)
    _gone: dict[str, float] = field(default_factory=dict)
    _done: dict[str, VideoFile] = field(default_factory=dict)

    def look(self, scan: Scan, now: float) -> bool:
        """Note the files of a scan at this time (seconds); whether there is something to do."""
        before, self._seen = self._seen, {}
        for file in scan.files:
            known = before.get(file.path)
            self._seen[file.path] = known if known is not None and known[0] == file else (file, now)
        gone = {path: self._gone.get(path, now) for path in self._done if path not in self._seen}
        self._gone = gone
        # A file that was moved settles under its new name first, so that its features move with it.
        return any(now - since >= self.seconds for since in gone.values()) or bool(self.settled(now))

    def settled(self, now: float) -> dict[str, VideoFile]:
        """The files that have stopped changing and were not handed out as they are."""
        waiting = {path: file for path, (file, _) in self._seen.items() if self._done.get(path) != file}
        return {path: file for path, file in waiting.items() if now - self._seen[path][1] >= self.seconds}

    def waits(self) -> bool:
        """Whether something may have to be done without any further change."""
        return bool(self._gone) or any(self._done.get(path) != file for path, (file, _) in self._seen.items())

    def unsettled(self) -> set[str]:
        """The files that were not handed out as they are: they may still be changing."""
        return {path for path, (file, _) in self._seen.items() if self._done.get(path) != file} | set(self._gone)

    def hold(self, paths: Collection[str], now: float) -> None:
        """These files are still changing, whatever their size and time say."""
        for path in paths:
            self._seen[path] = (self._seen[path][0], now)

    def finish(self, files: dict[str, VideoFile]) -> None:
        """These files were handled as they are, and what was gone was noticed."""
        self._done = {path: file for path, file in self._done.items() if path not in self._gone} | files
        self._gone = {}

    def is_finished(self, file: VideoFile) -> bool:
        """Whether this file was handled as it is."""
        return self._done.get(file.path) == file


def _follow(
    index: Index,
    names: Sequence[PathLike],
    update: Callable[[Scan], IngestReport],
    settling: Settling,
    stop: threading.Event,
) -> Iterator[IngestReport]:
    """Look at the files that have changed, and update the index with those that have settled."""
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
            while not (stop.wait(_SHORTEST_PAUSE) or changed.are_there() or time.monotonic() >= end):
                pass
            is_due = time.monotonic() >= scanned + (_RESCAN if is_watched else _RESCAN_UNWATCHED)
            looked = None if is_due else _look_again(files, changed.take() | settling.unsettled(), index.manifest.rules)
            if looked is not None:
                files = looked
                continue
            stop.wait(max(scanned + _SHARE_OF_SCANS * took - time.monotonic(), 0.0))
            changed.take()
            begun = time.monotonic()
            files = scan(names, index.manifest.rules)
            took, scanned = time.monotonic() - begun, time.monotonic()
            if (present := _identities(files)) != folders:
                # Of a folder that was removed and made again, or mounted, the system watches the old one.
                stack.close()
                folders, is_watched = present, _watch(files, changed, index.place.folder, stack)


class ChangedPaths:
    """Paths of which the system said that they have changed; filled in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: set[str] = set()

    def add(self, paths: Iterable[str]) -> None:
        """Note these, too."""
        with self._lock:
            self._paths.update(paths)

    def are_there(self) -> bool:
        """Whether something has changed."""
        return bool(self._paths)

    def take(self) -> set[str]:
        """What has changed; forgotten here."""
        with self._lock:
            paths, self._paths = self._paths, set()
        return paths


def _look_again(files: Scan, changed: Collection[str], rules: FolderRules) -> Scan | None:
    """The scan as it is after these paths changed; None if all folders must be read for that.

    A file that grows is asked for its size alone, and what is no video and no folder does not matter, such as the part
    of a download. Of what is new or gone the folder is read, and no other one.
    """
    known = {file.path: file for file in files.files}
    beside_named = {os.path.dirname(path) for path in files.named if path not in files.folders}
    grown: dict[str, VideoFile] = {}
    folders: set[str] = set()
    for path in changed:
        parent = os.path.dirname(path)
        if os.path.basename(path) == MANIFEST_FILE:
            folders.add(os.path.dirname(parent))  # its folder has become an index, or is one no more
            continue
        try:
            state = os.lstat(path)
        except OSError:
            if path in files.named:
                return None
            if path in known or path in files.listed:
                folders.add(parent)
            continue  # or it was none of ours
        is_file = stat.S_ISREG(state.st_mode)
        if path in known and is_file:
            grown[path] = VideoFile(path, state.st_size, state.st_mtime_ns)
        elif path in files.listed and path not in files.named:
            folders.add(path)  # made again
        elif not is_file or _may_matter(path, rules):
            if path in files.named or parent in beside_named:
                return None
            folders.add(parent)
    if grown:
        files = replace(files, files=tuple(grown.get(file.path, file) for file in files.files))
    # What is in a folder that the scan left out does not matter; a folder above that is new is read with what is in it.
    folders &= files.listed
    return scan_again(files, folders, rules) if folders else files


def _may_matter(path: str, rules: FolderRules) -> bool:
    """Whether a file of this name may be taken."""
    return os.path.splitext(path)[1].lower() in rules.extensions


def _identities(scan: Scan) -> dict[str, tuple[int, int]]:
    """What tells each folder of a scan from another one of its name; those that are gone are left out."""
    found = {}
    for folder in scan.folders:
        with suppress(OSError):
            state = os.stat(folder)
            found[folder] = (state.st_dev, state.st_ino)
    return found


def _is_chosen(ready: Mapping[str, VideoFile], settling: Settling, file: VideoFile) -> bool:
    return ready.get(file.path) == file or settling.is_finished(file)


def open_for_writing(paths: Collection[str]) -> set[str]:
    """Those of some files that processes of this account have open for writing; none where the system does not say."""
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
        except OSError:  # it ended, or belongs to somebody else
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
    """Let the system note in ``changed`` what happens outside of the index; whether it watches all folders."""
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    inside = None if ignored is None else os.path.join(os.path.abspath(ignored), "")

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.event_type not in _CHANGES or (event.is_directory and event.event_type == "modified"):
                return  # what is new in a folder has a message of its own
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
            "the system does not watch these folders (%s); they are looked at every %d s", error, _RESCAN_UNWATCHED
        )
        observer.unschedule_all()
        return False
    stack.callback(observer.join)
    stack.callback(observer.stop)
    return True
