"""Files that belong to a video: subtitles, descriptions, chapters, images and sidecar files with the same name."""

from __future__ import annotations

import bisect
import itertools
import os
import re
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin._base.moving_pictures import find_motion

_SUBTITLES = "ass idx lrc mpl2 sbv scc smi srt ssa stl sub sup ttml dfxp usf vtt"
_DESCRIPTIONS = "aae bif cue description edl info json log md5 nfo pbf sfv sha1 sha256 txt xml xmp yaml yml"
_IMAGES = "jpg jpeg png webp tbn thm"
# Part between the name of the video and the extension of a subtitle file: `en`, `pt-BR`, `zh_Hans`, `forced`, `2`.
_LANGUAGE = r"(?:[a-z]{2,3}(?:[-_][a-z0-9]{2,8})*|forced|foreign|sdh|cc|hi|default|full|signs|commentary|auto|\d{1,2})"
# Suffixes that media centers give to image names, and downloaders to metadata files.
_IMAGE_ROLES = "poster fanart thumb thumbnail banner landscape logo clearlogo clearart keyart backdrop cover disc"
_METADATA_KINDS = r"chapters?|info|live_chat|annotations|meta|metadata|supplemental-metadata|comments|comskip"


def _alternatives(words: str) -> str:
    return "|".join(words.split())


# What may follow the name of a video without its extension, and what may follow the whole name.
_AFTER_STEM = re.compile(
    rf"(?:(?:\.{_LANGUAGE}){{0,3}}\.(?:{_alternatives(_SUBTITLES)})"
    rf"|(?:[.-](?:{_METADATA_KINDS}))?\.(?:{_alternatives(_DESCRIPTIONS)}|ffmetadata|mks)"
    rf"|(?:-(?:{_alternatives(_IMAGE_ROLES)})\d{{0,2}})?\.(?:{_alternatives(_IMAGES)}))",
    re.IGNORECASE,
)
_AFTER_NAME = re.compile(
    rf"\.(?:(?:{_METADATA_KINDS})\.)?"
    rf"(?:{_alternatives(_DESCRIPTIONS)}|{_alternatives(_IMAGES)}|{_alternatives(_SUBTITLES)})",
    re.IGNORECASE,
)
# Only cameras write these formats; a JPEG may instead be a still from the video.
_PHOTOGRAPHS = frozenset((".heic", ".heif", ".hif", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"))
_MAYBE_PHOTOGRAPHS = frozenset((".jpg", ".jpeg"))
# Maximum duration in seconds of the movie in a live photo; usually, it is about three seconds.
_MAX_MOVIE_SECONDS = 10.0
# EXIF tags: Make, Model, and the pointer to the Exif IFD, which holds the exposure.
_CAMERA_TAGS = (0x010F, 0x0110, 0x8769)
# The listing of a folder is cached only if the folder last changed at least this many nanoseconds ago.
_TICK = 2_000_000_000
# Limit for folders with many files that look like companions.
MAX_COMPANIONS = 100
"""Maximum number of companions per video."""


def find_companions(path: str) -> tuple[str, ...]:
    """Find the files next to a video that belong to it and to no other video in the folder; sorted.

    Such a file has the name of the video and the ending of subtitles (optionally with a language, such as
    ``film.en.srt``), of a description (``film.nfo``, ``film.xmp``, ``film.mp4.xmp``, ``film.info.json``,
    ``film.chapters.txt``) or of an image (``film-poster.jpg``, ``film.tbn``). If the video is the movie of a live
    photo, the photograph is not a companion. Symbolic links are not companions either.

    Args:
        path: The video, which need not exist anymore.
    """
    folder, name = os.path.split(path)
    if _is_image(name):
        return ()
    listing = _list(folder)
    stem = os.path.splitext(name)[0]
    # Names that start with the stem are adjacent in the sorted listing.
    start = bisect.bisect_left(listing.names, stem)
    found = []
    for other in itertools.takewhile(lambda other: other.startswith(stem), listing.names[start:]):
        if belongs_to(other, name) and not listing.owners(other, besides=name):
            found.append(os.path.join(folder, other))
    return tuple(item for item in found if _is_file(item) and not _is_photograph(item))[:MAX_COMPANIONS]


def find_other_owner(path: str, video: str) -> str:
    """Return the name of another video in the folder to which a companion of ``video`` also belongs, or ""."""
    folder, name = os.path.split(path)
    return next(iter(_Listing.of(folder).owners(name, besides=os.path.basename(video))), "")


def belongs_to(name: str, video: str) -> bool:
    """Whether a file belongs to a video in the same folder, judging only by the names."""
    if is_video(name) or name == video:
        return False
    stem = os.path.splitext(video)[0]
    for start, pattern in ((video, _AFTER_NAME), (stem, _AFTER_STEM)):
        if name.startswith(start) and pattern.fullmatch(name, len(start)):
            return True
    return False


def is_video(name: str) -> bool:
    """Whether a file name has a video extension."""
    return os.path.splitext(name)[1].lower() in VIDEO_EXTENSIONS


def _is_image(name: str) -> bool:
    """Whether a group member is itself an image, because an index can contain both."""
    return os.path.splitext(name)[1].lower() in IMAGE_EXTENSIONS | _PHOTOGRAPHS


def find_photograph(path: str, duration: float) -> str:
    """Find the photograph that a video belongs to (as in a Live Photo or a motion photo); empty if there is none.

    The photograph has the same name and is in the same folder. A JPEG counts if a camera wrote it, or if the video is a
    ``.mov`` or no longer than live photos are; otherwise it is a still from the video.

    Args:
        path: The video.
        duration: Duration of the video in seconds.
    """
    folder, name = os.path.split(path)
    if _is_image(name):
        # A motion photo is a photograph and a movie in one file; only the movie is compared.
        return path if find_motion(path) is not None else ""
    stem, ending = os.path.splitext(name)
    is_movie = duration <= _MAX_MOVIE_SECONDS or ending.lower() == ".mov"
    for other in _list(folder).by_stem.get(stem, ()):
        beside = os.path.join(folder, other)
        kind = os.path.splitext(other)[1].lower()
        is_sure = kind in _PHOTOGRAPHS or (kind in _MAYBE_PHOTOGRAPHS and is_movie)
        if _is_file(beside) and (is_sure or _is_photograph(beside)):
            return beside
    return ""


def _is_photograph(path: str) -> bool:
    """Whether a JPEG says that a camera wrote it."""
    if os.path.splitext(path)[1].lower() not in _MAYBE_PHOTOGRAPHS:
        return False
    from PIL import Image

    # Pillow raises many kinds of errors for damaged files; an unreadable file does not count as written by a camera.
    with (
        suppress(OSError, ValueError, SyntaxError, Image.DecompressionBombError),
        Image.open(path, formats=["JPEG"]) as image,
    ):
        exif = image.getexif()
        return any(number in exif for number in _CAMERA_TAGS)
    return False


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Listing:
    """The sorted names in a folder, and the names by stem."""

    names: tuple[str, ...]
    by_stem: dict[str, list[str]]

    @classmethod
    def of(cls, folder: str) -> _Listing:
        try:
            names = tuple(sorted(os.listdir(folder or ".")))
        except OSError:
            names = ()
        by_stem: dict[str, list[str]] = {}
        for name in names:
            by_stem.setdefault(os.path.splitext(name)[0], []).append(name)
        return cls(names, by_stem)

    def owners(self, name: str, *, besides: str) -> list[str]:
        """Return the videos to which a file belongs, except ``besides``."""
        stems = (name[: mark.start()] for mark in re.finditer(r"[.-]", name))
        videos = (other for stem in stems for other in self.by_stem.get(stem, ()) if is_video(other))
        return [video for video in videos if video != besides and belongs_to(name, video)]


def _list(folder: str) -> _Listing:
    """Return the names in a folder, cached if the folder has not changed recently."""
    try:
        changed = os.stat(folder or ".").st_mtime_ns
    except OSError:
        return _Listing((), {})
    # Two changes within one tick of the clock cannot be distinguished.
    is_settled = time.time_ns() - changed > _TICK
    return _list_once(folder, changed) if is_settled else _Listing.of(folder)


@lru_cache(maxsize=16)
def _list_once(folder: str, changed: int) -> _Listing:
    return _Listing.of(folder)
