"""The clip encoder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.models.conftest import clips, small
from vidkin.errors import InvalidArgumentError
from vidkin.models import ClipEncoder, EncoderConfig, build_model


def encoder(**settings: object) -> ClipEncoder:
    found = small("clip", **settings)
    assert isinstance(found, ClipEncoder)
    return found


def test_embeddings_are_unit_vectors_with_the_dimension_of_the_lstm() -> None:
    model = encoder()
    found = model(clips(3, 6))
    assert found.shape == (3, 16) == (3, model.dimension)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3))
    assert torch.equal(model.embed(clips(3, 6)), found)
    assert encoder(embedding=5)(clips(2, 4)).shape == (2, 5)


def test_embeddings_equal_the_formula() -> None:
    model = encoder()
    features = torch.rand(2, 3, model.feature_dimension)
    hidden = torch.relu(features @ model.fully_connected.weight.T + model.fully_connected.bias)
    state, cell = torch.zeros(2, 16), torch.zeros(2, 16)
    lstm = model.lstm
    for time in range(3):
        gates = hidden[:, time] @ lstm.weight_ih_l0.T + lstm.bias_ih_l0 + state @ lstm.weight_hh_l0.T + lstm.bias_hh_l0
        entry, keep, new, leave = gates.chunk(4, dim=1)
        cell = keep.sigmoid() * cell + entry.sigmoid() * new.tanh()
        state = leave.sigmoid() * cell.tanh()
    torch.testing.assert_close(model.head(features), state / state.norm(dim=1, keepdim=True))


def test_without_activation_negative_values_reach_the_lstm() -> None:
    features = torch.rand(1, 3, encoder().feature_dimension)
    assert not torch.allclose(encoder().head(features), encoder(activation="none").head(features))


def test_padding_does_not_change_embeddings() -> None:
    model = encoder()
    short, long = clips(1, 3, seed=1), clips(1, 6, seed=2)
    padded = torch.cat([short, torch.full((1, 3, 3, 32, 32), 0.7)], dim=1)
    together = model(torch.cat([padded, long]), torch.tensor([3, 6]))
    torch.testing.assert_close(together[0], model(short)[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(together[1], model(long)[0], atol=1e-6, rtol=0)
    # Even NaN as padding does not affect the hidden state of the clip.
    broken = model.frame_features(padded[0]).clone()
    broken[3:] = float("nan")
    torch.testing.assert_close(model.head(broken[None], torch.tensor([3]))[0], model(short)[0], atol=1e-6, rtol=0)


def test_padding_has_no_gradient() -> None:
    model = encoder()
    features = torch.rand(1, 4, model.feature_dimension, requires_grad=True)
    model.head(features, torch.tensor([2]))[0, 0].backward()
    assert features.grad is not None
    assert features.grad[0, :2].abs().sum() > 0
    assert features.grad[0, 2:].abs().sum() == 0


def test_embeddings_depend_on_the_order_of_frames() -> None:
    model = encoder()
    clip = clips(1, 6)
    assert not torch.allclose(model(clip), model(clip.flip(1)), atol=1e-4)


def test_features_and_head_together_equal_the_model() -> None:
    model = encoder()
    batch = clips(2, 5)
    features = model.frame_features(batch.flatten(0, 1)).reshape(2, 5, -1)
    assert torch.equal(model.head(features), model(batch))


def test_head_has_xavier_weights_and_a_higher_learning_rate() -> None:
    model = encoder()
    bound = (6 / (model.feature_dimension + 24)) ** 0.5
    weight = model.fully_connected.weight
    assert 0.9 * bound < float(weight.detach().abs().max()) <= bound
    assert not model.fully_connected.bias.any()
    groups = model.parameter_groups(1e-3)
    assert [(group["name"], group["lr"]) for group in groups] == [("backbone", 1e-3), ("head", 1e-2)]
    assert len(groups[0]["params"]) == len(list(model.backbone.parameters()))
    assert {id(p) for group in groups for p in group["params"]} == {id(p) for p in model.parameters()}
    assert model.parameter_groups(1e-3, head_factor=1.0)[1]["lr"] == 1e-3


def test_a_frozen_backbone_does_not_change(tiny_weights: Path) -> None:
    config = EncoderConfig(backbone="timm:test_resnet", trainable="head", size=64, hidden=8, lstm=8)
    model = build_model(config, weights=tiny_weights)
    assert isinstance(model, ClipEncoder)
    assert model.training
    assert not model.backbone.training
    assert [group["name"] for group in model.parameter_groups(1e-3)] == ["head"]
    before = {name: tensor.clone() for name, tensor in model.backbone.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameter_groups(0.1))
    model(clips(2, 3, 64))[:, 0].sum().backward()
    optimizer.step()
    assert all(torch.equal(before[name], tensor) for name, tensor in model.backbone.state_dict().items())
    assert not model.frame_features(clips(1, 2, 64)[0]).requires_grad


@pytest.mark.parametrize("frozen", [True, False])
def test_batch_norms_of_a_trained_backbone_can_be_frozen(tiny_weights: Path, frozen: bool) -> None:
    config = EncoderConfig(backbone="timm:test_resnet", size=64, hidden=8, lstm=8, frozen_batch_norm=frozen)
    model = build_model(config, weights=tiny_weights).train()
    assert isinstance(model, ClipEncoder)
    before = model.backbone.get_buffer("bn1.running_mean").clone()
    model(clips(2, 3, 64))
    assert torch.equal(model.backbone.get_buffer("bn1.running_mean"), before) is frozen


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (
            (2, 3, 32, 32),
            r"frames must be \[B, T, 3, S, S\] floating point from 0 to 1, got \[2, 3, 32, 32\]",
        ),
        ((2, 4, 1, 32, 32), r"got \[2, 4, 1, 32, 32\]"),
    ],
)
def test_frames_of_another_shape_are_rejected(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        encoder()(torch.zeros(shape))
    with pytest.raises(InvalidArgumentError, match=r"got \[1, 2, 3, 32, 32\] torch.uint8"):
        encoder()(torch.zeros(1, 2, 3, 32, 32, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([1, 0]), "lengths must be from 1 to 4, got 0 to 1"),
        (torch.tensor([5, 2]), "lengths must be from 1 to 4, got 2 to 5"),
        (torch.tensor([1]), r"lengths must be \[2\] integers, got \[1\] torch.int64"),
        (torch.tensor([1.0, 2.0]), r"lengths must be \[2\] integers, got \[2\] torch.float32"),
    ],
)
def test_invalid_lengths_are_rejected(lengths: torch.Tensor, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        encoder()(clips(2, 4), lengths)


def test_features_of_another_dimension_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"features must be \[B, T, 128\] with at least one frame"):
        encoder().head(torch.zeros(1, 0, 128))
    with pytest.raises(InvalidArgumentError, match=r"got \[1, 2, 5\]"):
        encoder().head(torch.zeros(1, 2, 5))
