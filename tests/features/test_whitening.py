"""Whitening: known covariances, streaming, both conventions, pairs and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from vidkin.errors import InvalidArgumentError
from vidkin.features import Whitening, fit_whitening
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures

Array = NDArray[np.floating]


def make_samples(count: int = 4000, seed: int = 0) -> NDArray[np.float32]:
    """Samples with mean (1, 2, 3) and a strongly correlated covariance, [count, 3]."""
    mixing = np.array([[3.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.2, 0.1, 0.1]])
    values = np.random.default_rng(seed).normal(size=(count, 3)) @ mixing.T + np.array([1.0, 2.0, 3.0])
    return values.astype(np.float32)


def floats(*values: object) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def linear(whitening: Whitening, values: Array) -> Array:
    """Apply the whitening without the final normalization."""
    return (values - whitening.mean) @ whitening.projection


def test_covariance_becomes_the_identity() -> None:
    values = make_samples()
    whitening = Whitening.fit([values], dimension=3)
    np.testing.assert_allclose(np.cov(linear(whitening, values).T, bias=True), np.eye(3), atol=2e-3, rtol=0)
    assert (whitening.eigenvalues[:-1] >= whitening.eigenvalues[1:]).all()


def test_components_of_a_diagonal_covariance_are_the_axes() -> None:
    # Four points, two on each axis: the variances are 2 * 8 / 4 = 4 and 2 * 2 / 4 = 1.
    points = floats([8.0**0.5, 0.0], [-(8.0**0.5), 0.0], [0.0, 2.0**0.5], [0.0, -(2.0**0.5)])
    whitening = Whitening.fit([points], dimension=2, epsilon=0.0)
    np.testing.assert_allclose(whitening.eigenvalues, [4.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(whitening.projection, [[0.5, 0.0], [0.0, 1.0]], rtol=1e-6)


def test_streaming_equals_one_shot() -> None:
    values = make_samples() + 1000.0  # a large mean would reveal cancellation
    whole = Whitening.fit([values], dimension=2)
    streamed = Whitening.fit(iter(values.reshape(400, 2, 5, 3)), dimension=2)
    np.testing.assert_allclose(streamed.mean, whole.mean, rtol=1e-6)
    np.testing.assert_allclose(streamed.eigenvalues, whole.eigenvalues, rtol=1e-5)
    np.testing.assert_allclose(streamed.projection, whole.projection, rtol=1e-4, atol=1e-6)


def test_apply_returns_unit_vectors_and_keeps_empty_ones() -> None:
    whitening = Whitening.fit([make_samples()], dimension=2)
    values = np.stack([make_samples(5, seed=1), np.zeros((5, 3), np.float32)])
    result = whitening.apply(values)
    assert result.shape == (2, 5, 2)
    np.testing.assert_allclose(np.linalg.norm(result[0], axis=-1), 1, rtol=1e-6)
    assert np.abs(result[1]).max() == 0
    assert result.dtype == np.float32
    np.testing.assert_array_equal(whitening.apply(values.astype(np.float64)), result)
    assert whitening.dimension == 2
    assert repr(whitening) == "Whitening(pca, 3 -> 2)"


def test_empty_vectors_are_ignored_in_the_fit() -> None:
    values = make_samples()
    padded = np.concatenate([values, np.zeros((1000, 3))])
    np.testing.assert_allclose(Whitening.fit([padded], dimension=2).mean, Whitening.fit([values], dimension=2).mean)


def test_scatter_and_covariance_give_the_same_whitening() -> None:
    values = make_samples(500).astype(np.float64)
    centered = values - values.mean(0)
    scatter = centered.T @ centered
    eigenvalues, vectors = (array[..., ::-1] for array in np.linalg.eigh(scatter))
    theirs = Whitening.from_eigen(values.mean(0), vectors, eigenvalues, count=500)
    ours = Whitening.from_eigen(values.mean(0), vectors, eigenvalues / 500, epsilon=1e-7 / 500)
    np.testing.assert_allclose(theirs.eigenvalues, ours.eigenvalues)
    probe = make_samples(7, seed=3)
    np.testing.assert_allclose(theirs.apply(probe), ours.apply(probe), atol=1e-6)
    # The published formula, applied to the eigenvalues of the scatter matrix.
    published = (probe - values.mean(0)) @ (np.diag((eigenvalues + 1e-7) ** -0.5) @ vectors.T).T
    published /= np.linalg.norm(published, axis=-1, keepdims=True)
    np.testing.assert_allclose(theirs.apply(probe), published, atol=1e-5, rtol=0)


def edited_pairs() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Content varies by 1 in axes 0 and 1; edits mainly change axis 2, which also has the largest variance."""
    generator = np.random.default_rng(5)
    content = generator.normal(size=(3000, 3)).astype(np.float32) * floats(1.0, 1.0, 3.0)
    edit = generator.normal(size=(3000, 3)).astype(np.float32) * floats(0.1, 0.1, 3.0)
    return content, content + edit


def test_pairs_suppress_the_direction_that_only_edits_move() -> None:
    original, copy = edited_pairs()
    pca = Whitening.fit([original, copy], dimension=2)
    pairs = Whitening.fit_pairs([(original, copy)], dimension=2, shrinkage=1e-3)
    weight = np.linalg.norm(pairs.projection[2]) / np.linalg.norm(pairs.projection[:2])
    assert weight < 0.01
    assert np.linalg.norm(pca.projection[2]) / np.linalg.norm(pca.projection[:2]) > 0.1
    # Copies therefore stay close; the values are mean cosines of pairs.
    assert (pairs.apply(original) * pairs.apply(copy)).sum(-1).mean() > 0.95
    assert (pca.apply(original) * pca.apply(copy)).sum(-1).mean() < 0.85
    assert pairs.kind == "pairs"


def test_within_pair_covariance_becomes_the_identity() -> None:
    original, copy = edited_pairs()
    whitening = Whitening.fit_pairs([(original, copy)], dimension=3, shrinkage=1e-6)
    moved = (original - copy) @ whitening.projection
    np.testing.assert_allclose(moved.T @ moved / len(moved), np.eye(3), atol=2e-3, rtol=0)
    # Ratios of total to within-pair variance by hand: axes 0 and 1 (1 + 0.005) / 0.01 ~ 100, axis 2 (9 + 4.5) / 9 =
    # 1.5.
    assert whitening.eigenvalues[:2].tolist() == pytest.approx([100, 100], rel=0.1)
    assert whitening.eigenvalues[2].item() == pytest.approx(1.5, rel=0.1)


def test_full_power_equalizes_the_total_variance() -> None:
    original, copy = edited_pairs()
    whitening = Whitening.fit_pairs([(original, copy)], dimension=3, power=1.0)
    both = np.concatenate([original, copy])
    np.testing.assert_allclose(np.cov(linear(whitening, both).T, bias=True), np.eye(3), atol=2e-3, rtol=0)


def test_pairs_stream_and_skip_empty_regions() -> None:
    original, copy = edited_pairs()
    whole = Whitening.fit_pairs([(original, copy)], dimension=2)
    batches = list(zip(original.reshape(30, 10, 10, 3), copy.reshape(30, 10, 10, 3), strict=True))
    batches.append((np.zeros((1, 10, 3), np.float32), np.ones((1, 10, 3), np.float32)))
    streamed = Whitening.fit_pairs(iter(batches), dimension=2)
    np.testing.assert_allclose(streamed.projection, whole.projection, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["pca", "pairs"])
def test_file_round_trip(tmp_path: Path, kind: str) -> None:
    original, copy = edited_pairs()
    whitening = (
        Whitening.fit([original], dimension=2)
        if kind == "pca"
        else Whitening.fit_pairs([(original, copy)], dimension=2)
    )
    path = tmp_path / "whitening.safetensors"
    whitening.save(path)
    again = Whitening.load(path)
    assert again.kind == kind
    assert again.digest() == whitening.digest()
    np.testing.assert_array_equal(again.projection, whitening.projection)
    assert Whitening.fit([original * 2], dimension=2).digest() != whitening.digest()


def test_components_of_a_scatter_are_read(tmp_path: Path) -> None:
    path = tmp_path / "public.safetensors"
    save_file({"mean": floats(0, 0), "vectors": np.eye(2, dtype=np.float32), "eigenvalues": floats(400, 100)}, path)
    assert Whitening.load(path).eigenvalues.tolist() == [400.0, 100.0]
    counted = Whitening.load(path, count=100)
    assert counted.eigenvalues.tolist() == [4.0, 1.0]
    np.testing.assert_allclose(counted.projection, [[0.5, 0.0], [0.0, 1.0]], rtol=1e-6)


def test_invalid_whitening_files_are_refused_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"nowhere.*: no such whitening file"):
        Whitening.load(tmp_path / "nowhere")
    text = tmp_path / "text"
    text.write_text("hello, this is not a tensor")
    with pytest.raises(
        InvalidArgumentError, match=r"text: not a safetensors file .*convert the whitening to safetensors"
    ):
        Whitening.load(text)
    other = tmp_path / "other"
    save_file({"weight": floats(0, 0)}, other)
    with pytest.raises(InvalidArgumentError, match=r"other.*: a whitening must contain .* got weight"):
        Whitening.load(other)
    odd = tmp_path / "odd"
    save_file(
        {"mean": floats(0), "projection": floats([0]), "eigenvalues": floats(1)},
        odd,
        {"kind": "magic"},
    )
    with pytest.raises(InvalidArgumentError, match=r"kind must be 'pca' or 'pairs', got 'magic'"):
        Whitening.load(odd)


def test_data_that_cannot_be_whitened_is_refused() -> None:
    values = make_samples(10)
    with pytest.raises(InvalidArgumentError, match=r"dimension must be from 1 to 3, got 4"):
        Whitening.fit([values], dimension=4)
    with pytest.raises(
        InvalidArgumentError,
        match=r"dimension must be at most 1, because the vectors vary in only that many directions, got 2",
    ):
        Whitening.fit([values[:2]], dimension=2)
    with pytest.raises(InvalidArgumentError, match="at least one nonzero vector, got none"):
        Whitening.fit([np.zeros((4, 3))], dimension=1)
    with pytest.raises(InvalidArgumentError, match="got 3 and 2"):
        Whitening.fit([values, values[:, :2]], dimension=1)
    with pytest.raises(InvalidArgumentError, match=r"vectors must have length 3 for this whitening, got 2"):
        Whitening.fit([values], dimension=1).apply(values[:, :2])
    with pytest.raises(InvalidArgumentError, match=r"count must be at least 1, got 0"):
        Whitening.from_eigen(floats(0), floats([1]), floats(1), count=0)


def test_invalid_pairs_are_refused() -> None:
    values = make_samples(10)
    with pytest.raises(InvalidArgumentError, match="the arrays of every pair are equal"):
        Whitening.fit_pairs([(values, values)], dimension=1)
    with pytest.raises(InvalidArgumentError, match=r"the same shape, got \[10, 3\] and \[5, 3\]"):
        Whitening.fit_pairs([(values, values[:5])], dimension=1)
    with pytest.raises(InvalidArgumentError, match=r"shrinkage must be in \(0, 1\], got 0"):
        Whitening.fit_pairs([(values, values)], dimension=1, shrinkage=0)
    with pytest.raises(InvalidArgumentError, match=r"power must be in \[0, 1\], got 2"):
        Whitening.fit_pairs([(values, values)], dimension=1, power=2)


def test_whitening_fields_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match=r"projection must be \[D, D'\], got \[2\]"):
        Whitening(floats(0, 0), floats(0, 0), floats(0, 0))
    with pytest.raises(InvalidArgumentError, match=r"mean must be \[3\] as projection is \[3, 2\], got \[2\]"):
        Whitening(floats(0, 0), floats([0, 0], [0, 0], [0, 0]), floats(0, 0))
    with pytest.raises(InvalidArgumentError, match=r"mean must be finite float32, got float64"):
        Whitening(np.zeros(2), floats([0, 0], [0, 0]), floats(0, 0))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"kind must be one of 'pca', 'pairs', got 'x'"):
        Whitening(floats(0, 0), floats([0, 0], [0, 0]), floats(0, 0), "x")  # type: ignore[arg-type]


class ColorExtractor:
    """A minimal extractor that returns the mean color of each half of the frame."""

    name = "colour"
    fingerprint = "colour-1"
    scorer = "copies"
    describes_boxes = False
    short_side = 8

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        halves = np.stack(np.array_split(frames.images.astype(np.float32), 2, axis=2), axis=1)
        return FrameFeatures.of_whole(halves.mean(axis=(2, 3)), frames.timestamps, fingerprint=self.fingerprint)


def test_whitening_is_fitted_on_batches_of_frames() -> None:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    frames = Frames(images, np.arange(40.0))
    extractor = ColorExtractor()
    whitening = fit_whitening(extractor, (frames[i : i + 8] for i in range(0, 40, 8)), dimension=2)
    np.testing.assert_allclose(whitening.mean, extractor.extract(frames).whole.mean(axis=(0, 1)), rtol=1e-5)
    assert whitening.dimension == 2
