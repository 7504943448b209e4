"""Signatures of plans: what an index planned can be told from what somebody wrote into the file."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from vidkin._base import disk
from vidkin._base.arguments import check_arguments
from vidkin._base.files import check_file_name, read_regular_file
from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.index.duplicates.plans import DuplicatePlan, FileState
from vidkin.index.storage.opening import open_place
from vidkin.index.storage.place import Place

PLAN_KEY_FILE = "plan.key"
"""The secret, in the folder of the index; only its owner can read it."""

_DIGITS = re.compile(rb"[0-9a-f]{64}")
# First part of what is signed, so that a signature is never valid for anything else.
_PURPOSE = "vidkin removes a copy"
_PURPOSE_OF_COMPANION = "vidkin moves what belongs to a copy"


class PlanKey:
    """The secret of an index, with which it signs each pair of a file to remove and the file that replaces it.

    A signature is the HMAC with SHA-256 of all that the plan says about both files: path, size, time, content, folder.
    Deleting entries of a plan leaves those of the others valid; changing one, or putting one below another file to
    keep, does not. A companion has a signature of its own, over the three files.

    Args:
        secret: 64 hexadecimal digits.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def read(cls, place: Place) -> PlanKey | None:
        """The key of an index; None if it has none or nobody may read it."""
        content: bytes | None = None
        with suppress(OSError, ValueError, CollectionError):
            content = place.read(PLAN_KEY_FILE)
        return cls(content) if content is not None and _DIGITS.fullmatch(content) else None

    @classmethod
    def read_or_create(cls, place: Place) -> PlanKey | None:
        """The key of an index, made if it has none; None if it cannot be written there."""
        key = cls.read(place)
        if key is not None:
            return key
        secret = secrets.token_hex(32).encode()
        with suppress(OSError, CollectionError):
            if place.folder is None:
                place.write(PLAN_KEY_FILE, secret)
            else:
                _create(place.folder / PLAN_KEY_FILE, secret)
        return cls.read(place)

    def sign(self, keep: FileState, file: FileState, companion: FileState | None = None) -> str:
        """The signature of a file to remove, or of a companion that goes with it, as hexadecimal digits."""
        if companion is None:
            text = _canonical_text(_PURPOSE, keep, file)
        else:
            text = _canonical_text(_PURPOSE_OF_COMPANION, keep, file, companion)
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()

    def has_signed(self, keep: FileState, file: FileState, companion: FileState | None = None) -> bool:
        """Whether the signature of a file to remove, or of a companion, is valid."""
        given = (file if companion is None else companion).signature
        return hmac.compare_digest(self.sign(keep, file, companion).encode(), given.encode("utf-8", "replace"))


def _canonical_text(purpose: str, *files: FileState) -> bytes:
    """What is signed: a purpose, and every field of the files.

    Left out are the signature itself and the companions, each of which has its own. A field that is added to
    :class:`FileState` is signed without a change here.
    """
    facts = [asdict(replace(file, signature="", companions=())) for file in files]
    return json.dumps([purpose, *facts], ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode("ascii")


@check_arguments
def sign_plan(plan: DuplicatePlan, place: Place, *, create: bool = True) -> DuplicatePlan:
    """Sign every entry of a plan with the key of its index; the plan as it is where there can be no key.

    Args:
        plan: Made from this index.
        place: Where the index is.
        create: Make a key if the index has none and can be written to.
    """
    key = PlanKey.read_or_create(place) if create else PlanKey.read(place)
    if key is None:
        return plan
    groups = [
        replace(
            group,
            remove=tuple(_sign_file(key, group.keep, file) for file in group.remove),
        )
        for group in plan.groups
    ]
    return replace(plan, groups=tuple(groups), index=place.uri)


def _sign_file(key: PlanKey, keep: FileState, file: FileState) -> FileState:
    companions = tuple(replace(item, signature=key.sign(keep, file, item)) for item in file.companions)
    return replace(file, signature=key.sign(keep, file), companions=companions)


@check_arguments
def place_of_plan(plan: DuplicatePlan) -> Place:
    """Where the index is that a plan says it was made from, which must be a folder of this machine.

    A plan cannot make this machine ask object storage: such an index the caller must name.

    Args:
        plan: Read from a file that anyone may have written.

    Raises:
        InvalidArgumentError: The plan names no index, or none in a folder.
    """
    if not plan.index:
        raise InvalidArgumentError(
            "a plan must be signed by its index, got one without (by an earlier vidkin, or by hand); make it again "
            "with `vidkin duplicates --plan`, or pass --any-file"
        )
    try:
        return open_place(check_file_name("index", plan.index))
    except ValueError as error:
        raise InvalidArgumentError(
            f"the index of a plan must be a folder or be named with --made-from, got {plan.index!a}"
        ) from error


@check_arguments
def key_of_plan(place: Place) -> PlanKey:
    """The key that must have signed the entries of a plan: that of its index.

    Args:
        place: Where its index is: named by the caller, or :func:`place_of_plan`.

    Raises:
        InvalidArgumentError: The index has no key that can be read.
    """
    key = PlanKey.read(place)
    if key is None:
        raise InvalidArgumentError(
            f"a plan must be signed by its index, but {place.uri} has no {PLAN_KEY_FILE} that can be read; name the "
            "index with --made-from, or pass --any-file"
        )
    return key


def _is_key(path: Path) -> bool:
    try:
        return _DIGITS.fullmatch(read_regular_file(path, 1 << 10)) is not None
    except ValueError:  # far too large
        return False


def _create(path: Path, secret: bytes) -> None:
    """Write the key whole, for its owner alone, and never over a valid one of another process."""
    temporary = os.fspath(path.with_name(f".{secrets.token_hex(8)}.part.key"))
    disk.before("create", temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            disk.write(descriptor, secret, temporary)
        finally:
            os.close(descriptor)
        disk.sync_file(temporary)
        with suppress(FileNotFoundError):
            if not _is_key(path):
                disk.unlink(path)
        disk.rename_new(temporary, os.fspath(path))
        disk.sync_folder(path.parent)
    finally:
        with suppress(FileNotFoundError):
            disk.unlink(temporary)
