"""Text that describes removal plans and their effect on files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vidkin.rendering.text import file_size, number

if TYPE_CHECKING:
    from vidkin.files import DuplicatePlan, FileAction


def describe_plan(plan: DuplicatePlan) -> str:
    """Describe what a plan removes: ``2 files to remove, proven to be contained in files that stay, 1.4 MB``."""
    if not plan.groups:
        return "nothing to do, because no file is proven to be contained in a file that stays"
    removed = [file for group in plan.groups for file in group.remove]
    proven = f"{number(len(removed), 'file')} to remove, proven to be contained in files that stay"
    return f"{proven}, {file_size(plan.savings)}{_companions(sum(len(file.companions) for file in removed))}"


def describe_actions(actions: Sequence[FileAction], target: str, *, undone: bool) -> str:
    """Count files that a plan moves or restores: ``2 files moved to the trash (1.4 MB), and 1 companion file``."""
    done = [action for action in actions if action.outcome != "skipped" and not action.video]
    would = "would be " if any(action.outcome == "planned" for action in actions) else ""
    count = f"{number(len(done), 'file')} {would}"
    # Not "freed", because the files in the trash still take up space.
    what = "restored" if undone else f"moved to {target} ({file_size(sum(action.size for action in done))})"
    return f"{count}{what}{_companions(sum(action.outcome != 'skipped' and bool(action.video) for action in actions))}"


def _companions(count: int) -> str:
    return f", and {number(count, 'companion file')}" if count else ""
