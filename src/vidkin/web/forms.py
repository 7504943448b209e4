"""Read the file of an uploaded form (multipart/form-data)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from vidkin.web.problems import RefusedError

# Maximum number of fields besides the file, and maximum bytes of each.
_MAX_FIELDS, _MAX_FIELD = 20, 50_000


async def read_form(content_type: str, body: AsyncGenerator[bytes, None]) -> UploadFile:
    """Return the file of a form, received completely; other fields are skipped.

    Args:
        content_type: Media type of the body, with the boundary of its parts.
        body: The body, in pieces.

    Raises:
        RefusedError: The body is not a form or has no file.
    """
    headers = Headers({"Content-Type": content_type})
    parser = MultiPartParser(headers, body, max_files=1, max_fields=_MAX_FIELDS, max_part_size=_MAX_FIELD)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise RefusedError(422, "invalid-request", f"the form cannot be read: {error.message}") from error
    file = next((value for value in form.values() if isinstance(value, UploadFile)), None)
    if file is None:
        raise RefusedError(422, "invalid-request", "the form must have a file in its part `file`", field="file")
    return file
