"""Open untrusted files: no network, no other file, no surprises from odd names, every failure a MediaError."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import av.error

from vidkin._base.files import PathLike, describe_missing, open_regular_file
from vidkin.errors import MediaError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

# Formats that make FFmpeg open devices, or files or addresses other than the one named. A few only open files beside
# it (MLV its other parts, VobSub its pictures), which is one file too many as well.
_OPEN_OTHERS = frozenset({
    *("concat", "dash", "hls", "imf", "mlv", "rtp", "rtsp", "sap", "sdp", "vobsub", "webm_dash_manifest"),
    *("alsa", "fbdev", "kmsgrab", "lavfi", "oss", "video4linux2,v4l2", "x11grab", "xcbgrab"),
})  # fmt: skip
# Under this name FFmpeg expects the two other planes of a picture in files of their own.
_SEPARATE_PLANES = ".y"

MOST_PIXELS = 80_000_000
"""Most pixels of a decoded frame; the largest frames of cameras have 79,626,240 (12,288 x 6,480)."""

# Pixels of the frames that decoding threads hold at once: each holds frames of its own.
_MOST_PIXELS_IN_THREADS = 100_000_000

# Errors of a drive, a connection, permissions or memory rather than of the content of a file.
_TEMPORARY = frozenset({
    errno.EACCES, errno.EPERM, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE,
    errno.ENODEV, errno.ENOENT, errno.ENOMEM, errno.ENOTCONN, errno.ENXIO, errno.ESTALE, errno.ETIMEDOUT,
})  # fmt: skip
# Bytes read to distinguish a failing drive from a file that ends early.
_MOST_TRIAL_BYTES = 256 << 20

_HEAD = 4096

# One slash is enough, because a path drops the second one.
_ADDRESS = re.compile(r"(https?|ftp|rtmp|rtsp|s3|gs|file):/", re.IGNORECASE)


@contextmanager
def open_video(path: PathLike, *, threads: int = 0) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a file and choose its video, ready to decode.

    Args:
        path: The file.
        threads: Decoder threads; 0 is one per core. Frames of more than 50 million pixels get one.

    Yields:
        The container and its main video stream. Failures of FFmpeg inside the block become `MediaError`.
    """
    name = os.fspath(path)
    require_readable_file(name)
    try:
        with _open(name) as container:
            streams = list(container.streams.video)
            moving = [s for s in streams if not s.disposition & av.stream.Disposition.attached_pic]
            if not moving:
                if streams:
                    raise MediaError(name, "the file has no video, only sound with a cover picture")
                if container.streams.audio:
                    raise MediaError(name, "the file has no video, only sound")
                raise MediaError(name, "the file has no video")
            best = container.streams.best("video")
            stream = next((s for s in moving if best is not None and s.index == best.index), moving[0])
            # A stream without a decoder has no codec context, which the stubs do not know.
            if getattr(stream, "codec_context", None) is None:
                raise MediaError(name, "there is no decoder for this kind of video")
            context = stream.codec_context
            if context.width * context.height > MOST_PIXELS:
                raise too_large(name)
            context.options = {"max_pixels": str(MOST_PIXELS)}
            stream.thread_type = "AUTO"
            allowed = max(1, _MOST_PIXELS_IN_THREADS // max(1, context.width * context.height))
            context.thread_count = allowed if allowed < (threads or os.cpu_count() or 1) else threads
            yield container, stream
    except av.error.FFmpegError as error:
        raise media_error(name, error) from error


def demux(container: InputContainer, stream: VideoStream) -> Iterator[Packet[VideoStream]]:
    """The packets of a stream.

    PyAV gives up at a packet of a stream that began after the header was read, such as sound that sets in late; it is
    left out here.
    """
    while True:
        try:
            yield from container.demux(stream)
            return
        except IndexError:
            continue


def too_large(name: str) -> MediaError:
    """The error for a file whose frames have more than `MOST_PIXELS`."""
    millions = MOST_PIXELS // 10**6
    return MediaError(name, f"its frames have more than {millions} million pixels, the most that are decoded")


def stated_pixels(name: str) -> int:
    """Pixels of a frame according to the header of the file, 0 if unknown; if decoding fails, nothing else is
    available."""
    with _open(name, codec_whitelist="none") as container:
        contexts = [stream.codec_context for stream in container.streams.video]
        # A stream of a codec that FFmpeg does not know has none.
        return max((context.width * context.height for context in contexts if context), default=0)


def require_readable_file(name: str) -> None:
    """Raise `MediaError` unless this is a readable, nonempty regular file."""
    try:
        state = Path(name).stat()
    except FileNotFoundError:
        if _ADDRESS.match(name):
            raise MediaError(name, "this is an address, not a file; download it first") from None
        raise MediaError(name, describe_missing(name), temporary=True) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        cause = f"the file cannot be reached ({_reason(error)})"
        raise MediaError(name, cause, temporary=_is_temporary(error)) from error
    if stat.S_ISDIR(state.st_mode):
        raise MediaError(name, "this is a folder, not a video file", temporary=True)
    if not stat.S_ISREG(state.st_mode):
        raise MediaError(name, "this is not a regular file", temporary=True)
    if state.st_size == 0:
        raise MediaError(name, "the file is empty (0 bytes)")
    try:
        with open_regular_file(name):
            pass
    except OSError as error:
        cause = f"the file cannot be read ({_reason(error)})"
        raise MediaError(name, cause, temporary=_is_temporary(error)) from error


def media_error(name: str, error: av.error.FFmpegError) -> MediaError:
    """Build the error for a file that FFmpeg refuses."""
    reason = error.strerror or type(error).__name__
    if isinstance(error, av.error.DecoderNotFoundError):
        return MediaError(name, "there is no decoder for this kind of video")
    if isinstance(error, av.error.MemoryError):
        return MediaError(name, "needs more memory than there is", temporary=True)
    if isinstance(error, av.error.PermissionError):
        return MediaError(name, "the file cannot be read (permission denied)", temporary=True)
    if is_refusal(name, error):
        return MediaError(name, f"the file cannot be read ({reason.lower()})", temporary=True)
    try:
        if isinstance(error, av.error.InvalidDataError | av.error.EOFError):
            return MediaError(name, f"{_diagnose(name)} ({reason})")
        if isinstance(error, av.error.ArgumentError):
            # FFmpeg was not allowed to read the file: perhaps a playlist, or one of several parts.
            with open_regular_file(name) as file:
                head = file.read(_HEAD)
            if _is_text(head) or head.startswith(b"MLVI") or name.lower().endswith(_SEPARATE_PLANES):
                return MediaError(name, "this is a list of other files, not a video; name the videos themselves")
    except OSError as problem:
        cause = f"the file cannot be read ({_reason(problem)})"
        return MediaError(name, cause, temporary=_is_temporary(problem))
    return MediaError(name, f"FFmpeg cannot read it ({reason})")


def is_refusal(name: str, error: av.error.FFmpegError) -> bool:
    """Whether the system really fails to read the file; FFmpeg reports the same for a file that ends early."""
    if error.errno not in _TEMPORARY:
        return False
    try:
        with open_regular_file(name) as file:
            while file.tell() < _MOST_TRIAL_BYTES and file.read(1 << 20):
                pass
    except OSError as problem:
        return _is_temporary(problem)
    return False


@contextmanager
def _open(name: str, **more: str) -> Iterator[InputContainer]:
    # The format is detected from the file's content and checked before it is asked to read: a playlist in disguise
    # opens nothing, and fetches nothing. "file:" keeps a name with a colon from being taken for a protocol, and no
    # pattern keeps "%03d" in a name from being taken for a sequence.
    options = {
        "protocol_whitelist": "file",
        "format_whitelist": _formats(with_images=Path(name).suffix.lower() != _SEPARATE_PLANES),
        "pattern_type": "none",
        "max_pixels": str(MOST_PIXELS),
        **more,
    }
    arguments: dict[str, Any] = {"mode": "r", "options": options, "metadata_errors": "replace"}
    try:
        name.encode()
    except UnicodeEncodeError:  # a name that is not UTF-8 can be passed to FFmpeg only as an open file
        with open_regular_file(name) as file, av.open(file, **arguments) as container:
            yield container
    else:
        with av.open(f"file:{name}", **arguments) as container:
            yield container


@cache
def _formats(*, with_images: bool) -> str:
    """Names of the formats that may be read, as passed to FFmpeg."""
    refused = _OPEN_OTHERS if with_images else {*_OPEN_OTHERS, "image2"}
    return ",".join(sorted(av.formats_available - refused))


def _diagnose(name: str) -> str:
    """Why a file is probably not a video, judging by its first bytes."""
    with open_regular_file(name) as file:
        head = file.read(_HEAD)
        if head[4:8] in {b"ftyp", b"mdat", b"wide", b"free"} and not _has_box(file, b"moov"):
            return "its index (moov) is missing: the recording or the download was cut off"
    if _is_text(head):
        return "this is text, not video"
    return "this is not a video, or it is damaged"


def _is_text(head: bytes) -> bool:
    if not head or b"\0" in head:
        return False
    try:
        # The last character can be incomplete.
        head[:-4].decode() if len(head) == _HEAD else head.decode()
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


def _is_temporary(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _TEMPORARY


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
