"""Files for each video with recurring segments: skip lists and chapters for players, and parts cut from the video."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vidkin._base.arguments import check_arguments
from vidkin._base.files import create_folder, safe_name
from vidkin._base.values import check_not_negative
from vidkin.errors import MediaError
from vidkin.index import Companion, Occurrence, RecurringGroup
from vidkin.index.recurring.groups import natural_order
from vidkin.media import Piece
from vidkin.rendering.recurring import (
    PLAYER_FORMATS,
    JoinedParts,
    NamedPart,
    join_parts,
    parts_of_file,
    split_parts,
)


def name_in_one_folder(paths: Iterable[str]) -> dict[str, str]:
    """Choose a unique file name prefix for each video: its name without the extension, numbered if necessary.

    >>> name_in_one_folder(["s1/e1.mp4", "s2/e1.mp4"])
    {'s1/e1.mp4': 'e1', 's2/e1.mp4': 'e1 (2)'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for path in sorted(paths):
        stem = safe_name(Path(path).stem)
        numbered = (stem if count == 1 else f"{stem} ({count})" for count in itertools.count(1))
        names[path] = next(name for name in numbered if name.casefold() not in taken)
        taken.add(names[path].casefold())
    return names


def _first_shown(groups: Sequence[RecurringGroup]) -> set[Occurrence]:
    """The first occurrence of each group, in the first of its files by name, and the same of copies of this file."""
    copies = [set(group.paths) for group in groups if group.kind == "copy"]
    first: set[Occurrence] = set()
    for group in groups:
        name = min(group.paths, key=natural_order)
        versions = {name}.union(*(same for same in copies if name in same))
        for path in versions.intersection(group.paths):
            shown = (one for one in group.occurrences if one.path == path)
            first.add(min(shown, key=lambda one: one.start))
    return first


def _recurring_parts(
    groups: Sequence[RecurringGroup], lengths: Mapping[str, float]
) -> Iterator[tuple[str, list[NamedPart]]]:
    """Yield each video with recurring parts, and all its parts."""
    for path, length in lengths.items():
        parts = parts_of_file(groups, path, length)
        if any(part.recurs for part in parts):
            yield path, parts


@check_arguments
def skip_lists(
    groups: Sequence[RecurringGroup],
    lengths: Mapping[str, float],
    *,
    pad_start: float = 0.0,
    pad_end: float = 0.0,
    keep_first: bool = False,
) -> tuple[dict[str, str], list[Companion]]:
    """Create skip lists to write next to videos.

    Args:
        groups: Result of :meth:`vidkin.Index.recurring`.
        lengths: Duration of each video in seconds, by path.
        pad_start, pad_end: Seconds to play at the start and at the end of each recurring segment.
        keep_first: Skip nothing where a group is shown first: the first episode, by name, keeps its opening.

    Returns:
        Contents of the skip lists by path, and the skip lists refused because two videos with the same name need
        different ones.

    Raises:
        InvalidArgumentError: A number of seconds is negative.
    """
    check_not_negative(pad_start=pad_start, pad_end=pad_end)
    kept = _first_shown(groups) if keep_first else ()
    contents: dict[str, str] = {}
    refused: dict[str, Companion] = {}
    for path, _ in _recurring_parts(groups, lengths):
        parts = parts_of_file(groups, path, lengths[path], left_out=kept)
        skipped = [part._replace(start=part.start + pad_start, end=part.end - pad_end) for part in parts if part.recurs]
        skipped = [part for part in skipped if part.end > part.start]
        for ending, write in PLAYER_FORMATS["edl"].files.items():
            target, text = os.path.splitext(path)[0] + ending, write(skipped)
            if contents.setdefault(target, text) != text:
                cause = f"{Path(path).name} needs a different skip list than another video with this name; rename one"
                refused[target] = Companion(target, False, cause)
    return {path: text for path, text in contents.items() if path not in refused}, list(refused.values())


def chapter_files(
    groups: Sequence[RecurringGroup], lengths: Mapping[str, float], folder: str | os.PathLike[str]
) -> dict[str, str]:
    """Create the folder if necessary, and return the chapters of each video with recurring parts by output path."""
    names = name_in_one_folder(lengths)
    root = os.path.abspath(create_folder(folder))
    return {
        os.path.join(root, safe_name(names[path] + Path(path).suffix)) + ending: write(parts)
        for path, parts in _recurring_parts(groups, lengths)
        for ending, write in PLAYER_FORMATS["chapters"].files.items()
    }


@dataclass(frozen=True, slots=True)
class CutVideos:
    """Files cut from videos.

    Attributes:
        pieces: Files with one part each.
        joined: Files with the remaining parts of a video.
        failures: Error messages for videos that cannot be read or cut.
    """

    pieces: Sequence[Piece] = ()
    joined: Sequence[JoinedParts] = ()
    failures: Sequence[str] = ()


def cut_videos(
    groups: Sequence[RecurringGroup],
    lengths: Mapping[str, float],
    folder: str | os.PathLike[str],
    kept: str,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> CutVideos:
    """Cut each video with recurring segments into parts, and write them to files.

    Args:
        groups: Result of :meth:`vidkin.Index.recurring`.
        lengths: Duration of each video in seconds, by path.
        folder: Output folder; created if missing.
        kept: Parts to write: all ``parts``, only ``recurring`` ones, or the ``rest`` of each video as one file.
        on_progress: Callback that receives (videos done, total number of videos).
    """
    pieces: list[Piece] = []
    joined: list[JoinedParts] = []
    failures = []
    names = name_in_one_folder(lengths)
    videos = list(_recurring_parts(groups, lengths))
    for count, (path, parts) in enumerate(videos, start=1):
        chosen = [part for part in parts if kept in ("parts", "recurring" if part.recurs else "rest")]
        try:
            if kept != "rest":
                pieces += split_parts(path, chosen, folder, name=names[path])
            elif (left := join_parts(path, chosen, folder, name=names[path])) is not None:
                joined.append(left)
        except MediaError as error:
            failures.append(str(error))
        if on_progress is not None:
            on_progress(count, len(videos))
    return CutVideos(pieces, joined, failures)
