"""Duplicates of real files in a real index: scores, copies and excerpts, mirroring, hard links, Ctrl-C."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import vidkin
from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.index import (
    Comparisons,
    DuplicateGroup,
    DuplicateMember,
    FoundGroup,
    Index,
    SerialExecutor,
    open_place,
    plan_removal,
)
from vidkin.index.duplicates import find

SIZE = {"width": 160, "height": 120}
RATE = 5


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trimmed copy, a mirrored copy, an excerpt, a hard link, and an unrelated video."""
    folder = tmp_path_factory.mktemp("videos é")
    coffee, chelsea, rocket = (list(pan(name, 60, **SIZE)) for name in ("coffee", "chelsea", "rocket"))
    encode(folder / "coffee.mp4", coffee, rate=RATE)
    encode(folder / "coffee trimmed.mp4", coffee[4:57], rate=RATE, options={"crf": "32"})
    encode(folder / "chelsea.mp4", chelsea, rate=RATE)
    encode(folder / "chelsea flipped.mp4", [np.flip(frame, 1) for frame in chelsea], rate=RATE)
    encode(folder / "rocket.mp4", rocket, rate=RATE)
    encode(folder / "rocket excerpt.mp4", rocket[18:40], rate=RATE, options={"crf": "30"})
    os.link(folder / "coffee.mp4", folder / "coffee, another name.mp4")
    encode(folder / "brick.mp4", pan("brick", 30, **SIZE), rate=RATE)
    return folder


@pytest.fixture(scope="module")
def index(videos: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.open(tmp_path_factory.mktemp("index") / "c.vidkin", create=True) as opened:
        opened.add(videos, executor=SerialExecutor(opened.worker_spec))
        yield opened


def stems(group: DuplicateGroup) -> set[str]:
    return {Path(member.path).stem for member in group.members}


def member(groups: list[DuplicateGroup], stem: str) -> DuplicateMember:
    return next(item for group in groups for item in group.members if Path(item.path).stem == stem)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pair",
    [
        ("coffee, another name", "coffee trimmed"),
        pytest.param(("rocket", "rocket excerpt"), marks=pytest.mark.large),
    ],
)
def test_all_functions_give_a_pair_the_same_score(index: Index, videos: Path, pair: tuple[str, str]) -> None:
    first, second = (videos / f"{name}.mp4" for name in pair)
    scores = {}
    for one, other in ((first, second), (second, first)):
        scores["search", one.stem] = next(m.score for m in index.search(one) if m.path == str(other))
        scores["match", one.stem] = index.match(one, other).score
        scores["compare", one.stem] = vidkin.compare(one, other).score
    groups = index.duplicates(threshold=0.3, parts=True)
    scores["duplicates", ""] = min(member(groups, name).score for name in pair)
    assert min(scores.values()) >= 0.7, scores
    # Search and duplicates use stored features for one or both files; match and compare read both files again.
    assert max(scores.values()) - min(scores.values()) <= 0.1, scores
    exact = [scores[name, stem] for name in ("match", "compare") for stem in (first.stem, second.stem)]
    assert max(exact) - min(exact) <= 1e-6


def test_trimmed_and_mirrored_copies_are_grouped_but_excerpts_are_not(index: Index) -> None:
    groups = index.duplicates()
    assert [stems(group) for group in groups] == [
        {"chelsea", "chelsea flipped"},
        {"coffee, another name", "coffee trimmed"},
    ]
    trimmed = member(groups, "coffee trimmed")
    assert (trimmed.relation, trimmed.mirrored, trimmed.best) == ("whole", False, False)
    assert trimmed.compared_with == member(groups, "coffee, another name").path
    assert trimmed.lacking == 0.0
    assert trimmed.is_spare
    pair = member(groups, "chelsea"), member(groups, "chelsea flipped")
    assert sorted(item.mirrored for item in pair) == [False, True]
    assert min(item.score for item in pair) >= 0.7
    assert groups[1].savings == trimmed.size


@pytest.mark.thorough
def test_number_of_workers_does_not_change_the_differences(index: Index) -> None:
    found = []
    for workers in (1, 3):
        Comparisons(open_place(index.path)).save()
        told: list[FoundGroup] = []
        groups = index.duplicates(workers=workers, on_found=told.append)
        final = [found.group for found in told if found.is_final and found.group is not None]
        assert sorted(final, key=lambda group: group.best.path) == groups
        found.append([group.to_dict() for group in groups])
    assert found[0] == found[1]
    assert [difference["kind"] for difference in found[0][0]["members"][1]["differences"]] == ["mirrored"]
    with pytest.raises(InvalidArgumentError, match="workers must be at least 1, got 0"):
        index.duplicates(workers=0)


@pytest.mark.thorough
def test_groups_are_reported_during_the_search_without_changing_the_result(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Path(index.path) / Comparisons.FILE
    Comparisons(open_place(index.path)).save()
    alone = index.duplicates()
    compared = json.loads(stored.read_text(encoding="utf-8"))
    # Check for new groups after every step, however long the last check took.
    monkeypatch.setattr(find, "_FIRST_PREVIEW", 0.0)
    monkeypatch.setattr(find, "_MAX_PREVIEW_RATIO", float("inf"))
    Comparisons(open_place(index.path)).save()
    told: list[FoundGroup | tuple[int, int]] = []
    groups = index.duplicates(on_found=told.append, on_progress=lambda done, total: told.append((done, total)))
    assert groups == alone
    assert json.loads(stored.read_text(encoding="utf-8")) == compared
    found = [each for each in told if isinstance(each, FoundGroup)]
    assert [each.sequence for each in found] == list(range(1, len(found) + 1))
    # The flipped copy is found by its stored features before any file is read, so nothing is proven yet.
    first = found[0]
    assert first.group is not None
    assert not first.is_final
    assert told.index(first) < len(told) / 2
    assert {Path(each.path).stem for each in first.group.members} == {"chelsea", "chelsea flipped"}
    assert not any(each.is_proven for each in first.group.members)
    # The last report for each id is the final group.
    last = {each.id: each for each in found}
    assert all(each.is_final for each in last.values())
    assert sorted((each.group for each in last.values() if each.group), key=lambda group: group.best.path) == groups
    line = first.to_dict()
    assert (line["id"], line["sequence"], line["is_final"]) == (first.id, 1, False)
    assert [each["path"] for each in line["members"]] == [each.path for each in first.group.members]
    assert FoundGroup(7, 9, True, None).to_dict() == {
        "id": 7,
        "sequence": 9,
        "is_final": True,
        "members": [],
        "reason": "",
        "savings": 0,
    }


def test_excerpt_has_the_times_it_was_taken_from(index: Index) -> None:
    groups = index.duplicates(parts=True)
    excerpt, film = member(groups, "rocket excerpt"), member(groups, "rocket")
    assert film.best
    assert next(group.reason for group in groups if group.best is film) == "longest"
    assert (excerpt.relation, excerpt.compared_with) == ("excerpt", film.path)
    assert excerpt.start == pytest.approx(3.6, abs=0.3)
    assert excerpt.end == pytest.approx(8.0, abs=0.3)
    assert excerpt.is_spare


def test_excerpt_confirmed_as_a_copy_stays_an_excerpt_and_is_planned_only_with_parts(
    videos: Path, tmp_path: Path
) -> None:
    film, excerpt = videos / "rocket.mp4", videos / "rocket excerpt.mp4"
    with Index.open(tmp_path / "i", create=True) as index:
        index.add([film, excerpt], executor=SerialExecutor(index.worker_spec))
        index.confirm(film, excerpt)
        (group,) = index.duplicates()
        part = member([group], "rocket excerpt")
        assert (part.relation, part.doubt, part.is_spare) == ("excerpt", "not a whole copy", False)
        assert plan_removal([group]).groups == ()
        (group,) = index.duplicates(parts=True)
        part = member([group], "rocket excerpt")
        assert (part.relation, part.doubt, part.is_spare) == ("excerpt", "", True)
        # Frames 18 to 40 at five frames per second.
        assert (part.start, part.end) == pytest.approx((3.6, 8.0), abs=0.11)
        assert [difference.kind for difference in part.differences] == ["trimmed", "re-encoded"]


def test_hard_links_count_as_one_file(index: Index) -> None:
    groups = index.duplicates()
    coffee = next(item for group in groups for item in group.members if item.links)
    names = {Path(path).stem for path in (coffee.path, *coffee.links)}
    assert names == {"coffee", "coffee, another name"}
    assert sum(len(group.members) for group in groups) == 4


def test_missing_files_are_left_out_of_duplicates(
    videos: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("vidkin"), "propagate", True)
    copies = [tmp_path / name for name in ("one.mp4", "two.mp4")]
    for copy in copies:
        copy.write_bytes((videos / "coffee.mp4").read_bytes())
    with Index.open(tmp_path / "i", create=True) as index:
        index.add(copies, executor=SerialExecutor(index.worker_spec))
        assert len(index.duplicates()) == 1
        copies[0].unlink()
        assert index.duplicates() == []
    assert "1 videos are left out because their files are gone, for example" in caplog.text


@pytest.mark.thorough
def test_ctrl_c_keeps_finished_comparisons(videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.open(tmp_path / "i", create=True) as index:
        index.add(videos, executor=SerialExecutor(index.worker_spec))

        def interrupt(done: int, total: int) -> None:
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            index.duplicates(on_progress=interrupt)
        kept = json.loads((index.path / Comparisons.FILE).read_text())
        assert len(kept["searched"]) == 3
        calls = []
        nearest = index.store.nearest

        def counted(*arguments: object) -> object:
            calls.append(arguments)
            return nearest(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(index.store, "nearest", counted)
        groups = index.duplicates()
        contents = len({record.content_hash for record in index.videos()})
        assert len(calls) == contents - 3
        assert [stems(group) for group in groups] == [
            {"chelsea", "chelsea flipped"},
            {"coffee, another name", "coffee trimmed"},
        ]
        calls.clear()
        steps: list[tuple[int, int]] = []
        again = index.duplicates(on_progress=lambda *step: steps.append(step))
        assert again == groups
        assert calls == []
        # The first step reports earlier work.
        total = contents + len(groups) * find._STEPS
        assert (steps[0], steps[-1]) == ((contents, contents), (total, total))


@pytest.fixture(scope="module")
def shifted(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three copies without an end or a beginning.

    Before the best copy is chosen, the trimmed one is compared finely with the coarse one, which is sampled at the same
    times; it is compared finely with the best copy only afterward.
    """
    folder = tmp_path_factory.mktemp("shifted")
    coffee = list(pan("coffee", 90, **SIZE))
    return [
        encode(folder / "best.mp4", coffee[2:-13], rate=RATE),
        encode(folder / "coarse.mp4", coffee[:-15], rate=RATE, options={"crf": "30"}),
        encode(folder / "trimmed.mp4", coffee[15:], rate=RATE, options={"crf": "30"}),
    ]


@pytest.mark.thorough
def test_second_run_reads_no_file(
    videos: Path, shifted: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes a crop, whose missing area was checked, and a pair that was compared finely at the end."""
    crop = [frame[24:96, 32:128] for frame in pan("chelsea", 60, **SIZE)]
    files = [videos / "chelsea.mp4", encode(tmp_path / "c.mp4", crop, rate=RATE), *shifted]
    with Index.open(tmp_path / "i", create=True) as index:
        index.add(files, executor=SerialExecutor(index.worker_spec))
        groups = index.duplicates()
    assert sorted(len(group.members) for group in groups) == [2, 3]
    compared = (tmp_path / "i" / Comparisons.FILE).read_bytes()

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError(f"{arguments} is read again")

    monkeypatch.setattr("av.open", fail)
    with Index.open(tmp_path / "i") as index:
        assert index.duplicates() == groups
    assert (tmp_path / "i" / Comparisons.FILE).read_bytes() == compared


def test_ignored_ends_are_left_out_of_the_comparison_but_not_of_the_proof(tmp_path: Path) -> None:
    """Two episodes with one opening, and a copy of the first one with another opening."""
    opening, other, *stories = (list(pan(name, 30, **SIZE)) for name in ("coffee", "brick", "chelsea", "rocket"))
    files = [
        encode(tmp_path / f"{name}.mp4", start + story, rate=RATE, options={"crf": quality})
        for name, start, story, quality in (
            ("one", opening, stories[0], "18"),
            ("two", opening, stories[1], "18"),
            ("one again", other, stories[0], "30"),
        )
    ]
    with Index.open(tmp_path / "i", create=True) as index:
        index.add(files, executor=SerialExecutor(index.worker_spec))
        whole = index.duplicates(parts=True)
        assert [stems(group) for group in whole] == [{"one", "two", "one again"}]
        stored = (index.path / Comparisons.FILE).read_bytes()
        (group,) = index.duplicates(ignore_start=6.0)
        assert (group.members[1].doubt, group.members[1].is_spare) == ("its ends were not compared", False)
        for _ in range(2):  # the second time from stored results
            (group,) = index.duplicates(ignore_start=6.0, prove=True)
            assert stems(group) == {"one", "one again"}
            (copy,) = (each for each in group.members if not each.best)
            assert (copy.relation, copy.lacking) == ("whole", 0.0)
            assert copy.segments[0].query_start == pytest.approx(6.0, abs=0.3)
            assert not plan_removal([group]).groups
        (group,) = index.duplicates(ignore_end=6.0)
        assert stems(group) == {"one", "two"}
        assert index.duplicates(ignore_start=6.0, ignore_end=6.0) == []
        assert (index.path / Comparisons.FILE).read_bytes() == stored
        assert index.duplicates(parts=True) == whole
        with pytest.raises(InvalidArgumentError, match="by must be 'picture' with ignore_start or ignore_end"):
            index.duplicates(ignore_start=6.0, by="either")
        with pytest.raises(InvalidArgumentError, match="ignore_end must be at least 0, got -1"):
            index.duplicates(ignore_end=-1.0)


@pytest.mark.large
def test_progress_reaches_the_total(index: Index) -> None:
    steps: list[tuple[int, int]] = []
    Comparisons(open_place(index.path)).save()
    index.duplicates(on_progress=lambda done, total: steps.append((done, total)))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1][0] == steps[-1][1]
    assert all(done <= total for done, total in steps)
