"""Sampling clips of critical and other shots."""

from __future__ import annotations

import itertools

import pytest

from tests.metric.sampling.chi_square import assert_follows
from vidkin.errors import InvalidArgumentError
from vidkin.shots import check_shot
from vidkin_research.learned.clip_tuples import (
    AnnotatedShot,
    ClipQuadlet,
    ClipTriplet,
    ClipWindow,
    sample_critical_quadlets,
    sample_shot_triplets,
)

# Video 0: a critical shot of 10 frames (critical 6..9), then a non-critical one. Video 1 ends with a critical shot.
SHOTS = [
    AnnotatedShot(0, 10, 14),
    AnnotatedShot(0, 0, 10, critical=(6, 9)),
    AnnotatedShot(1, 0, 5),
    AnnotatedShot(1, 5, 20, critical=(15, 20)),
]


def windows(video: int, start: int, end: int, length: int) -> list[ClipWindow]:
    return [ClipWindow(video, first, first + length) for first in range(start, end - length + 1)]


def test_critical_quadlets_are_equally_likely() -> None:
    # Non-critical windows of 3 in 0..6 (9..10 is too short), critical 6..9, next shot 10..14. The critical shot of
    # video 1 has no next shot.
    quiet, event, after = windows(0, 0, 6, 3), windows(0, 6, 9, 3), windows(0, 10, 14, 3)
    assert (len(quiet), len(event), len(after)) == (4, 1, 2)
    possible = {
        ClipQuadlet(q, p, i, n): 1.0
        for (q, p), i, n in itertools.product(itertools.permutations(quiet, 2), event, after)
    }
    drawn = sample_critical_quadlets(SHOTS, 3000, seed=0, clip_frames=3)
    assert_follows(drawn, possible)


def test_frames_on_both_sides_of_the_critical_ones_are_non_critical() -> None:
    shots = [AnnotatedShot(0, 0, 12, critical=(4, 8)), AnnotatedShot(0, 12, 16)]
    drawn = sample_critical_quadlets(shots, 200, seed=0, clip_frames=4)
    ends = {ClipWindow(0, 0, 4), ClipWindow(0, 8, 12)}
    assert {frozenset((quadlet.query, quadlet.positive)) for quadlet in drawn} == {frozenset(ends)}
    assert {quadlet.intermediate for quadlet in drawn} == {ClipWindow(0, 4, 8)}


def test_shot_triplets_come_from_non_critical_shots() -> None:
    # The non-critical shot of video 0 is its last; that of video 1 is followed by a critical one, of which any window
    # can be used.
    possible = {
        ClipTriplet(q, p, n): 1.0
        for (q, p), n in itertools.product(itertools.permutations(windows(1, 0, 5, 3), 2), windows(1, 5, 20, 3))
    }
    drawn = sample_shot_triplets(SHOTS, 4000, seed=0, clip_frames=3)
    assert_follows(drawn, possible)


def test_short_segments_can_be_a_single_window() -> None:
    shots = [AnnotatedShot(0, 0, 60, critical=(50, 60)), AnnotatedShot(0, 60, 75)]
    with pytest.raises(
        InvalidArgumentError, match=r"no critical shot is eligible with 40 frames per clip: no window of"
    ):
        sample_critical_quadlets(shots, 1, seed=0)
    (quadlet,) = sample_critical_quadlets(shots, 1, seed=0, minimum_frames=10)
    assert quadlet.intermediate == ClipWindow(0, 50, 60)
    assert quadlet.negative == ClipWindow(0, 60, 75)
    assert quadlet.query.end - quadlet.query.start == 40
    assert quadlet.query != quadlet.positive


def test_same_seed_gives_the_same_samples() -> None:
    def drawn(seed: int) -> list[ClipQuadlet]:
        return sample_critical_quadlets(SHOTS, 20, seed=seed, clip_frames=2)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert sample_critical_quadlets(SHOTS, 0, seed=0, clip_frames=2) == []


def test_error_without_eligible_tuples_names_the_cause() -> None:
    with pytest.raises(InvalidArgumentError, match="there is no critical shot to sample from"):
        sample_critical_quadlets(SHOTS[:1], 1, seed=0)
    with pytest.raises(InvalidArgumentError, match=r"no window in the next shot \(1 shots\)"):
        sample_critical_quadlets(SHOTS[3:], 1, seed=0, clip_frames=3)
    with pytest.raises(
        InvalidArgumentError,
        match=r"fewer than two windows of non-critical frames \(1 shots\), no window in the next",
    ):
        sample_critical_quadlets(SHOTS, 1, seed=0, clip_frames=6, minimum_frames=2)
    with pytest.raises(
        InvalidArgumentError, match=r"no non-critical shot .* fewer than two windows \(2 shots\); shorten"
    ):
        sample_shot_triplets(SHOTS, 1, seed=0, clip_frames=40)


def test_annotations_and_lengths_are_validated() -> None:
    with pytest.raises(InvalidArgumentError, match=r"0 <= start < end, got \[5, 5\)"):
        AnnotatedShot(0, 5, 5)
    with pytest.raises(InvalidArgumentError, match=r"critical frames must be inside their shot \[0, 8\), got \[3, 9\)"):
        AnnotatedShot(0, 0, 8, critical=(3, 9))
    with pytest.raises(InvalidArgumentError, match=r"shots must not overlap, got \[0, 8\) and \[7, 9\) of video 3"):
        sample_shot_triplets([AnnotatedShot(3, 0, 8), AnnotatedShot(3, 7, 9)], 1, seed=0)
    with pytest.raises(InvalidArgumentError, match="must be 1 <= minimum_frames <= clip_frames, got 4 and 5"):
        sample_shot_triplets(SHOTS, 1, seed=0, clip_frames=4, minimum_frames=5)
    with pytest.raises(InvalidArgumentError, match="count must be at least 0, got -1"):
        sample_shot_triplets(SHOTS, -1, seed=0)


def test_critical_frames_are_inside_their_shot() -> None:
    check_shot(0, 10, None)
    check_shot(0, 10, (0, 10))
    with pytest.raises(InvalidArgumentError, match=r"^a shot must have 0 <= start < end, got \[5, 5\)$"):
        check_shot(5, 5, None)
    with pytest.raises(InvalidArgumentError, match=r"must be inside their shot \[2, 10\), got \[1, 4\)$"):
        check_shot(2, 10, (1, 4))
    with pytest.raises(InvalidArgumentError, match=r"must be inside their shot \[2, 10\), got \[4, 4\)$"):
        check_shot(2, 10, (4, 4))
