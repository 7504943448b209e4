"""Registry of readers, used to open labeled collections."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.registry import Registry
from vidkin.datasets.labeled import LabelledSet
from vidkin.datasets.splits import check_split
from vidkin.errors import InvalidArgumentError

_READERS: Registry[Callable[..., LabelledSet]] = Registry(
    "reader",
    {
        "classes": "vidkin.datasets.folders:read_classes",
        "events": "vidkin.datasets.listing:read_events",
        "manifest": "vidkin.datasets.listing:read_manifest",
        "photographs": "vidkin.datasets.labeled_photographs:read_photographs",
        "tree": "vidkin.datasets.folders:read_tree",
    },
    group="vidkin.readers",
    researched=True,
)


def available_readers() -> tuple[str, ...]:
    """Return the names accepted as ``reader`` by :func:`open_labelled`, sorted."""
    return _READERS.usages()


def find_reader(name: str) -> Callable[..., LabelledSet]:
    """Return the function of a reader; its keyword-only parameters are the options of the reader.

    Raises:
        InvalidArgumentError: The reader is unknown.
    """
    read = _READERS.find(name)
    if read is None:
        raise _READERS.unknown(name)
    return read


@check_arguments
def open_labelled(source: PathLike, *, reader: str = "tree", **options: Any) -> LabelledSet:
    """Open a labeled collection from a local folder or file. Nothing is downloaded.

    Args:
        source: The folder, or the CSV file for ``manifest`` and ``events``.
        reader: One of :func:`available_readers`: ``tree`` for any ``category/subcategory/file``, ``classes`` for any
            ``class/file``, ``manifest`` for a CSV of files, ``events`` for a CSV of events in videos; the others read
            public collections in their published layout.
        options: Options of the reader; see the ``read_*`` functions.

    Returns:
        The collection, with its own splits or those requested by the options.

    Raises:
        InvalidArgumentError: The reader or an option is unknown.
        DatasetError: The folder does not have the layout that the reader expects; the message states what is missing
            and where to get it.
    """
    read = find_reader(reader)
    accepted = [
        key for key, parameter in inspect.signature(read).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
    ]
    unknown = sorted(set(options) - set(accepted))
    if unknown:
        raise InvalidArgumentError(
            f"the reader {reader} has no option {', '.join(unknown)}; choose from {', '.join(accepted) or 'none'}"
        )
    labelled = read(source, **options)
    check_split(labelled)
    return labelled
