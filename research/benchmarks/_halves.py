"""Shared by the scripts that measure copies of the measurement data: source split, options and JSON output."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from vidkin.media import probe
from vidkin.rendering.machine import describe_machine

# Minimum duration of a source, in seconds.
_SHORTEST = 3.5


def parse_arguments(description: str | None) -> argparse.Namespace:
    """Parse ``--data``, ``--half``, ``--work`` and ``--output``."""
    return resolve_data(data_parser(description))


def data_parser(description: str | None) -> argparse.ArgumentParser:
    """Create the parser, to which a script can add its own options."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("VIDKIN_DATA"),
        help="folder with the measurement data (default: $VIDKIN_DATA)",
    )
    parser.add_argument("--half", choices=("develop", "held-out"), default="held-out", help="sources to use")
    parser.add_argument("--work", type=Path, help="working folder (not deleted afterward)")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    return parser


def resolve_data(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line; exit with an error if no option or variable names the measurement data."""
    given = parser.parse_args()
    if given.data is None:
        parser.error("no measurement data: set VIDKIN_DATA or pass its folder with --data")
    return given


def half_of(data: Path, half: str) -> list[Path]:
    """Select every second source by name, either for development or held out."""
    usable = []
    for path in sorted((*data.glob("videos/*/*"), *data.glob("shots/*"))):
        # These are copies of other videos: even a person could not tell which of them an excerpt is from.
        if any(name in path.name for name in ("chair-1", "chair-2", "pattern-l", "pattern-s", "rabbit320")):
            continue
        try:
            info = probe(path)
        except Exception:  # noqa: BLE001 - some files are not videos
            continue
        if info.duration >= _SHORTEST and not info.still:
            usable.append(path)
    return usable[half == "held-out" :: 2]


def write_results(given: argparse.Namespace, figures: dict[str, Any]) -> None:
    """Print the results, and write them to the file given by ``--output``."""
    print(json.dumps({name: value for name, value in figures.items() if name != "edits"}, indent=1))
    if given.output:
        document = {"machine": describe_machine(), "half": given.half, **figures}
        given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
