"""Duplicates in words: what each file of a group is."""

from __future__ import annotations

import os

from vidkin.index import DuplicateGroup, DuplicateMember
from vidkin.rendering.text import clock, printable

__all__ = ["describe_member"]


def describe_member(member: DuplicateMember, group: DuplicateGroup) -> str:
    """One line: ``keep (most detail)``, ``copy, mirrored``, ``excerpt of film.mp4 at 0:10.0 - 0:15.0``."""
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
