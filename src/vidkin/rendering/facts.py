"""The contents of an index, its videos and the checks of files, as text and table cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vidkin._base.values import as_json
from vidkin.rendering.text import clock, file_size, printable

if TYPE_CHECKING:
    from vidkin.index import IndexInfo, VideoRecord
    from vidkin.media.checking import FileCheck

_LABELS = {
    "bytes": "size on disk",
    "missing": "files that are gone",
    "seconds": "length of all videos",
    "sampling_rate": "frames per second of video",
}
_SCORES = {
    "copies": "identify copies and where they match",
    "kinds": "order videos by kind; they do not identify copies",
}
_FIELDS = ("path", "status", "duration", "width", "height", "codec", "frames", "windows", "damage", "cause")
RECORD_HEADINGS = (*_FIELDS, "missing", "sound")
"""Names of the columns of :func:`record_cells`."""


def select_facts(info: IndexInfo) -> dict[str, Any]:
    """Readable facts: without values that only programs compare, and with scores as text."""
    facts = {name: value for name, value in info.to_dict().items() if name not in ("fingerprint", "windows")}
    scores, frames = facts.pop("measure"), facts.pop("frames")
    return facts | {"frames with features": frames, "scores": _SCORES.get(scores, scores)}


def fact_cells(facts: object) -> Iterator[tuple[str, str]]:
    """Names and values of the fields of a result as text; empty fields are dropped."""
    for name, value in as_json(facts).items():
        if value is not None and value != "":
            yield _LABELS.get(name, name.replace("_", " ")), _describe_value(name, value)


def _describe_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return file_size(value) if name == "bytes" else f"{value:,}"
    if isinstance(value, float):
        return clock(value) if name == "seconds" else f"{value:,g}"
    return printable(str(value))


def record_cells(record: VideoRecord, *, is_missing: bool, sound: str) -> list[str]:
    """A video of an index for tab-separated files."""
    return [*(str(getattr(record, name)) for name in _FIELDS), "yes" if is_missing else "no", sound]


def check_cells(checks: Sequence[FileCheck]) -> Iterator[Sequence[str]]:
    """Checks of files for tab-separated files: the headings, then each file with its first error."""
    yield ("path", "is_whole", "frames", "duration", "stated_duration", "errors", "seconds", "cause")
    for check in checks:
        first = check.errors[0] if check.errors else None
        lengths = (str(check.frames), f"{check.duration:.3f}", f"{check.stated_duration:.3f}")
        seconds = "" if first is None or first.seconds is None else f"{first.seconds:.3f}"
        cause = "" if first is None else printable(first.cause)
        yield (check.path, "yes" if check.is_whole else "no", *lengths, str(check.error_count), seconds, cause)
