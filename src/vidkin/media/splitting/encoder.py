"""Encode decoded pictures of a video again, in the form that it has."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import av
from av.codec.context import Flags

from vidkin.media.decoding.reader import frame_rate

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["PictureEncoder", "encoder_of"]

# What encodes a codec again; others become H.264 (AV1 too: its encoders are slow, or write to the terminal).
_ENCODERS = {
    "h264": "libx264",
    "hevc": "libx265",
    "vp8": "libvpx",
    "vp9": "libvpx-vp9",
}
_DEFAULT = "libx264"
# The scale of the quality: that of x264.
_WORST = 51
# The scale of VP8 and VP9 ends here.
_OTHER_WORST = 63
# Bits a second, more than any video needs.
_AMPLE_RATE = "200000000"
# Frames from one key frame to the next.
_GROUP = 240
# Types of pictures, as FFmpeg numbers them.
_ANY, _KEY, _FORWARD = 0, 1, 2
# The order of fields, as FFmpeg numbers it; those above are interlaced.
_PROGRESSIVE = 1


def encoder_of(main: VideoStream) -> tuple[str, str | None]:
    """FFmpeg's name of the encoder for a video, and that of its codec if it is another one than the video has."""
    codec = main.codec_context.codec.canonical_name
    name = _ENCODERS.get(codec)
    if name is not None and main.codec_context.pix_fmt in _pixel_formats(name):
        return name, None
    return _DEFAULT, None if codec == "h264" else "h264"


class PictureEncoder:
    """Encodes pictures in order; each gives one packet, in the same order.

    Args:
        main: The video that the pictures are from.
        quality: Constant quality, from 1 (best) to 51, on the scale of x264.
        tick: Seconds of one unit of the pictures' times.
        has_global_sets: Parameters of the stream are stored in its head, and not before pictures.
        profile: Of H.264, as x264 calls it; None lets the encoder choose.
        number: Of H.264, the number of the parameter sets.
        depth: Of H.264, by how many pictures decoders are told to delay: as for the pictures around these, so that
            they go on without a jump.
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
        context.pix_fmt = "yuv444p" if is_odd else "yuv420p"  # which nearly every player takes
        is_refused = is_odd and name == "libx264" and "444" not in str(given.pix_fmt)
        if given.pix_fmt in _pixel_formats(name) and not is_refused:
            context.pix_fmt = str(given.pix_fmt)
        context.time_base = tick
        context.framerate = Fraction(frame_rate(main)).limit_denominator(60_060)
        if given.sample_aspect_ratio:
            context.sample_aspect_ratio = given.sample_aspect_ratio
        context.color_range, context.colorspace = given.color_range, given.colorspace
        context.color_primaries, context.color_trc = given.color_primaries, given.color_trc
        context.max_b_frames = 3 if depth > 1 else depth
        context.options = _options(name, quality, profile, number, depth)
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
        """Parameters of the stream."""
        return self._context.extradata

    @property
    def is_used(self) -> bool:
        """A picture was encoded."""
        return self._count > 0

    def encode(self, frame: VideoFrame | None) -> list[Packet[VideoStream]]:
        """The packets that are complete with this picture; None for those that are left."""
        if frame is not None:
            context = self._context
            same = (frame.width, frame.height, frame.format.name) == (
                context.width,
                context.height,
                context.pix_fmt,
            )
            if not same:
                frame = frame.reformat(context.width, context.height, context.pix_fmt)
            # What the picture was in its source does not matter. Where decoders are told to delay, none may be a
            # picture that needs it.
            frame.pict_type = _ANY
            if self._depth:
                frame.pict_type = _FORWARD if self._count % _GROUP else _KEY
            frame.time_base = context.time_base
            self._count += 1
        return self._context.encode(frame)


def _options(name: str, quality: int, profile: str | None, number: int | None, depth: int) -> dict[str, str]:
    other = str(round(quality * _OTHER_WORST / _WORST))
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
            # VP8 takes the quality for the best within a bit rate; VP9 without one keeps to it.
            return {"crf": other, "b": "0" if name == "libvpx-vp9" else _AMPLE_RATE, **speed}


def _pixel_formats(name: str) -> set[str]:
    return {form.name for form in av.Codec(name, "w").video_formats or ()}
