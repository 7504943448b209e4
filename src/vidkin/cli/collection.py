"""Opening an index for a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vidkin.index import Index

__all__ = ["opened", "opened_for_writing"]


def opened(folder: Path, *, extractor: str | None = None, weights: Path | None = None) -> Index:
    """The index in this folder, for reading, with the extractor that made it; to be used in a ``with``.

    Args:
        folder: Of the index.
        extractor: Only where the model that made it has moved.
        weights: Likewise.

    Raises:
        CollectionNotFoundError: There is none.
        CollectionMismatchError: Another extractor made it.
    """
    from vidkin.index import Index

    return Index.open(folder.expanduser(), extractor=extractor, weights=weights, create=False, read_only=True)


def opened_for_writing(
    folder: Path,
    *,
    extractor: str | None = None,
    weights: Path | None = None,
    whitening: Path | None = None,
    create: bool = False,
) -> Index:
    """The index in this folder, for writing; made if ``create`` and it is not there.

    Raises:
        CollectionNotFoundError: There is none and none is to be made.
        CollectionMismatchError: It was made with another extractor.
    """
    from vidkin.index import Index

    return Index.open(
        folder.expanduser(), extractor=extractor, weights=weights, whitening=whitening, create=create
    )
