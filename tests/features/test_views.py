"""Views of a frame: the grid, cutting, and boxes that keep their places."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.features import GRID, ViewPlan, check_views, describe_views, features_of_views, place_boxes
from vidkin.features.views import crop_box
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures

# Views of a mirrored frame before those that are found: the whole, two centers, four corners.
CROPS = 7


def array(boxes: object) -> NDArray[np.float32]:
    return np.array(boxes, dtype=np.float32)


def frames_of(images: NDArray[np.uint8]) -> Frames:
    return Frames(images, np.arange(len(images), dtype=np.float64))


def noise(count: int, height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


class MeanColor:
    """The mean color of every box."""

    name = fingerprint = "mean-color"
    scorer = "copies"
    views = "both"
    short_side = 8

    def extract(
        self, frames: Frames, *, mirror: bool = False, boxes: NDArray[np.float32] | None = None
    ) -> FrameFeatures:
        return features_of_views(
            lambda images: images.mean(axis=(1, 2), dtype=np.float32)[:, None],
            frames,
            self.fingerprint,
            mirror=mirror,
            boxes=boxes,
        )


def test_grid_starts_with_the_whole_frame_and_stays_inside() -> None:
    assert GRID[0] == (0.0, 0.0, 1.0, 1.0)
    assert len(set(GRID)) == len(GRID) == 23
    for left, top, right, bottom in GRID:
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1


def test_box_is_cut_in_shares_of_the_frame() -> None:
    image = np.arange(8 * 12 * 3, dtype=np.uint8).reshape(1, 8, 12, 3)
    assert np.array_equal(crop_box(image, (0.5, 0.25, 1.0, 0.75)), image[:, 2:6, 6:])
    assert crop_box(image, (0.99, 0.99, 1.0, 1.0)).shape == (1, 1, 1, 3)  # never empty


def test_every_view_is_described() -> None:
    image = np.zeros((1, 10, 20, 3), np.uint8)
    image[:, :, 10:] = 200
    features = MeanColor().extract(frames_of(image), boxes=array([[0, 0, 1, 1], [0, 0, 0.5, 1], [0.5, 0, 1, 1]]))
    assert features.values[0, :, 0, 0].tolist() == [100.0, 0.0, 200.0]
    mirrored = MeanColor().extract(frames_of(image), mirror=True, boxes=array([[0, 0, 1, 1], [0, 0, 0.5, 1]]))
    assert mirrored.values[0, :, 0, 0].tolist() == [100.0, 200.0]


def test_recurring_box_keeps_its_position() -> None:
    """A still border around noise: the box of the noise is found in both stretches, at the same place."""
    plan = ViewPlan()
    stretches = []
    for seed in (1, 2):
        # A gradient: a plain border would be cut off as bars are.
        images = np.full((16, 128, 128, 3), np.arange(60, 188, dtype=np.uint8)[None, None, :, None])
        images[:, 32:96] = noise(16, 64, 128, seed)
        stretches.append(images)
    first, second = (plan.boxes(images) for images in stretches)
    assert first.shape == (len(GRID) + 4, 4)
    assert first[len(GRID)].tolist() == pytest.approx([0, 0.25, 1, 0.75], abs=0.02)
    assert second[len(GRID)].tolist() == pytest.approx(first[len(GRID)].tolist(), abs=0.02)


def test_positions_without_a_box_are_zeros() -> None:
    frames = frames_of(noise(2, 8, 8))
    boxes = array([*GRID, (0.0, 0.0, 0.5, 1.0), *[(0.0,) * 4] * 3])
    (plain,) = describe_views(MeanColor(), frames, boxes)
    assert plain.values.shape == (2, len(GRID) + 4, 1, 3)
    assert float(np.abs(plain.values[:, -3:]).max()) == 0
    assert plain.boxes is not None
    assert plain.boxes[1, -4].tolist() == [0.0, 0.0, 0.5, 1.0]


def test_tall_frames_swap_rows_and_columns_of_the_grid() -> None:
    wide, tall = (ViewPlan().boxes(noise(2, height, width)) for height, width in ((60, 90), (90, 60)))
    between = (1 / 6, 1 / 2)
    columns = array([[left, 0, left + 1 / 3, 1] for left in between])
    np.testing.assert_allclose(wide[len(GRID) - 2 : len(GRID)], columns)
    np.testing.assert_allclose(tall[len(GRID) - 2 : len(GRID)], columns[:, [1, 0, 3, 2]])
    assert np.array_equal(wide[: len(GRID) - 2], tall[: len(GRID) - 2])
    # A letterbox does not make a tall picture wide.
    images = np.zeros((2, 120, 200, 3), np.uint8)
    images[:, :, 70:130] = noise(2, 120, 60)
    np.testing.assert_allclose(ViewPlan().boxes(images)[: len(GRID)], tall[: len(GRID)])


def test_mirrored_frames_are_described_in_all_views() -> None:
    frames = frames_of(noise(2, 8, 8))
    boxes = array([*GRID, (0.0, 0.0, 0.5, 1.0), *[(0.0,) * 4] * 3])
    plain, mirrored = describe_views(MeanColor(), frames, boxes, mirrors=(False, True))
    assert plain.values.shape == (2, len(GRID) + 4, 1, 3)
    assert mirrored.values.shape == (2, CROPS + 4, 1, 3)
    # The left half of the picture is the right half of its mirror image; its mean color is the same.
    expected = frames.images[:, :, :4].mean(axis=(1, 2), dtype=np.float32)
    np.testing.assert_allclose(mirrored.values[0, CROPS, 0], expected[0], rtol=1e-5, atol=1e-6)
    # So are crops: centers, and corners of 80 % of each side.
    np.testing.assert_allclose(mirrored.values[:, :CROPS], plain.values[:, :CROPS], rtol=1e-5, atol=1e-6)
    assert mirrored.boxes is not None
    assert mirrored.boxes[0, CROPS].tolist() == [0.0, 0.0, 0.5, 1.0]
    assert np.array_equal(mirrored.boxes[:, :CROPS], plain.boxes[:, :CROPS])


def test_views_are_described_in_a_sample_of_frames() -> None:
    images = noise(5, 8, 8)
    (features,) = describe_views(MeanColor(), frames_of(images), array(GRID), begun=3, stride=2)
    assert features.described_parts.tolist() == [False, True, False, True, False]
    assert bool((features.whole > 0).all())
    expected = images[1, :, 4:].mean(axis=(0, 1))
    np.testing.assert_allclose(features.values[1, GRID.index((0.5, 0.0, 1.0, 1.0)), 0], expected, rtol=1e-6)


def test_boxes_between_bars_are_shares_of_the_frame() -> None:
    between = array([[0.0, 0.25, 1.0, 0.75], [0.0, 0.0, 1.0, 1.0]])
    placed = place_boxes(array([[0.0, 0.0, 1.0, 1.0], [0.5, 0.5, 1.0, 1.0]]), between)
    assert placed[0].tolist() == [[0.0, 0.25, 1.0, 0.75], [0.5, 0.5, 1.0, 0.75]]
    assert placed[1].tolist() == [[0.0, 0.0, 1.0, 1.0], [0.5, 0.5, 1.0, 1.0]]


def barred(count: int) -> NDArray[np.uint8]:
    """A picture of 120 x 120 between pillars of 20 columns; in it noise from (60, 60) to (108, 108) before a still."""
    images = np.zeros((count, 120, 160, 3), np.uint8)
    images[:, :, 20:140] = noise(1, 120, 120, seed=5) // 8 + 90
    images[:, 60:108, 80:128] = noise(count, 48, 48, seed=6)
    return images


def test_boxes_are_detected_and_described_between_black_bars() -> None:
    images = barred(16)
    boxes = ViewPlan().boxes(images)
    there = boxes[len(GRID) :][boxes[len(GRID) :].any(axis=1)]
    # The rectangle of the noise as shares of the picture; the edges of the bars are no box.
    assert len(there) >= 1
    assert there[0].tolist() == pytest.approx([0.5, 0.5, 0.9, 0.9], abs=0.04)
    assert all(float(box[0]) > 0.02 for box in there)
    exact = array([*GRID, (0.5, 0.5, 0.9, 0.9), *[(0.0,) * 4] * 3])
    plain, mirrored = describe_views(MeanColor(), frames_of(images), exact, mirrors=(False, True), stride=2)
    expected = images[:, 60:108, 80:128].mean(axis=(1, 2), dtype=np.float32)
    for features, view in ((plain, len(GRID)), (mirrored, CROPS)):
        np.testing.assert_allclose(features.values[::2, view, 0], expected[::2], rtol=1e-5, atol=1e-6)
        assert features.boxes is not None
        # Shares of the frame: the picture is from 1/8 to 7/8 of its width.
        np.testing.assert_allclose(features.boxes[0, view], [0.5, 0.5, 0.8, 0.9], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(features.boxes[1, 0], [0.125, 0.0, 0.875, 1.0])
        np.testing.assert_allclose(features.boxes[0, view + 1], 0)


def test_bars_are_cut_off_per_frame() -> None:
    images = np.concatenate([barred(1), noise(1, 120, 160, seed=8)])
    features = MeanColor().extract(frames_of(images), boxes=array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 1.0]]))
    left = [images[0, :, 20:80].mean(axis=(0, 1)), images[1, :, :80].mean(axis=(0, 1))]
    np.testing.assert_allclose(features.values[:, 1, 0], np.stack(left), rtol=1e-4, atol=1e-2)


def test_names_of_views_are_checked() -> None:
    assert [check_views(name) for name in ("none", "query", "both")] == ["none", "query", "both"]
    with pytest.raises(InvalidArgumentError, match="views must be one of none, query, both, got 'all'"):
        check_views("all")
