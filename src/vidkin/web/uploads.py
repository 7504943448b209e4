"""Uploaded files for searches, limited in size, number and lifetime."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin._base.temporary import TemporaryFolder
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import VideoInfo, probe
from vidkin.rendering.text import file_size, printable
from vidkin.web.guard import Settings
from vidkin.web.lanes import Lane
from vidkin.web.problems import RefusedError

# An upload is aborted after this many seconds without data, or if waiting for it took this long in total plus one
# second per this many bytes: a slow sender would block others.
_PATIENCE, _BYTES_A_SECOND = 30.0, 16_000
# Bytes read at a time from the file of a form.
_PIECE = 1 << 20
# Maximum number of fields besides the file of a form, and maximum bytes of each.
_MAX_FIELDS, _MAX_FIELD = 20, 50_000
# Matches paths in vidkin's temporary folders.
_OWN = re.compile(r"[^\s:'\"]*vidkin-run-[\w./\\-]*[\w/\\-]")


@dataclass(slots=True)
class Upload:
    """An uploaded file.

    Attributes:
        id: Unguessable id used in addresses.
        name: The sender's name for the file, in printable form.
        path: Location of the stored file.
        info: Properties of the file.
        used: Monotonic time of its last use.
    """

    id: str
    name: str
    path: Path
    info: VideoInfo
    used: float = field(default_factory=time.monotonic)


class Uploads:
    """Uploaded files in a temporary folder, which :meth:`close` deletes.

    A new file replaces the least recently used one; files unused for ``upload_seconds`` are deleted. The limit on
    stored files also applies to simultaneous uploads.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._temporary = TemporaryFolder()
        self._folder = self._temporary.path
        self._lock = threading.Lock()
        self._files: dict[str, Upload] = {}
        self._arriving = 0

    async def receive(
        self, name: str, size: int | None, body: AsyncIterator[bytes], lane: Lane, *, content_type: str = ""
    ) -> Upload:
        """Store an uploaded file if it can be read as a video or image.

        Args:
            name: The sender's name for the file; only its extension is used. Empty means its name in the form.
            size: Size announced by the sender, bytes, if any.
            body: Content of the file, or a form with the file, in pieces.
            lane: Lane for writing and probing.
            content_type: Media type of the body.

        Raises:
            RefusedError: The file is too large, or the form has none.
            InvalidArgumentError: The upload is too slow, or there are too many at a time.
            MediaError: The file is neither a video nor an image.
        """
        most = self._settings.upload_bytes
        if size is not None and size > most:
            raise _too_large(most)
        if self._arriving >= self._settings.uploads:
            raise InvalidArgumentError(f"at most {self._settings.uploads} files can be uploaded at once; try again")
        number, shown = secrets.token_urlsafe(12), ""
        path = self._folder / number
        self._arriving += 1
        is_kept = False
        try:
            async with asyncio.timeout(self._settings.upload_seconds):
                pieces = self._limit(body)
                if content_type.lower().startswith("multipart/form-data"):
                    file = await _read_form(content_type, pieces)
                    name, pieces = name or file.filename or "", _pieces(file)
                shown = printable(os.path.basename(name or "file")) or "dropped file"
                ending = os.path.splitext(name)[1].lower()
                path = path.with_suffix(ending if ending in VIDEO_EXTENSIONS | IMAGE_EXTENSIONS else "")
                with path.open("xb") as written:
                    async for piece in pieces:
                        await lane.run(partial(written.write, piece))
            info = await lane.run(partial(probe, path))
            upload = Upload(number, shown, path, info)
            with self._lock:
                self._files[number] = upload
            is_kept = True
        except MediaError as error:  # report the sender's file name, not the internal path
            raise MediaError(shown, error.cause, error.temporary) from error
        except TimeoutError as error:
            raise InvalidArgumentError("the file did not arrive in time; try again") from error
        except ClientDisconnect as error:
            raise InvalidArgumentError("the file did not arrive: the sender disconnected") from error
        finally:
            self._arriving -= 1
            if not is_kept:
                path.unlink(missing_ok=True)
        self.clean()
        return upload

    def get(self, number: str) -> Upload:
        """The upload with an id; counts as a use.

        Raises:
            RefusedError: The file was deleted or never existed.
        """
        with self._lock:
            upload = self._files.get(number)
            if upload is None:
                raise RefusedError(404, "not-found", "this file is no longer on the server; upload it again")
            upload.used = time.monotonic()
            return upload

    def shown(self, text: str) -> str:
        """Make text printable, with the senders' names for uploaded files and without temporary folders."""
        with self._lock:
            files = list(self._files.values())
        for upload in files:
            text = text.replace(str(upload.path), upload.name)
        return printable(_OWN.sub("a temporary file", text))

    def remove(self, number: str) -> None:
        """Delete an upload now; does nothing if it is gone."""
        with self._lock:
            upload = self._files.pop(number, None)
        if upload is not None:
            upload.path.unlink(missing_ok=True)

    def clean(self) -> None:
        """Delete uploads that are unused for too long or beyond the limit."""
        with self._lock:
            oldest = sorted(self._files.values(), key=lambda upload: upload.used)
        too_many = len(oldest) - self._settings.uploads
        limit = time.monotonic() - self._settings.upload_seconds
        for position, upload in enumerate(oldest):
            if position < too_many or upload.used < limit:
                self.remove(upload.id)

    def close(self) -> None:
        """Delete all uploads."""
        self._temporary.close()

    async def _limit(self, body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """The pieces of a body; raises an error if it is too slow or too large."""
        most, read, waited = self._settings.upload_bytes, 0, 0.0
        while True:
            began = time.monotonic()
            async with asyncio.timeout(min(_PATIENCE, _PATIENCE + read / _BYTES_A_SECOND - waited)):
                piece = await anext(body, None)
            waited += time.monotonic() - began
            if piece is None:
                return
            read += len(piece)
            if read > most:
                raise _too_large(most)
            if piece:
                yield piece


async def _read_form(content_type: str, body: AsyncGenerator[bytes, None]) -> UploadFile:
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


async def _pieces(file: UploadFile) -> AsyncGenerator[bytes, None]:
    with file.file:
        while piece := await file.read(_PIECE):
            yield piece


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, "too-large", f"a file must be at most {file_size(most)}; index larger files instead")
