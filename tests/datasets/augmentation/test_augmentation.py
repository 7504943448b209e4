"""Properties of all augmentations: determinism, shapes, ranges, zero strength and speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest
import torch

from vidkin.datasets.augmentation import (
    EditSettings,
    PairSettings,
    WarpSettings,
    degrade,
    edit_images,
    make_pairs,
    overlays,
    random_warp,
)
from vidkin.datasets.augmentation.pairs import HEAVY
from vidkin.errors import InvalidArgumentError

Edit = Callable[[torch.Tensor, torch.Generator], torch.Tensor]

EDITS: dict[str, Edit] = {
    "gray": partial(degrade.to_gray, share=0.5),
    "contrast": partial(degrade.change_contrast, factors=(0.5, 1.5)),
    "brightness": partial(degrade.change_brightness, shift=0.2, factors=(0.7, 1.2)),
    "gamma": partial(degrade.change_gamma, strength=0.8, share=0.5),
    "tint": partial(degrade.tint, strength=0.3, share=0.5),
    "blur": partial(degrade.blur, sigma=(0.3, 2.0), share=0.5),
    "down_sample": partial(degrade.down_sample, lowest=0.3, share=0.5),
    "noise": partial(degrade.add_noise, deviation=(0.02, 0.1), share=0.5),
    "compress": partial(degrade.compress, quality=(5.0, 30.0), share=0.5),
    "bar": partial(overlays.add_bar, height=(0.1, 0.3), share=0.5),
    "caption": partial(overlays.add_caption, height=(0.1, 0.3), share=0.5),
    "block": partial(overlays.add_block, side=(0.1, 0.4), share=0.5),
    "logo": partial(overlays.add_logo, side=(0.1, 0.4), share=0.5),
    "border": partial(overlays.add_border, width=(0.02, 0.1), share=0.8),
    "blend": partial(overlays.blend_other, weight=(0.2, 0.6), share=0.5),
    "cover": partial(overlays.cover_with_other, side=(0.3, 0.7), share=0.5),
    "sticker": partial(overlays.add_stickers, side=(0.3, 0.7), share=0.5),
    "warp": partial(
        random_warp,
        settings=WarpSettings(scale=(0.7, 1.1), aspect=1.2, rotation=8.0, perspective=0.1, mirror=0.3),
    ),
}

NOTHING: dict[str, Edit] = {
    "gray": partial(degrade.to_gray, share=0.0),
    "contrast": partial(degrade.change_contrast, factors=(1.0, 1.0)),
    "brightness": partial(degrade.change_brightness, shift=0.0, factors=(1.0, 1.0)),
    "gamma": partial(degrade.change_gamma, strength=0.0),
    "tint": partial(degrade.tint, strength=0.0),
    "blur": partial(degrade.blur, sigma=(0.0, 0.0), share=1.0),
    "down_sample": partial(degrade.down_sample, lowest=1.0, share=1.0),
    "noise": partial(degrade.add_noise, deviation=(0.0, 0.0), share=1.0),
    "compress": partial(degrade.compress, quality=(5.0, 30.0), share=0.0),
    "bar": partial(overlays.add_bar, height=(0.0, 0.0), share=1.0),
    "caption": partial(overlays.add_caption, height=(0.1, 0.3), share=0.0),
    "block": partial(overlays.add_block, side=(0.0, 0.0), share=1.0),
    "logo": partial(overlays.add_logo, side=(0.1, 0.4), share=0.0),
    "border": partial(overlays.add_border, width=(0.0, 0.0), share=1.0),
    "blend": partial(overlays.blend_other, weight=(0.0, 0.0), share=1.0),
    "cover": partial(overlays.cover_with_other, side=(0.3, 0.7), share=0.0),
    "sticker": partial(overlays.add_stickers, side=(0.0, 0.0), share=1.0),
    "warp": partial(random_warp, settings=WarpSettings()),
}


@pytest.fixture
def images() -> torch.Tensor:
    """Smooth images that every edit changes, [16, 3, 40, 40] in [0, 1]."""
    generator = torch.Generator().manual_seed(1)
    coarse = torch.rand(16, 3, 6, 6, generator=generator)
    return torch.nn.functional.interpolate(coarse, (40, 40), mode="bilinear", align_corners=False)


def make_generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", EDITS)
def test_edits_are_deterministic_and_keep_shape_and_range(name: str, images: torch.Tensor) -> None:
    before = images.clone()
    first, again = EDITS[name](images, make_generator(3)), EDITS[name](images, make_generator(3))
    other = EDITS[name](images, make_generator(4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, images)
    assert torch.equal(images, before), "the input must not change"
    assert first.shape == images.shape
    assert first.dtype == images.dtype
    assert float(first.min()) >= -1e-5
    assert float(first.max()) <= 1.0 + 1e-5


@pytest.mark.parametrize("name", NOTHING)
def test_strength_zero_changes_nothing(name: str, images: torch.Tensor) -> None:
    torch.testing.assert_close(NOTHING[name](images, make_generator(3)), images, atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("name", EDITS)
def test_edits_do_not_change_the_global_generator(name: str, images: torch.Tensor) -> None:
    state = torch.random.get_rng_state()
    EDITS[name](images, make_generator(3))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_images_can_have_any_height_and_width(images: torch.Tensor) -> None:
    wide = images[:, :, :21]
    for name, edit in EDITS.items():
        if name != "warp":
            assert edit(wide, make_generator(3)).shape == wide.shape, name


def test_default_edit_settings_change_nothing(images: torch.Tensor) -> None:
    torch.testing.assert_close(edit_images(images, EditSettings(), 5), images, atol=1e-5, rtol=0.0)


def test_compression_at_the_best_quality_hardly_changes_images(images: torch.Tensor) -> None:
    result = degrade.compress(images, make_generator(1), quality=(100.0, 100.0), share=1.0)
    assert float((result - images).abs().max()) < 0.02


def test_crop_stays_inside_the_image() -> None:
    ramp = torch.linspace(0.0, 1.0, 64).expand(8, 3, 64, 64).contiguous()
    result = random_warp(ramp, make_generator(2), settings=WarpSettings(scale=(0.5, 0.5)), side=32)
    spread = result[:, 0, 0, -1] - result[:, 0, 0, 0]
    torch.testing.assert_close(spread, torch.full((8,), 31 / 63), atol=0.02, rtol=0.0)


def test_blend_uses_the_given_weight(images: torch.Tensor) -> None:
    result = overlays.blend_other(images, make_generator(1), weight=(0.25, 0.25), share=1.0)
    torch.testing.assert_close(result, 0.75 * images + 0.25 * images.roll(1, 0))


def test_cover_of_80_percent_of_each_side_leaves_36_percent_of_the_image() -> None:
    black_and_white = torch.stack([torch.zeros(3, 40, 40), torch.ones(3, 40, 40)])
    result = overlays.cover_with_other(black_and_white, make_generator(1), side=(0.8, 0.8), share=1.0)
    assert result[0].mean() == pytest.approx(0.64, abs=0.02)
    assert result[1].mean() == pytest.approx(0.36, abs=0.02)


def test_mirror_swaps_left_and_right(images: torch.Tensor) -> None:
    result = random_warp(images, make_generator(2), settings=WarpSettings(mirror=1.0))
    torch.testing.assert_close(result, images.flip(3), atol=1e-5, rtol=0.0)


def test_pairs_have_the_same_content_and_the_given_size(images: torch.Tensor) -> None:
    bytes_ = (images * 255).to(torch.uint8)
    plain, heavy = make_pairs(bytes_, PairSettings(side=24), 7)
    assert plain.shape == heavy.shape == (16, 3, 24, 24)
    again, _ = make_pairs(bytes_, PairSettings(side=24), 7)
    assert torch.equal(plain, again)
    # Each plain view stays closer to its own image, mirrored or not, than to the next one.
    small = torch.nn.functional.interpolate(images, (24, 24), mode="bilinear", antialias=True)

    def gap(other: torch.Tensor) -> torch.Tensor:
        straight, turned = (
            (plain - other).abs().mean((1, 2, 3)),
            (plain - other.flip(3)).abs().mean((1, 2, 3)),
        )
        return torch.minimum(straight, turned)

    assert bool((gap(small) < gap(small.roll(1, 0))).all())


def test_neighbors_are_mirrored_together_with_their_images(images: torch.Tensor) -> None:
    unedited = PairSettings(side=images.shape[-1], plain=EditSettings(), heavy=EditSettings())
    plain, heavy = make_pairs(images, unedited, 7, images / 2)
    torch.testing.assert_close(heavy, plain / 2)
    mirrored = (plain - images).abs().mean((1, 2, 3)) > 0.01
    assert 0 < int(mirrored.sum()) < len(images)
    torch.testing.assert_close(plain[mirrored], images[mirrored].flip(3))


def test_neighbors_do_not_change_the_random_numbers(images: torch.Tensor) -> None:
    alone, beside = (make_pairs(images, PairSettings(side=24), 7, *more) for more in ((), (images,)))
    assert all(map(torch.equal, alone, beside))
    changed = images.clone()
    changed[0] = 1 - changed[0]
    plain, heavy = make_pairs(images, PairSettings(side=24), 7, changed)
    assert torch.equal(plain, alone[0])
    assert torch.equal(heavy[1:], alone[1][1:])
    assert not torch.equal(heavy[0], alone[1][0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x, g: make_pairs(x, PairSettings(), 1, x[1:]),
            r"neighbors must have the shape of the images, \[16",
        ),
        (lambda x, g: degrade.to_gray(x[0], g, share=0.5), "images must be"),
        (lambda x, g: degrade.to_gray(x.to(torch.uint8), g, share=0.5), "images must be"),
        (lambda x, g: degrade.to_gray(x, g, share=1.5), "share must be"),
        (lambda x, g: degrade.change_contrast(x, g, factors=(1.5, 0.5)), "factors must be"),
        (lambda x, g: degrade.change_gamma(x, g, strength=-1.0), "strength must be"),
        (lambda x, g: degrade.compress(x, g, quality=(0.0, 10.0), share=1.0), "quality must be"),
        (lambda x, g: degrade.down_sample(x, g, lowest=0.0, share=1.0), "lowest must be"),
        (lambda x, g: WarpSettings(aspect=0.5), "aspect must be"),
        (lambda x, g: PairSettings(side=2), "side must be"),
    ],
)
def test_invalid_arguments_are_rejected(
    images: torch.Tensor, call: Callable[[torch.Tensor, torch.Generator], object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call(images, make_generator(1))


@pytest.mark.bench
def test_generating_pairs_is_faster_than_training_on_them() -> None:
    from vidkin.features import FrameEncoder

    pictures = torch.randint(0, 256, (96, 3, 96, 96), dtype=torch.uint8, generator=make_generator(1))
    views = torch.rand(192, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    network = FrameEncoder().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def seconds(work: Callable[[], object]) -> float:
        work()
        times = []
        for _ in range(3):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    augmentation = seconds(lambda: make_pairs(pictures, PairSettings(heavy=HEAVY), 1))
    training = seconds(lambda: network(views).square().sum().backward())
    assert augmentation < training
