"""Names, lines and tables fitted to a terminal. Loads Rich: imported only where something is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

# Below this width, one space separates the columns of a table.
NARROW = 70
# A column of file names keeps at least this width.
_MIN_NAME = 8
# Below this width a name is folded once before it is shortened.
_LEGIBLE_NAME = 16
# Wide enough for every table.
_UNLIMITED = 100_000

# A command in a message, which is not broken.
_COMMAND = re.compile(r"`[^`]*`")


class PathText(Text):
    """The name of a file. In a table it is shortened to its column, and in a very narrow one it also takes a second
    line; in a line of text it stays whole."""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = max(map(cell_len, self.plain.split("\n")))
        return Measurement(min(width, _MIN_NAME), width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        if options.max_width >= max(map(cell_len, self.plain.split("\n"))):
            return super().__rich_console__(console, options)
        names = "\n".join(self._fit(line, options.max_width) for line in self.plain.split("\n"))
        return console.render(Text(names, style=self.style, overflow="fold"), options)

    @staticmethod
    def _fit(name: str, width: int) -> str:
        own = name.rpartition("/")[2]
        return shorten(own, 2 * width) if width < _LEGIBLE_NAME and cell_len(own) > width else shorten(name, width)


def shorten(name: str, width: int) -> str:
    """The name in at most ``width`` columns of a terminal: folders are dropped first, then the middle of the file name.

    >>> shorten("holidays/2024/beach.mp4", 16), shorten("holidays/2024/at the beach.mp4", 12)
    ('…/2024/beach.mp4', 'at …each.mp4')
    """
    if cell_len(name) <= width:
        return name
    if width < 2:
        return "…"[:width]
    _, slash, own = name.rpartition("/")
    if slash and cell_len(own) + 2 > width:
        return shorten(own, width)
    head = "" if slash else _take(name, (width - 1) // 3)
    tail = _take(name[::-1], width - 1 - cell_len(head))[::-1]
    # Only whole folders are shown.
    return f"{head}…{tail[tail.index('/') :] if slash else tail}"


def _take(text: str, width: int) -> str:
    """The start of the text that fits this width."""
    end = 0
    while cell_len(text[: end + 1]) <= width:
        end += 1
    return text[:end]


def fit_line(parts: Sequence[str | Text], width: int) -> Text:
    """Join the parts to one text, broken between words where it is wider than the terminal.

    A Text, such as a `PathText`, and a command in backticks stay in one piece, so that they can be copied.

    >>> print(fit_line(["Run `vidkin apply plan.json` to continue."], 20))
    Run
    `vidkin apply plan.json`
    to continue.
    """
    line = Text().join(part if isinstance(part, Text) else Text(part) for part in parts)
    if "\n" in line.plain:
        return line
    whole = [part.plain.replace(" ", "_") if isinstance(part, Text) else part for part in parts]
    shape = _COMMAND.sub(lambda command: command[0].replace(" ", "_"), "".join(whole))
    start, breaks = 0, []
    for word in re.finditer(r"\S+", shape):
        if word.start() > start and cell_len(shape[start : word.end()]) > width:
            start = word.start()
            breaks.append(start)
    lines = line.divide(breaks)
    for each in lines[:-1]:
        each.rstrip()
    return Text("\n").join(lines)


def lay_out(
    title: str | None, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | Text]], console: Console
) -> Table:
    """A table for the width of the console, with lines between the columns if there is room for them.

    Args:
        title: Line above the table; None for none.
        columns: Heading, and ``left`` or ``right``, of each column. Right ones keep their width; text in left ones is
            folded, and a `PathText` is shortened.
        rows: Cells of each row; text in them is not markup.
        console: Where it will be printed.
    """
    grid = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    grid.show_header = any(heading for heading, _ in columns)
    for heading, side in columns:
        grid.add_column(
            heading, justify="right" if side == "right" else "left", no_wrap=side == "right", overflow="fold"
        )
    for row in rows:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    if console.measure(grid, options=console.options.update(width=_UNLIMITED)).maximum > console.width:
        grid.box, grid.pad_edge = None, False
        grid.padding = (0, 1 if console.width < NARROW else 2, 0, 0)
    return grid
