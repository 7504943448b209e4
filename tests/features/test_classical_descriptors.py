"""Regional descriptions: color against scikit-image, orientations by hand, frames that do not depend on others."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from skimage.color import rgb2lab

from vidkin.errors import InvalidArgumentError
from vidkin.features.classical import REGIONS, SIDE, describe_regions, lab_from_rgb, raw_dimension

# Where the parts of a description lie.
GRADIENTS, COSINES, BRIGHTNESS, COLOR, CONTRAST, TEXTURE = (
    slice(*ends) for ends in ((0, 72), (72, 120), (120, 129), (129, 147), (147, 174), (174, 201))
)


def flat(*color: float) -> torch.Tensor:
    return torch.tensor(color)[None, :, None, None].expand(1, 3, SIDE, SIDE).contiguous()


def stripes(degrees: float, period: float = 24.0) -> torch.Tensor:
    """Gray waves that run in this direction."""
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    angle = math.radians(degrees)
    along = columns * math.cos(angle) + rows * math.sin(angle)
    return (127.5 + 100 * torch.sin(2 * math.pi * along / period)).expand(1, 3, SIDE, SIDE).contiguous()


def test_colors_are_those_of_scikit_image() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
    lab = lab_from_rgb(torch.from_numpy(images).permute(0, 3, 1, 2).float())
    expected = rgb2lab(images)
    # The matrix has four digits here and more there.
    assert np.abs(lab.permute(0, 2, 3, 1).numpy() - expected).max() < 0.2


def test_gray_has_no_color_and_white_is_100() -> None:
    lab = lab_from_rgb(torch.tensor([0.0, 255.0, 300.0, -5.0])[None, None, None].expand(1, 3, 1, 4))
    # Values beyond the range are cut off.
    assert lab[0, 0, 0].tolist() == pytest.approx([0, 100, 100, 0], abs=1e-3)
    assert lab[0, 1:].abs().max() < 0.02


def test_a_description_has_ten_regions_of_201_numbers() -> None:
    assert raw_dimension() == 201
    described = describe_regions(torch.rand(2, 3, SIDE, SIDE) * 255)
    assert described.shape == (2, len(REGIONS), 201) == (2, 10, 201)
    assert torch.isfinite(described).all()


@pytest.mark.parametrize("shape", [(3, SIDE, SIDE), (1, 1, SIDE, SIDE), (1, 3, SIDE, SIDE - 1)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"images must be \[T, 3, 192, 192\], got \["):
        describe_regions(torch.zeros(shape))


def test_a_flat_frame_has_nothing_but_its_color() -> None:
    described = describe_regions(flat(200.0, 40.0, 40.0))[0]
    for part in (GRADIENTS, COSINES, BRIGHTNESS, TEXTURE):
        assert described[:, part].abs().max() < 2e-3
    # Mean of squares minus square of the mean, in float32: a deviation of less than a tenth where there is none.
    assert described[:, CONTRAST].max() < math.log1p(0.1) / 3
    lab = lab_from_rgb(flat(200.0, 40.0, 40.0))[0, 1:, 0, 0] / 60
    for bins in described[:, COLOR].reshape(10, 2, 9).unbind(0):
        assert torch.allclose(bins, lab[:, None].expand(2, 9), atol=1e-4)


@pytest.mark.parametrize(("degrees", "strongest"), [(0, 0), (45, 2), (90, 4), (135, 6)])
def test_orientations_are_those_of_the_waves(degrees: float, strongest: int) -> None:
    """Eight orientations of 22.5 degrees each; unsigned, so that 0 and 180 degrees are one."""
    gradients = describe_regions(stripes(degrees))[0, :, GRADIENTS].reshape(10, 8, 9).sum(2)
    assert gradients.argmax(1).tolist() == [strongest] * 10


def test_each_frame_is_described_alone() -> None:
    images = torch.rand(3, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1)) * 255
    together = describe_regions(images)
    for number in range(3):
        assert torch.allclose(together[number], describe_regions(images[number : number + 1])[0], atol=1e-5)


def test_regions_see_only_their_part() -> None:
    """The first region is the upper left quarter, the last one the whole frame."""
    images = torch.rand(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(2)) * 255
    changed = images.clone()
    changed[:, :, SIDE - 40 :, SIDE - 40 :] = 0
    before, after = describe_regions(images)[0], describe_regions(changed)[0]
    same = [torch.allclose(one, other, atol=1e-5) for one, other in zip(before, after, strict=True)]
    # Regions in rows: of the lower right block only the middle, right, lower and last ones see something.
    rows = [(top + length, left + length) for top, left, length in REGIONS]
    assert same == [not (bottom * 16 > SIDE - 40 and right * 16 > SIDE - 40) for bottom, right in rows]
    assert same.count(True) == 8
