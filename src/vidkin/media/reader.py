"""Open untrusted files, and decode their frames in order of time, skipping damaged parts.

Nothing accesses the network or other files, unusual file names are safe, and every failure is a :class:`MediaError`.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import av
import av.error
import av.logging

from vidkin._base.arguments import check_constructor
from vidkin._base.files import PathLike, describe_missing, open_regular_file
from vidkin._base.stopping import check_wanted
from vidkin.errors import MediaError
from vidkin.media.convert import is_too_large
from vidkin.media.frames import DEFAULT_TIME_BASE, Ticks
from vidkin.media.inside import open_inside

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

logger = logging.getLogger(__name__)

# Assumed if a file does not state its frame rate.
DEFAULT_RATE = 25.0

# These formats store only decoding times, and FFmpeg derives presentation times that are out of order if there are
# B-frames. Frames are decoded in presentation order, so sorted decoding times are correct except for a delay.
_DECODING_TIMES_ONLY = ("avi",)

# Matroska can store negative times; for some codecs, FFmpeg reports them as missing.
_NEGATIVE_TIMES_FORMAT = "matroska"
# The earliest time is among this many packets, because no codec reorders more.
_MAX_REORDERED = 17
# Number of consecutive packets without times after which no further time is expected.
_MAX_UNTIMED = 10_000

# A larger step back in time (in seconds) means an appended recording rather than jitter; and the formats in which
# concatenated files are one valid file.
MAX_STEP_BACK = 1.0
APPENDABLE = ("mpegts", "mpeg")

# Zeros left by an incomplete download or copy. Encoders of these codecs never write such runs, because compressed data
# looks random, but their decoders silently accept them.
_ZERO_RUN = bytes(64)
SILENT_CODECS = {"vp8", "vp9"}

PacketIdentity = tuple[int | None, int | None, int | None, int]
"""Presentation time, decoding time, file position and size, which together identify a packet."""

BegunPackets = Sequence[tuple["Packet[VideoStream]", "list[VideoFrame]"]]
"""The packets of a file up to its first frame, each with the frames that the decoder returned for it."""

# Formats that make FFmpeg open devices, other files, or URLs. A few only open files in the same folder (MLV its other
# parts, VobSub its images), which is rejected as well.
_REJECTED_FORMATS = frozenset({
    "concat", "dash", "hls", "imf", "mlv", "rtp", "rtsp", "sap", "sdp", "vobsub", "webm_dash_manifest",
    "alsa", "fbdev", "kmsgrab", "lavfi", "oss", "video4linux2,v4l2", "x11grab", "xcbgrab",
})  # fmt: skip
# For this extension, FFmpeg expects the other two planes of an image in separate files.
_SEPARATE_PLANES = ".y"

MAX_PIXELS = 80_000_000
"""Maximum number of pixels in a decoded frame; the largest camera frames have 79,626,240 (12,288 x 6,480)."""

MAX_PIXELS_OPTIONS = {"max_pixels": str(MAX_PIXELS)}
"""Decoder options that reject larger frames."""

# Maximum total number of pixels in all decoded frames of a file: sixty of the largest frames, plus an allowance per
# byte. A completely black film needs a fifth of that per byte, a malicious GIF fifteen times as many.
_MAX_TOTAL_PIXELS, _PIXELS_PER_BYTE = 5_000_000_000, 200_000

# Maximum number of pixels in all decoder threads together; each thread holds its own frames.
_MAX_PIXELS_IN_THREADS = 100_000_000

# Errors caused by a drive, a connection, permissions or memory, not by the content of a file.
_TEMPORARY = frozenset({
    errno.EACCES, errno.EPERM, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE,
    errno.ENODEV, errno.ENOENT, errno.ENOMEM, errno.ENOTCONN, errno.ENXIO, errno.ESTALE, errno.ETIMEDOUT,
})  # fmt: skip
# Number of bytes to read to distinguish a failing drive from a file that ends early.
_MAX_TRIAL_BYTES = 256 << 20

_HEAD_BYTES = 4096

# Match a single slash, because a path drops the second one.
_URL = re.compile(r"(https?|ftp|rtmp|rtsp|s3|gs|file):/", re.IGNORECASE)

# Decoders conceal many errors and report them only in FFmpeg's log. A Python callback cannot read the log: decoders log
# from their own threads, so the callback would wait for the GIL while Python waits for the decoder. FFmpeg's default
# callback needs no lock and writes to standard error. In a worker process, standard error is a file, which is read here
# between packets.
_STDERR = 2
# The log is truncated above this size, so that a malicious file cannot fill the disk with messages.
_MAX_LOG_BYTES = 1 << 18
# Matches, for example, "[h264 @ 0x5581e0] error while decoding MB 3 1".
_LINE = re.compile(rb"^\[[\w,.+ -]+ @ [0-9a-fx]+\] (.+)$", re.MULTILINE)
# Messages that also occur for intact files, when decoding starts or resumes at a key frame after a cut, as in every
# broadcast recording.
_HARMLESS = re.compile(
    b"|".join(
        (
            rb"co located POCs unavailable|mmco: unref short failure|reference picture missing during reorder",
            rb"Missing reference picture|Could not find ref with POC|Error constructing the frame RPS",
            rb"First slice in a frame missing|Warning MVs not available|warning: first frame is no keyframe",
            rb"non-existing [SP]PS|[SP]PS id out of range|sps_id .* out of range|decode_slice_header error|no frame!",
            rb"number of reference frames .* exceeds max|illegal short term buffer state|SEI type .* truncated",
            rb"Application has requested|Could not find codec parameters|Increasing reorder buffer|\s*$",
        )
    )
)

_log_position: int | None = None


MAX_TRACKS = 8
"""Maximum number of audio tracks read from a file; only discs with commentaries and malicious files have more."""


class PacketListener(Protocol):
    """Receives audio packets."""

    def push(self, packet: Packet[Any]) -> None:
        """Receive the next packet of any track."""

    def rewind(self) -> None:
        """Prepare to receive all packets again, because the file is read again from its start."""


@check_constructor
class PictureReader:
    """Reads the frames of a video in order of time, with strictly increasing times.

    Args:
        name: Name of the file, for messages.
        container: The open file.
        stream: The file's video stream.
        begun: Packets that have already been read and decoded, and are not read or decoded again.
        on_read: Callback for each packet that is read.
        on_damage: Callback that receives one line at the end if parts of the file are damaged; None logs a warning.
        sound: Receiver for the audio packets between the video packets; None skips them.

    Attributes:
        on_read: The callback passed as an argument.
        first: Identity of the first packet that was read; None before that.
        base: Time of the first frame in ticks of the stream; None before that frame.
        tick: Seconds per tick.
        nominal: Duration of a frame at the average frame rate, in ticks.
        end: End of the last frame read so far, in ticks.
        failures: Number of packets that were damaged or could not be decoded.
        concealed: Number of frames that were decoded with errors.
        complaints: Number of errors that the decoder only wrote to its log; 0 unless :func:`listen_to_decoders` was
            called.
    """

    def __init__(
        self,
        name: str,
        container: InputContainer,
        stream: VideoStream,
        *,
        begun: BegunPackets = (),
        on_read: Callable[[], None] = lambda: None,
        on_damage: Callable[[str], None] | None = None,
        sound: PacketListener | None = None,
    ) -> None:
        self.name = name
        self.container = container
        self.stream = stream
        self.on_read = on_read
        self._on_damage = on_damage
        self._sound = sound
        self._begun = begun
        # The most recently returned packet from `begun`, with its frames.
        self._decoded: tuple[Packet[VideoStream], list[VideoFrame]] | None = None
        self.tick = float(stream.time_base or DEFAULT_TIME_BASE)
        self.nominal = max(1, round(1 / (frame_rate(stream) * self.tick)))
        self.first: PacketIdentity | None = None
        self.base: int | None = None
        self.failures = 0
        self.concealed = 0
        self.complaints = 0
        self._damaged_at: float | None = None
        self._shift = 0
        self._last: int | None = None
        self.end = 0
        self._is_repeating = False
        self._newest: int | None = None
        self._has_decoding_times = container.format.name in _DECODING_TIMES_ONLY
        self._pixels_left = _MAX_TOTAL_PIXELS + _PIXELS_PER_BYTE * max(container.size, 0)
        self._checks_holes = stream.codec_context.codec.canonical_name in SILENT_CODECS

    @property
    def length(self) -> float:
        """Seconds from the start of the first frame to the end of the last frame read so far."""
        return self.ticks.seconds(self.end)

    @property
    def ticks(self) -> Ticks:
        """Conversion from times of the stream to seconds from its first frame; counted from 0 before that frame."""
        return Ticks(self.tick, self.base or 0)

    def pictures(self) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (time in ticks of the stream, frame) for each frame that can be decoded.

        Raises:
            MediaError: No frame can be decoded.
        """
        yield from self.timed(self._decode_all())
        self.close()

    def close(self) -> None:
        """Report damage, or raise `MediaError` if there were no frames."""
        if self.base is None:
            if is_too_large(self.name, MAX_PIXELS) or read_stated_pixels(self.name) > MAX_PIXELS:
                raise too_large(self.name)
            raise MediaError(self.name, "no frame can be decoded; the file is damaged or incomplete")
        self._read_complaints()
        if self.failures or self.concealed or self.complaints:
            counts = {"packet{} skipped": self.failures, "frame{} with errors": self.concealed}
            if not (self.failures or self.concealed):
                counts["error{} reported by the decoder"] = self.complaints
            parts = [f"{n} {text.format('' if n == 1 else 's')}" for text, n in counts.items() if n]
            where = "" if self._damaged_at is None else f", first at {self._damaged_at:.1f} s"
            damage = f"the file is damaged: {', '.join(parts)}{where}"
            if self._on_damage is None:
                logger.warning("%s: %s", self.name, damage)
            else:
                self._on_damage(damage)

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the packets of the video up to its end, or up to the point where its data can no longer be parsed.

        Raises:
            MediaError: The system cannot read the file.
        """
        try:
            for packet in self._iter_packets():
                self.on_read()
                if packet.is_corrupt:
                    self.count_failure(self.end)
                if packet.size:
                    self.first = self.first or identify(packet)
                    stamp = packet.dts if self._has_decoding_times else packet.pts
                    if self._checks_holes and not packet.is_corrupt and has_hole(memoryview(packet)):
                        self.concealed += 1
                        self._note_damage(self.end if stamp is None else stamp)
                    if stamp is not None and not packet.is_discard and not self._shift:
                        self._note_time(stamp, packet.duration)
                    yield packet
        except av.error.FFmpegError as error:
            if is_refusal(self.name, error):
                raise media_error(self.name, error) from error
            self.count_failure(self.end)
            logger.debug("%s: reading stopped early: %s", self.name, error)

    def feed(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """Return the frames that the decoder returns for a packet; None drains the decoder."""
        if self._decoded is not None and packet is self._decoded[0]:
            return self._decoded[1]
        try:
            check_wanted()
            frames = self.stream.codec_context.decode(packet)
            self._read_complaints()
            self._pixels_left -= sum(frame.width * frame.height for frame in frames)
            if self._pixels_left < 0:
                raise MediaError(self.name, "its frames have far more pixels than a video of this size can have")
            return frames
        except av.error.EOFError:
            return []
        except av.error.MemoryError as error:
            raise media_error(self.name, error) from error
        except av.error.FFmpegError as error:
            if packet is None or not packet.is_corrupt:
                self.count_failure(self.end)
            logger.debug("%s: a packet could not be decoded: %s", self.name, error)
            return []

    def count_failure(self, time: int) -> None:
        """Count a packet that is damaged or cannot be decoded, at this time in ticks of the stream."""
        self.failures += 1
        self._note_damage(time)

    def timed(self, frames: Iterable[VideoFrame]) -> Iterator[tuple[int, VideoFrame]]:
        """Yield each frame with its time, dropping frames that are not later than the previous one."""
        for frame in frames:
            stamp = frame.dts if self._has_decoding_times or frame.pts is None else frame.pts
            # Raw streams have no times (and no better durations), and neither do the last frames of AVI files.
            if self._last is not None:
                usual = self._last + self.nominal
            else:
                usual = self._find_untimed_start() if stamp is None else 0
            time = usual if stamp is None else stamp + self._shift
            if self._last is not None and time <= self._last:
                if self._is_repeating or (self._last - time) * self.tick <= MAX_STEP_BACK:
                    continue
                self._shift += self.end - time
                time = self.end
            self._is_repeating = False
            if self.base is None:
                self.base = time
            if frame.is_corrupt:
                self.concealed += 1
                self._note_damage(time)
            self._last = time
            self._note_time(time, frame.duration if frame.pts is not None else None)
            yield time, frame

    def again(self) -> Iterator[VideoFrame]:
        """Seek to the start and decode everything; `timed` skips the frames that it has already yielded."""
        self._is_repeating = True
        if self._sound is not None:
            self._sound.rewind()
        self.container.seek(min(0, self.base or 0), stream=self.stream)
        yield from self._decode_all()

    def _iter_packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the packets that were already read, then packets from the current position of the container."""
        begun, self._begun = self._begun, ()
        for decoded in begun:
            self._decoded = decoded
            yield decoded[0]
        self._decoded = None
        if self._sound is None:
            yield from demux(self.container, self.stream)
            return
        for packet in demux(self.container, self.stream, *self.container.streams.audio[:MAX_TRACKS]):
            if packet.stream_index == self.stream.index:
                yield packet
            else:
                self.on_read()
                self._sound.push(packet)

    def _find_untimed_start(self) -> int:
        """Return the time of the first frame if the first packets have no times: the first time minus their
        duration."""
        if not self.container.format.name.startswith(_NEGATIVE_TIMES_FORMAT):
            return 0
        untimed, times = 0, list[int]()
        with open_video(self.name, threads=1, stream=self.stream.index) as (container, stream):
            for packet in demux(container, stream):
                if packet.pts is not None:
                    times.append(packet.pts)
                elif packet.size:
                    untimed += 1
                if len(times) == _MAX_REORDERED or untimed == _MAX_UNTIMED:
                    break
        return min(times) - untimed * self.nominal if times else 0

    def _decode_all(self) -> Iterator[VideoFrame]:
        for packet in self.packets():
            yield from self.feed(packet)
        yield from self.feed(None)

    def _read_complaints(self) -> None:
        if complaints := take_complaints():
            self.complaints += complaints
            self._note_damage(self.end)

    def _note_damage(self, time: int) -> None:
        seconds = 0.0 if self.base is None else max(0.0, self.ticks.seconds(time))
        self._damaged_at = seconds if self._damaged_at is None else min(self._damaged_at, seconds)

    def _note_time(self, time: int, duration: int | None) -> None:
        # Use only the latest frame: with B-frames, durations are differences between decoding times.
        if self._newest is None or time > self._newest:
            self._newest = time
            self.end = time + (duration or self.nominal)


def has_hole(content: bytes | memoryview) -> bool:
    """Whether a packet has a long run of zeros before its last nonzero byte; zeros at the end are padding."""
    whole = bytes(content)
    return _ZERO_RUN in whole and _ZERO_RUN in whole.rstrip(b"\0")


def identify(packet: Packet[VideoStream]) -> PacketIdentity:
    """Return a key that identifies a packet within its stream."""
    return packet.pts, packet.dts, packet.pos, packet.size


def frame_rate(stream: VideoStream) -> float:
    """Return the average frame rate of a stream according to its file."""
    for rate in (stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate is not None and 0 < rate <= 1000:
            return float(rate)
    return DEFAULT_RATE


@contextmanager
def open_video(
    path: PathLike, *, threads: int = 0, stream: int | None = None
) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a file and select its video stream, ready to decode.

    Args:
        path: The file.
        threads: Decoder threads; 0 is one per core. Frames of more than 50 million pixels use a single thread.
        stream: Index of the video stream in the file, from 0; None takes the first video, as players do.

    Yields:
        The container and its main video stream. FFmpeg errors inside the block become `MediaError`.

    Raises:
        MediaError: The file cannot be read as video, or this stream is not a video.
    """
    name = os.fspath(path)
    require_readable_file(name)
    try:
        with _open(name) as container:
            streams = list(container.streams.video)
            moving = [s for s in streams if not s.disposition & av.stream.Disposition.attached_pic]
            if not moving:
                if streams:
                    raise MediaError(name, "the file has no video, only sound with a cover image")
                if container.streams.audio:
                    raise MediaError(name, "the file has no video, only sound")
                raise MediaError(name, "the file has no video")
            chosen = _choose_video(moving) if stream is None else next((s for s in moving if s.index == stream), None)
            if chosen is None:
                numbers = ", ".join(str(one.index) for one in moving)
                raise MediaError(name, f"there is no video in stream {stream}; choose from {numbers}")
            # A stream without a decoder has no codec context; the type stubs do not cover this.
            if getattr(chosen, "codec_context", None) is None:
                raise MediaError(name, "there is no decoder for this kind of video")
            context = chosen.codec_context
            if context.width * context.height > MAX_PIXELS:
                raise too_large(name)
            context.options = dict(MAX_PIXELS_OPTIONS)
            chosen.thread_type = "AUTO"
            allowed = max(1, _MAX_PIXELS_IN_THREADS // max(1, context.width * context.height))
            context.thread_count = allowed if allowed < (threads or os.cpu_count() or 1) else threads
            yield container, chosen
    except av.error.FFmpegError as error:
        raise media_error(name, error) from error


def _choose_video(streams: Sequence[VideoStream]) -> VideoStream:
    """Select the video that players show: the first one marked as default, otherwise the first one. Streams without a
    decoder or a size, and stills in addition to a video, come last."""

    def is_usable(stream: VideoStream) -> bool:
        context = getattr(stream, "codec_context", None)
        return context is not None and context.width > 0 and stream.frames != 1

    usable = [stream for stream in streams if is_usable(stream)] or streams
    default = [stream for stream in usable if stream.disposition & av.stream.Disposition.default]
    return (default or usable)[0]


@contextmanager
def open_container(name: str) -> Iterator[InputContainer]:
    """Open a file with any kind of stream. FFmpeg errors inside the block become `MediaError`."""
    require_readable_file(name)
    try:
        with _open(name) as container:
            yield container
    except av.error.FFmpegError as error:
        raise media_error(name, error) from error


def demux(container: InputContainer, *streams: Any) -> Iterator[Packet[Any]]:
    """Yield the packets of these streams.

    PyAV fails on packets of streams that begin after the header was read, such as audio that starts late; these packets
    are skipped.
    """
    while True:
        try:
            yield from container.demux(*streams)
            return
        except IndexError:
            continue


def too_large(name: str) -> MediaError:
    """Build the error for a file whose frames have more than `MAX_PIXELS`."""
    millions = MAX_PIXELS // 10**6
    return MediaError(name, f"its frames must have at most {millions} million pixels")


def read_stated_pixels(name: str) -> int:
    """Read the number of pixels per frame from the header of a file, without decoding; 0 if unknown."""
    with _open(name, codec_whitelist="none") as container:
        contexts = [stream.codec_context for stream in container.streams.video]
        # A stream with an unknown codec has no context.
        return max((context.width * context.height for context in contexts if context), default=0)


def require_readable_file(name: str) -> None:
    """Raise `MediaError` unless this is a readable, nonempty regular file."""
    try:
        state = Path(name).stat()
    except FileNotFoundError:
        if _URL.match(name):
            raise MediaError(name, "this is a URL, not a file; download it first") from None
        raise MediaError(name, describe_missing(name), temporary=True) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        cause = f"the file cannot be reached ({_describe_reason(error)})"
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
        cause = f"the file cannot be read ({_describe_reason(error)})"
        raise MediaError(name, cause, temporary=_is_temporary(error)) from error


def media_error(name: str, error: av.error.FFmpegError) -> MediaError:
    """Build the error for a file that FFmpeg cannot read."""
    reason = error.strerror or type(error).__name__
    if isinstance(error, av.error.DecoderNotFoundError):
        return MediaError(name, "there is no decoder for this kind of video")
    if isinstance(error, av.error.MemoryError):
        return MediaError(name, "not enough memory to read the file", temporary=True)
    if isinstance(error, av.error.PermissionError):
        return MediaError(name, "the file cannot be read (permission denied)", temporary=True)
    if is_refusal(name, error):
        return MediaError(name, f"the file cannot be read ({reason.lower()})", temporary=True)
    try:
        if isinstance(error, av.error.InvalidDataError | av.error.EOFError):
            return MediaError(name, f"{_diagnose(name)} ({reason})")
        if isinstance(error, av.error.ArgumentError):
            # FFmpeg was not allowed to read the file, possibly because it is a playlist or one of several parts.
            with open_regular_file(name) as file:
                head = file.read(_HEAD_BYTES)
            if _is_text(head) or head.startswith(b"MLVI") or name.lower().endswith(_SEPARATE_PLANES):
                return MediaError(name, "this is a list of other files, not a video; name the videos themselves")
    except OSError as problem:
        cause = f"the file cannot be read ({_describe_reason(problem)})"
        return MediaError(name, cause, temporary=_is_temporary(problem))
    return MediaError(name, f"FFmpeg cannot read it ({reason})")


def is_refusal(name: str, error: av.error.FFmpegError) -> bool:
    """Whether the system cannot read the file; FFmpeg reports the same error for a file that ends early."""
    if error.errno not in _TEMPORARY:
        return False
    try:
        with open_regular_file(name) as file:
            while file.tell() < _MAX_TRIAL_BYTES and file.read(1 << 20):
                pass
    except OSError as problem:
        return _is_temporary(problem)
    return False


@contextmanager
def _open(name: str, **more: str) -> Iterator[InputContainer]:
    # The format is detected from the content and checked before it reads anything, so a disguised playlist cannot open
    # or fetch anything. "file:" keeps a name with a colon from being parsed as a protocol, and pattern_type keeps a
    # name with "%03d" from being parsed as an image sequence.
    options = {
        "protocol_whitelist": "file",
        "format_whitelist": _list_formats(with_images=Path(name).suffix.lower() != _SEPARATE_PLANES),
        "pattern_type": "none",
        "max_pixels": str(MAX_PIXELS),
        **more,
    }
    arguments: dict[str, Any] = {"mode": "r", "options": options, "metadata_errors": "replace"}
    with open_inside(name, MAX_PIXELS) as inside:
        if inside is not None:
            with av.open(inside, **arguments) as container:
                yield container
            return
    try:
        name.encode()
    except UnicodeEncodeError:  # if the name is not UTF-8, FFmpeg can read the file only as an open file object
        with open_regular_file(name) as file, av.open(file, **arguments) as container:
            yield container
    else:
        with av.open(f"file:{name}", **arguments) as container:
            yield container


@cache
def _list_formats(*, with_images: bool) -> str:
    """List the formats that may be read, for FFmpeg's format whitelist."""
    refused = _REJECTED_FORMATS if with_images else {*_REJECTED_FORMATS, "image2"}
    return ",".join(sorted(av.formats_available - refused))


def _diagnose(name: str) -> str:
    """Guess from its first bytes why a file cannot be read as video."""
    with open_regular_file(name) as file:
        head = file.read(_HEAD_BYTES)
        if head[4:8] in {b"ftyp", b"mdat", b"wide", b"free"} and not _has_box(file, b"moov"):
            return "its index (moov) is missing: the recording or the download was cut off"
    if _is_text(head):
        return "this is text, not video"
    return "this is not a video, or it is damaged"


def _is_text(head: bytes) -> bool:
    if not head or b"\0" in head:
        return False
    try:
        # The last character may be incomplete.
        head[:-4].decode() if len(head) == _HEAD_BYTES else head.decode()
    except UnicodeDecodeError:
        return False
    return all(byte >= 32 or byte in b"\t\n\r\f" for byte in head)


def _has_box(file: Any, kind: bytes) -> bool:
    """Whether an MP4 or QuickTime file has a complete top-level box of this kind."""
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


def _describe_reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def listen_to_decoders() -> None:
    """Let FFmpeg write its errors to standard error, where `take_complaints` counts them.

    Use this only in a process that decodes one file at a time, because all decoders share one log, and whose standard
    error is an unnamed, readable file.
    """
    global _log_position
    av.logging.restore_default_callback()
    av.logging.set_libav_level(av.logging.ERROR)
    _log_position = os.lseek(_STDERR, 0, os.SEEK_CUR)


def take_complaints() -> int:
    """Return the number of errors logged since the last call; 0 unless :func:`listen_to_decoders` was called.

    This takes a microsecond if there are no errors.
    """
    global _log_position
    if _log_position is None or (end := os.lseek(_STDERR, 0, os.SEEK_CUR)) <= _log_position:
        return 0
    os.lseek(_STDERR, _log_position, os.SEEK_SET)
    content = os.read(_STDERR, min(end - _log_position, _MAX_LOG_BYTES))
    if end > _MAX_LOG_BYTES:
        os.ftruncate(_STDERR, 0)
        end = 0
    os.lseek(_STDERR, end, os.SEEK_SET)
    _log_position = end
    return sum(not is_harmless(line) for line in _LINE.findall(content))


def is_harmless(message: bytes) -> bool:
    """Whether FFmpeg logs this message for intact files as well."""
    return _HARMLESS.match(message) is not None
