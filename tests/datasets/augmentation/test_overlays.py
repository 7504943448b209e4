"""Image overlays: position, size and frequency."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from vidkin.datasets.augmentation import overlays
from vidkin.errors import InvalidArgumentError

GRAY = 0.37
"""A value that no bar or caption has, nor likely any random color."""


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def changed_pixels(function: Callable[..., torch.Tensor], count: int = 120, **options: object) -> torch.Tensor:
    """Apply an overlay to plain images; return a mask of the changed pixels, [count, 40, 40] bool."""
    plain = torch.full((count, 3, 40, 40), GRAY)
    return ((function(plain, make_generator(), share=1.0, **options) - plain).abs() > 1e-4).any(1)


def test_bars_cover_rows_at_the_bottom_or_sometimes_the_top() -> None:
    rows = changed_pixels(overlays.add_bar, height=(0.2, 0.2))
    assert torch.equal(rows, rows[:, :, :1].expand_as(rows))
    heights = rows[:, :, 0].sum(1)
    # A fifth of 40 rows.
    assert set(heights.tolist()) == {8}
    at_top = int(rows[:, 0, 0].sum())
    assert 15 <= at_top <= 45
    assert at_top + int(rows[:, -1, 0].sum()) == 120


def test_blocks_are_rectangles_with_the_given_side_lengths() -> None:
    inside = changed_pixels(overlays.add_block, side=(0.25, 0.5))
    for block in inside:
        rows, columns = block.any(1), block.any(0)
        assert torch.equal(block, rows[:, None] & columns)
        assert 9 <= int(rows.sum()) <= 21
        assert 9 <= int(columns.sum()) <= 21


def test_logos_are_inside_a_rectangle_and_some_are_round() -> None:
    inside = changed_pixels(overlays.add_logo, side=(0.5, 0.5))
    shares = []
    for logo in inside:
        rows, columns = logo.any(1), logo.any(0)
        assert int(rows.sum()) <= 21
        assert int(columns.sum()) <= 21
        shares.append(int(logo.sum()) / 400)
    # A circle covers pi/4 of its square.
    round_ones = sum(share < 0.85 for share in shares)
    assert 30 <= round_ones <= 90
    assert max(shares) > 0.95


def test_borders_along_the_edges_have_at_most_the_given_width() -> None:
    inside = changed_pixels(overlays.add_border, width=(0.2, 0.2))
    assert not bool(inside[:, 8:32, 8:32].any())
    # Half of the borders show another image of the batch, and all images of this batch are the same.
    assert 45 <= int((~inside.flatten(1).any(1)).sum()) <= 80
    edges = torch.stack([inside[:, 0, 20], inside[:, -1, 20], inside[:, 20, 0], inside[:, 20, -1]], dim=1)
    assert all(15 <= int(edge.sum()) <= 45 for edge in edges.T)


def test_borders_can_show_another_image_of_the_batch() -> None:
    images = torch.arange(40.0).view(40, 1, 1, 1).expand(40, 3, 20, 20) / 40
    bordered = overlays.add_border(images, make_generator(), width=(0.3, 0.3), share=1.0)
    neighbors = images.roll(1, dims=0)
    shows = ((bordered == neighbors) & (bordered != images)).all(1).flatten(1).any(1)
    assert 5 <= int(shows.sum()) <= 35


def test_captions_are_inside_a_band() -> None:
    inside = changed_pixels(overlays.add_caption, height=(0.25, 0.25))
    for caption in inside:
        rows = caption.any(1).nonzero().flatten()
        assert len(rows) == 0 or int(rows.max() - rows.min()) <= 10
    assert int(inside.flatten(1).any(1).sum()) > 100


@pytest.mark.parametrize(
    ("function", "option"),
    [
        (overlays.add_bar, "height"),
        (overlays.add_caption, "height"),
        (overlays.add_block, "side"),
        (overlays.add_logo, "side"),
        (overlays.add_border, "width"),
    ],
)
class TestOfAll:
    def test_only_the_given_fraction_of_the_images_is_changed(
        self, function: Callable[..., torch.Tensor], option: str
    ) -> None:
        images = torch.rand(200, 3, 20, 20, generator=make_generator(5))
        edited = function(images, make_generator(), share=0.3, **{option: (0.4, 0.5)})
        changed = (edited != images).flatten(1).any(1)
        assert 25 <= int(changed.sum()) <= 80
        assert torch.equal(edited[~changed], images[~changed])
        assert 0 <= float(edited.min()) <= float(edited.max()) <= 1

    def test_size_zero_changes_nothing(self, function: Callable[..., torch.Tensor], option: str) -> None:
        images = torch.rand(3, 3, 8, 8)
        assert function(images, make_generator(), share=1.0, **{option: (0.0, 0.0)}) is images

    def test_limits_out_of_order_are_rejected(self, function: Callable[..., torch.Tensor], option: str) -> None:
        with pytest.raises(InvalidArgumentError, match=rf"{option} must be \(low, high\)"):
            function(torch.rand(3, 3, 8, 8), make_generator(), share=1.0, **{option: (0.5, 0.4)})
