"""CSV rows are parsed, with errors that state the file, the line and the accepted values."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from vidkin.datasets import read_events
from vidkin.datasets.listing import CsvRow, read_rows
from vidkin.errors import DatasetError


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_columns_can_be_in_any_order_and_cells_are_stripped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "end,extra,file\n 2.5 ,x, a b.mp4 \n\n,,\n")
    rows, columns = read_rows(path, ["file", "end"], optional=["split"])
    assert columns == {"end", "extra", "file"}
    # The blank line is skipped, but not the line of empty cells; lines are numbered as in the file.
    assert [row.location for row in rows] == [f"{path}, line 2", f"{path}, line 4"]
    assert rows[0].cells == {"file": "a b.mp4", "end": "2.5", "split": ""}
    assert (rows[0].seconds("end"), rows[1].seconds("end")) == (2.5, None)


def test_byte_order_marks_quotes_and_line_breaks_in_cells_are_supported(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '\ufefffile,event\r\n"a, b.mp4","one\ntwo"\r\nc.mp4,x\r\n')
    rows, _ = read_rows(path, ["file", "event"])
    assert [row.cells["file"] for row in rows] == ["a, b.mp4", "c.mp4"]
    assert rows[0].cells["event"] == "one\ntwo"
    # The first row ends on the third line.
    assert [row.location[-6:] for row in rows] == ["line 3", "line 4"]


def test_cells_missing_from_short_lines_are_empty(tmp_path: Path) -> None:
    rows, _ = read_rows(write(tmp_path / "a.csv", "file,end\na.mp4\n"), ["file", "end"])
    assert rows[0].cells["end"] == ""


def test_splits_are_case_insensitive() -> None:
    for given, split in (("TRAIN", "train"), ("val", "validation"), ("Test", "test"), ("", "")):
        assert CsvRow("list.csv, line 2", {"split": given}).split == split
    with pytest.raises(DatasetError, match=r"line 2: split must be train, validation, test or empty, got 'tset'"):
        _ = CsvRow("list.csv, line 2", {"split": "tset"}).split
    assert CsvRow("list.csv, line 2", {}).split == ""


def test_time_must_be_a_number() -> None:
    with pytest.raises(DatasetError, match=r"list.csv, line 7: end must be a number of seconds, got '1:30'"):
        CsvRow("list.csv, line 7", {"end": "1:30"}).seconds("end")


def test_error_lists_missing_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "file,start\n")
    expected = "lacks the columns end, event; it needs file, end, event and may have split"
    with pytest.raises(DatasetError, match=re.escape(f"{path}: {expected}")):
        read_rows(path, ["file", "end", "event"], optional=["split"])
    with pytest.raises(DatasetError, match=r"empty.csv: lacks the columns file; it needs file$"):
        read_rows(write(tmp_path / "empty.csv", ""), ["file"])


def test_files_that_are_not_csv_are_rejected_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"none.csv: does not exist; choose a CSV with file,end"):
        read_rows(tmp_path / "none.csv", ["file", "end"])
    with pytest.raises(DatasetError, match=r"is a folder; choose the CSV, or use the reader tree"):
        read_rows(tmp_path, ["file"])
    with pytest.raises(DatasetError, match=r"latin.csv: is not CSV in UTF-8, 'utf-8' codec can't decode"):
        read_rows(write(tmp_path / "latin.csv", "file\nfrühling.mp4\n", "latin-1"), ["file"])
    with pytest.raises(DatasetError, match=r"open.csv: is not CSV in UTF-8, unexpected end of data"):
        read_rows(write(tmp_path / "open.csv", 'file\n"a.mp4\n'), ["file"])
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DatasetError, match=r"pipe.csv: cannot be read: this is not a regular file"):
        read_rows(tmp_path / "pipe.csv", ["file"])


@pytest.mark.parametrize(("start", "end"), [("nan", "5"), ("-1", "5"), ("0", "inf"), ("5", "5"), ("inf", "inf")])
def test_events_with_invalid_times_are_rejected(start: str, end: str, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    path = write(tmp_path / "events.csv", f"session,start,end,event\na,0,3,goal\na,{start},{end},goal\n")
    with pytest.raises(
        DatasetError, match=r"events.csv, line 3: (start|end) (of .*a.mp4 )?must be (at least 0 s|a number)"
    ):
        read_events(path)
