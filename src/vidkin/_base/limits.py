"""Limits of text documents from strangers, checked before a parser sees them.

A parser builds what a document says before anybody can look at it: 100 KB of TOML took gigabytes. Size, depth, digits
and number of entries are counted here on the bare text, in one pass and without building anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class TextLimits:
    """What a document may have at most.

    Attributes:
        size: Bytes or characters.
        depth: Lists and tables inside each other.
        digits: Digits of a number; Python itself fails at thousands, in the middle of a message.
        values: Values of lists and tables; in TOML tables alone, which cost most, by the names that lead to them.
    """

    size: int
    depth: int
    digits: int
    values: int


JSON_LIMITS = TextLimits(size=64_000_000, depth=64, digits=100, values=2_000_000)
"""Enough for plans and labels of 100,000 files; parsing takes less than 600 MB."""

LONG_JSON_LIMITS = TextLimits(size=256_000_000, depth=64, digits=100, values=16_000_000)
"""For tables of numbers that vidkin computed, one row a frame or a pair; the same file may still be a stranger's."""

TOML_LIMITS = TextLimits(size=2_000_000, depth=32, digits=100, values=10_000)
"""Enough for models with 50,000 labels; parsing takes less than 200 MB."""

# Parts of one dotted name in TOML: the memory for one of n parts grows with n².
_MOST_PARTS = 16

# Every repetition is possessive: the time is proportional to the text whatever it holds. A text that does not end is
# taken up to its end, as by the parser, which then refuses it.
_JSON_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TOML_TEXT = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\\?\Z)'
    r"|'''(?:[^']++|'(?!''))*+(?:'''|\Z)"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
_BRACKETS = re.compile(r"[^\[\]{}]++")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_HEADER = re.compile(r"^[ \t]*+(\[[^\n]*+)", re.MULTILINE)
_ENDS_OF_NAMES = re.compile(r"[=,\n\[\]{}]")


def read_bounded(path: PathLike, limits: TextLimits) -> str:
    """The UTF-8 text of a file; no more of it is read than the limit.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is too large or not UTF-8.
    """
    with open(path, "rb") as file:
        content = file.read(limits.size + 1)
    _check_size(len(content), limits)
    # As a file that is opened as text gives it.
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def check_json_text(text: str, limits: TextLimits = JSON_LIMITS) -> None:
    """Raise ValueError, which names the limit, if a JSON document exceeds one."""
    _check_size(len(text), limits)
    values = text.count(",") + text.count("[") + text.count("{")
    is_deep = text.count("[") + text.count("{") > limits.depth
    # Most documents are small and flat: the strings are removed only if they may hide something.
    if not is_deep and values <= limits.values and not _long_number(text, limits.digits):
        return
    bare = _JSON_TEXT.sub("", text)
    values = bare.count(",") + bare.count("[") + bare.count("{")
    _check_count("values", values, limits.values)
    _check_depth(bare, limits.depth)
    _check_digits(bare, limits.digits)


def check_toml_text(text: str, limits: TextLimits = TOML_LIMITS) -> None:
    """Raise ValueError, which names the limit, if a TOML document exceeds one."""
    _check_size(len(text), limits)
    bare = _TOML_TEXT.sub(lambda found: "" if found[0].startswith("#") else "s", text)
    _check_depth(bare, limits.depth)
    _check_digits(bare, limits.digits)
    parts = 1 + max(piece.count(".") for piece in _ENDS_OF_NAMES.split(bare))
    _check_count("parts of a dotted name", parts, _MOST_PARTS)
    names = [name.rsplit("\n", 1)[-1].rsplit(",", 1)[-1] for name in bare.split("=")]
    headers = _HEADER.findall(bare)
    tables = bare.count("{") + len(headers) + _dots(headers) + _dots(names[:-1])
    _check_count("tables", tables, limits.values)


def _dots(names: Iterable[str]) -> int:
    return sum(name.count(".") for name in names)


def _check_size(size: int, limits: TextLimits) -> None:
    if size > limits.size:
        raise ValueError(f"size must be at most {limits.size:,} bytes, got more")


def _check_count(what: str, count: int, most: int) -> None:
    if count > most:
        raise ValueError(f"{what} must be at most {most:,}, got {count:,}")


def _check_depth(bare: str, most: int) -> None:
    if bare.count("[") + bare.count("{") <= most:
        return
    steps = map(_STEPS.__getitem__, _BRACKETS.sub("", bare))
    if max(accumulate(steps), default=0) > most:
        raise ValueError(f"nested too deeply: lists and tables must be nested at most {most} deep, got more")


def _long_number(text: str, digits: int) -> bool:
    # Digits of other bases have no limit in Python, and fail when the number is shown.
    return re.search(rf"(?:[0-9]|0x)[0-9A-Fa-f_]{{{digits}}}", text) is not None


def _check_digits(bare: str, digits: int) -> None:
    if _long_number(bare, digits):
        raise ValueError(f"a number must have at most {digits} digits, got more")
