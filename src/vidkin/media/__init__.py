"""Room media: probe, decode, encode, thumbnails, edits."""

from vidkin.media.decode import iter_frames, read_frames, thumbnail
from vidkin.media.edits import (
    EDITS,
    Edit,
    EditedSegment,
    EditPlan,
    EditResult,
    EditSetting,
    TimeMap,
    apply_edit,
)
from vidkin.media.encode import write_clip, write_thumbnail, write_video
from vidkin.media.frames import Frames
from vidkin.media.probe import VideoInfo, probe

__all__ = [
    "EDITS",
    "Edit",
    "EditPlan",
    "EditResult",
    "EditSetting",
    "EditedSegment",
    "Frames",
    "TimeMap",
    "VideoInfo",
    "apply_edit",
    "iter_frames",
    "probe",
    "read_frames",
    "thumbnail",
    "write_clip",
    "write_thumbnail",
    "write_video",
]
