"""Features of frames between those around them: what a dissolve, a wipe and a still picture give."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.shots.band import BAND_CHANNELS, BAND_CONTEXT, Rows
from vidkin.shots.between import BETWEEN_CHANNELS, SPANS, BetweenFeatures, GradualReader, search_blocks

# Half-size luma of 18 x 32, then blue and red differences of 9 x 16.
SAMPLES = 18 * 32 + 2 * 9 * 16


def features(frames: Rows, *, block: int = 1000) -> NDArray[np.float32]:
    """[T, spans, 5]: distance, share, spread, misfit of one share, misfit of own shares."""
    between = BetweenFeatures()
    parts = [between.push(frames[start : start + block]) for start in range(0, len(frames), block)]
    return np.concatenate([*parts, between.finish()]).reshape(-1, len(SPANS), 5)


@pytest.fixture
def shots() -> Rows:
    return (np.random.default_rng(0).random((2, SAMPLES)) / 30).astype(np.float32)


def test_a_frame_in_a_dissolve_is_the_mixture_of_those_around_it(shots: Rows) -> None:
    """Over frames 60 to 119; frame 90 lies in the middle of any two around it, frame 75 a quarter of the way."""
    parts = ((np.arange(200) - 60) / 60).clip(0, 1).astype(np.float32)[:, None]
    found = features(shots[0] * (1 - parts) + shots[1] * parts)
    assert found.shape == (200, len(SPANS), 5)
    assert found[90, :, 1] == pytest.approx(np.full(6, 0.5), abs=1e-3)
    assert found[90, :, 2:].max() < 0.01
    # Frame 75 is 15 of 63 frames of change away from frame 27, which is still the first shot, and frame 123.
    assert found[75, SPANS.index(48), 1] == pytest.approx(0.25, abs=0.01)


def test_in_a_wipe_parts_of_the_picture_belong_to_either_shot(shots: Rows) -> None:
    """The luma of the upper two thirds has changed, eight cells of twelve: their shares are 1, those of the others 0,
    so that one share for all leaves more over than its own for each cell."""
    changed = np.zeros(SAMPLES, bool)
    changed[: 12 * 32] = True
    frames = np.repeat(shots[:1], 100, 0)
    frames[40:] = np.where(changed, shots[1], shots[0])
    frames[60:] = shots[1]
    distance, share, spread, misfit, own = features(frames)[50, SPANS.index(16)]
    assert distance > 0.1
    assert share == pytest.approx(0.6, abs=0.1)
    assert spread > 0.3
    assert misfit > 2 * own


def test_blocks_change_nothing_and_films_may_be_short(shots: Rows) -> None:
    frames = np.random.default_rng(1).random((150, SAMPLES)).astype(np.float32)
    assert np.array_equal(features(frames), features(frames, block=37))
    for length in (1, 2, 47, 49):
        assert len(features(frames[:length], block=5)) == length
    assert BetweenFeatures().finish().shape == (0, BETWEEN_CHANNELS)
    assert BetweenFeatures().push(frames[:0]).shape == (0, BETWEEN_CHANNELS)


class CountingNetwork:
    """Answers the sum over the frame before, this and the next one, as a network with context would."""

    def probabilities(self, rows: Rows) -> Rows:
        total = rows[:, :5].cumsum(0)
        reach = np.concatenate([total[1:], total[-1:]])
        reach[2:] -= total[:-2]
        return reach.astype(np.float32)


def test_a_reader_gives_every_frame_one_answer_however_they_arrive() -> None:
    random = np.random.default_rng(2)
    band = random.random((300, BAND_CHANNELS)).astype(np.float32)
    colors = random.random((300, SAMPLES)).astype(np.float32)
    results = []
    for block in (300, 64, 7):
        reader = GradualReader(CountingNetwork())
        parts = [
            reader.push(band[start : start + block], colors[start : start + block]) for start in range(0, 300, block)
        ]
        if block == 64:
            assert sum(map(len, parts)) == 300 - SPANS[-1] - BAND_CONTEXT
        results.append(np.concatenate([*parts, reader.finish()]))
    assert results[0].shape == (300, 5)
    assert np.allclose(results[0], results[1], atol=1e-4)
    assert np.allclose(results[0], results[2], atol=1e-4)


def test_blocks_of_a_picture_that_moved_are_found_where_they_were() -> None:
    """Three samples down and two to the left; the upper blocks but one and the right ones came from outside."""
    old, new = np.random.default_rng(0).uniform(0, 255, (2, 32, 32)).astype(np.float32)
    moved = new.copy()
    moved[3:, :30] = old[:29, 2:]
    search = search_blocks(old, moved, noise=36)
    assert search.found[1:, :7].all()
    assert not search.found[0].any()
    # Of 9 places down and 9 across, the one at -3, +2 from the middle.
    assert set(search.best[1:, :7].ravel().tolist()) == {(4 - 3) * 9 + 4 + 2}
    assert search.moved[1:, :7].all()
    assert not search_blocks(old, old, noise=36).moved.any()
    assert not search_blocks(old, new, noise=36).found.any()
