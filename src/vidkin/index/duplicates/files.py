"""Files of an index that exist on disk now; several names of one file count once."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass

from vidkin.index.records import VideoRecord

__all__ = ["FileRecord", "content_of", "present_files"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of an index with all its names.

    Attributes:
        record: Record of the file, under the first of its names.
        links: Other names of the same file that are in the index.
    """

    record: VideoRecord
    links: tuple[str, ...] = ()


def content_of(record: VideoRecord) -> str:
    """Identifier of the content of a file; files with the same bytes have the same."""
    return record.content_hash or f"video {record.id}"


def present_files(records: Iterable[VideoRecord]) -> list[FileRecord]:
    """Files with features that exist, each once; warns of those that are gone.

    Hard links and symbolic links are names of a file, not copies; names of symbolic links come last.
    """
    names: dict[tuple[int, int], list[VideoRecord]] = {}
    gone = []
    for record in records:
        if record.status != "ok" or record.frames == 0:
            continue
        try:
            status = os.stat(record.path)
        except OSError:
            gone.append(record.path)
            continue
        names.setdefault((status.st_dev, status.st_ino), []).append(record)
    if gone:
        _logger.warning(
            "%d videos are left out because their files are gone, the first is %s (`vidkin index PATH... --prune` "
            "forgets them)",
            len(gone),
            gone[0],
        )
    files = []
    for same in names.values():
        first, *others = sorted(same, key=lambda record: (os.path.islink(record.path), record.path))
        files.append(FileRecord(first, tuple(record.path for record in others)))
    return sorted(files, key=lambda file: file.record.path)
