"""Read, write and hash the files of an index, with errors that name the file, the cause and a remedy."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vidkin._base.arguments import check_arguments
from vidkin._base.files import open_regular_file, read_at
from vidkin.errors import CollectionDamagedError, CollectionError, CollectionLockedError
from vidkin.index.storage.place import Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REMEDY = "run `vidkin doctor --repair` on this index to remove the damaged part, then `vidkin index` to rebuild it"

_CAUSES = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "disk quota exceeded",
    errno.EROFS: "read-only file system",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}

# Lance and Arrow report these errors only in the text of their messages.
_TEXTS = {
    "no space left": errno.ENOSPC,
    "quota exceeded": errno.EDQUOT,
    "read-only file system": errno.EROFS,
    "permission denied": errno.EACCES,
}

_SOURCE = re.compile(r",? /\S+\.rs:\d+")

# Lance's message for a commit that was fenced off by another writer.
CONFLICT = "Incompatible transaction"

# Function that derives from the text of an error why access was refused; None if unknown.
Explain = Callable[[str], str | None]

# Lance panics on some damaged files; the resulting BaseException has a class that cannot be imported.
_PANIC = "PanicException"


@contextmanager
def reading(
    place: str | os.PathLike[str], remedy: str = REMEDY, explain: Explain = lambda text: None
) -> Iterator[None]:
    """Convert exceptions of libraries that read a file of the index to a :class:`CollectionError`.

    Use it only around calls into libraries; in vidkin's own code, a ``ValueError`` is a bug.

    Args:
        place: The file or folder, for the message.
        remedy: Advice to the user if the file is damaged.
        explain: Function that explains the text of an error, see :meth:`Place.explain`.

    Raises:
        CollectionDamagedError: The file is damaged; the message includes the cause and the remedy.
        CollectionError: The system refuses to read the file.
    """
    try:
        with _panics_as_errors():
            yield
    except (OSError, ValueError, LookupError, RecursionError) as error:
        if isinstance(error, OSError) and (cause := _refusal(error, explain)) is not None:
            raise CollectionError(f"{os.fspath(place)}: cannot be read ({cause})") from error
        raise CollectionDamagedError(f"{os.fspath(place)} is {_damage(error)}; {remedy}") from error


@contextmanager
def writing(
    place: str | os.PathLike[str], remedy: str = REMEDY, explain: Explain = lambda text: None
) -> Iterator[None]:
    """Convert failures to write a file of the index to a :class:`CollectionError`.

    If a table turns out to be damaged while writing, the error is the same as in :func:`reading`.
    """
    try:
        with _panics_as_errors():
            yield
    except OSError as error:
        if CONFLICT in str(error):
            raise CollectionLockedError(
                f"{os.fspath(place)}: another process has taken over writing; finished work is saved: run the same "
                "command again to resume"
            ) from error
        cause = _refusal(error, explain)
        if cause is None:
            with reading(place, remedy, explain):
                raise
        raise CollectionError(
            f"{os.fspath(place)}: cannot be written ({cause}); finished work is saved: fix the cause and run the "
            "same command again to resume"
        ) from error


@contextmanager
def _panics_as_errors() -> Iterator[None]:
    """Convert a panic of Lance to an :class:`OSError`; other exceptions pass through."""
    try:
        yield
    except BaseException as error:  # a panic is not an Exception, and can only be identified by name
        if type(error).__name__ != _PANIC:
            raise
        raise OSError(str(error)) from error


def read_unit_vectors(place: Place, file: str, name: str) -> NDArray[np.floating] | None:
    """Read an array of unit vectors from a safetensors file; None if the file is missing.

    Raises:
        CollectionDamagedError: The file is damaged or contains values that cannot occur in unit vectors.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with reading(place.address(file)):
        content = place.read(file)
        if content is None:
            return None
        try:
            vectors: NDArray[np.floating] = load(content)[name]
        except SafetensorError as error:
            raise ValueError(str(error)) from error
        if not (abs(vectors) <= 1.01).all():
            raise ValueError("the stored values are corrupted")
        return vectors


def write_unit_vectors(place: Place, file: str, name: str, vectors: NDArray[np.floating]) -> None:
    """Write unit vectors for :func:`read_unit_vectors`, in half precision and atomically."""
    from safetensors.numpy import save

    # safetensors writes raw memory, so the array must be contiguous.
    write_atomically(place, file, save({name: vectors.astype("float16", order="C")}))


def write_atomically(place: Place, name: str, content: bytes) -> None:
    """Write a small file of an index, atomically.

    Raises:
        CollectionError: The system refuses to write the file.
    """
    with writing(place.uri):
        place.write(name, content)


def _refusal(error: OSError, explain: Explain) -> str | None:
    """Return why the system or the storage refused access; None for other errors."""
    text = str(error).lower()
    if (cause := explain(text)) is not None:
        return cause
    number = error.errno if error.errno in _CAUSES else None
    return _CAUSES.get(number or next((code for part, code in _TEXTS.items() if part in text), 0))


def _damage(error: Exception) -> str:
    text = str(error).strip()
    if isinstance(error, FileNotFoundError) or "not found" in text.lower():
        return "missing or incomplete"
    # Libraries append a location in their source code; only the text before it is useful to users.
    cause = _SOURCE.split(text, maxsplit=1)[0].partition("\n")[0][:160]
    return f"damaged ({cause or type(error).__name__})"


_CHUNK = 1 << 20

# Files above this size are hashed by three samples if the bit rate is variable: encoders practically never produce two
# files of equal size that differ only between the samples.
_MAX_SAMPLED = 3 * _CHUNK

# Codecs with a variable bit rate. With others (raw, DV, Y4M, constant-rate transport streams), different films may have
# exactly the same size.
_VARIABLE_CODECS = (
    b"avc1", b"avc3", b"hvc1", b"hev1", b"vp08", b"vp09", b"av01", b"mp4v",  # MP4, QuickTime
    b"V_MPEG4/", b"V_MPEGH/", b"V_VP8", b"V_VP9", b"V_AV1",  # Matroska, WebM
    b"H264", b"h264", b"X264", b"x264", b"XVID", b"xvid", b"DIVX", b"divx", b"DX50", b"FMP4",  # AVI
    b"W\0M\0V\x003\0", b"WMV1", b"WMV2", b"WMV3", b"WVC1",  # ASF
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContentHash:
    """A hash that identifies the content of a file.

    Attributes:
        text: The hash as 32 hexadecimal digits.
        is_whole: Whether the hash covers all bytes, so that equal hashes mean equal files. Otherwise, a file with the
            same hash can be crafted, so call :func:`has_same_bytes` before relying on it.
    """

    text: str
    is_whole: bool


def content_hash(path: str, size: int, *, whole: bool = False) -> ContentHash:
    """Hash the content of a file: BLAKE2b of its size and all its bytes.

    For videos larger than 3 MiB with a variable bit rate, only the first, middle and last MiB are read. Files of the
    same size that differ only in between would have the same hash, but encoders do not produce such files.

    Args:
        path: A regular file; pipes and devices are refused.
        size: Size of the file in bytes; no more are read.
        whole: Whether to read all bytes in any case.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with open_regular_file(path) as file:
        offsets = (0, (size - _CHUNK) // 2, size - _CHUNK)
        if size > _MAX_SAMPLED and not whole:
            parts = [_read(file.fileno(), offset, _CHUNK) for offset in offsets]
            if any(name in part for part in (parts[0], parts[-1]) for name in _VARIABLE_CODECS):
                for part in parts:
                    digest.update(part)
                return ContentHash(digest.hexdigest(), is_whole=False)
        for offset in range(0, size, _CHUNK):
            digest.update(_read(file.fileno(), offset, min(_CHUNK, size - offset)))
    return ContentHash(digest.hexdigest(), is_whole=True)


def has_same_bytes(path: str, other: str) -> bool:
    """Whether two regular files are byte-identical; False if either cannot be read."""
    try:
        with open_regular_file(path) as first, open_regular_file(other) as second:
            states = os.fstat(first.fileno()), os.fstat(second.fileno())
            if os.path.samestat(*states):
                return True
            size = states[0].st_size
            if size != states[1].st_size:
                return False
            return all(
                _read(first.fileno(), offset, _CHUNK) == _read(second.fileno(), offset, _CHUNK)
                for offset in range(0, size, _CHUNK)
            )
    except OSError:
        return False


def is_same_file(path: str, other: str) -> bool:
    """Whether two paths refer to the same file or folder; False if either cannot be accessed."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


class NamedFolders:
    """Finds which of these folders contains a path, including on case-insensitive file systems.

    Args:
        folders: Absolute paths.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        # Outermost first.
        self._folders = {os.path.join(folder, ""): folder for folder in sorted(folders, key=len)}
        self._folded = {inside.casefold(): folder for inside, folder in self._folders.items()}
        self._is_same: dict[tuple[str, str], bool] = {}

    def holding(self, path: str) -> str | None:
        """Return the outermost folder that contains the path, spelled as in the path; None if there is none."""
        for inside, folder in self._folders.items():
            if path.startswith(inside):
                return folder
        for inside, folder in self._folded.items():
            if path.casefold().startswith(inside):
                spelled, depth = path, folder.rstrip(os.sep).count(os.sep)
                while spelled.count(os.sep) > depth and os.path.dirname(spelled) != spelled:
                    spelled = os.path.dirname(spelled)
                if (spelled, folder) not in self._is_same:
                    self._is_same[spelled, folder] = is_same_file(spelled, folder)
                if self._is_same[spelled, folder]:
                    return spelled
        return None


@check_arguments
def is_gone(path: str) -> bool:
    """Whether a path certainly no longer exists; False if this is uncertain (the folder is unreadable, or the encoding
    of this process cannot represent the name)."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _read(descriptor: int, offset: int, count: int) -> bytes:
    """Read ``count`` bytes at ``offset``; returns fewer only at the end of the file."""
    parts = []
    while count > 0 and (part := read_at(descriptor, count, offset)):
        parts.append(part)
        offset += len(part)
        count -= len(part)
    return b"".join(parts)
