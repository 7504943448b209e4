"""Reports: one file with all duplicates or all recurring segments, in a built-in format or one from another package.

Other packages can register a `FileFormat`, whose ``write`` receives the groups and an open text file, in the entry
point group ``vidkin.duplicate_reports`` or ``vidkin.recurring_reports``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from vidkin._base.arguments import check_arguments
from vidkin._base.outputs import describe_source
from vidkin._base.registry import Registry
from vidkin._base.values import write_csv_rows
from vidkin.rendering.duplicates import duplicate_cells, duplicate_page
from vidkin.rendering.recurring import RECURRING_FORMATS, GroupsToWrite
from vidkin.rendering.text import FileFormat, find_format, json_text, write_format

if TYPE_CHECKING:
    from vidkin.index import DuplicateGroup, RecurringGroup

_Group = TypeVar("_Group")


def _write_csv(groups: Sequence[DuplicateGroup], file: IO[str]) -> None:
    write_csv_rows(file, duplicate_cells(groups))


def _write_json(groups: Sequence[DuplicateGroup], file: IO[str]) -> None:
    file.write(json_text({"groups": groups}))


def _write_page(groups: Sequence[DuplicateGroup], file: IO[str]) -> None:
    file.writelines(duplicate_page(groups))


_DUPLICATES: Registry[FileFormat[Sequence[DuplicateGroup]]] = Registry(
    "report of duplicates",
    {
        "csv": FileFormat(".csv", "Table (CSV)", _write_csv, "text/csv"),
        "json": FileFormat(".json", "JSON", _write_json, "application/json"),
        "html": FileFormat(".html", "Frames of all copies", _write_page, "text/html", reads_video=True),
    },
    group="vidkin.duplicate_reports",
)
_RECURRING: Registry[FileFormat[Sequence[RecurringGroup]]] = Registry(
    "report of recurring segments",
    {
        name: FileFormat(
            form.suffix,
            form.label,
            lambda groups, file, form=form: form.write(GroupsToWrite(groups), file),  # type: ignore[misc]
            form.media_type,
            form.reads_video,
        )
        for name, form in RECURRING_FORMATS.items()
    },
    group="vidkin.recurring_reports",
)


@check_arguments
def write_duplicate_report(groups: Sequence[DuplicateGroup], path: str | os.PathLike[str]) -> None:
    """Write groups returned by :meth:`vidkin.Index.duplicates` to a file; the extension determines the format.

    Raises:
        InvalidArgumentError: No format has this extension; the message lists all extensions.
        MediaError: The file cannot be written.
    """
    _write(_DUPLICATES, groups, path, "duplicates")


@check_arguments
def write_recurring_report(groups: Sequence[RecurringGroup], path: str | os.PathLike[str]) -> None:
    """Write groups returned by :meth:`vidkin.Index.recurring` to a file; the extension determines the format.

    Raises:
        InvalidArgumentError: No format has this extension; the message lists all extensions.
        MediaError: The file cannot be written.
    """
    _write(_RECURRING, groups, path, "recurring segments")


def available_reports() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of duplicate reports and recurring segment reports, including those of other packages."""
    return _DUPLICATES.usages(), _RECURRING.usages()


def duplicate_reports() -> dict[str, FileFormat[Sequence[DuplicateGroup]]]:
    """Return duplicate report formats by name, including those of other packages."""
    return _formats_of(_DUPLICATES)


def recurring_reports() -> dict[str, FileFormat[Sequence[RecurringGroup]]]:
    """Return recurring segment report formats by name, including those of other packages."""
    return _formats_of(_RECURRING)


def _formats_of(
    registry: Registry[FileFormat[Sequence[_Group]]],
) -> dict[str, FileFormat[Sequence[_Group]]]:
    return {name: form for name in registry.usages() if (form := registry.find(name)) is not None}


def _write(
    formats: Registry[FileFormat[Sequence[_Group]]], groups: Sequence[_Group], path: str | os.PathLike[str], what: str
) -> None:
    source = describe_source(what, Path(path).parent)
    write_format(find_format(_formats_of(formats), path), groups, path, source=source)
