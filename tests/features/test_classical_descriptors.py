"""Regional descriptors: colors match scikit-image, orientations match synthetic waves, frames are independent."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.fft import dctn
from skimage.color import rgb2lab

from vidkin.errors import InvalidArgumentError
from vidkin.features.classical import REGIONS, SIDE, _resize, describe_regions, lab_from_rgb, raw_dimension

# Parts of a descriptor.
GRADIENTS, COSINES, BRIGHTNESS, COLOR, CONTRAST, TEXTURE = (
    slice(*ends) for ends in ((0, 72), (72, 120), (120, 129), (129, 147), (147, 174), (174, 201))
)


def flat(*color: float) -> NDArray[np.float32]:
    return np.broadcast_to(np.array(color, np.float32)[None, :, None, None], (1, 3, SIDE, SIDE))


def stripes(degrees: float, period: float = 24.0) -> NDArray[np.float64]:
    """Gray sine waves with their gradient in this direction."""
    rows, columns = np.indices((SIDE, SIDE))
    angle = math.radians(degrees)
    along = columns * math.cos(angle) + rows * math.sin(angle)
    return np.broadcast_to(127.5 + 100 * np.sin(2 * math.pi * along / period), (1, 3, SIDE, SIDE))


def noise(count: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random((count, 3, SIDE, SIDE), dtype=np.float32) * 255


def test_colors_match_scikit_image() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
    lab = lab_from_rgb(images.transpose(0, 3, 1, 2))
    expected = rgb2lab(images)
    # Our conversion matrix is rounded to four digits.
    assert np.abs(lab.transpose(0, 2, 3, 1) - expected).max() < 0.2


def test_gray_has_no_chroma_and_white_is_100() -> None:
    lab = lab_from_rgb(np.broadcast_to(np.array([0.0, 255.0, 300.0, -5.0]), (1, 3, 1, 4)))
    # Out-of-range values are clipped.
    assert lab[0, 0, 0].tolist() == pytest.approx([0, 100, 100, 0], abs=1e-3)
    assert np.abs(lab[0, 1:]).max() < 0.02


def test_descriptor_has_ten_regions_of_201_values() -> None:
    assert raw_dimension() == 201
    described = describe_regions(noise(2, seed=0))
    assert described.shape == (2, len(REGIONS), 201) == (2, 10, 201)
    assert np.isfinite(described).all()
    assert describe_regions(noise(0, seed=0)).shape == (0, 10, 201)


@pytest.mark.parametrize("shape", [(3, SIDE, SIDE), (1, 1, SIDE, SIDE), (1, 3, SIDE, SIDE - 1)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"images must be \[T, 3, 192, 192\], got \["):
        describe_regions(np.zeros(shape))


def test_flat_frame_has_only_color() -> None:
    described = describe_regions(flat(200.0, 40.0, 40.0))[0]
    for part in (GRADIENTS, COSINES, BRIGHTNESS, TEXTURE):
        assert np.abs(described[:, part]).max() < 2e-3
    # The variance is the mean of squares minus the squared mean in float32, so rounding leaves a deviation below 0.1.
    assert described[:, CONTRAST].max() < math.log1p(0.1) / 3
    lab = lab_from_rgb(flat(200.0, 40.0, 40.0))[0, 1:, 0, 0] / 60
    for bins in described[:, COLOR].reshape(10, 2, 9):
        np.testing.assert_allclose(bins, np.broadcast_to(lab[:, None], (2, 9)), atol=1e-4)


@pytest.mark.parametrize(("degrees", "strongest"), [(0, 0), (45, 2), (90, 4), (135, 6)])
def test_orientations_match_synthetic_waves(degrees: float, strongest: int) -> None:
    """Eight unsigned orientations of 22.5 degrees each: 0 and 180 degrees are the same."""
    gradients = describe_regions(stripes(degrees))[0, :, GRADIENTS].reshape(10, 8, 9).sum(2)
    assert gradients.argmax(1).tolist() == [strongest] * 10


def test_frames_are_described_independently() -> None:
    images = noise(3, seed=1)
    together = describe_regions(images)
    for number in range(3):
        np.testing.assert_array_equal(together[number], describe_regions(images[number : number + 1])[0])


def test_regions_depend_only_on_their_part_of_the_frame() -> None:
    """The first region is the upper left quarter, the last one the whole frame."""
    images = noise(1, seed=2)
    changed = images.copy()
    changed[:, :, SIDE - 40 :, SIDE - 40 :] = 0
    before, after = describe_regions(images)[0], describe_regions(changed)[0]
    same = [np.allclose(one, other, atol=1e-5) for one, other in zip(before, after, strict=True)]
    # Regions are in row order: the change at the lower right affects only regions that extend into that corner.
    rows = [(top + length, left + length) for top, left, length in REGIONS]
    assert same == [not (bottom * 16 > SIDE - 40 and right * 16 > SIDE - 40) for bottom, right in rows]
    assert same.count(True) == 8


def test_resizing_matches_torch() -> None:
    """Bilinear with antialiasing in floating point; stored features were computed like this."""
    generator = np.random.default_rng(3)
    for height, width in ((240, 427), (361, 240), (192, 192), (50, 37), (700, 1)):
        picture = generator.integers(0, 256, (height, width, 3), dtype=np.uint8)
        planes = torch.from_numpy(picture).permute(2, 0, 1)[None].float()
        expected = torch.nn.functional.interpolate(planes, (SIDE, SIDE), mode="bilinear", antialias=True)[0]
        np.testing.assert_allclose(_resize(picture), expected.numpy(), atol=5e-3)


def test_descriptors_match_the_first_version() -> None:
    """Orientations, pooling and DCT match the original torch code, so existing indexes stay valid."""
    images = noise(1, seed=4).round()
    images[:, :, :96, :96] = images[:, :, :1, :1]  # a flat quarter
    luminance = torch.from_numpy(lab_from_rgb(images)[:, :1])
    described = torch.from_numpy(describe_regions(images))
    padded = torch.nn.functional.pad(luminance, (1, 1, 1, 1), mode="replicate")
    across = padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2]
    down = padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]
    angle = torch.remainder(torch.atan2(down, across), math.pi) * (8 / math.pi)
    lower = angle.floor()
    votes = torch.zeros(1, 8, SIDE, SIDE)
    magnitude = torch.hypot(across, down)
    votes.scatter_add_(1, lower.long() % 8, magnitude * (1 - angle + lower))
    votes.scatter_add_(1, (lower.long() + 1) % 8, magnitude * (angle - lower))
    pool = torch.nn.functional.avg_pool2d
    for region, (top, left, length) in enumerate(REGIONS):
        window = (slice(top * 16, (top + length) * 16), slice(left * 16, (left + length) * 16))
        part = votes[:, :, *window]
        bins = pool(part, length * 16 // 3).flatten()
        rooted = (bins / (bins.norm() + 0.5)).clamp(0, 0.3).sqrt()
        gradients = rooted / rooted.norm().clamp_min(1e-12) * bins.norm() / (bins.norm() + 2)
        torch.testing.assert_close(described[0, region, GRADIENTS], gradients, atol=1e-5, rtol=0)
        detail = (luminance - pool(luminance, 3, 1, 1, count_include_pad=False)).abs()
        logs = torch.log1p(pool(detail, 16))[:, :, top : top + length, left : left + length]
        fine = pool(logs, length // 3).flatten() / 2
        torch.testing.assert_close(described[0, region, TEXTURE][:9], fine, atol=1e-5, rtol=0)
        patch = pool(luminance[:, :, *window], length * 16 // 24)[0, 0].double().numpy()
        cosines = dctn(patch, norm="ortho")[:7, :7].ravel()[1:]
        expected = torch.from_numpy(cosines / (np.linalg.norm(cosines) + 30)).float()
        torch.testing.assert_close(described[0, region, COSINES], expected, atol=1e-5, rtol=0)
