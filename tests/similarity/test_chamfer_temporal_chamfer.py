"""A similarity map is reduced to one score."""

from __future__ import annotations

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.similarity import length_mask, temporal_chamfer

MAP = torch.tensor([[0.9, 0.1, 0.5, 0.3], [0.2, 0.8, 0.4, 0.6]])


def test_score_matches_a_hand_computed_value() -> None:
    assert temporal_chamfer(MAP).item() == pytest.approx((0.9 + 0.8) / 2)
    assert temporal_chamfer(MAP, temporal_share=0.5).item() == pytest.approx((0.7 + 0.7) / 2)
    assert temporal_chamfer(MAP, temporal_share=1.0).item() == pytest.approx(MAP.mean().item())
    # In the other direction with k = 1: (0.9 + 0.8 + 0.5 + 0.6) / 4 = 0.7.
    assert temporal_chamfer(MAP, symmetric=True).item() == pytest.approx((0.85 + 0.7) / 2)


def test_symmetric_score_equals_the_score_of_the_transposed_map() -> None:
    for share in (None, 0.5, 0.75):
        forth = temporal_chamfer(MAP, temporal_share=share, symmetric=True)
        back = temporal_chamfer(MAP.T, temporal_share=share, symmetric=True)
        assert forth.item() == pytest.approx(back.item())


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("share", [None, 0.3, 1.0])
def test_k_is_computed_from_the_valid_length(share: float | None, symmetric: bool) -> None:
    # A known pitfall: for a fraction of 0.3, k would be 3 for the 10 padded times, but is 1 for the 4 valid ones.
    padded = torch.full((2, 5, 10), 7.0)
    padded[0, :2, :4] = MAP
    padded[1, :1, :1] = 0.25
    found = temporal_chamfer(
        padded,
        temporal_share=share,
        symmetric=symmetric,
        query_mask=length_mask(torch.tensor([2, 1]), 5),
        target_mask=length_mask(torch.tensor([4, 1]), 10),
    )
    alone = temporal_chamfer(MAP, temporal_share=share, symmetric=symmetric).item()
    assert found.tolist() == pytest.approx([alone, 0.25])


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 2)])
def test_maps_of_fewer_than_four_frames_are_scored(shape: tuple[int, int]) -> None:
    similarity = torch.full(shape, 0.5)
    for share in (None, 0.03, 0.5):
        assert temporal_chamfer(similarity, temporal_share=share, symmetric=True).item() == pytest.approx(0.5)


def test_map_without_valid_times_is_zero_with_zero_gradient() -> None:
    similarity = torch.ones(2, 3, 4, requires_grad=True)
    score = temporal_chamfer(similarity, target_mask=torch.zeros(2, 4, dtype=torch.bool))
    assert score.tolist() == [0.0, 0.0]
    score.sum().backward()
    assert similarity.grad is not None
    assert similarity.grad.abs().sum().item() == 0.0


@pytest.mark.parametrize("symmetric", [False, True])
def test_gradients_equal_numeric_ones(symmetric: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    similarity = torch.rand(2, 3, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    query_mask, target_mask = length_mask(torch.tensor([3, 2]), 3), length_mask(torch.tensor([5, 6]), 6)
    for share in (None, 0.5):
        assert torch.autograd.gradcheck(
            lambda m, share=share: temporal_chamfer(m, temporal_share=share, symmetric=symmetric),
            (similarity,),
        )
        assert torch.autograd.gradcheck(
            lambda m, share=share: temporal_chamfer(
                m, temporal_share=share, symmetric=symmetric, query_mask=query_mask, target_mask=target_mask
            ),
            (similarity,),
        )


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"similarity must not be empty, got \[2, 0\]"):
        temporal_chamfer(MAP[:, :0])
    with pytest.raises(InvalidArgumentError, match=r"must be \[..., Tq, Tt\] floating point, got \[4\]"):
        temporal_chamfer(MAP[0])
    with pytest.raises(InvalidArgumentError, match=r"target_mask must be \[4\] boolean, got \[3\]"):
        temporal_chamfer(MAP, target_mask=torch.ones(3, dtype=torch.bool))
    with pytest.raises(InvalidArgumentError, match=r"query_mask must be \[2\] boolean, got \[2\] torch.float32"):
        temporal_chamfer(MAP, query_mask=torch.ones(2))
    with pytest.raises(InvalidArgumentError, match=r"temporal_share must be None .*, got 2.5"):
        temporal_chamfer(MAP, temporal_share=2.5)
