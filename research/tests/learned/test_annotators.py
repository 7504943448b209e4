"""Merging the labels of several annotators: the published rule by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots import ShotAnnotation, VideoAnnotation
from vidkin_research.learned.annotations import merge_annotators, merge_critical

Interval = tuple[int, int] | None


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        # All agree.
        ([(60, 90), (60, 90), (60, 90)], (60, 90)),
        # Two of three say critical, with different frames: 70 to 80 is marked by both.
        ([(60, 80), (70, 90), None], (70, 80)),
        # Half is not a majority.
        ([(60, 90), (60, 90), None, None], None),
        ([None, None, (60, 90)], None),
        # Most agree on 60 to 70, of which 65 to 70 is marked by all three.
        ([(60, 70), (60, 70), (65, 90)], (65, 70)),
        # Two segments with two votes each: the longer one is used or, if equally long, the last one.
        ([(10, 20), (10, 20), (50, 80), (50, 80)], (50, 80)),
        ([(10, 20), (10, 20), (50, 60), (50, 60)], (50, 60)),
        ([(10, 40), (10, 40), (50, 60), (50, 60)], (10, 40)),
        ([None], None),
        ([(5, 6)], (5, 6)),
    ],
)
def test_published_rule_merges_annotators(marked: list[Interval], expected: Interval) -> None:
    assert merge_critical((0, 100), marked) == expected


def labels(*critical: Interval, name: str = "a.mp4", cut: int = 50) -> list[VideoAnnotation]:
    parts = ((0, cut), (cut, 100))
    shots = tuple(ShotAnnotation(start, end, own) for (start, end), own in zip(parts, critical, strict=True))
    return [VideoAnnotation(Path(name), 25.0, shots)]


def test_every_shot_is_merged_independently() -> None:
    merged = merge_annotators([labels((40, 50), None), labels((30, 50), (90, 100)), labels((44, 50), (80, 95))])
    assert merged == labels((44, 50), (90, 95))


def test_merging_requires_the_same_videos_and_shots() -> None:
    one = labels(None, None)
    with pytest.raises(InvalidArgumentError, match="labels must come from at least one annotator, got none"):
        merge_annotators([])
    with pytest.raises(InvalidArgumentError, match=r"the same videos, but a\.mp4 is missing from annotator 1 or"):
        merge_annotators([one, labels(None, None, name="b.mp4")])
    with pytest.raises(
        InvalidArgumentError,
        match=r"agree on the shots of a\.mp4, got \[0, 50\) from annotator 1 and \[0, 40\) from annotator 2",
    ):
        merge_annotators([one, labels(None, None, cut=40)])
    short = [VideoAnnotation(Path("a.mp4"), 25.0, (ShotAnnotation(0, 50),))]
    with pytest.raises(InvalidArgumentError, match="got 2 at 25 fps from annotator 1 and 1 at 25"):
        merge_annotators([one, short])
