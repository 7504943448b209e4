"""Facts about an index and its videos, and results of file checks, as text and table cells."""

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
    "missing": "missing files",
    "seconds": "total duration",
    "sampling_rate": "frames per second of video",
}
_SCORES = {
    "copies": "identify copies and locate the matching parts",
    "kinds": "rank videos by kind; do not identify copies",
}
_FIELDS = ("path", "status", "duration", "width", "height", "codec", "frames", "windows", "damage", "cause")
RECORD_HEADINGS = (*_FIELDS, "missing", "sound")
"""Column names of :func:`record_cells`."""


def select_facts(info: IndexInfo) -> dict[str, Any]:
    """Return the facts for display, without internal values, and with the kind of scores as text."""
    facts = {name: value for name, value in info.to_dict().items() if name not in ("fingerprint", "windows")}
    scores, frames = facts.pop("measure"), facts.pop("frames")
    return facts | {"frames with features": frames, "scores": _SCORES.get(scores, scores)}


def fact_cells(facts: object) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a result's fields as text; empty fields are omitted."""
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
    """Return the table cells for a video in an index."""
    return [*(str(getattr(record, name)) for name in _FIELDS), "yes" if is_missing else "no", sound]


def check_cells(checks: Sequence[FileCheck]) -> Iterator[Sequence[str]]:
    """Yield rows for tab-separated files: the headings, then each checked file with its first error."""
    yield ("path", "is_whole", "frames", "duration", "stated_duration", "errors", "seconds", "cause")
    for check in checks:
        first = check.errors[0] if check.errors else None
        lengths = (str(check.frames), f"{check.duration:.3f}", f"{check.stated_duration:.3f}")
        seconds = "" if first is None or first.seconds is None else f"{first.seconds:.3f}"
        cause = "" if first is None else printable(first.cause)
        yield (check.path, "yes" if check.is_whole else "no", *lengths, str(check.error_count), seconds, cause)
