"""Train a comparator together with its extractor's network, on frames instead of descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.checkpoint import checkpoint

from vidkin.errors import InvalidArgumentError
from vidkin.features import BackboneExtractor, FrameExtractor, frame_information
from vidkin.media import Frames
from vidkin.models.comparator import ClipComparison, Comparator
from vidkin.models.config import ComparatorConfig
from vidkin.similarity import FrameFeatures, length_mask

# Number of frames per pass; only their activations are in memory, because the backward pass recomputes all others.
_FRAMES_PER_PASS = 32


class PreparedFrames:
    """An extractor that returns the preprocessed network input [T, 1, 3 * S * S] instead of descriptors.

    Args:
        extractor: The extractor whose network takes this input.

    Raises:
        InvalidArgumentError: The extractor does not have a trainable network.
    """

    scorer = "copies"
    describes_boxes = False

    def __init__(self, extractor: FrameExtractor) -> None:
        if not isinstance(extractor, BackboneExtractor):
            raise InvalidArgumentError(
                f"model.trainable 'all' needs an extractor timm:<model> or torchvision:<model>, got {extractor.name!r}"
            )
        self.source = extractor
        self.name = extractor.name
        self.fingerprint = f"input-{extractor.fingerprint}"
        self.short_side = extractor.short_side

    def extract(self, frames: Frames, *, boxes: NDArray[np.floating] | None = None) -> FrameFeatures:
        """Preprocess frames [T, H, W, 3]."""
        values = self.source.prepare(frames.images).flatten(1)[:, None].numpy()
        return FrameFeatures.of_whole(
            values, frames.timestamps.copy(), frame_information(frames.images), self.fingerprint
        )


class TrainedDescriptors(nn.Module):
    """A comparator and its extractor's network, trained together; the network's batch norms stay frozen.

    Args:
        comparator: The comparator.
        extractor: The extractor whose network is trained, on the training device.
    """

    def __init__(self, comparator: Comparator, extractor: BackboneExtractor) -> None:
        super().__init__()
        self.comparator = comparator
        self.backbone = extractor.network.requires_grad_(True)
        self._extractor = extractor

    @property
    def config(self) -> ComparatorConfig:
        """Settings of the comparator."""
        return self.comparator.config

    def train(self, mode: bool = True) -> Self:
        """Switch to training or eval mode; the network stays in eval mode."""
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(
        self, videos: torch.Tensor, lengths: torch.Tensor | None = None, rows: slice | None = None
    ) -> ClipComparison:
        """Like :meth:`Comparator.forward`, but for preprocessed frames [N, T, 1, 3 * S * S] instead of descriptors."""
        count, frames = videos.shape[:2]
        lengths = torch.full((count,), frames, device=videos.device) if lengths is None else lengths
        inside = length_mask(lengths, frames)
        side = round((videos.shape[-1] / 3) ** 0.5)
        images = videos[inside].view(-1, 3, side, side)
        parts = [self._describe(part) for part in torch.split(images, _FRAMES_PER_PASS)]
        described = torch.cat(parts)
        values = described.new_zeros(count, frames, *described.shape[1:])
        values = values.masked_scatter(inside[:, :, None, None], described)
        comparison: ClipComparison = self.comparator(values, lengths, rows)
        return comparison

    def weights(self) -> Mapping[str, torch.Tensor]:
        """Return the network's weights on the CPU, in the form that the extractor loads."""
        return {name: tensor.detach().cpu().contiguous() for name, tensor in self.backbone.state_dict().items()}

    def _describe(self, images: torch.Tensor) -> torch.Tensor:
        describe = self._extractor.describe_prepared
        if torch.is_grad_enabled():
            described: torch.Tensor = checkpoint(describe, images, use_reentrant=False)
            return described
        return describe(images)
