"""CSV files that list events in videos."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.labelled import counting_clip
from vidkin.datasets import open_labelled
from vidkin.errors import DatasetError, InvalidArgumentError

HEAD = "session,start,end,event,layer,split\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    counting_clip(tmp_path / "camera" / "center" / "201702271017.mp4", 4)
    counting_clip(tmp_path / "201702271123.mp4", 4)
    return tmp_path


def write_list(folder: Path, text: str) -> Path:
    path = folder / "events.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_events_are_excerpts_and_short_ones_are_dropped(folder: Path) -> None:
    path = write_list(
        folder,
        HEAD + "201702271017,0,2.5,left turn,goal,train\n"
        "201702271017,3,4.9,right turn,goal,train\n"
        "201702271123.mp4,1,3,U-turn,goal,test\n"
        "201702271123,5,9,stop 4 light,cause,test\n",
    )
    labelled = open_labelled(path, reader="events", layer="goal")
    assert (labelled.kind, labelled.categories(), labelled.has_one_level) == (
        "video",
        ("U-turn", "left turn"),
        True,
    )
    assert [(item.path.name, item.start, item.end, item.group, item.split) for item in labelled.items] == [
        ("201702271017.mp4", 0.0, 2.5, "201702271017", "train"),
        ("201702271123.mp4", 1.0, 3.0, "201702271123.mp4", "test"),
    ]
    assert len(open_labelled(path, reader="events", shortest=0.0)) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("session,start,end\n", "lacks the columns event; it needs session, start, end, event"),
        (HEAD + "201702271017,0,1,turn,,\n", "has no event of at least 2 s"),
        (HEAD + "nowhere,0,5,turn,,\n", "line 2: there is no video 'nowhere'"),
        (HEAD + "201702271017,0,five,turn,,\n", "line 2: end must be a number of seconds, got 'five'"),
        (HEAD + "201702271017,0,5,turn,,dev\n", "line 2: split must be train, validation, test or empty"),
        (HEAD + "201702271017,0,,turn,,\n", "line 2: start and end must not be empty"),
        (HEAD + "201702271017,5,3,turn,,\n", "line 2: start of .* must be at least 0 s, and end after it"),
        (HEAD + "201702271017,0,5,,,\n", "line 2: category of .* must be a non-empty name"),
    ],
)
def test_invalid_files_are_rejected(folder: Path, text: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        open_labelled(write_list(folder, text), reader="events")


def test_layer_and_shortest_select_events(folder: Path) -> None:
    path = write_list(folder, HEAD + "201702271017,0,5,turn,,train\n")
    with pytest.raises(InvalidArgumentError, match="shortest must be at least 0 seconds"):
        open_labelled(path, reader="events", shortest=-1.0)
    with pytest.raises(InvalidArgumentError, match="has splits; leave out test and validation"):
        open_labelled(path, reader="events", test=0.3)
    with pytest.raises(DatasetError, match="choose a CSV with session,start,end,event"):
        open_labelled(folder / "none.csv", reader="events")
