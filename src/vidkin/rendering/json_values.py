"""Results as JSON: what ``--json`` writes to standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vidkin._base.plain_values import as_json

if TYPE_CHECKING:
    from vidkin.index import Match

__all__ = ["matches_as_json", "print_json"]


def print_json(value: object) -> None:
    """Write one JSON document to standard output.

    Only ASCII is written, so that file names that are not valid Unicode survive a pipe: ``json.loads`` returns the
    exact string that opens the file.
    """
    sys.stdout.write(json.dumps(as_json(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n")
    sys.stdout.flush()


def matches_as_json(matches: Sequence[Match], *, first_rank: int = 1) -> list[dict[str, Any]]:
    """Matches as objects: the rank and what :meth:`vidkin.Match.to_dict` gives."""
    return [{"rank": rank, **match.to_dict()} for rank, match in enumerate(matches, start=first_rank)]
