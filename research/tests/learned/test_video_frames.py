"""Reading video frames at a given rate, and labels converted to their indices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.labelled import counting_clip, shown
from vidkin.errors import MediaError
from vidkin.media import iter_frames
from vidkin.shots import RgbFrame, ShotAnnotation, VideoAnnotation
from vidkin_research.learned.clips import count_in
from vidkin_research.learned.detector import LearnedDetector, ShotRules
from vidkin_research.learned.fitted_rule import FittedRule
from vidkin_research.learned.video_frames import read_video_frames


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 frames at 10 fps; frame k has gray value 20 + 10 k."""
    return counting_clip(tmp_path_factory.mktemp("clip") / "a.mp4", 20)


def test_frames_are_sampled_at_most_at_the_rate(clip: Path) -> None:
    frames, count = read_video_frames(clip, size=16, rate=5.0)
    assert count == 20
    assert frames.numbers.tolist() == list(range(0, 20, 2))
    assert shown(frames[0:10]) == list(range(0, 20, 2))
    assert frames.times.tolist() == pytest.approx([0.2 * number for number in range(10)])
    every, _ = read_video_frames(clip, size=16)
    faster, _ = read_video_frames(clip, size=16, rate=60.0)
    assert every.numbers.tolist() == faster.numbers.tolist() == list(range(20))


def test_discarded_frames_are_decoded_again(clip: Path) -> None:
    kept, _ = read_video_frames(clip, size=16, rate=5.0)
    again, _ = read_video_frames(clip, size=16, rate=5.0, most_bytes=kept.nbytes - 1)
    assert again.images is None
    assert again.nbytes == 0
    for part in (slice(0, 3), slice(4, 9), slice(9, 10), slice(5, 5)):
        assert np.array_equal(kept[part], again[part])


def test_file_replaced_during_reading_is_rejected(tmp_path: Path) -> None:
    path = counting_clip(tmp_path / "a.mp4", 20)
    frames, _ = read_video_frames(path, size=16, most_bytes=0)
    counting_clip(path, 5)
    with pytest.raises(MediaError, match=r"has changed since it was first read|beyond the end"):
        frames[10:14]


def test_detector_uses_the_same_frames_as_training(clip: Path) -> None:
    """The rule is fitted on sampled frames; the detector receives all frames and samples them itself."""

    class Counting:
        def frame_features(self, frames: object) -> object:
            raise AssertionError("not asked for")

        def head(self, features: object, lengths: object = None) -> object:
            raise AssertionError("not asked for")

    rules = ShotRules(window=4, rate=3.0, cut=FittedRule({"jump": 1.0}, 0.0))
    detector = LearnedDetector(Counting(), rules, size=16)  # type: ignore[arg-type]
    number = 0
    for batch in iter_frames(clip, rate=None):
        for image, time in zip(batch.images, batch.timestamps.tolist(), strict=True):
            detector.push(RgbFrame(number, time, image))
            number += 1
    frames, _ = read_video_frames(clip, size=16, rate=3.0)
    assert detector._frames == frames.numbers.tolist()
    assert frames.numbers.tolist() == [0, 4, 7, 10, 14, 17]


def test_labels_are_converted_to_sampled_frames() -> None:
    numbers = np.arange(0, 20, 4)  # frames 0, 4, 8, 12, 16
    labels = VideoAnnotation(
        Path("a.mp4"),
        25.0,
        (
            ShotAnnotation(0, 9, (5, 9)),
            ShotAnnotation(9, 11),
            ShotAnnotation(11, 14),
            ShotAnnotation(14, 20, (18, 20)),
        ),
    )
    counted = count_in(labels, numbers, fps=6.25)
    # 0 to 9 contains frames 0, 4, 8; 9 to 11 none; 11 to 14 frame 12; 14 to 20 frame 16; none of them is critical.
    assert counted.shots == (ShotAnnotation(0, 3, (2, 3)), ShotAnnotation(3, 4), ShotAnnotation(4, 5))
    assert counted.fps == 6.25
