"""Room media: probe, decode, encode, thumbnails, edits."""

from vidkin.media.decode import iter_frames, read_frames, thumbnail
from vidkin.media.encode import write_clip, write_thumbnail, write_video
from vidkin.media.frames import Frames
from vidkin.media.probe import VideoInfo, probe

__all__ = [
    "Frames",
    "VideoInfo",
    "iter_frames",
    "probe",
    "read_frames",
    "thumbnail",
    "write_clip",
    "write_thumbnail",
    "write_video",
]
