"""From a name to a scorer: the names that manifests store and extractors declare."""

from __future__ import annotations

from vidkin.errors import InvalidArgumentError
from vidkin.similarity.copies import CopyScorer
from vidkin.similarity.kinds import KindScorer
from vidkin.similarity.scorer import Scorer

__all__ = ["available_scorers", "open_scorer"]


def available_scorers() -> tuple[str, ...]:
    """Names that :func:`open_scorer` takes, sorted."""
    return tuple(sorted(_SCORERS))


def open_scorer(name: str) -> Scorer:
    """The scorer of that name with its default settings.

    Raises:
        InvalidArgumentError: There is no such scorer.
    """
    if name not in _SCORERS:
        raise InvalidArgumentError(f"scorer must be one of {', '.join(available_scorers())}, got {name!r}")
    return _SCORERS[name]()


_SCORERS: dict[str, type[CopyScorer] | type[KindScorer]] = {"copies": CopyScorer, "kinds": KindScorer}
