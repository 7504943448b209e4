"""Copies turned by a quarter or half of a circle: found, said, and placed, on real encoded files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import vidkin
from tests.support.videos import encode, pan
from vidkin.features import turn_boxes_back
from vidkin.index import refine_segment

RATE, COUNT = 10, 60
Frame = NDArray[np.uint8]


def turned(frame: Frame, quarters: int) -> Frame:
    """Clockwise."""
    return np.ascontiguousarray(np.rot90(frame, -quarters))


def write(path: Path, quarters: int = 0, *, name: str = "coffee", flipped: bool = False) -> Path:
    """Six seconds of a camera over a photograph, turned and then flipped."""
    pictures = (turned(frame, quarters) for frame in pan(name, COUNT, width=192, height=128))
    return encode(path, (np.ascontiguousarray(p[:, ::-1]) if flipped else p for p in pictures), rate=RATE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip, its turned copies, and another film."""
    path = tmp_path_factory.mktemp("turned")
    write(path / "clip.mp4")
    for quarters in (1, 2, 3):
        write(path / f"turned {90 * quarters}.mp4", quarters)
    write(path / "upside down.mp4", 2, flipped=True)
    write(path / "rocket.mp4", name="rocket")
    return path


@pytest.fixture(scope="module")
def index(folder: Path) -> vidkin.Index:
    library = vidkin.Index.open(folder / "library.vidkin", create=True)
    library.add(sorted(folder.glob("*.mp4")))
    return library


def test_a_search_finds_turned_copies_and_says_how_they_are_turned(index: vidkin.Index, folder: Path) -> None:
    matches = {Path(match.path).stem: match for match in index.search(folder / "clip.mp4")}
    said = {name: (match.turned, match.mirrored) for name, match in matches.items() if match.score >= 0.2}
    assert said == {
        "clip": (0, False),
        "turned 90": (90, False),
        "turned 180": (180, False),
        "turned 270": (270, False),
        "upside down": (180, True),
    }
    assert min(matches[name].score for name in said) > 0.9
    first = matches["turned 90"]
    assert first.to_dict()["turned"] == first.to_dict()["segments"][0]["turned"] == 90
    segment = first.segments[0]
    assert (segment.query_start, segment.query_end) == pytest.approx(
        (segment.target_start, segment.target_end), abs=0.2
    )
    assert segment.query_end - segment.query_start > 5.5


def test_what_is_not_turned_is_not_read_again(index: vidkin.Index, folder: Path) -> None:
    query = index._describe(folder / "rocket.mp4", None, None, True)
    assert query.turns is not None
    assert [degrees for degrees, _ in query.turns.looks()] == [90, 90, 270, 270, 180, 180]
    assert query.as_it_is.turns is None
    found = index.search(folder / "rocket.mp4", threshold=0.2)
    assert [(Path(match.path).stem, match.turned) for match in found] == [("rocket", 0)]


@pytest.mark.thorough
def test_frames_that_show_something_are_turned_not_the_empty_ones_before(tmp_path: Path) -> None:
    """Of 40 s the first 32 are black: at most eight frames after that, and none before."""
    clip = [*[np.zeros((128, 192, 3), np.uint8)] * 160, *pan("coffee", 40, width=192, height=128)]
    path = encode(tmp_path / "late.mp4", clip, rate=5)
    with vidkin.Index.open(tmp_path / "library.vidkin", create=True) as library:
        query = library._describe(path, None, None, True)
    assert query.turns is not None
    for _, features in query.turns.looks():
        assert 1 <= len(features) <= 8
        assert features.timestamps.min() >= 31.9
        assert features.information.min() > 0.3


@pytest.mark.thorough
def test_two_files_are_compared_in_both_directions(folder: Path) -> None:
    there = vidkin.compare(folder / "clip.mp4", folder / "turned 90.mp4", mirrored=False)
    back = vidkin.compare(folder / "turned 90.mp4", folder / "clip.mp4", mirrored=False)
    assert there.score == back.score > 0.9
    assert (there.segments[0].turned, back.segments[0].turned) == (90, 270)


@pytest.mark.thorough
def test_a_turned_copy_beside_other_footage_is_placed(folder: Path, tmp_path: Path) -> None:
    pairs = zip(pan("coffee", COUNT, width=192, height=128), pan("rocket", COUNT, width=128, height=192), strict=True)
    split = encode(tmp_path / "split.mp4", (np.hstack([turned(one, 1), other]) for one, other in pairs), rate=RATE)
    comparison = vidkin.compare(folder / "clip.mp4", split, mirrored=False)
    assert comparison.segments[0].turned == 90
    assert comparison.segments[0].query_box == (0, 0, 1, 1)
    assert comparison.segments[0].target_box == pytest.approx((0, 0, 0.5, 1), abs=0.05)


@pytest.mark.thorough
def test_exact_times_of_a_turned_copy(folder: Path) -> None:
    (segment,) = vidkin.compare(folder / "clip.mp4", folder / "turned 270.mp4", mirrored=False).segments
    wrong = replace(segment, target_start=segment.target_start + 0.4, target_end=segment.target_end + 0.4)
    refined = refine_segment(folder / "clip.mp4", folder / "turned 270.mp4", wrong)
    assert refined.target_start - refined.query_start == pytest.approx(0.0, abs=0.06)


@pytest.mark.parametrize(("degrees", "box"), [(0, (0.1, 0.2, 0.4, 0.9)), (90, (0.2, 0.6, 0.9, 0.9)),
                                              (180, (0.6, 0.1, 0.9, 0.8)), (270, (0.1, 0.1, 0.8, 0.4))])  # fmt: skip
def test_boxes_are_turned_back(degrees: int, box: tuple[float, ...]) -> None:
    boxes = np.array([[(0.1, 0.2, 0.4, 0.9), (0.0, 0.0, 0.0, 0.0)]])
    assert turn_boxes_back(boxes, degrees)[0] == pytest.approx(np.array([box, (0.0,) * 4]))
