"""What scripts about copies take from the command line: recordings, and how copies of them are made."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from vidkin_research.copies.halves import HALVES, SMALL, find_divided_recordings
from vidkin_research.copies.recordings import FULL, QUICK, Recording, find_recordings

SIZES = {"full": FULL, "small": SMALL, "quick": QUICK}


def material_parser(description: str | None, *, work: str) -> argparse.ArgumentParser:
    """A parser with FOLDER or --sources, --half and --work, whose help is ``work``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    material = parser.add_mutually_exclusive_group(required=True)
    material.add_argument("folder", type=Path, nargs="?", help="the collection that is divided in halves")
    material.add_argument("--sources", type=Path, help="any folder of videos that show different things")
    parser.add_argument("--half", choices=[*HALVES, "all"], default="development", help="of FOLDER")
    parser.add_argument("--work", type=Path, required=True, help=work)
    return parser


def open_material(given: argparse.Namespace, *, left_out: Iterable[str] = ()) -> list[Recording]:
    """The recordings that the arguments of :func:`material_parser` name."""
    if given.sources:
        return find_recordings(given.sources, left_out=left_out)
    return find_divided_recordings(given.folder, given.half, left_out=left_out)
