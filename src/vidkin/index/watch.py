"""Keep an index up to date with folders while they change: what appears is added once it is complete."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from vidkin._base.files import PathLike
from vidkin.errors import CollectionLockedError, InvalidArgumentError
from vidkin.index.collection import Index
from vidkin.index.ingest.executor import Executor
from vidkin.index.ingest.pruning import Prune
from vidkin.index.ingest.report import IngestReport, OnProgress
from vidkin.index.ingest.scan import Scan, VideoFile, scan

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
# Own reading makes messages, too: only these kinds say that something may be new.
_CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})


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

    def update(is_ready: Callable[[VideoFile], bool]) -> IngestReport:
        return index.add(
            names,
            workers=workers,
            prune=prune,
            on_progress=on_progress,
            executor=executor,
            wait=_WAIT,
            is_ready=is_ready,
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
    update: Callable[[Callable[[VideoFile], bool]], IngestReport],
    settling: Settling,
    stop: threading.Event,
) -> Iterator[IngestReport]:
    """Look at the files whenever something has changed, and update the index with those that have settled."""
    changed = threading.Event()
    with ExitStack() as stack:
        files = scan(names, index.manifest.rules)
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
                    report = update(partial(_is_chosen, ready, settling))
                except CollectionLockedError as error:
                    _logger.info("%s; trying again", error)
                    pause = _LOCKED_PAUSE
                else:
                    settling.finish(ready)
                    yield report
            elif settling.waits():
                pause = settling.seconds / 2
            end = time.monotonic() + pause
            while not (stop.wait(_SHORTEST_PAUSE) or changed.is_set() or time.monotonic() >= end):
                pass
            changed.clear()
            files = scan(names, index.manifest.rules)
            if (present := _identities(files)) != folders:
                # Of a folder that was removed and made again, or mounted, the system watches the old one.
                stack.close()
                folders, is_watched = present, _watch(files, changed, index.place.folder, stack)


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


def _watch(scan: Scan, changed: threading.Event, ignored: Path | None, stack: ExitStack) -> bool:
    """Let the system set ``changed`` by what happens outside of the index; whether it watches all folders."""
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    inside = None if ignored is None else os.path.join(os.path.abspath(ignored), "")

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            path = os.fsdecode(event.src_path)
            if event.event_type in _CHANGES and not (inside is not None and os.path.join(path, "").startswith(inside)):
                changed.set()

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
