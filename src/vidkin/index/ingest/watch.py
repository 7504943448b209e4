"""Keep an index up to date with folders while they change: what appears is added once it is complete."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from vidkin.errors import CollectionLockedError
from vidkin.index.ingest.report import IngestReport
from vidkin.index.ingest.scan import Scan, VideoFile

_logger = logging.getLogger(__name__)

SETTLE = 3.0
"""Seconds for which size and modification time of a file must stay as they are before it is read."""

# Seconds after which folders are looked at without a message of the system: it has none for what other computers write.
_RESCAN = 300.0
_RESCAN_UNWATCHED = 30.0
# Pauses while many messages arrive, and while another process writes.
_SHORTEST_PAUSE = 0.25
_LOCKED_PAUSE = 5.0
# Own reading makes messages, too: only these kinds say that something may be new.
_CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})


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


def watch_folders(
    look: Callable[[], Scan],
    update: Callable[[Callable[[VideoFile], bool]], IngestReport],
    *,
    ignored: str | None = None,
    settle: float = SETTLE,
    stop: threading.Event | None = None,
) -> Iterator[IngestReport]:
    """Yield a report after each change of some folders, until ``stop`` is set.

    The first one comes after ``settle`` seconds. A file is handed to ``update`` once size and modification time have
    stayed the same for that time and no process of this account has it open for writing (Linux).

    Args:
        look: Scans the folders.
        update: Brings the index up to date with the files for which its argument is true; takes and releases the lock.
        ignored: A folder whose changes mean nothing: that of the index.
        settle: Seconds without change.
        stop: Ends the iteration when it is set.
    """
    stop = stop or threading.Event()
    changed = threading.Event()
    settling = Settling(settle)
    with ExitStack() as stack:
        scan = look()
        is_watched = _watch(scan, changed, ignored, stack)
        while not stop.is_set():
            pause = _RESCAN if is_watched else _RESCAN_UNWATCHED
            now = time.monotonic()
            if settling.look(scan, now):
                settling.hold(open_for_writing(settling.settled(now)), now)
            if settling.look(scan, now):
                ready = settling.settled(now)
                try:
                    report = update(lambda file: ready.get(file.path) == file or settling.is_finished(file))  # noqa: B023
                except CollectionLockedError as error:
                    _logger.info("%s; trying again", error)
                    pause = _LOCKED_PAUSE
                else:
                    settling.finish(ready)
                    yield report
            elif settling.waits():
                pause = settle / 2
            end = time.monotonic() + pause
            while not (stop.wait(_SHORTEST_PAUSE) or changed.is_set() or time.monotonic() >= end):
                pass
            changed.clear()
            scan = look()


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


def _watch(scan: Scan, changed: threading.Event, ignored: str | None, stack: ExitStack) -> bool:
    """Let the system set ``changed``; whether it watches all folders."""
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
