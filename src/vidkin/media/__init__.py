"""Times, probing, decoding, encoding, edits and splitting of video files.

What every reader of frames needs is imported here; the rest is imported when it is first used.
"""

from typing import TYPE_CHECKING

from vidkin._base.names import lazy_names
from vidkin.media.decode import iter_frames, iter_frames_at, read_frames, thumbnail
from vidkin.media.frames import Frames
from vidkin.media.probe import ProbedVideo, VideoInfo, open_probed, probe
from vidkin.media.time import Time

if TYPE_CHECKING:
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
    from vidkin.media.matroska import find_matroska_damage
    from vidkin.media.planes import PLANE_HEIGHT, PLANE_WIDTH, FramePlanes, iter_planes
    from vidkin.media.splitting.at_keys import split_video
    from vidkin.media.splitting.exact import Span, split_exactly
    from vidkin.media.splitting.pieces import Piece, SplitReport
else:
    __getattr__ = lazy_names(
        __name__,
        "vidkin.media.editing.apply:apply_edit",
        "vidkin.media.editing.edits:Edit",
        "vidkin.media.editing.edits:EditFamily",
        "vidkin.media.editing.edits:EditPlan",
        "vidkin.media.editing.edits:EditResult",
        "vidkin.media.editing.edits:EditedSegment",
        "vidkin.media.editing.edits:TimeMap",
        "vidkin.media.editing.named_edits:EDITS",
        "vidkin.media.editing.picture_edits:EditSetting",
        "vidkin.media.editing.steady_frames:steady_frames",
        "vidkin.media.encode:write_clip",
        "vidkin.media.encode:write_thumbnail",
        "vidkin.media.encode:write_video",
        "vidkin.media.matroska:find_matroska_damage",
        "vidkin.media.planes:FramePlanes",
        "vidkin.media.planes:PLANE_HEIGHT",
        "vidkin.media.planes:PLANE_WIDTH",
        "vidkin.media.planes:iter_planes",
        "vidkin.media.splitting.at_keys:split_video",
        "vidkin.media.splitting.exact:Span",
        "vidkin.media.splitting.exact:split_exactly",
        "vidkin.media.splitting.pieces:Piece",
        "vidkin.media.splitting.pieces:SplitReport",
    )

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
    "Time",
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
