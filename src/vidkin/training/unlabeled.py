"""Unlabeled training images and their batches: a lightly and a heavily edited view of each image."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from vidkin._base.toml import check_names, from_table
from vidkin.datasets.augmentation import EditSettings, PairSettings, WarpSettings, make_pairs
from vidkin.errors import InvalidArgumentError
from vidkin.models import Encoder
from vidkin.models.encoder import evaluation_mode
from vidkin.training.batch import Batch, Draw, DrawnItems, work_ahead
from vidkin.training.image_set import ImageSet
from vidkin.training.recipe import Measure, ScheduleRecipe

_CHUNK = 64


@dataclass(frozen=True, eq=False)
class UnlabeledData:
    """Unlabeled training data; see :class:`vidkin.training.batch.TrainingData`.

    Attributes:
        images: Training images. If they have neighbors, the heavily edited views are created from the neighbors.
        validation: Validation images; None without validation.
        settings: Edits of the views.
        schedule: Number of images per step, and the seed of the steps.
        device: Device of the batches.
        seed: Seed for the edits of validation images.
        threads: Number of threads that edit images in advance.
        scene_images: Number of images from the same scene to sample together, as hard negatives of each other; 1
            samples all images independently.
    """

    images: ImageSet
    validation: ImageSet | None
    settings: PairSettings
    schedule: ScheduleRecipe
    device: torch.device
    seed: int = 0
    threads: int = 1
    scene_images: int = 1

    def __post_init__(self) -> None:
        if self.scene_images < 1:
            raise InvalidArgumentError(f"data.options.scene_images must be at least 1, got {self.scene_images}")
        if len(self.images) < self.schedule.pairs:
            raise InvalidArgumentError(
                f"schedule.pairs must be at most {len(self.images)}, the number of images, got {self.schedule.pairs}"
            )

    @property
    def name(self) -> str:
        """Folders with their number of images."""
        return ", ".join(f"{name}: {count}" for name, count in self.images.counts().items())

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """(file, cause) for each file that could not be read."""
        return tuple((file.path, file.cause) for file in self.images.broken)

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[Batch]:
        """Yield the batches from step ``first``; each depends only on the seed and the step, not on the number of
        threads."""
        assert tuple(draws) == ("views",)
        labels = torch.arange(self.schedule.pairs).repeat(2)[:, None].expand(-1, 2).to(self.device)
        for views in work_ahead(self.views, range(first, self.schedule.steps), threads=self.threads):
            yield Batch({"views": DrawnItems(views.to(self.device), None, labels, are_features=False)})

    def views(self, step: int) -> Tensor:
        """Create the views [2 N, 3, side, side] of a step, from 0 to 1: all first views, then all second views."""
        return torch.cat(self.pairs(step)[1])

    def pairs(self, step: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Sample the indices [N] of a step's images, and create their two views [N, 3, side, side]."""
        generator = torch.Generator().manual_seed(self.schedule.seed * 1_000_003 + step)
        chosen = draw_by_scene(self.images.groups, self.scene_images, generator)[: self.schedule.pairs]
        images, neighbors = self.images.images, self.images.neighbors
        other = None if neighbors is None else neighbors.of(images, chosen)
        return chosen, make_pairs(images[chosen], self.settings, generator, other)

    def measure(self, model: Encoder, measure: Measure) -> float:
        """Compute the fraction of validation images whose heavily edited view is closest to their own plain view.

        Both views are created from the image itself even if it has a neighbor, so that results are comparable.
        """
        assert measure == "recall_at_1"
        assert self.validation is not None
        generator = torch.Generator().manual_seed(self.seed)
        plain, heavy = [], []
        with evaluation_mode(model):
            for images in torch.split(self.validation.images, _CHUNK):
                views = torch.cat(make_pairs(images, self.settings, generator))
                first, second = model.embed(views.to(self.device)).float().cpu().chunk(2)
                plain.append(first)
                heavy.append(second)
        nearest = (torch.cat(heavy) @ torch.cat(plain).T).argmax(dim=1)
        return (nearest == torch.arange(len(nearest))).float().mean().item()

    def identity(self) -> bytes:
        """Return the groups of the images, and a hash of the pixels of images and neighbors."""
        groups = json.dumps([self.images.group_names, self.images.groups.tolist()])
        pixels = hashlib.sha256(self.images.images.numpy().tobytes())
        if self.images.neighbors is not None:
            pixels.update(self.images.neighbors.squares.numpy().tobytes())
            pixels.update(self.images.neighbors.positions.numpy().tobytes())
        return groups.encode() + pixels.digest()


def draw_by_scene(scenes: Tensor, together: int, generator: torch.Generator) -> Tensor:
    """Sample a random order [N] in which up to ``together`` images of the same scene are adjacent.

    Args:
        scenes: [N] int64, scene of each image.
        together: Number of images of the same scene in a row; 1 for a plain random order.
        generator: Random generator.
    """
    order = torch.randperm(len(scenes), generator=generator)
    if together == 1:
        return order
    by_scene = order[scenes[order].argsort(stable=True)]
    sizes = torch.bincount(scenes)
    # Position of each image within its scene.
    rank = torch.arange(len(scenes)) - (sizes.cumsum(0) - sizes)[scenes[by_scene]]
    starts = (rank % together == 0).long()
    row = starts.cumsum(0) - 1
    position = torch.randperm(int(starts.sum()), generator=generator)
    return by_scene[position[row].argsort(stable=True)]


def pair_settings(options: Mapping[str, Any], *, side: int) -> PairSettings:
    """Read the edits in a recipe: the defaults of :class:`PairSettings`, updated with ``data.options``.

    Args:
        options: ``mirror_both``, and tables ``plain`` and ``heavy`` with settings of :class:`EditSettings`, whose
            ``warp`` is a table with settings of :class:`WarpSettings`. ``scene_images`` and ``neighbor_seconds`` are
            allowed but ignored.
        side: Side of the views in pixels.

    Raises:
        InvalidArgumentError: A setting is unknown or not allowed.
    """
    check_names(options, ("mirror_both", "scene_images", "neighbor_seconds", "plain", "heavy"), "data.options")
    settings = PairSettings(side=side)
    if "mirror_both" in options:
        settings = replace(settings, mirror_both=float(options["mirror_both"]))
    return replace(
        settings,
        plain=_edit_settings(settings.plain, options.get("plain", {}), "data.options.plain"),
        heavy=_edit_settings(settings.heavy, options.get("heavy", {}), "data.options.heavy"),
    )


def _edit_settings(defaults: EditSettings, table: Mapping[str, Any], where: str) -> EditSettings:
    if not isinstance(table, Mapping):
        raise InvalidArgumentError(f"[{where}] must be a table of settings, got {table!r}")
    changed = {name: value for name, value in table.items() if name != "warp"}
    names = [entry.name for entry in fields(EditSettings) if entry.name != "warp"]
    edits = from_table(EditSettings, {**{n: getattr(defaults, n) for n in names}, **changed}, where)
    warp = {entry.name: getattr(defaults.warp, entry.name) for entry in fields(WarpSettings)}
    return replace(edits, warp=from_table(WarpSettings, {**warp, **table.get("warp", {})}, f"{where}.warp"))


def split_images(images: ImageSet, *, share: float, seed: int) -> tuple[ImageSet, ImageSet]:
    """Split images into (training, validation), each in the original order.

    Args:
        images: All images.
        share: Fraction of the images for validation, in (0, 1).
        seed: Seed for the random choice.

    Raises:
        InvalidArgumentError: Either split would have fewer than two images.
    """
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    count = round(share * len(images))
    if min(count, len(images) - count) < 2:
        raise InvalidArgumentError(
            f"data.validation must leave at least two images in each split, got {share} of {len(images)} images"
        )
    return images.select(order[count:].sort().values), images.select(order[:count].sort().values)
