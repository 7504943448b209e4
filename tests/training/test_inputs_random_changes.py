"""Augmentation of training images."""

from __future__ import annotations

import pytest
import torch

from vidkin.training.inputs import augment


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def ramp(count: int = 64, frames: int = 3, size: int = 16) -> torch.Tensor:
    """Clips of equal frames whose brightness increases from left to right."""
    row = torch.linspace(0.2, 0.8, size)
    return row.expand(count, frames, 3, size, size).contiguous()


def test_flips_mirror_half_of_the_clips() -> None:
    clips = ramp()
    augmented = augment(clips, ["flip"], generator())
    mirrored = (augmented == clips.flip(-1)).flatten(1).all(dim=1)
    same = (augmented == clips).flatten(1).all(dim=1)
    assert bool((mirrored ^ same).all())
    assert 20 < int(mirrored.sum()) < 44


@pytest.mark.parametrize("name", ["flip", "crop", "color"])
def test_all_frames_of_a_clip_change_in_the_same_way(name: str) -> None:
    augmented = augment(ramp(), [name], generator())
    assert augmented.shape == (64, 3, 3, 16, 16)
    torch.testing.assert_close(augmented[:, 0], augmented[:, 1])
    torch.testing.assert_close(augmented[:, 0], augmented[:, 2])


def test_clips_change_differently() -> None:
    augmented = augment(ramp(4), ["crop", "color"], generator())
    assert all(not torch.equal(augmented[0], augmented[place]) for place in (1, 2, 3))


def test_crop_shows_a_part_of_the_image() -> None:
    augmented = augment(ramp(), ["crop"], generator())
    spans = augmented[:, 0, 0, 0, -1] - augmented[:, 0, 0, 0, 0]
    # 70 to 100 % of a range of 0.6; resizing loses up to a pixel.
    assert float(spans.min()) > 0.6 * 0.7 - 0.05
    assert float(spans.max()) <= 0.6 + 1e-6
    assert float(spans.max() - spans.min()) > 0.05
    assert float(augmented.min()) >= 0.2 - 1e-6
    assert float(augmented.max()) <= 0.8 + 1e-6


def test_colors_stay_in_range_and_gray_stays_gray() -> None:
    augmented = augment(ramp() * 1.25, ["color"], generator())
    assert float(augmented.min()) >= 0.0
    assert float(augmented.max()) <= 1.0
    torch.testing.assert_close(augmented[:, :, 0], augmented[:, :, 2])
    brightness = augmented.mean(dim=(1, 2, 3, 4)) / (ramp() * 1.25).mean(dim=(1, 2, 3, 4))
    assert 0.65 < float(brightness.min()) < 0.9
    assert 1.1 < float(brightness.max()) < 1.35


def test_saturation_moves_colors_toward_gray_or_away() -> None:
    red = torch.tensor([0.6, 0.4, 0.4])[:, None, None].expand(32, 1, 3, 8, 8)
    augmented = augment(red, ["color"], generator())
    strength = augmented[:, 0, 0, 0, 0] - augmented[:, 0, 1, 0, 0]
    assert float(strength.min()) > 0
    assert float(strength.min()) < 0.2 < float(strength.max())


def test_single_images_are_accepted() -> None:
    pictures = ramp(8, 1)[:, 0]
    augmented = augment(pictures, ["flip", "crop", "color"], generator())
    assert augmented.shape == pictures.shape
    torch.testing.assert_close(augmented, augment(pictures.unsqueeze(1), ["flip", "crop", "color"], generator())[:, 0])


def test_the_same_seed_gives_the_same_images() -> None:
    names = ["flip", "crop", "color"]
    assert torch.equal(augment(ramp(), names, generator(3)), augment(ramp(), names, generator(3)))
    assert not torch.equal(augment(ramp(), names, generator(3)), augment(ramp(), names, generator(4)))
    assert torch.equal(augment(ramp(), [], generator()), ramp())
