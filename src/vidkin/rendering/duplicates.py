"""Duplicates as text, table cells, and a self-contained HTML page with frames of all copies."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.outputs import open_output
from vidkin.files.findings import Finding
from vidkin.index import Difference, DuplicateGroup, DuplicateMember
from vidkin.index.duplicates.heard import ONLY_SOUND
from vidkin.index.duplicates.traits import Traits
from vidkin.rendering.moments import frame_strip
from vidkin.rendering.text import clock, file_size, number, printable

_HEADINGS = (
    "group",
    "best",
    "score",
    "path",
    "width",
    "height",
    "duration",
    "size",
    "relation",
    "compared_with",
    "start",
    "end",
    "mirrored",
    "turned",
    "lacking",
    "doubt",
    "differences",
    "stays",
    "companions",
    "picture",
    "sound",
    "frame_rate",
    "dynamic_range",
    "sounds",
    "subtitles",
    "date",
    "location",
    "proven",
    "kept_by",
    "findings",
)
# Maximum number of companion files (such as subtitles) to list; the rest are counted.
_MAX_NAMED = 3
# Maximum number of findings that fit in a table row.
_MAX_FINDINGS = 2

# Text for the differences of a copy; `describe_difference` handles those with an amount or a position.
_WORDS = {
    "other container": "same frames, different container",
    "other sound or tags": "same frames, different sound or tags",
    "bars added": "black bars added",
    "bars removed": "without black bars",
    "borders removed": "without borders",
    "reordered": "in a different order",
    "backwards": "runs backwards",
    "other colors": "different colors",
}


@check_arguments
def describe_member(member: DuplicateMember, group: DuplicateGroup, *, most_findings: int = _MAX_FINDINGS) -> str:
    """Describe a file in a group in one line.

    For example ``keep (most detail)``, ``copy, mirrored, cropped to 70 % of the frame, with film.en.srt`` or ``excerpt
    of film.mp4, at 0:10.0 - 0:15.0``.

    Args:
        member: The file.
        group: The file's group.
        most_findings: Maximum number of proof findings to list; the rest are counted. If 0, the text only says
            ``doubtful``.
    """
    if member.best:
        return f"keep ({group.reason})" if group.reason else "keep"
    # A copy is compared with the file to keep unless stated otherwise; an excerpt or overlap always names the file.
    name = printable(os.path.basename(member.compared_with or ""))
    other = f" of {name}" if member.compared_with not in (None, group.best.path) else ""
    times = ""
    if member.start is not None and member.end is not None:
        times = f"{clock(member.start)} - {clock(member.end)}"
    kinds = {
        "whole": f"copy{other}",
        "excerpt": f"excerpt of {name}, at {times}",
        "contains": f"contains {name} at {times}",
        "overlaps": f"shares {times} with {name}",
    }
    if member.doubt == ONLY_SOUND:
        kinds = {
            "whole": f"same sound as {name}",
            "excerpt": f"sound matches {name} at {times}",
            "contains": f"has the sound of {name} at {times}",
            "overlaps": f"shares the sound of {times} with {name}",
        }
    parts = [kinds[member.relation]]
    if member.mirrored and all(difference.kind != "mirrored" for difference in member.differences):
        parts.append("mirrored")
    if member.turned and all(difference.kind != "turned" for difference in member.differences):
        parts.append(describe_difference(Difference("turned", float(member.turned))))
    # The text for an excerpt already includes its times.
    differences = [each for each in member.differences if each.kind != "trimmed" or member.relation == "whole"]
    parts += map(describe_difference, differences)
    if member.lacking and member.relation == "whole":
        parts.append(f"has {clock(member.lacking)} of extra footage")
    if member.is_proven:
        holder = printable(os.path.basename(member.kept_by or ""))
        others = f": {holder} contains all of it" if member.kept_by != group.best.path else ""
        parts.append(f"can be removed without loss{others}")
    if member.findings:
        findings = "; ".join(describe_findings(member.findings, most_findings)) if most_findings else ""
        parts.append(f"doubtful: {findings}" if findings else "doubtful")
    elif member.doubt:
        parts.append(f"doubtful: {member.doubt}")
    if member.stays:
        parts.append(f"stays: {member.stays}")
    return ", ".join([*parts, *_companion_words(member)])


def _companion_words(member: DuplicateMember) -> list[str]:
    """List companion files, which are moved together with this file; empty if there are none."""
    names = [printable(os.path.basename(path)) for path in member.companions]
    if len(names) > _MAX_NAMED:
        names[_MAX_NAMED - 1 :] = [f"{len(names) - _MAX_NAMED + 1} more"]
    return [f"with {' and '.join(names)}"] if names else []


def describe_findings(findings: Sequence[Finding], most: int) -> list[str]:
    """Describe the content that a file has and the file to keep lacks, in a few words per finding; findings beyond
    ``most`` are counted.

    >>> describe_findings([Finding("sound", "no sound"), Finding("data", "a time code"), Finding("ends", "longer")], 1)
    ['no sound', 'and 2 more']
    """
    texts = [printable(finding.text) for finding in findings[:most]]
    return texts if len(findings) <= most else [*texts, f"and {len(findings) - most} more"]


def describe_traits(member: DuplicateMember, group: DuplicateGroup) -> list[str]:
    """Describe the traits in which a file differs from the other files in its group, in a few words each.

    For example ``59.94 frames per second``, ``HDR10``, ``sound: English 5.1, German stereo``.
    """
    if member.traits is None:
        return []
    known = [_trait_words(each.traits) for each in group.members if each.traits is not None]
    return [
        printable(own) for own, *others in zip(_trait_words(member.traits), *known, strict=True) if set(others) != {own}
    ]


def _trait_words(traits: Traits) -> tuple[str, ...]:
    return (
        f"{traits.frame_rate:.4g} frames per second",
        traits.dynamic_range or "8 bit",
        f"sound: {', '.join(traits.sounds)}" if traits.sounds else "no sound",
        f"subtitles: {', '.join(traits.subtitles)}" if traits.subtitles else "no subtitles",
        f"date: {traits.date}" if traits.date else "no date",
        f"location: {traits.location}" if traits.location else "no location",
    )


def describe_removable(groups: Iterable[DuplicateGroup]) -> str:
    """Describe how many bytes can be removed from groups; empty if none.

    For example ``1.2 GB can be removed without loss, 300 MB may be removable``; the latter have no proof.
    """
    spare = [member for group in groups for member in group.members if member.is_spare]
    proven = sum(member.size for member in spare if member.is_proven)
    unproven = sum(member.size for member in spare if not member.is_proven)
    parts = ((proven, "can be removed without loss"), (unproven, "may be removable"))
    return ", ".join(f"{file_size(size)} {words}" for size, words in parts if size)


def describe_difference(difference: Difference) -> str:
    """Describe a difference between a copy and the file it is compared with.

    >>> describe_difference(Difference("cropped", 0.7)), describe_difference(Difference("caption", where="bottom"))
    ('cropped to 70 % of the frame', 'caption at the bottom')
    """
    kind, amount, where = difference.kind, difference.amount or 0.0, difference.where
    if kind == "trimmed" and difference.start is not None and difference.end is not None:
        return f"only {clock(difference.start)} - {clock(difference.end)}"
    if kind == "speed":
        return f"{amount:.2f}x"
    if kind == "turned":
        return f"turned {amount:.0f} degrees"
    if kind == "cropped":
        return f"cropped to {100 * amount:.0f} % of the frame"
    if kind == "uncropped":
        return f"shows more: the other file has {100 * amount:.0f} % of the frame"
    if kind in ("caption", "no caption", "logo", "no logo"):
        words = kind.replace("no ", "without a ") if kind.startswith("no ") else kind
        preposition = (
            "in the" if " " in where or where == "middle" else "on the" if where in ("left", "right") else "at the"
        )
        return f"{words} {preposition} {where}" if where else words
    return _WORDS.get(kind, kind)


def duplicate_cells(groups: Sequence[DuplicateGroup]) -> Iterator[tuple[str, ...]]:
    """Yield rows for CSV and tab-separated files: the headings, then one row per file."""
    yield _HEADINGS
    for position, group in enumerate(groups, start=1):
        for member in group.members:
            sizes = (str(member.width), str(member.height), f"{member.duration:.3f}", str(member.size))
            times = ("" if time is None else f"{time:.3f}" for time in (member.start, member.end))
            best, mirrored = ("yes" if value else "no" for value in (member.best, member.mirrored))
            yield (
                str(position),
                best,
                f"{member.score:.4f}",
                member.path,
                *sizes,
                member.relation,
                member.compared_with or "",
                *times,
                mirrored,
                str(member.turned),
                f"{member.lacking:.3f}",
                member.doubt,
                "; ".join(map(describe_difference, member.differences)),
                member.stays,
                "; ".join(member.companions),
                *("" if score is None else f"{score:.4f}" for score in (member.picture, member.sound)),
                *_trait_cells(member.traits),
                "yes" if member.is_proven else "no",
                member.kept_by or "",
                "; ".join(finding.text for finding in member.findings),
            )


def _trait_cells(traits: Traits | None) -> tuple[str, ...]:
    if traits is None:
        return ("",) * 6
    tracks = "; ".join(traits.sounds), "; ".join(traits.subtitles)
    return (f"{traits.frame_rate:.3f}", traits.dynamic_range, *tracks, traits.date, traits.location)


_MOMENTS = (0.15, 0.5, 0.85)

_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td { padding: .4rem .6rem .4rem 0; vertical-align: top; }
td.pictures { white-space: nowrap; }
ul { margin: .2rem 0; padding-left: 1.2rem; }
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
    source: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write an HTML page of all groups, with one row per file and three frames at the same relative times.

    Args:
        groups: Result of :meth:`vidkin.Index.duplicates`.
        path: Output file.
        short_side: Shorter side of the frames in pixels.
        source: Description of the videos searched, see :func:`vidkin._base.outputs.open_output`.
        on_progress: Callback that receives (groups written, total number of groups).

    Raises:
        MediaError: The file cannot be written. If a video cannot be read, the page shows the cause instead of frames.
    """
    with open_output(path, source=source) as partial, partial.open("w", encoding="utf-8") as file:
        for position, part in enumerate(duplicate_page(groups, short_side=short_side)):
            file.write(part)
            if on_progress is not None and 0 < position <= len(groups):
                on_progress(position, len(groups))


def duplicate_page(groups: Sequence[DuplicateGroup], *, short_side: int = 160) -> Iterator[str]:
    """Yield the page written by :func:`write_duplicate_page` in parts: the head, each group, and the end."""
    copies = sum(len(group.members) - 1 for group in groups)
    removable = describe_removable(groups) or "none can be removed"
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Duplicates</title>\n'
        f"<style>{_STYLE}</style></head><body>\n<h1>Duplicates</h1>\n"
        f"<p>{number(len(groups), 'group')}, {number(copies, 'copy', 'copies')} besides the best ones; "
        f"{removable}.</p>\n"
    )
    for position, group in enumerate(groups, start=1):
        heading = ": ".join(filter(None, (f"Group {position}", describe_removable([group]))))
        rows = "".join(_row(member, group, short_side) for member in group.members)
        yield f"<h2>{heading}</h2>\n<table>\n{rows}</table>\n"
    yield "</body></html>\n"


def _row(member: DuplicateMember, group: DuplicateGroup, short_side: int) -> str:
    words = html.escape(describe_member(member, group, most_findings=0))
    name = html.escape(printable(member.path))
    facts = (
        f"score {member.score:.2f}, {member.width}x{member.height}, {clock(member.duration)}, {file_size(member.size)}"
    )
    if member.picture is not None and member.sound is not None:
        facts += f", picture {member.picture:.2f}, sound {member.sound:.2f}"
    if member.links:
        facts += f", also named {printable(', '.join(member.links))}"
    facts = html.escape(", ".join([facts, *describe_traits(member, group)]))
    findings = "".join(f"<li>{html.escape(printable(finding.text))}</li>" for finding in member.findings)
    kind = ' class="keep"' if member.best else ""
    doubt = ' class="doubt"' if member.doubt else ""
    return (
        f'<tr{kind}><td class="pictures">{_frames_html(member, short_side)}</td>'
        f'<td><span{doubt}>{words}</span><br><span class="path">{name}</span><br>'
        f"<small>{facts}</small>{f'<ul>{findings}</ul>' if findings else ''}</td></tr>\n"
    )


def _frames_html(member: DuplicateMember, short_side: int) -> str:
    def turn(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        upright = np.rot90(image, -member.turned // 90)
        return upright[:, ::-1] if member.mirrored else upright

    times = (fraction * member.duration for fraction in _MOMENTS)
    return frame_strip(member.path, times, short_side=short_side, turn=turn)
