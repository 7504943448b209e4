"""Results as a notebook shows them: small cards with a picture of the moment, and tables for pandas."""

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

# A notebook keeps what it shows: pictures of 2 to 5 kB, and not one for each of thousands of results.
_SIDE, _QUALITY, _MOST_CARDS = 96, 60, 24


@dataclass(frozen=True, slots=True)
class Card:
    """A picture with words.

    Attributes:
        path: The video that the picture is from; empty for none.
        time: Second of the picture; None for one at which something is to be seen.
        title: First line.
        facts: Second line.
    """

    path: str
    time: float | None
    title: str
    facts: str = ""


class Showable(Protocol):
    """A result that can be shown as cards and as rows of a table."""

    def cards(self, path: str = "") -> Sequence[Card]:
        """Pictures with words; ``path`` is the video that the result is from, if it does not say so itself."""

    def table_rows(self) -> list[dict[str, Any]]:
        """Plain values by name of the column."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""


_Showable = TypeVar("_Showable", bound=Showable)


class Results(list[_Showable]):
    """A list of results that a notebook shows with pictures; otherwise a list like any other.

    Attributes:
        path: The video that the results are from, where they do not say so themselves.
    """

    path: str = ""

    @classmethod
    def of_video(cls, path: str, items: Iterable[_Showable]) -> Self:
        """Results that are all from one video."""
        results = cls(items)
        results.path = path
        return results

    @overload
    def __getitem__(self, which: SupportsIndex, /) -> _Showable: ...

    @overload
    def __getitem__(self, which: slice, /) -> Self: ...

    def __getitem__(self, which: SupportsIndex | slice, /) -> _Showable | Self:
        if isinstance(which, slice):
            return self._alike(super().__getitem__(which))
        return super().__getitem__(which)

    def sorted(self, key: Callable[[_Showable], Any], *, reverse: bool = False) -> Self:
        """The same results in another order, where :func:`sorted` would give a plain list."""
        return self._alike(sorted(self, key=key, reverse=reverse))

    def where(self, wanted: Callable[[_Showable], bool]) -> Self:
        """Those of the results that are wanted."""
        return self._alike(filter(wanted, self))

    def _alike(self, items: Iterable[_Showable]) -> Self:
        """A list of the same kind with some of the results."""
        return self.of_video(self.path, items)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row a result; of groups one row a file, with the number of its group.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a result, as plain values; of groups one row a file, with the number of its group."""
        rows = []
        for number, item in enumerate(self, start=1):
            own = item.table_rows()
            rows += [{"group": number, **row} for row in own] if len(own) != 1 else own
        return rows

    def to_dicts(self) -> list[dict[str, Any]]:
        """What ``to_dict`` of each result gives, ready for `json.dumps`."""
        return [item.to_dict() for item in self]

    def _repr_html_(self) -> str:
        shown: list[Card] = []
        for item in self:
            shown += item.cards(self.path)
            if len(shown) > _MOST_CARDS:
                break
        return cards_html(shown, f"{len(self):,} result{'' if len(self) == 1 else 's'}")


def data_frame(rows: Sequence[dict[str, Any]]) -> Any:
    """A pandas DataFrame of rows.

    Raises:
        MissingPartError: pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise MissingPartError("to_pandas needs pandas; run pip install pandas, or use table_rows()") from error
    return pandas.DataFrame(list(rows))


def cards_html(cards: Sequence[Card], title: str = "") -> str:
    """HTML of cards in a row that wraps; at most 24, the others are counted.

    Pictures are read when this is called and stand in the HTML itself; a video that cannot be read has words instead.
    """
    shown = cards[:_MOST_CARDS]
    boxes = "".join(_card_html(card) for card in shown)
    rest = "<p>and more</p>" if len(cards) > len(shown) else ""
    head = f"<p><strong>{html.escape(title)}</strong></p>" if title else ""
    return f'{head}<div style="display:flex;flex-wrap:wrap;gap:10px;align-items:flex-start">{boxes}</div>{rest}'


def shown_name(path: str) -> str:
    """The last part of a path without what cannot be shown, for HTML."""
    name = os.path.basename(path) or path
    return replace_controls(os.fsencode(name).decode("utf-8", "replace"))


@check_arguments
def picture_html(path: str, time: float | None, *, side: int = _SIDE) -> str:
    """An ``img`` that holds the picture of a video at a time, or words where it cannot be read."""
    address = _poster(path, None if time is None else round(time, 2), side, _version(path)) if path else ""
    if not address:
        return '<span style="opacity:.7">no picture</span>'
    return f'<img src="{address}" alt="" style="display:block;height:{side}px;width:auto;border-radius:4px">'


def _card_html(card: Card) -> str:
    title, facts = html.escape(card.title), html.escape(card.facts)
    return (
        f'<div style="max-width:220px;font-size:12px;overflow-wrap:anywhere">{picture_html(card.path, card.time)}'
        f"<div><b>{title}</b></div><div>{facts}</div></div>"
    )


def _version(path: str) -> int:
    """Changes with the file, so that a picture of an older one is not shown."""
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


@lru_cache(maxsize=512)
def _poster(path: str, time: float | None, side: int, version: int) -> str:
    """The picture as a data URI; empty if the file cannot be read."""
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
