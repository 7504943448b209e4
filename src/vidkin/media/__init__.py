"""Times, probing, decoding, encoding and splitting of video files.

Everything is imported when it is first used: times need no decoder.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.media.checking import DecodingError, FileCheck, check_file
    from vidkin.media.decode import iter_frames, iter_frames_at, read_frames, thumbnail
    from vidkin.media.encode import write_clip, write_thumbnail, write_video
    from vidkin.media.frames import Frames, Time
    from vidkin.media.joining import join_spans
    from vidkin.media.pieces import Piece, SplitReport
    from vidkin.media.planes import PLANE_HEIGHT, PLANE_WIDTH, FramePlanes, iter_planes
    from vidkin.media.probing import ProbedVideo, VideoInfo, open_probed, probe, time_in
    from vidkin.media.split_at_keys import split_video
    from vidkin.media.split_exactly import Span, split_exactly
    from vidkin.media.steady import steady_frames
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "PLANE_HEIGHT",
    "PLANE_WIDTH",
    "DecodingError",
    "FileCheck",
    "FramePlanes",
    "Frames",
    "Piece",
    "ProbedVideo",
    "Span",
    "SplitReport",
    "Time",
    "VideoInfo",
    "check_file",
    "iter_frames",
    "iter_frames_at",
    "iter_planes",
    "join_spans",
    "open_probed",
    "probe",
    "read_frames",
    "split_exactly",
    "split_video",
    "steady_frames",
    "thumbnail",
    "time_in",
    "write_clip",
    "write_thumbnail",
    "write_video",
]
