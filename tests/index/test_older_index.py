"""An index that vidkin 0.1.0 made, before the rooms were rearranged: opened, searched, added to.

``answers.json`` holds what that version itself answered. One of the six records is of a file that cannot be read, and
one of a video whose features were lost, so that its file is to be read again. The description of the background is
left out, as it is large; it is made again when it is first needed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.index.helpers import video
from vidkin.index import Index, Match, SerialExecutor, WorkerSpec
from vidkin.similarity import Segment

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "index-0.1"
CLIPS = FIXTURE / "clips"
ANSWERS: dict[str, Any] = json.loads((FIXTURE / "answers.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(FIXTURE / "collection", tmp_path_factory.mktemp("older") / "collection")


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.open(folder) as opened:
        yield opened


def near(answer: Any, off: float = 1e-6) -> Any:
    """The answer with every time allowed to be off by a millionth, and every score by .06.

    Version 0.2 judges changes more strictly (docs/scoring.md, 5) and counts the frame that shows the first moment of
    the target, which moves scores and nothing else.
    """
    if isinstance(answer, float):
        return pytest.approx(answer, abs=off)
    if isinstance(answer, dict):
        return {key: near(value, 0.06 if key == "score" else off) for key, value in answer.items()}
    return [near(value, off) for value in answer] if isinstance(answer, list) else answer


def fields_of(segments: Iterable[Segment]) -> list[dict[str, Any]]:
    """What version 0.1.0 knew of a segment."""
    names = ("query_start", "query_end", "target_start", "target_end", "score", "speed", "mirrored")
    return [{name: getattr(segment, name) for name in names} for segment in segments]


def described(match: Match) -> dict[str, Any]:
    return {
        "name": os.path.basename(match.path),
        "score": match.score,
        "segments": fields_of(match.segments),
    }


def test_all_records_are_there(index: Index) -> None:
    assert index.manifest.fingerprint == index.extractor.fingerprint == ANSWERS["fingerprint"]
    for record, answer in zip(index.videos(), ANSWERS["videos"], strict=True):
        if answer["mtime_ns"] == -1:  # how stale records are written
            answer = {**answer, "status": "stale", "mtime_ns": 0}
        # That version did not know what was damaged.
        assert {**asdict(record), "path": os.path.basename(record.path)} == {**answer, "damage": ""}


def test_searches_answer_as_they_did(index: Index) -> None:
    for name, answer in ANSWERS["searches"].items():
        matches = index.search(CLIPS / f"{name}.mp4")
        assert [described(match) for match in matches] == near(answer)


def test_match_answers_as_it_did(index: Index) -> None:
    target = next(record.path for record in index.videos() if record.path.endswith("/coffee.mp4"))
    comparison = index.match(CLIPS / "coffee-copy.mp4", target)
    answer = {"score": comparison.score, "segments": fields_of(comparison.segments)}
    assert answer == near(ANSWERS["matches"])


def test_missing_files_of_an_older_index_are_not_duplicates(index: Index) -> None:
    """The collection was made in a folder that does not exist here."""
    assert index.duplicates(threshold=0.3) == []


def test_what_was_lost_is_still_known_to_be_lost(index: Index) -> None:
    assert list(index.store.missing().values()) == ANSWERS["missing"]


def test_videos_are_added_and_moved_ones_recognized(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "collection")
    added = video(tmp_path / "new.mp4", seed=4)
    with Index.open(copy) as index:
        report = index.add([CLIPS, added], executor=SerialExecutor(WorkerSpec("classical")))
        assert [outcome.path for outcome in report.added] == [str(added)]
        assert [os.path.basename(outcome.path) for outcome in report.moved] == [
            "chelsea.mp4",
            "coffee-copy.mp4",
            "coffee.mp4",
            "rocket.mp4",
        ]
        best = index.search(added)[0]
        assert (best.path, best.score, best.video_id) == (str(added), 1.0, 7)
        assert index.search(CLIPS / "coffee.mp4")[0].path == str(CLIPS / "coffee.mp4")
        (group,) = index.duplicates(threshold=0.3)
        names = {os.path.basename(member.path) for member in group.members}
        assert names == {member["path"] for member in ANSWERS["duplicates"][0]}
