"""Time handling, probing, decoding, encoding and splitting of video files.

Names are imported on first use, because handling times needs no decoder.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.media.checking import DecodingError, FileCheck, check_file
    from vidkin.media.convert import Converter, Orienter
    from vidkin.media.decode import iter_frames, iter_frames_at, poster, read_frames, read_gray, thumbnail
    from vidkin.media.encode import keep_scheduling, write_clip, write_thumbnail, write_video
    from vidkin.media.frames import LUMINANCE, Frames, Time
    from vidkin.media.joining import join_spans, write_preview
    from vidkin.media.notebook import Results, picture_html
    from vidkin.media.packets import compare_packets
    from vidkin.media.pieces import Piece, SplitReport
    from vidkin.media.planes import PLANE_HEIGHT, PLANE_WIDTH, FramePlanes, iter_planes, sample_planes
    from vidkin.media.probing import ProbedVideo, VideoInfo, open_probed, probe, time_in
    from vidkin.media.reader import PictureReader, open_video
    from vidkin.media.sound import iter_sound
    from vidkin.media.sources import Source, open_source, source_name
    from vidkin.media.split_at_keys import split_video
    from vidkin.media.split_by_frame import Span, split_exactly
    from vidkin.media.steady import steady_frames
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "LUMINANCE",
    "PLANE_HEIGHT",
    "PLANE_WIDTH",
    "Converter",
    "DecodingError",
    "FileCheck",
    "FramePlanes",
    "Frames",
    "Orienter",
    "PictureReader",
    "Piece",
    "ProbedVideo",
    "Results",
    "Source",
    "Span",
    "SplitReport",
    "Time",
    "VideoInfo",
    "check_file",
    "compare_packets",
    "iter_frames",
    "iter_frames_at",
    "iter_planes",
    "iter_sound",
    "join_spans",
    "keep_scheduling",
    "open_probed",
    "open_source",
    "open_video",
    "picture_html",
    "poster",
    "probe",
    "read_frames",
    "read_gray",
    "sample_planes",
    "source_name",
    "split_exactly",
    "split_video",
    "steady_frames",
    "thumbnail",
    "time_in",
    "write_clip",
    "write_preview",
    "write_thumbnail",
    "write_video",
]
