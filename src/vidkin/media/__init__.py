"""Room media: probe, decode, encode, thumbnails, edits."""

from vidkin.media.frames import Frames

__all__ = ["Frames"]
