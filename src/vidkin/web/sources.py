"""What can be played and searched for: a video of the index, or a dropped file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from vidkin._base.extensions import IMAGE_EXTENSIONS
from vidkin._base.regular_files import open_regular_file
from vidkin.index import VideoRecord
from vidkin.media import write_clip, write_thumbnail
from vidkin.web.files import open_record
from vidkin.web.site import Site, base_name

__all__ = ["Source", "SourceItem", "make_preview", "make_thumbnail", "open_source", "source_item"]

# Where in a video its picture is from, as a share: the begin is often black.
_SHARE = 1 / 3
# At most one picture is made per tenth of a second, so that sliding does not fill the disk.
_STEPS_A_SECOND = 10
_SMALL, _LARGE = 180, 720
_CRF = 27


@dataclass(frozen=True, slots=True)
class Source:
    """A file that pages show.

    Attributes:
        path: Path of the file.
        key: Names its content, for the cache.
        duration: Duration in seconds.
        record: Record in the index; None for a dropped file.
    """

    path: str
    key: str
    duration: float
    record: VideoRecord | None = None

    def open(self) -> BinaryIO:
        """The file, open for reading, unless it was replaced.

        Raises:
            MediaError: It is not.
        """
        return open_regular_file(self.path) if self.record is None else open_record(self.record)


@dataclass(frozen=True, slots=True)
class SourceItem:
    """What a player needs of a source.

    Attributes:
        address: Beginning of its addresses: ``/file``, ``/thumbnail`` and ``/preview`` follow.
        key: How searches name it: ``{"video": 12}`` or ``{"upload": "..."}``.
        name: Name of the file in printable form.
        duration: Duration in seconds.
        width, height: Pixels as displayed.
        still: Whether it is a still image.
    """

    address: str
    key: dict[str, int | str]
    name: str
    duration: float
    width: int
    height: int
    still: bool


def open_source(site: Site, *, video: int | None = None, upload: str | None = None) -> Source:
    """The video of a number, or the dropped file of an id.

    Raises:
        NotIndexedError: There is no such video.
        InvalidArgumentError: The file does not exist.
    """
    if upload is not None:
        dropped = site.uploads.get(upload)
        return Source(
            str(dropped.path), f"upload\0{dropped.id}", 0.0 if dropped.info.still else dropped.info.duration
        )
    record = site.collection.record(-1 if video is None else video)
    return Source(record.path, f"{record.path}\0{record.size}\0{record.mtime_ns}", record.duration, record)


def source_item(site: Site, *, video: int | None = None, upload: str | None = None) -> SourceItem:
    """What a player needs; errors as :func:`open_source`."""
    if upload is not None:
        dropped = site.uploads.get(upload)
        info = dropped.info
        length = 0.0 if info.still else info.duration
        return SourceItem(
            f"/uploads/{dropped.id}",
            {"upload": dropped.id},
            dropped.name,
            length,
            info.width,
            info.height,
            info.still,
        )
    record = site.collection.record(-1 if video is None else video)
    return SourceItem(
        f"/videos/{record.id}",
        {"video": record.id},
        base_name(record.path),
        record.duration,
        record.width,
        record.height,
        Path(record.path).suffix.lower() in IMAGE_EXTENSIONS,
    )


def make_thumbnail(site: Site, source: Source, time: float | None, side: int) -> bytes:
    """A picture in WebP.

    Args:
        site: Keeps it.
        source: The video or dropped file.
        time: Time in seconds; default: a third of the duration.
        side: Pixels at the shorter side; rounded up to one of two sizes.

    Raises:
        MediaError: The file cannot be read.
    """
    source.open().close()  # a file other than the indexed one is not shown either
    seconds = source.duration * _SHARE if time is None else min(time, max(source.duration - 0.1, 0.0))
    seconds = int(seconds * _STEPS_A_SECOND) / _STEPS_A_SECOND
    side = _SMALL if side <= _SMALL else _LARGE
    path = site.cache.get(
        f"{source.key}\0{seconds}\0{side}",
        ".webp",
        lambda partial: write_thumbnail(source.path, partial, seconds, short_side=side, threads=1),
    )
    return path.read_bytes()


def make_preview(site: Site, source: Source, piece: int) -> Path:
    """A piece of a video that any browser plays: H.264 in MP4, small, without sound.

    Args:
        site: Keeps it.
        source: The video or dropped file.
        piece: Number of the piece, each ``preview_seconds`` long.

    Raises:
        MediaError: The file cannot be read, or ends before the piece.
    """
    source.open().close()
    seconds, side = site.settings.preview_seconds, site.settings.preview_side
    start = piece * seconds
    return site.cache.get(
        f"{source.key}\0preview\0{start}\0{seconds}\0{side}",
        ".mp4",
        lambda partial: _write(source.path, partial, start, start + seconds, side),
    )


def _write(path: str, partial: Path, start: float, end: float, side: int) -> None:
    write_clip(path, partial, start=start, end=end, crf=_CRF, short_side=side, from_screen=True, threads=1)
