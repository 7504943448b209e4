"""Quality loss: blur, downsampling, noise and compression."""

from __future__ import annotations

import math

import pytest
import torch

from vidkin.datasets.augmentation.degrade import add_noise, blur, blur_clip, compress, down_sample
from vidkin.errors import InvalidArgumentError


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


PLAIN = torch.full((4, 3, 24, 24), 0.3)


@pytest.mark.parametrize(
    "edit",
    [
        lambda x: blur(x, make_generator(), sigma=(2.0, 2.0), share=1.0),
        lambda x: down_sample(x, make_generator(), lowest=0.1, share=1.0),
    ],
)
def test_uniform_images_stay_uniform(edit) -> None:
    assert torch.allclose(edit(PLAIN), PLAIN, atol=1e-5)


def test_blurred_clip_has_no_denormal_numbers() -> None:
    point = torch.zeros(2, 3, 96, 96)
    point[:, :, 40, 30] = 1.0
    for sigma in (0.1, 0.5, 2.0):
        blurred = blur_clip(point, sigma)
        assert float(blurred[blurred > 0].min()) > 1e-30
        torch.testing.assert_close(blurred.sum((2, 3)), torch.ones(2, 3), rtol=0, atol=1e-4)
    torch.testing.assert_close(blurred[0, 0, 40, 30] / blurred[0, 0, 42, 30], torch.tensor(math.exp(0.5)))


def test_blurred_point_becomes_a_gaussian() -> None:
    point = torch.zeros(1, 3, 21, 21)
    point[..., 10, 10] = 1
    spread = blur(point, make_generator(), sigma=(1.5, 1.5), share=1.0)[0, 0]
    assert float(spread.sum()) == pytest.approx(1, abs=1e-5)
    assert torch.allclose(spread, spread.T, atol=1e-6)
    places = torch.arange(21) - 10.0
    # The row variance is a little less than 2.25 because the kernel ends at four pixels.
    assert float((spread.sum(1) * places.square()).sum()) == pytest.approx(2.1, abs=0.1)
    assert float(spread[10, 12] / spread[10, 10]) == pytest.approx(torch.tensor(-2 / 2.25).exp().item(), abs=1e-4)


def test_downsampling_keeps_the_mean_and_reduces_contrast() -> None:
    stripes = torch.tensor([0.0, 1.0]).repeat(12).expand(1, 3, 24, 24)
    shrunk = down_sample(stripes, make_generator(), lowest=0.5, share=1.0)
    # Scaling to between half and full size reduces the contrast of one-pixel stripes but keeps their mean.
    assert float(shrunk.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(shrunk.std()) < 0.45 < float(stripes.std())


def test_noise_has_the_given_standard_deviation_and_is_clipped() -> None:
    middle = torch.full((2, 3, 64, 64), 0.5)
    noisy = add_noise(middle, make_generator(), deviation=(0.1, 0.1), share=1.0)
    assert float((noisy - middle).std()) == pytest.approx(0.1, abs=0.003)
    assert abs(float((noisy - middle).mean())) < 0.003
    dark = add_noise(torch.zeros(1, 3, 32, 32), make_generator(), deviation=(0.2, 0.2), share=1.0)
    assert float(dark.min()) == 0
    # Half of the noise is negative and clipped.
    assert 0.4 < float((dark == 0).float().mean()) < 0.6


def test_lower_quality_loses_more() -> None:
    images = torch.rand(3, 3, 32, 32, generator=make_generator(1))
    errors = [
        float((compress(images, make_generator(), quality=(quality, quality), share=1.0) - images).square().mean())
        for quality in (95.0, 60.0, 20.0, 3.0)
    ]
    assert errors == sorted(errors)
    assert errors[0] < 0.002 < 0.01 < errors[3]


def test_uniform_blocks_are_quantized_by_the_step_of_the_mean() -> None:
    # At quality 50, the step of the DC coefficient is 16/255, and that of a uniform block is 8 times its value.
    compressed = compress(PLAIN, make_generator(), quality=(50.0, 50.0), share=1.0)
    step = 16 / 255 / 8
    expected = round(0.3 / step) * step
    assert torch.allclose(compressed, torch.full_like(PLAIN, expected), atol=1e-4)


@pytest.mark.parametrize("side", [(8, 8), (13, 21), (5, 3)])
def test_images_of_any_size_can_be_compressed(side: tuple[int, int]) -> None:
    images = torch.rand(2, 3, *side, generator=make_generator(2))
    edited = compress(images, make_generator(), quality=(30.0, 90.0), share=1.0)
    assert edited.shape == images.shape
    assert 0 <= float(edited.min()) <= float(edited.max()) <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: down_sample(PLAIN, make_generator(), lowest=0.0, share=1.0),
            "lowest must be above 0 and at most 1, got 0.0",
        ),
        (lambda: compress(PLAIN, make_generator(), quality=(50.0, 101.0), share=1.0), "quality must be at most 100"),
        (lambda: compress(PLAIN, make_generator(), quality=(0.5, 50.0), share=1.0), "quality must be .* 1.0 <= low"),
        (lambda: add_noise(PLAIN, make_generator(), deviation=(0.2, 0.1), share=1.0), "deviation must be"),
        (lambda: blur(PLAIN, make_generator(), sigma=(1.0, 2.0), share=-0.1), "share must be .* got -0.1"),
    ],
)
def test_invalid_arguments_are_rejected(call, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()
