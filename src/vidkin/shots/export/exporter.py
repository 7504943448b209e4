"""All requested files of the shots of one or several videos, under names that overwrite nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin._base.outputs import create_folder
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.shots.export.edit import write_chapters, write_edl
from vidkin.shots.export.files import split_shots, write_thumbnails
from vidkin.shots.export.html import write_contact_sheet
from vidkin.shots.export.lists import write_shots_csv, write_stats_csv
from vidkin.shots.export.otio import import_otio, write_otio

if TYPE_CHECKING:
    from vidkin.media import SplitReport
    from vidkin.shots.shot import ShotDetection

__all__ = ["SHOT_FORMATS", "ExportedShots", "ShotExporter", "ShotFormat"]

_TABLE = "csv"
_FOLDERS = ("thumbnails", "split")


@dataclass(frozen=True, slots=True)
class ShotFormat:
    """A file that is made of the shots of one video.

    Attributes:
        ending: Of its name, if the file is named after the video.
        write: Called with the detection and the path; raises MediaError or InvalidArgumentError if that fails.
        require: Called before any work; raises MissingPartError if a package is missing.
        check: Called with the path of a file before any work; raises InvalidArgumentError if it cannot be written.
    """

    ending: str
    write: Callable[[ShotDetection, Path], None]
    require: Callable[[], object] | None = None
    check: Callable[[Path], object] | None = None


SHOT_FORMATS: Mapping[str, ShotFormat] = {
    "edl": ShotFormat(".edl", write_edl),
    "otio": ShotFormat(".otio", write_otio, require=import_otio),
    "chapters": ShotFormat(".chapters.txt", write_chapters),
    "stats": ShotFormat(".csv", write_stats_csv),
    "html": ShotFormat(".html", write_contact_sheet),
}
"""Formats of this room by name; a caller can add its own."""


@dataclass(frozen=True, slots=True)
class ExportedShots:
    """What was written for one video.

    Attributes:
        files: Name of the format and file, in order of writing.
        thumbnails: Images, one a shot.
        split: Pieces of the video; None if it was not to be split, or could not be.
        failures: File and cause of what could not be written.
    """

    files: tuple[tuple[str, Path], ...] = ()
    thumbnails: tuple[Path, ...] = ()
    split: SplitReport | None = None
    failures: tuple[tuple[str, str], ...] = ()


class ShotExporter:
    """Writes the requested files of one video after another.

    With one video a target is a file. With several it is a folder, created if it does not exist, and the files in it
    are named after the videos; so they are with one video if the folder exists. No input video is ever overwritten,
    nor a file of this exporter by another one.

    Args:
        targets: Where to write what: names of ``formats``, ``csv`` (one table of the shots of all videos),
            ``thumbnails`` and ``split`` (folders of images and of pieces of the video).
        sources: The videos.
        formats: By name.

    Raises:
        InvalidArgumentError: A folder does not exist or is a file, a file is one of the videos or is named twice, or a
            name is unknown.
        MissingPartError: A package is not installed.
    """

    def __init__(
        self,
        targets: Mapping[str, Path],
        sources: Sequence[str],
        *,
        formats: Mapping[str, ShotFormat] = SHOT_FORMATS,
    ) -> None:
        self._targets = dict(targets)
        self._sources = tuple(sources)
        self._formats = dict(formats)
        self._names: set[str] = set()
        # Real path -> what it is.
        self._owners = {os.path.realpath(source): "one of the videos" for source in sources}
        for name, target in targets.items():
            self._check(name, target)

    def export(self, detection: ShotDetection) -> ExportedShots:
        """Write all files of one video; what fails (a full disk, a file without times to split by, ...) is reported,
        the rest is written."""
        stem = Path(detection.path).stem
        name, count = stem, 1
        # Names that differ only in case are one name on many disks.
        while name.casefold() in self._names:
            count += 1
            name = f"{stem}-{count}"
        self._names.add(name.casefold())
        own_folder = "" if name == stem else name
        files: list[tuple[str, Path]] = []
        failures: list[tuple[str, str]] = []
        for key, form in self._formats.items():
            if (path := self._targets.get(key)) is not None:
                with _collect(failures, detection.path):
                    if len(self._sources) > 1:
                        create_folder(path)
                    if os.path.isdir(path):
                        path = path / f"{name}{form.ending}"
                    self._claim(key, path)
                    form.write(detection, path)
                    files.append((key, path))
        thumbnails: tuple[Path, ...] = ()
        if (folder := self._targets.get("thumbnails")) is not None:
            with _collect(failures, detection.path):
                thumbnails = write_thumbnails(detection, folder / own_folder)
        report = None
        if (folder := self._targets.get("split")) is not None:
            with _collect(failures, detection.path):
                self._check_pieces(folder / own_folder, stem)
                report = split_shots(detection, folder / own_folder)
        return ExportedShots(tuple(files), thumbnails, report, tuple(failures))

    def export_table(
        self, detections: Sequence[ShotDetection]
    ) -> tuple[Path | None, tuple[tuple[str, str], ...]]:
        """Write the table of the shots of all videos.

        Returns:
            Its path, or None if no table is requested, there are no videos or it fails; and (file, cause) of a failure.
        """
        path = self._targets.get(_TABLE)
        if path is None or not detections:
            return None, ()
        failures: list[tuple[str, str]] = []
        with _collect(failures, os.fspath(path)):
            write_shots_csv(detections, path)
        return None if failures else path, tuple(failures)

    def _check(self, name: str, target: Path) -> None:
        """Raise an error, before any video is read, if a target could not be written later."""
        known = (_TABLE, *_FOLDERS, *self._formats)
        if name not in known:
            raise InvalidArgumentError(f"targets must be among {', '.join(known)}, got {name!r}")
        form = self._formats.get(name)
        if form is not None and form.require is not None:
            form.require()
        shown = repr(os.fspath(target))
        is_folder = os.path.isdir(target)
        if name in _FOLDERS or (len(self._sources) > 1 and name != _TABLE):
            if os.path.exists(target) and not is_folder:
                raise InvalidArgumentError(
                    f"{name} must be a folder{'' if name in _FOLDERS else ' for several videos'}, got the file {shown}"
                )
            return
        if is_folder:
            if name == _TABLE:
                raise InvalidArgumentError(f"{name} must be a file, got the folder {shown}")
            return
        folder = target.absolute().parent
        if not os.path.isdir(folder):
            raise InvalidArgumentError(f"{name}: there is no folder {os.fspath(folder)!r}; create it first")
        self._claim(name, target)
        if form is not None and form.check is not None:
            form.check(target)

    def _claim(self, name: str, path: Path) -> None:
        """Reserve a file for a target, unless it is a video or the file of another target."""
        owner = self._owners.setdefault(os.path.realpath(path), f"the file of {name}")
        if owner != f"the file of {name}":
            raise InvalidArgumentError(
                f"{name} would overwrite {os.fspath(path)!r}, which is {owner}; choose another name"
            )

    def _check_pieces(self, folder: Path, stem: str) -> None:
        """Raise InvalidArgumentError if an input video has the name of a piece."""
        here = os.path.realpath(folder)
        for source in self._sources:
            place, name = os.path.split(os.path.realpath(source))
            if place == here and re.fullmatch(rf"{re.escape(stem)}-\d{{3,}}", Path(name).stem):
                raise InvalidArgumentError(
                    f"split would overwrite {source!r}, which is one of the videos; choose another folder"
                )


@contextmanager
def _collect(failures: list[tuple[str, str]], about: str) -> Iterator[None]:
    """Add an error inside the block to the list, with each file named once."""
    try:
        yield
    except MediaError as error:
        failures.append((about, error.cause if error.path == about else str(error)))
    except InvalidArgumentError as error:
        failures.append((about, str(error)))
