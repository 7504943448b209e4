"""Color and brightness edits match hand-computed values."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vidkin.datasets.augmentation import degrade
from vidkin.errors import InvalidArgumentError


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int = 6, side: int = 4) -> torch.Tensor:
    return torch.rand(count, 3, side, side, generator=make_generator(9))


def test_luminance_of_the_primary_colors() -> None:
    primaries = torch.eye(3).view(3, 3, 1, 1)
    assert torch.allclose(degrade.luminance(primaries).flatten(), torch.tensor([0.299, 0.587, 0.114]))
    assert torch.allclose(degrade.luminance(torch.ones(1, 3, 1, 1)), torch.ones(1))


def test_gray_images_have_their_luminance_in_all_channels() -> None:
    given = images()
    gray = degrade.to_gray(given, make_generator(), share=1.0)
    assert torch.equal(gray, degrade.luminance(given).expand_as(given))


def test_a_fraction_of_the_images_is_gray_and_the_rest_is_unchanged() -> None:
    given = images(200, 1)
    gray = degrade.to_gray(given, make_generator(), share=0.3)
    changed = (gray != given).flatten(1).any(1)
    assert 40 <= int(changed.sum()) <= 80
    assert torch.equal(gray[~changed], given[~changed])


def test_contrast_scales_the_distance_from_the_mean() -> None:
    given = torch.tensor([0.3, 0.5, 0.7, 0.5]).expand(1, 3, 4).reshape(1, 3, 2, 2)
    assert torch.allclose(
        degrade.change_contrast(given, make_generator(), factors=(0.0, 0.0)), torch.full_like(given, 0.5)
    )
    doubled = degrade.change_contrast(given, make_generator(), factors=(2.0, 2.0))
    assert torch.allclose(doubled[0, 0].flatten(), torch.tensor([0.1, 0.5, 0.9, 0.5]))
    # Clipped at black and white.
    strong = degrade.change_contrast(given, make_generator(), factors=(9.0, 9.0))
    assert strong[0, 0].flatten().tolist() == [0.0, 0.5, 1.0, 0.5]


def test_brightness_scales_and_shifts() -> None:
    given = torch.full((1, 3, 1, 1), 0.4)
    assert torch.allclose(degrade.change_brightness(given, make_generator(), factors=(1.5, 1.5)), given * 1.5)
    assert degrade.change_brightness(given, make_generator(), factors=(3.0, 3.0)).max() == 1.0
    shifted = degrade.change_brightness(given.expand(500, 3, 1, 1), make_generator(), shift=0.2)[:, 0, 0, 0]
    assert 0.2 <= float(shifted.min()) < 0.22
    assert 0.58 < float(shifted.max()) <= 0.6


def test_gamma_keeps_black_and_white_and_stays_within_its_limits() -> None:
    given = torch.tensor([0.0, 0.25, 1.0]).view(1, 1, 1, 3).expand(400, 3, 1, 3)
    bent = degrade.change_gamma(given, make_generator(), strength=1.0)
    assert torch.equal(bent[..., 0], given[..., 0])
    assert torch.equal(bent[..., 2], given[..., 2])
    # Exponents between 1/2 and 2 map 0.25 to values between 0.5 and 0.0625.
    assert 0.0625 <= float(bent[..., 1].min()) < 0.07
    assert 0.48 < float(bent[..., 1].max()) <= 0.5 + 1e-6
    # The logarithms of the exponents are symmetric around 0.
    powers = bent[:, 0, 0, 1].log() / math.log(0.25)
    assert abs(float(powers.log().mean())) < 0.05


def test_tint_multiplies_each_channel_by_one_factor() -> None:
    given = torch.full((300, 3, 2, 2), 0.5)
    tinted = degrade.tint(given, make_generator(), strength=0.4)
    assert torch.equal(tinted, tinted[:, :, :1, :1].expand_as(tinted))
    assert 0.3 <= float(tinted.min()) < 0.31
    assert 0.69 < float(tinted.max()) <= 0.7
    assert float((tinted[:, 0] - tinted[:, 1]).abs().mean()) > 0.05


def test_the_given_fraction_of_images_is_tinted() -> None:
    given = torch.full((400, 3, 1, 1), 0.5)
    changed = (degrade.tint(given, make_generator(), strength=0.4, share=0.25) != given).flatten(1).any(1)
    assert 75 <= int(changed.sum()) <= 125


@given(st.floats(min_value=0.0, max_value=3.0), st.integers(min_value=0, max_value=1000))
def test_values_stay_in_range(strength: float, seed: int) -> None:
    given = images(3)
    for edited in (
        degrade.change_contrast(given, make_generator(seed), factors=(0.0, strength)),
        degrade.change_brightness(given, make_generator(seed), shift=strength, factors=(0.0, strength)),
        degrade.change_gamma(given, make_generator(seed), strength=strength),
        degrade.tint(given, make_generator(seed), strength=min(strength, 1.0)),
    ):
        assert edited.shape == given.shape
        assert float(edited.min()) >= 0
        assert float(edited.max()) <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: degrade.change_brightness(x, make_generator(), shift=-0.1),
            "shift must be at least 0, got -0.1",
        ),
        (lambda x: degrade.change_gamma(x, make_generator(), strength=-1.0), "strength must be at least 0, got -1.0"),
        (lambda x: degrade.tint(x, make_generator(), strength=-0.5), "strength must be at least 0, got -0.5"),
        (lambda x: degrade.to_gray(x, make_generator(), share=1.5), "share must be .* got 1.5"),
        (lambda x: degrade.change_contrast(x, make_generator(), factors=(2.0, 1.0)), r"factors must be \(low, high\)"),
        (
            lambda x: degrade.change_contrast(x.byte(), make_generator(), factors=(1.0, 2.0)),
            r"images must be \[N, 3, H, W\] floating point, got \[6, 3, 4, 4\] torch.uint8",
        ),
        (
            lambda x: degrade.tint(x[:, :1], make_generator(), strength=0.5),
            r"images must be \[N, 3, H, W\] floating point, got \[6, 1, 4, 4\]",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call(images())
