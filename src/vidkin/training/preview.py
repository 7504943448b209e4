"""Preview of a training run: items, labels, split and the first batch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.datasets import LabelledItem, LabelledSet
from vidkin.errors import MediaError
from vidkin.models import EncoderConfig
from vidkin.models.comparator import build_comparator
from vidkin.training.batch import Draw
from vidkin.training.division import batch_sizes, split_data
from vidkin.training.draws import LABELS, check_drawable, class_sizes, index_stream
from vidkin.training.inputs import OnItem, augment, label_table, read_inputs
from vidkin.training.objectives import find_loss
from vidkin.training.prepare import (
    build_encoder,
    fit_recipe,
    open_descriptors,
    read_clips,
    read_unlabeled,
    training_items,
)
from vidkin.training.recipe import Recipe

_MEMBERS: dict[Draw, tuple[str, ...]] = {
    "quadlets": ("query", "positive", "intermediate", "negative"),
    "online_triplets": ("query", "positive", "negative"),
    "quadruplets_a": ("anchor", "positive", "first negative", "second negative"),
    "quadruplets_b": ("anchor", "positive", "first negative", "second negative"),
}


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Number of items of a subcategory in each split."""

    category: str
    subcategory: str
    train: int
    validation: int
    test: int


@dataclass(frozen=True, slots=True, eq=False)
class FirstBatch:
    """Inputs of the first training step, as received by the network.

    Attributes:
        images: [N, T, S, S, 3] uint8 frames; T is 1 for images.
        items: The N items.
        members: Roles of the items if tuples are sampled, else empty. Items are grouped by role, with N / len(members)
            items each.
        broken: Errors of unreadable items, whose frames are black.
    """

    images: NDArray[np.uint8]
    items: tuple[LabelledItem, ...]
    members: tuple[str, ...]
    broken: tuple[MediaError, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecipePreview:
    """The data that a recipe would train on.

    Attributes:
        recipe: The recipe, with every ``auto`` replaced by the chosen value.
        name: Name of the dataset.
        kind: ``image`` or ``video``; ``clip`` for a comparator.
        splits: Number of items in each split; training videos are counted before they are split into excerpts.
        labels: Number of items of each subcategory, sorted by name; empty for unlabeled data.
        notes: Choices that differ from the recipe, with reasons.
        parameters: Number of trainable parameters of the network.
        dimension: Dimension of the network's embeddings, or of the descriptors that a comparator compares.
        batch: The first batch.
    """

    recipe: Recipe
    name: str
    kind: str
    splits: dict[str, int]
    labels: tuple[LabelCount, ...]
    notes: tuple[str, ...]
    parameters: int
    dimension: int
    batch: FirstBatch


@check_arguments
def preview_recipe(recipe: Recipe, *, on_item: OnItem | None = None) -> RecipePreview:
    """Open and split the data of a recipe, build the network and read the first batch, without writing anything.

    Args:
        recipe: The recipe.
        on_item: Callback that receives (items read, number of items in the batch).

    Raises:
        DatasetError: The dataset or the split is invalid.
        InvalidArgumentError: A setting is not allowed.
        WeightsUnavailableError: The weights of the backbone are not available.
    """
    if recipe.is_comparator:
        return _preview_clips(recipe, on_item)
    if recipe.data.kind == "unlabeled":
        return _preview_pairs(recipe, on_item)
    division = split_data(recipe)
    recipe, labelled = division.recipe, division.labelled
    train = training_items(recipe, labelled)
    entries = [find_loss(part.name) for part in recipe.objectives]
    # Classification uses the items sampled for the other objectives, if there are any.
    draws = [entry.draw for entry in entries if entry.call != "classes"] or ["uniform"]
    check_drawable(train, draws, sizes=batch_sizes(recipe))
    model = build_encoder(recipe, classes=max(2, len(labelled.subcategories())))
    counts = Counter((item.category, item.subcategory, item.split) for item in labelled.items)
    return RecipePreview(
        recipe=recipe,
        name=labelled.name,
        kind=labelled.kind,
        splits=labelled.split_counts(),
        labels=tuple(
            LabelCount(*label, *(counts[(*label, split)] for split in ("train", "validation", "test")))
            for label in sorted({(item.category, item.subcategory) for item in labelled.items})
        ),
        notes=(
            division.notes
            if recipe.data.relevance == LABELS
            else (
                *division.notes,
                f"the first batch shown here is sampled by labels; training samples by {recipe.data.relevance}",
            )
        ),
        parameters=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        dimension=model.dimension,
        batch=_read_batch(recipe, train, draws[0], model.config, on_item),
    )


def _preview_clips(recipe: Recipe, on_item: OnItem | None) -> RecipePreview:
    """Preview the data that a comparator would train on; all videos are read to count their clips."""
    device = torch.device("cpu")
    extractor = open_descriptors(recipe, device)
    data = read_clips(recipe, extractor, None, device, on_item)
    recipe, notes = fit_recipe(recipe, data)
    data.schedule = recipe.schedule
    clips = data.edit(0)
    longest = max(len(clip.view.frames) for clip in clips)
    # Pad shorter clips by repeating their last frame.
    rows = [torch.arange(longest).clamp(max=len(clip.view.frames) - 1) for clip in clips]
    images = torch.stack([clip.view.frames[row] for clip, row in zip(clips, rows, strict=True)])
    paths = [Path(data.maker.videos[clip.window.video].path) for clip in clips]
    items = tuple(
        LabelledItem(
            path=path,
            category=path.stem,
            subcategory="with another video" if clip.donors else "alone",
            group=str(path),
        )
        for path, clip in zip(paths, clips, strict=True)
    )
    comparator = build_comparator(recipe.comparator(), weights="random")
    return RecipePreview(
        recipe=recipe,
        name=data.name,
        kind="clip",
        splits={"train": len(data.windows), "validation": len(data.validation)},
        labels=(),
        notes=notes,
        parameters=sum(weight.numel() for weight in comparator.parameters()),
        dimension=recipe.comparator().dimension,
        batch=FirstBatch(
            (images * 255).round().to(torch.uint8).movedim(2, -1).numpy(),
            items,
            ("weak view", "strong view"),
            tuple(MediaError(path, cause) for path, cause in data.broken),
        ),
    )


def _preview_pairs(recipe: Recipe, on_item: OnItem | None) -> RecipePreview:
    """Preview the data that an encoder would train on without labels; all images are read."""
    model = build_encoder(recipe, classes=2)
    data = read_unlabeled(recipe, model.config.size, None, torch.device("cpu"), on_item)
    chosen, views = data.pairs(0)
    scenes = [data.images.group_names[group] for group in data.images.groups[chosen].tolist()]
    items = tuple(
        LabelledItem(path=Path(scene), category=Path(scene).name, subcategory=view, group=scene)
        for view in ("plain view", "edited view")
        for scene in scenes
    )
    pixels = (torch.cat(views) * 255).round().to(torch.uint8).movedim(1, -1)[:, None]
    return RecipePreview(
        recipe=recipe,
        name=", ".join(dict.fromkeys(data.images.source_names)),
        kind="image",
        splits={
            "train": len(data.images),
            "validation": 0 if data.validation is None else len(data.validation),
        },
        labels=(),
        notes=(),
        parameters=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        dimension=model.dimension,
        batch=FirstBatch(
            pixels.numpy(),
            items,
            ("plain view", "edited view"),
            tuple(MediaError(path, cause.removeprefix(f"{path}: ")) for path, cause in data.broken),
        ),
    )


def _read_batch(
    recipe: Recipe, train: LabelledSet, draw: Draw, config: EncoderConfig, on_item: OnItem | None
) -> FirstBatch:
    schedule = recipe.schedule
    labels = label_table(train)
    sizes: tuple[int, ...] = schedule.batch
    if config.kind == "two_head" and not sizes:
        sizes = class_sizes(labels[:, 1], 4 * schedule.quadlets)
    if draw in ("mined", "clusters"):
        # Here sampling depends on the model, so the preview shows the same number of random items instead.
        count = math.prod(sizes or class_sizes(labels[:, 1], 32))
        generator = torch.Generator().manual_seed(schedule.seed)
        sampled = torch.randint(len(labels), (count,), generator=generator).tolist()
    else:
        stream = index_stream(
            draw,
            labels,
            steps=schedule.steps,
            quadlets=schedule.quadlets,
            sizes=sizes,
            seed=schedule.seed,
        )
        sampled = next(stream).tolist()
    # Read an item only once, even if it was sampled several times.
    unique = sorted(set(sampled))
    chosen = train.with_items(train.items[position] for position in unique)
    frames = config.frames if config.takes_clips else 1
    rows: dict[int, NDArray[np.uint8]] = {}
    broken: list[MediaError] = []
    for done, (position, result) in enumerate(
        zip(unique, read_inputs(chosen, config, threads=recipe.data.threads), strict=True), start=1
    ):
        if isinstance(result, MediaError):
            broken.append(result)
            rows[position] = np.zeros((frames, config.size, config.size, 3), np.uint8)
        else:
            rows[position] = result[0].reshape(frames, config.size, config.size, 3)
        if on_item is not None:
            on_item(done, len(unique))
    images = np.stack([rows[position] for position in sampled])
    if recipe.data.augmentation:
        # Use the seed of the first step.
        generator = torch.Generator().manual_seed(schedule.seed * 1_000_003)
        inputs = torch.from_numpy(images).movedim(-1, -3).float() / 255
        changed = augment(inputs, recipe.data.augmentation, generator)
        images = (changed * 255).round().clamp(0, 255).to(torch.uint8).movedim(-3, -1).numpy()
    items = tuple(train.items[position] for position in sampled)
    return FirstBatch(images, items, _MEMBERS.get(draw, ()), tuple(broken))
