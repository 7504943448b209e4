"""Group copies by their pair scores, without chaining weak links and without joining pairs the user rejected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vidkin.index.duplicates.comparisons import PairResult, Relation, relation_of
from vidkin.index.duplicates.scope import PairScope
from vidkin.index.storage.decisions import Decisions

# Two groups are joined if the mean score of the pairs across them is at least this fraction of the threshold.
_MIN_MEAN_RATIO = 0.7

# Maximum number of videos per group that are compared before two groups are joined.
_MAX_COMPARED = 6


@dataclass(slots=True)
class Grouping:
    """Groups contents by the results of their pairs.

    Attributes:
        results: Results keyed by pair of contents, with the first content as the query.
        compare: Function that returns the result of a pair not in ``results``; None to ignore the pair.
        decisions: Pairs that the user confirmed or rejected.
        threshold: Minimum score of two videos that belong together.
        lengths: Durations in seconds, keyed by content.
        pairs: Which pairs are considered.
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

        The strongest pairs are joined first. Two groups are joined if the mean score across them is at least 0.7 times
        the threshold, so that a chain of look-alikes does not become one group.

        Args:
            contents: Identifiers of the contents.
            parts: Also join excerpts, and videos that share a segment, with the video they match best.
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
        # Join each excerpt's group with the group that shows most of it, but only once, so that compilations do not
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
        # This pair is in scope, but the others may not be.
        scores = [self.threshold] if self.pairs.scope.is_between else []
        for left in one[:_MAX_COMPARED]:
            for right in other[:_MAX_COMPARED]:
                if not self.pairs.allows(left, right):
                    continue
                result = self.results.get((left, right)) or self.results.get((right, left)) or self.compare(left, right)
                if result is not None:
                    scores.append(result.score)
        return not scores or sum(scores) / len(scores) >= _MIN_MEAN_RATIO * self.threshold

    def _join(self, first: str, second: str) -> None:
        one, other = self._home[first], self._home[second]
        if one is other:
            return
        parted = any(self.decisions.verdict(left, right) == "not a match" for left in one for right in other)
        if parted:
            return
        # Members that were joined first come first, because only the first few are compared with other groups.
        one.extend(other)
        for content in other:
            self._home[content] = one


class GroupIds:
    """Assigns stable numbers to groups while pairs are being compared: a group keeps its number while it grows, and
    loses it when it joins another group."""

    def __init__(self) -> None:
        self._of_member: dict[str, int] = {}
        self._last = 0

    def assign(self, groups: Sequence[frozenset[str]]) -> tuple[list[int], list[int]]:
        """Return the number of each group, and the numbers no longer in use.

        Args:
            groups: The members of each group; groups must be disjoint.
        """
        before, numbers = set(self._of_member.values()), dict[frozenset[str], int]()
        # If a group was split, its largest part keeps the number.
        for group in sorted(groups, key=len, reverse=True):
            known = {self._of_member[member] for member in group if member in self._of_member}
            if not (known := known - set(numbers.values())):
                self._last += 1
            numbers[group] = min(known, default=self._last)
        self._of_member = {member: number for group, number in numbers.items() for member in group}
        return [numbers[group] for group in groups], sorted(before - set(numbers.values()))
