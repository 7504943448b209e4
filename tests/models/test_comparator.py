"""The comparator: hand-computed scores, batches of different lengths, weightings, and recomputation."""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.comparators import passing
from vidkin.errors import InvalidArgumentError
from vidkin.models import Comparator, ComparatorConfig, build_comparator
from vidkin.models.comparator import make_weighting

PLAIN = ComparatorConfig(network="none", dimension=2)


def descriptors(*angles: float) -> torch.Tensor:
    """Unit vectors at these angles in degrees, [T, 1, 2]."""
    radians = torch.tensor(angles) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], dim=-1)[:, None]


def random_videos(count: int, frames: int, regions: int, dimension: int, seed: int = 0) -> torch.Tensor:
    values = torch.randn(count, frames, regions, dimension, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(values, dim=-1)


def score(comparator: Comparator, query: torch.Tensor, target: torch.Tensor) -> float:
    arrays = comparator.on_arrays()
    frame_map = arrays.frame_map(arrays.weigh(query.numpy()), arrays.weigh(target.numpy()))
    return arrays.video_score(arrays.learned_map(frame_map))


def test_score_of_a_pair_matches_a_hand_computed_value() -> None:
    comparator = build_comparator(PLAIN, weights="random")
    query, target = descriptors(0, 90), descriptors(60, 180, 90)
    # The best match of 0 degrees is cos 60 = 0.5, that of 90 degrees 1.
    assert score(comparator, query, target) == pytest.approx(0.75)
    # In the other direction: 60 -> max(0.5, cos 30), 180 -> max(-1, 0), 90 -> 1.
    assert score(comparator, target, query) == pytest.approx((math.sqrt(3) / 2 + 0 + 1) / 3)


def test_top_k_scores_match_hand_computed_values() -> None:
    both = ComparatorConfig(network="none", dimension=2, temporal_share=0.67)
    query, target = descriptors(0), descriptors(0, 60, 90)
    # k = round(0.67 * 3) = 2 of the values 1, 0.5 and 0.
    assert score(build_comparator(both, weights="random"), query, target) == pytest.approx(0.75)
    regions = ComparatorConfig(network="none", dimension=2, spatial_share=0.67)
    stacked = target.transpose(0, 1)  # one frame of three regions
    assert score(build_comparator(regions, weights="random"), query, stacked) == pytest.approx(0.75)


def test_temporal_span_keeps_long_targets_from_diluting_a_clip() -> None:
    query = descriptors(0)
    target = torch.cat([query, descriptors(90).repeat(99, 1, 1)])
    share = ComparatorConfig(network="none", dimension=2, temporal_share=0.03)
    limited = ComparatorConfig(network="none", dimension=2, temporal_share=0.03, temporal_span=28)
    # k = 3 averages a single 1 with zeros; limited to the span, k = round(0.03 * 28) = 1.
    assert score(build_comparator(share, weights="random"), query, target) == pytest.approx(1 / 3)
    assert score(build_comparator(limited, weights="random"), query, target) == pytest.approx(1.0)


@pytest.mark.parametrize("network", ["cnn", "none"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_padded_batch_has_the_same_scores_as_each_pair_alone(network: str, symmetric: bool) -> None:
    config = ComparatorConfig.from_mapping({
        "network": network, "symmetric": symmetric, "dimension": 8, "weighting": "attention",
        "spatial_share": 0.5, "temporal_share": 0.4,
    })  # fmt: skip
    comparator = build_comparator(config, weights="random", seed=3).eval()
    lengths = [3, 9, 12]
    videos = random_videos(3, 12, 4, 8)
    with torch.no_grad():
        together = comparator(videos, torch.tensor(lengths))
    for row, rows in enumerate(lengths):
        for column, columns in enumerate(lengths):
            alone = score(comparator, videos[row, :rows], videos[column, :columns])
            assert float(together.scores[row, column]) == pytest.approx(alone / 2 + 0.5, abs=1e-5)
            assert not together.frame_maps[row, column, rows:].any()
            assert not together.frame_maps[row, column, :, columns:].any()


@pytest.mark.parametrize("kept", [0, 1 << 18])
def test_gradients_equal_those_of_each_pair_with_and_without_recomputation(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vidkin.models.comparator._MAX_KEPT_CELLS", kept)
    comparator = build_comparator(ComparatorConfig(dimension=8), weights="random")
    videos = random_videos(3, 8, 2, 8)
    comparator(videos).scores.square().sum().backward()
    found = {name: value.grad.clone() for name, value in comparator.named_parameters() if value.grad is not None}
    comparator.zero_grad()
    total = torch.zeros(())
    for query in videos:
        for target in videos:
            assert comparator.visil_head is not None
            learned = comparator.visil_head(comparator.frame_map(query, target)[None])[0]
            total = total + (learned.clamp(-1, 1).amax(1).mean() / 2 + 0.5).square()
    total.backward()  # type: ignore[no-untyped-call]
    assert found
    for name, value in comparator.named_parameters():
        assert value.grad is not None
        torch.testing.assert_close(found[name], value.grad, atol=1e-5, rtol=1e-4)


def test_weightings_match_hand_computed_values() -> None:
    values = torch.tensor([[0.6, 0.8], [1.0, 0.0]])
    direction = make_weighting(ComparatorConfig(dimension=2, weighting="direction"))
    attention = make_weighting(ComparatorConfig(dimension=2, weighting="attention"))
    signs = make_weighting(ComparatorConfig(dimension=2, weighting="signs"))
    with torch.no_grad():
        direction.get_parameter("context_vector.weight").copy_(torch.tensor([[3.0, 0.0]]))
        torch.testing.assert_close(direction(values), values * torch.tensor([[0.8], [1.0]]))
        attention.get_parameter("transform.weight").copy_(torch.eye(2))
        attention.get_parameter("context_vector.weight").copy_(torch.tensor([[1.0, 1.0]]))
        weights = torch.tensor([[math.tanh(0.6) + math.tanh(0.8)], [math.tanh(1.0)]]).sigmoid()
        torch.testing.assert_close(attention(values), values * weights)
        signs.get_parameter("W").copy_(torch.eye(2) * torch.tensor([1.0, -1.0]))
        torch.testing.assert_close(signs(values), torch.tensor([[0.5**0.5, -(0.5**0.5)], [0.5**0.5, 0.0]]))


def test_attention_has_the_published_number_of_parameters() -> None:
    comparator = build_comparator(ComparatorConfig(dimension=512, weighting="attention"), weights="random")
    sizes = {name: value.numel() for name, value in comparator.named_parameters()}
    assert sum(size for name, size in sizes.items() if name.startswith("attention.")) == 263_168
    assert sum(sizes.values()) == 355_969


def test_descriptors_of_another_dimension_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="must have the 128 dimensions of the comparator, got 2"):
        passing().weigh(descriptors(0))
    with pytest.raises(InvalidArgumentError, match="must have the 128 dimensions of the comparator, got 2"):
        passing().on_arrays().weigh(descriptors(0).numpy())


def test_random_weights_must_be_requested_explicitly() -> None:
    with pytest.raises(TypeError, match="weights"):
        build_comparator(PLAIN)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weighting": "most"}, "weighting must be one of 'none', 'attention', 'direction', 'signs', got 'most'"),
        ({"spatial_share": 1.5}, "spatial_share must be None"),
        ({"temporal_span": -1}, "temporal_span must be at least 0, got -1"),
        ({"dimension": 0}, "dimension must be at least 1, got 0"),
        ({"unrelated": (0.5, 0.25)}, "unrelated must be two numbers in increasing order"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ComparatorConfig(**settings)  # type: ignore[arg-type]
