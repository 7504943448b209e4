"""Read ONNX files, and reject networks that refer to other files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vidkin._base.files import PathLike, open_regular_file, read_regular_file
from vidkin.errors import InvalidArgumentError

_MAX_BYTES = (1 << 31) - 1  # the maximum size of a protocol buffer
# The values of a tensor are a single field, so even the largest networks have only some hundred thousand fields.
_MAX_FIELDS = 1_000_000

# Numbers of the fields that lead to tensors, by message type (onnx.proto).
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
# Fields of a tensor: the reference to another file, and the location of the values.
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14


def read_onnx(path: PathLike) -> bytes:
    """Read an ONNX file that contains all of its weights.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
        InvalidArgumentError: The file is not ONNX, or refers to weights in another file. ONNX Runtime would read that
            file at any path, and the digest would not cover it.
    """
    try:
        # Check the first byte before reading the rest: reading two gigabytes of zeros would take seconds.
        with open_regular_file(path, follow_links=True) as file:
            if file.read(1) == b"\0":
                raise ValueError("it starts with a zero byte")
        content = read_regular_file(path, _MAX_BYTES, follow_links=True)
        is_incomplete = _has_external_data(content)
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: not an ONNX file: {error}") from error
    if is_incomplete:
        raise InvalidArgumentError(
            f"{path}: the weights must be in the file itself, but the network has external data; save it as one file "
            "(onnx.save_model without save_as_external_data)"
        )
    return content


def _has_external_data(content: bytes) -> bool:
    """Whether any tensor, at any depth, refers to another file; raise ValueError if the content is not a model."""
    whole = memoryview(content)
    waiting = [("model", 0, len(whole))]
    count = 0
    while waiting:
        kind, start, end = waiting.pop()
        for field, first, last, value in _fields(whole, start, end):
            count += 1
            if count > _MAX_FIELDS:
                raise ValueError(f"it has more than {_MAX_FIELDS:,} fields")
            if kind == "tensor" and (field == _EXTERNAL_DATA or (field == _DATA_LOCATION and value)):
                return True
            if first < last and field in _FIELDS[kind]:
                waiting.append((_FIELDS[kind][field], first, last))
    return False


def _fields(whole: memoryview, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, start, end, value) of each field of a message; start and end of bytes, value of a number.

    Raises:
        ValueError: The message is damaged.
    """
    while position < end:
        key, position = _number(whole, position, end)
        first = last = value = 0
        wire = key & 7
        if key >> 3 == 0:
            raise ValueError("a field has the number 0")
        if wire == 0:
            value, position = _number(whole, position, end)
        elif wire == 2:
            length, first = _number(whole, position, end)
            position = last = first + length
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field has the unknown wire type {wire}")
        if position > end:
            raise ValueError("a field is truncated")
        yield key >> 3, first, last, value


def _number(whole: memoryview, position: int, end: int) -> tuple[int, int]:
    """Decode a varint (seven bits per byte, lowest first); return the value and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            break
        byte = whole[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ValueError("a number is truncated")
