"""Command-line options of the copy benchmarks: where the recordings come from, and how they are copied."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from vidkin_research.copies.halves import HALVES, SMALL, find_divided_recordings
from vidkin_research.copies.recordings import FULL, QUICK, Recording, find_recordings

SIZES = {"full": FULL, "small": SMALL, "quick": QUICK}


def material_parser(description: str | None, *, work: str) -> argparse.ArgumentParser:
    """Create a parser with FOLDER or --sources, plus --half and --work; ``work`` is the help text of --work."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    material = parser.add_mutually_exclusive_group(required=True)
    material.add_argument("folder", type=Path, nargs="?", help="collection that is split into two halves")
    material.add_argument("--sources", type=Path, help="folder of unrelated videos")
    parser.add_argument("--half", choices=[*HALVES, "all"], default="development", help="half of FOLDER to use")
    parser.add_argument("--work", type=Path, required=True, help=work)
    return parser


def open_material(given: argparse.Namespace, *, left_out: Iterable[str] = ()) -> list[Recording]:
    """Find the recordings specified by the arguments of :func:`material_parser`."""
    if given.sources:
        return find_recordings(given.sources, left_out=left_out)
    return find_divided_recordings(given.folder, given.half, left_out=left_out)
