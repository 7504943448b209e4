"""What a server is allowed to do and how much it may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vidkin._base.checks import check_at_least, check_positive

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of a server; the defaults fit one person at one computer.

    Attributes:
        token: Token that every request must carry; None requires none, which is only safe on a loopback address.
        hosts: Names, besides the loopback ones, by which browsers may address the server.
        read_only: Refuse whatever changes the index or a file.
        cache_bytes: Thumbnails and previews that are kept on disk, bytes; the least recently used are deleted.
        upload_bytes: Largest file, in bytes, that can be dropped for a search.
        uploads: Dropped files that are kept at a time.
        upload_seconds: Seconds that a dropped file may take to arrive, and that it is kept after it was last used.
        request_seconds: Seconds after which a request is given up, a conversion or a search included.
        preview_seconds: Length of a converted piece of a video that the browser cannot play.
        preview_side: Length in pixels of the shorter side of such a piece.
        groups_a_page: Groups of duplicates on a page.
        experiments: Folders below which trainings and benchmarks are shown.
    """

    token: str | None = None
    hosts: frozenset[str] = frozenset()
    read_only: bool = False
    cache_bytes: int = 2_000_000_000
    upload_bytes: int = 2_000_000_000
    uploads: int = 8
    upload_seconds: float = 1800.0
    request_seconds: float = 300.0
    preview_seconds: float = 10.0
    preview_side: int = 360
    groups_a_page: int = 30
    experiments: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        check_at_least(
            1,
            cache_bytes=self.cache_bytes,
            upload_bytes=self.upload_bytes,
            uploads=self.uploads,
            preview_side=self.preview_side,
            groups_a_page=self.groups_a_page,
        )
        check_positive(
            upload_seconds=self.upload_seconds,
            request_seconds=self.request_seconds,
            preview_seconds=self.preview_seconds,
        )
