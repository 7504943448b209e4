"""Check arguments and untrusted documents, and convert values to JSON, digests, table cells and descriptions."""

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


def check_at_least(minimum: float, **values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is at least ``minimum``; NaN fails."""
    for name, value in values.items():
        if not value >= minimum:
            raise InvalidArgumentError(f"{name} must be at least {minimum}, got {value}")


def check_not_negative(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is at least 0; NaN fails."""
    check_at_least(0, **values)


def check_positive(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is above 0; NaN fails."""
    for name, value in values.items():
        if not value > 0:
            raise InvalidArgumentError(f"{name} must be above 0, got {value}")


def check_share(**values: float) -> None:
    """Raise :class:`InvalidArgumentError` unless every value is in [0, 1]; NaN fails."""
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise InvalidArgumentError(f"{name} must be in [0, 1], got {value}")


def check_range(low: float, high: float) -> None:
    """Raise :class:`InvalidArgumentError` unless ``low`` is below ``high``."""
    if not low < high:
        raise InvalidArgumentError(f"low must be below high, got {low} and {high}")


# Limits on untrusted text documents. They are checked before parsing, because a parser builds the whole document first:
# 100 KB of TOML took gigabytes. Size, depth, digits and number of entries are counted in the text, in one pass.


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Upper limits on a document.

    Attributes:
        size: Length in bytes or characters.
        depth: Nesting depth of lists and tables.
        digits: Digits per number; Python refuses to format numbers with thousands of digits, even for a message.
        values: Number of values in lists and tables; in TOML, the number of tables, which need the most memory,
            including the tables that dotted names create.
    """

    size: int
    depth: int
    digits: int
    values: int


JSON_LIMITS = TextLimits(size=64_000_000, depth=64, digits=100, values=2_000_000)
"""Enough for plans and labels of 100,000 files; parsing takes less than 600 MB."""

LONG_JSON_LIMITS = TextLimits(size=256_000_000, depth=64, digits=100, values=16_000_000)
"""For tables of numbers that vidkin computed, with a row per frame or pair; the files themselves may be untrusted."""

TOML_LIMITS = TextLimits(size=2_000_000, depth=32, digits=100, values=10_000)
"""Enough for models with 50,000 labels; parsing takes less than 200 MB."""

# Maximum number of parts of a dotted name in TOML; the parser's memory use is quadratic in it.
_MAX_NAME_PARTS = 16

# All quantifiers are possessive, so that matching takes linear time on any text. An unterminated string extends to the
# end of the text, as in the parser, which then rejects it.
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
_DEPTH_CHANGES = {"[": 1, "{": 1, "]": -1, "}": -1}
_HEADER = re.compile(r"^[ \t]*+(\[[^\n]*+)", re.MULTILINE)
_NAME_ENDS = re.compile(r"[=,\n\[\]{}]")


def read_bounded(path: PathLike, limits: TextLimits, *, follow_links: bool = False) -> str:
    """Read a UTF-8 text file; a file that is too large is not read at all.

    Args:
        path: A regular file.
        limits: Only the size is checked.
        follow_links: Whether the file may be a symbolic link; allow this only for files that the user named, see
            :func:`vidkin._base.files.open_regular_file`.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is a link.
        ValueError: The file is too large or not UTF-8.
    """
    content = read_regular_file(path, limits.size, follow_links=follow_links)
    # Normalize line endings, as open() does in text mode.
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def check_json_text(text: str, limits: TextLimits = JSON_LIMITS) -> None:
    """Raise ValueError if a JSON document exceeds a limit; the message names the limit."""
    check_file_size(len(text), limits.size)
    values = text.count(",") + text.count("[") + text.count("{")
    is_deep = text.count("[") + text.count("{") > limits.depth
    # Most documents are small and flat, so strings are removed only if the text as a whole exceeds a limit.
    if not is_deep and values <= limits.values and not _has_long_number(text, limits.digits):
        return
    bare = _JSON_TEXT.sub("", text)
    values = bare.count(",") + bare.count("[") + bare.count("{")
    _check_count("values", values, limits.values)
    _check_depth(bare, limits.depth)
    _check_digits(bare, limits.digits)


def check_toml_text(text: str, limits: TextLimits = TOML_LIMITS) -> None:
    """Raise ValueError if a TOML document exceeds a limit; the message names the limit."""
    check_file_size(len(text), limits.size)
    bare = _TOML_TEXT.sub(lambda found: "" if found[0].startswith("#") else "s", text)
    _check_depth(bare, limits.depth)
    _check_digits(bare, limits.digits)
    parts = 1 + max(piece.count(".") for piece in _NAME_ENDS.split(bare))
    _check_count("parts of a dotted name", parts, _MAX_NAME_PARTS)
    names = [name.rsplit("\n", 1)[-1].rsplit(",", 1)[-1] for name in bare.split("=")]
    headers = _HEADER.findall(bare)
    tables = bare.count("{") + len(headers) + _count_dots(headers) + _count_dots(names[:-1])
    _check_count("tables", tables, limits.values)


def _count_dots(names: Iterable[str]) -> int:
    return sum(name.count(".") for name in names)


def _check_count(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise ValueError(f"{what} must be at most {limit:,}, got {count:,}")


def _check_depth(bare: str, limit: int) -> None:
    if bare.count("[") + bare.count("{") <= limit:
        return
    steps = map(_DEPTH_CHANGES.__getitem__, _BRACKETS.sub("", bare))
    if max(accumulate(steps), default=0) > limit:
        raise ValueError(f"nested too deeply: lists and tables must be nested at most {limit} deep, got more")


def _has_long_number(text: str, digits: int) -> bool:
    # Python parses hexadecimal numbers of any length but cannot format them later.
    return re.search(rf"(?:[0-9]|0x)[0-9A-Fa-f_]{{{digits}}}", text) is not None


def _check_digits(bare: str, digits: int) -> None:
    if _has_long_number(bare, digits):
        raise ValueError(f"a number must have at most {digits} digits, got more")


class Result:
    """Base class of the library's results: dataclasses whose :meth:`to_dict` has the keys of ``--format json``.

    Attributes:
        derived: Names of the properties that :meth:`to_dict` includes.
    """

    __slots__ = ()

    derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return fields and derived properties as plain values for `json.dumps`, as printed by ``--format json``."""
        return {**fields_as_json(self), **{name: as_json(getattr(self, name)) for name in self.derived}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Restore a result from the plain values of :meth:`to_dict`, even if they have passed through JSON.

        Other keys are ignored.

        Raises:
            InvalidArgumentError: A key is missing or has an invalid value; the message names it.
        """
        return read_fields(cls, values)

    @classmethod
    def plain_types(cls) -> Mapping[str, Any]:
        """Return the original type of each plain value, by key."""
        return {**field_types(cls), **{name: property_type(cls, name) for name in cls.derived}}


def as_json(value: object) -> Any:
    """Convert a value for JSON: dataclasses to objects, paths to strings, tensors and arrays to lists, NaN to null.

    Raises:
        TypeError: JSON cannot express the value.
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
    """Convert the fields of a dataclass with :func:`as_json`."""
    return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}


def parse_json(text: str | bytes, limits: TextLimits = JSON_LIMITS) -> Any:
    """Parse a possibly malicious JSON document, raising only ValueError.

    Args:
        text: The document; bytes must be UTF-8.
        limits: Limits to check before parsing.

    Raises:
        ValueError: The document is not JSON or exceeds a limit.
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
    """Read and parse a JSON file, see :func:`parse_json`; a file that is too large is not read at all.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is a link; see :func:`read_bounded`.
        ValueError: The file is not UTF-8 or not JSON, or exceeds a limit.
    """
    return parse_json(read_bounded(path, limits, follow_links=follow_links), limits)


def replace_controls(text: str) -> str:
    """Replace each control character with U+FFFD.

    >>> replace_controls("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join("�" if unicodedata.category(char) == "Cc" else char for char in text)


# Characters that start a formula in a spreadsheet, including fullwidth forms; numbers can start with some of them.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_QUOTED_CONTROLS = frozenset("\t\r\n")
_LINE_BREAKS = re.compile(r"([\t\r\n])")


def table_cell(value: object, *, lines: bool = False) -> str:
    """Format a value as a cell of a CSV or TSV file, without control characters.

    With ``lines``, tabs and line breaks are kept, because file names may contain them and CSV quotes them.

    Text that a spreadsheet would run as a formula, such as a file name ``=cmd|...``, gets a leading apostrophe, which
    marks it as text in spreadsheets. Numbers are unchanged.

    >>> table_cell("=1+1"), table_cell("-1.5"), table_cell("/a=b")
    ("'=1+1", '-1.5', '/a=b')
    """
    text = "" if value is None else str(value)
    mark = "'" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else ""
    if not lines:
        return mark + replace_controls(text)
    parts = _LINE_BREAKS.split(text)
    return mark + "".join(part if part in _QUOTED_CONTROLS else replace_controls(part) for part in parts)


def write_csv_rows(file: IO[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV, formatting values with :func:`table_cell`."""
    csv.writer(file).writerows([table_cell(value, lines=True) for value in row] for row in rows)


def short_digest(values: object) -> str:
    """Return the first twelve hexadecimal digits of the SHA-256 of JSON values, independent of the order of keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


# An entry such as "batch: text" in a docstring section; several names may share a text.
_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")

_SECTIONS = ("Args:", "Attributes:")


def describe_settings(source: Callable[..., Any]) -> dict[str, str]:
    """Read the description of each attribute or argument from the docstring of a class or function as plain text.

    Markup for references and code is removed. The result is empty if Python runs without docstrings (``-OO``).

    Args:
        source: A class or function with a section ``Args:`` or ``Attributes:``.

    >>> describe_settings(describe_settings)
    {'source': 'A class or function with a section `Args:` or `Attributes:`.'}
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
    # Shorten references to the last part of their name.
    plain = {name: re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text) for name, text in texts.items()}
    return {name: text.replace("``", "`") for name, text in plain.items()}
