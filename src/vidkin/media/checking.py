"""Decode a whole file with strict error detection, and report every error with its time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import av
import av.error
import av.logging

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.values import Result
from vidkin.errors import MediaError
from vidkin.media.frames import DEFAULT_TIME_BASE
from vidkin.media.probing import is_cut_off, probe
from vidkin.media.reader import (
    MAX_PIXELS_OPTIONS,
    MAX_STEP_BACK,
    SILENT_CODECS,
    demux,
    frame_rate,
    has_hole,
    is_harmless,
    is_refusal,
    media_error,
    open_video,
)

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

MAX_ERRORS = 10
"""Maximum number of errors that a check lists; further errors are only counted."""

# Verify checksums and lengths, and fail instead of concealing errors. Deviations from the codec specification
# ("bitstream") are not checked, because some encoders produce them in intact files.
_STRICT = "crccheck+buffer+explode"

# Debug messages about missing or damaged packets in a transport stream.
_LOSS_MESSAGES = ("Continuity check failed", "Packet had TEI flag set")


@dataclass(frozen=True, slots=True)
class DecodingError(Result):
    """An error found in a file.

    Attributes:
        seconds: End of the last frame decoded before the error, in seconds from the first frame; None if it occurred
            while the file was opened, before decoding.
        cause: One-line description.
    """

    seconds: float | None
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck(Result):
    """Result of decoding a whole file.

    Attributes:
        path: The file, as it was passed.
        frames: Number of decoded frames.
        duration: Seconds from the start of the first frame to the end of the last; 0 if there are no frames.
        stated_duration: Duration of the video in seconds according to the header; 0 if not stated.
        error_count: Number of errors.
        errors: The first `MAX_ERRORS` errors.
    """

    path: str
    frames: int
    duration: float
    stated_duration: float
    error_count: int
    errors: tuple[DecodingError, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the file was decoded to the end without an error."""
        return self.error_count == 0


@check_arguments
def check_file(path: PathLike, *, on_read: Callable[[], None] = lambda: None) -> FileCheck:
    """Decode the video and all audio of a file with strict error detection.

    Errors are all errors of FFmpeg's demuxer and decoders, and a video clearly shorter than its header states. A file
    that cannot be read as video has an error. FFmpeg's log is read in the current thread, so no other thread of the
    process may decode at the same time.

    Args:
        path: The file.
        on_read: Callback for each packet that is read.

    Raises:
        MediaError: The file does not exist, or the system cannot read it.
    """
    name = os.fspath(path)
    decoding = _StrictDecoding(name, on_read)
    stated = 0.0
    try:
        info = probe(name)
        stated = info.stated_duration
        # Lost packets in a transport stream are logged only at debug level.
        with _read_log(av.logging.DEBUG if info.container == "mpegts" else av.logging.ERROR) as logged:
            decoding.run(logged)
    except MediaError as error:
        if error.temporary:
            raise
        decoding.add(error.cause)
    if decoding.frames and is_cut_off(stated, decoding.end):
        decoding.add(f"the file is cut off: it has {decoding.end:.1f} s of {stated:.1f} s")
    elif not decoding.frames and not decoding.error_count:
        decoding.add("no frame can be decoded")
    return FileCheck(
        path=name,
        frames=decoding.frames,
        duration=decoding.end,
        stated_duration=stated,
        error_count=decoding.error_count,
        errors=tuple(decoding.errors[:MAX_ERRORS]),
    )


class _StrictDecoding:
    """A single pass over a file that collects errors.

    Attributes:
        frames: Number of decoded frames.
        end: Seconds from the start of the first frame to the end of the last frame read.
        error_count, errors: As in `FileCheck`.
    """

    def __init__(self, name: str, on_read: Callable[[], None]) -> None:
        self.frames = 0
        self.end = 0.0
        self.error_count = 0
        self.errors: list[DecodingError] = []
        self._name = name
        self._on_read = on_read
        self._base: float | None = None
        self._shift = 0.0
        self._messages: set[str] = set()

    def add(self, cause: str) -> None:
        """Record an error at the current time."""
        self.error_count += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(DecodingError(round(self.end, 3), " ".join(cause.split())))

    def run(self, logged: list[tuple[int, str, str]]) -> None:
        """Decode everything; ``logged`` receives FFmpeg's messages."""
        # Use one thread: FFmpeg's log is read by a Python callback, which would deadlock with decoder threads.
        with open_video(self._name, threads=1) as (container, stream):
            tracks = [track for track in container.streams.audio if getattr(track, "codec_context", None) is not None]
            stream.codec_context.options = {**MAX_PIXELS_OPTIONS, "err_detect": _STRICT}
            for track in tracks:
                track.codec_context.options = {"err_detect": _STRICT}
            # Opening decodes the first frames for their properties; most of these errors recur below, with times.
            opening = _take_errors(logged)
            try:
                for packet in self._packets(container, [stream, *tracks], logged):
                    self._decode(packet, stream, logged)
            finally:
                opening_errors = [DecodingError(None, message) for message in opening if message not in self._messages]
                self.error_count += len(opening_errors)
                self.errors = opening_errors[:MAX_ERRORS] + self.errors

    def _packets(
        self, container: InputContainer, streams: list[Any], logged: list[tuple[int, str, str]]
    ) -> Iterator[Packet[Any]]:
        """Yield packets up to the end, or up to the point where the file can no longer be parsed."""
        try:
            for packet in demux(container, *streams):
                self._on_read()
                yield packet
        except av.error.FFmpegError as error:
            if is_refusal(self._name, error):
                raise media_error(self._name, error) from error
            self._add_failure("the file", error, logged)

    def _decode(self, packet: Packet[Any], stream: VideoStream, logged: list[tuple[int, str, str]]) -> None:
        is_video = packet.stream_index == stream.index
        kind = "video" if is_video else "sound"
        if packet.is_corrupt:
            self.add(f"{kind}: a packet is incomplete")
        if is_video and stream.codec_context.codec.canonical_name in SILENT_CODECS and has_hole(memoryview(packet)):
            self.add("video: a packet has a long run of zeros")
        try:
            frames = packet.decode()
        except av.error.EOFError:
            frames = []
        except av.error.FFmpegError as error:
            self._add_failure(kind, error, logged)
            return
        self._add_logged(logged)
        if not is_video:
            return
        for frame in frames:
            self.frames += 1
            if frame.is_corrupt:
                self.add("video: a frame was decoded with errors")
            tick = float(frame.time_base or DEFAULT_TIME_BASE)
            if frame.pts is None:  # raw streams have no times
                self.end += 1 / frame_rate(stream)
                continue
            start = frame.pts * tick + self._shift
            if self._base is not None and self.end - (start - self._base) > MAX_STEP_BACK:
                # An appended recording, whose times start over.
                self._shift += self._base + self.end - start
                start = self._base + self.end
            self._base = start if self._base is None else self._base
            length = frame.duration * tick or 1 / frame_rate(stream)
            self.end = max(self.end, start - self._base + length)

    def _add_failure(self, kind: str, error: av.error.FFmpegError, logged: list[tuple[int, str, str]]) -> None:
        """Record an FFmpeg exception, described by its log messages if there are any."""
        before = self.error_count
        self._add_logged(logged)
        if self.error_count == before:
            self.add(f"{kind}: {error.strerror}")

    def _add_logged(self, logged: list[tuple[int, str, str]]) -> None:
        for message in _take_errors(logged):
            self._messages.add(message)
            self.add(message)


def _take_errors(logged: list[tuple[int, str, str]]) -> list[str]:
    """Return the messages about damage, one line each, and clear the list."""
    found = [
        " ".join(f"{source}: {message}".split())
        for level, source, message in logged
        if (level <= av.logging.ERROR and not is_harmless(message.encode())) or message.startswith(_LOSS_MESSAGES)
    ]
    logged.clear()
    return found


@contextmanager
def _read_log(level: int) -> Iterator[list[tuple[int, str, str]]]:
    """Collect the messages that FFmpeg logs up to this level, as (level, source, text)."""
    before = av.logging.get_level()
    repeated = av.logging.get_skip_repeated()
    av.logging.set_level(level)
    av.logging.set_skip_repeated(False)
    try:
        with av.logging.Capture() as logged:
            yield logged
    finally:
        av.logging.set_level(before)
        av.logging.set_skip_repeated(repeated)
