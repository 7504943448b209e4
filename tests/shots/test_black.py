"""Black segments: their ends in planes and images, and how lists and images of shots use them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.shots import KnownCutsDetector, detect, write_shots_csv


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film at 25 fps: 10 black frames, 30 of coffee with one dark and six black frames among them, 20 black, 30 of
    rocket.

    The black frames have a few bright pixels, as of a channel logo.
    """
    coffee, rocket = list(pan("coffee", 30)), list(pan("rocket", 30))
    black = np.zeros_like(coffee[0])
    black[4:8, 4:20] = 200
    coffee[5] = coffee[5] // 3
    coffee[12:18] = [black] * 6
    path = tmp_path_factory.mktemp("black") / "film.mp4"
    return encode(path, [*[black] * 10, *coffee, *[black] * 20, *rocket], rate=25, options={"crf": "10"})


@pytest.mark.parametrize("detector", ["cuts", "images"])
def test_black_segments_have_their_start_and_end(film: Path, detector: str) -> None:
    found = detect(film, "cuts" if detector == "cuts" else KnownCutsDetector(short_side=64))
    assert [(one.start_frame, one.end_frame) for one in found.black] == [(0, 10), (22, 28), (40, 60)]
    assert [(one.start, one.end) for one in found.black] == [
        pytest.approx(span) for span in ((0.0, 0.4), (0.88, 1.12), (1.6, 2.4))
    ]
    assert found.to_dict()["black"][2]["end"] == pytest.approx(2.4)


def test_black_in_a_part_has_frame_numbers_of_the_whole_video(film: Path) -> None:
    found = detect(film, KnownCutsDetector(short_side=64), start=1.0, end=2.0)
    assert [(one.start_frame, one.end_frame) for one in found.black] == [(25, 28), (40, 50)]
    assert found.black[1].end == pytest.approx(2.0)


def test_visible_part_of_a_shot_is_its_longest_part_without_black(film: Path) -> None:
    found = detect(film, KnownCutsDetector(short_side=64))
    assert found.seen(0) == (60, 90)
    assert found.black_seconds(found.shots[0]) == pytest.approx(0.4 + 0.24 + 0.8)


def test_table_of_shots_has_the_seconds_of_black(film: Path, tmp_path: Path) -> None:
    write_shots_csv([detect(film, KnownCutsDetector(short_side=64))], tmp_path / "shots.csv")
    with (tmp_path / "shots.csv").open(newline="") as file:
        assert [row["black"] for row in csv.DictReader(file)] == ["1.440000"]
