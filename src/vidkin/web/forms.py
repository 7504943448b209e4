"""Read the file in an uploaded form (multipart/form-data) in pieces, as they arrive."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from vidkin.web.problems import RefusedError

# Maximum bytes of a form before its file, and maximum seconds for them to arrive.
_MAX_BEFORE, _SECONDS_BEFORE = 1_000_000, 60.0


async def read_form(content_type: str, body: AsyncIterator[bytes]) -> tuple[str, AsyncIterator[bytes]]:
    """Return the name of the file in a form and its content; other parts are skipped.

    Args:
        content_type: Media type of the body, with the boundary of its parts.
        body: The body, in pieces.

    Raises:
        RefusedError: The body is not a form or has no file; can also be raised while the content is read.
    """
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        raise RefusedError(422, "invalid-request", "the form must have a boundary in its Content-Type")
    try:
        form = _UploadForm(boundary)
    except FormParserError as error:
        raise _unreadable(error) from error
    read = 0
    try:
        async with asyncio.timeout(_SECONDS_BEFORE):
            while form.name is None and read <= _MAX_BEFORE:
                piece = await anext(body, None)
                if piece is None:
                    break
                read += len(piece)
                form.write(piece)
    except TimeoutError as error:
        raise RefusedError(408, "request-timeout", "the file of the form did not arrive in time") from error
    if form.name is None:
        raise RefusedError(422, "invalid-request", "the form must have a file in its part `file`", field="file")
    return form.name, _content(form, body)


async def _content(form: _UploadForm, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    while True:
        while form.pieces:
            yield form.pieces.popleft()
        if form.is_complete:
            return
        piece = await anext(body, None)
        if piece is None:
            raise RefusedError(422, "invalid-request", "the form ended before its file did", field="file")
        form.write(piece)


def _unreadable(error: FormParserError) -> RefusedError:
    return RefusedError(422, "invalid-request", f"the form cannot be read: {error}")


class _UploadForm:
    """An upload form during parsing; the first part with a file counts.

    Attributes:
        name: Name of the file; None until the file begins.
        pieces: Received pieces that have not been consumed.
        is_complete: Whether the whole file has arrived.
    """

    def __init__(self, boundary: bytes) -> None:
        self.name: str | None = None
        self.pieces: deque[bytes] = deque()
        self.is_complete = False
        self._is_file = False
        self._field = self._value = b""
        self._parser = MultipartParser(
            boundary,
            {
                "on_header_field": self._on_field,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header,
                "on_part_data": self._on_data,
                "on_part_end": self._on_end,
            },
        )

    def write(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise _unreadable(error) from error

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header(self) -> None:
        if self._field.lower() == b"content-disposition" and self.name is None:
            options = parse_options_header(self._value)[1]
            if b"filename" in options or options.get(b"name") == b"file":
                self._is_file = True
                self.name = options.get(b"filename", b"").decode("utf-8", "replace") or "file"
        self._field = self._value = b""

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self.pieces.append(data[start:end])

    def _on_end(self) -> None:
        self.is_complete = self.is_complete or self._is_file
        self._is_file = False
