"""Results as JSON: what ``--json`` writes to standard output."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vidkin.index import Match

__all__ = ["as_json", "matches_as_json", "print_json"]


def print_json(value: object) -> None:
    """Write one JSON document to standard output.

    Only ASCII is written, so that file names that are not valid Unicode survive a pipe: ``json.loads`` returns the
    exact string that opens the file.
    """
    sys.stdout.write(json.dumps(as_json(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n")
    sys.stdout.flush()


def as_json(value: object) -> Any:
    """The value as JSON has it: dataclasses become objects, paths strings, tensors and arrays lists, NaN null.

    Raises:
        TypeError: The value has no form in JSON.
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(as_json(item) for item in value)
    # Tensors, arrays and their scalars, without importing their libraries.
    to_list = getattr(value, "tolist", None)
    if to_list is not None:
        return as_json(to_list())
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def matches_as_json(matches: Sequence[Match]) -> list[dict[str, Any]]:
    """Matches as objects with rank (from 1), path, score, mirrored and segments."""
    return [
        {
            "rank": rank,
            "path": match.path,
            "score": match.score,
            "mirrored": match.mirrored,
            "segments": as_json(match.segments),
        }
        for rank, match in enumerate(matches, start=1)
    ]
