"""Find indexed videos whose files are gone, and decide whether to remove their records: an unmounted network share
looks like an empty folder."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal

from vidkin._base.values import parse_json
from vidkin.errors import CollectionDamagedError
from vidkin.index.ingest.scan import CHANGING, Scan
from vidkin.index.storage.files import NamedFolders, is_gone, write_atomically
from vidkin.index.storage.folder_rules import FolderRules
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord

Prune = bool | Literal["anyway"]
"""Whether to remove videos whose files are gone or excluded; ``"anyway"`` overrides :class:`PruneGuard`."""

_MOUNTS = "/proc/self/mountinfo"
_UUIDS = "/dev/disk/by-uuid"
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Losses:
    """Indexed videos that a scan of their folders did not find.

    Attributes:
        scan: The scan.
        gone: Missing files in scanned folders, and missing files named by the caller.
        excluded: Files that the rules now exclude.
        unreachable: Files in named folders that are themselves missing.
        staying: Paths of all other indexed files in the scanned folders.
    """

    scan: Scan
    gone: tuple[VideoRecord, ...]
    excluded: tuple[VideoRecord, ...]
    unreachable: tuple[VideoRecord, ...]
    staying: tuple[str, ...]

    @property
    def missing_folders(self) -> tuple[str, ...]:
        """Named folders that are missing and used to contain indexed videos."""
        paths = [record.path for record in self.unreachable]
        return tuple(root for root, _ in self.scan.problems if _count_below(root, paths))

    @property
    def records(self) -> tuple[VideoRecord, ...]:
        """Records to remove unless the guard refuses."""
        return self.gone + self.excluded + self.unreachable

    def without(self, paths: Collection[str]) -> Losses:
        """Return a copy without these files."""
        gone, excluded, unreachable = (
            tuple(record for record in records if record.path not in paths)
            for records in (self.gone, self.excluded, self.unreachable)
        )
        return replace(self, gone=gone, excluded=excluded, unreachable=unreachable)


def find_losses(records: Iterable[VideoRecord], scan: Scan, rules: FolderRules) -> Losses:
    """Compare the videos of an index with the files of a scan.

    Args:
        records: All records of the index, including records added after the scan.
        scan: The scan.
        rules: Rules for files in folders.
    """
    folders = NamedFolders(scan.folders)
    named = {path for path, _ in scan.problems}
    missing = NamedFolders(path for path in named if is_gone(path))
    seen = {file.path for file in scan.files}
    gone, excluded, unreachable, staying = [], [], [], []
    for record in records:
        folder = folders.holding(record.path)
        if record.path in seen:
            if folder is not None:
                staying.append(record.path)
        elif folder is None and record.path not in named:
            if missing.holding(record.path) is not None:
                unreachable.append(record)
        elif is_gone(record.path):
            gone.append(record)
        elif folder is not None and rules.excludes_below(record.path, folder):
            excluded.append(record)
        elif folder is not None:
            staying.append(record.path)
    return Losses(scan, tuple(gone), tuple(excluded), tuple(unreachable), tuple(staying))


@dataclass(frozen=True, slots=True)
class Device:
    """The drive or network share that contains a folder.

    Attributes:
        mount: Mount point.
        source: A name that is stable across reboots, such as a UUID; empty if the system provides none.
    """

    mount: str
    source: str = ""

    def differs_from(self, other: Device) -> bool:
        """Whether the devices certainly differ; an unknown source may match any other."""
        return self.mount != other.mount or bool(self.source and other.source and self.source != other.source)

    def __str__(self) -> str:
        return f"{self.source} at {self.mount}" if self.source else self.mount


def identify_device(path: str) -> Device:
    """Identify the drive or network share that contains a folder.

    Device numbers change when a drive is reconnected, and names such as ``/dev/sdb1`` after a reboot; mount points,
    share addresses and file system UUIDs do not.
    """
    path = os.path.realpath(path)
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return _identify_without_list(path)
    device = Device("")
    for line in lines:
        of_mount, _, of_system = line.partition(" - ")
        mount, source = _unescape(of_mount.split(" ")[4]), _unescape(of_system.split(" ")[1])
        # If several file systems are mounted at one point, the last one hides the others.
        if len(mount) >= len(device.mount) and os.path.join(path, "").startswith(os.path.join(mount, "")):
            device = Device(mount, source)
    return Device(device.mount, _stable_source(device.source))


def _unescape(field: str) -> str:
    return _OCTAL.sub(lambda code: chr(int(code[1], 8)), field)


def _stable_source(source: str) -> str:
    if not source.startswith("/dev/"):
        return source
    with suppress(OSError):
        for uuid in os.listdir(_UUIDS):
            if os.path.realpath(os.path.join(_UUIDS, uuid)) == os.path.realpath(source):
                return f"UUID={uuid}"
    return source if source.startswith("/dev/mapper/") else ""


def _identify_without_list(path: str) -> Device:
    mount = path
    while not os.path.ismount(mount) and os.path.dirname(mount) != mount:
        mount = os.path.dirname(mount)
    # On Windows, the device number identifies the volume and does not change.
    return Device(mount, str(os.stat(path).st_dev) if os.name == "nt" else "")


class PruneGuard:
    """Refuses to remove videos whose drive or share may be disconnected, and records which device contained them.

    Args:
        place: Location of the index; None to record nothing.
        removed_by_plan: Callback that returns the paths of files that removal plans have moved away.

    Raises:
        CollectionDamagedError: The list of devices cannot be read.
    """

    FILE = "devices.json"

    def __init__(self, place: Place | None = None, removed_by_plan: Callable[[], Collection[str]] = frozenset) -> None:
        self._place = place
        self._removed_by_plan = removed_by_plan
        self._devices = {} if place is None else self.read_devices(place)

    @classmethod
    def read_devices(cls, place: Place) -> dict[str, Device]:
        """Read the recorded devices of an index, keyed by folder; each also applies to subfolders that are not listed.

        Raises:
            CollectionDamagedError: The file exists but cannot be read.
        """
        content = place.read(cls.FILE)
        if content is None:
            return {}
        try:
            devices = {folder: Device(**values) for folder, values in parse_json(content.decode())["devices"].items()}
            if not all(isinstance(text, str) for device in devices.values() for text in (device.mount, device.source)):
                raise TypeError("a device must have a mount point and a source")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CollectionDamagedError(
                f"{place.address(cls.FILE)} is damaged ({error}); delete it and run `vidkin index` to recreate it"
            ) from error
        return devices

    def moved_away(self, losses: Losses) -> list[VideoRecord]:
        """Records of files that were moved away by removal plans."""
        lost = losses.gone + losses.unreachable
        # Read the plan logs only if files are missing.
        moved = self._removed_by_plan() if lost else ()
        return [record for record in lost if record.path in moved]

    def refusal_reason(self, losses: Losses) -> str:
        """Return the reason not to remove these videos, with advice; empty if they may be removed."""
        cause = _refusal_reason(losses, self._devices)
        return f"nothing was pruned: {cause}" if cause else ""

    def record_devices(self, scan: Scan, missing: Sequence[VideoRecord]) -> None:
        """Save the devices of the scanned folders; folders of missing files keep their previous device.

        Args:
            scan: The scan.
            missing: Records of missing files that remain in the index.
        """
        if self._place is None:
            return
        files = [file.path for file in scan.files]
        lost = sorted(record.path for record in missing)
        named = {os.path.dirname(path) for path in scan.named if _contains(files, path)}
        scanned = {*scan.folders, *scan.mounts, *named}
        roots = NamedFolders(scan.folders)
        devices: dict[str, Device] = {}
        for folder in sorted({*scanned, *self._devices}, key=len):
            stays = _contains_below(lost, folder) or (folder not in scanned and roots.holding(folder) is None)
            if stays and folder in self._devices:
                devices[folder] = self._devices[folder]
            elif folder in scanned and _contains_below(files, folder):
                device = identify_device(folder)
                if device != _device_of(folder, devices):
                    devices[folder] = device
        if devices != self._devices:
            table = {folder: asdict(devices[folder]) for folder in sorted(devices)}
            # JSON escapes non-ASCII characters, which preserves names that are not valid UTF-8.
            write_atomically(self._place, self.FILE, json.dumps({"devices": table}, indent=2).encode())
            self._devices = devices


def _refusal_reason(losses: Losses, devices: Mapping[str, Device]) -> str:
    if not losses.records:
        return ""
    scan = losses.scan
    gone = [record.path for record in losses.gone]
    unreachable = [record.path for record in losses.unreachable]
    if missing := losses.missing_folders:
        return (
            f"{missing[0]} is missing, and {_describe_losses(_count_below(missing[0], unreachable))}; connect its "
            "drive or share and run the command again, or add --prune-anyway if it was deleted intentionally"
        )
    present = [*losses.staying, *(record.path for record in losses.excluded)]
    present += [path for path, reason in scan.skipped if reason == CHANGING]
    for root in scan.folders:
        if (count := _count_below(root, gone)) and not _count_below(root, present):
            return (
                f"{root} no longer contains videos, as if its drive or share were disconnected, and "
                f"{_describe_losses(count)}; connect it and run the command again, or add --prune-anyway if they were "
                "deleted intentionally"
            )
    roots = NamedFolders(scan.folders)
    named = {os.path.dirname(path) for path in gone if roots.holding(path) is None}
    below = {folder for folder in devices if roots.holding(folder) is not None}
    for folder in sorted({*scan.folders, *named, *below}):
        before, count = _device_of(folder, devices), _count_below(folder, gone)
        if before is None or not count:
            continue
        now = None if is_gone(folder) else identify_device(folder)
        if now is None or now.differs_from(before):
            state = "is missing" if now is None else f"is on another drive or share ({now}) than before ({before})"
            return (
                f"{folder} {state}, and {_describe_losses(count)}; connect its drive or share and run the command "
                "again, or add --prune-anyway to remove them from the index"
            )
    # Missing files named individually do not count: presumably they were deleted intentionally.
    count = sum(roots.holding(path) is not None for path in gone) + len(losses.excluded)
    total = count + len(losses.staying)
    if 2 * count > total:
        return (
            f"{count:,} of {_videos(total)} indexed from these folders are gone or excluded, more than half; check the "
            "folders and options, or add --prune-anyway to remove them from the index"
        )
    return ""


def _count_below(folder: str, paths: Iterable[str]) -> int:
    inside = NamedFolders([folder])
    return sum(inside.holding(path) is not None for path in paths)


def _device_of(folder: str, devices: Mapping[str, Device]) -> Device | None:
    """Device of the innermost recorded folder that contains a folder."""
    while folder not in devices:
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return devices[folder]


def _contains(paths: Sequence[str], path: str) -> bool:
    position = bisect_left(paths, path)
    return position < len(paths) and paths[position] == path


def _contains_below(paths: Sequence[str], folder: str) -> bool:
    """Whether any of these sorted paths is in the folder."""
    inside = os.path.join(folder, "")
    position = bisect_left(paths, inside)
    return position < len(paths) and paths[position].startswith(inside)


def _videos(count: int) -> str:
    return "1 video" if count == 1 else f"{count:,} videos"


def _describe_losses(count: int) -> str:
    return f"{_videos(count)} in the index {'was' if count == 1 else 'were'} in it"
