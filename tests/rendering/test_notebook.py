"""Results in a notebook: images inside the HTML, limited in number, and tables if pandas is installed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import vidkin
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.index import DuplicateGroup, DuplicateMember, Match, Occurrence, RecurringGroup
from vidkin.media import Results
from vidkin.shots import Shot
from vidkin.similarity import Segment

PICTURE = 'src="data:image/webp;base64,'


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A six-second video whose file name needs HTML escaping."""
    return str(encode(tmp_path_factory.mktemp("notebook") / "<i> & co.mp4", pan("coffee", 60)))


def a_match(path: str, **others: object) -> Match:
    return Match(path, 0.83, (Segment(1.0, 3.0, 2.0, 4.0, 0.9, **others),), 7)  # type: ignore[arg-type]


def member(path: str, *, best: bool) -> DuplicateMember:
    return DuplicateMember(path, 0.91, 64, 48, 6.0, 1000, best, compared_with=None if best else path)


def test_notebook_shows_a_match_with_its_moment_and_escaped_name(video: str) -> None:
    text = a_match(video, mirrored=True)._repr_html_()
    assert text.count(PICTURE) == 1
    assert "&lt;i&gt; &amp; co.mp4" in text
    assert "<i>" not in text
    assert "score 0.83, 2.0 - 4.0 s, mirrored" in text
    assert "2.0 - 4.0 s, backwards" in a_match(video, backwards=True)._repr_html_()


def test_notebook_shows_a_frame_for_each_group_member_and_shot(video: str) -> None:
    group = DuplicateGroup((member(video, best=True), member(video, best=False)), "more pixels")
    text = group._repr_html_()
    assert text.count(PICTURE) == 2
    assert "best: more pixels" in text
    assert "whole, score 0.91" in text
    shots = vidkin.detect_shots(video)
    assert isinstance(shots, list)
    assert shots._repr_html_().count(PICTURE) == len(shots) == 1


def test_notebook_shows_a_frame_for_each_occurrence(video: str) -> None:
    group = RecurringGroup((Occurrence(video, 1.0, 3.0, 0.9), Occurrence(video, 4.0, 6.0, 0.8)), "opening", 2)
    text = vidkin.show(Results([group]))._repr_html_()
    assert text.count(PICTURE) == group._repr_html_().count(PICTURE) == 2
    assert "opening: &lt;i&gt; &amp; co.mp4" in text
    assert "4.00 - 6.00 s, score 0.80" in text


def test_single_shot_is_shown_as_text() -> None:
    times = {"start": 0.0, "end": 2.0, "transition_start": 0.0, "transition_end": 0.5}
    text = vidkin.show(Shot(**times, start_frame=0, end_frame=20, kind="fade", confidence=0.9))._repr_html_()
    assert "0.00 - 2.00 s" in text
    assert "fade" in text


def test_notebook_output_of_a_long_list_is_limited(video: str) -> None:
    text = Results([a_match(video)] * 1000)._repr_html_()
    assert "1,000 results" in text
    assert text.count(PICTURE) == 24
    assert "and more" in text
    assert len(text) < 24 * 12_000


def test_missing_or_damaged_file_loses_only_its_frame(tmp_path: Path, video: str) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"no video at all" * 50)
    paths = [str(tmp_path / "gone.mp4"), str(tmp_path / "broken.mp4"), video, "/odd/\udcff\x1b.mp4"]
    text = Results([a_match(path) for path in paths])._repr_html_()
    assert (text.count("no image"), text.count(PICTURE)) == (3, 1)
    assert text.encode()  # an undecodable name can still be sent to the browser
    assert "\x1b" not in text


def test_show_places_query_frames_above_match_frames(video: str, tmp_path: Path) -> None:
    shown = vidkin.show(a_match(video, speed=2.0), query=video)
    assert shown._repr_html_().count(PICTURE) == 8
    assert "0:01.0 - 0:03.0 of the query at 0:02.0 - 0:04.0" in shown.html
    assert "speed 2.00" in shown.html
    # The centers of four parts of two seconds of the query: 1.25, 1.75, 2.25 and 2.75 s.
    assert re.findall(r">(0:0\d\.\d)</td>", shown.html)[:4] == ["0:01.3", "0:01.8", "0:02.3", "0:02.8"]
    assert repr(shown) == "Shown()"  # not the images
    shown.save(tmp_path / "match.html")
    assert (tmp_path / "match.html").read_text().startswith("<!doctype html>")
    assert vidkin.show(a_match(video)).html.count(PICTURE) == 4
    with pytest.raises(InvalidArgumentError, match="must be a match, a group, shots or a list of them, got int"):
        vidkin.show(7)


def test_data_frames_have_a_row_for_each_result_or_group_member(video: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows passed to pandas, which accepts rows of plain values by name."""
    pandas = ModuleType("pandas")
    pandas.DataFrame = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    (row,) = Results([a_match(video)]).to_pandas()
    assert (row["path"], row["score"], row["segments"], row["target_start"]) == (video, 0.83, 1, 2.0)
    assert [each["query_end"] for each in a_match(video).to_pandas()] == [3.0]
    groups = Results([DuplicateGroup((member(video, best=True), member(video, best=False)), "")] * 2)
    assert [(each["group"], each["best"]) for each in groups.to_pandas()] == [
        (1, True),
        (1, False),
        (2, True),
        (2, False),
    ]
    shot = Shot(
        start=0.0,
        end=2.0,
        start_frame=0,
        end_frame=20,
        kind="start",
        confidence=1.0,
        transition_start=0.0,
        transition_end=0.0,
    )
    assert Results([shot]).to_pandas()[0]["end_frame"] == shot.to_pandas()[0]["end_frame"] == 20
    group = RecurringGroup((Occurrence(video, 1.0, 3.0, 0.9), Occurrence(video, 4.0, 6.0, 0.8)), "opening", 2)
    found = Results([group]).to_pandas()
    assert [(each["group"], each["kind"], each["start"]) for each in found] == [
        (1, "opening", 1.0),
        (1, "opening", 4.0),
    ]
    assert group.to_pandas()[1]["end"] == 6.0
    assert found == Results([group]).table_rows()
    assert json.loads(json.dumps(groups.to_dicts())) == [group.to_dict() for group in groups]


def test_missing_pandas_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPartError, match="needs pandas; run pip install pandas, or use table_rows"):
        Results([a_match("/a.mp4")]).to_pandas()
