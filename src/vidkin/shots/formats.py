"""File formats for shots, all listed in `SHOT_FORMATS`, which the command, web page, API and docs use.

To add a format, write its function and add a row; other packages register theirs in the entry point group
``vidkin.shot_formats``.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from xml.etree import ElementTree

import numpy as np

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.install import install_command
from vidkin._base.outputs import describe_source, open_output
from vidkin._base.registry import Registry
from vidkin._base.values import write_csv_rows
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.media import probe
from vidkin.media.frames import first_at
from vidkin.media.time_code import SourceClock, require_drop_frame, smpte_rate
from vidkin.shots.images import write_contact_sheet
from vidkin.shots.labels import LabelTable, annotate_shots, write_shot_annotations

if TYPE_CHECKING:
    from vidkin.shots.contract import Shot, ShotDetection


@dataclass(frozen=True, slots=True)
class ShotFormat:
    """A file format for the shots of a video.

    Attributes:
        suffix: File extension, used if the file is named after the video.
        write: Function that writes a detection to a path; raises MediaError or InvalidArgumentError on failure.
        label: Short description for users, for example ``"edit decision list (EDL)"``.
        media_type: MIME type.
        require: Function called before any work, which raises MissingPartError if a package is missing.
        check: Function called with the path before any work, which raises InvalidArgumentError if it cannot be written.
        suffixes: Additional extensions that `match_shot_format` recognizes.
        reads_video: Whether writing the file decodes the video again.
        table: Factory of a `ShotsOfVideos` that collects several videos in one file; None for one file per video.
    """

    suffix: str
    write: Callable[[ShotDetection, Path], None]
    label: str = "file"
    media_type: str = "application/octet-stream"
    require: Callable[[], object] | None = None
    check: Callable[[Path], object] | None = None
    suffixes: tuple[str, ...] = ()
    reads_video: bool = False
    table: Callable[[], ShotsOfVideos] | None = None


class ShotsOfVideos(Protocol):
    """Collects the shots of several videos in one file."""

    def __len__(self) -> int:
        """Number of videos added."""
        ...

    def add(self, detection: ShotDetection) -> None:
        """Add the shots of a video."""
        ...

    def write(self, path: PathLike, *, source: str) -> None:
        """Write the file; ``source`` describes the videos, see :func:`vidkin._base.outputs.describe_source`."""
        ...


def shot_format_names() -> tuple[str, ...]:
    """Return the names of all formats, with those of other packages last."""
    others = [name for name in _REGISTRY.usages() if name not in SHOT_FORMATS]
    return (*SHOT_FORMATS, *others)


@check_arguments
def find_shot_format(name: str) -> ShotFormat:
    """Find a format by name, in `SHOT_FORMATS` or in other packages.

    Raises:
        InvalidArgumentError: There is no format with this name; the message lists all names.
    """
    found = _REGISTRY.find(name)
    if found is None:
        raise _REGISTRY.unknown(name)
    return found


@check_arguments
def find_shot_formats(names: Collection[str]) -> dict[str, ShotFormat]:
    """Find the formats with these names, in table order, without importing other formats."""
    return {name: find_shot_format(name) for name in shot_format_names() if name in names} if names else {}


@check_arguments
def match_shot_format(path: PathLike) -> str:
    """Return the name of the format for a file's extension; the longest matching extension takes precedence.

    Raises:
        InvalidArgumentError: No format has this extension; the message lists all extensions.
    """
    file = Path(path).name.lower()
    endings: dict[str, str] = {}
    # Formats of other packages are imported only if no built-in format has the extension.
    for names in (tuple(SHOT_FORMATS), shot_format_names()):
        for name in names:
            form = find_shot_format(name)
            for suffix in (form.suffix, *form.suffixes):
                endings.setdefault(suffix, name)
        fitting = [suffix for suffix in endings if file.endswith(suffix)]
        if fitting:
            return endings[max(fitting, key=len)]
    raise InvalidArgumentError(
        f"{os.fspath(path)}: the ending chooses the format and must be one of {', '.join(endings)}"
    )


@check_arguments
def write_edl(
    detection: ShotDetection, path: PathLike, *, rate: Fraction | None = None, drop_frame: bool = False
) -> None:
    """Write the shots as a CMX 3600 edit decision list with one cut event per shot from the source reel ``AX``.

    Source times are the file's time code, or relative to its start if it has none; the timeline starts at zero.
    Positions are wall-clock times rounded to frames of the timeline, and therefore within half a frame of the shot.
    Gradual transitions are part of the footage, so they become comments, not dissolves. Events have the numbers of
    their shots; shots without a frame at the timeline's rate are omitted.

    Args:
        detection: The shots.
        path: Output file.
        rate: Frames per second of the timeline; None: the video's `timeline_rate`, or its replacement by `smpte_rate`
            if no time code exists for that rate.
        drop_frame: Write drop-frame time code (29.97 and 59.94 only). By default, the file's time code determines
            this; without a time code, it is non-drop, which all systems read correctly.

    Raises:
        InvalidArgumentError: Drop-frame time code does not exist at this rate.
        MediaError: The file cannot be written.
    """
    clock, own = _code_clock(detection, rate), detection.clock().rate
    if drop_frame:
        require_drop_frame(clock.rate)
        clock = replace(clock, drop_frame=True)
    lines = _edl_head(detection, clock)
    record = 0
    for number, first, last, shot in _timeline_frames(detection, clock):
        lines += _edl_event(number, clock, (first, last, record, record + last - first))
        lines.append(f"* FROM CLIP NAME: {_one_line(Path(detection.path).name)}")
        if clock.rate != own and not record:
            lines.append(f"* VIDKIN: time code counts {float(clock.rate):g} frames per second")
        if shot.kind != "start":
            lines.append(f"* VIDKIN: {shot.kind} transition, confidence {shot.confidence:.2f}")
        if shot.critical is not None:
            lines.append(f"* VIDKIN: critical {shot.critical:.2f}")
        record += last - first
    _write_text(path, describe_source("shots as edl", detection.path), "\n".join([*lines, ""]))


@check_arguments
def write_scene_cuts(detection: ShotDetection, path: PathLike) -> None:
    """Write the cuts as an edit decision list for DaVinci Resolve, for its scene cut detection or to split a file on a
    timeline.

    The events have no comments, and their timeline times equal the source times, so that nothing moves.

    Raises:
        MediaError: The file cannot be written.
    """
    clock = _code_clock(detection)
    lines = _edl_head(detection, clock)
    for number, first, last, _ in _timeline_frames(detection, clock):
        lines += _edl_event(number, clock, (first, last, first, last))
    _write_text(path, describe_source("shots as scenes", detection.path), "\n".join([*lines, ""]))


def _code_clock(detection: ShotDetection, rate: Fraction | None = None) -> SourceClock:
    """Return the time code of a video, by default at a rate for which time code exists."""
    return detection.clock(rate or smpte_rate(detection.clock().rate))


def _timeline_frames(detection: ShotDetection, clock: SourceClock) -> Iterator[tuple[int, int, int, Shot]]:
    """Yield (number, first frame, last frame + 1, shot) for each shot that has a frame on the timeline."""
    for number, shot in enumerate(detection.shots, start=1):
        first, last = clock.frame(shot.start), clock.frame(shot.end)
        if last > first:
            yield number, first, last, shot


def _edl_head(detection: ShotDetection, clock: SourceClock) -> list[str]:
    counting = "DROP FRAME" if clock.drop_frame else "NON-DROP FRAME"
    return [f"TITLE: {_one_line(Path(detection.path).stem)}", f"FCM: {counting}", ""]


def _edl_event(number: int, clock: SourceClock, frames: Sequence[int]) -> list[str]:
    return [f"{number:03d}  AX       V     C        {' '.join(map(clock.code, frames))}"]


@check_arguments
def write_chapters(detection: ShotDetection, path: PathLike) -> None:
    """Write the shots as chapters in FFmpeg's metadata format, with times in milliseconds from the start of the file.

    ``ffmpeg -i film.mp4 -i chapters.txt -map_metadata 1 -map_chapters 1 -codec copy out.mp4`` adds them to a video.

    Raises:
        MediaError: The file cannot be written.
    """
    lines = [";FFMETADATA1", f"title={_escaped(Path(detection.path).stem)}"]
    for number, shot in enumerate(detection.shots, start=1):
        critical = " (critical)" if shot.is_critical else ""
        lines += [
            "[CHAPTER]",
            "TIMEBASE=1/1000",
            f"START={round((detection.offset + shot.start) * 1000)}",
            f"END={round((detection.offset + shot.end) * 1000)}",
            f"title={_escaped(f'Shot {number}{critical}')}",
        ]
    _write_text(path, describe_source("shots as chapters", detection.path), "\n".join([*lines, ""]))


def _one_line(text: str) -> str:
    """Replace line breaks and other control characters, which could start a new statement."""
    return "".join(char if char.isprintable() or "\ud800" <= char <= "\udfff" else "_" for char in text)


def _escaped(text: str) -> str:
    """Escape special characters for FFmpeg's metadata format with backslashes."""
    return "".join(f"\\{char}" if char in "=;#\\\n" else char for char in text)


def _write_text(path: PathLike, source: str, text: str) -> None:
    with open_output(path, source=source) as partial:
        partial.write_bytes(text.encode("utf-8", "surrogateescape"))


@check_arguments
def write_otio(detection: ShotDetection, path: PathLike, *, rate: Fraction | None = None) -> None:
    """Write the shots as an OpenTimelineIO video track with one clip per shot.

    Each clip has its range in the source, relative to the file's time code if there is one. Its metadata entry
    ``vidkin`` contains the kind and confidence of the opening transition, the exact times of the shot and the
    transition in seconds and, if available, the critical score; critical clips also have a red marker. Positions are
    wall-clock times rounded to frames of the timeline; shots without a frame at its rate are omitted.

    Args:
        detection: The shots.
        path: Output file; readers expect ``.otio``.
        rate: Frames per second of the timeline; None: the video's `timeline_rate`.

    Raises:
        MissingPartError: opentimelineio is not installed.
        MediaError: The file cannot be written.
    """
    otio = import_otio()
    clock = detection.clock(rate)

    def span(first: int, last: int) -> Any:
        time, rate = otio.opentime.RationalTime, float(clock.rate)
        return otio.opentime.TimeRange(time(first, rate), time(last - first, rate))

    name = _as_unicode(Path(detection.path).name)
    address = Path(detection.path).absolute().as_uri()
    whole = span(clock.begin, clock.frame(max((shot.end for shot in detection.shots), default=0.0)))
    timeline = otio.schema.Timeline(name=_as_unicode(Path(detection.path).stem))
    track = otio.schema.Track(name="shots", kind=otio.schema.TrackKind.Video)
    timeline.tracks.append(track)
    for number, first, last, shot in _timeline_frames(detection, clock):
        facts: dict[str, Any] = {
            "shot": number,
            "start": detection.offset + shot.start,
            "end": detection.offset + shot.end,
            "kind": shot.kind,
            "confidence": shot.confidence,
            "transition_start": detection.offset + shot.transition_start,
            "transition_end": detection.offset + shot.transition_end,
        }
        clip = otio.schema.Clip(
            name=f"{name} {number}",
            media_reference=otio.schema.ExternalReference(target_url=address, available_range=whole),
            source_range=span(first, last),
        )
        if shot.critical is not None:
            facts["critical"] = shot.critical
            if shot.is_critical:
                red = otio.schema.MarkerColor.RED
                clip.markers.append(otio.schema.Marker("critical", span(first, last), color=red))
        clip.metadata["vidkin"] = facts
        track.append(clip)
    with open_output(path, source=describe_source("shots as otio", detection.path)) as partial:
        partial.write_text(timeline.to_json_string(indent=2) + "\n", encoding="utf-8")


@check_arguments
def write_fcpxml(detection: ShotDetection, path: PathLike) -> None:
    """Write the shots as a Final Cut Pro project (FCPXML 1.9, also supported by DaVinci Resolve).

    The main storyline consists of clips of a single file, each with a note on its opening transition; critical clips
    have a marker. Source times are the file's time code, or relative to its start if it has none.

    Raises:
        MediaError: The video cannot be read, or the file cannot be written.
    """
    clock, info = detection.clock(), probe(detection.path, stream=detection.stream)
    name = _as_xml(Path(detection.path).stem)
    counting = {"tcFormat": "DF" if clock.drop_frame else "NDF"}

    def seconds(frames: int) -> str:
        return f"{frames * clock.rate.denominator}/{clock.rate.numerator}s"

    events = list(_timeline_frames(detection, clock))
    end = max((last for _, _, last, _ in events), default=clock.first)
    root = ElementTree.Element("fcpxml", version="1.9")
    resources = ElementTree.SubElement(root, "resources")
    size = {"width": str(info.width), "height": str(info.height)}
    ElementTree.SubElement(resources, "format", {"id": "r1", "frameDuration": seconds(1), **size})
    whole = {"start": seconds(clock.begin), "duration": seconds(end - clock.begin)}
    sound = {"hasAudio": "1"} if info.has_audio else {}
    streams = {"name": name, "format": "r1", "hasVideo": "1", **sound}
    asset = ElementTree.SubElement(resources, "asset", {"id": "r2", **streams, **whole})
    address = Path(detection.path).absolute().as_uri()
    ElementTree.SubElement(asset, "media-rep", kind="original-media", src=address)
    event = ElementTree.SubElement(ElementTree.SubElement(root, "library"), "event", name=name)
    project = ElementTree.SubElement(event, "project", name=name)
    length = sum(last - first for _, first, last, _ in events)
    record = {"format": "r1", "duration": seconds(length), "tcStart": "0s", **counting}
    sequence = ElementTree.SubElement(project, "sequence", record)
    spine = ElementTree.SubElement(sequence, "spine")
    written = 0
    for number, first, last, shot in events:
        span = {"offset": seconds(written), "start": seconds(first), "duration": seconds(last - first)}
        clip = ElementTree.SubElement(
            spine, "asset-clip", {"ref": "r2", "name": f"{name} {number}", **span, **counting}
        )
        if shot.kind != "start":
            ElementTree.SubElement(clip, "note").text = f"{shot.kind} transition, confidence {shot.confidence:.2f}"
        if shot.is_critical:
            ElementTree.SubElement(clip, "marker", start=seconds(first), duration=seconds(1), value="critical")
        written += last - first
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n'
    _write_text(path, describe_source("shots as fcpxml", detection.path), f"{head}{text}\n")


def _as_xml(name: str) -> str:
    """Make a name valid for XML: Unicode without control characters."""
    return _one_line(_as_unicode(name))


def import_otio() -> Any:
    """Import opentimelineio; if it is not installed, raise `MissingPartError` with the install command."""
    try:
        return importlib.import_module("opentimelineio")
    except ImportError as error:
        raise MissingPartError(
            "OpenTimelineIO files require the opentimelineio package, which is not installed; "
            f"install it with: {install_command('otio')}"
        ) from error


def _as_unicode(name: str) -> str:
    """Convert a file name to Unicode; invalid bytes become question marks."""
    return os.fsencode(name).decode("utf-8", "replace")


_CSV_COLUMNS = (
    "file", "shot", "start", "end", "start_frame", "end_frame", "start_timecode", "end_timecode", "kind",
    "confidence", "transition_start", "transition_end", "critical", "black",
)  # fmt: skip


@check_arguments
def write_shots_csv(detections: Sequence[ShotDetection], path: PathLike) -> None:
    """Write the shots of one or more videos as CSV (UTF-8), with one line per shot.

    Columns: file, shot (from 1), start and end in seconds from the start of the file, start_frame, end_frame (the first
    frame after the shot), start_timecode and end_timecode (based on the file's time code if it has one), kind and
    confidence of the opening transition, transition_start and transition_end in seconds if it is gradual, critical
    (empty if not available), black (seconds of black in the shot; empty for none).

    Raises:
        MediaError: The file cannot be written.
    """
    table = ShotTable()
    for detection in detections:
        table.add(detection)
    table.write(path, source=describe_source("shots as csv", *(detection.path for detection in detections)))


class ShotTable:
    """Collects the rows of `write_shots_csv` video by video, without keeping the detections in memory."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._videos = 0

    def __len__(self) -> int:
        """Number of videos added."""
        return self._videos

    def add(self, detection: ShotDetection) -> None:
        """Add the shots of a video."""
        self._videos += 1
        clock, offset = _code_clock(detection), detection.offset
        for number, shot in enumerate(detection.shots, start=1):
            is_gradual = shot.transition_end > shot.transition_start
            self._rows.append(
                [
                    detection.path,
                    str(number),
                    _seconds(offset + shot.start),
                    _seconds(offset + shot.end),
                    str(shot.start_frame),
                    str(shot.end_frame),
                    clock.code(clock.frame(shot.start)),
                    clock.code(clock.frame(shot.end)),
                    shot.kind,
                    _score(shot.confidence),
                    _seconds(offset + shot.transition_start) if is_gradual else "",
                    _seconds(offset + shot.transition_end) if is_gradual else "",
                    _score(shot.critical),
                    _seconds(detection.black_seconds(shot)) if detection.black_seconds(shot) else "",
                ]
            )

    def write(self, path: PathLike, *, source: str) -> None:
        """Write the table.

        Args:
            path: Output file.
            source: Description of the videos, see :func:`vidkin._base.outputs.describe_source`.

        Raises:
            MediaError: The file cannot be written.
        """
        with (
            open_output(path, source=source) as partial,
            partial.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file,
        ):
            self.write_to(file)

    def write_to(self, file: IO[str]) -> None:
        """Write the table to an open file, such as standard output."""
        write_csv_rows(file, self.lines())

    def lines(self) -> Iterator[Sequence[str]]:
        """Yield the headings, then the cells of each shot."""
        yield _CSV_COLUMNS
        yield from self._rows


@check_arguments
def write_stats_csv(detection: ShotDetection, path: PathLike) -> None:
    """Write the detector's curve as CSV, with one line per frame.

    Columns: frame, time in seconds from the start of the file, a column named after the curve (empty where it has no
    value), cut (the confidence, at the first frame of a new shot) and transition (the confidence, at all frames of a
    gradual transition).

    Raises:
        MediaError: The file cannot be written.
    """
    times = np.asarray(detection.frame_times, dtype=np.float64)
    values = [""] * len(times)
    name = "curve"
    if detection.curve is not None:
        name = detection.curve.name
        frames = first_at(times, np.asarray(detection.curve.times))
        for frame, value in zip(frames.tolist(), detection.curve.values.tolist(), strict=True):
            if frame < len(values) and math.isfinite(value):
                values[frame] = f"{value:.6g}"
    cuts = {cut.frame: _score(cut.confidence) for cut in detection.cuts}
    inside = {
        frame: _score(cut.confidence)
        for cut in detection.cuts
        if cut.is_gradual
        for frame in range(cut.start_frame, cut.end_frame + 1)
    }
    source = describe_source("shots as stats", detection.path)
    with open_output(path, source=source) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        lines = (
            [frame, _seconds(detection.offset + time), values[frame], cuts.get(frame, ""), inside.get(frame, "")]
            for frame, time in enumerate(times.tolist())
        )
        write_csv_rows(file, [["frame", "time", name, "cut", "transition"], *lines])


def _seconds(time: float) -> str:
    return f"{time:.6f}"


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


SHOT_FORMATS: Mapping[str, ShotFormat] = {
    "edl": ShotFormat(".edl", write_edl, "edit decision list (EDL)", "text/plain"),
    "scenes": ShotFormat(".scenes.edl", write_scene_cuts, "scene cuts for DaVinci Resolve (EDL)", "text/plain"),
    "fcpxml": ShotFormat(
        ".fcpxml", write_fcpxml, "Final Cut Pro project (FCPXML)", "application/xml", reads_video=True
    ),
    "otio": ShotFormat(".otio", write_otio, "OpenTimelineIO timeline", "application/json", require=import_otio),
    "chapters": ShotFormat(".chapters.txt", write_chapters, "chapters", "text/plain"),
    "csv": ShotFormat(
        ".csv",
        lambda detection, path: write_shots_csv([detection], path),
        "shots as a table",
        "text/csv",
        table=ShotTable,
    ),
    "labels": ShotFormat(
        ".labels.json",
        lambda detection, path: write_shot_annotations(path, [annotate_shots(detection)]),
        "labels for training and evaluation",
        "application/json",
        suffixes=(".json",),
        table=LabelTable,
    ),
    "stats": ShotFormat(".csv", write_stats_csv, "curve as a table", "text/csv", suffixes=(".stats.csv",)),
    "html": ShotFormat(".html", write_contact_sheet, "contact sheet", "text/html", reads_video=True),
}
"""Built-in formats by name, in the order in which they are written and listed."""

_REGISTRY: Registry[ShotFormat] = Registry("format of shots", SHOT_FORMATS, group="vidkin.shot_formats")
