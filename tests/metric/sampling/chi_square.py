"""An assertion that sample counts follow given probabilities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping


def assert_follows(drawn: Iterable[Hashable], chances: Mapping[Hashable, float]) -> None:
    """Assert that all outcomes occur and chi-square is within five standard deviations of its mean.

    With df degrees of freedom, chi-square has mean df and variance 2 df. Even for few degrees of freedom, five standard
    deviations are exceeded by chance less than once in a thousand times, and the seeds are fixed.
    """
    counts = Counter(drawn)
    assert set(counts) <= set(chances), sorted(set(counts) - set(chances), key=str)[:5]
    size, total = counts.total(), sum(chances.values())
    expected = {outcome: size * chance / total for outcome, chance in chances.items()}
    assert min(expected.values()) >= 5, "too few draws for a chi square"
    chi_square = sum((counts[outcome] - mean) ** 2 / mean for outcome, mean in expected.items())
    df = len(chances) - 1
    assert chi_square < df + 5 * math.sqrt(2 * df), f"chi square {chi_square:.1f} for {df} degrees"
