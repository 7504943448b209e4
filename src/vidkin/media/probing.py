"""Read the properties of a video file, without reading all of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import av
import av.error

from vidkin._base.arguments import check_arguments
from vidkin._base.files import IMAGE_EXTENSIONS, PathLike, open_regular_file
from vidkin._base.values import Result
from vidkin.media.convert import HLG, PQ, Orienter, clean_aspect, display_size
from vidkin.media.frames import DEFAULT_TIME_BASE, Time, is_frame_number
from vidkin.media.reader import (
    APPENDABLE,
    MAX_STEP_BACK,
    BegunPackets,
    PacketIdentity,
    PictureReader,
    demux,
    frame_rate,
    identify,
    logger,
    media_error,
    open_video,
)
from vidkin.media.sampling import SEEKABLE
from vidkin.media.time_code import read_time_code

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from vidkin.media.sound import Listener, SoundTrack

# Fraction of a frame by which frame numbers are converted to an earlier time, because formats such as Matroska round.
_FRAME_TOLERANCE = 0.25
# Number of positions in a file to check for times that step back, and packets to read at each position to find a time.
_SEEK_PROBES, _PACKETS_PER_PROBE = 24, 100
# Seconds before the stated end at which to start reading packets, in order to find the actual end.
TAIL = 2.0
# A file counts as cut off only if more than this many seconds and more than a tenth are missing, because headers are
# often slightly wrong.
_MIN_MISSING = 1.0
# GUID of the ASF file properties (Advanced Systems Format specification, 3.2), and number of bytes to search for it.
_ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_ASF_HEADER_BYTES = 1 << 16
# Duration tag that muxers write for each stream in a Matroska file.
_TAGGED_DURATION = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d*)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoInfo(Result):
    """Properties of a video file.

    Attributes:
        path: The file, as it was passed.
        duration: Seconds from the start of the first frame to the end of the last, according to packet times.
        width: Display width in pixels: upright, with square pixels.
        height: Display height in pixels.
        rotation: Counterclockwise rotation of stored frames for display, in degrees: 0, 90, 180 or 270.
        mirrored: Whether stored frames are mirrored before the rotation.
        sample_aspect_ratio: Aspect ratio of a stored pixel (width to height).
        frame_rate: Average number of frames per second.
        codec: Name of the codec, for example ``"h264"``.
        container: Name of the file format, for example ``"mov,mp4,m4a,3gp,3g2,mj2"``.
        pixel_format: Name of the pixel format, for example ``"yuv420p10le"``.
        bit_depth: Bits per stored sample.
        hdr: Whether the video has a high dynamic range (PQ or HLG).
        interlaced: Whether the first frame is interlaced.
        start_time: Timestamp of the first frame in the file in seconds; times are counted from it.
        bit_rate: Bits per second of the whole file.
        size_bytes: Size of the file in bytes.
        has_audio: Whether there is audio.
        still: Whether this is a still image.
        stated_duration: Duration of the video in seconds according to the header; 0 if not stated.
        stream: Index of the video stream in the file, from 0.
        offset: Seconds from the start of the file, where players start counting, to the first frame; above 0 if the
            audio starts earlier.
        time_code: Time code of the first frame from the file, such as ``"10:00:00:00"``; "" if there is none.
    """

    path: str
    duration: float
    width: int
    height: int
    rotation: int
    mirrored: bool
    sample_aspect_ratio: Fraction
    frame_rate: float
    codec: str
    container: str
    pixel_format: str
    bit_depth: int
    hdr: bool
    interlaced: bool
    start_time: float
    bit_rate: float
    size_bytes: int
    has_audio: bool
    still: bool
    stated_duration: float = 0.0
    stream: int = 0
    offset: float = 0.0
    time_code: str = ""

    @property
    def short_side(self) -> int:
        """The smaller of width and height."""
        return min(self.width, self.height)

    @property
    def cut_off(self) -> bool:
        """Whether the file ends well before its stated duration, for example after an interrupted download."""
        return is_cut_off(self.stated_duration, self.duration)


class BegunVideo(NamedTuple):
    """An open file, read and decoded up to its first frame, and the audio packets read so far, which have not been
    decoded yet."""

    container: InputContainer
    stream: VideoStream
    packets: BegunPackets
    sound: Sequence[Packet[Any]] = ()


class ProbedVideo:
    """A probed file that is still open; `iter_frames` accepts it instead of a path and continues reading.

    It can be read once; later reads reopen the file. See `open_probed`.

    Attributes:
        info: Properties of the file.
        open_listener: Called for each audio track by the first reader of the frames; returns the receiver of the
            samples, see `vidkin.media.sound.TracksDecoder`. None skips the audio.
        sound_failures: Number of audio packets that could not be decoded.
    """

    def __init__(self, info: VideoInfo, begun: BegunVideo | None) -> None:
        self.info = info
        self.open_listener: Callable[[SoundTrack], Listener] | None = None
        self.sound_failures = 0
        self._begun = begun

    def take(self) -> BegunVideo | None:
        """Return the open file, but only once; None if it was already taken or cannot reliably continue."""
        begun, self._begun = self._begun, None
        return begun


@contextmanager
def open_probed(
    path: PathLike, *, threads: int = 0, stream: int | None = None, on_read: Callable[[], None] = lambda: None
) -> Iterator[ProbedVideo]:
    """Open a file once, to read its properties and then its frames.

    Args:
        path: The file.
        threads: Decoder threads, as in `iter_frames`.
        stream: Index of the video stream, as in `iter_frames`.
        on_read: Callback as in `probe`.

    Raises:
        MediaError: The file cannot be read as video.
    """
    name = os.fspath(path)
    with open_video(name, threads=threads, stream=stream) as (container, video):
        held = HeldPackets() if container.streams.audio else None
        info, packets = _probe(PictureReader(name, container, video, on_read=on_read), held)
        sound = () if held is None else held.packets
        yield ProbedVideo(info, None if packets is None else BegunVideo(container, video, packets, sound))


class HeldPackets:
    """Audio packets, kept until a listener is known.

    Attributes:
        packets: The packets in order.
    """

    def __init__(self) -> None:
        self.packets: list[Packet[Any]] = []

    def push(self, packet: Packet[Any]) -> None:
        self.packets.append(packet)

    def rewind(self) -> None:
        self.packets.clear()


@contextmanager
def open_at_start(source: PathLike | ProbedVideo, *, threads: int, stream: int | None = None) -> Iterator[BegunVideo]:
    """Open a file at its start as `open_video` does, or continue a probed file if possible."""
    begun = source.take() if isinstance(source, ProbedVideo) else None
    if begun is not None and isinstance(source, ProbedVideo):
        try:
            yield begun
        except av.error.FFmpegError as error:
            raise media_error(source.info.path, error) from error
    else:
        path = source.info.path if isinstance(source, ProbedVideo) else source
        number = source.info.stream if isinstance(source, ProbedVideo) else stream
        with open_video(path, threads=threads, stream=number) as (container, video):
            yield BegunVideo(container, video, ())


@check_arguments
def probe(path: PathLike, *, stream: int | None = None, on_read: Callable[[], None] = lambda: None) -> VideoInfo:
    """Read the properties of a video file by decoding its first frame and reading its last packets.

    Args:
        path: The file.
        stream: Index of the video stream, as in `iter_frames`.
        on_read: Callback for each packet that is read; if the end cannot be found otherwise, every packet is read.

    Raises:
        MediaError: The file cannot be read as video.
    """
    with open_probed(path, threads=1, stream=stream, on_read=on_read) as video:
        return video.info


def time_in(path: PathLike, moment: float | str, *, stream: int | None = None) -> float:
    """Convert user input to seconds in a video.

    Args:
        path: The video; it is opened only for frame numbers.
        moment: Seconds, or text for `Time.parse`: ``1:30.5``, or ``250f``, which is converted to a quarter of a frame
            before frame 250 at the average frame rate of the video.
        stream: Index of the video stream, as in `iter_frames`.

    Raises:
        InvalidArgumentError: The text is not a valid time.
        MediaError: The text is a frame number, and the file cannot be read as video.
    """
    if not isinstance(moment, str) or not is_frame_number(moment):
        return float(Time.parse(moment)) if isinstance(moment, str) else moment
    rate = probe(path, stream=stream).frame_rate
    return max(float(Time.parse(moment, rate=rate)) - _FRAME_TOLERANCE / rate, 0.0)


def _probe(reader: PictureReader, sound: HeldPackets | None = None) -> tuple[VideoInfo, BegunPackets | None]:
    """Probe a file that has not been read yet; also return its first packets if reading can continue after them."""
    name, container, stream = reader.name, reader.container, reader.stream
    begun: BegunPackets | None = None
    if container.format.name.startswith(SEEKABLE) and (opening := next(reader.packets(), None)) is not None:
        # Find the end before the start, so that the container is left where the next reader will continue.
        end = _find_end_by_seeking(reader)
        stated = _read_stated_duration(name, container, stream, stream.start_time or 0)
        base, first, begun = _decode_first_frame(reader, identify(opening), sound)
    else:
        base, first = next(reader.pictures())
        end = _find_end_by_seeking(reader)
        stated = _read_stated_duration(name, container, stream, base)
        if _has_concatenated_recordings(name, container, stream):
            with open_video(name, threads=1, stream=stream.index) as (whole, same):
                end = base + _measure_recordings(PictureReader(name, whole, same, on_read=reader.on_read))
            stated = 0.0
    if end is None or end <= base:
        with open_video(name, threads=1, stream=stream.index) as (whole, same):
            everything = PictureReader(name, whole, same, on_read=reader.on_read)
            end, count = _find_last_end(everything)
            end = base + count * everything.nominal if end is None else end
    duration = max(end - base, 1) * reader.tick
    codec = stream.codec_context.codec.canonical_name
    turns, mirrored = Orienter(name, codec)(first)
    aspect = clean_aspect(stream.sample_aspect_ratio)
    width, height = display_size(first.width, first.height, aspect, turns)
    size = Path(name).stat().st_size
    info = VideoInfo(
        path=name,
        duration=duration,
        width=width,
        height=height,
        rotation=90 * turns,
        mirrored=mirrored,
        sample_aspect_ratio=aspect,
        frame_rate=frame_rate(stream),
        codec=codec,
        container=container.format.name,
        pixel_format=first.format.name,
        bit_depth=max(part.bits for part in first.format.components),
        hdr=first.color_trc in (PQ, HLG),
        interlaced=first.interlaced_frame,
        start_time=base * reader.tick,
        bit_rate=size * 8 / duration,
        size_bytes=size,
        has_audio=bool(container.streams.audio),
        still=container.format.name.endswith("_pipe") or Path(name).suffix.lower() in IMAGE_EXTENSIONS,
        stated_duration=stated,
        stream=stream.index,
        offset=max(base * reader.tick - (container.start_time or 0) / av.time_base, 0.0),
        time_code=read_time_code(container, stream),
    )
    return info, begun


def _decode_first_frame(
    reader: PictureReader, opening: PacketIdentity, sound: HeldPackets | None
) -> tuple[int, VideoFrame, BegunPackets | None]:
    """Seek to the start of a file and decode its first frame.

    Returns:
        Time of the frame, the frame, and the packets read for it (None if seeking is not reliable).
    """
    name, container, stream = reader.name, reader.container, reader.stream
    at = min(0, opening[0] or 0)
    try:
        container.seek(at, stream=stream)
        start = PictureReader(name, container, stream, on_read=reader.on_read, sound=sound)
        packets: list[tuple[Packet[VideoStream], list[VideoFrame]]] = []
        for packet in start.packets():
            if start.first != opening:
                break
            packets.append((packet, start.feed(packet)))
            if packets[-1][1]:
                break
        pictures = packets[-1][1] or start.feed(None) if packets else []
        if pictures:
            if start.failures or not packets[-1][1]:
                # The next reader must count the damage again, and a drained decoder must be restarted.
                container.seek(at, stream=stream)
                packets = []
                if sound is not None:
                    sound.rewind()
            return *next(start.timed(pictures)), packets
    except av.error.FFmpegError as error:
        logger.debug("%s: cannot seek to the start: %s", name, error)
    with open_video(name, threads=1, stream=stream.index) as (again, same):
        start = PictureReader(name, again, same, on_read=reader.on_read)
        return *next(start.pictures()), None


def _find_end_by_seeking(reader: PictureReader) -> int | None:
    """Find the end of the last packet by seeking close to the stated end; None if seeking does not work."""
    container = reader.container
    if container.duration is None:
        return None
    seconds = ((container.start_time or 0) + container.duration) / av.time_base - TAIL
    try:
        container.seek(max(0, int(seconds / reader.tick)), stream=reader.stream)
    except av.error.FFmpegError:
        return None
    return _find_last_end(reader)[0]


def _has_concatenated_recordings(name: str, container: InputContainer, stream: VideoStream) -> bool:
    """Whether times step back within an MPEG stream because recordings were concatenated."""
    if container.format.name not in APPENDABLE:
        return False
    size = Path(name).stat().st_size
    times: list[float] = []
    try:
        for number in range(_SEEK_PROBES):
            container.seek(size * number // _SEEK_PROBES, stream=stream, unsupported_byte_offset=True)
            following = (packet.dts for packet in islice(demux(container, stream), _PACKETS_PER_PROBE))
            if (stamp := next((dts for dts in following if dts is not None), None)) is not None:
                times.append(stamp * float(stream.time_base or DEFAULT_TIME_BASE))
    except av.error.FFmpegError:
        return False
    return any(before - after > MAX_STEP_BACK for before, after in pairwise(times))


def _measure_recordings(reader: PictureReader) -> int:
    """Sum the durations of concatenated recordings, in ticks of the stream."""
    length, begin, end, latest = 0, 0, 0, None
    for packet in reader.packets():
        if packet.pts is None or packet.is_discard:
            continue
        if latest is None or (latest - packet.pts) * reader.tick > MAX_STEP_BACK:
            length += end - begin
            begin = end = latest = packet.pts
        begin = min(begin, packet.pts)
        if packet.pts >= latest:
            latest, end = packet.pts, packet.pts + (packet.duration or reader.nominal)
    return length + end - begin


def _read_stated_duration(name: str, container: InputContainer, stream: VideoStream, base: int) -> float:
    """Read the duration of the video in seconds from the header, counted from its first frame at ``base`` (in ticks of
    the stream); 0 if it is not stated."""
    first = max(base, 0) * float(stream.time_base or DEFAULT_TIME_BASE)
    if container.format.name == "avi":
        # FFmpeg adapts the duration to the available data. The count includes empty packets before a late first frame.
        return max(stream.frames / frame_rate(stream) - first, 0.0)
    if container.format.name == "asf" and stream.duration is None:
        return _read_asf_duration(name)
    if stream.duration is not None and stream.time_base is not None:
        # Undecodable frames before the first decoded one are missing at the start, not at the end.
        missing = 0 if stream.start_time is None else max(base - stream.start_time, 0)
        return float(Time.of_ticks(max(stream.duration - missing, 0), stream.time_base))
    # Matroska counts from 0 even if the first frame is later, for example because the audio starts first.
    first = max(first, (container.start_time or 0) / av.time_base)
    if (tag := _TAGGED_DURATION.fullmatch(stream.metadata.get("DURATION", ""))) is not None:
        hours, minutes, seconds = tag.groups()
        return max(3600 * int(hours) + 60 * int(minutes) + float(seconds) - first, 0.0)
    if container.duration is None:
        return 0.0
    whole = max(container.duration / av.time_base - first, 0.0)
    if not container.streams.audio:
        return whole
    # This is the duration of the longest stream, which may not be the video; checking this requires reliable seeking.
    is_known = container.format.name.startswith("matroska")
    return whole if is_known and not _has_packets_after(container, first + whole - _tolerance(whole)) else 0.0


def _read_asf_duration(name: str) -> float:
    """Read the duration from the header of an ASF (WMV) file; FFmpeg ignores it if the file is shorter."""
    with open_regular_file(name) as file:
        header = file.read(_ASF_HEADER_BYTES)
    begin = header.find(_ASF_PROPERTIES)
    properties = header[begin : begin + 104] if begin >= 0 else b""
    if len(properties) < 104 or properties[88] & 1:  # broadcasts state no duration
        return 0.0
    played, preroll = int.from_bytes(properties[64:72], "little"), int.from_bytes(properties[80:88], "little")
    return max(played / 1e7 - preroll / 1e3, 0.0)


def is_cut_off(stated: float, duration: float) -> bool:
    """Whether a video of this duration is clearly shorter than its header states."""
    return stated - duration > _tolerance(stated)


def _tolerance(stated: float) -> float:
    return max(_MIN_MISSING, stated / 10)


def _has_packets_after(container: InputContainer, seconds: float) -> bool:
    """Whether any stream has packets at or after this time."""
    try:
        container.seek(int(seconds * av.time_base))
        for packet in container.demux():
            if packet.pts is not None and packet.time_base is not None and packet.pts * packet.time_base >= seconds:
                return True
    except (av.error.FFmpegError, IndexError):  # IndexError: see `demux`
        return False
    return False


def _find_last_end(reader: PictureReader) -> tuple[int | None, int]:
    """Return the latest end of the remaining packets (None if they have no times), and the number of packets."""
    timed = False
    count = 0
    for packet in reader.packets():
        count += 1
        timed = timed or (packet.pts is not None and not packet.is_discard)
    return reader.end if timed else None, count
