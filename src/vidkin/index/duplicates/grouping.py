"""Groups of copies by the scores of pairs, without chains of weak links and without pairs that the user rejected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vidkin.index.duplicates.comparisons import PairResult, Relation, relation_of
from vidkin.index.duplicates.scope import PairScope
from vidkin.index.storage.decisions import Decisions

# Two groups are joined if the mean score of pairs across them is at least this share of the threshold.
_MEAN_SHARE = 0.7

# Maximum number of videos of each group that are compared before two groups are joined.
_MAX_COMPARED = 6


@dataclass(slots=True)
class Grouping:
    """Groups of contents.

    Attributes:
        results: Pairs of contents -> result of their comparison, the first as the query.
        compare: Returns the result of a pair that is not in ``results``; None if unknown, and then the pair does not
            count.
        decisions: Pairs that the user confirmed or rejected.
        threshold: Score from which two videos belong together.
        lengths: Content -> duration in seconds.
        pairs: Which pairs count.
    """

    results: Mapping[tuple[str, str], PairResult]
    compare: Callable[[str, str], PairResult | None]
    decisions: Decisions
    threshold: float
    lengths: Mapping[str, float] = field(default_factory=dict)
    pairs: PairScope = field(default_factory=PairScope)
    _home: dict[str, list[str]] = field(default_factory=dict, init=False)

    def groups(self, contents: Sequence[str], *, parts: bool) -> list[list[str]]:
        """Partition the contents into groups; contents without a copy form groups of one.

        The strongest pairs are joined first. Two groups are merged if the pairs across them score at least .7 times the
        threshold on average, so that a chain of look-alikes does not become one group.

        Args:
            contents: Hashes.
            parts: Also join excerpts, and videos that share a part, with the video they match best.
        """
        self._home = {content: [content] for content in contents}
        for pair, verdict in sorted(self.decisions.verdicts.items(), key=lambda item: sorted(item[0])):
            first, second = sorted(pair)
            if verdict == "match" and first in self._home and second in self._home:
                self._join(first, second)
        links = sorted(
            (
                (pair, result)
                for pair, result in self.results.items()
                if result.score >= self.threshold and pair[0] in self._home and pair[1] in self._home
            ),
            key=lambda link: (-link[1].score, link[0]),
        )
        for (first, second), result in links:
            if self._relation(first, second, result) == "whole" and self._is_close(first, second):
                self._join(first, second)
        # Join each group that is a part with the group that shows most of it; only once, so that compilations do not
        # merge groups.
        attached: set[str] = set()
        for (first, second), result in links if parts else ():
            part = first if result.covered[0] >= result.covered[1] else second
            is_joined = part in attached or self._home[first] is self._home[second]
            if self._relation(first, second, result) != "whole" and not is_joined:
                attached.update(self._home[part])
                self._join(first, second)
        seen: dict[int, list[str]] = {id(home): home for home in self._home.values()}
        return [sorted(group) for group in seen.values()]

    def _relation(self, first: str, second: str, result: PairResult) -> Relation:
        return relation_of(result, (self.lengths.get(first, 0.0), self.lengths.get(second, 0.0)))

    def _is_close(self, first: str, second: str) -> bool:
        one, other = self._home[first], self._home[second]
        if one is other:
            return False
        # This pair is in scope, others may not be.
        scores = [self.threshold] if self.pairs.scope.is_between else []
        for left in one[:_MAX_COMPARED]:
            for right in other[:_MAX_COMPARED]:
                if not self.pairs.allows(left, right):
                    continue
                result = self.results.get((left, right)) or self.results.get((right, left)) or self.compare(left, right)
                if result is not None:
                    scores.append(result.score)
        return not scores or sum(scores) / len(scores) >= _MEAN_SHARE * self.threshold

    def _join(self, first: str, second: str) -> None:
        one, other = self._home[first], self._home[second]
        if one is other:
            return
        parted = any(self.decisions.verdict(left, right) == "not a match" for left in one for right in other)
        if parted:
            return
        # The members that were joined first come first, because others are compared with them.
        one.extend(other)
        for content in other:
            self._home[content] = one


class GroupIds:
    """Numbers of groups that change while pairs are compared: a group keeps its number while it grows, and gives it up
    when it joins another group."""

    def __init__(self) -> None:
        self._of_member: dict[str, int] = {}
        self._last = 0

    def assign(self, groups: Sequence[frozenset[str]]) -> tuple[list[int], list[int]]:
        """The number of each group, and the numbers no longer in use.

        Args:
            groups: The members of each group; the groups are disjoint.
        """
        before, numbers = set(self._of_member.values()), dict[frozenset[str], int]()
        # The largest part of a group keeps its number.
        for group in sorted(groups, key=len, reverse=True):
            known = {self._of_member[member] for member in group if member in self._of_member}
            if not (known := known - set(numbers.values())):
                self._last += 1
            numbers[group] = min(known, default=self._last)
        self._of_member = {member: number for group, number in numbers.items() for member in group}
        return [numbers[group] for group in groups], sorted(before - set(numbers.values()))
