"""The files that ``vidkin shots`` writes beside what it prints."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin.cli.console import printable
from vidkin.errors import InvalidArgumentError, MediaError

if TYPE_CHECKING:
    from vidkin.media import SplitReport
    from vidkin.shots import ShotDetection

__all__ = ["ShotFiles", "Written"]

# Option -> ending of the file, where a video's file is named after the video.
_ENDINGS = {"edl": ".edl", "otio": ".otio", "chapters": ".chapters.txt", "stats": ".csv", "plot": ".png"}


@dataclass(frozen=True, slots=True)
class Written:
    """What was written for one video.

    Attributes:
        files: Option and file, in the order of writing.
        thumbnails: Pictures, one a shot.
        split: Pieces of the video; None if it was not to be split, or could not be.
        failures: What could not be written, and why.
    """

    files: tuple[tuple[str, Path], ...] = ()
    thumbnails: tuple[Path, ...] = ()
    split: SplitReport | None = None
    failures: tuple[str, ...] = ()


@dataclass(slots=True)
class ShotFiles:
    """Which files are wanted, and under which names.

    With one video an option names the file. With several it names a folder, made if it is not there, and the
    files in it are called after the videos; so they are with one video if the folder exists.

    Attributes:
        edl: Target of the edit decision lists.
        otio: Target of the OpenTimelineIO timelines.
        chapters: Target of the chapters.
        stats: Target of the tables of the curve.
        plot: Target of the pictures of the curve.
        thumbnails: Folder of the pictures of shots.
        split: Folder of the pieces.
        drop_frame: Drop-frame time code in the edit decision lists.
        many: There are several videos.
    """

    edl: Path | None = None
    otio: Path | None = None
    chapters: Path | None = None
    stats: Path | None = None
    plot: Path | None = None
    thumbnails: Path | None = None
    split: Path | None = None
    drop_frame: bool = False
    many: bool = False
    _used: set[str] = field(default_factory=set)

    def check(self) -> None:
        """Refuse, before any video is read, what could not be written afterwards.

        Raises:
            InvalidArgumentError: A folder is not there or is a file, or a picture's ending is unknown.
            MissingPartError: A package is not installed.
        """
        for option in _ENDINGS:
            target = self._target(option)
            if target is None:
                continue
            if self.many:
                if target.exists() and not target.is_dir():
                    raise InvalidArgumentError(
                        f"--{option} must name a folder for several videos, "
                        f"{printable(os.fspath(target))!r} is a file"
                    )
            elif not target.absolute().parent.is_dir():
                raise InvalidArgumentError(
                    f"there is no folder {printable(os.fspath(target.absolute().parent))!r} to write "
                    f"--{option} to; make it first"
                )
        if self.plot is not None and not self.many and not self.plot.is_dir():
            from vidkin.cli.pictures import require_picture_name

            require_picture_name(self.plot)
        if self.otio is not None:
            from vidkin.shots import import_otio

            import_otio()

    def write(self, detection: ShotDetection) -> Written:
        """Write all that is wanted for one video; what fails (a rate without drop-frame, no curve to draw, a file
        without times to split by, a full disk) is told, the rest is written."""
        from vidkin.shots import split_shots, write_thumbnails

        name = self._name_of(detection)
        files: list[tuple[str, Path]] = []
        failures: list[str] = []
        for option, write in self._writers().items():
            target = self._target(option)
            if target is None:
                continue
            with _told(failures):
                if self.many:
                    _make(target)
                path = target / f"{name}{_ENDINGS[option]}" if target.is_dir() else target
                write(detection, path)
                files.append((option, path))
        thumbnails: tuple[Path, ...] = ()
        if self.thumbnails is not None:
            with _told(failures):
                thumbnails = write_thumbnails(detection, self._folder(self.thumbnails, detection, name))
        report = None
        if self.split is not None:
            with _told(failures):
                report = split_shots(detection, self._folder(self.split, detection, name))
        return Written(tuple(files), thumbnails, report, tuple(failures))

    def _target(self, option: str) -> Path | None:
        target: Path | None = getattr(self, option)
        return target

    def _writers(self) -> dict[str, Callable[[ShotDetection, Path], None]]:
        from vidkin.cli.pictures import draw_curve
        from vidkin.shots import write_chapters, write_edl, write_otio, write_stats_csv

        return {
            "edl": lambda found, path: write_edl(found, path, drop_frame=self.drop_frame),
            "otio": write_otio,
            "chapters": write_chapters,
            "stats": write_stats_csv,
            "plot": draw_curve,
        }

    def _name_of(self, detection: ShotDetection) -> str:
        """The video's name without its ending; with a number behind it if another video took it already."""
        stem = Path(detection.path).stem
        name, count = stem, 1
        while name in self._used:
            count += 1
            name = f"{stem}-{count}"
        self._used.add(name)
        return name

    @staticmethod
    def _folder(folder: Path, detection: ShotDetection, name: str) -> Path:
        return folder if name == Path(detection.path).stem else folder / name


@contextmanager
def _told(failures: list[str]) -> Iterator[None]:
    """Turn what goes wrong inside into a line of the list."""
    try:
        yield
    except (MediaError, InvalidArgumentError) as error:
        failures.append(str(error))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(folder, f"the folder cannot be made ({error.strerror or error})") from error
