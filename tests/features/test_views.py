"""Views of a frame: cropping, boxes with stable positions, and crops of queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.features import CROPS, ViewPlan, describe_file, describe_views, features_of_views
from vidkin.features.views import crop_box
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures


def array(boxes: object) -> NDArray[np.float32]:
    return np.array(boxes, dtype=np.float32)


def frames_of(images: NDArray[np.uint8]) -> Frames:
    return Frames(images, np.arange(len(images), dtype=np.float64))


def noise(count: int, height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


class MeanColor:
    """Describes each box by its mean color."""

    name = fingerprint = "mean-color"
    scorer = "copies"
    describes_boxes = True
    short_side = 8

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        return features_of_views(
            lambda images: images.mean(axis=(1, 2), dtype=np.float32)[:, None],
            frames,
            self.fingerprint,
            boxes=boxes,
        )


def test_box_is_given_as_fractions_of_the_frame() -> None:
    image = np.arange(8 * 12 * 3, dtype=np.uint8).reshape(1, 8, 12, 3)
    assert np.array_equal(crop_box(image, (0.5, 0.25, 1.0, 0.75)), image[:, 2:6, 6:])
    assert crop_box(image, (0.99, 0.99, 1.0, 1.0)).shape == (1, 1, 1, 3)  # never empty


def test_every_view_is_described() -> None:
    image = np.zeros((1, 10, 20, 3), np.uint8)
    image[:, :, 10:] = 200
    features = MeanColor().extract(frames_of(image), boxes=array([[0, 0, 1, 1], [0, 0, 0.5, 1], [0.5, 0, 1, 1]]))
    assert features.values[0, :, 0, 0].tolist() == [100.0, 0.0, 200.0]
    assert features.boxes is not None
    assert features.boxes[0, 2].tolist() == [0.5, 0.0, 1.0, 1.0]
    assert features.thumbnails is not None
    assert features.thumbnails[0, 0].tolist() == [[0] * 4 + [200] * 4] * 8
    assert np.unique(features.thumbnails[0, 1:]).tolist() == [0, 200]


def test_recurring_box_keeps_its_position() -> None:
    """A still border around noise: both segments have the box of the noise at the same position."""
    plan = ViewPlan()
    stretches = []
    for seed in (1, 2):
        images = np.full((16, 128, 128, 3), np.arange(60, 188, dtype=np.uint8)[None, None, :, None])
        images[:, 32:96] = noise(16, 64, 128, seed)
        stretches.append(images)
    first, second = (plan.boxes(images) for images in stretches)
    assert first.shape == (5, 4)
    assert first[0].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert first[1].tolist() == pytest.approx([0, 0.25, 1, 0.75], abs=0.02)
    assert second[1].tolist() == pytest.approx(first[1].tolist(), abs=0.02)


def test_positions_without_a_box_are_zero() -> None:
    frames = frames_of(noise(2, 8, 8))
    boxes = array([(0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.5, 1.0), *[(0.0,) * 4] * 3])
    features = describe_views(MeanColor(), frames, boxes)
    assert features.values.shape == (2, 5, 1, 3)
    assert float(np.abs(features.values[:, -3:]).max()) == 0
    assert features.boxes is not None
    assert features.boxes[1].tolist() == boxes.tolist()
    assert features.thumbnails is not None
    assert features.thumbnails.shape == (2, 5, 8, 8)
    assert not features.thumbnails[:, 2:].any()


def test_crops_are_described_in_selected_frames() -> None:
    images = noise(4, 20, 20)
    boxes = array([(0.0, 0.0, 1.0, 1.0), *[(0.0,) * 4] * 4])
    features = describe_views(MeanColor(), frames_of(images), boxes, np.array([1, 3]))
    assert features.values.shape == (4, 5 + len(CROPS), 1, 3)
    assert features.boxes is not None
    np.testing.assert_allclose(features.boxes[1, 5:], CROPS, atol=1e-6)
    assert not features.values[[0, 2], 5:].any()
    middle = 5 + CROPS.index((0.2, 0.2, 0.8, 0.8))
    np.testing.assert_allclose(features.values[1, middle, 0], images[1, 4:16, 4:16].mean(axis=(0, 1)), rtol=1e-5)
    assert features.thumbnails is not None
    assert features.thumbnails[3, 5:].any()
    assert not features.thumbnails[0, 5:].any()
    np.testing.assert_array_equal(features.whole, describe_views(MeanColor(), frames_of(images), boxes).whole)


def test_crops_of_a_file_are_described_at_the_requested_rate(tmp_path: Path) -> None:
    video = encode(tmp_path / "a.mp4", pan("coffee", 80, width=64, height=48))
    parts = describe_file(video, MeanColor(), duration=8, rate=10, boxes=True, crops=2.0)
    features = FrameFeatures.concatenate(list(parts))
    has_crops = features.values[:, 5:].any(axis=(1, 2, 3))
    # Every fifth frame, counted across batches.
    assert np.flatnonzero(has_crops).tolist() == list(range(0, 80, 5))
    (plain, *_) = describe_file(video, MeanColor(), duration=8, rate=10, boxes=True)
    assert plain.values.shape[1] == 5
    (whole, *_) = describe_file(video, MeanColor(), duration=8, rate=10)
    assert whole.values.shape[1] == 1


def make_pillarboxed(count: int) -> NDArray[np.uint8]:
    """Frames with 20-pixel pillars; the content is a still image with noise from (60, 60) to (108, 108)."""
    images = np.zeros((count, 120, 160, 3), np.uint8)
    images[:, :, 20:140] = noise(1, 120, 120, seed=5) // 8 + 90
    images[:, 60:108, 80:128] = noise(count, 48, 48, seed=6)
    return images


def test_boxes_of_a_video_with_black_bars_are_fractions_of_the_whole_frame() -> None:
    boxes = ViewPlan().boxes(make_pillarboxed(16))
    found = [box for box in boxes[1:].tolist() if any(box)]
    assert any(box == pytest.approx([0.5, 0.5, 0.8, 0.9], abs=0.03) for box in found)
    # The content between the bars.
    assert any(box == pytest.approx([0.125, 0.0, 0.875, 1.0], abs=0.03) for box in found)
