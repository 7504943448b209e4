"""Coverage of a video by others: interval arithmetic, and the sources of a compilation found in real files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import ImageFilter

from tests.support.videos import Image, encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.index import Coverage, Index, SerialExecutor, SharedStretch

SIZE = {"width": 160, "height": 120}
RATE = 10


def make_stretch(start: float, end: float, path: str, there: float = 0.0, *, score: float = 0.9) -> SharedStretch:
    return SharedStretch(start, end, path, there, there + end - start, score)


def test_four_files_cover_most_of_a_film_and_the_rest_is_reported() -> None:
    film = Coverage(
        "/film.mp4",
        100.0,
        (
            make_stretch(0, 40, "/a"),
            make_stretch(30, 40, "/b"),
            make_stretch(62, 80, "/c"),
            make_stretch(78, 100, "/d"),
            make_stretch(63, 70, "/e"),
        ),
    )
    assert film.elsewhere == ((0, 40), (62, 100))
    assert film.only_here == ((40, 62),)
    assert film.share == pytest.approx(0.78)
    assert [(step.path, step.seconds, round(step.share, 2)) for step in film.fewest] == [
        ("/a", 40, 0.4),
        ("/d", 22, 0.62),
        ("/c", 16, 0.78),
    ]


def test_longest_segment_is_the_source_of_each_moment() -> None:
    film = Coverage(
        "/film.mp4",
        30.0,
        (make_stretch(0, 20, "/long", 100), make_stretch(5, 10, "/quote"), make_stretch(15, 30, "/next", 7)),
    )
    pieces = [(piece.path, piece.start, piece.end, piece.other_start, piece.other_end) for piece in film.sources]
    assert pieces == [("/long", 0, 20, 100, 120), ("/next", 20, 30, 12, 22)]


def test_the_best_source_is_unchanged_then_sharp_then_large_then_long() -> None:
    whole = make_stretch(0, 20, "/whole")
    stretches = (
        replace(whole, path="/mirrored", mirrored=True, sharpness=3.0),
        replace(whole, path="/blurred", sharpness=0.5, pixels=1920 * 1080),
        replace(whole, path="/small", sharpness=1.1, pixels=320 * 180),
        replace(make_stretch(5, 10, "/large"), sharpness=0.95, pixels=1280 * 720),
        replace(make_stretch(4, 12, "/longer"), sharpness=1.0, pixels=1280 * 720),
    )
    chosen = [(piece.path, piece.start, piece.end) for piece in Coverage("/film.mp4", 20.0, stretches).sources]
    assert chosen == [("/small", 0, 4), ("/longer", 4, 12), ("/small", 12, 20)]


def test_a_part_of_a_stretch_shown_backwards_is_at_the_other_end() -> None:
    part = replace(make_stretch(0, 10, "/a", 20), backwards=True).part(0, 4)
    assert (part.other_start, part.other_end) == (26, 30)


def test_short_gaps_are_closed_and_a_film_without_matches_is_unique() -> None:
    assert Coverage("/f", 10.0, (make_stretch(0, 5, "/a"), make_stretch(5.2, 10, "/b"))).elsewhere == ((0, 10),)
    alone = Coverage("/f", 10.0)
    assert (alone.share, alone.only_here, alone.fewest, alone.sources) == (0.0, ((0.0, 10.0),), (), ())


def test_to_dict_includes_derived_values() -> None:
    values = Coverage("/f", 10.0, (make_stretch(2, 8, "/a"),)).to_dict()
    assert values["only_here"] == [[0.0, 2], [8, 10.0]]
    assert values["share"] == pytest.approx(0.6)
    assert values["fewest"] == [{"path": "/a", "seconds": 6, "share": pytest.approx(0.6)}]


def test_segments_that_end_before_they_start_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"a segment must not end before it starts, got \[3, 2\]"):
        SharedStretch(3, 2, "/a", 0, 1, 0.5)
    with pytest.raises(InvalidArgumentError, match=r"duration must be at least 0 s, got -1"):
        Coverage("/f", -1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sources of 8 s, and a compilation: 4 s of coffee from 2.0 on, 3 s of new footage, 5 s of rocket from 1.5
    on.
    """
    made = tmp_path_factory.mktemp("compilation")
    frames = {name: list(pan(name, 80, **SIZE)) for name in ("coffee", "chelsea", "rocket", "brick")}
    for name in ("coffee", "chelsea", "rocket"):
        encode(made / f"{name}.mp4", frames[name], rate=RATE)
    whole = [*frames["coffee"][20:60], *frames["brick"][:30], *frames["rocket"][15:65]]
    encode(made / "compilation.mp4", whole, rate=RATE, options={"crf": "30"})
    return made


@pytest.fixture(scope="module")
def index(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.open(tmp_path_factory.mktemp("index") / "c.vidkin", create=True) as opened:
        opened.add(folder, executor=SerialExecutor(opened.worker_spec))
        yield opened


@pytest.mark.thorough
def test_sources_of_a_compilation_are_found_in_order_with_their_times(index: Index, folder: Path) -> None:
    steps: list[tuple[int, int]] = []
    found = index.coverage(folder / "compilation.mp4", on_progress=lambda done, total: steps.append((done, total)))
    pieces = [(Path(piece.path).stem, piece.start, piece.end, piece.other_start) for piece in found.sources]
    assert [name for name, *_ in pieces] == ["coffee", "rocket"]
    expected = [(0.0, 4.0, 2.0), (7.0, 12.0, 1.5)]
    for (_, *times), truth in zip(pieces, expected, strict=True):
        assert times == pytest.approx(truth, abs=0.21)  # two frames
    assert found.share == pytest.approx(9 / 12, abs=0.03)
    assert found.only_here[0] == pytest.approx((4.0, 7.0), abs=0.21)
    assert steps[-1][0] == steps[-1][1]


def test_film_is_covered_by_the_compilation_that_excerpts_it(index: Index, folder: Path) -> None:
    found = index.coverage(folder / "rocket.mp4")
    (piece,) = found.stretches
    assert Path(piece.path).stem == "compilation"
    assert (piece.start, piece.end, piece.other_start) == pytest.approx((1.5, 6.5, 7.0), abs=0.21)


def test_coverage_can_be_limited_to_a_folder(index: Index, folder: Path, tmp_path: Path) -> None:
    assert index.coverage(folder / "rocket.mp4", within=tmp_path).stretches == ()


@pytest.mark.thorough
def test_a_loop_is_covered_by_the_clip_that_it_repeats_and_the_sharpest_copy_is_named(tmp_path: Path) -> None:
    once = list(pan("coffee", 40, **SIZE))
    encode(tmp_path / "loop.mp4", once * 10, rate=RATE)
    soft = [PILImage.fromarray(image).filter(ImageFilter.GaussianBlur(2)) for image in once]
    encode(tmp_path / "soft.mp4", [np.asarray(image) for image in soft], rate=RATE)
    encode(tmp_path / "flipped.mp4", [np.flip(image, 1) for image in once], rate=RATE)
    encode(tmp_path / "sharp.mp4", once, rate=RATE)
    with Index.open(tmp_path / "c.vidkin", create=True) as index:
        index.add(tmp_path, executor=SerialExecutor(index.worker_spec))
        found = index.coverage(tmp_path / "loop.mp4")
    assert found.share == pytest.approx(1.0, abs=0.005)
    assert not found.only_here
    assert {Path(piece.path).stem for piece in found.sources} == {"sharp"}
    assert {Path(each.path).stem for each in found.stretches if each.mirrored} == {"flipped"}


def walk(count: int, seed: int) -> list[Image]:
    """A fixed camera: a room in which a small bright thing moves."""
    room, steps = next(iter(pan("astronaut", 1, **SIZE))), np.random.default_rng(seed).normal(0, 2.5, (count, 2))
    images = []
    for x, y in np.abs(steps.cumsum(axis=0) + np.array([60, 80])).astype(int) % (100, 140):
        image = room.copy()
        image[x : x + 12, y : y + 12] = 230
        images.append(image)
    return images


@pytest.mark.thorough
def test_a_match_in_doubt_counts_if_the_same_moves_in_both(tmp_path: Path) -> None:
    """A moment of a fixed camera is told from others by what moves."""
    camera = walk(150, 1)
    encode(tmp_path / "camera.mp4", camera, rate=RATE)
    encode(tmp_path / "shown.mp4", [*pan("coffee", 40, **SIZE), *camera[60:100]], rate=RATE, options={"crf": "28"})
    encode(tmp_path / "other.mp4", [*pan("coffee", 40, **SIZE), *walk(40, 2)], rate=RATE, options={"crf": "28"})
    with Index.open(tmp_path / "c.vidkin", create=True) as index:
        index.add(tmp_path / "camera.mp4", executor=SerialExecutor(index.worker_spec))
        (shown,) = index.coverage(tmp_path / "shown.mp4", threshold=0.99).stretches
        assert index.coverage(tmp_path / "other.mp4", threshold=0.99).stretches == ()
    assert (shown.start, shown.end, shown.other_start) == pytest.approx((4.0, 8.0, 6.0), abs=0.21)
