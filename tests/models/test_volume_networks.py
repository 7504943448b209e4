"""3-D convolutional networks."""

from __future__ import annotations

import pytest
import torch

from tests.models.conftest import clips, small
from vidkin.errors import InvalidArgumentError
from vidkin.models import DeepSBDNetwork, EncoderConfig, VideoNetwork, build_model
from vidkin.models.volume_networks import VolumeNetwork


def network(kind: str, **settings: object) -> VolumeNetwork:
    found = small(kind, **settings)
    assert isinstance(found, VolumeNetwork)
    return found


@pytest.mark.parametrize(("kind", "length"), [("c3d", 512), ("deep_sbd", 256)])
def test_networks_return_logits_and_unit_vectors(kind: str, length: int) -> None:
    model = network(kind)
    batch = clips(2, 8)
    logits = model(batch.transpose(1, 2))
    assert logits.shape == (2, 3)
    assert torch.equal(model.classify(batch), logits)
    found = model.embed(batch)
    assert found.shape == (2, length) == (2, model.dimension)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))
    hidden = model.hidden_features(batch.transpose(1, 2))
    torch.testing.assert_close(logits, model.classifier(hidden))


def test_c3d_has_the_published_sizes() -> None:
    with torch.device("meta"):
        model = VideoNetwork(
            EncoderConfig(kind="c3d", classes=101, mean=(0.5,) * 3, std=(0.25,) * 3)  # type: ignore[arg-type]
        )
    assert sum(parameter.numel() for parameter in model.parameters()) == 78_409_573
    first = model.fully_connected[0]
    assert isinstance(first, torch.nn.Linear)
    assert (first.in_features, first.out_features) == (512 * 4 * 4, 4096)


def test_deep_sbd_has_the_published_widths() -> None:
    with torch.device("meta"):
        model = DeepSBDNetwork(
            EncoderConfig(kind="deep_sbd", classes=3, mean=(0.5,) * 3, std=(0.25,) * 3)  # type: ignore[arg-type]
        )
    convolutions = [part for part in model.volume if isinstance(part, torch.nn.Conv3d)]
    assert [part.out_channels for part in convolutions] == [96, 256, 384, 384, 256]
    assert (model.dimension, model.classifier.in_features, model.classifier.out_features) == (2048, 2048, 3)


def test_c3d_accepts_other_lengths_and_deep_sbd_does_not() -> None:
    model = network("c3d")
    assert model.classify(clips(1, 21)).shape == (1, 3)
    assert model.classify(clips(1, 1)).shape == (1, 3)
    with pytest.raises(InvalidArgumentError, match="volumes must have 8 frames, got 9"):
        network("deep_sbd").classify(clips(1, 9))


def test_short_clips_repeat_their_last_frame() -> None:
    model = network("c3d")
    batch = clips(2, 8)
    still = batch.clone()
    still[0, 5:] = batch[0, 4]
    torch.testing.assert_close(model.embed(batch, torch.tensor([5, 8])), model.embed(still))
    with pytest.raises(InvalidArgumentError, match=r"lengths must be \[2\] integers of at least 1, got \[0, 8\]"):
        model.embed(batch, torch.tensor([0, 8]))


def test_batch_norms_can_be_enabled() -> None:
    assert not [part for part in network("c3d").modules() if isinstance(part, torch.nn.BatchNorm3d)]
    found = network("c3d", batch_norm=True)
    assert len([part for part in found.modules() if isinstance(part, torch.nn.BatchNorm3d)]) == 8


@pytest.mark.thorough
def test_network_learns_to_distinguish_directions_of_motion() -> None:
    config = EncoderConfig(kind="c3d", classes=2, size=16, frames=8, width=0.125, batch_norm=True)
    model = build_model(config).train()
    generator = torch.Generator().manual_seed(0)

    def batch(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Clips of a bright bar that moves to the right (1) or to the left (0)."""
        labels = torch.randint(0, 2, (count,), generator=generator)
        places = torch.randint(0, 16, (count, 1), generator=generator)
        places = (places + (labels[:, None] * 2 - 1) * 2 * torch.arange(8)) % 16
        made = torch.zeros(count, 8, 3, 16, 16)
        made[torch.arange(count)[:, None], torch.arange(8), :, :, places] = 1.0
        return made, labels

    assert isinstance(model, VolumeNetwork)
    optimizer = torch.optim.AdamW(model.parameter_groups(1e-3))
    assert [group["name"] for group in optimizer.param_groups] == ["head"]
    for _ in range(45):
        volumes, labels = batch(8)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model.classify(volumes), labels).backward()
        optimizer.step()
    volumes, labels = batch(64)
    accuracy = float((model.eval().classify(volumes).argmax(1) == labels).float().mean())
    assert accuracy > 0.9
