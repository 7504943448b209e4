"""Streamed frames give the shots of their file, reported as soon as they are final."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.media import Frames, iter_frames
from vidkin.shots import DetectedCut, KnownCutsDetector, RgbFrame, ShotStream, detect

NAMES = ("coffee", "rocket", "chelsea", "astronaut", "brick", "grass")


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 shots of two seconds, with a fade to black after every sixth one."""

    def frames() -> Iterator[NDArray[np.uint8]]:
        for number in range(48):
            shot = list(pan(NAMES[number % 6], 50, width=96, height=64))
            for place, image in enumerate(shot):
                is_fading = number % 6 == 5 and place >= 38
                yield (image * (max(0, 47 - place) / 10)).clip(0, 255).astype(np.uint8) if is_fading else image

    return encode(tmp_path_factory.mktemp("stream") / "film.mkv", frames(), rate=25)


def batches(film: Path) -> Iterator[Frames]:
    return iter_frames(film, rate=None, batch=50)


@pytest.mark.thorough
def test_cuts_reported_during_the_stream_are_final_and_reported_once(film: Path) -> None:
    stream, told = ShotStream(), []
    for batch in batches(film):
        told += stream.push(batch)
    found, expected = stream.finish(), detect(film)
    assert len(told) > 20
    assert list(found.cuts[: len(told)]) == told
    sudden, same = ({cut.frame for cut in each.cuts if not cut.is_gradual} for each in (found, expected))
    assert sudden == same
    assert len(sudden) == 47
    assert len(found.black) == len(expected.black)
    assert found.curve is not None
    assert len(found.curve.values) == len(found.frame_times) == 48 * 50


def test_image_detector_gets_frames_of_its_size_and_reports_at_the_end(film: Path) -> None:
    sizes = set()

    class Sizes(KnownCutsDetector):
        def push(self, frame: RgbFrame) -> None:
            sizes.add(frame.image.shape)
            super().push(frame)

    stream = ShotStream(Sizes([DetectedCut(7)], short_side=32), frame_rate=25)
    assert [stream.push(image) for batch in [next(batches(film))] for image in batch.images[:10]] == [()] * 10
    found = stream.finish()
    assert sizes == {(32, 48, 3)}
    assert [cut.time for cut in found.cuts] == [0.28]
    assert [shot.end for shot in found.shots] == pytest.approx([0.28, 0.4])


def test_invalid_frames_cannot_be_pushed() -> None:
    images = np.zeros((3, 32, 48, 3), np.uint8)
    with pytest.raises(InvalidArgumentError, match="with frame_rate an array"):
        ShotStream().push(images)
    with pytest.raises(InvalidArgumentError, match="at least one frame"):
        ShotStream().finish()
    stream = ShotStream(frame_rate=10)
    assert stream.push(images[:0]) == ()
    stream.push(images)
    with pytest.raises(InvalidArgumentError, match="later than all previous frames"):
        stream.push(Frames(images, np.arange(3.0)))
    stream.finish()
    with pytest.raises(InvalidArgumentError, match="is for one video"):
        stream.push(images)
    with pytest.raises(InvalidArgumentError, match="threshold must be above 0"):
        ShotStream(threshold=3)
