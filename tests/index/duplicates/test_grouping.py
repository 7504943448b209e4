"""Groups computed from pair scores, without videos."""

from __future__ import annotations

import pytest

from vidkin.index import Decisions, PairResult
from vidkin.index.duplicates.comparisons import relation_of
from vidkin.index.duplicates.grouping import GroupIds, Grouping
from vidkin.similarity import Segment

WHOLE = (1.0, 1.0)


def groups(
    results: dict[tuple[str, str], PairResult],
    names: str,
    *,
    decisions: Decisions | None = None,
    parts: bool = False,
) -> list[str]:
    compared = PairResult(0.0)
    grouping = Grouping(results, lambda first, second: compared, decisions or Decisions(), 0.7)
    return sorted("".join(group) for group in grouping.groups(list(names), parts=parts))


def same(score: float) -> PairResult:
    return PairResult(score, True, WHOLE)


@pytest.mark.parametrize(
    ("covered", "relation"),
    [((0.95, 0.75), "whole"), ((0.9, 0.1), "excerpt"), ((0.1, 0.9), "contains"), ((0.5, 0.4), "overlaps")],
)
def test_coverage_determines_the_relation_of_a_pair(covered: tuple[float, float], relation: str) -> None:
    assert relation_of(PairResult(0.9, True, covered)) == relation


def test_thirty_of_fifty_two_seconds_are_an_excerpt_even_if_they_match_everything() -> None:
    """In a nearly static scene everything matches, but the durations distinguish copies from excerpts."""
    still = PairResult(0.95, True, (1.0, 0.9), (Segment(0.0, 30.0, 2.0, 32.0, 0.9),))
    assert relation_of(still, (30.0, 52.0)) == "excerpt"
    assert relation_of(still.swapped(), (52.0, 30.0)) == "contains"
    assert relation_of(still, (48.0, 52.0)) == "whole"
    # At double speed, 26 s show all 52 s.
    faster = PairResult(0.95, True, (1.0, 1.0), (Segment(0.0, 26.0, 0.0, 52.0, 0.9, speed=2.0),))
    assert relation_of(faster, (26.0, 52.0)) == "whole"
    lengths = {"film": 52.0, "part": 30.0}
    grouping = Grouping({("part", "film"): still}, lambda first, second: still, Decisions(), 0.7, lengths)
    assert grouping.groups(["part", "film"], parts=False) == [["part"], ["film"]]
    assert grouping.groups(["part", "film"], parts=True) == [["film", "part"]]


def test_copies_that_hardly_match_each_other_are_grouped_through_the_original() -> None:
    """For example, a crop and a copy with a large logo match the original well, but not each other."""
    results = {("a", "b"): same(0.95), ("a", "c"): same(0.9), ("b", "c"): same(0.5)}
    assert groups(results, "abcd") == ["abc", "d"]


def test_chain_of_weak_links_is_split() -> None:
    results = {("a", "b"): same(0.72), ("b", "c"): same(0.71), ("c", "d"): same(0.73), ("d", "e"): same(0.71)}
    found = groups(results, "abcde")
    assert max(map(len, found)) == 2
    assert found == ["ab", "cd", "e"]


def test_excerpts_are_joined_only_on_request() -> None:
    film, trailer = PairResult(0.95, True, (0.1, 1.0)), PairResult(0.9, True, (1.0, 0.05))
    results = {("a", "b"): film, ("c", "d"): trailer}
    assert groups(results, "abcd") == ["a", "b", "c", "d"]
    assert groups(results, "abcd", parts=True) == ["ab", "cd"]


def test_compilation_does_not_join_the_videos_it_excerpts() -> None:
    """x shows a moment of a and one of b, which otherwise have nothing in common."""
    quoted = PairResult(0.9, True, (0.1, 0.3))
    results = {("a", "x"): quoted, ("b", "x"): PairResult(0.8, True, (0.1, 0.3))}
    assert groups(results, "abx", parts=True) == ["ax", "b"]


def test_user_decisions_override_scores() -> None:
    decisions = Decisions()
    decisions.decide("a", "b", "not a match")
    decisions.decide("c", "d", "match")
    results = {("a", "b"): same(0.99), ("b", "e"): same(0.9), ("a", "e"): same(0.95)}
    assert groups(results, "abcde", decisions=decisions) == ["ae", "b", "cd"]


def test_group_keeps_its_id_while_it_grows_and_loses_it_when_merged() -> None:
    ids = GroupIds()

    def assign(*groups: str) -> tuple[list[int], list[int]]:
        return ids.assign([frozenset(group) for group in groups])

    assert assign("ab") == ([1], [])
    assert assign("cd", "abe") == ([2, 1], [])
    # Two groups merge: the lower id stays, and the other one is never reused.
    assert assign("abecd", "fg") == ([1, 3], [2])
    assert assign("cd", "abe") == ([4, 1], [3])
    # If a group is split, its larger part keeps the id.
    assert assign("cdab") == ([1], [4])
    assert assign("c", "dab") == ([5, 1], [])
    assert assign() == ([], [1, 5])


def test_pair_not_compared_yet_neither_joins_nor_separates_groups() -> None:
    """While pairs are being compared, a chain is one group as far as its links are known."""
    results = {("a", "b"): same(0.9), ("b", "c"): same(0.8)}
    grouping = Grouping(results, lambda first, second: None, Decisions(), 0.7)
    assert grouping.groups(["a", "b", "c"], parts=False) == [["a", "b", "c"]]
