"""What the scripts about copies of the measurement data share: every second source, options, figures as JSON."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from vidkin.media import probe
from vidkin.rendering.machine import describe_machine

# Seconds of the shortest source.
_SHORTEST = 3.5


def parse_arguments(description: str | None) -> argparse.Namespace:
    """``--data``, ``--half``, ``--work`` and ``--output``."""
    return resolve_data(data_parser(description))


def data_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of these options, for scripts that have more."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("VIDKIN_DATA"), help="the measurement data")
    parser.add_argument("--half", choices=("develop", "held-out"), default="held-out", help="which sources")
    parser.add_argument("--work", type=Path, help="folder for what is made; kept")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    return parser


def resolve_data(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options that were given; an error where nobody says where the measurement data are."""
    given = parser.parse_args()
    if given.data is None:
        parser.error("the measurement data is not there: set VIDKIN_DATA or name its folder with --data")
    return given


def half_of(data: Path, half: str) -> list[Path]:
    """Every second source by name: those to develop with, or those held back."""
    usable = []
    for path in sorted((*data.glob("videos/*/*"), *data.glob("shots/*"))):
        # Copies of others: not even a person could say which of them a piece is from.
        if any(name in path.name for name in ("chair-1", "chair-2", "pattern-l", "pattern-s", "rabbit320")):
            continue
        try:
            info = probe(path)
        except Exception:  # noqa: BLE001 - some of the data are no videos
            continue
        if info.duration >= _SHORTEST and not info.still:
            usable.append(path)
    return usable[half == "held-out" :: 2]


def write_figures(given: argparse.Namespace, figures: dict[str, Any]) -> None:
    """Print the figures, and write them where ``--output`` says."""
    print(json.dumps({name: value for name, value in figures.items() if name != "edits"}, indent=1))
    if given.output:
        document = {"machine": describe_machine(), "half": given.half, **figures}
        given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
