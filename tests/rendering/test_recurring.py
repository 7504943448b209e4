"""Recurring segments as text, chapters, skip lists, pages and files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Literal

import av
import numpy as np
import pytest

from tests.support.seasons import RATE, shots, write_season
from tests.support.videos import encode
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index import Occurrence, RecurringGroup
from vidkin.media import read_frames
from vidkin.rendering import describe_difference, describe_group, skip_lists, write_format
from vidkin.rendering.recurring import (
    PLAYER_FORMATS,
    RECURRING_FORMATS,
    GroupsToWrite,
    ffmetadata_chapters,
    join_parts,
    matroska_chapters,
    parts_of_file,
    recurring_cells,
    skip_list,
    split_parts,
)

OPENING = RecurringGroup(
    (Occurrence("a.mkv", 10.0, 38.0, 0.9), Occurrence("b.mkv", 0.0, 20.0, 0.8, 0.96, 8.0)), "opening", 12
)
CLOSING = RecurringGroup((Occurrence("a.mkv", 90.0, 99.8, 0.9), Occurrence("b.mkv", 95.0, 105.0, 0.8)), "closing", 12)
RECAP = RecurringGroup(
    (Occurrence("b.mkv", 21.0, 30.0, 0.9), Occurrence("a.mkv", 50.0, 59.0, 0.9, source=True)), "recap", 12
)
GROUPS = [OPENING, CLOSING, RECAP]


def test_groups_and_differences_are_described() -> None:
    assert describe_group(0, OPENING) == "A: opening, 0:28.0 long, in 2 of 12 files"
    assert describe_group(2, RECAP) == "C: recap, 0:09.0 long, of footage in 1 earlier file"
    assert describe_difference(OPENING.occurrences[1]) == "0:08.0 shorter, 0.96x"
    assert (
        describe_difference(replace(OPENING.occurrences[1], titled=True)) == "0:08.0 shorter, 0.96x, different titles"
    )
    assert describe_difference(replace(CLOSING.occurrences[1], other_sound=True)) == "different sound"
    assert describe_difference(RECAP.occurrences[1]) == "repeated in the recap"


def test_file_is_split_into_parts_without_gaps() -> None:
    parts = parts_of_file(GROUPS, "a.mkv", 100.0)
    assert [(part.name, part.start, part.end) for part in parts] == [
        ("Part 1", 0.0, 10.0),
        ("Opening", 10.0, 38.0),
        ("Part 2", 38.0, 90.0),
        ("Credits", 90.0, 100.0),
    ]
    assert [part.name for part in parts_of_file(GROUPS, "b.mkv", 105.0)] == [
        *("Opening", "Part 1", "Recap", "Part 2", "Credits"),
    ]
    assert skip_list(parts) == "10.000\t38.000\t3\n90.000\t100.000\t3\n"


def test_skip_lists_keep_what_they_are_asked_to() -> None:
    """The first episode keeps its opening in both of its versions, and one end is kept longer than the other."""

    def group(kind: Literal["opening", "closing", "copy"], *names: str, start: float = 10.0) -> RecurringGroup:
        return RecurringGroup(tuple(Occurrence(f"/{name}", start, start + 20, 0.9) for name in names), kind, 4)

    groups = [
        group("opening", "e2.mp4", "e2 small.mp4", "e3.mp4", "e10.mp4"),
        group("closing", "e3.mp4", "e10.mp4", start=60.0),
        group("copy", "e2.mp4", "e2 small.mp4"),
    ]
    lengths = dict.fromkeys(("/e2.mp4", "/e2 small.mp4", "/e3.mp4", "/e10.mp4"), 100.0)
    lists, refused = skip_lists(groups, lengths, pad_start=1.5, pad_end=4.0, keep_first=True)
    assert lists == {
        "/e2.edl": "",
        "/e2 small.edl": "",
        "/e3.edl": "11.500\t26.000\t3\n",
        "/e10.edl": "11.500\t26.000\t3\n61.500\t76.000\t3\n",
    }
    assert not refused
    assert skip_lists(groups, lengths)[0]["/e2.edl"] == "10.000\t30.000\t3\n"
    with pytest.raises(InvalidArgumentError, match="pad_end must be at least 0, got -1"):
        skip_lists(groups, lengths, pad_end=-1.0)


def test_chapters_of_matroska_have_times_in_nanoseconds() -> None:
    root = ElementTree.fromstring(matroska_chapters(parts_of_file(GROUPS, "a.mkv", 3700.5)).encode())
    atoms = root.findall("EditionEntry/ChapterAtom")
    assert [atom.findtext("ChapterDisplay/ChapterString") for atom in atoms][1] == "Opening"
    assert atoms[1].findtext("ChapterTimeStart") == "00:00:10.000000000"
    assert atoms[-1].findtext("ChapterTimeEnd") == "01:01:40.500000000"


def test_ffmpeg_reads_the_chapters(tmp_path: Path) -> None:
    file = tmp_path / "chapters.txt"
    file.write_text(ffmetadata_chapters(parts_of_file(GROUPS, "a.mkv", 100.0)))
    with av.open(str(file), format="ffmetadata") as container:
        chapters = container.chapters()
    assert [chapter["metadata"]["title"] for chapter in chapters] == ["Part 1", "Opening", "Part 2", "Credits"]
    assert [float(chapter["start"] * chapter["time_base"]) for chapter in chapters] == [0.0, 10.0, 38.0, 90.0]


def test_rows_name_every_occurrence() -> None:
    heading, first, second, *rest = recurring_cells(GROUPS)
    assert dict(zip(heading, second, strict=True)) == {
        "group": "A",
        "kind": "opening",
        "path": "b.mkv",
        "start": "0.000",
        "end": "20.000",
        "score": "0.8000",
        "speed": "0.9600",
        "shorter": "8.000",
        "titled": "no",
        "other_sound": "no",
        "source": "no",
        "files": "12",
        "name": "",
        "picture": "",
        "sound": "",
        "without_middle": "0.000",
        "found_by": "picture",
    }
    assert (first[2], len(rest)) == ("a.mkv", 4)


def test_page_has_a_strip_or_the_cause_for_each_file(tmp_path: Path) -> None:
    write_season(tmp_path)
    film = str(tmp_path / "e1.mp4")
    gone = str(tmp_path / "<gone>.mp4")
    group = RecurringGroup((Occurrence(film, 4.5, 11.0, 0.9), Occurrence(gone, 0.0, 6.5, 0.9)), "opening", 2)
    seen: list[tuple[int, int]] = []
    found = GroupsToWrite([group], on_progress=lambda *step: seen.append(step))
    write_format(RECURRING_FORMATS["html"], found, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.count("<img ") == 5
    assert "&lt;gone&gt;.mp4" in text
    assert "<gone>" not in text
    assert seen == [(1, 1)]


def test_split_parts_have_exactly_their_frames(tmp_path: Path) -> None:
    film = encode(tmp_path / "film.mp4", shots(("coffee", 0, 20), ("rocket", 0, 30), ("chelsea", 0, 15)), rate=RATE)
    group = RecurringGroup((Occurrence(str(film), 2.0, 5.0, 0.9), Occurrence("other", 0.0, 3.0, 0.9)), "opening", 2)
    parts = parts_of_file([group], str(film), 6.5)
    pieces = split_parts(str(film), parts, tmp_path / "parts")
    assert [Path(piece.path).name for piece in pieces] == [
        *("film-01-Part-1.mp4", "film-02-Opening.mp4", "film-03-Part-2.mp4"),
    ]
    whole = read_frames(film, rate=None).images
    counts = [20, 30, 15]
    for piece, count, first in zip(pieces, counts, (0, 20, 50), strict=True):
        images = read_frames(piece.path, rate=None).images
        assert len(images) == count
        difference = np.abs(images.astype(int) - whole[first : first + count]).mean()
        assert difference == pytest.approx(0, abs=6)


def test_joined_file_has_every_frame_except_the_opening(tmp_path: Path) -> None:
    film = encode(tmp_path / "film.mp4", shots(("coffee", 0, 20), ("rocket", 0, 30), ("chelsea", 0, 15)), rate=RATE)
    group = RecurringGroup((Occurrence(str(film), 2.0, 5.0, 0.9), Occurrence("other", 0.0, 3.0, 0.9)), "opening", 2)
    parts = parts_of_file([group], str(film), 6.5)
    left = join_parts(str(film), [part for part in parts if not part.recurs], tmp_path / "rest")
    assert left is not None
    assert (Path(left.path).name, left.frames) == ("film-without-recurring.mp4", 35)
    assert left.parts == (pytest.approx((0.0, 2.0)), pytest.approx((5.0, 6.5)))
    whole = read_frames(film, rate=None).images.astype(int)
    images = read_frames(left.path, rate=None).images
    expected = np.concatenate([whole[:20], whole[50:]])
    assert images.shape == expected.shape
    assert np.abs(images - expected).mean(axis=(1, 2, 3)).max() < 8
    assert join_parts(str(film), [], tmp_path / "rest") is None
    with pytest.raises(MediaError, match="would be overwritten"):
        join_parts(left.path, parts, tmp_path / "rest", name="film")


def test_guide_lists_all_formats() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "recurring.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|`]+) \| `(\w+)` \| (`\.[^|]*) \| `-", guide, flags=re.MULTILINE)
    players = [
        (form.label, name, ", ".join(f"`{ending}`" for ending in form.files)) for name, form in PLAYER_FORMATS.items()
    ]
    whole = [(form.label, name, f"`{form.suffix}`") for name, form in RECURRING_FORMATS.items()]
    assert rows == [*players, *whole]
