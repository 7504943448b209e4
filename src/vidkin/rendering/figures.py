"""Figures drawn with matplotlib: checked file names, text that is never markup, whole files or none."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from vidkin._base.outputs import open_output
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import printable

__all__ = ["new_figure", "require_picture_name", "set_text", "short_name", "write_figure"]

PathLike = str | os.PathLike[str]

_LONGEST_NAME = 40


def require_picture_name(path: PathLike) -> None:
    """Raise InvalidArgumentError unless a picture of this name can be written into an existing folder."""
    name = printable(os.fspath(path))
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if Path(path).suffix.lower().lstrip(".") not in formats:
        raise InvalidArgumentError(
            f"{name}: not a picture format; choose a name that ends in .{', .'.join(formats)}"
        )
    folder = Path(path).parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"{printable(os.fspath(folder))}: no such folder; create it first")


def new_figure(width: float, height: float, *, dpi: int = 120) -> Figure:
    """Make an empty figure of this size in inches. It avoids pyplot: no global state, no display, nothing to close."""
    return Figure(figsize=(width, height), dpi=dpi, layout="constrained")


def set_text(text: Any, content: str) -> None:
    """Set the text of a label literally: dollar signs in file names do not start formulas."""
    text.set_parse_math(False)
    text.set_text(content)


def short_name(path: PathLike, *, room: int = _LONGEST_NAME) -> str:
    """Shorten the name of a file to at most ``room`` letters (default 40) by cutting out its middle."""
    name, room = printable(Path(path).name), min(room, _LONGEST_NAME)
    end = room * 3 // 8
    return name if len(name) <= room else f"{name[: room - end - 1]}…{name[-end:]}"


def write_figure(figure: Figure, path: PathLike) -> None:
    """Write a figure; the extension of the file chooses the format.

    Raises:
        InvalidArgumentError: The format needs a program that is not installed (.pgf needs TeX).
        MediaError: The file cannot be written.
    """
    try:
        with open_output(path) as partial, warnings.catch_warnings():
            # The default font lacks some scripts; matplotlib draws boxes for them and warns.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
            figure.savefig(partial)
    except (RuntimeError, ValueError) as error:
        raise InvalidArgumentError(f"{printable(os.fspath(path))}: cannot be written ({error})") from error
