"""Read and write the files of an index, with errors that name the file, the cause and a remedy."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vidkin.errors import CollectionDamagedError, CollectionError, CollectionLockedError
from vidkin.index.storage.place import Place

if TYPE_CHECKING:
    import torch

__all__ = ["CONFLICT", "REMEDY", "describe_refusal", "read_units", "reading", "write_whole", "writing"]

REMEDY = "run `vidkin doctor --repair` with this index to remove the damaged part, then `vidkin index` to rebuild it"

_CAUSES = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "disk quota used up",
    errno.EROFS: "read-only file system",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}

# Lance and Arrow state the number in their text only.
_TEXTS = {
    "no space left": errno.ENOSPC,
    "quota exceeded": errno.EDQUOT,
    "read-only file system": errno.EROFS,
    "permission denied": errno.EACCES,
}

_SOURCE = re.compile(r",? /\S+\.rs:\d+")

# Lance's message for a commit that another writer has fenced off.
CONFLICT = "Incompatible transaction"

# Lance panics on some damaged files: an exception outside Python's hierarchy whose class cannot be imported.
_PANIC = "PanicException"


@contextmanager
def reading(place: str | os.PathLike[str], remedy: str = REMEDY) -> Iterator[None]:
    """Turn any exception of a library that reads a file of the index into a :class:`CollectionError`.

    Only for calls into libraries: in our own code a ``ValueError`` is a bug.

    Args:
        place: The file or folder, for the message.
        remedy: Advice to the user if it is damaged.

    Raises:
        CollectionDamagedError: With the place, the cause and the remedy.
        CollectionError: The system refuses to read there.
    """
    try:
        with _panics_as_errors():
            yield
    except (OSError, ValueError, LookupError, RecursionError) as error:
        if isinstance(error, OSError) and (cause := _refusal(error)) is not None:
            raise CollectionError(f"{os.fspath(place)}: cannot be read ({cause})") from error
        raise CollectionDamagedError(f"{os.fspath(place)} is {_damage(error)}; {remedy}") from error


@contextmanager
def writing(place: str | os.PathLike[str], remedy: str = REMEDY) -> Iterator[None]:
    """Turn a failure of the system to write a file of the index into a :class:`CollectionError`.

    A table that turns out to be damaged during writing raises the same error as in :func:`reading`.
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
        cause = _refusal(error)
        if cause is None:
            with reading(place, remedy):
                raise
        raise CollectionError(
            f"{os.fspath(place)}: cannot be written ({cause}); finished work is saved: fix the cause and run the same "
            "command again to resume"
        ) from error


@contextmanager
def _panics_as_errors() -> Iterator[None]:
    """Turn a panic of Lance into an :class:`OSError`; other exceptions pass through."""
    try:
        yield
    except BaseException as error:  # a panic is not an Exception, and only its name identifies it
        if type(error).__name__ != _PANIC:
            raise
        raise OSError(str(error)) from error


def read_units(place: Place, file: str, name: str) -> torch.Tensor | None:
    """Read one tensor of unit vectors from a safetensors file; None if the file is missing.

    Raises:
        CollectionDamagedError: It is not what was written, or holds numbers that no unit vector has.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    with reading(place.address(file)):
        content = place.read(file)
        if content is None:
            return None
        try:
            vectors = load(content)[name]
        except SafetensorError as error:
            raise ValueError(str(error)) from error
        if not bool((vectors.float().abs() <= 1.01).all()):
            raise ValueError("its values are not what was written")
        return vectors


def write_whole(place: Place, name: str, content: bytes) -> None:
    """Write a small file of an index whole or not at all.

    Raises:
        CollectionError: The system refuses to write there.
    """
    with writing(place.uri):
        place.write(name, content)


def _refusal(error: OSError) -> str | None:
    """The reason why the system refused, or None for other errors."""
    text = str(error).lower()
    if (cause := describe_refusal(text)) is not None:
        return cause
    number = error.errno if error.errno in _CAUSES else None
    return _CAUSES.get(number or next((code for part, code in _TEXTS.items() if part in text), 0))


def _damage(error: Exception) -> str:
    text = str(error).strip()
    if isinstance(error, FileNotFoundError) or "not found" in text.lower():
        return "missing or incomplete"
    # Libraries append the place in their own source; only the text before it helps the reader.
    cause = _SOURCE.split(text, maxsplit=1)[0].partition("\n")[0][:160]
    return f"damaged ({cause or type(error).__name__})"


# Errors of object storage: messages of client libraries, turned into a cause and a remedy in one line.


_CREDENTIALS = (
    "set the credentials in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_REGION) for s3://, "
    "GOOGLE_APPLICATION_CREDENTIALS for gs://"
)

_UNREACHABLE = "the storage cannot be reached; check the network and AWS_ENDPOINT_URL"

# Messages of obstore and Lance, which quote the server or the network; the first that occurs decides.
_REFUSALS = (
    ("nosuchbucket", "there is no such bucket; create it or correct the address"),
    ("bucket does not exist", "there is no such bucket; create it or correct the address"),
    ("invalidaccesskeyid", f"the access key is unknown; {_CREDENTIALS}"),
    ("signaturedoesnotmatch", f"the secret key is wrong; {_CREDENTIALS}"),
    ("expiredtoken", f"the credentials have expired; {_CREDENTIALS}"),
    ("169.254.169.254", f"no credentials were found; {_CREDENTIALS}"),
    ("metadata.google.internal", f"no credentials were found; {_CREDENTIALS}"),
    ("403 forbidden", f"access denied; check the permissions of this key, or {_CREDENTIALS}"),
    ("401 unauthorized", f"access denied; {_CREDENTIALS}"),
    ("permissiondenied", f"access denied; {_CREDENTIALS}"),
    ("unauthenticated", f"access denied; {_CREDENTIALS}"),
    ("error sending request", _UNREACHABLE),
    ("error decoding response body", _UNREACHABLE),
    ("operation timed out", _UNREACHABLE),
    ("slowdown", "the storage asks for fewer requests; try again later"),
    ("503 service unavailable", "the storage is overloaded; try again later"),
    ("500 internal server error", "the storage has an internal error; try again later"),
    ("quotaexceeded", "the quota of the bucket is used up"),
)


def describe_refusal(text: str) -> str | None:
    """The cause and what to do about it; None if the text is not about object storage.

    Args:
        text: Message of a library.
    """
    lowered = text.lower()
    return next((cause for sign, cause in _REFUSALS if sign in lowered), None)
