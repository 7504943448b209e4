"""Scoring pairs in several processes gives the groups and stored results of a single process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.index.helpers import NAMES, PLAIN, Noted, video
from tests.support.videos import encode, pan
from vidkin.errors import ClusterError
from vidkin.files import Proof
from vidkin.index import Calibration, Comparisons, Index, PairResult, Traits, VideoRecord
from vidkin.index.duplicates.pair_scores import PairJob, is_in_doubt, to_pair_result
from vidkin.match import open_scorer
from vidkin.similarity import FrameFeatures, PairScore, Segment

GROUPS = [["0", "longer"], ["1", "worse"]]


@dataclass
class Copies:
    """Indexes by name, all of the same videos: copies of two videos, and two unrelated ones."""

    folder: Path

    def find(self, name: str, width: int = 0, **options: Any) -> tuple[Any, dict[str, Any], Noted]:
        """Search without stored results; return the groups, the stored results, and the mapper that ran the tasks."""
        stored = self.folder / name / Comparisons.FILE
        stored.unlink(missing_ok=True)
        with Index.open(self.folder / name, read_only=True) as index:
            mapper = Noted(index, width)
            index._mapper = mapper if width else None
            groups = index.duplicates(**options)
        table = json.loads(stored.read_text())
        return groups, table, mapper


def make_copies(folder: Path, extractor: str, stores: Mapping[str, str] = {"one": "disk"}) -> Copies:
    # Videos of nine seconds or more are stored at one frame per second and read again at two.
    clips = [video(folder / "videos" / f"{seed}.mp4", seed=seed, frames=45) for seed in range(4)]
    clips.append(video(folder / "videos" / "longer.mp4", seed=0, frames=52))
    frames = list(pan(NAMES[1], 45, width=96, height=64, seed=1))
    clips.append(encode(folder / "videos" / "worse.mp4", frames, rate=5, options={"crf": "36"}))
    for name, store in stores.items():
        with Index.open(folder / name, extractor=extractor, create=True, store=store) as index:
            index.add(clips, workers=1)
    return Copies(folder)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return make_copies(tmp_path_factory.mktemp("copies"), "classical")


def names_of(groups: Any) -> list[list[str]]:
    return sorted(sorted(Path(member.path).stem for member in group.members) for group in groups)


@pytest.mark.thorough
def test_several_processes_find_the_same_groups_as_one(copies: Copies) -> None:
    groups, stored, _ = copies.find("one")
    found, stored_then, mapper = copies.find("one", width=2)
    assert names_of(groups) == GROUPS
    assert found == groups
    assert stored_then == stored
    assert mapper.methods == {"compare", "describe"}
    # Each pair is compared on the machine of one of its files.
    compared = [task for task in mapper.tasks if task.method == "compare"]
    assert all(task.home == task.arguments[0].id for task in compared)


@pytest.mark.parametrize(
    ("result", "parts", "expected"),
    [
        (PairResult(0.72, covered=(1.0, 1.0)), False, True),
        (PairResult(0.1, covered=(1.0, 1.0)), False, False),  # unrelated
        (PairResult(0.72, True, (1.0, 1.0)), False, False),  # has been read already
        (PairResult(0.78, covered=(1.0, 0.4)), False, False),  # an excerpt that is shown completely
        (PairResult(0.78, covered=(0.75, 0.6)), False, True),  # the shown fraction is uncertain
        (PairResult(0.78, covered=(1.0, 1.0)), False, False),  # no closer reading could separate the two
        (PairResult(0.72, covered=(1.0, 0.3)), False, False),  # no closer reading could make them whole copies
        (PairResult(0.72, covered=(1.0, 0.3)), True, True),  # but it could show that one is an excerpt
    ],
)
def test_pair_is_in_doubt_as_long_as_a_closer_reading_could_change_the_result(
    result: PairResult, parts: bool, expected: bool
) -> None:
    assert is_in_doubt(result, parts) is expected


@pytest.mark.thorough
def test_doubtful_pairs_are_read_again_on_any_machine(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidkin.index.duplicates.pair_scores._SURE_AS_STORED", 1.0)
    here, there = copies.find("one"), copies.find("one", width=2)
    assert there[:2] == here[:2]
    read = [row[3] for row in here[1]["pairs"] if row[2] > 0.7]
    assert read
    assert all(read)


@pytest.mark.large
def test_several_processes_find_the_same_parts_as_one(copies: Copies) -> None:
    assert copies.find("one", width=3, parts=True)[:2] == copies.find("one", parts=True)[:2]


# Tasks that a worker refuses


RECORDS = [
    VideoRecord(path=f"/nowhere/{name}.mp4", size=1, mtime_ns=1, content_hash=name, id=place)
    for place, name in enumerate("ab")
]


def job(fingerprint: str = "plain-1") -> PairJob:
    return PairJob(open_scorer("copies"), Calibration.of_extractor(PLAIN.open()), PLAIN, fingerprint, 1.0)


@pytest.mark.thorough
def test_machine_without_the_file_reports_an_error_instead_of_another_result(copies: Copies) -> None:
    with Index.open(copies.folder / "one", read_only=True) as index:
        scores = job().start(index.place, index.store)
        with pytest.raises(ClusterError, match=r"cannot access /nowhere/a\.mp4; mount the folder at the same path"):
            scores.read(*RECORDS)


def test_machine_with_another_extractor_reports_an_error(copies: Copies) -> None:
    with (
        Index.open(copies.folder / "one", read_only=True) as index,
        pytest.raises(
            ClusterError,
            match=r"different extractor than this machine \(plain-1 and plain-2\); install the same weights on every",
        ),
    ):
        job("plain-2").start(index.place, index.store)


def test_video_removed_in_the_meantime_has_no_result(copies: Copies) -> None:
    with Index.open(copies.folder / "one", read_only=True) as index:
        scores = job().start(index.place, index.store)
        assert scores.compare(index.videos()[0], [replace(RECORDS[0], id=10**6)], parts=False) is None


def test_moments_explained_by_a_stronger_segment_do_not_count() -> None:
    part, film = (
        FrameFeatures.of_whole(np.ones((count, 1, 4), np.float32), np.arange(float(count))) for count in (4, 16)
    )
    shown, again, alike = (
        Segment(0, 3.4, start, start + 3.4, score) for start, score in ((4, 0.9), (10, 0.85), (12, 0.78))
    )
    result = to_pair_result(PairScore(0.8, (shown, alike), np.zeros((4, 16), np.float32)), part, film)
    assert (result.segments, result.covered) == ((shown,), (1.0, 0.25))
    # Footage that is shown twice counts twice.
    result = to_pair_result(PairScore(0.8, (shown, again), np.zeros((4, 16), np.float32)), part, film)
    assert (result.segments, result.covered) == ((shown, again), (1.0, 0.5))


PROOF = Proof("/a.mp4", "/b.mp4", "hash of a", "hash of b")


def test_known_results_of_a_group_can_be_sent_and_merged_back() -> None:
    known = Comparisons()
    known.put("b", "a", PairResult(0.5, covered=(0.1, 0.9)))
    known.put("a", "c", PairResult(0.6))
    known.differences["b a"] = [{"kind": "cropped"}]
    known.sounds["a b"] = 0.25
    part = known.part(["b", "a"])
    assert [(first, second) for first, second, _ in part.pairs()] == [("a", "b")]
    assert part.get("b", "a") == PairResult(0.5, covered=(0.1, 0.9))
    assert (part.differences, part.sounds) == ({"b a": [{"kind": "cropped"}]}, {"a b": 0.25})
    part.put("a", "b", PairResult(0.75))
    part.traits["a"] = Traits(25.0)
    part.put_proof("a", "b", PROOF)
    known.merge(part)
    assert known.get("a", "b") == PairResult(0.75)
    assert known.get("a", "c") == PairResult(0.6)
    assert known.traits == {"a": Traits(25.0)}
    assert known.proof("a", "b") == PROOF
    again = known.part(["a", "b"])
    assert (again.proof("a", "b"), again.traits) == (PROOF, known.traits)
    assert known.part(["b", "c"]).proof("a", "b") is None
