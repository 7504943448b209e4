"""Tables that fit a terminal: names of files give way first, in their middle; without a terminal nothing is cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

__all__ = ["ROOMY", "PathText", "break_after_names", "break_lines", "lay_out", "shorten"]

# Terminals below this have tables without lines between the columns, and below the second with one space there.
ROOMY, _NARROW = 100, 70
_WORDS = re.compile(r"(?:`[^`]*`|[^\s`]|`)+")
# Columns of text up to this width are never folded.
_WORD = 14
# How much more room a name gets than text that can be folded.
_TIMES_TEXT = 2
# What a name keeps at least, and what it must keep in a table with lines.
_LEAST, _COMFORTABLE = 8, 32


class PathText(Text):
    """The name of a file in a table; where there is no room it is shortened in its middle."""


def shorten(name: str, width: int) -> str:
    """The name in at most ``width`` columns of a terminal: its end, which tells files apart, and some of its start.

    >>> shorten("holidays/2024/beach.mp4", 16)
    'holi…4/beach.mp4'
    """
    if cell_len(name) <= width:
        return name
    if width < 2:
        return "…"[:width]
    head, tail = "", ""
    start = (width - 1) // 3
    for char in name:
        if cell_len(head + char) > start:
            break
        head += char
    for char in reversed(name):
        if cell_len(char + tail) > width - 1 - cell_len(head):
            break
        tail = char + tail
    return f"{head}…{tail}"


def break_lines(message: str, width: int) -> str:
    """The message in lines of at most this many columns, broken between words.

    A word or a command in backticks that is longer stays in one piece, so that it can be copied.

    >>> print(break_lines("Run `vidkin apply plan.json` to go on.", 20))
    Run
    `vidkin apply plan.json`
    to go on.
    """
    if cell_len(message) <= width:
        return message
    lines: list[str] = []
    for word in _WORDS.findall(message):
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def break_after_names(message: Text, width: int) -> Text:
    """A message such as ``a.mp4 and b.mp4: score 1.00`` with what is behind its last colon on a line of its own.

    Only if the terminal would otherwise break inside of it. Names of files stay in one piece, so that they can be
    copied.
    """
    names, colon, rest = message.plain.rpartition(": ")
    begins = cell_len(names + colon) % width
    if not colon or cell_len(rest) > width or begins + cell_len(rest) <= width:
        return message
    first, _, last = message.divide([len(names) + 1, len(names) + 2])
    return Text("\n").join((first, last))


def lay_out(
    title: str | None,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Text]],
    *,
    width: int | None,
) -> Table:
    """A table of this width.

    Args:
        title: Line above the table; None for none.
        columns: Heading, and ``left`` or ``right``, of each column. Right ones, and left ones of short words, keep
            their width; long text is folded, and a column of :class:`PathText` is shortened.
        rows: Cells.
        width: Columns of the terminal; None for no limit.
    """
    count = len(columns)
    naturals = [
        max([cell_len(heading), *(cell_len(line) for row in rows for line in row[column].plain.split("\n"))])
        for column, (heading, _) in enumerate(columns)
    ]
    paths = {column for column in range(count) if any(isinstance(row[column], PathText) for row in rows)}
    widths: list[int | None] = [None] * count
    lines, gap = True, 2
    if width is not None:
        overhead = 3 * count + 1
        needed = sum(
            min(natural, _COMFORTABLE) if column in paths else natural
            for column, natural in enumerate(naturals)
        )
        lines = sum(naturals) + overhead <= width or (width >= ROOMY and needed + overhead <= width)
        gap = 1 if width < _NARROW else 2
        room = width - (overhead if lines else gap * (count - 1))
        widths = list(_share(naturals, paths, [side for _, side in columns], room))
    grid = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        show_header=any(heading for heading, _ in columns),
        **({} if lines else {"box": None, "padding": (0, gap, 0, 0), "pad_edge": False}),  # type: ignore[arg-type]
    )
    for (heading, side), limit in zip(columns, widths, strict=True):
        right = side == "right"
        grid.add_column(
            heading, justify="right" if right else "left", no_wrap=right, overflow="fold", max_width=limit
        )
    for row in rows:
        grid.add_row(*(_fitted(cell, limit) for cell, limit in zip(row, widths, strict=True)))
    return grid


def _share(naturals: Sequence[int], paths: set[int], sides: Sequence[str], room: int) -> list[int]:
    """A width for each column that together are at most ``room``, if the fixed ones leave that much."""
    texts = [
        column
        for column, natural in enumerate(naturals)
        if column not in paths and sides[column] == "left" and natural > _WORD
    ]
    flexible = sorted(paths) + texts
    widths = list(naturals)
    left = room - sum(natural for column, natural in enumerate(naturals) if column not in flexible)
    parts = {column: _TIMES_TEXT if column in paths else 1 for column in flexible}
    # The narrow ones first: what they do not need is there for the others.
    for column in sorted(flexible, key=lambda column: naturals[column] / parts[column]):
        share = left * parts[column] // sum(parts.values())
        widths[column] = min(naturals[column], max(_LEAST, share))
        left -= widths[column]
        del parts[column]
    return widths


def _fitted(cell: Text, width: int | None) -> Text:
    if width is None or not isinstance(cell, PathText):
        return cell
    return Text(
        "\n".join(shorten(line, width) for line in cell.plain.split("\n")), style=cell.style, overflow="fold"
    )
