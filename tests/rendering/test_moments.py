"""The same moments in all files of a group."""

from __future__ import annotations

import pytest

from vidkin.index import DuplicateGroup, DuplicateMember
from vidkin.rendering.moments import align_group, matching_moments
from vidkin.similarity import Segment


def member(
    name: str, duration: float, *segments: Segment, of: str | None = "/best", best: bool = False
) -> DuplicateMember:
    other = None if best else of
    return DuplicateMember(
        name, 1.0, 640, 480, duration, 1000, best, compared_with=other, segments=segments, mirrored=False
    )


BEST = member("/best", 60.0, best=True)


def test_delayed_and_faster_copies_are_aligned_to_the_same_moments() -> None:
    later = member("/later", 58.0, Segment(0, 58, 2, 60, 1.0))
    # A second of it is 1.25 s of the best copy.
    faster = member("/faster", 48.0, Segment(0, 48, 0, 60, 1.0, speed=1.25))
    best, first, second = matching_moments(DuplicateGroup((BEST, later, faster)))
    assert len(best) == 3
    for at, one, other in zip(best, first, second, strict=True):
        assert at is not None
        assert one == pytest.approx(at - 2)
        assert other == pytest.approx(at / 1.25)
        assert at > 2  # all files show these moments


def test_reversed_copies_are_aligned_from_their_end() -> None:
    back = member("/back", 30.0, Segment(0, 30, 10, 40, 1.0, backwards=True))
    (part,) = align_group(DuplicateGroup((BEST, back)))["/back"]
    assert (part.start, part.end, part.at, part.rate) == (10, 40, 30, -1)
    assert (part.time(10), part.time(40)) == (30, 0)
    again = member("/again", 20.0, Segment(0, 20, 5, 25, 1.0, backwards=True), of="/back")
    (part,) = align_group(DuplicateGroup((BEST, back, again)))["/again"]
    # Reversed twice is forward: 25 s of /back, at the first second of /again, is 15 s of /best.
    assert (part.start, part.end, part.at, part.rate) == (15, 35, 0, 1)


def test_moment_is_none_where_a_file_lacks_the_footage() -> None:
    start = member("/start", 20.0, Segment(0, 20, 0, 20, 1.0))
    end = member("/end", 20.0, Segment(0, 20, 40, 60, 1.0))
    best, first, last = matching_moments(DuplicateGroup((BEST, start, end)))
    # No moment is in all three files, so moments that two of them show are used, at both ends.
    assert [(one is None, other is None) for one, other in zip(first, last, strict=True)] == [
        (False, True),
        (True, False),
        (True, False),
    ]
    assert [at for at in best if at is None] == []


def test_file_compared_with_another_copy_is_aligned_through_it() -> None:
    middle = member("/middle", 50.0, Segment(0, 50, 10, 60, 1.0))
    mirrored = member("/far", 40.0, Segment(0, 40, 5, 45, 1.0, mirrored=True), of="/middle")
    (part,) = align_group(DuplicateGroup((BEST, middle, mirrored)))["/far"]
    # 5 s of /middle is 15 s of /best.
    assert (part.start, part.end, part.at, part.rate, part.mirrored) == (15.0, 55.0, 0.0, 1.0, True)
    assert part.time(20.0) == 5.0
    assert part.to_dict()["box"] == [0.0, 0.0, 1.0, 1.0]


def test_alignment_terminates_for_identical_and_mutually_compared_copies() -> None:
    twin = member("/twin", 60.0)
    assert align_group(DuplicateGroup((BEST, twin)))["/twin"][0].time(30.0) == 30.0
    one = member("/one", 60.0, Segment(0, 60, 0, 60, 1.0), of="/other")
    other = member("/other", 60.0, Segment(0, 60, 0, 60, 1.0), of="/one")
    aligned = align_group(DuplicateGroup((BEST, one, other)))
    assert (aligned["/one"], aligned["/other"]) == ((), ())
    assert matching_moments(DuplicateGroup((BEST, one, other)))[1] == [None, None, None]
