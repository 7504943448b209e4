"""Whitening: known covariances, streaming, both conventions, pairs, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from vidkin.errors import InvalidArgumentError
from vidkin.features import Whitening, fit_whitening
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures


def correlated(count: int = 4000, seed: int = 0) -> torch.Tensor:
    """[count, 3] with mean (1, 2, 3) and a covariance far from the identity."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.tensor([[3.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.2, 0.1, 0.1]])
    return torch.randn(count, 3, generator=generator) @ mixing.T + torch.tensor([1.0, 2.0, 3.0])


def linear(whitening: Whitening, values: torch.Tensor) -> torch.Tensor:
    """What apply computes before it makes unit vectors."""
    return (values - whitening.mean) @ whitening.projection


def test_covariance_becomes_the_identity() -> None:
    values = correlated()
    whitening = Whitening.fit([values], dimension=3)
    torch.testing.assert_close(torch.cov(linear(whitening, values).T, correction=0), torch.eye(3), atol=2e-3, rtol=0)
    assert bool((whitening.eigenvalues[:-1] >= whitening.eigenvalues[1:]).all())


def test_components_of_a_diagonal_covariance_are_the_axes() -> None:
    # Four points, two on each axis: variance 2 * 8 / 4 = 4 along the first, 2 * 2 / 4 = 1 along the second.
    points = torch.tensor([[8.0**0.5, 0.0], [-(8.0**0.5), 0.0], [0.0, 2.0**0.5], [0.0, -(2.0**0.5)]])
    whitening = Whitening.fit([points], dimension=2, epsilon=0.0)
    torch.testing.assert_close(whitening.eigenvalues, torch.tensor([4.0, 1.0]))
    torch.testing.assert_close(whitening.projection, torch.tensor([[0.5, 0.0], [0.0, 1.0]]))


def test_streaming_equals_one_shot() -> None:
    values = correlated() + 1000.0  # a large mean shows cancellation
    whole = Whitening.fit([values], dimension=2)
    streamed = Whitening.fit(iter(values.reshape(400, 2, 5, 3)), dimension=2)
    torch.testing.assert_close(streamed.mean, whole.mean)
    torch.testing.assert_close(streamed.eigenvalues, whole.eigenvalues, rtol=1e-5, atol=0)
    torch.testing.assert_close(streamed.projection, whole.projection, rtol=1e-4, atol=1e-6)


def test_apply_gives_unit_vectors_and_keeps_emptiness() -> None:
    whitening = Whitening.fit([correlated()], dimension=2)
    values = torch.stack([correlated(5, seed=1), torch.zeros(5, 3)])
    result = whitening.apply(values)
    assert result.shape == (2, 5, 2)
    torch.testing.assert_close(result[0].norm(dim=-1), torch.ones(5))
    assert result[1].abs().max() == 0
    assert whitening.dimension == 2
    assert repr(whitening) == "Whitening(pca, 3 -> 2)"


def test_empty_vectors_do_not_take_part_in_the_fit() -> None:
    values = correlated()
    padded = torch.cat([values, torch.zeros(1000, 3)])
    torch.testing.assert_close(Whitening.fit([padded], dimension=2).mean, Whitening.fit([values], dimension=2).mean)


def test_scatter_and_covariance_give_one_whitening() -> None:
    values = correlated(500).double()
    centered = values - values.mean(0)
    scatter = centered.T @ centered
    eigenvalues, vectors = (tensor.flip(-1) for tensor in torch.linalg.eigh(scatter))
    theirs = Whitening.from_eigen(values.mean(0), vectors, eigenvalues, count=500)
    ours = Whitening.from_eigen(values.mean(0), vectors, eigenvalues / 500, epsilon=1e-7 / 500)
    torch.testing.assert_close(theirs.eigenvalues, ours.eigenvalues)
    probe = correlated(7, seed=3)
    torch.testing.assert_close(theirs.apply(probe), ours.apply(probe))
    # The published formula on the scatter's eigenvalues, as it stands.
    published = (probe.double() - values.mean(0)) @ (torch.diag((eigenvalues + 1e-7).rsqrt()) @ vectors.T).T
    torch.testing.assert_close(
        theirs.apply(probe), torch.nn.functional.normalize(published, dim=-1).float(), atol=1e-5, rtol=0
    )


def edited_pairs() -> tuple[torch.Tensor, torch.Tensor]:
    """Content in axes 0 and 1 (deviation 1); edits move axis 2 by as much, which also varies most in the data."""
    generator = torch.Generator().manual_seed(5)
    content = torch.randn(3000, 3, generator=generator) * torch.tensor([1.0, 1.0, 3.0])
    edit = torch.randn(3000, 3, generator=generator) * torch.tensor([0.1, 0.1, 3.0])
    return content, content + edit


def test_pairs_suppress_the_direction_that_only_edits_move() -> None:
    original, copy = edited_pairs()
    pca = Whitening.fit([original, copy], dimension=2)
    pairs = Whitening.fit_pairs([(original, copy)], dimension=2, shrinkage=1e-3)
    weight = (pairs.projection[2].norm() / pairs.projection[:2].norm()).item()
    assert weight < 0.01
    assert (pca.projection[2].norm() / pca.projection[:2].norm()).item() > 0.1
    # So copies stay near: cosine of pairs, on average.
    assert (pairs.apply(original) * pairs.apply(copy)).sum(-1).mean() > 0.95
    assert (pca.apply(original) * pca.apply(copy)).sum(-1).mean() < 0.85
    assert pairs.kind == "pairs"


def test_pairs_within_covariance_becomes_the_identity() -> None:
    original, copy = edited_pairs()
    whitening = Whitening.fit_pairs([(original, copy)], dimension=3, shrinkage=1e-6)
    moved = (original - copy) @ whitening.projection
    torch.testing.assert_close(moved.T @ moved / len(moved), torch.eye(3), atol=2e-3, rtol=0)
    # Ratios of total to within variance, by hand: axes 0 and 1 (1 + .005) / .01 ~ 100,
    # axis 2 (9 + 4.5) / 9 = 1.5.
    assert whitening.eigenvalues[:2].tolist() == pytest.approx([100, 100], rel=0.1)
    assert whitening.eigenvalues[2].item() == pytest.approx(1.5, rel=0.1)


def test_full_power_equalises_the_total_variance() -> None:
    original, copy = edited_pairs()
    whitening = Whitening.fit_pairs([(original, copy)], dimension=3, power=1.0)
    both = torch.cat([original, copy])
    torch.testing.assert_close(torch.cov(linear(whitening, both).T, correction=0), torch.eye(3), atol=2e-3, rtol=0)


def test_pairs_stream_and_skip_empty_regions() -> None:
    original, copy = edited_pairs()
    whole = Whitening.fit_pairs([(original, copy)], dimension=2)
    batches = list(zip(original.reshape(30, 10, 10, 3), copy.reshape(30, 10, 10, 3), strict=True))
    batches.append((torch.zeros(1, 10, 3), torch.ones(1, 10, 3)))
    streamed = Whitening.fit_pairs(iter(batches), dimension=2)
    torch.testing.assert_close(streamed.projection, whole.projection, rtol=1e-4, atol=1e-6)


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
    assert torch.equal(again.projection, whitening.projection)
    assert Whitening.fit([original * 2], dimension=2).digest() != whitening.digest()


def test_reads_components_of_a_scatter(tmp_path: Path) -> None:
    path = tmp_path / "public.safetensors"
    save_file({"mean": torch.zeros(2), "vectors": torch.eye(2), "eigenvalues": torch.tensor([400.0, 100.0])}, path)
    assert Whitening.load(path).eigenvalues.tolist() == [400.0, 100.0]
    counted = Whitening.load(path, count=100)
    assert counted.eigenvalues.tolist() == [4.0, 1.0]
    torch.testing.assert_close(counted.projection, torch.tensor([[0.5, 0.0], [0.0, 1.0]]))


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
    save_file({"weight": torch.zeros(2)}, other)
    with pytest.raises(InvalidArgumentError, match=r"other.*: a whitening must hold .* got weight"):
        Whitening.load(other)
    odd = tmp_path / "odd"
    save_file(
        {"mean": torch.zeros(1), "projection": torch.zeros(1, 1), "eigenvalues": torch.ones(1)},
        odd,
        {"kind": "magic"},
    )
    with pytest.raises(InvalidArgumentError, match=r"kind must be 'pca' or 'pairs', got 'magic'"):
        Whitening.load(odd)


def test_refuses_what_cannot_be_whitened() -> None:
    values = correlated(10)
    with pytest.raises(InvalidArgumentError, match=r"dimension must be from 1 to 3, got 4"):
        Whitening.fit([values], dimension=4)
    with pytest.raises(
        InvalidArgumentError,
        match=r"dimension must be at most 1, as the vectors vary in no more directions, got 2",
    ):
        Whitening.fit([values[:2]], dimension=2)
    with pytest.raises(InvalidArgumentError, match="at least one vector that is not zero, got none"):
        Whitening.fit([torch.zeros(4, 3)], dimension=1)
    with pytest.raises(InvalidArgumentError, match="got vectors of 3 and of 2"):
        Whitening.fit([values, values[:, :2]], dimension=1)
    with pytest.raises(InvalidArgumentError, match=r"vectors must have length 3 for this whitening, got 2"):
        Whitening.fit([values], dimension=1).apply(values[:, :2])
    with pytest.raises(InvalidArgumentError, match=r"count must be at least 1, got 0"):
        Whitening.from_eigen(torch.zeros(1), torch.eye(1), torch.ones(1), count=0)


def test_refuses_bad_pairs() -> None:
    values = correlated(10)
    with pytest.raises(InvalidArgumentError, match="the two sides of every pair are equal"):
        Whitening.fit_pairs([(values, values)], dimension=1)
    with pytest.raises(InvalidArgumentError, match=r"one shape, got \[10, 3\] and \[5, 3\]"):
        Whitening.fit_pairs([(values, values[:5])], dimension=1)
    with pytest.raises(InvalidArgumentError, match=r"shrinkage must be in \(0, 1\], got 0"):
        Whitening.fit_pairs([(values, values)], dimension=1, shrinkage=0)
    with pytest.raises(InvalidArgumentError, match=r"power must be in \[0, 1\], got 2"):
        Whitening.fit_pairs([(values, values)], dimension=1, power=2)


def test_checks_its_fields() -> None:
    with pytest.raises(InvalidArgumentError, match=r"projection must be \[D, D'\], got \[2\]"):
        Whitening(torch.zeros(2), torch.zeros(2), torch.zeros(2))
    with pytest.raises(InvalidArgumentError, match=r"mean must be \[3\] as projection is \[3, 2\], got \[2\]"):
        Whitening(torch.zeros(2), torch.zeros(3, 2), torch.zeros(2))
    with pytest.raises(InvalidArgumentError, match=r"mean must be finite float32, got torch.float64"):
        Whitening(torch.zeros(2).double(), torch.zeros(2, 2), torch.zeros(2))
    with pytest.raises(InvalidArgumentError, match=r"kind must be 'pca' or 'pairs', got 'x'"):
        Whitening(torch.zeros(2), torch.zeros(2, 2), torch.zeros(2), "x")  # type: ignore[arg-type]


class ColorExtractor:
    """A real if small extractor: the mean color of each half of the frame."""

    name = "colour"
    fingerprint = "colour-1"
    scorer = "copies"
    views = "none"
    short_side = 8

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        halves = np.stack(np.array_split(frames.images.astype(np.float32), 2, axis=2), axis=1)
        values = torch.from_numpy(halves.mean(axis=(2, 3)))
        times = torch.from_numpy(frames.timestamps)
        return FrameFeatures.of_whole(values, times, torch.ones(len(frames)), self.fingerprint)


def test_fits_an_extractor_from_batches_of_frames() -> None:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    frames = Frames(images, np.arange(40.0))
    extractor = ColorExtractor()
    whitening = fit_whitening(extractor, (frames[i : i + 8] for i in range(0, 40, 8)), dimension=2)
    torch.testing.assert_close(whitening.mean, extractor.extract(frames).whole.mean(dim=(0, 1)))
    assert whitening.dimension == 2
