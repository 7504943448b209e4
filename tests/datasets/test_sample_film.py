"""The sample film has its cuts at the returned times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vidkin.datasets import SAMPLE_SHOTS, write_sample_film
from vidkin.media import read_frames


def test_frames_change_at_the_returned_times(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    starts = write_sample_film(path, rate=10, width=96, height=64)
    # The first shot is 3.0 s long, the next ones 2.4, 2.8 and 3.2 s; the dissolve starts half of its 0.8 s earlier.
    np.testing.assert_allclose(starts, (3.0, 5.4, 8.2, 11.0))
    frames = read_frames(path, rate=10).images.astype(float)
    assert len(frames) == round(10 * (sum(seconds for _, seconds in SAMPLE_SHOTS) - 0.8))
    change = np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2, 3))
    cuts = sorted((np.argsort(change)[-3:] + 1).tolist())
    assert cuts == [30, 54, 82]
    # Frames change gradually in the dissolve.
    assert change[100:120].max() < change[[29, 53, 81]].min() / 2
