"""Results of splitting: the files and where they come from."""

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
        path: Path of the file.
        start: Start in seconds of the source.
        end: End in seconds of the source: the start of the next part, or the end of the video.
        parts: Which of the requested parts it contains (places in their list). An exact split has one part per piece;
            if pieces can only begin at key frames, parts without a key frame between them share a piece.
        packets: Number of packets of all its streams.
        encoded: Number of frames encoded again; all others are bit-exact copies from the source.
    """

    path: str
    start: float
    end: float
    parts: tuple[int, ...]
    packets: int
    encoded: int = 0


@dataclass(frozen=True, slots=True)
class SplitReport(Result):
    """Result of a split.

    Attributes:
        pieces: The pieces in order of time.
        left_out: Descriptions of the streams that are in no piece (cover pictures, data, streams the format cannot
            hold).
    """

    pieces: tuple[Piece, ...]
    left_out: tuple[str, ...]


def piece_paths(source: str, folder: str | os.PathLike[str], names: Sequence[str], suffix: str) -> list[Path]:
    """Paths of the pieces; the folder is created.

    Args:
        source: The video.
        folder: Where to write.
        names: Names of the pieces, without extension.
        suffix: Extension of the pieces.

    Raises:
        InvalidArgumentError: Two pieces have the same name, or the folder is that of the source and has a file with
            the name of a piece: recordings are often numbered in the same way.
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
