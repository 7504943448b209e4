"""What ``vidkin shots`` prints: tables of shots and pieces, and what was written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from vidkin._base.plain_values import as_json
from vidkin.cli.console import note, path_text, say, table
from vidkin.cli.formats import OutputFormat, write_tsv
from vidkin.cli.paths import STANDARD_OUTPUT, open_csv
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import clock, number

if TYPE_CHECKING:
    from vidkin.media import SplitReport
    from vidkin.shots import ExportedShots, ShotDetection

__all__ = ["ShotPrinter"]

# Seconds by which a piece begins before its first shot are shown from here on.
_MIN_EARLY = 0.05


class ShotPrinter:
    """Prints the shots of one video after another; formats for programs come when all are known.

    Args:
        form: How.
        limit: Shots of a video that are printed for people, at most.
        csv_to_output: Print CSV instead.
        are_several: There is more than one video.
        min_length: Seconds of the shortest shot, if shorter ones are left out.
    """

    def __init__(
        self,
        form: OutputFormat,
        limit: int | None,
        *,
        csv_to_output: bool,
        are_several: bool,
        min_length: float | None = None,
    ) -> None:
        from vidkin.shots import ShotTable

        self._form, self._limit, self._min_length = form, limit, min_length
        self._csv_to_output, self._are_several = csv_to_output, are_several
        self._described: list[dict[str, Any]] = []
        self._table = ShotTable()
        self._count = 0

    def add(self, detection: ShotDetection, exported: ExportedShots) -> None:
        """Print a video, or keep it for the end."""
        self._count += 1
        # Tables say it in their heading; the others would be silent.
        if not detection.shots and self._form is OutputFormat.PLAIN:
            note(path_text(detection.path).append(": no shot is as long as --min-length"), style=None)
        if self._form is OutputFormat.JSON:
            files = {
                "files": as_json(dict(exported.files)),
                "thumbnails": as_json(exported.thumbnails),
                "split": as_json(exported.split),
            }
            self._described.append(detection.to_dict() | files)
        elif self._csv_to_output or self._form is OutputFormat.TSV:
            self._table.add(detection)
        elif self._form is OutputFormat.PLAIN:
            for place, shot in enumerate(detection.shots[: self._limit], start=1):
                times = f"{_precise(shot.start)} - {_precise(shot.end)}"
                say(Text(f"{place:>3}  {times:<19}  {shot.kind:<8}  ").append_text(path_text(detection.path)))
        else:
            _print_shots(detection, exported, self._limit, self._min_length)
            if self._are_several:
                say("")

    def finish(self, *, detector: str, csv_file: Path | None, failures: Sequence[tuple[str, str]]) -> None:
        """Print what was kept, and the file of CSV."""
        if self._form is OutputFormat.JSON:
            broken = [{"path": path, "cause": cause} for path, cause in failures]
            described = {"videos": self._described, "broken": broken}
            print_json({"detector": detector, "csv": csv_file, **described})
        elif self._form is OutputFormat.TSV:
            for line in self._table.lines():
                write_tsv(line)
        elif self._csv_to_output:
            with open_csv(STANDARD_OUTPUT) as file:
                self._table.write_to(file)
        elif csv_file is not None:
            say(path_text(csv_file).append(f": the shots of {number(self._count, 'video')}"))


def _print_shots(
    detection: ShotDetection, exported: ExportedShots, limit: int | None, min_length: float | None
) -> None:
    """Print the shots of a video, at most ``limit``, and the files made of them."""
    from vidkin.shots import find_shot_format

    gradual = sum(cut.is_gradual for cut in detection.cuts)
    counts = [
        number(len(detection.shots), "shot"),
        number(len(detection.cuts) - gradual, "hard cut"),
        *([number(gradual, "gradual transition")] if gradual else []),
    ]
    if min_length is None:
        length = detection.shots[-1].end - detection.shots[0].start if detection.shots else 0.0
        counts[-1] += f" in {clock(length)}"
    else:
        counts[0] += f" of at least {min_length:g} s"
    say(path_text(detection.path).append(f": {', '.join(counts)} ({detection.detector})"))
    rows: list[list[str | Text]] = []
    for place, shot in enumerate(detection.shots[:limit], start=1):
        first = shot.kind == "start"
        rows.append(
            [
                str(place),
                _precise(shot.start),
                _precise(shot.end),
                f"{shot.end - shot.start:.2f}",
                str(shot.start_frame),
                "" if first else shot.kind,
                "" if first else f"{shot.confidence:.2f}",
                "" if shot.critical is None else f"{shot.critical:.2f}",
            ]
        )
    table(None, _COLUMNS, rows)
    if len(rows) < len(detection.shots):
        note(f"{number(len(detection.shots) - len(rows), 'more shot')} not shown.")
    for name, path in exported.files:
        say(path_text(path).append(f": {find_shot_format(name).label}"))
    if exported.thumbnails:
        say(path_text(exported.thumbnails[0].parent).append(f": {number(len(exported.thumbnails), 'image')}"))
    if exported.split is not None:
        _print_pieces(detection, exported.split)


def _print_pieces(detection: ShotDetection, report: SplitReport) -> None:
    """Each piece, the shots in it, and by how much it begins before its first shot."""
    rows: list[list[str | Text]] = []
    for piece in report.pieces:
        parts = [part + 1 for part in piece.parts]
        numbers = "" if not parts else str(parts[0]) if len(parts) == 1 else f"{parts[0]} - {parts[-1]}"
        early = detection.shots[piece.parts[0]].start - piece.start if piece.parts else 0.0
        rows.append(
            [
                path_text(piece.path),
                numbers,
                _precise(piece.start),
                _precise(piece.end),
                f"{early:.2f} s" if early >= _MIN_EARLY else "",
                str(piece.encoded) if piece.encoded else "",
            ]
        )
    table(None, _PIECE_COLUMNS, rows)
    for stream in report.left_out:
        note(f"Not in any piece: {stream}", style="yellow")


def _precise(seconds: float) -> str:
    """Seconds as ``m:ss.ss``: two frames of any usual rate never look the same."""
    return clock(seconds, digits=2)


_COLUMNS = (
    ("#", "right"),
    ("start", "right"),
    ("end", "right"),
    ("seconds", "right"),
    ("frame", "right"),
    ("cut in by", "left"),
    ("confidence", "right"),
    ("critical", "right"),
)
_PIECE_COLUMNS = (
    ("piece", "left"),
    ("shots", "right"),
    ("begins", "right"),
    ("ends", "right"),
    ("before its shot", "right"),
    ("encoded frames", "right"),
)
