"""Write the requested files for the shots of one or more videos without overwriting others, and split videos."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike, create_folder, safe_name
from vidkin._base.outputs import check_outputs, describe_source, open_output
from vidkin._base.values import Result, check_at_least, check_choice
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import SplitReport, split_exactly, split_video
from vidkin.shots.formats import ShotFormat, find_shot_formats, shot_format_names
from vidkin.shots.images import IMAGE_FORMATS, ImageFormat, NameTemplate, write_thumbnails

if TYPE_CHECKING:
    from vidkin.shots.contract import ShotDetection

_FOLDERS = ("thumbnails", "split")
_MAX_CRF = 51


@check_constructor
@dataclass(frozen=True, slots=True)
class ExportSettings:
    """Settings for pieces and images.

    Attributes:
        template: Template for file names, see `NameTemplate`; None numbers the files.
        image_format: ``jpg``, ``png`` or ``webp``.
        image_size: Shorter side of images in pixels, at most that of the video; None for the video's size.
        images: Number of images per shot.
        copies: Whether to copy pieces between key frames without re-encoding, see `copy_shots`.
        quality: Constant rate factor (CRF) of encoded frames, from 1 (best) to 51.
    """

    template: str | None = None
    image_format: ImageFormat = "jpg"
    image_size: int | None = 160
    images: int = 1
    copies: bool = False
    quality: int = 18

    def __post_init__(self) -> None:
        NameTemplate(self.template)
        check_choice("image format", self.image_format, IMAGE_FORMATS)
        check_at_least(1, images=self.images, image_size=1 if self.image_size is None else self.image_size)
        if not 1 <= self.quality <= _MAX_CRF:
            raise InvalidArgumentError(f"quality must be from 1 (best) to {_MAX_CRF}, got {self.quality}")


@dataclass(frozen=True, slots=True)
class ExportedShots(Result):
    """The files written for one video.

    Attributes:
        files: Format name and path of each file, in the order written.
        thumbnails: The images, in shot order.
        split: Pieces of the video; None if it was not split.
        failures: (file, cause) for each file that could not be written.
    """

    files: tuple[tuple[str, Path], ...] = ()
    thumbnails: tuple[Path, ...] = ()
    split: SplitReport | None = None
    failures: tuple[tuple[str, str], ...] = ()


_DEFAULTS = ExportSettings()


@check_constructor
class ShotExporter:
    """Writes the requested files for one video after another.

    For a single video, a target is a file or an existing folder. For several videos, it is a folder, created if
    missing. Files in a folder are named after the videos. Only earlier outputs for the same video are overwritten,
    never an input video, another output of this exporter, or any other file.

    Args:
        targets: Output paths by name: names of ``formats`` (table formats write one file for all videos),
            ``thumbnails`` and ``split`` (folders for images and for pieces of the video).
        sources: The videos.
        formats: File formats by name; default: all, including those of other packages.
        settings: Settings for pieces and images.
        table_of: Files and folders to name as the source of tables; default: the videos.

    Raises:
        InvalidArgumentError: A folder does not exist or is a file, a target is one of the videos or is used twice, or a
            name is unknown.
        MissingPartError: A package is not installed.
    """

    def __init__(
        self,
        targets: Mapping[str, Path],
        sources: Sequence[str],
        *,
        formats: Mapping[str, ShotFormat] | None = None,
        settings: ExportSettings = _DEFAULTS,
        table_of: Sequence[PathLike] | None = None,
    ) -> None:
        self._targets = dict(targets)
        self._sources = tuple(sources)
        self._known = shot_format_names() if formats is None else tuple(formats)
        formats = find_shot_formats(targets) if formats is None else formats
        self._formats = {name: form for name, form in formats.items() if form.table is None}
        # Tables contain the shots of all videos and are written at the end.
        self._tables = {name: form.table() for name, form in formats.items() if form.table is not None}
        self._settings = settings
        self._template = NameTemplate(settings.template)
        self._table_of = sources if table_of is None else table_of
        self._names: set[str] = set()
        # Real path -> description of the file.
        self._owners = {_identity(source): "one of the videos" for source in sources}
        for name, target in targets.items():
            self._check(name, target)

    def export(
        self,
        detection: ShotDetection,
        *,
        on_progress: Callable[[float, float | None], None] | None = None,
    ) -> ExportedShots:
        """Write all files for a video. Failures (a full disk, a file without timestamps to split by, ...) are reported,
        and the remaining files are written.

        Args:
            detection: The shots.
            on_progress: Callback that receives (frames read, total number of frames) while the video is split.
        """
        stem = safe_name(Path(detection.path).stem)
        name, count = stem, 1
        # Names that differ only in case are identical on many file systems.
        while name.casefold() in self._names:
            count += 1
            name = f"{stem}-{count}"
        self._names.add(name.casefold())
        # If the template does not include the video's name, each video gets a separate folder.
        shared = len(self._sources) > 1 and not self._template.uses("name")
        own_folder = name if shared or name != stem else ""
        for table in self._tables.values():
            table.add(detection)
        files: list[tuple[str, Path]] = []
        failures: list[tuple[str, str]] = []
        for key, form in self._formats.items():
            if (path := self._targets.get(key)) is not None:
                with _collect(failures, detection.path):
                    if len(self._sources) > 1:
                        create_folder(path)
                    if os.path.isdir(path):
                        path = path / f"{name}{form.suffix}"
                    self._claim(key, path)
                    with open_output(path, source=describe_source(f"shots as {key}", detection.path)) as partial:
                        form.write(detection, partial)
                    files.append((key, path))
        thumbnails: tuple[Path, ...] = ()
        if (folder := self._targets.get("thumbnails")) is not None:
            with _collect(failures, detection.path):
                thumbnails = write_thumbnails(
                    detection,
                    folder / own_folder,
                    short_side=self._settings.image_size,
                    count=self._settings.images,
                    form=self._settings.image_format,
                    template=self._template,
                )
        report = None
        if (folder := self._targets.get("split")) is not None:
            with _collect(failures, detection.path):
                report = self._split(detection, folder / own_folder, on_progress)
        return ExportedShots(tuple(files), thumbnails, report, tuple(failures))

    def export_tables(self) -> tuple[dict[str, Path], tuple[tuple[str, str], ...]]:
        """Write the tables with the shots of all exported videos.

        Returns:
            The paths by format (empty if there are no videos), and the failures as (file, cause).
        """
        written: dict[str, Path] = {}
        failures: list[tuple[str, str]] = []
        for name, table in self._tables.items():
            path = self._targets[name]
            if len(table):
                with _collect(failures, os.fspath(path)):
                    table.write(path, source=self._source_of_table(name))
                    written[name] = path
        return written, tuple(failures)

    def _source_of_table(self, name: str) -> str:
        return describe_source(f"shots as {name}", *self._table_of)

    def _check(self, name: str, target: Path) -> None:
        """Raise an error if a target cannot be written, before any video is read."""
        known = dict.fromkeys((*_FOLDERS, *self._known))
        if name not in known:
            raise InvalidArgumentError(f"targets must be among {', '.join(known)}, got {name!r}")
        form = self._formats.get(name)
        if form is not None and form.require is not None:
            form.require()
        shown = repr(os.fspath(target))
        is_folder = os.path.isdir(target)
        if name in _FOLDERS or (len(self._sources) > 1 and name not in self._tables):
            if os.path.exists(target) and not is_folder:
                raise InvalidArgumentError(
                    f"{name} must be a folder{'' if name in _FOLDERS else ' for several videos'}, got the file {shown}"
                )
            absolute = target.absolute()
            parent = next(path for path in (absolute, *absolute.parents) if os.path.isdir(path))
            if not os.access(parent, os.W_OK):
                raise InvalidArgumentError(f"{name}: {os.fspath(parent)!r} cannot be written to; choose another folder")
            return
        if is_folder:
            if name in self._tables:
                raise InvalidArgumentError(f"{name} must be a file, got the folder {shown}")
            return
        folder = target.absolute().parent
        if not os.path.isdir(folder):
            raise InvalidArgumentError(f"{name}: there is no folder {os.fspath(folder)!r}; create it first")
        self._claim(name, target)
        is_table = name in self._tables
        made_of = self._source_of_table(name) if is_table else describe_source(f"shots as {name}", self._sources[0])
        check_outputs({f"--output {name}=": (target, made_of)})
        if form is not None and form.check is not None:
            form.check(target)

    def _claim(self, name: str, path: Path) -> None:
        """Reserve a file for a target; raise an error if it is a video or reserved for another target."""
        owner = self._owners.setdefault(_identity(path), f"the file of {name}")
        if owner != f"the file of {name}":
            raise InvalidArgumentError(
                f"{name} would overwrite {os.fspath(path)!r}, which is {owner}; choose another name"
            )

    def _split(
        self,
        detection: ShotDetection,
        folder: Path,
        on_progress: Callable[[float, float | None], None] | None,
    ) -> SplitReport:
        """Split a video; raise an error if a piece would have the name of an input video."""
        here = _identity(folder)
        # Names that differ only in case are identical on many file systems.
        names = {self._template.format(detection, position + 1).casefold() for position in range(len(detection.shots))}
        for source in self._sources:
            parent, name = os.path.split(os.path.realpath(source))
            if _identity(parent) == here and Path(name).stem.casefold() in names:
                raise InvalidArgumentError(
                    f"split would overwrite {source!r}, which is one of the videos; choose another folder"
                )
        if self._settings.copies:
            return copy_shots(detection, folder, template=self._template)
        return split_shots(
            detection,
            folder,
            quality=self._settings.quality,
            template=self._template,
            on_progress=on_progress,
        )


@contextmanager
def _collect(failures: list[tuple[str, str]], about: str) -> Iterator[None]:
    """Append an error raised in the block to the list, without repeating the file name in its cause."""
    try:
        yield
    except MediaError as error:
        failures.append((about, error.cause if error.path == about else str(error)))
    except InvalidArgumentError as error:
        failures.append((about, str(error)))


@check_arguments
def split_shots(
    detection: ShotDetection,
    folder: PathLike,
    *,
    quality: int = 18,
    template: NameTemplate | None = None,
    on_progress: Callable[[float, float | None], None] | None = None,
) -> SplitReport:
    """Write every shot as a frame-accurate file; see `vidkin.media.split_by_frame`.

    ``parts`` of the pieces are indices into ``detection.shots``. Without shots, there are no pieces.
    """
    if not detection.shots:
        return SplitReport((), ())
    return split_exactly(
        detection.path,
        folder,
        detection.shots,
        times=detection.frame_times,
        names=_piece_names(detection, template),
        stream=detection.stream,
        time_code=detection.time_code,
        quality=quality,
        on_progress=on_progress,
    )


@check_arguments
def copy_shots(detection: ShotDetection, folder: PathLike, *, template: NameTemplate | None = None) -> SplitReport:
    """Split the video at its shots without re-encoding; see `vidkin.media.split_video`.

    A piece starts at the last key frame at or before its shot, and gets the number of its first shot. ``parts`` of the
    pieces are indices into ``detection.shots``. Frames between non-adjacent shots are dropped as far as key frames
    allow.
    """
    if not detection.shots:
        return SplitReport((), ())
    # Start, name and shot of each part; parts between shots have no name.
    parts: list[tuple[float, str | None, int]] = [] if detection.shots[0].start <= 0 else [(0.0, None, -1)]
    names = _piece_names(detection, template)
    for position, (shot, name) in enumerate(zip(detection.shots, names, strict=True)):
        if position and detection.shots[position - 1].end_frame < shot.start_frame:
            parts.append((detection.shots[position - 1].end, None, -1))
        parts.append((shot.start, name, position))
    parts.append((detection.shots[-1].end, None, -1))
    starts, named, shots = zip(*parts, strict=True)
    report = split_video(
        detection.path, folder, starts, names=named, stream=detection.stream, time_code=detection.time_code
    )
    pieces = tuple(
        replace(piece, parts=tuple(shots[part] for part in piece.parts if shots[part] >= 0)) for piece in report.pieces
    )
    return replace(report, pieces=pieces)


def _piece_names(detection: ShotDetection, template: NameTemplate | None) -> list[str]:
    names = template or NameTemplate()
    return [names.format(detection, number) for number in range(1, len(detection.shots) + 1)]


def _identity(path: PathLike) -> str:
    """Return the canonical path of a file, to compare files by."""
    return os.path.normcase(os.path.realpath(path))
