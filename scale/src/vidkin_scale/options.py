"""Command-line options that this package adds to vidkin."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from vidkin.cli.extra_options import ExtraOption


def _declare_ray(command: str) -> Any:
    return Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="HOST:PORT",
            help="Run on a Ray cluster: HOST:PORT, auto or local.",
            show_default=False,
            hidden=True,  # documented in the guide only
        ),
    ]


RAY = ExtraOption(
    sets="cluster",
    declare=_declare_ray,
    text=lambda address: f"ray:{address}" if address else "ray",
    value=re.compile(r"auto|local|[^/]*:\d+|ray://.*"),
)

SHARDS = ExtraOption(
    sets="store",
    # Hidden like --ray, and only added to `vidkin index`.
    declare=lambda command: Annotated[int | None, typer.Option("--shards", min=0, hidden=True)],
    text=lambda count: f"shards:{count}" if count else "disk",
)
