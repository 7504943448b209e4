"""Plan and write one piece of a video: copied and encoded frames with their times, and audio."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import av
import numpy as np
from av.codec.context import Flags
from av.format import Flags as FormatFlags
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.media.encode import open_media_output
from vidkin.media.frames import DEFAULT_TIME_BASE
from vidkin.media.pieces import end_with_piece
from vidkin.media.reader import APPENDABLE, MAX_STEP_BACK, PictureReader, frame_rate
from vidkin.media.stored_pictures import ParameterSets, StoredPictures, split_units, to_lengths

if TYPE_CHECKING:
    from av.container import InputContainer, OutputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

# For these file extensions, players expect HEVC parameter sets only in the header, as this tag declares.
_HEVC_TAG = "hvc1"

_TAGGED_SUFFIXES = (".mp4", ".mov", ".m4v")


class PieceWriter:
    """Writes one piece of a video.

    Args:
        main: The video stream of the source.
        plan: Stretches of the piece, each copied or encoded.
        stored: Packets of the source; None if nothing is copied.
        timeline: [N + 1] times of the frames and of the end of the piece, in ticks of the source.
        sound: Reader of the source's other streams.
        quality: Constant quality of encoded frames.
        codec: Codec of encoded video; None keeps the codec of the source.
        time_code: Time code of the first frame; "" for none.
    """

    def __init__(
        self,
        main: VideoStream,
        plan: Sequence[PieceStretch],
        stored: StoredPictures | None,
        timeline: NDArray[np.int64],
        sound: SoundReader,
        *,
        quality: int,
        codec: str | None,
        time_code: str = "",
    ) -> None:
        self._time_code = time_code
        self._main, self._plan, self._stored, self._sound = main, plan, stored, sound
        self._quality, self._codec = quality, codec
        self._tick = Fraction(main.time_base or DEFAULT_TIME_BASE)
        self._timeline = timeline
        # Frames in the order in which they are written.
        self._order = [
            frame
            for stretch in plan
            for frame in (
                stored.ranks[stretch.start : stretch.end].tolist()
                if stretch.is_copied and stored is not None
                else range(stretch.start, stretch.end)
            )
        ]
        start = plan[0].start
        shown = [int(timeline[frame - start] - timeline[0]) for frame in self._order]
        self._shown, self._decoded = shown, compute_decoding_times(shown)
        self._durations = np.diff(timeline)
        self._is_mixed = len({stretch.is_copied for stretch in plan}) > 1
        self._written = 0
        self._packets = 0
        self._encoder: PictureEncoder | None = None

    def write(self, path: Path, frames: Iterator[PieceFrame], *, source: str) -> int:
        """Write the file, which appears only when it is complete; see :func:`~vidkin.media.pieces.piece_paths`.

        Returns:
            The number of packets written.

        Raises:
            LostFrameError: Frames are missing.
            MediaError: The file cannot be written.
        """
        plan = iter(self._plan)
        stretch, received = next(plan), 0
        start, end = int(self._timeline[0]) * self._tick, int(self._timeline[-1]) * self._tick
        with open_media_output(path, source=source) as partial, av.open(f"file:{partial}", "w") as output:
            if self._time_code:
                output.metadata["timecode"] = self._time_code
            video = self._add_video(output)
            self._sound.begin(output, start, end, is_first=stretch.start == 0)
            for piece_frame in frames:
                if piece_frame.frame != self._order[received]:
                    break
                received += 1
                while piece_frame.frame >= stretch.end:
                    self._finish_stretch(output, video)
                    stretch = next(plan)
                if piece_frame.packet is not None:
                    self._mux(output, video, piece_frame.packet)
                else:
                    encoder = self._encoder = self._encoder or self._new_encoder(output)
                    for packet in encoder.encode(piece_frame.picture):
                        self._mux(output, video, self._to_stored_form(packet))
            self._finish_stretch(output, video)
            if self._written != len(self._order):
                raise LostFrameError(str(path), f"only {self._written} of its {len(self._order)} frames can be read")
            self._packets += self._sound.copy_until(end)
        return self._packets

    def _add_video(self, output: OutputContainer) -> VideoStream:
        """Add the video stream, with the parameters of all frames that will be written to it."""
        given = self._main.codec_context
        if self._codec is not None:
            added = output.add_mux_stream(
                self._codec,
                rate=Fraction(frame_rate(self._main)).limit_denominator(60_060),
                width=given.width,
                height=given.height,
                time_base=self._tick,
            )
            return cast("VideoStream", added)
        video = output.add_stream_from_template(self._main, opaque=True)
        if given.codec.canonical_name == "hevc" and output.name.endswith(_TAGGED_SUFFIXES):
            video.codec_context.codec_tag = _HEVC_TAG
        if all(stretch.is_copied for stretch in self._plan):
            return video
        self._encoder = self._new_encoder(output)
        extra = self._encoder.extradata
        if not self._is_mixed:
            video.codec_context.extradata = extra or video.codec_context.extradata
        elif self._sets is not None:
            units = list(split_units(extra or b"", None))
            video.codec_context.extradata = self._sets.join(units).to_bytes()
        return video

    def _new_encoder(self, output: OutputContainer) -> PictureEncoder:
        stored, is_mixed = self._stored, self._is_mixed
        wants_sets = FormatFlags.global_header in FormatFlags(output.format.flags) and self._codec is None
        profile = stored.profile if is_mixed and stored is not None else None
        return PictureEncoder(
            self._main,
            self._quality,
            self._tick,
            has_global_sets=self._sets is not None if is_mixed else wants_sets,
            profile=profile,
            number=stored.number if is_mixed and stored is not None else None,
            depth=0 if profile is None else min(2, self._main.codec_context.reorder_depth),
        )

    @property
    def _sets(self) -> ParameterSets | None:
        return None if self._stored is None else self._stored.sets

    def _finish_stretch(self, output: OutputContainer, video: VideoStream) -> None:
        """Write the packets that the encoder holds back, so that the next stretch begins with a key frame."""
        if self._encoder is not None and self._encoder.is_used:
            for packet in self._encoder.encode(None):
                self._mux(output, video, self._to_stored_form(packet))
            self._encoder = None

    def _to_stored_form(self, packet: Packet[Any]) -> Packet[Any]:
        """Convert an encoded packet to the format of the packets that are copied to the same file."""
        if not self._is_mixed or self._sets is None:
            return packet
        fitted: Packet[Any] = av.Packet(to_lengths(list(split_units(bytes(packet), None))))
        fitted.is_keyframe = packet.is_keyframe
        return fitted

    def _mux(self, output: OutputContainer, video: VideoStream, packet: Packet[Any]) -> None:
        """Write the next video packet with its times, preceded by the audio up to it."""
        position = self._written
        frame = self._order[position] - self._plan[0].start
        self._packets += 1 + self._sound.copy_until(int(self._timeline[frame]) * self._tick)
        packet.time_base = self._tick
        packet.pts, packet.dts = self._shown[position], self._decoded[position]
        packet.duration = int(self._durations[frame])
        packet.stream = video
        output.mux_one(packet)
        self._written += 1


# Encoders by codec. All other codecs become H.264, including AV1, whose encoders are slow or write to the terminal.
_ENCODERS = {
    "h264": "libx264",
    "hevc": "libx265",
    "vp8": "libvpx",
    "vp9": "libvpx-vp9",
}

_DEFAULT_ENCODER = "libx264"

# Worst quality on the x264 scale.
_WORST = 51

# Worst quality on the VP8 and VP9 scale.
_VPX_WORST = 63

# Bit rate that is higher than any video needs.
_MAX_BIT_RATE = "200000000"

# Number of frames between key frames.
_GOP_LENGTH = 240

# Frame types, as numbered by FFmpeg.
_ANY_TYPE, _KEY_TYPE, _FORWARD_TYPE = 0, 1, 2

# Field order, as numbered by FFmpeg; higher values are interlaced.
_PROGRESSIVE = 1


def encoder_of(main: VideoStream) -> tuple[str, str | None]:
    """Return FFmpeg's name of the encoder for a video, and the name of its codec if it differs from the video's
    codec."""
    codec = main.codec_context.codec.canonical_name
    name = _ENCODERS.get(codec)
    if name is not None and main.codec_context.pix_fmt in _list_pixel_formats(name):
        return name, None
    return _DEFAULT_ENCODER, None if codec == "h264" else "h264"


class PictureEncoder:
    """Encodes frames in order; each frame results in one packet, in the same order.

    Args:
        main: The video stream of the frames.
        quality: Constant quality, from 1 (best) to 51, on the x264 scale.
        tick: Seconds per tick of the frames' times.
        has_global_sets: Whether parameter sets are stored in the stream header rather than before frames.
        profile: H.264 profile, as named by x264; None lets the encoder choose.
        number: ID of the H.264 parameter sets.
        depth: Number of frames by which H.264 decoders delay their output. It must be the same as for the copied
            frames, so that playback continues without a jump.
    """

    def __init__(
        self,
        main: VideoStream,
        quality: int,
        tick: Fraction,
        *,
        has_global_sets: bool,
        profile: str | None = None,
        number: int | None = None,
        depth: int = 0,
    ) -> None:
        name, _ = encoder_of(main)
        given = main.codec_context
        context: VideoCodecContext = av.CodecContext.create(name, "w")  # type: ignore[assignment]
        context.width, context.height = given.width, given.height
        is_odd = given.width % 2 or given.height % 2
        context.pix_fmt = "yuv444p" if is_odd else "yuv420p"  # supported by nearly every player
        is_refused = is_odd and name == "libx264" and "444" not in str(given.pix_fmt)
        if given.pix_fmt in _list_pixel_formats(name) and not is_refused:
            context.pix_fmt = str(given.pix_fmt)
        context.time_base = tick
        context.framerate = Fraction(frame_rate(main)).limit_denominator(60_060)
        if given.sample_aspect_ratio:
            context.sample_aspect_ratio = given.sample_aspect_ratio
        context.color_range, context.colorspace = given.color_range, given.colorspace
        context.color_primaries, context.color_trc = given.color_primaries, given.color_trc
        context.max_b_frames = 3 if depth > 1 else depth
        context.options = _build_options(name, quality, profile, number, depth)
        if has_global_sets:
            context.flags |= Flags.global_header
        if given.field_order > _PROGRESSIVE and name == "libx264":
            context.flags |= Flags.interlaced_dct
        context.open()
        self._context = context
        self._depth = depth
        self._count = 0

    @property
    def extradata(self) -> bytes | None:
        """Parameters of the stream, as stored in the header."""
        return self._context.extradata

    @property
    def is_used(self) -> bool:
        """Whether a frame has been encoded."""
        return self._count > 0

    def encode(self, frame: VideoFrame | None) -> list[Packet[VideoStream]]:
        """Return the packets that this frame completes; with None, return the remaining packets."""
        if frame is not None:
            context = self._context
            same = (frame.width, frame.height, frame.format.name) == (
                context.width,
                context.height,
                context.pix_fmt,
            )
            if not same:
                frame = frame.reformat(context.width, context.height, context.pix_fmt)
            # Ignore the frame's type in the source. With a fixed delay, all frames are key frames or forward-predicted.
            frame.pict_type = _ANY_TYPE
            if self._depth:
                frame.pict_type = _FORWARD_TYPE if self._count % _GOP_LENGTH else _KEY_TYPE
            frame.time_base = context.time_base
            self._count += 1
        return self._context.encode(frame)


def _build_options(name: str, quality: int, profile: str | None, number: int | None, depth: int) -> dict[str, str]:
    other = str(round(quality * _VPX_WORST / _WORST))
    match name:
        case "libx264":
            parameters = "mbtree=0" + ("" if number is None else f":sps-id={number}")
            if depth:
                parameters += f":b-pyramid={'none' if depth == 1 else 'normal'}"
            options = {
                "crf": str(quality),
                "preset": "veryfast",
                "x264-params": parameters,
                "forced-idr": "1",
            }
            return options if profile is None else {**options, "profile": profile}
        case "libx265":
            return {"crf": str(quality), "preset": "veryfast", "x265-params": "bframes=0:log-level=error"}
        case _:
            speed = {"deadline": "good", "cpu-used": "4", "auto-alt-ref": "0", "lag-in-frames": "0"}
            # For VP8, the quality is a limit within a bit rate; VP9 uses constant quality if the bit rate is 0.
            return {"crf": other, "b": "0" if name == "libvpx-vp9" else _MAX_BIT_RATE, **speed}


def _list_pixel_formats(name: str) -> set[str]:
    return {form.name for form in av.Codec(name, "w").video_formats or ()}


# Maximum number of seconds by which the packets of different streams in a file can be out of step.
_MAX_INTERLEAVING = 10


class SoundReader:
    """Copies the packets of all streams except the main stream, to one piece after another.

    A packet belongs to the piece in which it starts; packets between pieces are dropped. Subtitles are cut off at the
    end of their piece. In concatenated recordings, the audio of each recording stays in sync with its frames.

    Args:
        container: The open file; nothing else may read from it.
        kept: Indices of the streams to copy.
        main: Index of the main stream.
    """

    def __init__(self, container: InputContainer, kept: AbstractSet[int], main: int) -> None:
        self._streams = [stream for stream in container.streams if stream.index in kept]
        # Only these formats can contain concatenated recordings; for others, skip the main stream, which is large.
        self._main = container.streams[main] if container.format.name in APPENDABLE else None
        read = [*self._streams, *([] if self._main is None else [self._main])]
        self._packets: Iterator[Packet[Any]] = container.demux(read) if self._streams else iter(())
        # Recording number, time within the recording, and packet.
        self._waiting: deque[tuple[int, Fraction, Packet[Any]]] = deque()
        self._newest = Fraction(-(10**9))
        # By stream: recording number and latest time in the recording. By recording: offset of its times.
        self._latest: dict[int, tuple[int, Fraction]] = {}
        self._shifts = [Fraction(0)]
        self._shown = Fraction(0)
        self._outputs: Mapping[int, Stream] = {}
        self._output: OutputContainer | None = None
        self._start: Fraction | None = None
        self._shift = self._end = Fraction(0)

    def begin(self, output: OutputContainer, start: Fraction, end: Fraction, *, is_first: bool) -> None:
        """Switch the output to this file.

        Args:
            output: The open file, to which the video stream has been added but nothing has been written.
            start: Time in the source, in seconds, that becomes 0.
            end: Time in the source at which the piece ends.
            is_first: Whether to also copy packets before the start.
        """
        self._output = output
        self._outputs = {stream.index: output.add_stream_from_template(stream, opaque=True) for stream in self._streams}
        self._start, self._shift, self._end = None if is_first else start, start, end

    def copy_until(self, time: Fraction) -> int:
        """Copy the packets that start before this time of the source in seconds; return their number."""
        while self._newest < time + _MAX_INTERLEAVING and (packet := next(self._packets, None)) is not None:
            if packet.size:
                self._take(packet)
        copied = 0
        later: deque[tuple[int, Fraction, Packet[Any]]] = deque()
        for entry in self._waiting:
            recording, stamp, packet = entry
            if recording >= len(self._shifts) or stamp + self._shifts[recording] >= time:
                later.append(entry)
            elif self._start is None or stamp + self._shifts[recording] >= self._start:
                self._copy(packet, self._shifts[recording] - self._shift)
                copied += 1
        self._waiting = later
        return copied

    def _take(self, packet: Packet[Any]) -> None:
        """Record the time of a packet, and queue the packet unless it belongs to the main stream."""
        stream, stamp = packet.stream_index, packet.pts if packet.pts is not None else packet.dts
        recording, latest = self._latest.get(stream, (0, None))
        seconds = (latest or Fraction(0)) if stamp is None else stamp * Fraction(packet.time_base)
        if self._main is not None and latest is not None and latest - seconds > MAX_STEP_BACK:
            recording += 1
        self._latest[stream] = recording, seconds
        if self._main is not None and stream == self._main.index:
            if recording == len(self._shifts):
                self._shifts.append(self._shown - seconds)
            length = (packet.duration or 0) * Fraction(packet.time_base)
            self._shown = max(self._shown, seconds + self._shifts[recording] + length)
            return
        if recording < len(self._shifts):
            self._newest = seconds + self._shifts[recording]
        self._waiting.append((recording, seconds, packet))

    def _copy(self, packet: Packet[Any], shift: Fraction) -> None:
        """Write a packet, shifting its times by this many seconds."""
        assert self._output is not None  # begin() comes first
        ticks = math.floor(-shift / Fraction(packet.time_base) + Fraction(1, 2))
        packet.pts = None if packet.pts is None else packet.pts - ticks
        packet.dts = None if packet.dts is None else packet.dts - ticks
        packet.stream = self._outputs[packet.stream_index]
        if packet.stream.type == "subtitle":
            end_with_piece(packet, float(self._end - self._shift))
        self._output.mux_one(packet)


class PieceStretch(NamedTuple):
    """Consecutive frames of a piece that are all copied or all encoded.

    Attributes:
        start: The first frame.
        end: The first frame after the stretch.
        is_copied: Whether packets are copied; otherwise, frames are encoded.
    """

    start: int
    end: int
    is_copied: bool


def plan_piece(stored: StoredPictures | None, start: int, end: int) -> list[PieceStretch]:
    """Divide the frames from ``start`` to ``end`` (exclusive) into stretches, in order.

    Packets are copied from the first key frame that needs no earlier packet, up to the last packet that needs no packet
    after the piece; frames before and after are encoded. If encoded and copied frames cannot be mixed in one stream,
    all frames are encoded.

    Args:
        stored: Packets of the video; None if nothing can be copied.
        start: First frame of the piece.
        end: First frame after the piece.
    """
    if stored is None:
        return [PieceStretch(start, end, False)]
    stretches: list[PieceStretch] = []
    frame = start
    while frame < end:
        position = int(np.searchsorted(stored.entries, frame))
        entry = int(stored.entries[position]) if position < len(stored.entries) else end
        last = stored.last_end(entry, end) if entry == frame else frame
        if last > frame:
            stretches.append(PieceStretch(frame, last, True))
            frame = last
            continue
        if entry == frame:  # nothing can be copied from this key frame
            entry = int(stored.entries[position + 1]) if position + 1 < len(stored.entries) else end
        stretches.append(PieceStretch(frame, min(entry, end), False))
        frame = min(entry, end)
    if len(stretches) > 1 and not stored.is_mixable:
        return [PieceStretch(start, end, False)]
    return stretches


def compute_decoding_times(shown: Sequence[int]) -> list[int]:
    """Compute increasing decoding times that are never after the presentation times.

    Args:
        shown: Presentation times in decoding order, all different, in ticks of the stream.
    """
    times = sorted(shown)
    ranks = {time: rank for rank, time in enumerate(times)}
    # Number of frames that must be decoded before the first frame is shown.
    delay = max((position - ranks[time] for position, time in enumerate(shown)), default=0)
    step = max(1, round((times[-1] - times[0]) / (len(times) - 1))) if len(times) > 1 else 1
    return [*(times[0] - step * (delay - position) for position in range(delay)), *times[: len(times) - delay]]


class LostFrameError(MediaError):
    """A packet did not decode to the expected frame."""


class PieceFrame(NamedTuple):
    """A frame of a piece, as a packet to copy or a decoded frame to encode.

    Attributes:
        piece: Index of the piece.
        frame: Index of the frame in the video.
        packet: The packet to copy.
        picture: The decoded frame to encode.
    """

    piece: int
    frame: int
    packet: Packet[Any] | None = None
    picture: VideoFrame | None = None


def iter_piece_frames(
    name: str,
    container: InputContainer,
    stream: VideoStream,
    stored: StoredPictures | None,
    plans: Sequence[Sequence[PieceStretch]],
    on_progress: Callable[[float, float | None], None] | None = None,
) -> Iterator[PieceFrame]:
    """Yield the frames of all pieces, piece by piece.

    Args:
        name: Name of the file, for messages.
        container: The open file, at its start.
        stream: The file's video stream.
        stored: Packets of the video; None decodes every frame.
        plans: The stretches of each piece.
        on_progress: Callback that receives (frames read, total frames).
    """
    total = plans[-1][-1].end if stored is None else len(stored)
    owners = np.full(total, -1, np.int64)
    is_copied = np.zeros(total, bool)
    for piece, plan in enumerate(plans):
        for stretch in plan:
            owners[stretch.start : stretch.end] = piece
            is_copied[stretch.start : stretch.end] = stretch.is_copied
    reader = PictureReader(name, container, stream)
    groups = None if stored is None else _GroupDecoder(reader, stored, owners, is_copied)
    for position, piece_frame in _decode_all(reader, owners) if groups is None else groups.frames():
        if on_progress is not None:
            on_progress(position, total)
        if piece_frame is not None:
            yield piece_frame


def _decode_all(reader: PictureReader, owners: NDArray[np.int64]) -> Iterator[tuple[int, PieceFrame | None]]:
    for frame, (_, picture) in enumerate(reader.pictures()):
        if frame >= len(owners):
            return
        piece = int(owners[frame])
        yield frame, None if piece < 0 else PieceFrame(piece, frame, picture=picture)


class _GroupDecoder:
    """Decodes only groups of pictures that contain frames to encode, and only as far as necessary.

    A group starts at a frame at which copying could begin, so it needs no earlier packets.
    """

    def __init__(
        self,
        reader: PictureReader,
        stored: StoredPictures,
        owners: NDArray[np.int64],
        is_copied: NDArray[np.bool_],
    ) -> None:
        self._reader, self._stored, self._owners, self._is_copied = reader, stored, owners, is_copied
        self._times = stored.times()
        self._is_encoded = (owners >= 0) & ~is_copied
        # For each group: the positions of its first packet and of the last packet to decode.
        self._starts = np.unique(np.append(0, stored.entries))
        encoded = self._is_encoded[stored.ranks]
        ends = np.append(self._starts[1:], len(stored))
        self._last_positions = [
            start + int(positions[-1]) if len(positions := np.flatnonzero(encoded[start:end])) else -1
            for start, end in zip(self._starts.tolist(), ends.tolist(), strict=True)
        ]

    def frames(self) -> Iterator[tuple[int, PieceFrame | None]]:
        """Yield (number of packets read, frame of a piece or None)."""
        last = int(np.flatnonzero(self._owners[self._stored.ranks] >= 0)[-1])
        ordinals = self._stored.ordinals
        position = 0
        group = 0
        packets = (packet for packet in self._reader.container.demux(self._reader.stream) if packet.size)
        for ordinal, packet in enumerate(packets):
            is_shown = position < len(ordinals) and ordinals[position] == ordinal
            if is_shown and group + 1 < len(self._starts) and position == self._starts[group + 1]:
                group += 1
            last_to_decode = self._last_positions[group]
            frame = int(self._stored.ranks[position]) if is_shown else -1
            if frame >= 0 and self._is_copied[frame]:
                yield position, PieceFrame(int(self._owners[frame]), frame, packet=packet)
            else:
                yield position, None
            if last_to_decode >= position:
                for picture in self._reader.feed(packet):
                    yield from self._take(picture, position)
                if is_shown and position == last_to_decode:
                    for picture in self._reader.feed(None):
                        yield from self._take(picture, position)
                    self._reader.stream.codec_context.flush_buffers()
            if position == last and is_shown:
                return
            position += is_shown

    def _take(self, picture: VideoFrame, position: int) -> Iterator[tuple[int, PieceFrame]]:
        """Yield the frame if it must be encoded and has not been yielded before."""
        if picture.pts is None:
            return
        frame = int(np.searchsorted(self._times, picture.pts))
        if frame < len(self._times) and self._times[frame] == picture.pts and self._is_encoded[frame]:
            self._is_encoded[frame] = False
            yield position, PieceFrame(int(self._owners[frame]), frame, picture=picture)
