"""Windows of videos cover every frame once, and splits keep videos whole."""

from __future__ import annotations

from itertools import pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st

from vidkin.training.clip_footage import VideoSquares, cut_windows, split_windows


def videos(counts: list[int]) -> list[VideoSquares]:
    empty = torch.zeros(0, 3, 1, 1, dtype=torch.uint8)
    return [VideoSquares(f"{number}.mp4", count, "", None, empty) for number, count in enumerate(counts)]


@given(st.lists(st.integers(min_value=1, max_value=500), min_size=1, max_size=6), st.integers(1, 60))
def test_windows_cover_every_video_once_with_about_the_given_length(counts: list[int], frames: int) -> None:
    windows = cut_windows(videos(counts), frames)
    assert [window.number for window in windows] == list(range(len(windows)))
    for number, count in enumerate(counts):
        own = [window for window in windows if window.video == number]
        assert (own[0].start, own[-1].stop) == (0, count)
        assert all(before.stop == after.start for before, after in pairwise(own))
        lengths = [window.stop - window.start for window in own]
        assert max(lengths) - min(lengths) <= 1
        # The number of windows is rounded, so none is longer than one and a half times the given length.
        assert max(lengths) <= max(1.5 * frames + 1, count if count < frames else 0)


@given(st.integers(1, 20), st.floats(min_value=0.05, max_value=0.95), st.integers(0, 5))
def test_split_keeps_videos_whole_with_all_their_windows(count: int, share: float, seed: int) -> None:
    windows = cut_windows(videos([30] * count), 10)
    training, validation = split_windows(windows, share=share, seed=seed)
    assert sorted(window.number for window in (*training, *validation)) == list(range(3 * count))
    held = {window.video for window in validation}
    assert held.isdisjoint({window.video for window in training})
    expected = round(share * count)
    assert len(held) == (expected if min(expected, count - expected) >= 2 else 0)
    assert split_windows(windows, share=share, seed=seed) == (training, validation)
