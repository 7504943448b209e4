"""Results as JSON: what ``--json`` writes to standard output, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any

__all__ = ["as_json", "print_json"]


def print_json(value: object) -> None:
    """Write one JSON document to standard output.

    Only ASCII is written, so that names which are not valid Unicode survive the way through a pipe:
    ``json.loads`` gives back the very string that opens the file.
    """
    sys.stdout.write(json.dumps(as_json(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n")
    sys.stdout.flush()


def as_json(value: object) -> Any:
    """Dataclasses become objects, paths strings, tensors and arrays lists, numbers that are not finite null."""
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
    to_list = getattr(
        value, "tolist", None
    )  # tensors, arrays and their scalars, without importing their libraries
    if to_list is not None:
        return as_json(to_list())
    raise TypeError(f"{type(value).__name__} has no form in JSON")
