"""Display results in notebooks as cards with a frame of each result, and as tables for pandas."""

from __future__ import annotations

import html
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, Self, SupportsIndex, TypeVar, overload

from vidkin._base.arguments import check_arguments
from vidkin._base.values import replace_controls
from vidkin.errors import MediaError, MissingPartError

# Limits on size and number of images (2 to 5 kB each), because notebooks store their output.
_THUMBNAIL_SIDE, _QUALITY, _MAX_CARDS = 96, 60, 24


@dataclass(frozen=True, slots=True)
class Card:
    """A frame with a caption.

    Attributes:
        path: The video; empty for a card without a frame.
        time: Time of the frame in seconds; None for a representative frame.
        title: First line.
        facts: Second line.
    """

    path: str
    time: float | None
    title: str
    facts: str = ""


class Showable(Protocol):
    """A result that can be shown as cards and as table rows."""

    def cards(self, path: str = "") -> Sequence[Card]:
        """Return the cards of the result; ``path`` is its video, if the result does not name one."""

    def table_rows(self) -> list[dict[str, Any]]:
        """Return the rows, as plain values by column name."""

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as plain values."""


_Showable = TypeVar("_Showable", bound=Showable)


class Results(list[_Showable]):
    """A list of results that notebooks display with images.

    Attributes:
        path: The video of the results, if they do not name it themselves.
    """

    path: str = ""

    @classmethod
    def of_video(cls, path: str, items: Iterable[_Showable]) -> Self:
        """Create a list of results from one video."""
        results = cls(items)
        results.path = path
        return results

    @overload
    def __getitem__(self, which: SupportsIndex, /) -> _Showable: ...

    @overload
    def __getitem__(self, which: slice, /) -> Self: ...

    def __getitem__(self, which: SupportsIndex | slice, /) -> _Showable | Self:
        if isinstance(which, slice):
            return self._copy_with(super().__getitem__(which))
        return super().__getitem__(which)

    def sorted(self, key: Callable[[_Showable], Any], *, reverse: bool = False) -> Self:
        """Return the results in sorted order, as `Results`; the built-in :func:`sorted` returns a plain list."""
        return self._copy_with(sorted(self, key=key, reverse=reverse))

    def where(self, wanted: Callable[[_Showable], bool]) -> Self:
        """Return the results for which ``wanted`` is true."""
        return self._copy_with(filter(wanted, self))

    def _copy_with(self, items: Iterable[_Showable]) -> Self:
        """Create a list with the same type and video that contains these results."""
        return self.of_video(self.path, items)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row per result or, for groups, one row per file with its group number.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def table_rows(self) -> list[dict[str, Any]]:
        """Return one row of plain values per result or, for groups, one row per file with its group number."""
        rows = []
        for number, item in enumerate(self, start=1):
            own = item.table_rows()
            rows += [{"group": number, **row} for row in own] if len(own) != 1 else own
        return rows

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the ``to_dict()`` of each result, ready for `json.dumps`."""
        return [item.to_dict() for item in self]

    def _repr_html_(self) -> str:
        shown: list[Card] = []
        for item in self:
            shown += item.cards(self.path)
            if len(shown) > _MAX_CARDS:
                break
        return cards_html(shown, f"{len(self):,} result{'' if len(self) == 1 else 's'}")


def data_frame(rows: Sequence[dict[str, Any]]) -> Any:
    """Create a pandas DataFrame from rows.

    Raises:
        MissingPartError: pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise MissingPartError("to_pandas needs pandas; run pip install pandas, or use table_rows()") from error
    return pandas.DataFrame(list(rows))


def cards_html(cards: Sequence[Card], title: str = "") -> str:
    """Render at most 24 cards as HTML, in a wrapping row.

    Frames are read immediately and embedded in the HTML; a video that cannot be read is replaced with text.
    """
    shown = cards[:_MAX_CARDS]
    boxes = "".join(_card_html(card) for card in shown)
    rest = "<p>and more</p>" if len(cards) > len(shown) else ""
    head = f"<p><strong>{html.escape(title)}</strong></p>" if title else ""
    return f'{head}<div style="display:flex;flex-wrap:wrap;gap:10px;align-items:flex-start">{boxes}</div>{rest}'


def shown_name(path: str) -> str:
    """Return the file name of a path for HTML, with unprintable characters replaced."""
    name = os.path.basename(path) or path
    return replace_controls(os.fsencode(name).decode("utf-8", "replace"))


@check_arguments
def picture_html(path: str, time: float | None, *, side: int = _THUMBNAIL_SIDE) -> str:
    """Return an ``img`` element with an embedded frame of a video, or text if the video cannot be read."""
    address = _poster(path, None if time is None else round(time, 2), side, _file_version(path)) if path else ""
    if not address:
        return '<span style="opacity:.7">no image</span>'
    return f'<img src="{address}" alt="" style="display:block;height:{side}px;width:auto;border-radius:4px">'


def _card_html(card: Card) -> str:
    title, facts = html.escape(card.title), html.escape(card.facts)
    return (
        f'<div style="max-width:220px;font-size:12px;overflow-wrap:anywhere">{picture_html(card.path, card.time)}'
        f"<div><b>{title}</b></div><div>{facts}</div></div>"
    )


def _file_version(path: str) -> int:
    """Return a number that changes with the file, so that cached frames of an older version are not shown."""
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


@lru_cache(maxsize=512)
def _poster(path: str, time: float | None, side: int, version: int) -> str:
    """Return a frame as a data URI; empty if the file cannot be read."""
    if not version:
        return ""
    from io import BytesIO

    from PIL import Image

    from vidkin.media.decode import poster, thumbnail
    from vidkin.media.probing import probe

    try:
        if time is None:
            pixels = poster(path, probe(path).duration, short_side=side, threads=1)
        else:
            pixels = thumbnail(path, time, short_side=side, threads=1)
    except MediaError:
        return ""
    file = BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", quality=_QUALITY)
    return f"data:image/webp;base64,{b64encode(file.getvalue()).decode('ascii')}"
