"""Serve the bytes of indexed files, and no others, in the ranges that players request."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vidkin._base.arguments import check_arguments
from vidkin._base.files import open_regular_file, read_at
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index import VideoRecord
from vidkin.web.lanes import Lane
from vidkin.web.problems import RefusedError

_PIECE = 256 * 1024
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")
# No file size has more digits than this; Python also refuses to parse integers with thousands of digits.
_MAX_DIGITS = 18
# Media types for browsers; any other file is sent as plain bytes, which no browser renders as a page.
_TYPES = {
    **dict.fromkeys((".mp4", ".m4v", ".mov", ".qt", ".f4v"), "video/mp4"),
    **dict.fromkeys((".webm",), "video/webm"),
    **dict.fromkeys((".mkv",), "video/x-matroska"),
    **dict.fromkeys((".ogv", ".ogm"), "video/ogg"),
    **dict.fromkeys((".jpg", ".jpeg"), "image/jpeg"),
    **{f".{name}": f"image/{name}" for name in ("gif", "png", "webp", "bmp")},
}


def record_values(record: VideoRecord) -> dict[str, Any]:
    """Return a record as plain values, with times in seconds because not every JSON reader keeps nanoseconds."""
    values = record.to_dict()
    modified_at = values.pop("mtime_ns") / 1e9
    return {**values, "modified_at": modified_at}


def absolute_path(name: str) -> str:
    """Return the absolute path that a person entered; ``~`` is the home folder.

    Raises:
        InvalidArgumentError: The path is not absolute, or cannot be the name of a file.
    """
    path = name
    try:
        path = os.path.expanduser(name.strip())
        is_possible = b"\0" not in os.fsencode(path) and not path.startswith("~")
    except ValueError:
        is_possible = False
    if not is_possible:
        raise InvalidArgumentError(f"{name}: there is no such file or folder")
    if not os.path.isabs(path):
        raise InvalidArgumentError(f"{name}: enter an absolute path, for example {Path.home() / 'Videos'}")
    return path


def media_type(path: str | os.PathLike[str]) -> str:
    """Return the media type of a file by its extension: a video or image type, or ``application/octet-stream``."""
    return _TYPES.get(os.path.splitext(os.fspath(path))[1].lower(), "application/octet-stream")


def open_record(record: VideoRecord) -> BinaryIO:
    """Open the file of a record for reading, but never a file that replaced it through a symbolic link.

    A symbolic link must lead to the indexed file itself, with the same size and time.

    Raises:
        MediaError: The file is gone, is not a regular file, or is a link to a file other than the indexed one.
    """
    try:
        file = open_regular_file(record.path)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "cannot be opened"
        raise MediaError(record.path, cause.lower(), temporary=True) from error
    state = os.fstat(file.fileno())
    same = (state.st_size, state.st_mtime_ns) == (record.size, record.mtime_ns)
    if not same and os.path.realpath(record.path) != os.path.abspath(record.path):
        file.close()
        raise MediaError(record.path, "is a symbolic link to a file other than the indexed one; index it again")
    return file


def stream_file(request: Request, lane: Lane, file: BinaryIO, kind: str) -> Response:
    """Answer with a file, or with the range that the request asks for. Multiple ranges are answered with the whole
    file.

    Args:
        request: Request whose ``Range`` and ``If-Range`` headers are used.
        lane: Reads the pieces.
        file: Open for reading, without a buffer; closed at the end.
        kind: Media type of the answer.
    """
    state = os.fstat(file.fileno())
    size, tag = state.st_size, f'"{state.st_size:x}-{state.st_mtime_ns:x}"'
    headers = {"Accept-Ranges": "bytes", "ETag": tag, "Cache-Control": "private, no-cache"}
    start, end, status = 0, size, 200
    requested = requested_range(request.headers.get("range", ""), size)
    if requested is not None and request.headers.get("if-range", tag) == tag:
        start, end = requested
        if end <= start:
            file.close()
            raise RefusedError(
                416,
                "range-not-satisfiable",
                f"the range must begin before the end of the file, at {size} bytes",
                headers={**headers, "Content-Range": f"bytes */{size}"},
            )
        status, headers["Content-Range"] = 206, f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        file.close()
        return Response(status_code=status, headers=headers, media_type=kind)
    return StreamingResponse(_pieces(lane, file, start, end), status, headers, media_type=kind)


@check_arguments
def requested_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the byte range [first, end) that a ``Range`` header asks for: empty if it lies outside a file of ``size``
    bytes, None for the whole file."""
    requested = _RANGE.fullmatch(header)
    if requested is None or header == "bytes=-":
        return None
    # Truncating digits is safe: a last position beyond the end is cut off anyway, and a first one there gets a 416.
    first, last = (digits.lstrip("0")[: _MAX_DIGITS + 1] or digits[:1] for digits in requested.groups())
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    return (start, end) if start < min(end, size) else (0, 0)


def stream_path(request: Request, lane: Lane, path: Path) -> Response:
    """Answer with a file that the server made, whole or in part."""
    return stream_file(request, lane, open_regular_file(path), media_type(path))


async def _pieces(lane: Lane, file: BinaryIO, start: int, end: int) -> AsyncIterator[bytes]:
    with file:
        while start < end:
            piece = await lane.run(partial(read_at, file.fileno(), min(_PIECE, end - start), start))
            if not piece:
                return  # truncated in the meantime; the player notices the missing bytes
            yield piece
            start += len(piece)
