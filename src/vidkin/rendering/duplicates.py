"""Duplicates in words and as a table: what each file of a group is."""

from __future__ import annotations

import base64
import html
import io
import os
from collections.abc import Callable, Iterator, Sequence

from vidkin._base.files import open_output
from vidkin.errors import MediaError
from vidkin.index import DuplicateGroup, DuplicateMember
from vidkin.media import thumbnail
from vidkin.rendering.text import clock, file_size, number, printable

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
    """Rows for CSV and tab-separated files: the headings, then one row a file."""
    yield _HEADINGS
    for position, group in enumerate(groups, start=1):
        for member in group.members:
            sizes = (str(member.width), str(member.height), f"{member.duration:.3f}", str(member.size))
            times = ("" if time is None else f"{time:.3f}" for time in (member.start, member.end))
            best, mirrored = ("yes" if value else "no" for value in (member.best, member.mirrored))
            yield (
                *(str(position), best, f"{member.score:.4f}", member.path),
                *(*sizes, member.relation, member.compared_with or "", *times),
                *(mirrored, f"{member.lacking:.3f}", member.doubt),
            )


# Groups of duplicates as one self-contained HTML page with pictures of all copies side by side.


_JPEG_QUALITY = 80

_MOMENTS = (0.15, 0.5, 0.85)

_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td { padding: .4rem .6rem .4rem 0; vertical-align: top; }
td.pictures { white-space: nowrap; }
img { height: 7rem; border-radius: 4px; margin-right: .3rem; }
tr.keep td { font-weight: 600; }
@media (max-width: 60rem) {
 table, tbody, tr, td { display: block; } td.pictures { white-space: normal; padding-bottom: 0; } img { height: 5rem; }
}
.path { overflow-wrap: anywhere; } .doubt { color: #c60; } small { opacity: .75; }
"""


def write_duplicate_page(
    groups: Sequence[DuplicateGroup],
    path: str | os.PathLike[str],
    *,
    short_side: int = 160,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write an HTML page with every group: one file a row, with pictures of each at the same three moments.

    Args:
        groups: Result of :meth:`vidkin.Index.duplicates`.
        path: The file to write.
        short_side: Pixels at the shorter side of the pictures.
        on_progress: Callback that receives (groups written, total number of groups).

    Raises:
        MediaError: The file cannot be written. A video that cannot be read shows the cause instead of its pictures.
    """
    copies = sum(len(group.members) - 1 for group in groups)
    savings = file_size(sum(group.savings for group in groups))
    with open_output(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>Duplicates</title>\n'
            f"<style>{_STYLE}</style></head><body>\n<h1>Duplicates</h1>\n"
            f"<p>{number(len(groups), 'group')}, {number(copies, 'copy', 'copies')} besides the best ones; "
            f"{savings} can be freed.</p>\n"
        )
        for position, group in enumerate(groups, start=1):
            file.write(f"<h2>Group {position}: {file_size(group.savings)} can be freed</h2>\n<table>\n")
            for member in group.members:
                words = html.escape(describe_member(member, group))
                name = html.escape(printable(member.path))
                facts = (
                    f"score {member.score:.2f}, {member.width}x{member.height}, {clock(member.duration)}, "
                    f"{file_size(member.size)}"
                )
                if member.links:
                    facts += f", also named {html.escape(printable(', '.join(member.links)))}"
                kind = ' class="keep"' if member.best else ""
                doubt = ' class="doubt"' if member.doubt else ""
                file.write(
                    f'<tr{kind}><td class="pictures">{_pictures(member, short_side)}</td>'
                    f'<td><span{doubt}>{words}</span><br><span class="path">{name}</span><br>'
                    f"<small>{facts}</small></td></tr>\n"
                )
            file.write("</table>\n")
            if on_progress is not None:
                on_progress(position, len(groups))
        file.write("</body></html>\n")


def _pictures(member: DuplicateMember, short_side: int) -> str:
    from PIL import Image

    pictures = []
    for share in _MOMENTS:
        time = share * member.duration
        try:
            image = thumbnail(member.path, time, short_side=short_side)
        except MediaError as error:
            return f"<small>{html.escape(printable(error.cause))}</small>"
        held = io.BytesIO()
        Image.fromarray(image[:, ::-1] if member.mirrored else image).save(held, "JPEG", quality=_JPEG_QUALITY)
        data = base64.b64encode(held.getvalue()).decode("ascii")
        pictures.append(f'<img alt="at {clock(time)}" title="{clock(time)}" src="data:image/jpeg;base64,{data}">')
    return "".join(pictures)
