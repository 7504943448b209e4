"""Results check themselves; names of detectors can be added; times come from the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.detections import cut_video
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.shots import (
    Curve,
    Cut,
    DetectedCut,
    DetectedCuts,
    RgbFrame,
    Shot,
    available_detectors,
    detect,
    detect_shots,
    open_detector,
    register_detector,
)
from vidkin.shots import registry as registry_module


class EverySecondOf:
    """Cuts at every n-th frame; remembers what it saw."""

    def __init__(self, *, n: int = 30, model: Path | None = None) -> None:
        self.name = "every"
        self.short_side: int | None = 32
        self.n, self.model = n, model
        self.seen: list[RgbFrame] = []

    def push(self, frame: RgbFrame) -> None:
        self.seen.append(frame)

    def finish(self) -> DetectedCuts:
        frames = range(self.n, len(self.seen), self.n)
        return DetectedCuts(
            tuple(DetectedCut(frame) for frame in frames), None, (0.0, *(1.0 for _ in frames))
        )


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_DETECTORS", dict(registry_module._DETECTORS))


def test_a_detector_sees_every_frame_once_in_order(tmp_path: Path) -> None:
    detector = EverySecondOf()
    calls: list[tuple[float, float | None]] = []
    found = detect(
        cut_video(tmp_path / "film.mp4"),
        detector,
        on_progress=lambda done, total: calls.append((done, total)),
    )
    assert [frame.index for frame in detector.seen] == list(range(60))
    assert [frame.time for frame in detector.seen] == pytest.approx([k / 10 for k in range(60)])
    assert {frame.image.shape for frame in detector.seen} == {(32, 48, 3)}
    assert calls[-1] == (60, 60)
    assert [(shot.start_frame, shot.end_frame, shot.critical) for shot in found.shots] == [
        (0, 30, 0.0),
        (30, 60, 1.0),
    ]
    assert found.shots[-1].end == pytest.approx(6.0)


def test_shots_without_the_rest(tmp_path: Path) -> None:
    shots = detect_shots(cut_video(tmp_path / "film.mp4"), "shotdetect")
    assert [(shot.start, shot.kind) for shot in shots] == [(0.0, "start"), (2.0, "hard"), (4.5, "hard")]


def test_a_file_that_is_no_video(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="there is no such file"):
        detect(tmp_path / "gone.mp4", "shotdetect")


@pytest.mark.usefixtures("fresh")
def test_a_detector_can_be_added() -> None:
    register_detector("every", EverySecondOf, settings={"n": int})
    register_detector("of", EverySecondOf, model=True)
    made = open_detector("every?n=7")
    assert isinstance(made, EverySecondOf)
    assert (made.n, made.name) == (7, "every?n=7")
    other = open_detector("of:some/folder")
    assert isinstance(other, EverySecondOf)
    assert other.model == Path("some/folder")
    assert {"every", "of:FOLDER"} <= set(available_detectors())
    with pytest.raises(InvalidArgumentError, match=r"the prefix 'every' is taken"):
        register_detector("every", EverySecondOf)
    with pytest.raises(InvalidArgumentError, match=r"made of letters, digits, '_' and '-', given is 'a b'"):
        register_detector("a b", EverySecondOf)


CUT: dict[str, Any] = {
    "time": 1.0,
    "frame": 10,
    "kind": "hard",
    "confidence": 0.5,
    "start": 1.0,
    "end": 1.0,
    "start_frame": 10,
    "end_frame": 10,
}
SHOT: dict[str, Any] = {
    "start": 0.0,
    "end": 1.0,
    "start_frame": 0,
    "end_frame": 10,
    "kind": "start",
    "confidence": 1.0,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "wipe"}, "kind of a cut is 'hard' or 'gradual', given is 'wipe'"),
        ({"confidence": 1.5}, r"confidence lies in \[0, 1\], given is 1.5"),
        ({"start_frame": 11}, "start_frame <= frame <= end_frame from 0 on, given are 11, 10, 10"),
        ({"end": 0.5}, "start <= time <= end from 0 s on, given are 1.0, 1.0, 0.5"),
    ],
)
def test_a_cut_checks_itself(changes: dict[str, Any], message: str) -> None:
    assert Cut(**CUT).frame == 10
    with pytest.raises(InvalidArgumentError, match=message):
        Cut(**{**CUT, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "end"}, "kind of a shot is 'start', 'hard' or 'gradual', given is 'end'"),
        ({"end_frame": 0}, "from start_frame up to before end_frame, given are 0 and 0"),
        ({"end": 0.0}, "a shot ends after it starts, given are 0.0 and 0.0 s"),
        ({"critical": -0.1}, r"critical lies in \[0, 1\], given is -0.1"),
        ({"confidence": 2.0}, r"confidence lies in \[0, 1\], given is 2.0"),
    ],
)
def test_a_shot_checks_itself(changes: dict[str, Any], message: str) -> None:
    assert Shot(**SHOT).critical is None
    with pytest.raises(InvalidArgumentError, match=message):
        Shot(**{**SHOT, **changes})


def test_curves_and_detections_check_themselves() -> None:
    with pytest.raises(InvalidArgumentError, match=r"one each, given are \(2,\) and \(3,\)"):
        Curve(np.zeros(2), np.zeros(3), "curve")
    with pytest.raises(InvalidArgumentError, match="a cut lies before frame 1 or later, given is 0"):
        DetectedCut(0)
    with pytest.raises(InvalidArgumentError, match=r"in the order of frames, each once; given are \[5, 5\]"):
        DetectedCuts((DetectedCut(5), DetectedCut(5)))
    with pytest.raises(InvalidArgumentError, match="1 cuts make 2 shots, given are 1 scores"):
        DetectedCuts((DetectedCut(5),), None, (0.5,))
