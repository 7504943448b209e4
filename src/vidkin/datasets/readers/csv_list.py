"""Helpers for readers of CSV files: rows with their place in the file, names of splits, and errors that name both."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vidkin.datasets.readers.tree import SPLIT_NAMES
from vidkin.errors import DatasetError

__all__ = ["CsvRow", "read_rows"]


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One line of a list.

    Attributes:
        place: File and line number, for messages.
        cells: Stripped text by column; columns that the file lacks are empty.
    """

    place: str
    cells: Mapping[str, str]

    def seconds(self, column: str) -> float | None:
        """A time in seconds; None if the cell is empty.

        Raises:
            DatasetError: The cell contains something else.
        """
        text = self.cells[column]
        try:
            return float(text) if text else None
        except ValueError:
            raise DatasetError(f"{self.place}: {column} must be a number of seconds, got {text!r}") from None

    @property
    def split(self) -> str:
        """The split of the line, in the package's spelling; empty if it has none.

        Raises:
            DatasetError: The split is unknown.
        """
        name = self.cells.get("split", "").lower()
        if name and name not in SPLIT_NAMES:
            raise DatasetError(
                f"{self.place}: split must be train, validation, test or empty, got {self.cells['split']!r}"
            )
        return SPLIT_NAMES[name] if name else ""


def read_rows(
    path: Path, needed: Sequence[str], *, optional: Sequence[str] = ()
) -> tuple[list[CsvRow], frozenset[str]]:
    """All rows of a UTF-8 CSV file, and its columns.

    Args:
        path: The file; its first line has the names, in any order.
        needed: Required columns.
        optional: Optional columns; all others are ignored.

    Raises:
        DatasetError: The file cannot be read, is not CSV, or lacks a column.
    """
    names = (*needed, *optional)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            columns = frozenset(reader.fieldnames or ())
            lacking = [name for name in needed if name not in columns]
            if lacking:
                raise DatasetError(
                    f"{path}: lacks the columns {', '.join(lacking)}; it needs {', '.join(needed)}"
                    + (f" and may have {', '.join(optional)}" if optional else "")
                )
            rows = [
                CsvRow(
                    f"{path}, line {reader.line_num}",
                    {name: (row.get(name) or "").strip() for name in names},
                )
                for row in reader
            ]
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: does not exist; choose a CSV with {','.join(needed)}") from error
    except IsADirectoryError as error:
        raise DatasetError(f"{path}: is a folder; choose the CSV, or use the reader tree") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: is not CSV in UTF-8, {error}") from error
    return rows, columns
