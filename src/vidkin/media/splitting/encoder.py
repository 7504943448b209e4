"""Encode decoded pictures of a video again, in the video's own format."""

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

# Encoders by codec; all others become H.264 (also AV1, whose encoders are slow or write to the terminal).
_ENCODERS = {
    "h264": "libx264",
    "hevc": "libx265",
    "vp8": "libvpx",
    "vp9": "libvpx-vp9",
}
_DEFAULT = "libx264"
# Range of the quality, on the scale of x264.
_WORST = 51
# End of the scale of VP8 and VP9.
_OTHER_WORST = 63
# Bits per second, more than any video needs.
_AMPLE_RATE = "200000000"
# Frames from one key frame to the next.
_GROUP = 240
# Types of pictures, as FFmpeg numbers them.
_ANY, _KEY, _FORWARD = 0, 1, 2
# The order of fields, as FFmpeg numbers it; those above are interlaced.
_PROGRESSIVE = 1


def encoder_of(main: VideoStream) -> tuple[str, str | None]:
    """FFmpeg's name of the encoder for a video, and the name of its codec if that differs from the video's own."""
    codec = main.codec_context.codec.canonical_name
    name = _ENCODERS.get(codec)
    if name is not None and main.codec_context.pix_fmt in _pixel_formats(name):
        return name, None
    return _DEFAULT, None if codec == "h264" else "h264"


class PictureEncoder:
    """Encodes pictures in order; each results in one packet, in the same order.

    Args:
        main: The video stream the pictures come from.
        quality: Constant quality, from 1 (best) to 51, on the scale of x264.
        tick: Seconds of one unit of the pictures' times.
        has_global_sets: Whether parameters of the stream are stored in its head rather than before pictures.
        profile: H.264 profile, as x264 names it; None lets the encoder choose.
        number: Number of the H.264 parameter sets.
        depth: Number of pictures by which H.264 decoders are told to delay, the same as for the surrounding pictures,
            so that playback continues without a jump.
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
        context.pix_fmt = "yuv444p" if is_odd else "yuv420p"  # which nearly every player accepts
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
        """Whether a picture was encoded."""
        return self._count > 0

    def encode(self, frame: VideoFrame | None) -> list[Packet[VideoStream]]:
        """The packets completed by this picture; with None, the remaining packets."""
        if frame is not None:
            context = self._context
            same = (frame.width, frame.height, frame.format.name) == (
                context.width,
                context.height,
                context.pix_fmt,
            )
            if not same:
                frame = frame.reformat(context.width, context.height, context.pix_fmt)
            # The picture's type in the source does not matter. With a stated delay, no picture may depend on it.
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
