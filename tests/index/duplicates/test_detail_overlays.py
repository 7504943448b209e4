"""Detection of overlays that only one of two copies has."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.videos import photograph
from vidkin.index.duplicates.detail import find_overlays, measure_edges


def pictures(count: int = 5) -> list[np.ndarray]:
    whole = photograph("coffee")
    return [np.ascontiguousarray(whole[20 * n : 20 * n + 192, 30 * n : 30 * n + 256]) for n in range(count)]


def with_logo(images: list[np.ndarray], *, frames: range | None = None) -> list[np.ndarray]:
    """Add a checkered square of 40 pixels at the upper left."""
    logo = np.indices((40, 40)).sum(0) // 5 % 2 * 255
    marked = [image.copy() for image in images]
    for place in range(len(images)) if frames is None else frames:
        marked[place][24:64, 24:64] = logo[..., None]
    return marked


def side_with_overlay(first: list[np.ndarray], second: list[np.ndarray]) -> str | None:
    """The copy that has an overlay, or None if neither has."""
    found = find_overlays(np.stack(first), np.stack(second))
    assert len(found) < 2
    return found[0].side if found else None


def test_copy_with_the_logo_is_found_in_either_order() -> None:
    plain = pictures()
    assert side_with_overlay(with_logo(plain), plain) == "first"
    assert side_with_overlay(plain, with_logo(plain)) == "second"


def test_equal_copies_have_no_overlay() -> None:
    assert side_with_overlay(pictures(), pictures()) is None


def test_changes_in_brightness_contrast_and_size_are_not_overlays() -> None:
    plain = pictures()
    darker = [(image * 0.6 + 20).astype(np.uint8) for image in plain]
    smaller = [image[::2, ::2].repeat(2, axis=0).repeat(2, axis=1) for image in plain]
    assert side_with_overlay(plain, darker) is None
    assert side_with_overlay(smaller, plain) is None
    assert side_with_overlay(with_logo(plain), darker) == "first"


def test_logo_must_be_visible_in_most_frames() -> None:
    plain = pictures(6)
    assert side_with_overlay(with_logo(plain, frames=range(2)), plain) is None
    assert side_with_overlay(with_logo(plain, frames=range(4)), plain) == "first"


def test_different_frames_are_not_overlays() -> None:
    other = photograph("astronaut")[:192, :256]
    assert side_with_overlay(pictures(), [other] * 5) is None


def test_edges_are_differences_to_the_right_and_below() -> None:
    image = np.array([[0, 0, 5], [0, 3, 5]], np.float32)
    assert measure_edges(image).tolist() == [[0, 8, 0], [3, 2, 0]]


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1)])
def test_edges_of_a_uniform_frame_are_zero(shape: tuple[int, int]) -> None:
    assert not measure_edges(np.full(shape, 7, np.float32)).any()
