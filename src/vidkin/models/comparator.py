"""The trainable video comparator: region weighting, a frame similarity map, and a network applied to the map.

Shapes: N videos; B pairs; T frames, Tq of the query and Tt of the target; R regions; D dimensions. Primed lengths
refer to the learned map: a quarter of the length, rounded up.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.models.comparator_extractor import REDUCTION, ArrayComparator, comparator_facts, reduced_length
from vidkin.models.config import ComparatorConfig, Padding, Remainder
from vidkin.models.randomness import seeded
from vidkin.models.stored import weights_digest
from vidkin.models.weights import load_weights, state_arrays
from vidkin.similarity import frame_similarity, length_mask, temporal_chamfer

_CHANNELS = (1, 32, 64, 128)

Lengths = torch.Tensor | None


class MapNetwork(nn.Module):
    """Network that turns frame similarity maps [B, Tq, Tt] into unbounded learned maps [B, Tq', Tt'].

    Three 3 x 3 convolutions (32, 64, 128 channels) with 2 x 2 max pooling after the first two, and one 1 x 1
    convolution; lengths must be at least 1. For odd lengths, the last row or column is either pooled over the
    remaining cells, so that no frame is lost and a padded batch gives the same values as each pair alone, or dropped,
    as in the published code.

    Args:
        padding: Padding around a map.
        remainder: How to handle the last row or column of odd lengths.

    Source: ViSiL (ICCV 2019), the video comparator; masks as in S2VS.
    """

    def __init__(self, padding: Padding = "zeros", remainder: Remainder = "pooled") -> None:
        super().__init__()
        self._drops = remainder == "dropped"
        self.conv1, self.conv2, self.conv3 = (
            nn.Conv2d(before, after, 3) for before, after in itertools.pairwise(_CHANNELS)
        )
        self.fconv = nn.Conv2d(_CHANNELS[-1], 1, 1)
        self._mode = "constant" if padding == "zeros" else "replicate"
        for layer in (self.conv1, self.conv2, self.conv3, self.fconv):
            nn.init.xavier_uniform_(layer.weight)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)

    def forward(
        self, maps: torch.Tensor, query_lengths: Lengths = None, target_lengths: Lengths = None
    ) -> torch.Tensor:
        """Compute learned maps [B, Tq', Tt'] from maps [B, Tq, Tt]; they are zero beyond the lengths.

        Args:
            maps: Similarities, cosines in [-1, 1].
            query_lengths: [B] int64, number of valid rows of each map; None: all.
            target_lengths: [B] int64, number of valid columns of each map; None: all.
        """
        if (self._mode == "replicate" or self._drops) and not (query_lengths is None and target_lengths is None):
            # Replicate padding and dropped cells depend on the edge of each map, so pairs of different lengths cannot
            # be batched.
            learned = maps.new_zeros(len(maps), reduced_length(maps.shape[1]), reduced_length(maps.shape[2]))
            for position, frame_map in enumerate(maps):
                rows = maps.shape[1] if query_lengths is None else int(query_lengths[position])
                columns = maps.shape[2] if target_lengths is None else int(target_lengths[position])
                part = self.forward(frame_map[None, :rows, :columns])[0]
                learned[position, : part.shape[0], : part.shape[1]] = part
            return learned
        if self._drops and min(maps.shape[1:]) < REDUCTION:
            missing = [max(0, REDUCTION - length) for length in maps.shape[1:]]
            maps = functional.pad(maps, (0, missing[1], 0, missing[0]), "replicate")
        lengths = (query_lengths, target_lengths)
        signal = _mask_padding(maps[:, None], lengths)
        for layer, is_pooled in ((self.conv1, True), (self.conv2, True), (self.conv3, False)):
            signal = layer(functional.pad(signal, (1, 1, 1, 1), self._mode))
            signal = functional.relu(_mask_padding(signal, lengths))
            if is_pooled:
                signal = functional.max_pool2d(signal, 2, ceil_mode=not self._drops)
                lengths = (_half(lengths[0]), _half(lengths[1]))
        return _mask_padding(self.fconv(signal), lengths)[:, 0]


def _half(lengths: Lengths) -> Lengths:
    return None if lengths is None else (lengths + 1) // 2


def _mask_padding(signal: torch.Tensor, lengths: tuple[Lengths, Lengths]) -> torch.Tensor:
    """Set [B, C, Tq, Tt] to zero beyond the valid rows and columns."""
    inside: torch.Tensor | None = None
    for axis, valid in zip((2, 3), lengths, strict=True):
        if valid is not None:
            within = torch.arange(signal.shape[axis], device=signal.device) < valid[:, None]
            within = within[:, None, :, None] if axis == 2 else within[:, None, None, :]
            inside = within if inside is None else inside & within
    # On a CPU, multiplication is faster than masked_fill in both the forward and the backward pass.
    return signal if inside is None else signal * inside.to(signal.dtype)


class _Attention(nn.Module):
    """Attention ``x sigmoid(v . tanh(W x + b))``; 263,168 parameters for D = 512."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dimension, dimension)
        self.context_vector = nn.Linear(dimension, 1, bias=False)
        nn.init.xavier_uniform_(self.transform.weight)
        nn.init.xavier_uniform_(self.context_vector.weight)
        nn.init.zeros_(self.transform.bias)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        weights: torch.Tensor = self.context_vector(torch.tanh(self.transform(values)))
        return values * weights.sigmoid()


class _Direction(nn.Module):
    """Directional weighting (ViSiL): ``x (1 + x . v / |v|) / 2`` for unit vectors x."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.context_vector = nn.Linear(dimension, 1, bias=False)
        nn.init.normal_(self.context_vector.weight)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        cosine: torch.Tensor = self.context_vector(values) / self.context_vector.weight.norm()
        return values * (cosine / 2 + 0.5)


class _Signs(nn.Module):
    """Signs of a fixed linear projection, scaled to unit length (the binary student of DnS)."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.W = nn.Parameter(nn.init.orthogonal_(torch.empty(dimension, dimension)), requires_grad=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        signs = torch.sign(functional.normalize(values, dim=-1) @ self.W)
        scaled: torch.Tensor = signs / signs.shape[-1] ** 0.5
        return scaled


def make_weighting(config: ComparatorConfig) -> nn.Module:
    """Build the module that weights descriptors [..., D], randomly initialized; ``none`` has no parameters."""
    if config.weighting == "none":
        return nn.Identity()
    kinds = {"attention": _Attention, "direction": _Direction, "signs": _Signs}
    return kinds[config.weighting](config.dimension)


# Map cells per pass on a CPU. Their activations take about 40 MB, which fits in the CPU cache.
_CPU_CELLS = 1 << 15
# Map cells per pass on a GPU. Their activations take about 2.5 GB, enough to keep the GPU busy.
_GPU_CELLS = 1 << 21
# Queries are batched if the longest has at most this many times the frames of the shortest.
_LENGTH_SPREAD = 1.25
# Maximum number of map cells whose activations (about 250 MB) are stored for the backward pass. Above this they are
# recomputed, which doubles the time.
_MAX_KEPT_CELLS = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class ClipComparison:
    """Pairwise comparison of N videos, or a subset of its rows.

    Attributes:
        scores: [N, N] in [0, 1], differentiable.
        frame_maps: [N, N, T, T], frame similarities before the network; zero beyond the lengths.
        learned_maps: [N, N, T', T'], network output before clipping to [-1, 1]; zero beyond the lengths.
    """

    scores: torch.Tensor
    frame_maps: torch.Tensor
    learned_maps: torch.Tensor


@check_constructor
class Comparator(nn.Module):
    """Scores the similarity of two videos: weights regions, compares frames, and filters the map of all frames.

    ``score = TopK-Chamfer over times of hardtanh(network(map))`` with ``map = TopK-Chamfer over regions``; in [-1, 1].

    Args:
        config: Architecture. The constructor initializes the weights at random; to set or load weights, call
            :func:`build_comparator` or ``load_comparator`` instead.

    Source: ViSiL (ICCV 2019); S2VS (CVPRW 2023); HAP-VR (ACM MM 2024), section 3.
    """

    def __init__(self, config: ComparatorConfig) -> None:
        super().__init__()
        self.config = config
        self.attention = make_weighting(config)
        # Parameter names follow the public checkpoints.
        self.visil_head = MapNetwork(config.padding, config.remainder) if config.network == "cnn" else None

    def weigh(self, values: torch.Tensor) -> torch.Tensor:
        """Weight descriptors [..., D] for comparison; the shape is unchanged."""
        if values.shape[-1] != self.config.dimension:
            raise InvalidArgumentError(
                f"descriptors must have the {self.config.dimension} dimensions of the comparator, "
                f"got {values.shape[-1]}"
            )
        weighted: torch.Tensor = self.attention(values)
        return weighted

    def frame_map(self, query: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Compute frame similarities [Tq, Tt] from weighted descriptors [Tq, R, D] and [Tt, R, D]."""
        similarities: torch.Tensor = frame_similarity(
            query, target, spatial_share=self.config.spatial_share, symmetric=self.config.symmetric
        )
        return similarities

    @property
    def reduction(self) -> int:
        """Number of frames per row of the learned map."""
        return 1 if self.visil_head is None else REDUCTION

    def on_arrays(self) -> ArrayComparator:
        """Wrap this comparator to work on NumPy arrays, as :class:`LearnedScorer` requires, and put it in eval mode."""

        def run(network: nn.Module, values: NDArray[np.float32]) -> NDArray[np.float32]:
            with torch.no_grad():
                result: NDArray[np.float32] = network(torch.tensor(values, device=device)).cpu().numpy()
            return result

        self.eval()
        device = next((tensor.device for tensor in self.state_dict().values()), torch.device("cpu"))
        return ArrayComparator(
            self.config,
            partial(run, self.attention),
            None if self.visil_head is None else partial(run, self.visil_head),
            weights_digest(comparator_facts(self.config), state_arrays(self)),
        )

    def forward(
        self, videos: torch.Tensor, lengths: torch.Tensor | None = None, rows: slice | None = None
    ) -> ClipComparison:
        """Compare all videos in a batch with each other, for training.

        For large batches, the network's activations are recomputed in the backward pass, a few pairs at a time, so
        that memory scales with the maps rather than with the activations.

        Args:
            videos: [N, T, R, D] floating point, descriptors of the videos.
            lengths: [N] int64, number of valid frames in each video; None: all frames.
            rows: Videos to compare with all videos; the results have only these rows. None: all videos.
        """
        rows = rows or slice(None)
        count, frames = videos.shape[:2]
        lengths = torch.full((count,), frames, device=videos.device) if lengths is None else lengths
        weighted = self.weigh(videos)
        joined = self.frame_map(weighted[rows].flatten(0, 1), weighted.flatten(0, 1))
        joined = joined.view(-1, frames, count, frames).transpose(1, 2)
        inside = length_mask(lengths, frames)
        pairs = inside[rows, None, :, None] & inside[None, :, None, :]
        frame_maps = joined.masked_fill(~pairs, 0.0)
        first = lengths[rows, None].expand(-1, count).flatten()
        second = lengths[None, :].expand(len(joined), -1).flatten()
        learned = self._learned_maps(frame_maps.flatten(0, 1), first, second)
        scores = self._scores(learned, first, second)
        return ClipComparison(scores.view(-1, count) / 2 + 0.5, frame_maps, learned.view(-1, count, *learned.shape[1:]))

    @torch.no_grad()
    def score_queries(self, queries: Sequence[torch.Tensor], target: torch.Tensor) -> torch.Tensor:
        """Compute raw scores [Q] in [-1, 1] of queries against one target, as :meth:`ArrayComparator.video_score` does.

        Queries of similar length are batched.

        Args:
            queries: Weighted descriptors [Tq, R, D] of Q videos of any length, on the comparator's device.
            target: Weighted descriptors [Tt, R, D] of the target.
        """
        lengths = [len(query) for query in queries]
        maps = torch.split(self.frame_map(torch.cat(list(queries)), target), lengths)
        scores = target.new_empty(len(queries), dtype=torch.float32)
        order = sorted(range(len(queries)), key=lambda position: lengths[position])
        while order:
            longest = int(_LENGTH_SPREAD * lengths[order[0]]) + REDUCTION
            chosen = [position for position in order if lengths[position] <= longest]
            order = order[len(chosen) :]
            padded = nn.utils.rnn.pad_sequence([maps[position] for position in chosen], batch_first=True)
            sides = [
                torch.tensor([lengths[position] for position in chosen], device=target.device),
                torch.full((len(chosen),), len(target), device=target.device),
            ]
            scores[chosen] = self._scores(self._learned_maps(padded, *sides), *sides).float()
        return scores

    def _scores(self, learned: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Compute scores [P] in [-1, 1] from learned maps [P, T', T'] and the lengths [P] of the two videos."""
        step = self.reduction
        # Dropped frames have no cell, but even the shortest video has one.
        rounded = step - 1 if self.config.remainder == "pooled" else 0
        cells = [((side + rounded) // step).clamp(min=1) for side in (first, second)]
        masks = [length_mask(count, side) for count, side in zip(cells, learned.shape[1:], strict=True)]
        scores: torch.Tensor = temporal_chamfer(
            learned.clamp(-1, 1),
            temporal_share=self.config.temporal_share,
            symmetric=self.config.symmetric,
            query_mask=masks[0],
            target_mask=masks[1],
            longest=self.config.temporal_span or None,
        )
        return scores

    def _learned_maps(self, maps: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Compute learned maps [P, T', T'] from maps [P, T, T] and their valid lengths."""
        if self.visil_head is None:
            return maps
        cells = _CPU_CELLS if maps.device.type == "cpu" else _GPU_CELLS
        size = max(1, cells // (maps.shape[1] * maps.shape[2]))
        parts = zip(*(torch.split(part, size) for part in (maps, first, second)), strict=True)
        if torch.is_grad_enabled() and maps.numel() > _MAX_KEPT_CELLS:
            return torch.cat([checkpoint(self.visil_head, *part, use_reentrant=False) for part in parts])
        return torch.cat([self.visil_head(*part) for part in parts])


@check_arguments
def build_comparator(
    config: ComparatorConfig, *, weights: str | os.PathLike[str] | Literal["random"], seed: int = 0
) -> Comparator:
    """Build a comparator on the CPU, in training mode.

    Args:
        config: Architecture of the comparator.
        weights: Safetensors file with all weights, or ``"random"`` for training. There is no default, because the
            scores of an untrained comparator are meaningless.
        seed: Seed for random weights. The caller's random state is not changed.

    Raises:
        InvalidArgumentError: The weights in the file do not match the configuration.
    """
    with seeded(seed):
        comparator = Comparator(config)
    if weights != "random":
        load_weights(comparator, weights, label="a comparator with these settings")
    return comparator.train()
