"""Intros count as frames that many videos share; copies and quotations do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.index.helpers import units
from tests.index.storage.test_stores import record
from vidkin.errors import CollectionDamagedError
from vidkin.index import CommonFrames, Entry, MemoryStore, VideoRecord, WindowVectors, open_place
from vidkin.index.query.common import find_common
from vidkin.similarity import FrameFeatures

AXES = np.eye(32, dtype=np.float32)
INTRO = AXES[31]


def windows(vectors: list[NDArray[np.floating]], seconds: list[float]) -> WindowVectors:
    ends = np.array(seconds, np.float64).cumsum(0)
    numbers = np.arange(len(vectors))
    starts = ends - np.array(seconds, np.float64)
    return WindowVectors(np.stack(vectors).astype(np.float16), starts, ends, numbers, numbers)


def store_of(*videos: WindowVectors) -> tuple[MemoryStore, list[VideoRecord]]:
    store = MemoryStore()
    entries = []
    for number, own in enumerate(videos):
        count = len(own)
        features = FrameFeatures.of_whole(
            values=own.vectors[:, None],
            timestamps=own.starts,
            information=np.ones(count, np.float32),
            baseline=np.zeros(count, np.float32),
        )
        entries.append(Entry(record(f"/v/{number}.mp4", frames=count, windows=count), features, own))
    return store, store.append_many(entries)


def own_film(number: int, *, length: float = 20.0) -> WindowVectors:
    """Two windows that nobody else has."""
    return windows([AXES[2 * number], AXES[2 * number + 1]], [length, length])


def with_intro(number: int) -> WindowVectors:
    """The same with an intro of three seconds before it."""
    return windows([INTRO, AXES[2 * number], AXES[2 * number + 1]], [3.0, 20.0, 20.0])


def common_of(*videos: WindowVectors, minimum: int = 3) -> NDArray[np.floating]:
    store, records = store_of(*videos)
    return find_common(store, [item.id for item in records], minimum=minimum)


def test_intro_of_four_unrelated_videos_is_all_they_share() -> None:
    common = common_of(*map(with_intro, range(4)), own_film(5))
    assert common.shape == (4, 32)
    assert np.array_equal(common, np.tile(INTRO, (4, 1)))


def test_three_videos_are_too_few_unless_the_minimum_is_two() -> None:
    assert len(common_of(*map(with_intro, range(3)))) == 0
    assert len(common_of(*map(with_intro, range(3)), minimum=2)) == 3


def test_frames_of_copies_of_one_film_are_not_common() -> None:
    # Four copies share everything: none of it is common.
    assert len(common_of(*[with_intro(0)] * 4)) == 0


def test_a_scene_in_many_copies_of_its_film_counts_once() -> None:
    quoting = windows([AXES[0], AXES[10], AXES[11]], [3.0, 20.0, 20.0])
    assert len(common_of(quoting, *[own_film(0)] * 5)) == 0


def test_copies_of_one_unrelated_video_count_once() -> None:
    twins = [with_intro(1), with_intro(1), with_intro(1)]
    assert len(common_of(with_intro(0), *twins)) == 0


def test_videos_without_windows_are_skipped() -> None:
    assert len(common_of(*map(with_intro, range(4)), WindowVectors.empty(32))) == 4


class TestCommonFrames:
    def test_the_share_rises_from_three_quarters_to_85_percent(self) -> None:
        common = CommonFrames(AXES[:1])
        cosines = np.array([0.0, 0.74, 0.8, 0.86, 1.0])
        frames = np.stack([AXES[0] * cosine + AXES[1] * (1 - cosine**2) ** 0.5 for cosine in cosines])
        assert common.share(frames[:, None]).tolist() == pytest.approx([0, 0, 0.5, 1, 1], abs=0.01)

    def test_without_common_vectors_no_frame_is_common(self) -> None:
        assert CommonFrames().share(np.ones((3, 2, 4), np.float32)).tolist() == [0, 0, 0]
        assert len(CommonFrames()) == 0

    def test_only_new_vectors_are_added(self) -> None:
        nearly = units(AXES[0] + 0.1 * AXES[1])
        merged = CommonFrames().merge(np.stack([AXES[0], nearly, AXES[2]]))
        assert np.array_equal(merged.vectors, np.stack([AXES[0], AXES[2]]))
        assert len(merged.merge(AXES[2:4])) == 3

    def test_saved_vectors_are_loaded_from_a_folder(self, tmp_path: Path) -> None:
        assert len(CommonFrames.open(open_place(tmp_path))) == 0
        CommonFrames(AXES[:3]).save(open_place(tmp_path))
        assert np.array_equal(CommonFrames.open(open_place(tmp_path)).vectors, AXES[:3])

    def test_a_damaged_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / CommonFrames.FILE).write_bytes(b"not a tensor")
        with pytest.raises(CollectionDamagedError, match=r"common\.safetensors"):
            CommonFrames.open(open_place(tmp_path))
