"""Rotated, mirrored, faster, slower and reversed copies are found and reported, on real encoded files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import vidkin
from tests.support.videos import encode, pan
from vidkin.index import refine_segment

RATE = 10
Frame = NDArray[np.uint8]
# Number of clockwise quarter turns, and whether the frame is then flipped.
POSES = [(quarters, flipped) for flipped in (False, True) for quarters in range(4)]


def film(*names: str, seconds: int = 5) -> list[Frame]:
    """Shots of equal length of a camera moving over these photographs."""
    return [frame for name in names for frame in pan(name, seconds * RATE, width=192, height=128)]


def own() -> list[Frame]:
    return film("coffee", "astronaut")


def rotate_and_flip(frame: Frame, quarters: int, flipped: bool) -> Frame:
    """Rotate frames clockwise, then mirror them horizontally."""
    image = np.rot90(frame, -quarters)
    return np.ascontiguousarray(image[:, ::-1] if flipped else image)


def name_of(quarters: int, flipped: bool) -> str:
    return f"{90 * quarters} {'mirrored' if flipped else 'plain'}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds of film in every pose, and other films."""
    path = tmp_path_factory.mktemp("poses")
    for quarters, flipped in POSES:
        encode(
            path / f"{name_of(quarters, flipped)}.mp4",
            [rotate_and_flip(frame, quarters, flipped) for frame in own()],
            rate=RATE,
        )
    for name in ("rocket", "chelsea"):
        encode(path / f"{name}.mp4", film(name, seconds=10), rate=RATE)
    return path


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[vidkin.Index]:
    with vidkin.Index.open(folder / "library.vidkin", create=True) as library:
        library.add(sorted(folder.glob("*.mp4")))
        yield library


@pytest.mark.parametrize("query", POSES[::3])
def test_search_finds_and_reports_mirrored_and_rotated_copies(
    index: vidkin.Index, folder: Path, query: tuple[int, bool]
) -> None:
    matches = {Path(match.path).stem: match for match in index.search(folder / f"{name_of(*query)}.mp4", limit=20)}
    said = {name: (match.turned // 90, match.mirrored) for name, match in matches.items() if match.score >= 0.2}
    assert sorted(said) == sorted(name_of(*pose) for pose in POSES)
    assert min(matches[name].score for name in said) > 0.7
    corner = np.arange(6).reshape(2, 3)
    for pose in POSES:
        brought = rotate_and_flip(rotate_and_flip(corner, *query), *said[name_of(*pose)])
        np.testing.assert_array_equal(brought, rotate_and_flip(corner, *pose))
        segment = matches[name_of(*pose)].segments[0]
        assert not segment.backwards
        assert (segment.query_start, segment.query_end) == pytest.approx((0, 10), abs=0.6)
        assert (segment.target_start, segment.target_end) == pytest.approx((0, 10), abs=0.6)


@pytest.mark.thorough
def test_results_contain_the_pose(index: vidkin.Index, folder: Path) -> None:
    matches = {Path(match.path).stem: match for match in index.search(folder / "0 plain.mp4", limit=20)}
    first = matches["90 plain"]
    assert first.to_dict()["turned"] == first.to_dict()["segments"][0]["turned"] == 90
    assert matches["0 mirrored"].to_dict()["mirrored"] is True
    assert first.to_dict()["segments"][0]["backwards"] is False


@pytest.mark.thorough
def test_two_files_are_compared_in_both_directions(folder: Path) -> None:
    there = vidkin.compare(folder / "0 plain.mp4", folder / "90 plain.mp4")
    back = vidkin.compare(folder / "90 plain.mp4", folder / "0 plain.mp4")
    assert there.score == back.score > 0.7
    assert (there.segments[0].turned, back.segments[0].turned) == (90, 270)


@pytest.mark.thorough
def test_rotated_copy_gets_exact_times(folder: Path) -> None:
    segment, *_ = vidkin.compare(folder / "0 plain.mp4", folder / "270 plain.mp4").segments
    wrong = replace(segment, target_start=segment.target_start + 0.4, target_end=segment.target_end + 0.4)
    refined = refine_segment(folder / "0 plain.mp4", folder / "270 plain.mp4", wrong)
    assert refined.target_start - refined.query_start == pytest.approx(0.0, abs=0.06)


@pytest.mark.parametrize("edit", ["plain", pytest.param("mirrored", marks=pytest.mark.thorough)])
def test_reversed_footage_is_found_and_reported(index: vidkin.Index, folder: Path, tmp_path: Path, edit: str) -> None:
    frames = [rotate_and_flip(frame, 0, edit == "mirrored") for frame in own()][20:80]
    copy = encode(tmp_path / "backwards.mp4", frames[::-1], rate=RATE)
    matches = {Path(match.path).stem: match for match in index.search(copy, limit=20)}
    first = matches["0 plain"]
    assert first.score > 0.7
    segment = first.segments[0]
    assert segment.backwards
    assert segment.mirrored == (edit == "mirrored")
    assert segment.to_dict()["backwards"] is True
    assert (segment.target_start, segment.target_end) == pytest.approx((2, 8), abs=1.1)
    assert segment.speed == pytest.approx(1.0, abs=0.05)
    assert all(matches[name].score < 0.2 for name in ("rocket", "chelsea") if name in matches)
    (back, *_) = vidkin.compare(folder / "0 plain.mp4", copy).segments
    assert back.backwards
    assert (back.query_start, back.query_end) == pytest.approx((2, 8), abs=0.6)


@pytest.fixture(scope="module")
def shots() -> list[Frame]:
    """Forty seconds of five-second shots."""
    return [
        frame
        for seed in (0, 1)
        for name in ("coffee", "rocket", "astronaut", "chelsea")
        for frame in pan(name, 5 * RATE, width=96, height=64, seed=seed)
    ]


@pytest.fixture(scope="module")
def whole(shots: list[Frame], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encode(tmp_path_factory.mktemp("speeds") / "film.mp4", shots, rate=RATE)


@pytest.mark.parametrize(
    "speed", [Fraction(5, 4), pytest.param(Fraction(4, 5), marks=pytest.mark.thorough), Fraction(1)]
)
def test_speed_of_an_unedited_segment_is_reported(
    shots: list[Frame], whole: Path, tmp_path: Path, speed: Fraction
) -> None:
    copy = encode(tmp_path / "copy.mp4", shots[50:350], rate=RATE * speed)
    compared = vidkin.compare(copy, whole)
    (segment, *_) = compared.segments
    assert segment.speed == pytest.approx(float(speed), rel=0.01)
    assert (segment.query_start, segment.query_end) == pytest.approx((0, 30 / float(speed)), abs=0.6)
    assert (segment.target_start, segment.target_end) == pytest.approx((5, 35), abs=0.6)
    assert not segment.backwards
    assert compared.score > 0.7


@pytest.mark.parametrize("speed", [Fraction(21, 20), pytest.param(Fraction(26, 25), marks=pytest.mark.thorough)])
def test_small_change_in_speed_is_reported_when_files_are_read_again(
    shots: list[Frame], whole: Path, tmp_path: Path, speed: Fraction
) -> None:
    copy = encode(tmp_path / "copy.mp4", shots[50:350], rate=RATE * speed)
    compared = vidkin.compare(copy, whole)
    segment = refine_segment(copy, whole, compared.segments[0])
    assert segment.speed == pytest.approx(float(speed), abs=0.003)
    assert (segment.query_start, segment.query_end) == pytest.approx((0, 30 / float(speed)), abs=0.2)
    assert (segment.target_start, segment.target_end) == pytest.approx((5, 35), abs=0.2)
    assert compared.score > 0.7


@pytest.mark.large
def test_excerpt_of_a_long_film_is_found_at_its_time(tmp_path: Path) -> None:
    """Fifteen minutes at one frame per second, of which a clip shows forty seconds."""
    frames = [
        frame
        for seed in range(23)
        for name in ("coffee", "rocket", "astronaut", "chelsea")
        for frame in list(pan(name, 100, width=96, height=64, seed=seed))[::10]
    ]
    whole = encode(tmp_path / "film.mp4", frames, rate=1)
    clip = encode(tmp_path / "clip.mp4", [frame for frame in frames[730:770] for _ in range(2)], rate=2)
    with vidkin.Index.open(tmp_path / "library.vidkin", create=True) as library:
        library.add(whole)
        (match,) = library.search(clip)
    assert match.score > 0.7
    (segment, *_) = match.segments
    assert (segment.target_start, segment.target_end) == pytest.approx((730, 770), abs=1.1)
    assert (segment.query_start, segment.query_end) == pytest.approx((0, 40), abs=1.1)
    assert segment.speed == 1.0
