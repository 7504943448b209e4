"""Films composed of scenes: transitions are at their labels, and disturbances are not transitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.made.disturbances import DISTURBANCES, disturb
from vidkin_research.made.film import GRADUAL_JOINS, HARD_JOINS, MIN_CHANGE, FilmRecipe, compose_film
from vidkin_research.made.footage import Clip, Footage
from vidkin_research.made.scenes import ClipScene, Course, Framing, Sprite, StageScene

HEIGHT, WIDTH = 36, 64


def smooth(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:  # type: ignore[type-arg]
    coarse = random.integers(16, 236, (3, rows // 8 + 1, columns // 8 + 1), np.uint8)
    return coarse.repeat(8, 1).repeat(8, 2)[:, :rows, :columns]


@pytest.fixture(scope="module")
def footage() -> Footage:
    random = np.random.default_rng(0)
    clips = []
    for name in ("a.mp4", "axis0.mp4"):
        picture = smooth(random, HEIGHT, WIDTH)
        luma = np.stack([np.roll(picture[0], place, 1) for place in range(20)])
        chroma = np.broadcast_to(picture[1:, ::2, ::2], (20, 2, HEIGHT // 2, WIDTH // 2))
        clips.append(Clip(name, luma, np.ascontiguousarray(chroma)))
    photographs = tuple(smooth(random, 90, 120) for _ in range(6))
    return Footage(HEIGHT, WIDTH, tuple(clips), photographs)


def change(film: np.ndarray, frame: int) -> float:  # type: ignore[type-arg]
    one, two = (film[place, 0].astype(float).ravel() for place in (frame - 1, frame))
    return 1 - float(np.corrcoef(one, two)[0, 1])


@pytest.mark.parametrize("kind", HARD_JOINS)
def test_image_changes_at_labeled_hard_cuts(footage: Footage, kind: str) -> None:
    recipe = FilmRecipe(joins={kind: 1}, disturbances={})
    joins = 0
    for seed in range(4):
        film = compose_film(footage, 80, seed=seed, recipe=recipe)
        assert film.pictures.shape == (80, 3, HEIGHT, WIDTH)
        assert film.gradual == ()
        assert {join.kind for join in film.joins} <= {kind, "other", "reframed"}
        for join in film.joins:
            if join.kind != "other":
                # Noise and rounding are applied after the transition was measured.
                assert change(film.pictures, join.start) > MIN_CHANGE - 0.03
            joins += 1
    assert joins > 4


@pytest.mark.parametrize("kind", GRADUAL_JOINS)
def test_gradual_transitions_are_inside_the_film(footage: Footage, kind: str) -> None:
    films = [
        compose_film(footage, 120, seed=seed, recipe=FilmRecipe(joins={kind: 1}, disturbances={}, near_ends=0))
        for seed in range(4)
    ]
    spans = [(join.start, join.end) for film in films for join in film.joins if join.kind == kind]
    assert spans
    assert all(0 <= first <= last < 120 for first, last in spans)


def test_fades_do_not_overlap(footage: Footage) -> None:
    recipe = FilmRecipe(joins={"fade": 1}, disturbances={}, near_ends=0, close=0, shortest=10)
    for seed in range(8):
        spans = compose_film(footage, 200, seed=seed, recipe=recipe).gradual
        assert len(spans) > 1
        assert all(last < first for (_, last), (first, _) in itertools.pairwise(spans))


def test_dissolve_starts_with_the_disturbance_of_the_previous_shot(footage: Footage) -> None:
    """A still photograph, dark because of an exposure change: the dissolve starts dark."""
    still = Footage(HEIGHT, WIDTH, footage.clips[1:], footage.photographs)
    recipe = FilmRecipe(
        joins={"dissolve": 1}, disturbances={"exposure": 1, "turntable": 1}, near_ends=0, close=0, shortest=25
    )
    for seed in range(6):
        film = compose_film(still, 90, seed=seed, recipe=recipe)
        bright = film.pictures[:, 0].mean((1, 2))
        for first, last in film.gradual:
            step = (bright[last + 1] - bright[first - 1]) / (last - first + 2)
            assert abs(bright[first] - bright[first - 1]) < 3 * abs(step) + 4


def test_sprite_mirrored_in_the_background_does_not_cover_the_area_between() -> None:
    """The frame shows columns 4 to 7 of the background and, mirrored, 7 to 4; the sprite is in columns 4 and 5."""
    background = np.full((3, 8, 8), 100, np.uint8)
    sprite = Sprite(
        np.full((3, 8, 2), 200, np.uint8),
        np.ones((8, 2), np.bool_),
        Course(),
        Course((0.5,), (1e9,), (np.pi / 2,)),
    )
    scene = StageScene(background, (8, 8), (sprite,), camera=(Course(), Course((0.5,), (1e9,), (np.pi / 2,))))
    seen = scene.pictures(np.zeros(1), Framing())[0, 0]
    assert seen[0].tolist() == [200, 200, 100, 100, 100, 100, 200, 200]


def test_people_move_in_front_of_a_static_wall(footage: Footage) -> None:
    """Between and across jump cuts most of the frame is unchanged, but some of it moves."""
    recipe = FilmRecipe(joins={"same": 1}, disturbances={}, near_ends=0, close=0, shortest=15, people=1)
    still, moving = [], []
    for seed in range(6):
        pictures = compose_film(footage, 60, seed=seed, recipe=recipe).pictures[:, 0].astype(int)
        changed = np.abs(np.diff(pictures, axis=0)) > 12  # more than the noise
        still.append(float((~changed).mean()))
        moving.append(bool(changed.mean((1, 2)).max() > 0.01))
    assert np.median(still) > 0.8
    assert all(moving)


def test_film_without_transitions_is_one_shot(footage: Footage) -> None:
    assert compose_film(footage, 40, seed=0, recipe=FilmRecipe(joins={})).joins == ()


def test_cuts_can_be_placed_near_the_ends(footage: Footage) -> None:
    recipe = FilmRecipe(joins={"other": 1}, disturbances={}, near_ends=1, close=0)
    for seed in range(5):
        frames = compose_film(footage, 60, seed=seed, recipe=recipe).hard
        assert 2 <= frames[0] <= 5
        assert 55 <= frames[-1] <= 58


def test_same_seed_gives_the_same_film(footage: Footage) -> None:
    one, two = (compose_film(footage, 50, seed=3) for _ in range(2))
    assert np.array_equal(one.pictures, two.pictures)
    assert one.joins == two.joins


def test_invalid_recipes_and_lengths_are_rejected(footage: Footage) -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be among other, same.* got 'morph'"):
        FilmRecipe(joins={"morph": 1})
    with pytest.raises(InvalidArgumentError, match="length must be at least 2 frames, got 1"):
        compose_film(footage, 1, seed=0)


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_disturbance_changes_frames_but_not_their_number(kind: str) -> None:
    random = np.random.default_rng(1)
    pictures = random.uniform(16, 235, (40, 3, 16, 24)).astype(np.float32)
    found = disturb(pictures.copy(), kind, np.random.default_rng(2))
    assert found.shape == pictures.shape
    assert not np.array_equal(found, pictures)
    assert disturb(pictures[:5], kind, random) is not None
    assert np.array_equal(disturb(pictures[:5].copy(), kind, random), pictures[:5])


def test_unknown_disturbances_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"kind must be one of flash.*got 'rain'"):
        disturb(np.zeros((20, 3, 8, 8), np.float32), "rain", np.random.default_rng(0))


def test_framing_crops_and_grades_the_scene(footage: Footage) -> None:
    scene = ClipScene(footage.clips[0])
    whole = scene.pictures(np.zeros(1), Framing())
    assert np.array_equal(whole[0, 0], footage.clips[0].luma[0])
    corner = scene.pictures(np.zeros(1), Framing(scale=0.5, down=0, across=0, gain=0.5, lift=10))
    assert np.array_equal(corner[0, 0, ::2, ::2], footage.clips[0].luma[0, :18, :32] * np.float32(0.5) + 10)


def test_quick_move_ends_at_its_target() -> None:
    course = Course(step=0.5, step_at=10, step_span=4)
    assert course.at(np.array([0.0, 10, 12, 14, 50])).tolist() == pytest.approx([0, 0, 0.25, 0.5, 0.5])
