"""Properties of all features: any image can be described, similar images are close, and values are finite."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from research.tests.features.pictures import photographs, plain

from vidkin.errors import InvalidArgumentError
from vidkin_research.features import ImageFeature
from vidkin_research.features.feature import as_rgb, sample_rows, sketch, squares


def test_batches_and_single_images_give_the_same_values(feature: ImageFeature) -> None:
    pictures = photographs(12)[::4]
    together = feature.describe(pictures)
    alone = torch.cat([feature.describe([picture]) for picture in pictures])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
    assert feature.describe([]).shape == (0, together.shape[1])


def test_distances_between_unit_embeddings_rank_like_the_feature_distances(feature: ImageFeature) -> None:
    pictures = photographs(24)[::2]
    copies = [np.ascontiguousarray(picture[3:-3, 3:-3]) for picture in pictures]
    descriptors, copied = feature.describe(pictures), feature.describe(copies)
    embedded = feature.embed(descriptors)
    torch.testing.assert_close(embedded.norm(dim=1), torch.ones(12))
    nearest = feature.distances(copied, descriptors).argmin(1)
    assert float((nearest == torch.arange(12)).double().mean()) >= 0.75
    alike = (feature.embed(copied) @ embedded.T).argmax(1)
    assert float((alike == nearest).double().mean()) >= 0.75


def test_no_image_is_closer_than_the_image_itself(feature: ImageFeature) -> None:
    if feature.name == "oasis":
        pytest.skip("a bilinear similarity does not have to be largest for a picture with itself")
    descriptors = feature.describe(photographs(24)[::4])
    distances = feature.distances(descriptors, descriptors)
    assert distances.argmin(dim=1).tolist() == list(range(6))
    torch.testing.assert_close(distances, distances.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "picture",
    [
        plain(),
        plain((0, 0, 0)),
        plain((255, 255, 255), height=1, width=1),
        plain(height=1, width=300),
        plain()[..., 0],
        np.dstack([plain(), np.full((40, 60), 128, np.uint8)]),
    ],
    ids=["one color", "black", "one pixel", "one row", "gray", "alpha"],
)
def test_degenerate_images_have_features(feature: ImageFeature, picture: np.ndarray) -> None:
    descriptors = feature.describe([picture, *photographs(1)])
    assert bool(descriptors.isfinite().all())
    assert bool(feature.distances(descriptors, descriptors).isfinite().all())
    embedded = feature.embed(descriptors)
    assert bool(embedded.isfinite().all())
    # Images without content have zero features.
    length = float(embedded[0].norm())
    assert length == pytest.approx(1, abs=1e-5) or length == 0


def test_gray_and_transparent_images_become_rgb() -> None:
    gray = np.array([[0, 100]], dtype=np.uint8)
    assert as_rgb(gray).tolist() == [[[0, 0, 0], [100, 100, 100]]]
    assert as_rgb(gray[..., None]).tolist() == as_rgb(gray).tolist()
    clear, half, solid = [10, 20, 30, 0], [0, 0, 0, 128], [10, 20, 30, 255]
    with_alpha = np.array([[clear, half, solid]], dtype=np.uint8)
    assert as_rgb(with_alpha).tolist() == [[[255, 255, 255], [127, 127, 127], [10, 20, 30]]]


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4, 3)),
        np.zeros((4, 4, 2), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros(4, np.uint8),
    ],
)
def test_other_arrays_are_rejected(image: np.ndarray) -> None:
    with pytest.raises(InvalidArgumentError, match=r"an image must be \[H, W\], .* uint8 with pixels, got \["):
        as_rgb(image)


def test_images_are_stretched_to_squares_and_scaled() -> None:
    result = squares([plain((255, 0, 51), height=3, width=9)], 4)
    assert result.shape == (1, 4, 4, 3)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result[0], np.broadcast_to([1, 0, 0.2], (4, 4, 3)), atol=1e-7)


def test_sketch_preserves_inner_products_on_average() -> None:
    rows = torch.rand(2, 3000, generator=torch.Generator().manual_seed(0))
    exact = float(rows[0] @ rows[1])
    found = []
    for seed in range(40):
        short = sketch(rows, 256, seed=seed)
        found.append(float(short[0] @ short[1]))
    # The error of a single sketch is about 1/16 of the norms, that of the mean of forty 1/100.
    assert np.mean(found) == pytest.approx(exact, rel=0.05)
    assert sketch(rows, 3000) is rows


def test_sampled_rows_are_not_empty() -> None:
    groups = [torch.zeros(5, 2), torch.ones(9, 2), torch.full((3, 2), 2.0)]
    rows = sample_rows(groups, each=4, most=100, seed=0)
    assert sorted(rows[:, 0].tolist()) == [1, 1, 1, 1, 2, 2, 2]
    assert len(sample_rows(groups, each=4, most=3, seed=0)) == 3
    with pytest.raises(InvalidArgumentError, match="images with content, got only blank images"):
        sample_rows([torch.zeros(3, 2)], each=4, most=3, seed=0)
