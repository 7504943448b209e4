"""Which files are videos and which are images, by the extension of their names."""

from __future__ import annotations

__all__ = ["IMAGE_EXTENSIONS", "VIDEO_EXTENSIONS"]

# fmt: off
VIDEO_EXTENSIONS = frozenset({
    ".264", ".265", ".3g2", ".3gp", ".amv", ".asf", ".avi", ".divx", ".dv", ".f4v", ".flv", ".gif", ".gxf",
    ".h264", ".h265", ".hevc", ".insv", ".ivf", ".lrv", ".m1v", ".m2t", ".m2ts", ".m2v", ".m4v", ".mjpeg",
    ".mjpg", ".mkv", ".mod", ".mov", ".mp4", ".mpe", ".mpeg", ".mpg", ".mpv", ".mts", ".mxf", ".nsv",
    ".nut", ".obu", ".ogm", ".ogv", ".qt", ".rm", ".rmvb", ".tod", ".ts", ".vob", ".webm", ".wmv",
    ".wtv", ".y4m",
})
# fmt: on
"""Extensions of video files, in lower case. A file named explicitly may have any extension."""

IMAGE_EXTENSIONS = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
"""Extensions of image files, in lower case."""
