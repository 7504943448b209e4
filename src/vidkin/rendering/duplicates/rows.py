"""Duplicates in words and as a table: what each file of a group is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from vidkin._base.plain_values import replace_controls
from vidkin.index import DuplicateGroup, DuplicateMember
from vidkin.rendering.text import clock, printable

__all__ = ["describe_member", "duplicate_cells"]

_HEADINGS = (
    *("group", "best", "score", "path", "width", "height", "duration", "size"),
    *("relation", "compared_with", "start", "end", "mirrored", "lacking", "doubt"),
)


def describe_member(member: DuplicateMember, group: DuplicateGroup) -> str:
    """Describe a file of a group in one line.

    For example ``keep (most detail)``, ``copy, mirrored`` or ``excerpt of film.mp4 at 0:10.0 - 0:15.0``.
    """
    if member.best:
        return f"keep ({group.reason})" if group.reason else "keep"
    other = ""
    if member.compared_with not in (None, group.best.path):
        other = f" of {printable(os.path.basename(member.compared_with or ''))}"
    times = ""
    if member.start is not None and member.end is not None:
        times = f"{clock(member.start)} - {clock(member.end)}"
    kinds = {
        "whole": f"copy{other}",
        "excerpt": f"excerpt{other}, from {times} of it",
        "contains": f"contains it{other} at {times}",
        "overlaps": f"shares {times}{other}",
    }
    parts = [kinds[member.relation]]
    if member.mirrored:
        parts.append("mirrored")
    if member.lacking and member.relation == "whole":
        parts.append(f"has {clock(member.lacking)} more")
    if member.doubt:
        parts.append(f"doubtful: {member.doubt}")
    return ", ".join(parts)


def duplicate_cells(groups: Sequence[DuplicateGroup]) -> Iterator[tuple[str, ...]]:
    """Rows for CSV and tab-separated files: the headings, then one row a file; paths without control characters."""
    yield _HEADINGS
    for position, group in enumerate(groups, start=1):
        for member in group.members:
            sizes = (str(member.width), str(member.height), f"{member.duration:.3f}", str(member.size))
            times = ("" if time is None else f"{time:.3f}" for time in (member.start, member.end))
            best, mirrored = ("yes" if value else "no" for value in (member.best, member.mirrored))
            yield (
                *(str(position), best, f"{member.score:.4f}", replace_controls(member.path)),
                *(*sizes, member.relation, replace_controls(member.compared_with or ""), *times),
                *(mirrored, f"{member.lacking:.3f}", member.doubt),
            )
