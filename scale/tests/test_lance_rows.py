"""Conversion between records and table rows."""

from __future__ import annotations

import os

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.index.helpers import units
from vidkin.index import VideoRecord
from vidkin_scale.lance_rows import (
    all_windows,
    record_rows,
    records_from_rows,
    vector_column,
    window_matrix,
    window_rows,
)

RECORD = VideoRecord(path="/a.mp4", size=1, mtime_ns=2, content_hash="ab", duration=1.5, damage="cut off", id=7)


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        VideoRecord(path="/a.mp4", size=1, mtime_ns=2, content_hash="", status="broken", cause="no video"),
        RECORD.as_stale("read it again"),
        VideoRecord(path=os.fsdecode(b"/caf\xe9.mp4"), size=1, mtime_ns=2, content_hash=""),
    ],
)
def test_record_round_trip(record: VideoRecord) -> None:
    assert records_from_rows(record_rows([record, record])) == [record, record]


def test_error_message_with_an_invalid_file_name_is_written() -> None:
    cause = f"cannot read {os.fsdecode(bytes([0x62, 0xFF]))}"
    broken = VideoRecord(path="/a.mp4", size=1, mtime_ns=2, content_hash="", status="broken", cause=cause)
    assert records_from_rows(record_rows([broken]))[0].cause == "cannot read b�"


def windows(count: int) -> NDArray[np.float16]:
    return units(np.arange(1.0, 4 * count + 1).reshape(-1, 4)).astype(np.float16)


def test_windows_are_rows_of_their_video() -> None:
    rows = window_rows([(3, windows(2)), (4, windows(0)), (9, windows(1))])
    assert rows is not None
    assert rows["video_id"].to_pylist() == [3, 3, 9]
    assert rows["window"].to_pylist() == [0, 1, 0]
    assert window_rows([(4, windows(0))]) is None
    own = rows.slice(0, 2).take([1, 0])  # in any order
    (back,), expected = all_windows(own).of_videos([3]), windows(2)
    assert np.array_equal(back, expected)
    matrix = window_matrix(rows)
    assert (matrix.video_ids.tolist(), matrix.windows.tolist()) == ([3, 3, 9], [0, 1, 0])
    assert vector_column(rows).shape == (3, 4)
