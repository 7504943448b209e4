"""Items drawn according to their current embeddings: mined triplets and neighboring clusters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from vidkin._base.parts import import_part
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import magnet_loss
from vidkin.metric.losses.distances import squared_distances
from vidkin.metric.sampling import sample_semi_hard_triplets

__all__ = ["ClusterDraws", "draw_mined_triplets"]

# Most draws of three random batches until one has a triplet.
_TRIES = 10
_CLUSTERS = 3
_CHUNK = 512

Embed = Callable[[Tensor], Tensor]
"""Function from indices [M] to unit vectors [M, D], without gradients."""


def draw_mined_triplets(classes: Tensor, embed: Embed, *, items: int, generator: torch.Generator) -> Tensor:
    """Triplets (a, p, n) from three random batches, by algorithm 1 of the two-head classifier: [3 * T], member by
    member.

    Args:
        classes: [N] class numbers.
        embed: The model.
        items: b, at least 3; at most b // 3 triplets are drawn.
        generator: Source of all random numbers.

    Raises:
        InvalidArgumentError: No batch has two items of one class and one of another.
    """
    for _ in range(_TRIES):
        triplets = sample_semi_hard_triplets(classes, embed, batch_size=items, seed=generator)
        if len(triplets):
            return torch.cat([triplets.query, triplets.positive, triplets.negative])
    raise InvalidArgumentError(
        f"{_TRIES} draws of {3 * items} items contained no two items of one class and one of another; make "
        "schedule.batch or schedule.quadlets larger"
    )


class ClusterDraws(nn.Module):
    """Batches for the magnet loss: a cluster with a high loss and the nearest clusters of other classes.

    k-means divides every class into up to 3 clusters and is repeated after every epoch. The state depends on earlier
    weights and so belongs to the checkpoint, hence a module with buffers.

    Args:
        classes: [N] class numbers.

    Source: Rippel et al., Metric learning with adaptive density discrimination, ICLR 2016, algorithm 1.
    """

    cluster_of: Tensor
    losses: Tensor
    centers: Tensor
    is_ready: Tensor

    def __init__(self, classes: Tensor, dimension: int) -> None:
        super().__init__()
        self._classes = classes
        self._count = int(classes.max()) + 1
        rows = self._count * _CLUSTERS
        self.register_buffer("cluster_of", torch.zeros(len(classes), dtype=torch.int64))
        self.register_buffer("losses", torch.zeros(rows))
        self.register_buffer("centers", torch.zeros(rows, dimension))
        self.register_buffer("is_ready", torch.tensor(False))

    def draw(
        self, embed: Embed, *, sizes: tuple[int, int], step: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Indices [M * D] of M clusters with D items each, and the clusters' numbers within their classes.

        Args:
            embed: The model.
            sizes: (M, D). Items of clusters smaller than D are drawn more than once.
            step: Number of steps taken; every N / (M D) steps the clusters are recomputed.
            generator: Source of all random numbers.
        """
        wide, each = sizes
        if not bool(self.is_ready) or step % max(1, len(self._classes) // (wide * each)) == 0:
            self.refresh(embed, seed=step)
        rows = self._classes * _CLUSTERS + self.cluster_of
        sizes_of = torch.bincount(rows, minlength=len(self.losses))
        usable = sizes_of >= 2
        weights = torch.where(usable, self.losses.clamp_min(1e-6), 0.0)
        seed = int(torch.multinomial(weights, 1, generator=generator))
        owner = torch.arange(len(self.losses)) // _CLUSTERS
        distances = squared_distances(self.centers[seed : seed + 1], self.centers)[0]
        impostors = usable & (owner != owner[seed])
        order = torch.where(impostors, distances, torch.inf).argsort()[: min(wide - 1, int(impostors.sum()))]
        indices = []
        for row in (seed, *order.tolist()):
            members = (rows == row).nonzero().squeeze(1)
            chosen = torch.randperm(len(members), generator=generator)[:each]
            if len(chosen) < each:
                more = torch.randint(len(members), (each - len(chosen),), generator=generator)
                chosen = torch.cat([chosen, more])
            indices.append(members[chosen])
        items = torch.cat(indices)
        return items, self.cluster_of[items]

    @torch.no_grad()
    def refresh(self, embed: Embed, *, seed: int) -> None:
        """Embed all items, cluster every class, and measure each cluster's mean loss."""
        clustering = import_part("sklearn.cluster", extra="train")
        every = torch.arange(len(self._classes))
        vectors = torch.cat([embed(part) for part in torch.split(every, _CHUNK)]).float().cpu()
        for number in range(self._count):
            mine = (self._classes == number).nonzero().squeeze(1)
            # Clusters of one item have nothing to be pulled toward.
            count = max(1, min(_CLUSTERS, len(mine) // 2))
            clusters = (
                clustering.KMeans(count, n_init=1, random_state=seed).fit_predict(vectors[mine].numpy())
                if len(mine) > count > 1
                else np.zeros(len(mine), dtype=np.int64)
            )
            self.cluster_of[mine] = torch.from_numpy(clusters).long()
        rows = self._classes * _CLUSTERS + self.cluster_of
        sizes = torch.bincount(rows, minlength=len(self.losses)).clamp_min(1).float()
        self.centers.zero_().index_add_(0, rows, vectors).div_(sizes[:, None])
        self.losses.zero_()
        for part in torch.split(every, _CHUNK):
            values = magnet_loss(
                vectors[part],
                self._classes[part],
                self.cluster_of[part],
                vectors,
                self._classes,
                self.cluster_of,
                reduction="none",
            )
            self.losses.index_add_(0, rows[part], values)
        self.losses.div_(sizes)
        self.is_ready.fill_(True)
