"""The comparator: turns the regional descriptors of two videos into one number.

Shapes: N videos; T, Tq, Tt frames; R regions; D dimension; primed lengths belong to the learned map.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from vidkin.errors import InvalidArgumentError
from vidkin.models.comparator.config import ComparatorConfig
from vidkin.models.comparator.map_network import REDUCTION, MapNetwork
from vidkin.models.comparator.weighting import make_weighting
from vidkin.models.randomness import seeded
from vidkin.models.weights import load_weights
from vidkin.similarity import frame_similarity, length_mask, temporal_chamfer

__all__ = ["ClipComparison", "Comparator", "build_comparator"]

# Map cells whose activations are held at a time: about 40 MB, small enough for the cache of a processor.
_CELLS_A_PASS = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class ClipComparison:
    """A batch of N videos, each compared with each; or only some rows of that comparison.

    Attributes:
        scores: [N, N] in [0, 1], differentiable.
        frame_maps: [N, N, T, T], similarities of frames before the network; zero beyond the lengths.
        learned_maps: [N, N, T', T'], output of the network, before it is clipped to [-1, 1]; zero beyond the
            lengths.
    """

    scores: torch.Tensor
    frame_maps: torch.Tensor
    learned_maps: torch.Tensor


class Comparator(nn.Module):
    """Weights regions, compares frames, filters the map of all frames, and scores the similarity of two videos.

    ``score = TopK-Chamfer over times of hardtanh(network(map))`` with ``map = TopK-Chamfer over regions``; in [-1, 1].

    Args:
        config: Architecture. The weights are random: use :func:`build_comparator` or ``load_comparator``.

    Source: ViSiL (ICCV 2019); S2VS (CVPRW 2023); HAP-VR (ACM MM 2024), section 3.
    """

    def __init__(self, config: ComparatorConfig) -> None:
        super().__init__()
        self.config = config
        self.attention = make_weighting(config)
        # Parameter names are those of the public checkpoints.
        self.visil_head = MapNetwork(config.padding) if config.network == "cnn" else None

    def weigh(self, values: torch.Tensor) -> torch.Tensor:
        """Weight the descriptors [..., D] for comparison, [..., D]."""
        if values.shape[-1] != self.config.dimension:
            raise InvalidArgumentError(
                f"descriptors must have the {self.config.dimension} dimensions of the comparator, "
                f"got {values.shape[-1]}"
            )
        weighed: torch.Tensor = self.attention(values)
        return weighed

    def frame_map(self, query: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Similarities of frames [Tq, Tt] of weighed descriptors [Tq, R, D] and [Tt, R, D]."""
        return frame_similarity(
            query, target, spatial_share=self.config.spatial_share, symmetric=self.config.symmetric
        )

    def learned_map(self, frame_map: torch.Tensor) -> torch.Tensor:
        """Learned map [Tq', Tt'] in [-1, 1] of one map [Tq, Tt] of any size, in bounded memory."""
        learned = frame_map if self.visil_head is None else self.visil_head.in_blocks(frame_map)
        return learned.clamp(-1, 1)

    def video_score(self, learned_map: torch.Tensor) -> torch.Tensor:
        """Scores [...] in [-1, 1] of learned maps [..., Tq', Tt']."""
        return temporal_chamfer(
            learned_map,
            temporal_share=self.config.temporal_share,
            symmetric=self.config.symmetric,
            longest=self.config.temporal_span or None,
        )

    @property
    def reduction(self) -> int:
        """Frames for each row of the learned map."""
        return 1 if self.visil_head is None else REDUCTION

    def forward(
        self, videos: torch.Tensor, lengths: torch.Tensor | None = None, rows: slice | None = None
    ) -> ClipComparison:
        """Compare each video of a batch with each, as training does.

        The activations of the network are computed again in the backward pass, a few pairs at a time, so that memory
        grows with the maps and not with the network.

        Args:
            videos: [N, T, R, D] floating point, the descriptors of the videos.
            lengths: [N] int64, valid frames of each video; None: all.
            rows: Videos to compare with all others; the results have only these rows. None: all videos.
        """
        rows = rows or slice(None)
        count, frames = videos.shape[:2]
        lengths = torch.full((count,), frames, device=videos.device) if lengths is None else lengths
        weighed = self.weigh(videos)
        joined = self.frame_map(weighed[rows].flatten(0, 1), weighed.flatten(0, 1))
        joined = joined.view(-1, frames, count, frames).transpose(1, 2)
        inside = length_mask(lengths, frames)
        pairs = inside[rows, None, :, None] & inside[None, :, None, :]
        frame_maps = joined.masked_fill(~pairs, 0.0)
        first = lengths[rows, None].expand(-1, count).flatten()
        second = lengths[None, :].expand(len(joined), -1).flatten()
        learned = self._learned_maps(frame_maps.flatten(0, 1), first, second)
        step = self.reduction
        masks = [length_mask((side + step - 1) // step, learned.shape[1]) for side in (first, second)]
        scores = temporal_chamfer(
            learned.clamp(-1, 1),
            temporal_share=self.config.temporal_share,
            symmetric=self.config.symmetric,
            query_mask=masks[0],
            target_mask=masks[1],
            longest=self.config.temporal_span or None,
        )
        return ClipComparison(
            scores.view(-1, count) / 2 + 0.5, frame_maps, learned.view(-1, count, *learned.shape[1:])
        )

    def _learned_maps(self, maps: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Learned maps [P, T', T'] of P maps [P, T, T] with their valid lengths."""
        if self.visil_head is None:
            return maps
        size = max(1, _CELLS_A_PASS // (maps.shape[1] * maps.shape[2]))
        parts = zip(*(torch.split(part, size) for part in (maps, first, second)), strict=True)
        if torch.is_grad_enabled():
            return torch.cat([checkpoint(self.visil_head, *part, use_reentrant=False) for part in parts])
        return torch.cat([self.visil_head(*part) for part in parts])


def build_comparator(
    config: ComparatorConfig, *, weights: str | os.PathLike[str] | Literal["random"], seed: int = 0
) -> Comparator:
    """Build a comparator on the CPU, in training mode.

    Args:
        config: Architecture of the comparator.
        weights: A safetensors file of all its weights, or ``"random"`` to train it: an untrained comparator gives
            meaningless scores, so there is no default.
        seed: Seed of random weights. The caller's random state is not touched.

    Raises:
        InvalidArgumentError: The file does not fit.
    """
    with seeded(seed):
        comparator = Comparator(config)
    if weights != "random":
        load_weights(comparator, weights, label="a comparator of these settings")
    return comparator.train()
