"""Results as JSON: one schema, which ``--json`` writes to standard output and the HTTP API answers with."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vidkin._base.plain_values import as_json

if TYPE_CHECKING:
    from vidkin.index import Match

__all__ = ["json_text", "match_as_json", "matches_as_json", "print_json"]


def json_text(value: object, *, indent: int | None = None) -> str:
    """One JSON document.

    Only ASCII is written, so that file names that are not valid Unicode survive a pipe: ``json.loads`` returns the
    exact string that opens the file.
    """
    return json.dumps(as_json(value), indent=indent, ensure_ascii=True, allow_nan=False)


def print_json(value: object) -> None:
    """Write one JSON document to standard output."""
    sys.stdout.write(json_text(value, indent=2) + "\n")
    sys.stdout.flush()


def match_as_json(match: Match, rank: int) -> dict[str, Any]:
    """A match as an object: the rank and what :meth:`vidkin.Match.to_dict` gives."""
    return {"rank": rank, **match.to_dict()}


def matches_as_json(matches: Sequence[Match], *, first_rank: int = 1) -> list[dict[str, Any]]:
    """Matches as objects, ranked in their order."""
    return [match_as_json(match, rank) for rank, match in enumerate(matches, start=first_rank)]
