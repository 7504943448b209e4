"""Files of a collection: what the system says when one cannot be read or written, told as one of our errors."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin.errors import CollectionDamagedError, CollectionError

if TYPE_CHECKING:
    import torch

__all__ = ["REMEDY", "read_units", "reading", "write_whole", "writing"]

REMEDY = (
    "`vidkin doctor --repair` with this index takes out what is damaged, then `vidkin index` makes it anew"
)

_CAUSES = {
    errno.ENOSPC: "no space is left there",
    errno.EDQUOT: "the quota of disk space is used up",
    errno.EROFS: "it is on a read-only file system",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}
# Lance and Arrow tell the number in their text only.
_TEXTS = {
    "no space left": errno.ENOSPC,
    "quota exceeded": errno.EDQUOT,
    "read-only file system": errno.EROFS,
    "permission denied": errno.EACCES,
}


_SOURCE = re.compile(r",? /\S+\.rs:\d+")
# Lance panics on some damaged files: an exception outside of Python's tree whose class cannot be imported.
_PANIC = "PanicException"


@contextmanager
def reading(place: str | os.PathLike[str], remedy: str = REMEDY) -> Iterator[None]:
    """Whatever a library raises while it reads a file of the collection means that the file is damaged.

    Around calls of libraries only: in our own code a ``ValueError`` is a bug.

    Raises:
        CollectionDamagedError: With the place, the cause and the remedy.
        CollectionError: The system does not let us read there.
    """
    try:
        with _panics_as_errors():
            yield
    except (OSError, ValueError, LookupError) as error:
        if isinstance(error, OSError) and (cause := _refusal(error)) is not None:
            raise CollectionError(f"{os.fspath(place)} cannot be read: {cause}") from error
        raise CollectionDamagedError(f"{os.fspath(place)} is {_damage(error)}; {remedy}") from error


@contextmanager
def writing(place: str | os.PathLike[str], remedy: str = REMEDY) -> Iterator[None]:
    """What the system refuses while a file of the collection is written is told as :class:`CollectionError`.

    A damaged table that is to be written to is told as in :func:`reading`.
    """
    try:
        with _panics_as_errors():
            yield
    except OSError as error:
        cause = _refusal(error)
        if cause is None:
            with reading(place, remedy):
                raise
        raise CollectionError(
            f"{os.fspath(place)} cannot be written to: {cause}. What was finished is kept; the same command goes on "
            "once that is put right"
        ) from error


@contextmanager
def _panics_as_errors() -> Iterator[None]:
    """A panic of Lance becomes an :class:`OSError`; everything else passes."""
    try:
        yield
    except BaseException as error:  # a panic is no Exception, and can be told by its name alone
        if type(error).__name__ != _PANIC:
            raise
        raise OSError(str(error)) from error


def read_units(path: Path, name: str) -> torch.Tensor:
    """One tensor of a safetensors file that holds unit vectors.

    Raises:
        CollectionDamagedError: It is not to be had, or holds numbers that no unit vector has.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    with reading(path):
        try:
            found = load(path.read_bytes())[name]
        except SafetensorError as error:
            raise ValueError(str(error)) from error
        if not bool((found.float().abs() <= 1.01).all()):
            raise ValueError("its values are none that were written")
        return found


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file of a collection whole or not at all.

    Raises:
        CollectionError: The system does not let us write there.
    """
    partial = path.with_suffix(".partial")
    try:
        with writing(path.parent):
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _refusal(error: OSError) -> str | None:
    """Why the system did not do it, if that is what happened."""
    text = str(error).lower()
    number = error.errno if error.errno in _CAUSES else None
    return _CAUSES.get(number or next((code for part, code in _TEXTS.items() if part in text), 0))


def _damage(error: Exception) -> str:
    text = str(error).strip()
    if isinstance(error, FileNotFoundError) or "not found" in text.lower():
        return "missing or incomplete"
    # Libraries tell where in their own source it happened; what comes before is what a reader can use.
    said = _SOURCE.split(text, maxsplit=1)[0].partition("\n")[0][:160]
    return f"damaged ({said or type(error).__name__})"
