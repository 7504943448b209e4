"""Write the JSON schema of all public results, which is part of the package: ``python docs/site/schemas.py``."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import vidkin
from vidkin._base.plain import schema_of_results
from vidkin._base.values import Result, describe_settings

SCHEMA = Path(vidkin.__file__).with_name("results.schema.json")


def public_results() -> tuple[type[Result], ...]:
    """Classes of results that a package lists in its ``__all__``, by name."""
    return tuple(sorted(set(_public_results()), key=lambda kind: kind.__name__))


def _public_results() -> Iterator[type[Result]]:
    for found in walk_packages(vidkin.__path__, "vidkin."):
        room = found.name.split(".")[1]
        if found.ispkg and not room.startswith("_") and room not in ("cli", "web"):
            package = importlib.import_module(found.name)
            for name in getattr(package, "__all__", ()):
                kind = getattr(package, name)
                if isinstance(kind, type) and issubclass(kind, Result):
                    yield kind


def made_schema() -> dict[str, Any]:
    """The schema as it should be."""
    about = {"title": "Results of vidkin", "description": "What to_dict, --format json and the HTTP API give."}
    return about | schema_of_results(public_results(), describe_settings)


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(made_schema(), indent=1) + "\n", encoding="utf-8")
