"""Annotation files, with errors that name the file and its expected content."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError

__all__ = ["find_file", "read_ids", "read_json", "read_lines", "read_table"]


def find_file(folder: Path, names: Sequence[str], source: str) -> Path:
    """The first of these files that is in the folder.

    Raises:
        InvalidArgumentError: None is; the message names the source.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InvalidArgumentError(f"{folder}: has no {' or '.join(names)}; download it from {source}")


def read_json(path: Path) -> dict[str, Any]:
    """An object from a JSON file."""
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"{path}: cannot be read as annotations: {error}") from error
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{path}: must hold an object, got {type(value).__name__}")
    return value


def read_lines(path: Path, fields: int, *, separator: str | None = None) -> list[list[str]]:
    """Lines with at least this many fields; empty lines are left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read: {error.strerror or error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = [part.strip() for part in line.split(separator)]
        if len(row) < fields:
            raise InvalidArgumentError(
                f"{path}: line {number} must have {fields} fields, got {len(row)}: {line.strip()[:60]!r}"
            )
        rows.append(row)
    return rows


def read_ids(path: Path) -> list[str]:
    """The first field of every line."""
    return [row[0] for row in read_lines(path, 1)]


def read_table(path: Path, columns: Sequence[str]) -> list[Mapping[str, str]]:
    """Rows of a CSV file with at least these columns."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = set(columns) - set(reader.fieldnames or ())
            if missing:
                raise InvalidArgumentError(
                    f"{path}: must have the columns {', '.join(columns)}, lacks {', '.join(sorted(missing))}"
                )
            return list(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise InvalidArgumentError(f"{path}: cannot be read as a table: {error}") from error
