"""Rendered scenes: the requested kind, from the available footage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin_research.made.footage import Clip, Footage
from vidkin_research.made.scene_maker import SCENE_KINDS, SceneMaker
from vidkin_research.made.scenes import ClipScene, Framing, StageScene


def clip(name: str, count: int = 5) -> Clip:
    luma = np.full((count, 18, 32), 90, np.uint8)
    return Clip(name, luma, np.full((count, 2, 9, 16), 128, np.uint8))


def footage(*clips: str, photographs: int = 0) -> Footage:
    random = np.random.default_rng(1)
    pictures = tuple(random.integers(0, 256, (3, 60, 80), dtype=np.uint8) for _ in range(photographs))
    return Footage(18, 32, tuple(map(clip, clips)), pictures)


def maker(made_of: Footage, seed: int = 0) -> SceneMaker:
    return SceneMaker(made_of, np.random.default_rng(seed))


def test_turntable_is_shown_whole_and_only_on_request() -> None:
    both = footage("axis-1", "street", photographs=2)
    for seed in range(10):
        table = maker(both, seed).scene("turntable")
        assert isinstance(table, ClipScene)
        assert (table.clip.name, table.speed, table.mirrored) == ("axis-1", 1.0, False)
        other = maker(both, seed).scene("any")
        assert isinstance(other, StageScene) or other.clip.name == "street"


def test_another_scene_replaces_a_missing_turntable() -> None:
    assert isinstance(maker(footage("street")).scene("turntable"), ClipScene)
    assert isinstance(maker(footage("street", photographs=1)).scene("turntable"), StageScene)


def test_footage_of_only_turntables_is_used_for_every_kind() -> None:
    only = footage("axis-1", "axis-2")
    assert {maker(only, seed).scene("walkers").clip.name for seed in range(20)} == {"axis-1", "axis-2"}


def test_walkers_require_footage_of_people_walking() -> None:
    for seed in range(10):
        scene = maker(footage("street", photographs=2), seed).scene("walkers")
        assert isinstance(scene, StageScene)
        assert 1 <= len(scene.sprites) <= 3


def test_whip_pan_moves_sideways_once_and_fast() -> None:
    for seed in range(10):
        scene = maker(footage("street", photographs=2), seed).scene("whip pan")
        assert isinstance(scene, StageScene)
        whip = scene.camera[1]
        assert 0.4 <= abs(whip.step) <= 1.3
        assert 4 <= whip.step_span <= 14


@pytest.mark.parametrize("kind", SCENE_KINDS)
def test_every_kind_can_be_filmed(kind: str) -> None:
    made = maker(footage("street", "axis-1", photographs=2), 3)
    pictures = made.scene(kind).pictures(np.arange(4.0), made.framing())
    assert pictures.shape[0] == 4
    assert pictures.dtype == np.float32
    assert 0 <= pictures.min() <= pictures.max() <= 255


@given(st.integers(min_value=0, max_value=300))
def test_framings_and_their_moves_stay_inside_the_scene(seed: int) -> None:
    made = maker(footage("street"), seed)
    framing = made.framing(widest=0.9, closest=0.5)
    assert 0.5 <= framing.scale <= 0.9
    for _ in range(5):
        framing = made.reframe(framing)
        assert 0.25 <= framing.scale <= 1
        assert 0 <= framing.down <= 1
        assert 0 <= framing.across <= 1
        assert framing.gain > 0


def test_second_camera_shows_the_scene_at_another_distance() -> None:
    scales = [maker(footage("street"), seed).reframe(Framing(scale=0.6)).scale for seed in range(300)]
    # Factors between 0.45 and 1.6.
    assert 0.27 <= min(scales) < 0.3
    assert 0.9 < max(scales) <= 0.96
