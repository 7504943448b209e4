"""A report of your own: groups of duplicates as Markdown, for a wiki or an issue.

In the ``pyproject.toml`` of your package::

    [project.entry-points."vidkin.duplicate_reports"]
    markdown = "markdown_report:REPORT"

Then ``vidkin duplicates -o copies.md``, in Python ``write_duplicate_report(index.duplicates(), "copies.md")`` of
``vidkin.rendering``. A report of recurring segments is in the group ``vidkin.recurring_reports``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from vidkin import DuplicateGroup
from vidkin.rendering import FileFormat, describe_member, printable


def write_markdown(groups: Sequence[DuplicateGroup], file: IO[str]) -> None:
    """Write a list for each group, the copy to keep in bold."""
    for number, group in enumerate(groups, start=1):
        file.write(f"## Group {number}\n\n")
        for member in group.members:
            name = printable(member.path)
            file.write(f"* {f'**{name}**' if member.best else name}: {describe_member(member, group)}\n")
        file.write("\n")


REPORT = FileFormat(".md", "Markdown", write_markdown, "text/markdown")
