"""Pieces of a split video: their files, source, format and streams."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import av

from vidkin._base.files import PathLike, create_folder
from vidkin._base.outputs import check_free, describe_source
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.time_code import SourceClock

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.stream import VideoStream


@dataclass(frozen=True, slots=True)
class Piece(Result):
    """One file of a split video.

    Attributes:
        path: Path of the file.
        start: Start in the source, in seconds.
        end: End in the source, in seconds: the start of the next part, or the end of the video.
        parts: Indices of the requested parts that the piece contains. An exact split has one part per piece; if
            pieces can begin only at key frames, parts without a key frame between them share a piece.
        packets: Number of packets in all streams.
        encoded: Number of re-encoded frames; all others are bit-exact copies.
    """

    path: str
    start: float
    end: float
    parts: tuple[int, ...]
    packets: int
    encoded: int = 0


@dataclass(frozen=True, slots=True)
class SplitReport(Result):
    """Result of a split.

    Attributes:
        pieces: The pieces in order of time.
        left_out: Descriptions of the streams that are in no piece (cover images, other videos, data, and streams that
            the format does not support).
    """

    pieces: tuple[Piece, ...]
    left_out: tuple[str, ...]


def describe_pieces(source: PathLike) -> str:
    """Describe the source of the pieces of a video; see :func:`vidkin._base.outputs.open_output`."""
    return describe_source("pieces", source)


def piece_paths(source: str, folder: PathLike, names: Sequence[str], suffix: str) -> list[Path]:
    """Create the folder and return the paths of the pieces, after checking that all of them can be written.

    Args:
        source: The video.
        folder: Folder to write to.
        names: Names of the pieces, without extension.
        suffix: Extension of the pieces.

    Raises:
        InvalidArgumentError: Two pieces have the same name.
        MediaError: The folder cannot be created, or a file with the name of a piece is not a piece of this video; this
            happens because recordings are often numbered in the same way.
    """
    target = create_folder(folder)
    files = [f"{name}{suffix}" for name in names]
    if len({file.casefold() for file in files}) < len(files):
        raise InvalidArgumentError("names of pieces must differ in more than upper and lower case")
    made_of = describe_pieces(source)
    paths = [target / file for file in files]
    for path in paths:
        check_free(path, source=made_of)
    return paths


# Used if the format of the source cannot be written; it supports nearly everything.
_FALLBACK = ".mkv"

_COPIED_TYPES = ("audio", "subtitle")


class PieceForm(NamedTuple):
    """Format and streams of all pieces of a video.

    Attributes:
        suffix: Extension of the files.
        kept: Indices of the streams in the files.
        left_out: Descriptions of the other streams.
    """

    suffix: str
    kept: frozenset[int]
    left_out: tuple[str, ...]


def piece_codes(time_code: str, rate: Fraction, starts: Sequence[float]) -> list[str]:
    """Return the time code of the first frame of each piece; "" if the video has none.

    Args:
        time_code: Time code of the first frame of the video; "" for none.
        rate: Frames per second.
        starts: Starts of the pieces in seconds from the first frame.
    """
    if not time_code:
        return [""] * len(starts)
    clock = SourceClock.of(rate, time_code=time_code)
    return [clock.code(clock.frame(start)) for start in starts]


def end_with_piece(packet: Packet[Any], end: float) -> None:
    """Cut off a subtitle at the end of its piece of ``end`` seconds, because a longer one would lengthen the piece."""
    if packet.pts is not None and packet.time_base is not None and packet.duration:
        last = round(end / packet.time_base)
        packet.duration = max(min(packet.duration, last - packet.pts), 1)


def choose_form(
    name: str, container: InputContainer, main: VideoStream, *, codec: str | None = None, with_time_code: bool = False
) -> PieceForm:
    """Choose the format of the source, or Matroska if that cannot be written, and the streams that it supports.

    Args:
        name: Name of the file.
        container: The open file.
        main: The file's video stream. Other videos are left out, because they could only be split at key frames.
        codec: FFmpeg name of the codec to encode the video with, for which MP4 is tried first; None keeps the codec.
        with_time_code: Whether pieces have a time code, so that a time code track does not count as left out.

    Raises:
        MediaError: No format supports the video.
    """
    candidates: list[Stream] = []
    left_out = []
    for stream in container.streams:
        if stream.type == "audio" and not _has_sample_rate(stream):
            left_out.append(f"stream {stream.index}: audio that begins late and has no stated format")
        elif stream.index == main.index or stream.type in _COPIED_TYPES:
            candidates.append(stream)
        elif stream.type == "video" and stream.disposition & av.stream.Disposition.attached_pic:
            left_out.append(f"stream {stream.index}: cover image")
        elif stream.type == "video":
            left_out.append(f"stream {stream.index}: another video; split it with --stream {stream.index}")
        elif "timecode" not in stream.metadata:
            left_out.append(f"stream {stream.index}: {stream.type}")
        elif not with_time_code:
            left_out.append(f"stream {stream.index}: time code")
    first = Path(name).suffix.lower() if codec is None else ".mp4"
    # The only way to find out which streams a muxer supports is to try; this writes just an empty file.
    with tempfile.TemporaryDirectory() as trials:
        for suffix in dict.fromkeys((first, _FALLBACK)):
            supported = _find_supported(f"file:{trials}/trial{suffix}", candidates, main.index, codec)
            # Keeping sound matters more than using MP4, which is not the source's format anyway.
            loses_sound = codec is not None and any(
                stream.type == "audio" and stream.index not in supported for stream in candidates
            )
            if main.index in supported and not (loses_sound and suffix != _FALLBACK):
                left_out += [
                    f"stream {stream.index}: {stream.type}, which {suffix} files do not support"
                    for stream in candidates
                    if stream.index not in supported
                ]
                return PieceForm(suffix, frozenset(supported), tuple(left_out))
    raise MediaError(name, f"its {main.codec_context.name} video cannot be written to any supported format")


def _has_sample_rate(stream: Stream) -> bool:
    # A stream without a decoder has no codec context; the type stubs do not cover this.
    context = getattr(stream, "codec_context", None)
    return context is None or context.sample_rate > 0


def _find_supported(trial: str, streams: Sequence[Stream], main: int, codec: str | None) -> set[int]:
    """Return the indices of the streams that a file with this name supports."""
    supported = set()
    try:
        with av.open(trial, "w") as output:
            for stream in streams:
                with suppress(ValueError):  # from PyAV, if the format does not support the stream
                    if stream.index == main and codec is not None:
                        output.add_mux_stream(codec)
                    else:
                        # Opaque, because some codecs have no encoder with the same name.
                        output.add_stream_from_template(stream, opaque=True)
                    supported.add(stream.index)
    except ValueError:  # from PyAV, if no format has this extension
        return set()
    return supported
