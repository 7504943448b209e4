"""The files that ``vidkin shots`` writes beside what it prints."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import printable

if TYPE_CHECKING:
    from vidkin.media import SplitReport
    from vidkin.shots import ShotDetection

__all__ = ["ShotFiles", "Written"]

# Option -> ending of the file, where a video's file is named after the video.
_ENDINGS = {
    "edl": ".edl",
    "otio": ".otio",
    "chapters": ".chapters.txt",
    "stats": ".csv",
    "plot": ".png",
    "html": ".html",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What was written for one video.

    Attributes:
        files: Option and file, in the order of writing.
        thumbnails: Pictures, one a shot.
        split: Pieces of the video; None if it was not to be split, or could not be.
        failures: File and cause of what could not be written.
    """

    files: tuple[tuple[str, Path], ...] = ()
    thumbnails: tuple[Path, ...] = ()
    split: SplitReport | None = None
    failures: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class ShotFiles:
    """Which files are wanted, and under which names.

    With one video an option names the file. With several it names a folder, made if it is not there, and the
    files in it are called after the videos; so they are with one video if the folder exists. A video that was given
    is never written over, nor one file of a run by another.

    Attributes:
        csv: The one table of the shots of all videos.
        edl: Target of the edit decision lists.
        otio: Target of the OpenTimelineIO timelines.
        chapters: Target of the chapters.
        stats: Target of the tables of the curve.
        plot: Target of the pictures of the curve.
        html: Target of the contact sheets.
        thumbnails: Folder of the pictures of shots.
        split: Folder of the pieces.
        drop_frame: Drop-frame time code in the edit decision lists.
        sources: The videos.
    """

    csv: Path | None = None
    edl: Path | None = None
    otio: Path | None = None
    chapters: Path | None = None
    stats: Path | None = None
    plot: Path | None = None
    html: Path | None = None
    thumbnails: Path | None = None
    split: Path | None = None
    drop_frame: bool = False
    sources: tuple[str, ...] = ()
    _used: set[str] = field(default_factory=set)
    _taken: dict[str, str] = field(default_factory=dict)

    @property
    def many(self) -> bool:
        """There are several videos."""
        return len(self.sources) > 1

    def check(self) -> None:
        """Refuse, before any video is read, what could not be written afterwards.

        Raises:
            InvalidArgumentError: A folder is not there or is a file, a file is one of the videos or is named twice, or
                a picture's ending is unknown.
            MissingPartError: A package is not installed.
        """
        self._taken = {os.path.realpath(source): "one of the videos" for source in self.sources}
        if self.drop_frame and self.edl is None:
            raise InvalidArgumentError("--drop-frame says how --edl counts; give --edl FILE with it")
        for option in ("csv", *_ENDINGS):
            target = self._target(option)
            if target is not None:
                self._check_target(option, target)
        for option in ("thumbnails", "split"):
            target = self._target(option)
            if target is not None and os.path.exists(target) and not os.path.isdir(target):
                raise InvalidArgumentError(
                    f"--{option} must name a folder, {printable(os.fspath(target))!r} is a file"
                )
        if self.plot is not None and not self.many and not os.path.isdir(self.plot):
            from vidkin.rendering.figures import require_picture_name

            require_picture_name(self.plot)
        if self.otio is not None:
            from vidkin.shots import import_otio

            import_otio()

    def _check_target(self, option: str, target: Path) -> None:
        shown = printable(os.fspath(target))
        if option == "csv" and os.path.isdir(target):
            raise InvalidArgumentError(f"--csv must name a file, {shown!r} is a folder")
        if self.many and option != "csv":
            if os.path.exists(target) and not os.path.isdir(target):
                raise InvalidArgumentError(
                    f"--{option} must name a folder for several videos, {shown!r} is a file"
                )
            return
        if not os.path.isdir(target.absolute().parent):
            raise InvalidArgumentError(
                f"there is no folder {printable(os.fspath(target.absolute().parent))!r} to write "
                f"--{option} to; make it first"
            )
        if not os.path.isdir(target):
            self._take(option, target)

    def _take(self, option: str, path: Path) -> None:
        """Keep a name for an option, unless it is that of a video or of another option's file.

        Raises:
            InvalidArgumentError: It is.
        """
        owner = self._taken.setdefault(os.path.realpath(path), f"the file of --{option}")
        if owner != f"the file of --{option}":
            raise InvalidArgumentError(
                f"--{option} would write over {printable(os.fspath(path))!r}, which is {owner}; "
                "give it another name"
            )

    def write_csv(self, found: Sequence[ShotDetection]) -> tuple[Path | None, list[tuple[str, str]]]:
        """Write the table of all videos: its file, if it is wanted and there are any; file and cause if that fails."""
        from vidkin.shots import write_shots_csv

        failures: list[tuple[str, str]] = []
        if self.csv is None or not found:
            return None, failures
        with _told(failures, os.fspath(self.csv)):
            write_shots_csv(found, self.csv)
        return None if failures else self.csv, failures

    def write(self, detection: ShotDetection) -> Written:
        """Write all that is wanted for one video; what fails (a rate without drop-frame, no curve to draw, a file
        without times to split by, a full disk) is told, the rest is written."""
        from vidkin.shots import split_shots, write_thumbnails

        name = self._name_of(detection)
        files: list[tuple[str, Path]] = []
        failures: list[tuple[str, str]] = []
        for option, write in self._writers().items():
            target = self._target(option)
            if target is None:
                continue
            with _told(failures, detection.path):
                if self.many:
                    _make(target)
                path = target / f"{name}{_ENDINGS[option]}" if os.path.isdir(target) else target
                self._take(option, path)
                write(detection, path)
                files.append((option, path))
        thumbnails: tuple[Path, ...] = ()
        if self.thumbnails is not None:
            with _told(failures, detection.path):
                thumbnails = write_thumbnails(detection, self._folder(self.thumbnails, detection, name))
        report = None
        if self.split is not None:
            with _told(failures, detection.path):
                folder = self._folder(self.split, detection, name)
                self._spare_videos(folder, Path(detection.path).stem)
                report = split_shots(detection, folder)
        return Written(tuple(files), thumbnails, report, tuple(failures))

    def _target(self, option: str) -> Path | None:
        target: Path | None = getattr(self, option)
        return target

    def _writers(self) -> dict[str, Callable[[ShotDetection, Path], None]]:
        from vidkin.rendering.pictures import draw_curve
        from vidkin.shots import write_chapters, write_contact_sheet, write_edl, write_otio, write_stats_csv

        return {
            "edl": lambda found, path: write_edl(found, path, drop_frame=self.drop_frame),
            "otio": write_otio,
            "chapters": write_chapters,
            "stats": write_stats_csv,
            "plot": draw_curve,
            "html": write_contact_sheet,
        }

    def _name_of(self, detection: ShotDetection) -> str:
        """The video's name without its ending; with a number behind it if another video took it already."""
        stem = Path(detection.path).stem
        name, count = stem, 1
        # Names that differ in case alone are one name on many disks.
        while name.casefold() in self._used:
            count += 1
            name = f"{stem}-{count}"
        self._used.add(name.casefold())
        return name

    def _spare_videos(self, folder: Path, stem: str) -> None:
        """Raise InvalidArgumentError if a video that was given has the name of a piece."""
        here = os.path.realpath(folder)
        for source in self.sources:
            place, name = os.path.split(os.path.realpath(source))
            if place == here and re.fullmatch(rf"{re.escape(stem)}-\d{{3,}}", Path(name).stem):
                raise InvalidArgumentError(
                    f"a piece would be written over {printable(source)!r}, which is one of the videos; "
                    "give --split another folder"
                )

    @staticmethod
    def _folder(folder: Path, detection: ShotDetection, name: str) -> Path:
        return folder if name == Path(detection.path).stem else folder / name


@contextmanager
def _told(failures: list[tuple[str, str]], about: str) -> Iterator[None]:
    """Turn what goes wrong inside into an entry of the list, each file named once."""
    try:
        yield
    except MediaError as error:
        same = error.path == about
        failures.append((about, error.cause if same else str(error)))
    except InvalidArgumentError as error:
        failures.append((about, str(error)))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(folder, f"the folder cannot be made ({error.strerror or error})") from error
