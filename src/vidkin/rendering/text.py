"""Format times, sizes, counts, frame regions and file names as text; write results as JSON and as files."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from vidkin._base.arguments import check_arguments
from vidkin._base.outputs import open_output
from vidkin._base.values import as_json
from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from vidkin.index import Match
    from vidkin.similarity import Box, Segment


@check_arguments
def clock(seconds: float, *, digits: int = 1) -> str:
    """Format seconds as ``m:ss.s``, or ``h:mm:ss.s`` from one hour: 75.25 is ``1:15.3``.

    >>> clock(75.25), clock(59.96), clock(3723.4), clock(3723.4, digits=2)
    ('1:15.3', '1:00.0', '1:02:03.4', '1:02:03.40')

    Args:
        seconds: The time.
        digits: Number of decimals, at least 1.
    """
    # Round half up, as people expect; Python's round() would turn 75.25 into 75.2.
    unit = 10**digits
    parts = int(max(seconds, 0.0) * unit + 0.5 + 1e-9)
    minutes, rest = divmod(parts, 60 * unit)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest // unit:02d}.{rest % unit:0{digits}d}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


def clock_range(start: float, end: float) -> str:
    """Format a time range; empty if start and end are equal, as for an image.

    >>> clock_range(4.5, 75.25), clock_range(0.0, 0.0)
    ('0:04.5 - 1:15.3', '')
    """
    return f"{clock(start)} - {clock(end)}" if end > start else ""


@check_arguments
def file_size(size: int) -> str:
    """Format a number of bytes: ``1.4 MB``."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        # Sizes that round to 1,000 use the next unit.
        if round(amount, 1) < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


@check_arguments
def number(count: int, singular: str, plural: str | None = None) -> str:
    """Format a count with its noun: ``1 video``, ``12 videos``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def percent(fraction: float, deviation: float | None = None) -> str:
    """Format a fraction in [0, 1] as a percentage without the sign, with its standard deviation if given.

    >>> percent(0.912, 0.0134), percent(0.5)
    ('91.2 ± 1.3', '50.0')
    """
    spread = "" if deviation is None else f" ± {100 * deviation:.1f}"
    return f"{100 * fraction:.1f}{spread}"


@check_arguments
def printable(text: str) -> str:
    """Replace control characters and characters that cannot be encoded as UTF-8."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        # Only \udc80 to \udcff represent bytes of file names; other surrogates come from JSON and are invalid.
        text = "".join(
            char if char < "\ud800" or "\udc80" <= char <= "\udcff" or char > "\udfff" else "�" for char in text
        )
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "�" for char in text)


def command_line(words: Sequence[str]) -> str:
    """Format a command for the system's shell, with quotes where needed."""
    if sys.platform == "win32":
        from subprocess import list2cmdline

        return list2cmdline(words)
    import shlex

    return shlex.join(words)


def json_text(value: object, *, indent: int | None = None) -> str:
    """Serialize a result as a JSON document.

    The output is pure ASCII, so that file names that are not valid Unicode survive a pipe: ``json.loads`` returns the
    exact string that opens the file.
    """
    return json.dumps(as_json(value), indent=indent, ensure_ascii=True, allow_nan=False)


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print a JSON document to standard output; if ``indent`` is None, on one line."""
    sys.stdout.write(json_text(value, indent=indent) + "\n")
    sys.stdout.flush()


def match_as_json(match: Match, rank: int) -> dict[str, Any]:
    """Convert a match to a JSON object: its rank and the result of :meth:`vidkin.Match.to_dict`."""
    return {"rank": rank, **match.to_dict()}


def matches_as_json(matches: Sequence[Match], *, first_rank: int = 1) -> list[dict[str, Any]]:
    """Convert matches to JSON objects, ranked in the given order."""
    return [match_as_json(match, rank) for rank, match in enumerate(matches, start=first_rank)]


MATCH_HEADINGS = (
    *("query", "rank", "score", "path", "missing"),
    *("query_start", "query_end", "target_start", "target_end", "speed", "mirrored", "turned", "backwards"),
    *("picture", "sound"),
)


def match_cells(query: str | os.PathLike[str], matches: Sequence[Match], *, first_rank: int = 1) -> Iterator[list[str]]:
    """Yield rows for tab-separated files: one per segment, or one for a match without segments; times are in seconds.

    A match without visual segments lists its sound segments. The columns are `MATCH_HEADINGS`.
    """
    for rank, match in enumerate(matches, start=first_rank):
        facts = [os.fspath(query), str(rank), f"{match.score:.4f}", match.path, "yes" if match.missing else "no"]
        scores = ["" if value is None else f"{value:.4f}" for value in (match.picture, match.sound)]
        for each in match.segments or match.sound_segments:
            numbers = (each.query_start, each.query_end, each.target_start, each.target_end, each.speed)
            edits = ["yes" if each.mirrored else "no", str(each.turned), "yes" if each.backwards else "no"]
            yield [*facts, *(f"{number:.3f}" for number in numbers), *edits, *scores]
        if not (match.segments or match.sound_segments):
            yield [*facts, *[""] * 8, *scores]


def name_scores(items: Sequence[Any]) -> list[str]:
    """Choose the score columns for a table of matches, copies or occurrences.

    Besides ``score``, these are ``picture`` and ``sound`` if sound was compared and they differ from ``score``.
    """
    with_sound = [item for item in items if item.sound is not None]
    others = (
        name
        for name in ("picture", "sound")
        if any(getattr(item, name) is not None for item in with_sound)
        and any(getattr(item, name) != item.score for item in items)
    )
    return ["score", *others]


def score_cells(item: Any, names: Sequence[str]) -> list[str]:
    """Format the scores with these names; unknown scores are empty."""
    return ["" if (score := getattr(item, name)) is None else f"{score:.2f}" for name in names]


# A box that covers at least these fractions of a side, or of the area, counts as covering all of it.
_FULL, _WHOLE = 0.9, 0.8

# Maximum distance of a half's inner edge from the middle of the frame.
_HALF = 0.05

_ACROSS, _DOWN = ("left", "middle", "right"), ("upper", "middle", "lower")


def describe_box(box: Box) -> str:
    """Describe the position of a box and, unless it is half the frame, its size; empty if it is almost the whole frame.

    >>> describe_box((0.5, 0.0, 1.0, 1.0)), describe_box((0.4, 0.4, 0.97, 0.97))
    ('right half', 'lower right 57 %')
    >>> describe_box((0.05, 0.05, 0.95, 0.97))
    ''
    """
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    if width * height >= _WHOLE:
        return ""
    across, down = _ACROSS[_third(left, right)], _DOWN[_third(top, bottom)]
    if height >= _FULL:
        return f"{across} half" if _is_half(left, right) else f"{across} {width:.0%}".replace("%", " %")
    if width >= _FULL:
        return f"{down} half" if _is_half(top, bottom) else f"{down} {height:.0%}".replace("%", " %")
    where = "middle" if across == down == "middle" else f"{down} {across}"
    return f"{where} {math.sqrt(width * height):.0%}".replace("%", " %")


@check_arguments
def describe_parts(segment: Segment) -> str:
    """Describe which parts of the file and the query match; empty for whole frames or the same letterbox."""
    sides = (describe_box(segment.target_box), "file"), (describe_box(segment.query_box), "query")
    if sides[0][0] == sides[1][0] and sides[0][0].startswith("middle "):
        return ""
    return ", ".join(f"{words} of {side}" for words, side in sides if words)


def _third(start: float, end: float) -> int:
    """Return 0, 1 or 2 if the range is near the start, the middle or the end."""
    before, after = start, 1 - end
    if abs(before - after) <= 0.1:
        return 1
    return 0 if before < after else 2


def _is_half(start: float, end: float) -> bool:
    return min(abs(start - 0.5), abs(end - 0.5)) <= _HALF and abs(end - start - 0.5) <= 2 * _HALF


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class FileFormat(Generic[_Result]):
    """A file format for a result.

    Attributes:
        suffix: File extension that selects the format.
        label: Short description for users, for example ``table of segments``.
        write: Function that writes a result to an open text file.
        media_type: MIME type.
        reads_video: Whether writing the file decodes videos again.
    """

    suffix: str
    label: str
    write: Callable[[_Result, IO[str]], None]
    media_type: str = "text/plain"
    reads_video: bool = False


def describe_formats(formats: Mapping[str, FileFormat[Any]]) -> str:
    """List formats in one line for an option's help: ``.csv table of segments, .json ...``."""
    return ", ".join(f"{form.suffix} {form.label}" for form in formats.values())


@check_arguments
def find_format(formats: Mapping[str, FileFormat[_Result]], path: str | os.PathLike[str]) -> FileFormat[_Result]:
    """Find the format for a file name's extension.

    Raises:
        InvalidArgumentError: No format has this extension; the message lists all extensions.
    """
    for form in formats.values():
        if os.fspath(path).lower().endswith(form.suffix):
            return form
    endings = ", ".join(form.suffix for form in formats.values())
    raise InvalidArgumentError(f"{os.fspath(path)}: the ending chooses the format and must be one of {endings}")


@check_arguments
def write_format(
    form: FileFormat[_Result], result: _Result, path: str | os.PathLike[str], *, source: str | None = None
) -> None:
    """Write a result to a file; file names in it that are not valid Unicode keep their bytes.

    Args:
        form: The format.
        result: The result.
        path: Output file.
        source: Description of the inputs, see :func:`vidkin._base.outputs.open_output`.

    Raises:
        MediaError: The file cannot be written.
    """
    with (
        open_output(path, source=source) as partial,
        partial.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        form.write(result, file)
