"""Matches and segments as tables and lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vidkin.cli.console import note, path_text, say, table, terminal_width
from vidkin.rendering.segments import SEGMENT_COLUMNS, explain_segments, segment_cells
from vidkin.rendering.text import clock_range, name_scores, score_cells
from vidkin.similarity.scale import UNRELATED

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import Match
    from vidkin.similarity import Segment


def print_plain(matches: Sequence[Match]) -> None:
    """One line per match: score, time in the file, name."""
    for match in matches:
        best = next(iter(match.segments or match.sound_segments), None)
        times = "" if best is None else clock_range(best.target_start, best.target_end)
        say(f"{match.score:.2f}  {times:<19}  ", path_text(match.path))


def print_matches(matches: Sequence[Match], *, first_rank: int = 1) -> None:
    """Rank, score, where it matches, and the file; further segments of a file on lines of their own."""
    rows: list[Sequence[str | Text]] = []
    width = terminal_width()
    scores = name_scores(matches)
    columns = _segment_columns(segment_cells(each, width=width) for match in matches for each in match.segments)
    for rank, match in enumerate(matches, start=first_rank):
        name = path_text(match.path, style="dim" if match.score < UNRELATED else "")
        if match.missing:
            name.append(" (missing)", style="red")
        # Where the picture does not match, the times come from the sound.
        by_sound = match.sound is not None and (match.picture or 0.0) < UNRELATED <= match.score
        segments = match.sound_segments if by_sound else match.segments
        cells = [segment_cells(segment, width=width) for segment in segments] or [[""] * len(columns)]
        rows.append([str(rank), *score_cells(match, scores), *cells[0], name])
        rows += [["", *[""] * len(scores), *others, ""] for others in cells[1:]]
    numbers = [(name, "right") for name in ("#", *scores)]
    table(None, [*numbers, *columns, ("file", "left")], rows)
    for sentence in explain_segments([each for match in matches for each in match.segments], width=width):
        note(sentence)
    if any(": same sound" in match.witnesses for match in matches):
        note("High sound and low picture: the same sound with other pictures, which is not a copy of the video.")


def _segment_columns(cells: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Heading and side of each column of segments; without room for words, signs of edits are among the speeds."""
    query, target, speed, edits = SEGMENT_COLUMNS
    has_signs = any(cell[2] and not cell[2].endswith("x") for cell in cells)
    return [query, target, ("edits", "right") if has_signs else speed, edits]


def print_segments(segments: Sequence[Segment]) -> None:
    """One line for each segment."""
    width = terminal_width()
    rows = [[*segment_cells(segment, width=width), f"{segment.score:.2f}"] for segment in segments]
    table(None, [*_segment_columns(rows), ("score", "right")], rows)
    for sentence in explain_segments(segments, width=width):
        note(sentence)
