"""Histograms of oriented gradients compared with scikit-image, and hand-computed gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain, stripes
from skimage.feature import hog

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import GradientHistogram
from vidkin_research.features.feature import squares


def of_skimage(picture: np.ndarray, *, orientations: int, side: int) -> np.ndarray:
    return hog(
        squares([picture], 96)[0],
        orientations=orientations,
        pixels_per_cell=(side, side),
        cells_per_block=(2, 2),
        block_norm="L2-Hys",
        channel_axis=-1,
        feature_vector=False,
    )


@pytest.mark.parametrize("number", [0, 7, 14])
def test_blocks_equal_scikit_image(number: int) -> None:
    picture = photographs(15)[number]
    expected = of_skimage(picture, orientations=9, side=8)
    found = GradientHistogram("blocks").describe([picture])
    assert found.shape == (1, 4356)
    np.testing.assert_allclose(found[0].numpy(), expected.ravel(), atol=1e-4)


def test_cell_is_part_of_four_blocks() -> None:
    picture = photographs(8)[7]
    blocks = of_skimage(picture, orientations=8, side=16)  # [5, 5, 2, 2, 8]
    cells = GradientHistogram().describe([picture]).reshape(6, 6, 4, 8).numpy()
    for row, column in ((1, 1), (2, 4), (4, 3)):
        around = [blocks[row - 1 + r, column - 1 + c, 1 - r, 1 - c] for r in (0, 1) for c in (0, 1)]
        np.testing.assert_allclose(cells[row, column], around, atol=1e-4)
    # A corner cell is in a single block; beyond the edge, the cell is repeated.
    np.testing.assert_allclose(cells[0, 0, 3], blocks[0, 0, 0, 0], atol=1e-4)
    assert bool((cells[0, 0] > 0).any())


@pytest.mark.parametrize(("vertical", "bin_of_gradient"), [(True, 0), (False, 4)])
def test_stripes_have_gradients_perpendicular_to_them(vertical: bool, bin_of_gradient: int) -> None:
    cells = GradientHistogram().describe([stripes(16, side=96, vertical=vertical)]).reshape(36, 4, 8)
    assert set(cells.sum(dim=1).argmax(dim=1).tolist()) == {bin_of_gradient}


def test_uniform_image_has_no_gradient_and_the_strongest_channel_is_used() -> None:
    assert not bool(GradientHistogram().describe([plain()]).any())
    red = stripes(16, side=96)
    red[..., 1:] = 128
    torch.testing.assert_close(
        GradientHistogram().describe([red]), GradientHistogram().describe([stripes(16, side=96)])
    )


def test_layouts_have_the_expected_dimensions() -> None:
    assert GradientHistogram().describe([]).shape == (0, 1152)
    assert GradientHistogram("blocks").describe([]).shape == (0, 4356)
    with pytest.raises(InvalidArgumentError, match="layout must be one of 'cells', 'blocks', got 'rings'"):
        GradientHistogram("rings")  # type: ignore[arg-type]
