"""Open untrusted files and decode their pictures in the order of their times, damaged parts skipped.

No network, no other file, no surprises from odd names; every failure is a :class:`MediaError`.
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

# Assumed if a file states no frame rate.
DEFAULT_RATE = 25.0

# These formats hold only decoding times, and the presentation times that FFmpeg derives are out of order with
# B-frames. Pictures come in order of presentation, so sorted decoding times are right except for a delay.
_WITHOUT_PRESENTATION = ("avi",)

# Negative times, which Matroska can hold, are read as missing for some codecs.
_WITH_NEGATIVE_TIMES = "matroska"
# The earliest time is among the times of this many packets: no more of them overtake others.
_OVERTAKERS = 17
# Number of packets without times after which none is expected to have one.
_MOST_UNTIMED = 10_000

# A step back in time by more seconds than this is an appended recording, not jitter; and the formats of which several
# files one after the other are one file.
GLUED = 1.0
APPENDABLE = ("mpegts", "mpeg")

# Zeros where a download or a copy left a hole: no encoder of these codecs writes them, because their data look random,
# and their decoders take them without a word.
_HOLE = bytes(64)
SILENT_CODECS = {"vp8", "vp9"}

PacketIdentity = tuple[int | None, int | None, int | None, int]
"""Times, place and size of a packet."""

BegunPackets = Sequence[tuple["Packet[VideoStream]", "list[VideoFrame]"]]
"""The first packets of a file up to its first picture, each with the pictures that the decoder returned for it."""

# Formats that make FFmpeg open devices, or files or addresses other than the one named. A few only open files beside
# it (MLV its other parts, VobSub its pictures), which is one file too many as well.
_OPEN_OTHERS = frozenset({
    "concat", "dash", "hls", "imf", "mlv", "rtp", "rtsp", "sap", "sdp", "vobsub", "webm_dash_manifest",
    "alsa", "fbdev", "kmsgrab", "lavfi", "oss", "video4linux2,v4l2", "x11grab", "xcbgrab",
})  # fmt: skip
# Under this name FFmpeg expects the two other planes of a picture in files of their own.
_SEPARATE_PLANES = ".y"

MOST_PIXELS = 80_000_000
"""Most pixels of a decoded frame; the largest frames of cameras have 79,626,240 (12,288 x 6,480)."""

MAX_PIXELS_OPTIONS = {"max_pixels": str(MOST_PIXELS)}
"""Options of a decoder that refuses larger frames."""

# Pixels of all decoded frames of one file: sixty of the largest ones, and so many more for each byte of the file. A
# film of nothing but black has a fifth of that for a byte, a crafted GIF fifteen times as many.
_MOST_PIXELS_IN_ALL, _PIXELS_A_BYTE = 5_000_000_000, 200_000

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

# Decoders conceal much of what is wrong and say so only in FFmpeg's log. A callback of Python cannot read it: decoders
# write from threads of their own, the callback waits for Python's lock, and Python waits for the decoder. FFmpeg's own
# callback needs no lock: it writes to the standard error stream. In a worker process that stream is a file, which is
# read here between two packets.
_STDERR = 2
# Beyond this size the file is emptied: what a hostile file makes a decoder say must not fill the disk.
_MOST_BYTES = 1 << 18
# "[h264 @ 0x5581e0] error while decoding MB 3 1".
_LINE = re.compile(rb"^\[[\w,.+ -]+ @ [0-9a-fx]+\] (.+)$", re.MULTILINE)
# Said of whole files, too, where decoding begins or goes on at a key frame: after a cut, as in every recording of a
# broadcast.
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

_seen: int | None = None


MOST_TRACKS = 8
"""Most sound tracks of one file that are read; files with more are discs with commentaries, or hostile."""


class PacketListener(Protocol):
    """Receives packets of sound."""

    def push(self, packet: Packet[Any]) -> None:
        """Take the next packet, of any track."""

    def rewind(self) -> None:
        """The file is read again from its start: what was taken comes once more."""


class PictureReader:
    """Reads the pictures of one video with strictly increasing times.

    Args:
        name: Name of the file, for messages.
        container: The open file.
        stream: The file's video stream.
        begun: What was read and decoded of the file already; nothing is read or decoded twice.
        on_read: Callback for every packet read.
        on_damage: Callback that receives one line at the end if parts of the file were damaged; None logs a warning.
        sound: Receives the packets of sound that lie between those of the video; None leaves them out.

    Attributes:
        on_read: The callback passed.
        first: Identifies the first packet read; None before that.
        base: Time of the first picture in units of the stream (known after the first one).
        tick: Seconds per unit.
        nominal: Units that a picture stays on screen at the average rate.
        end: Time at which the last picture read so far leaves the screen, in units.
        failures: Number of packets that were damaged or could not be decoded.
        concealed: Number of pictures that were decoded with errors.
        complaints: Number of errors that the decoder only wrote to its log; 0 where nobody reads it
            (:mod:`vidkin.media.reader`).
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
        # The packet of those that is read next, with its pictures.
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
        self._repeating = False
        self._newest: int | None = None
        self._times_of_decoding = container.format.name in _WITHOUT_PRESENTATION
        self._pixels_left = _MOST_PIXELS_IN_ALL + _PIXELS_A_BYTE * max(container.size, 0)
        self._decodes_holes = stream.codec_context.codec.canonical_name in SILENT_CODECS

    @property
    def length(self) -> float:
        """Seconds from the first picture until the last one read so far leaves the screen."""
        return self.ticks.seconds(self.end)

    @property
    def ticks(self) -> Ticks:
        """The times of the stream in seconds from its first picture; from 0 before there is one."""
        return Ticks(self.tick, self.base or 0)

    def pictures(self) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (time in units of the stream, picture) for every picture that can be decoded.

        Raises:
            MediaError: No picture can be decoded.
        """
        yield from self.timed(self._decode_all())
        self.close()

    def close(self) -> None:
        """Report damage, or raise `MediaError` if there was no picture."""
        if self.base is None:
            if is_too_large(self.name, MOST_PIXELS) or stated_pixels(self.name) > MOST_PIXELS:
                raise too_large(self.name)
            raise MediaError(self.name, "no frame can be decoded; the file is damaged or incomplete")
        self._listen()
        if self.failures or self.concealed or self.complaints:
            counts = {"packet{} skipped": self.failures, "frame{} with errors": self.concealed}
            if not (self.failures or self.concealed):
                counts["error{} reported by the decoder"] = self.complaints
            said = [f"{n} {what.format('' if n == 1 else 's')}" for what, n in counts.items() if n]
            where = "" if self._damaged_at is None else f", first at {self._damaged_at:.1f} s"
            damage = f"the file is damaged: {', '.join(said)}{where}"
            if self._on_damage is None:
                logger.warning("%s: %s", self.name, damage)
            else:
                self._on_damage(damage)

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """The packets of the video up to the end, or to the point where its data can no longer be parsed.

        Raises:
            MediaError: The system fails to read the file.
        """
        try:
            for packet in self._coming():
                self.on_read()
                if packet.is_corrupt:
                    self.count_failure(self.end)
                if packet.size:
                    self.first = self.first or identify(packet)
                    stamp = packet.dts if self._times_of_decoding else packet.pts
                    if self._decodes_holes and not packet.is_corrupt and has_hole(memoryview(packet)):
                        self.concealed += 1
                        self._note_damage(self.end if stamp is None else stamp)
                    if stamp is not None and not packet.is_discard and not self._shift:
                        self._note(stamp, packet.duration)
                    yield packet
        except av.error.FFmpegError as error:
            if is_refusal(self.name, error):
                raise media_error(self.name, error) from error
            self.count_failure(self.end)
            logger.debug("%s: reading stopped early: %s", self.name, error)

    def feed(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """The pictures the decoder returns for one packet; None drains it."""
        if self._decoded is not None and packet is self._decoded[0]:
            return self._decoded[1]
        try:
            check_wanted()
            frames = self.stream.codec_context.decode(packet)
            self._listen()
            self._pixels_left -= sum(frame.width * frame.height for frame in frames)
            if self._pixels_left < 0:
                raise MediaError(
                    self.name, "its frames have far more pixels in all than a video of its size; they are not decoded"
                )
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
        """Count a packet that is damaged or cannot be decoded, at this time in units of the stream."""
        self.failures += 1
        self._note_damage(time)

    def timed(self, frames: Iterable[VideoFrame]) -> Iterator[tuple[int, VideoFrame]]:
        """Every picture with its time; those that are not after the one before are dropped."""
        for frame in frames:
            stamp = frame.dts if self._times_of_decoding or frame.pts is None else frame.pts
            # Raw streams have no times (and no better durations), nor do the last pictures of AVI.
            if self._last is not None:
                usual = self._last + self.nominal
            else:
                usual = self._untimed_start() if stamp is None else 0
            time = usual if stamp is None else stamp + self._shift
            if self._last is not None and time <= self._last:
                if self._repeating or (self._last - time) * self.tick <= GLUED:
                    continue
                self._shift += self.end - time
                time = self.end
            self._repeating = False
            if self.base is None:
                self.base = time
            if frame.is_corrupt:
                self.concealed += 1
                self._note_damage(time)
            self._last = time
            self._note(time, frame.duration if frame.pts is not None else None)
            yield time, frame

    def again(self) -> Iterator[VideoFrame]:
        """Go back and decode everything; `timed` skips the pictures it has seen already."""
        self._repeating = True
        if self._sound is not None:
            self._sound.rewind()
        self.container.seek(min(0, self.base or 0), stream=self.stream)
        yield from self._decode_all()

    def _coming(self) -> Iterator[Packet[VideoStream]]:
        """The packets from where the container stands, after those that were read already."""
        begun, self._begun = self._begun, ()
        for decoded in begun:
            self._decoded = decoded
            yield decoded[0]
        self._decoded = None
        if self._sound is None:
            yield from demux(self.container, self.stream)
            return
        for packet in demux(self.container, self.stream, *self.container.streams.audio[:MOST_TRACKS]):
            if packet.stream_index == self.stream.index:
                yield packet
            else:
                self.on_read()
                self._sound.push(packet)

    def _untimed_start(self) -> int:
        """Time of the first picture if the first packets have none: the first time minus the duration of those
        packets."""
        if not self.container.format.name.startswith(_WITH_NEGATIVE_TIMES):
            return 0
        untimed, times = 0, list[int]()
        with open_video(self.name, threads=1, stream=self.stream.index) as (container, stream):
            for packet in demux(container, stream):
                if packet.pts is not None:
                    times.append(packet.pts)
                elif packet.size:
                    untimed += 1
                if len(times) == _OVERTAKERS or untimed == _MOST_UNTIMED:
                    break
        return min(times) - untimed * self.nominal if times else 0

    def _decode_all(self) -> Iterator[VideoFrame]:
        for packet in self.packets():
            yield from self.feed(packet)
        yield from self.feed(None)

    def _listen(self) -> None:
        if complaints := take_complaints():
            self.complaints += complaints
            self._note_damage(self.end)

    def _note_damage(self, time: int) -> None:
        seconds = 0.0 if self.base is None else max(0.0, self.ticks.seconds(time))
        self._damaged_at = seconds if self._damaged_at is None else min(self._damaged_at, seconds)

    def _note(self, time: int, duration: int | None) -> None:
        # Only the latest counts: with B-frames, durations are differences of decoding times.
        if self._newest is None or time > self._newest:
            self._newest = time
            self.end = time + (duration or self.nominal)


def has_hole(content: bytes | memoryview) -> bool:
    """Whether a packet has a long run of zeros before its last byte that is none; those at its end are padding."""
    whole = bytes(content)
    return _HOLE in whole and _HOLE in whole.rstrip(b"\0")


def identify(packet: Packet[VideoStream]) -> PacketIdentity:
    """A key that identifies a packet within its stream."""
    return packet.pts, packet.dts, packet.pos, packet.size


def frame_rate(stream: VideoStream) -> float:
    """Average frames per second of a stream, as stated by its file."""
    for rate in (stream.average_rate, stream.guessed_rate, stream.base_rate):
        if rate is not None and 0 < rate <= 1000:
            return float(rate)
    return DEFAULT_RATE


@contextmanager
def open_video(
    path: PathLike, *, threads: int = 0, stream: int | None = None
) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a file and choose its video, ready to decode.

    Args:
        path: The file.
        threads: Decoder threads; 0 is one per core. Frames of more than 50 million pixels get one.
        stream: Number of the video's stream in the file, from 0; None takes the first video, as players do.

    Yields:
        The container and its main video stream. Failures of FFmpeg inside the block become `MediaError`.

    Raises:
        MediaError: The file cannot be read as video, or has none under this number.
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
            chosen = _first_video(moving) if stream is None else next((s for s in moving if s.index == stream), None)
            if chosen is None:
                numbers = ", ".join(str(one.index) for one in moving)
                raise MediaError(name, f"there is no video in stream {stream}; choose from {numbers}")
            # A stream without a decoder has no codec context, which the stubs do not know.
            if getattr(chosen, "codec_context", None) is None:
                raise MediaError(name, "there is no decoder for this kind of video")
            context = chosen.codec_context
            if context.width * context.height > MOST_PIXELS:
                raise too_large(name)
            context.options = dict(MAX_PIXELS_OPTIONS)
            chosen.thread_type = "AUTO"
            allowed = max(1, _MOST_PIXELS_IN_THREADS // max(1, context.width * context.height))
            context.thread_count = allowed if allowed < (threads or os.cpu_count() or 1) else threads
            yield container, chosen
    except av.error.FFmpegError as error:
        raise media_error(name, error) from error


def _first_video(streams: Sequence[VideoStream]) -> VideoStream:
    """The video that players show: the first one among those marked as default, or else the first one. Streams without
    a decoder or a picture, and stills next to a video, come last."""

    def is_usable(stream: VideoStream) -> bool:
        context = getattr(stream, "codec_context", None)
        return context is not None and context.width > 0 and stream.frames != 1

    usable = [stream for stream in streams if is_usable(stream)] or streams
    default = [stream for stream in usable if stream.disposition & av.stream.Disposition.default]
    return (default or usable)[0]


@contextmanager
def open_container(name: str) -> Iterator[InputContainer]:
    """Open a file, whatever it holds. Failures of FFmpeg inside the block become `MediaError`."""
    require_readable_file(name)
    try:
        with _open(name) as container:
            yield container
    except av.error.FFmpegError as error:
        raise media_error(name, error) from error


def demux(container: InputContainer, *streams: Any) -> Iterator[Packet[Any]]:
    """The packets of these streams.

    PyAV gives up at a packet of a stream that began after the header was read, such as sound that sets in late; it is
    left out here.
    """
    while True:
        try:
            yield from container.demux(*streams)
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
    with open_inside(name, MOST_PIXELS) as inside:
        if inside is not None:
            with av.open(inside, **arguments) as container:
                yield container
            return
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


def listen_to_decoders() -> None:
    """Let FFmpeg write its errors, and `take_complaints` count them.

    Only for a process that decodes one file at a time and whose standard error stream is a file that can be read,
    without a name: the log of all decoders of a process is one.
    """
    global _seen
    av.logging.restore_default_callback()
    av.logging.set_libav_level(av.logging.ERROR)
    _seen = os.lseek(_STDERR, 0, os.SEEK_CUR)


def take_complaints() -> int:
    """Number of complaints about damage since the last call; 0 without :func:`listen_to_decoders`.

    It takes a microsecond if there are none.
    """
    global _seen
    if _seen is None or (end := os.lseek(_STDERR, 0, os.SEEK_CUR)) <= _seen:
        return 0
    os.lseek(_STDERR, _seen, os.SEEK_SET)
    content = os.read(_STDERR, min(end - _seen, _MOST_BYTES))
    if end > _MOST_BYTES:
        os.ftruncate(_STDERR, 0)
        end = 0
    os.lseek(_STDERR, end, os.SEEK_SET)
    _seen = end
    return sum(not is_harmless(line) for line in _LINE.findall(content))


def is_harmless(message: bytes) -> bool:
    """Whether FFmpeg writes this message about whole files, too."""
    return _HARMLESS.match(message) is not None
