"""Probe, decode, encode, thumbnails, edits."""

from vidkin.media.decode import iter_frames, iter_frames_at, read_frames, thumbnail
from vidkin.media.editing.apply import apply_edit
from vidkin.media.editing.edits import (
    Edit,
    EditedSegment,
    EditFamily,
    EditPlan,
    EditResult,
    TimeMap,
)
from vidkin.media.editing.named_edits import EDITS
from vidkin.media.editing.picture_edits import EditSetting
from vidkin.media.editing.steady_frames import steady_frames
from vidkin.media.encode import write_clip, write_thumbnail, write_video
from vidkin.media.frames import Frames
from vidkin.media.matroska import find_matroska_damage
from vidkin.media.planes import PLANE_HEIGHT, PLANE_WIDTH, FramePlanes, iter_planes
from vidkin.media.probe import ProbedVideo, VideoInfo, open_probed, probe
from vidkin.media.splitting.at_keys import split_video
from vidkin.media.splitting.exact import Span, split_exactly
from vidkin.media.splitting.pieces import Piece, SplitReport

__all__ = [
    "EDITS",
    "PLANE_HEIGHT",
    "PLANE_WIDTH",
    "Edit",
    "EditFamily",
    "EditPlan",
    "EditResult",
    "EditSetting",
    "EditedSegment",
    "FramePlanes",
    "Frames",
    "Piece",
    "ProbedVideo",
    "Span",
    "SplitReport",
    "TimeMap",
    "VideoInfo",
    "apply_edit",
    "find_matroska_damage",
    "iter_frames",
    "iter_frames_at",
    "iter_planes",
    "open_probed",
    "probe",
    "read_frames",
    "split_exactly",
    "split_video",
    "steady_frames",
    "thumbnail",
    "write_clip",
    "write_thumbnail",
    "write_video",
]
