"""Checks of arguments and of documents from strangers, and values as text: JSON, digests, cells, descriptions."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import inspect
import json
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import accumulate
from typing import IO, Any, ClassVar, Self

from vidkin._base.files import PathLike, check_file_size, read_regular_file
from vidkin._base.plain import field_types, property_type, read_fields
from vidkin.errors import InvalidArgumentError


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise :class:`InvalidArgumentError` unless ``value`` is one of ``choices``."""
    choices = tuple(choices)
    if value not in choices:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_at_least(least: float, **values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is ``least`` or more; NaN is not."""
    for name, value in values.items():
        if not value >= least:
            raise InvalidArgumentError(f"{name} must be at least {least}, got {value}")


def check_not_negative(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is 0 or more; NaN is not."""
    check_at_least(0, **values)


def check_positive(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is above 0; NaN is not."""
    for name, value in values.items():
        if not value > 0:
            raise InvalidArgumentError(f"{name} must be above 0, got {value}")


def check_share(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is in [0, 1]; NaN is not."""
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise InvalidArgumentError(f"{name} must be in [0, 1], got {value}")


def check_range(low: float, high: float) -> None:
    """Raise :class:`InvalidArgumentError` unless ``low`` is below ``high``."""
    if not low < high:
        raise InvalidArgumentError(f"low must be below high, got {low} and {high}")


# Limits of text documents from strangers, checked before a parser sees them. A parser builds what a document says
# before anybody can look at it: 100 KB of TOML took gigabytes. Size, depth, digits and number of entries are counted
# here on the bare text, in one pass and without building anything.


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


def read_bounded(path: PathLike, limits: TextLimits, *, follow_links: bool = False) -> str:
    """The UTF-8 text of a file; of one beyond the limit nothing is read.

    Args:
        path: A regular file.
        limits: Its size is checked.
        follow_links: Whether it may be a symbolic link, as one that a person named; see
            :func:`vidkin._base.files.open_regular_file`.

    Raises:
        OSError: The file cannot be read, is not a regular file, or a link.
        ValueError: It is too large or not UTF-8.
    """
    content = read_regular_file(path, limits.size, follow_links=follow_links)
    # As a file that is opened as text gives it.
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def check_json_text(text: str, limits: TextLimits = JSON_LIMITS) -> None:
    """Raise ValueError, which names the limit, if a JSON document exceeds one."""
    check_file_size(len(text), limits.size)
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
    check_file_size(len(text), limits.size)
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


class Result:
    """Base of what the library returns: dataclasses with :meth:`to_dict`, whose keys are those of ``--format json``.

    Attributes:
        derived: Names of the properties that are among the plain values.
    """

    __slots__ = ()

    derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields and a few properties as plain values, ready for `json.dumps`, as ``--format json`` prints them."""
        return {**fields_as_json(self), **{name: as_json(getattr(self, name)) for name in self.derived}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The result of which :meth:`to_dict` gave these plain values, also after a way through JSON.

        Raises:
            InvalidArgumentError: A key is missing or has a value that it cannot have; the message names it. Further
                keys do not matter.
        """
        return read_fields(cls, values)

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """The type of each plain value by its key, before it became plain."""
        return {**field_types(cls), **{name: property_type(cls, name) for name in cls.derived}}


def as_json(value: object) -> Any:
    """Convert a value for JSON: dataclasses become objects, paths strings, tensors and arrays lists, NaN null.

    Raises:
        TypeError: The value cannot be expressed in JSON.
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, Result):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_as_json(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(as_json(item) for item in value)
    # Tensors, arrays and their scalars, without importing their libraries.
    to_list = getattr(value, "tolist", None)
    if to_list is not None:
        return as_json(to_list())
    raise TypeError(f"{type(value).__name__} cannot be expressed in JSON")


def fields_as_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, each converted by :func:`as_json`."""
    return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}


def parse_json(text: str | bytes, limits: TextLimits = JSON_LIMITS) -> Any:
    """Parse a JSON document; whoever wrote it, nothing but a ValueError is raised.

    Args:
        text: The document; bytes are UTF-8.
        limits: Size, depth, digits and number of values, checked before anything is built.

    Raises:
        ValueError: It is not JSON, or exceeds a limit.
    """
    if len(text) > limits.size:
        raise ValueError(f"size must be at most {limits.size:,} bytes, got {len(text):,}")
    document = text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")
    check_json_text(document, limits)
    try:
        return json.loads(document)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: PathLike, limits: TextLimits = JSON_LIMITS, *, follow_links: bool = False) -> Any:
    """Read a JSON file as :func:`parse_json` does, and nothing of it beyond the limit.

    Raises:
        OSError: The file cannot be read, is not a regular file, or a link, see :func:`read_bounded`.
        ValueError: It is not UTF-8 or not JSON, or exceeds a limit.
    """
    return parse_json(read_bounded(path, limits, follow_links=follow_links), limits)


def replace_controls(text: str) -> str:
    """Replace each control character by U+FFFD; everything else stays as it is.

    >>> replace_controls("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join("�" if unicodedata.category(char) == "Cc" else char for char in text)


# What a spreadsheet takes for the begin of a formula, in East Asian forms as well; a number begins so, too.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_IN_QUOTES = frozenset("\t\r\n")
_LINES = re.compile(r"([\t\r\n])")


def table_cell(value: object, *, lines: bool = False) -> str:
    """A value as a cell of CSV or tab-separated values, without control characters.

    With ``lines``, tabs and ends of lines stay, which CSV holds in quotes: names of files may have them.

    A text that a spreadsheet would run as a formula, such as the name of a file ``=cmd|...``, gets an apostrophe in
    front, by which spreadsheets know text. Numbers stay as they are.

    >>> table_cell("=1+1"), table_cell("-1.5"), table_cell("/a=b")
    ("'=1+1", '-1.5', '/a=b')
    """
    text = "" if value is None else str(value)
    mark = "'" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else ""
    if not lines:
        return mark + replace_controls(text)
    return mark + "".join(part if part in _IN_QUOTES else replace_controls(part) for part in _LINES.split(text))


def write_csv_rows(file: IO[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV, each value by :func:`table_cell`."""
    csv.writer(file).writerows([table_cell(value, lines=True) for value in row] for row in rows)


def short_digest(values: object) -> str:
    """Twelve hexadecimal digits of the SHA-256 of JSON values; the order of the keys of objects does not matter."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


# "``batch``: text" of the sections that list names; several names may share a text.
_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")

_SECTIONS = ("Args:", "Attributes:")


def describe_settings(source: Callable[..., Any]) -> dict[str, str]:
    """Description of each attribute or argument that the docstring of a class or function lists, as plain text.

    Markup of references and code is removed. Empty if Python runs without docstrings (``-OO``).

    Args:
        source: A class or a function; names are looked for under ``Args:`` and ``Attributes:``.

    >>> describe_settings(describe_settings)
    {'source': 'A class or a function; names are looked for under `Args:` and `Attributes:`.'}
    """
    texts: dict[str, str] = {}
    names: list[str] = []
    is_listed = False
    for written in (inspect.getdoc(source) or "").splitlines():
        if written and not written.startswith(" "):
            is_listed = written in _SECTIONS
        if not is_listed or not written.startswith(" "):
            continue
        line = written.removeprefix("    ")
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            names = entry[1].split(", ")
            texts |= dict.fromkeys(names, entry[2])
        elif line.startswith(" "):
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    # Of a reference only the last name is shown.
    plain = {name: re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text) for name, text in texts.items()}
    return {name: text.replace("``", "`") for name, text in plain.items()}
