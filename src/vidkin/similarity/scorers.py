"""Open scorers by the names that manifests store and extractors declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError
from vidkin.similarity.copies import CopyScorer
from vidkin.similarity.evidence import ScoreSettings
from vidkin.similarity.kinds import KindScorer
from vidkin.similarity.learned import LEARNED
from vidkin.similarity.scorer import Scorer

__all__ = [
    "DeclaresScorer",
    "available_scorers",
    "finds_segments",
    "open_scorer",
    "scorer_of",
]


class DeclaresScorer(Protocol):
    """An extractor that names the scorer its features are made for; ``open_scorer()`` opens one trained with it."""

    @property
    def scorer(self) -> str:
        """``copies``, ``kinds`` or ``learned``."""
        ...


def available_scorers() -> tuple[str, ...]:
    """Names of all scorers, sorted."""
    return tuple(sorted((*_SCORERS, LEARNED)))


def open_scorer(name: str) -> Scorer:
    """Open the scorer with a name; constants follow a question mark, as in ``copies?change_energy=0.001``.

    Raises:
        InvalidArgumentError: The scorer or constant does not exist, or is part of a trained model (``learned``).
    """
    if name == LEARNED:
        raise InvalidArgumentError(
            "scorer 'learned' is part of a trained comparator; open the comparator's folder as extractor"
        )
    parsed = parse_name(name)
    if parsed.path not in _SCORERS:
        raise InvalidArgumentError(f"scorer must be one of {', '.join(available_scorers())}, got {name!r}")
    if parsed.path == "copies":
        return CopyScorer(ScoreSettings(**parsed.typed_settings(_CONSTANTS)))
    parsed.typed_settings({})
    return _SCORERS[parsed.path]()


def finds_segments(name: str) -> bool:
    """Whether the scorer with a name reports matching segments; ``learned`` does not need its model for this.

    Raises:
        InvalidArgumentError: The scorer or constant does not exist.
    """
    return name == LEARNED or open_scorer(name).has_segments


def scorer_of(extractor: DeclaresScorer) -> Scorer:
    """The scorer that an extractor's features are made for: its own, or the one whose name it declares.

    Raises:
        InvalidArgumentError: The extractor names a scorer that does not exist.
    """
    open_own: Callable[[], Scorer] | None = getattr(extractor, "open_scorer", None)
    return open_own() if open_own is not None else open_scorer(extractor.scorer)


_SCORERS: dict[str, type[CopyScorer] | type[KindScorer]] = {"copies": CopyScorer, "kinds": KindScorer}
# Constants that depend on the extractor.
_CONSTANTS = {"change_energy": float}
