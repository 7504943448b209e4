"""Results of splitting: files, and where they come from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vidkin._base.outputs import create_folder
from vidkin._base.plain_values import Result
from vidkin.errors import InvalidArgumentError

__all__ = ["Piece", "SplitReport", "piece_paths"]


@dataclass(frozen=True, slots=True)
class Piece(Result):
    """One file of a split video.

    Attributes:
        path: The file.
        start: Where it begins, in seconds of the source.
        end: Where it ends, in seconds of the source: the start of the next part, or the end of the video.
        parts: Which of the requested parts are in it (places in their list). Of an exact split always one; where a
            piece can only begin at a key frame, several if there is none between them.
        packets: Packets of all its streams.
        encoded: Frames that were encoded again; all others are those of the source, bit by bit.
    """

    path: str
    start: float
    end: float
    parts: tuple[int, ...]
    packets: int
    encoded: int = 0


@dataclass(frozen=True, slots=True)
class SplitReport(Result):
    """What was written.

    Attributes:
        pieces: In order of time.
        left_out: Streams that are in no piece, in words (cover pictures, data, what the format cannot hold).
    """

    pieces: tuple[Piece, ...]
    left_out: tuple[str, ...]


def piece_paths(source: str, folder: str | os.PathLike[str], names: Sequence[str], suffix: str) -> list[Path]:
    """Where pieces are written; the folder is created.

    Args:
        source: The video.
        folder: Where to write.
        names: Of the pieces, without extension.
        suffix: Their extension.

    Raises:
        InvalidArgumentError: Two pieces have one name, or the folder is that of the source and has a file with the
            name of a piece: recordings are often numbered in the same way.
        MediaError: The folder cannot be created.
    """
    target = create_folder(folder)
    files = [f"{name}{suffix}" for name in names]
    if len({file.casefold() for file in files}) < len(files):
        raise InvalidArgumentError("names of pieces must differ, also without regard to case")
    if target.samefile(Path(source).parent):
        for file in files:
            if os.path.lexists(target / file):
                raise InvalidArgumentError(
                    f"a piece would replace {file!r} next to the video; choose another folder for the pieces"
                )
    return [target / file for file in files]
