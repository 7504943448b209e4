"""Small synthetic replacements for the recordings and edited videos used to compare shot detectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import _ordinary_scheduling, _quiet_threads, shared_data
from tests.support.recordings import LENGTHS
from tests.support.videos import encode, pan
from vidkin_research.made.highlights import ACTIVITIES, HIGHLIGHT_PLACES

__all__ = ["_ordinary_scheduling", "_quiet_threads", "clips", "edited", "shared_data"]


@pytest.fixture(scope="package")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of a colored room in which a white bar is visible during an event."""
    folder = tmp_path_factory.mktemp("clips")
    random = np.random.default_rng(0)
    for name, seconds in LENGTHS.items():
        events = [a for a in ACTIVITIES if HIGHLIGHT_PLACES[a.place] == name]
        base = np.broadcast_to(random.integers(40, 200, (48, 72, 3), dtype=np.uint8) // 8 * 2 + 60, (48, 72, 3))
        frames = []
        for number in range(int(seconds * 10)):
            frame = base.copy()
            if any(event.start <= number / 10 < event.end for event in events):
                frame[:, 20:50] = 250
            frames.append(frame)
        encode(folder / name, frames, rate=10)
    return folder


@pytest.fixture(scope="package")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``two.mp4`` with one hard cut, at frame 30, and ``one.mp4``, a single shot; labeled."""
    folder = tmp_path_factory.mktemp("edited")
    encode(folder / "two.mp4", [*pan("coffee", 30), *pan("rocket", 30)], rate=25)
    encode(folder / "one.mp4", pan("chelsea", 30), rate=25)
    labels = {"two.mp4": {"hard": [30], "gradual": []}, "one.mp4": {"hard": [], "gradual": []}}
    (folder / "truth.json").write_text(json.dumps({"videos": labels}), encoding="utf-8")
    return folder
