"""One door to all readers of labelled collections."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from vidkin._base.names import load_attribute
from vidkin.datasets.labelled import LabelledSet
from vidkin.datasets.splits import check_split
from vidkin.errors import InvalidArgumentError

__all__ = ["available_readers", "open_labelled"]

# Reader -> its function; loaded when it is used.
_READERS = {
    "aerial": "vidkin.datasets.readers.aerial:read_aerial",
    "fruit": "vidkin.datasets.readers.fruit:read_fruit",
    "grocery": "vidkin.datasets.readers.grocery:read_grocery",
    "head_pose": "vidkin.datasets.readers.head_pose:read_head_pose",
    "manifest": "vidkin.datasets.readers.listing:read_manifest",
    "omniglot": "vidkin.datasets.readers.omniglot:read_omniglot",
    "pet": "vidkin.datasets.readers.pet:read_pet",
    "photographs": "vidkin.datasets.made.labelled_samples:read_photographs",
    "tree": "vidkin.datasets.readers.tree:read_tree",
    "vb100": "vidkin.datasets.readers.vb100:read_vb100",
    "zappos": "vidkin.datasets.readers.zappos:read_zappos",
}


def available_readers() -> tuple[str, ...]:
    """Names for ``reader`` of :func:`open_labelled`, sorted."""
    return tuple(sorted(_READERS))


def open_labelled(source: str | os.PathLike[str], *, reader: str = "tree", **options: Any) -> LabelledSet:
    """Open a labelled collection from a local folder or file. Nothing is downloaded.

    Args:
        source: The folder (of ``manifest`` the CSV file).
        reader: One of :func:`available_readers`: ``tree`` for any ``category/subcategory/file``, ``manifest`` for a
            CSV, the others for public collections in the layout that they are published in.
        options: What the reader takes beside the folder, see the ``read_*`` functions.

    Returns:
        The collection, with the splits that it comes with or that the options ask for.

    Raises:
        InvalidArgumentError: There is no such reader, or it takes no such option.
        DatasetError: The folder is not as the reader needs it; the message says what is missing and where to get it.
    """
    if reader not in _READERS:
        raise InvalidArgumentError(
            f"no reader is called {reader!r}, allowed are {', '.join(available_readers())}"
        )
    read: Callable[..., LabelledSet] = load_attribute(_READERS[reader])
    allowed = [
        key
        for key, parameter in inspect.signature(read).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise InvalidArgumentError(
            f"reader {reader} takes no option {', '.join(unknown)}; allowed are {', '.join(allowed) or 'none'}"
        )
    labelled = read(source, **options)
    check_split(labelled)
    return labelled
