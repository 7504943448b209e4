"""Read an ONNX file whole: a network is one file, and names no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vidkin._base.files import PathLike, open_regular_file, read_regular_file
from vidkin.errors import InvalidArgumentError

_MOST_BYTES = (1 << 31) - 1  # a protocol buffer is not larger
# The values of a tensor are one field; the largest networks of the field have some hundred thousand.
_MOST_FIELDS = 1_000_000

# Numbers of the fields that lead to tensors, by kind of message (onnx.proto).
_FIELDS: Final[dict[str, dict[int, str]]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
# Of a tensor: entries that name another file, and whether the values are there.
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14


def read_onnx(path: PathLike) -> bytes:
    """The content of an ONNX file whose weights are all in it.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
        InvalidArgumentError: It is not an ONNX file, or its weights are in another file: ONNX Runtime would read
            whatever file it names, and its digest would not cover them.
    """
    try:
        # Two gigabytes of zeros take seconds to read, and are no network by their first byte.
        with open_regular_file(path, follow_links=True) as file:
            if file.read(1) == b"\0":
                raise ValueError("it begins with zeros")
        content = read_regular_file(path, _MOST_BYTES, follow_links=True)
        names_others = _names_other_files(content)
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: not an ONNX file: {error}") from error
    if names_others:
        raise InvalidArgumentError(
            f"{path}: its weights must be in the file itself, got a network with external data; save it as one file "
            "(onnx.save_model without save_as_external_data)"
        )
    return content


def _names_other_files(content: bytes) -> bool:
    """Whether a tensor of a model, however deep, is said to be in another file; ValueError if this is no model."""
    whole = memoryview(content)
    waiting = [("model", 0, len(whole))]
    count = 0
    while waiting:
        kind, start, end = waiting.pop()
        for field, first, last, value in _fields(whole, start, end):
            count += 1
            if count > _MOST_FIELDS:
                raise ValueError(f"it has more than {_MOST_FIELDS:,} fields")
            if kind == "tensor" and (field == _EXTERNAL_DATA or (field == _DATA_LOCATION and value)):
                return True
            if first < last and field in _FIELDS[kind]:
                waiting.append((_FIELDS[kind][field], first, last))
    return False


def _fields(whole: memoryview, place: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, begin and end (of a message, text or bytes) and value (of a number) of each field of a message.

    Raises:
        ValueError: It is damaged.
    """
    while place < end:
        key, place = _number(whole, place, end)
        first = last = value = 0
        wire = key & 7
        if key >> 3 == 0:
            raise ValueError("a field of number 0")
        if wire == 0:
            value, place = _number(whole, place, end)
        elif wire == 2:
            length, first = _number(whole, place, end)
            place = last = first + length
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field of type {wire}")
        if place > end:
            raise ValueError("a field that does not end")
        yield key >> 3, first, last, value


def _number(whole: memoryview, place: int, end: int) -> tuple[int, int]:
    """A whole number of seven bits a byte, the lowest first, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= end:
            break
        byte = whole[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("a number that does not end")
