"""Temporal edits: which source frames are shown."""

from __future__ import annotations

import pytest
import torch

from vidkin.datasets.augmentation import TemporalSettings
from vidkin.datasets.augmentation.clip_views import plan_frames
from vidkin.errors import InvalidArgumentError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("length", [1, 3, 28])
def test_every_frame_shows_the_planned_source(length: int, seed: int) -> None:
    clip = (torch.arange(length) / length)[:, None, None, None].expand(length, 3, 4, 4)
    plan = plan_frames(length, generator(seed))
    edited = plan.apply(clip, generator(1))
    assert 1 <= len(edited) == len(plan.sources) == len(plan.filled)
    shown = plan.filled == 0
    torch.testing.assert_close(edited[shown], clip[plan.sources[shown]])
    assert not edited[plan.filled == 1].any()
    again = plan_frames(length, generator(seed))
    assert torch.equal(again.sources, plan.sources)
    assert torch.equal(again.filled, plan.filled)


def test_simple_edits_match_hand_computed_plans() -> None:
    double = TemporalSettings(speeds=(2.0, 2.0))
    assert plan_frames(5, generator(), settings=double, edit="faster").sources.tolist() == [0, 2]
    assert plan_frames(3, generator(), edit="slower").sources.tolist() == [0, 0, 1, 1, 2, 2]
    assert plan_frames(3, generator(), edit="reverse").sources.tolist() == [2, 1, 0]
    assert plan_frames(3, generator(), edit="none").sources.tolist() == [0, 1, 2]
    paused = plan_frames(8, generator(), edit="pause").sources
    assert (paused.diff() >= 0).all()
    assert len(paused) > 8
    assert sorted(set(paused.tolist())) == list(range(8))


def test_shuffled_segments_keep_their_frames_together() -> None:
    settings = TemporalSettings(shuffled=1.0, dropped=0.0)
    plan = plan_frames(64, generator(), settings=settings, edit="shuffle")
    assert sorted(plan.sources.tolist()) == list(range(64))
    breaks = int((plan.sources.diff() != 1).sum())
    assert 2 <= breaks <= 16  # segments of 4 to 16 frames
    assert not plan.filled.any()


def test_dropped_segments_are_cut_out_or_covered() -> None:
    settings = TemporalSettings(shuffled=0.0, dropped=0.3)
    plans = [plan_frames(64, generator(seed), settings=settings, edit="shuffle") for seed in range(300)]
    length = sum(len(plan.sources) for plan in plans) / len(plans) / 64
    covered = sum(int((plan.filled > 0).sum()) for plan in plans) / len(plans) / 64
    # Of the dropped fraction of 0.3, half is cut out, a quarter is black and a quarter is noise.
    assert length == pytest.approx(0.85, abs=0.02)
    assert covered == pytest.approx(0.15, abs=0.02)
    black = sum(int((plan.filled == 1).sum()) for plan in plans)
    assert black == pytest.approx(sum(int((plan.filled == 2).sum()) for plan in plans), rel=0.4)
    everything = TemporalSettings(dropped=1.0)
    assert all(len(plan_frames(5, generator(s), settings=everything, edit="shuffle").sources) for s in range(30))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": (1.0,)}, "weights must be 6 numbers"),
        ({"dropped": 1.5}, r"dropped must be in \[0, 1\], got 1.5"),
        ({"segment": (4, 2)}, "segment must be"),
        ({"slowness": 0.5}, "slowness must be at least 1, got 0.5"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        TemporalSettings(**settings)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="length must be at least 1, got 0"):
        plan_frames(0, generator())
