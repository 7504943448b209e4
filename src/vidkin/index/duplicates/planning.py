"""Plan the removal of files whose content is proven to be in a file that is kept."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, is_within
from vidkin.errors import MediaError
from vidkin.files.companions import find_companions, find_photograph
from vidkin.files.plan import DuplicatePlan, FileState, PlannedGroup, StayingFile
from vidkin.files.proof_record import PROOF_REVISION
from vidkin.index.duplicates.members import DuplicateGroup, DuplicateMember
from vidkin.index.storage.files import content_hash
from vidkin.index.storage.records import VideoRecord

_logger = logging.getLogger(__name__)


@check_arguments
def plan_removal(
    groups: Iterable[DuplicateGroup],
    *,
    protected: Sequence[PathLike] = (),
    records: Iterable[VideoRecord] | None = None,
) -> DuplicatePlan:
    """Create a plan that removes the files whose content is proven to be in a file that is kept.

    A file is kept if there is no proof that another file contains everything in it, if it has other names (hard links),
    if either file is a symbolic link, if it is in a protected folder, if it is the video part of a photograph, or if
    either file has changed since it was compared or decoded. Files that belong to it, such as subtitles, are removed
    with it. Every file of the plan is read completely.

    Args:
        groups: Result of :meth:`vidkin.Index.duplicates` with ``prove=True``; otherwise nothing is proven.
        protected: Folders in which all files are kept.
        records: Records of the index, to detect files that have changed since they were indexed; None to treat every
            file as unchanged.

    Raises:
        MediaError: A file can no longer be read.
    """
    folders = [os.path.realpath(os.path.expanduser(folder)) for folder in protected]
    known = {record.path: record for record in records or ()}
    planned = []
    for group in groups:
        reasons = reasons_to_keep(group, protected=folders, known=known)
        members = {member.path: member for member in group.members}
        keepers = dict.fromkeys(members[path].kept_by or "" for path, why in reasons.items() if why is None)
        kept = {path: FileState.of(path) for path in keepers}
        removed: dict[str, list[FileState]] = {path: [] for path in kept}
        for path, why in reasons.items():
            member = members[path]
            if why is not None or member.kept_by is None or member.proof is None:
                continue
            state, proof = _state_with_companions(path), member.proof
            contents = proof.kept_content, proof.removed_content
            if contents == (kept[member.kept_by].content, state.content) and proof.revision == PROOF_REVISION:
                accepted = tuple(finding.text for finding in proof.findings)
                removed[member.kept_by].append(replace(state, accepted=accepted))
            else:
                reasons[path] = "it or the file to keep has changed since they were decoded"
        stay = [StayingFile(path, why) for path, why in reasons.items() if why is not None]
        for path, remove in removed.items():
            if remove:
                reason = group.reason if path == group.best.path else "contains everything in the removed files"
                planned.append(PlannedGroup(kept[path], reason, tuple(remove), tuple(stay)))
                stay = []
    return DuplicatePlan(tuple(planned), datetime.now().astimezone().isoformat(timespec="seconds"))


def reasons_to_keep(
    group: DuplicateGroup, *, protected: Sequence[str] = (), known: Mapping[str, VideoRecord]
) -> dict[str, str | None]:
    """Return, for each file of a group except the best one, the reason to keep it; None if it is removable.

    Args:
        group: A group from :meth:`vidkin.Index.duplicates`.
        protected: Real paths of folders in which all files are kept.
        known: Records of the index, keyed by path; files without a record are treated as unchanged.
    """
    return {
        member.path: "it has changed since it was indexed; run `vidkin index` again"
        if _has_changed(member.path, known.get(member.path))
        else _reason_to_keep(member, protected) or _reason_against_keeper(member.kept_by or group.best.path, known)
        for member in group.members
        if not member.best
    }


def _reason_against_keeper(kept: str, known: Mapping[str, VideoRecord]) -> str | None:
    """Return why no file can be removed in favor of this file; None if files can be."""
    if os.path.islink(kept):  # its target may be the other file
        return "the file to keep is a symbolic link"
    if _has_changed(kept, known.get(kept)):
        return "the file to keep has changed since it was indexed; run `vidkin index` again"
    return None


def _has_changed(path: str, record: VideoRecord | None) -> bool:
    """Whether the content of a file has changed since it was indexed; unreadable files are reported later."""
    if record is None:
        return False
    try:
        state = os.stat(path)
        if (state.st_size, state.st_mtime_ns) == (record.size, record.mtime_ns):
            return False
        changed = state.st_size != record.size or all(
            content_hash(path, state.st_size, whole=whole).text != record.content_hash for whole in (False, True)
        )
    except OSError:
        return False
    if changed:
        _logger.warning("%s: kept because it has changed since it was indexed; run `vidkin index` again", path)
    return changed


def _state_with_companions(path: str) -> FileState:
    """Return the state of a file and its companions; unreadable companions are omitted and therefore kept."""
    companions = []
    for companion in find_companions(path):
        with suppress(MediaError):
            companions.append(FileState.of(companion))
    return replace(FileState.of(path), companions=tuple(companions))


def _reason_to_keep(member: DuplicateMember, protected: Sequence[str]) -> str | None:
    """Return the reason to keep a file; None if it can be removed."""
    for folder in protected:
        if is_within(member.path, folder):
            return f"it is in {folder}, which is protected"
    if member.stays:
        return member.stays
    if member.doubt:
        return f"doubtful: {member.doubt}"
    if not member.is_proven:
        return "the kept file is not proven to contain everything in it"
    if os.path.islink(member.path):
        return "it is a symbolic link"
    if member.links:
        return f"it has other names, such as {member.links[0]}"
    if photograph := find_photograph(member.path, member.duration):
        return f"it is the video part of a photograph, {photograph}"
    return None
