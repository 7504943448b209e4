"""The user's decisions about groups override the groups found, but do not affect scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.seasons import OPENING, RATE, shots
from tests.support.videos import encode
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index import (
    DecidedStretch,
    Decisions,
    Index,
    Occurrence,
    RecurringDecision,
    RecurringGroup,
    SerialExecutor,
    open_place,
)
from vidkin.index.recurring.decided import apply_decisions

PATHS = {"a": "/e1.mp4", "b": "/e2.mp4", "c": "/e3.mp4"}
GROUP = RecurringGroup(
    (Occurrence("/e1.mp4", 10, 40, 0.9), Occurrence("/e2.mp4", 20, 50, 0.8), Occurrence("/e3.mp4", 5, 35, 0.7)),
    "opening",
    3,
)
BUMPER = RecurringGroup((Occurrence("/e1.mp4", 12, 16, 0.9), Occurrence("/e2.mp4", 90, 94, 0.9)), "inside", 3)


def decision(*stretches: DecidedStretch, verdict: str = "recurs") -> RecurringDecision:
    return RecurringDecision(verdict, "Song", "opening", stretches)  # type: ignore[arg-type]


def test_decided_ends_replace_found_ones_and_other_files_stay() -> None:
    said = decision(DecidedStretch("a", 12, 44), DecidedStretch("b", 20, 50))
    (group, other) = apply_decisions([GROUP, BUMPER], [said], PATHS, 3)
    assert [(one.path, one.start, one.end) for one in group.occurrences] == [
        ("/e1.mp4", 12, 44),
        ("/e2.mp4", 20, 50),
        ("/e3.mp4", 5, 35),
    ]
    assert (group.name, group.is_confirmed, group.occurrences[0].score) == ("Song", True, 0.9)
    # The longest occurrence is 32 s now; the others are two seconds shorter.
    assert [one.shorter for one in group.occurrences] == [0.0, 2.0, 2.0]
    # The bumper inside the opening is a separate group.
    assert other == BUMPER


def test_excluded_occurrences_are_left_out_and_rejected_groups_are_removed() -> None:
    said = decision(DecidedStretch("a", 10, 40), DecidedStretch("b", 20, 50), DecidedStretch("c", 5, 35, belongs=False))
    (group,) = apply_decisions([GROUP], [said], PATHS, 3)
    assert group.paths == ("/e1.mp4", "/e2.mp4")
    rejected = decision(DecidedStretch("a", 10, 40), DecidedStretch("b", 20, 50), verdict="does not recur")
    assert apply_decisions([GROUP, BUMPER], [rejected], PATHS, 3) == [BUMPER]


def test_confirmed_group_that_is_no_longer_found_stays_while_two_of_its_files_exist() -> None:
    said = decision(DecidedStretch("a", 10, 40), DecidedStretch("b", 20, 50))
    (group,) = apply_decisions([], [said], PATHS, 3)
    assert group.paths == ("/e1.mp4", "/e2.mp4")
    assert apply_decisions([], [said], {"a": "/e1.mp4"}, 1) == []


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Two episodes that have only their opening in common."""
    (tmp_path / "season").mkdir()
    first = [*shots(("astronaut", 0, 60)), *shots(*OPENING), *shots(("chelsea", 0, 45))]
    encode(tmp_path / "season" / "e1.mp4", first, rate=RATE)
    encode(
        tmp_path / "season" / "e2.mp4",
        [*shots(("brick", 1, 48)), *shots(*OPENING), *shots(("grass", 2, 60))],
        rate=RATE,
    )
    with Index.open(tmp_path / "i.vidkin", create=True) as opened:
        opened.add(tmp_path / "season", executor=SerialExecutor(opened.worker_spec))
    return tmp_path / "i.vidkin"


@pytest.mark.thorough
def test_score_depends_on_no_decision_and_no_other_video(index: Path) -> None:
    season = index.parent / "season"
    first, second = str(season / "e1.mp4"), str(season / "e2.mp4")

    def score(opened: Index) -> float:
        opened.refresh()
        return max((match.score for match in opened.search(first, limit=9) if match.path == second), default=0.0)

    with Index.open(index) as opened:
        before = score(opened)
        assert before > 0.3  # the opening that both videos share
        (group,) = opened.recurring()
        opened.confirm_recurring(replace(group, name="Song"))
        assert score(opened) == before
        # Adding videos does not lose the decision.
        for number in range(3, 6):
            encode(
                season / f"e{number}.mp4",
                [*shots(("moon", number, 48)), *shots(*OPENING), *shots(("page", number, 60))],
                rate=RATE,
            )
        opened.add(season, executor=SerialExecutor(opened.worker_spec))
        assert score(opened) == before
        (confirmed,) = (found for found in opened.recurring() if found.is_confirmed)
        assert confirmed.name == "Song"
        opened.forget_recurring(confirmed)
        assert score(opened) == before
        with pytest.raises(InvalidArgumentError, match="there is no decision about this group"):
            opened.forget_recurring(confirmed)


def test_decisions_on_pairs_and_on_groups_do_not_overwrite_each_other(index: Path) -> None:
    first, second = (index.parent / "season" / name for name in ("e1.mp4", "e2.mp4"))
    with Index.open(index) as opened:
        (group,) = opened.recurring()
        opened.reject(first, second)
        opened.reject_recurring(group)
        opened.forget_decision(first, second)
        assert opened.recurring() == []
        (rejected,) = opened.rejected_recurring()
        assert rejected.paths == group.paths
        opened.forget_recurring(rejected)
        assert opened.recurring() == [group]


@pytest.mark.parametrize("row", ['{"verdict": "maybe"}', '{"verdict": "recurs", "name": "", "kind": "opening"}'])
def test_damaged_decisions_are_an_error_and_left_unchanged(tmp_path: Path, row: str) -> None:
    place = open_place(tmp_path)
    content = f'{{"decisions": [], "recurring": [{row}]}}'
    (tmp_path / Decisions.FILE).write_text(content)
    with pytest.raises(CollectionDamagedError, match=r"decisions\.json is damaged"):
        Decisions.open(place)
    assert (tmp_path / Decisions.FILE).read_text() == content
