"""Open untrusted files: no network, no surprises from odd names, every failure a MediaError with its cause."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import av.error

from vidkin._base.extensions import IMAGE_EXTENSIONS
from vidkin.errors import MediaError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.stream import VideoStream

# One slash is enough, because a path loses the second one.
_ADDRESS = re.compile(r"(https?|ftp|rtmp|rtsp|s3|gs|file):/", re.IGNORECASE)


@contextmanager
def open_video(
    path: str | os.PathLike[str], *, threads: int = 0
) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a file and choose its video, ready to decode.

    Args:
        path: The file.
        threads: Decoding threads; 0 is one per core.

    Yields:
        The container and its main video stream. Failures of FFmpeg inside the block leave it as
        `MediaError`.
    """
    name = os.fspath(path)
    require_readable_file(name)
    try:
        with _open(name) as container:
            stream = _main_video(name, container)
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = threads
            yield container, stream
    except av.error.FFmpegError as error:
        raise MediaError(name, explain(name, error)) from error


def require_readable_file(name: str) -> None:
    """Raise `MediaError` unless this is a regular file with bytes in it that we may read."""
    try:
        state = Path(name).stat()
    except FileNotFoundError:
        if _ADDRESS.match(name):
            raise MediaError(name, "this is an address, not a file; download it first") from None
        raise MediaError(name, "there is no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise MediaError(name, f"the file cannot be reached ({_reason(error)})") from error
    if stat.S_ISDIR(state.st_mode):
        raise MediaError(name, "this is a folder, not a video file")
    if not stat.S_ISREG(state.st_mode):
        raise MediaError(name, "this is not a regular file")
    if state.st_size == 0:
        raise MediaError(name, "the file is empty (0 bytes)")
    try:
        with open(name, "rb"):
            pass
    except OSError as error:
        raise MediaError(name, f"the file cannot be read ({_reason(error)})") from error


def explain(name: str, error: av.error.FFmpegError) -> str:
    """One line about what is wrong with a file that FFmpeg refuses."""
    reason = error.strerror or type(error).__name__
    if isinstance(error, av.error.DecoderNotFoundError):
        return "there is no decoder for this kind of video"
    if isinstance(error, av.error.PermissionError):
        return "the file cannot be read (permission denied)"
    if isinstance(error, av.error.InvalidDataError | av.error.EOFError):
        return f"{_diagnose(name)} ({reason})"
    return f"FFmpeg cannot read it ({reason})"


@contextmanager
def _open(name: str) -> Iterator[InputContainer]:
    # Reading files only keeps a playlist in disguise from fetching addresses; "file:" keeps a name with a colon
    # from being taken for a protocol, and no pattern keeps "%03d" in a name from being taken for a sequence.
    options = {"protocol_whitelist": "file,crypto,data"}
    if Path(name).suffix.lower() in IMAGE_EXTENSIONS:
        options["pattern_type"] = "none"
    arguments: dict[str, Any] = {"mode": "r", "options": options, "metadata_errors": "replace"}
    try:
        name.encode()
    except UnicodeEncodeError:  # a name that is not UTF-8 reaches FFmpeg only as an open file
        with open(name, "rb") as file, av.open(file, **arguments) as container:
            yield container
    else:
        with av.open(f"file:{name}", **arguments) as container:
            yield container


def _main_video(name: str, container: InputContainer) -> VideoStream:
    streams = list(container.streams.video)
    moving = [s for s in streams if not s.disposition & av.stream.Disposition.attached_pic]
    if not moving:
        if streams:
            raise MediaError(name, "the file has no video, only sound with a cover picture")
        if container.streams.audio:
            raise MediaError(name, "the file has no video, only sound")
        raise MediaError(name, "the file has no video")
    best = container.streams.best("video")
    chosen = next((s for s in moving if best is not None and s.index == best.index), moving[0])
    # A stream without a decoder has no codec context, which the stubs do not know.
    if getattr(chosen, "codec_context", None) is None:
        raise MediaError(name, "there is no decoder for this kind of video")
    return chosen


def _diagnose(name: str) -> str:
    """Why a file may not be a video, from its first bytes."""
    with open(name, "rb") as file:
        head = file.read(4096)
        if head[4:8] in {b"ftyp", b"mdat", b"wide", b"free"} and not _has_box(file, b"moov"):
            return "its index (moov) is missing: the recording or the download was cut off"
    if head and b"\0" not in head and _is_text(head):
        return "this is text, not video"
    return "this is not a video, or it is damaged"


def _is_text(head: bytes) -> bool:
    try:
        # The last character may be incomplete.
        head[:-4].decode() if len(head) == 4096 else head.decode()
    except UnicodeDecodeError:
        return False
    return all(byte >= 32 or byte in b"\t\n\r\f" for byte in head)


def _has_box(file: Any, kind: bytes) -> bool:
    """Whether an MP4 or QuickTime file has a complete box of this kind at the top level."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    position = 0
    while position + 8 <= size:
        file.seek(position)
        header = file.read(16)
        length = int.from_bytes(header[:4], "big")
        if length == 1:
            length = int.from_bytes(header[8:16], "big")
        elif length == 0:
            length = size - position
        if length < 8:
            return False
        if header[4:8] == kind:
            return bool(position + length <= size)
        position += length
    return False


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
