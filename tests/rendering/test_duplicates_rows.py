"""One-line descriptions of each kind of copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vidkin.files import Finding
from vidkin.index import Difference, DuplicateGroup, DuplicateMember, Traits
from vidkin.rendering import describe_member, duplicate_cells
from vidkin.rendering.duplicates import describe_traits

BEST = DuplicateMember("/a/best.mp4", 0.9, 1920, 1080, 60.0, 1000, best=True)


LOST = (
    Finding("sound", "no sound"),
    Finding("data", "a time code"),
    *(Finding("picture", f"0:0{second}.0-0:0{second}.5 shows something else") for second in range(3)),
)


def copy(**facts: object) -> DuplicateMember:
    given = {"compared_with": "/a/best.mp4", **facts}
    return DuplicateMember("/a/copy.mp4", 0.8, 640, 360, 60.0, 100, best=False, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (copy(), "copy"),
        (copy(mirrored=True), "copy, mirrored"),
        (copy(lacking=12.34), "copy, has 0:12.3 of extra footage"),
        (copy(relation="excerpt", start=10.0, end=75.25), "excerpt of best.mp4, at 0:10.0 - 1:15.3"),
        (copy(relation="contains", start=1.0, end=2.0), "contains best.mp4 at 0:01.0 - 0:02.0"),
        (copy(relation="overlaps", start=1.0, end=2.0), "shares 0:01.0 - 0:02.0 with best.mp4"),
        (copy(mirrored=True, differences=(Difference("mirrored"),)), "copy, mirrored"),
        (
            copy(differences=(Difference("trimmed", start=2.0, end=58.0), Difference("cropped", 0.7))),
            "copy, only 0:02.0 - 0:58.0, cropped to 70 % of the frame",
        ),
        (
            copy(differences=(Difference("speed", 1.25), Difference("caption", where="bottom"))),
            "copy, 1.25x, caption at the bottom",
        ),
        (copy(differences=(Difference("no logo", where="upper left"),)), "copy, without a logo in the upper left"),
        (copy(differences=(Difference("other container"),)), "copy, same frames, different container"),
        (copy(differences=(Difference("bars added", 0.25),)), "copy, black bars added"),
        (copy(doubt="little detail"), "copy, doubtful: little detail"),
        (copy(doubt="a; b", findings=LOST[:2]), "copy, doubtful: no sound; a time code"),
        (copy(doubt="a; b; c; d; e", findings=LOST), "copy, doubtful: no sound; a time code; and 3 more"),
        (copy(kept_by="/a/best.mp4"), "copy, can be removed without loss"),
        (
            copy(kept_by="/b/whole.mp4"),
            "copy, can be removed without loss: whole.mp4 contains all of it",
        ),
        (copy(compared_with="/b/other\n.mp4"), "copy of other�.mp4"),
    ],
)
def test_member_is_described_in_one_line(member: DuplicateMember, words: str) -> None:
    assert describe_member(member, DuplicateGroup((BEST, member))) == words


@pytest.mark.parametrize(("reason", "words"), [("most detail", "keep (most detail)"), ("", "keep")])
def test_best_file_is_described_with_the_reason(reason: str, words: str) -> None:
    assert describe_member(BEST, DuplicateGroup((BEST, copy()), reason)) == words


def test_only_spare_files_count_as_removable() -> None:
    group = DuplicateGroup((BEST, copy(), copy(doubt="dark"), copy(lacking=1.0)))
    assert (group.best, group.savings) == (BEST, 100)


def test_table_row_has_the_relation_and_times_of_an_excerpt() -> None:
    differences = (Difference("without color"), Difference("lower resolution", 0.5))
    beside = {"companions": ("/a/copy.srt", "/a/copy.nfo"), "stays": "it is in the library"}
    traits = Traits(29.97, "HDR10", ("English 5.1", "German stereo"), 8, ("French",), 1, "2020-05-17", "+48.1+011.6/")
    part = copy(
        relation="excerpt", start=2.0, end=32.0, differences=differences, traits=traits, findings=LOST[:2], **beside
    )
    headings, _, row = duplicate_cells([DuplicateGroup((BEST, part))])
    values = dict(zip(headings, row, strict=True))
    assert (values["relation"], values["start"], values["end"]) == ("excerpt", "2.000", "32.000")
    assert values["differences"] == "without color; lower resolution"
    assert (values["stays"], values["companions"]) == ("it is in the library", "/a/copy.srt; /a/copy.nfo")
    names = ("frame_rate", "dynamic_range", "sounds", "subtitles", "date", "location")
    assert [values[name] for name in names] == [
        *("29.970", "HDR10", "English 5.1; German stereo", "French", "2020-05-17", "+48.1+011.6/")
    ]
    assert (values["proven"], values["kept_by"], values["findings"]) == ("no", "", "no sound; a time code")


def test_table_row_names_the_file_proven_to_contain_it() -> None:
    headings, best, row = duplicate_cells([DuplicateGroup((BEST, copy(kept_by="/a/best.mp4")))])
    values = dict(zip(headings, row, strict=True))
    assert (values["proven"], values["kept_by"], values["findings"]) == ("yes", "/a/best.mp4", "")
    assert dict(zip(headings, best, strict=True))["frame_rate"] == ""  # neither file was opened


def test_only_differing_traits_are_described() -> None:
    film = replace(BEST, traits=Traits(59.94, "HDR10", ("English 5.1", "German stereo"), date="2020-05-17"))
    small = copy(traits=Traits(29.97, "", (), date="2020-05-17"))
    group = DuplicateGroup((film, small, copy()))
    assert describe_traits(film, group) == ["59.94 frames per second", "HDR10", "sound: English 5.1, German stereo"]
    assert describe_traits(small, group) == ["29.97 frames per second", "8 bit", "no sound"]
    assert describe_traits(group.members[2], group) == []
