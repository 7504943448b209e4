"""Group copies by the scores of pairs, without chains of weak links and without pairs that the user rejected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vidkin.index.decisions import Decisions
from vidkin.index.duplicates.comparisons import PairResult

__all__ = ["WHOLE", "Grouping", "Relation", "relation_of"]

Relation = str
"""``whole``: both show the same from start to end; ``excerpt``: the first is a part of the second; ``contains``: the
other way round; ``overlaps``: they share a part."""

# A video counts as shown whole if at least this share of its informative frames is: its ends may be cut off.
WHOLE = 0.7
# Two groups are joined if their videos reach this share of the threshold on average.
_MEAN_SHARE = 0.7
# Number of videos of each group that are compared before two groups are joined.
_MOST_COMPARED = 6


def relation_of(result: PairResult) -> Relation:
    """Relation of the first video of a pair to the second."""
    first, second = (share >= WHOLE for share in result.covered)
    if first and second:
        return "whole"
    return "excerpt" if first else "contains" if second else "overlaps"


@dataclass(slots=True)
class Grouping:
    """Groups of contents.

    Attributes:
        results: Pairs of contents -> result of their comparison, the first as the query.
        compare: Result of a pair that is not among ``results``.
        decisions: Pairs that the user confirmed or rejected.
        threshold: Score from which two videos belong together.
    """

    results: Mapping[tuple[str, str], PairResult]
    compare: Callable[[str, str], PairResult]
    decisions: Decisions
    threshold: float
    _home: dict[str, list[str]] = field(default_factory=dict, init=False)

    def groups(self, contents: Sequence[str], *, parts: bool) -> list[list[str]]:
        """Partition the contents into groups; those without a copy are alone.

        The strongest pairs are joined first. Two groups become one if the pairs across them reach .7 of the threshold
        on average, so that a chain of look-alikes does not become one group.

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
            if relation_of(result) == "whole" and self._is_close(first, second):
                self._join(first, second)
        # Join each group that is a part with the one that shows most of it; once, so that compilations join nobody.
        attached: set[str] = set()
        for (first, second), result in links if parts else ():
            part = first if result.covered[0] >= result.covered[1] else second
            is_joined = part in attached or self._home[first] is self._home[second]
            if relation_of(result) != "whole" and not is_joined:
                attached.update(self._home[part])
                self._join(first, second)
        seen: dict[int, list[str]] = {id(home): home for home in self._home.values()}
        return [sorted(group) for group in seen.values()]

    def _is_close(self, first: str, second: str) -> bool:
        one, other = self._home[first], self._home[second]
        if one is other:
            return False
        scores = []
        for left in one[:_MOST_COMPARED]:
            for right in other[:_MOST_COMPARED]:
                result = self.results.get((left, right)) or self.results.get((right, left))
                scores.append((result or self.compare(left, right)).score)
        return sum(scores) / len(scores) >= _MEAN_SHARE * self.threshold

    def _join(self, first: str, second: str) -> None:
        one, other = self._home[first], self._home[second]
        if one is other:
            return
        parted = any(self.decisions.verdict(left, right) == "not a match" for left in one for right in other)
        if parted:
            return
        # The members that were joined first come first: they are the ones that others are compared with.
        one.extend(other)
        for content in other:
            self._home[content] = one
