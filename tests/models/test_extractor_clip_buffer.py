"""Cutting a stream of frames into clips."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.features import ClipPlan
from vidkin.models.extractor import ClipBuffer, PlannedClip


def cut(plan: ClipPlan, frames: int, times: list[float], batch: int = 3) -> list[tuple[list[int], float]]:
    """Frame numbers and time of each clip if frames are pushed in batches of ``batch``."""
    buffer = ClipBuffer(plan, frames)
    found: list[PlannedClip] = []
    for first in range(0, len(times), batch):
        part = times[first : first + batch]
        items = np.arange(first, first + len(part), dtype=np.float32)[:, None]
        found += buffer.push(items, part, [index / 10 for index in range(first, first + len(part))])
    found += buffer.finish()
    for clip in found:
        assert clip.information == pytest.approx(float(clip.items.mean()) / 10)
    return [(clip.items[:, 0].astype(int).tolist(), clip.time) for clip in found]


def ten(count: int, rate: float = 10.0) -> list[float]:
    return [index / rate for index in range(count)]


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_clips_of_consecutive_frames_begin_at_every_step(batch: int) -> None:
    plan = ClipPlan(0.0, None, 10.0, step=0.5)
    found = cut(plan, 4, ten(14), batch)
    assert [rows for rows, _ in found] == [[0, 1, 2, 3], [5, 6, 7, 8], [10, 11, 12, 13]]
    assert [time for _, time in found] == pytest.approx([0.15, 0.65, 1.15])


def test_the_last_clip_ends_with_the_video() -> None:
    plan = ClipPlan(0.0, None, 10.0, step=0.5)
    # The frames 4 to 8 after the first clip are more than half a step, so another clip ends with the video.
    assert [rows for rows, _ in cut(plan, 4, ten(8))] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    # A remainder of at most half a step is dropped.
    assert [rows for rows, _ in cut(plan, 4, ten(6))] == [[0, 1, 2, 3]]


def test_a_video_shorter_than_a_clip_is_a_short_clip() -> None:
    assert cut(ClipPlan(0.0, None, 10.0), 4, ten(3)) == [([0, 1, 2], pytest.approx(0.1))]
    assert cut(ClipPlan(0.0, None, 10.0), 4, [0.0]) == [([0], 0.0)]
    assert cut(ClipPlan(0.0, None, 10.0), 4, []) == []


def test_clips_are_not_repeated_if_there_are_fewer_frames_than_steps() -> None:
    plan = ClipPlan(0.0, None, 10.0, step=0.1)
    assert [rows for rows, _ in cut(plan, 2, [0.0, 1.0, 2.0])] == [[0, 1], [1, 2]]


def test_an_excerpt_begins_with_its_first_frame() -> None:
    plan = ClipPlan(1.0, 2.0, 10.0, step=5.0)
    assert cut(plan, 2, [0.95, 1.05, 1.15, 1.25])[0][0] == [1, 2]
    assert cut(plan, 2, [0.95])[0][0] == [0]  # unless there is no other frame


@pytest.mark.parametrize("batch", [1, 2, 50])
def test_listed_times_give_the_frame_on_screen(batch: int) -> None:
    plan = ClipPlan(0.25, 3.0, 2.0, clips=((0.25, 0.75), (1.25, 1.75), (2.25, 2.75)))
    found = cut(plan, 2, [0.0, 0.5, 1.25, 1.3, 2.9], batch)
    assert [rows for rows, _ in found] == [[0, 1], [2, 3], [3, 3]]
    assert [time for _, time in found] == [0.5, 1.5, 2.5]


def test_without_a_rate_one_clip_is_sampled_over_the_whole_video() -> None:
    plan = ClipPlan(0.0, None, None)
    # The centers of the quarters of 2 s: 0.25, 0.75, 1.25, 1.75.
    assert cut(plan, 4, [0.0, 0.5, 1.0, 1.5, 2.0]) == [([0, 1, 2, 3], 1.0)]
    assert cut(plan, 3, [0.0]) == [([0, 0, 0], 0.0)]  # a single image is repeated


def test_memory_does_not_grow_with_the_length_of_the_video() -> None:
    buffer = ClipBuffer(ClipPlan(0.0, None, 10.0, step=1.0), 4)
    most = 0
    for index in range(1000):
        list(buffer.push(np.zeros((1, 1), np.float32), [index / 10], [1.0]))
        most = max(most, len(buffer._items))
    assert most <= 16
