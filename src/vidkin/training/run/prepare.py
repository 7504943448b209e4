"""The parts of a training run, made from its recipe: data, model, objective, optimizer, schedule."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from vidkin._base.toml_tables import from_table
from vidkin.datasets import LabelledSet, make_excerpts
from vidkin.models import Encoder, TwoHeadNetwork, build_model, save_model
from vidkin.models.collapse import CollapseWatch
from vidkin.training.classifier.neighbors import store_training_items
from vidkin.training.data.batch import Batch
from vidkin.training.data.draws.mining import ClusterDraws
from vidkin.training.data.draws.online import read_relevance
from vidkin.training.data.file_squares import ImageSettings
from vidkin.training.data.image_set import read_images
from vidkin.training.data.inputs import OnItem, prepare_parts
from vidkin.training.data.labeled import LabeledData
from vidkin.training.data.source import TrainingData
from vidkin.training.data.unlabeled import UnlabeledData, pair_settings, split_images
from vidkin.training.evaluation import CACHE_FOLDER
from vidkin.training.loss_table import find_loss
from vidkin.training.objectives import build_objective
from vidkin.training.recipe import Recipe
from vidkin.training.run.comparator import prepare_comparator
from vidkin.training.run.division import divide_data
from vidkin.training.run.optimization import choose_device, make_optimizer, make_schedule
from vidkin.training.run.state import TrainingRun

__all__ = ["prepare_run"]

logger = logging.getLogger(__name__)

# Side of the stored squares of unlabeled data as a multiple of the model's input: crops keep their detail.
_STORED_SIDE = 1.5


def prepare_run(recipe: Recipe, folder: Path, *, on_item: OnItem | None) -> TrainingRun:
    """Open the data, read the items, build the model. The random generators must have been seeded.

    Raises:
        DatasetError: The collection or the split is invalid, or no item can be read.
        InvalidArgumentError: A setting is not allowed.
    """
    device = choose_device(recipe.schedule)
    if recipe.is_comparator:
        return prepare_comparator(recipe, folder, device, on_item=on_item)
    if recipe.data.kind == "unlabeled":
        recipe = replace(recipe, validation=replace(recipe.validation, measure="recall_at_1"))
        model = _build(recipe, device, classes=2)
        data: TrainingData[Encoder, Batch] = read_unlabeled(
            recipe, model.config.size, folder, device, on_item
        )
        return _assemble(recipe, folder, model, data, device, classes=0)
    division = divide_data(recipe)
    for text in division.notes:
        logger.warning("%s", text)
    recipe, labelled = division.recipe, division.labelled
    classes = len(labelled.subcategories())
    model = _build(recipe, device, classes=classes)
    model.class_names = labelled.subcategories()
    data = _read_labeled(recipe, model, labelled, folder, device, on_item)
    run = _assemble(recipe, folder, model, data, device, classes=classes)
    data.check(run.draws, recipe.validation.figure)
    if data.clusters is not None:
        run.sampler = data.clusters
    run.split = labelled if division.is_made else None
    run.notes = division.notes
    if isinstance(model, TwoHeadNetwork):
        store_model, train = run.store, data.train

        def store(metrics: Mapping[str, float], notes: Mapping[str, Any]) -> None:
            store_model(metrics, notes)
            store_training_items(model, train, folder, device=device)

        run.store = store
    return run


def _build(recipe: Recipe, device: torch.device, *, classes: int) -> Encoder:
    config = recipe.config(classes=classes)
    return build_model(config, weights=recipe.weights or None, seed=recipe.schedule.seed).to(device)


def _read_labeled(
    recipe: Recipe,
    model: Encoder,
    labelled: LabelledSet,
    folder: Path,
    device: torch.device,
    on_item: OnItem | None,
) -> LabeledData:
    data = recipe.data
    train = labelled.part("train")
    if data.excerpts > 1:
        train = make_excerpts(train, data.excerpts, share=data.excerpt_share)
    prepared = prepare_parts(
        model,
        [train, labelled.part("validation")] if recipe.validation.every else [train],
        cache=folder / CACHE_FOLDER if data.cache == "disk" else None,
        augmentation=data.augmentation,
        moving=data.moving,
        most_bytes=round(data.memory * 2**30),
        threads=data.threads,
        on_item=on_item,
    )
    draws = {find_loss(part.name).draw for part in recipe.objectives}
    train_items = prepared[0]
    relevance = read_relevance(
        data.relevance, train_items.stored if not train_items.are_features else None, train_items.labels[:, 0]
    )
    return LabeledData(
        train_items,
        prepared[1] if len(prepared) > 1 else None,
        recipe.schedule,
        device,
        model=model,
        relevance=relevance,
        clusters=ClusterDraws(train_items.labels[:, 1], model.dimension) if "clusters" in draws else None,
    )


def read_unlabeled(
    recipe: Recipe, side: int, folder: Path | None, device: torch.device, on_item: OnItem | None
) -> UnlabeledData:
    """Read the images of a recipe for unlabeled data.

    Args:
        recipe: The recipe.
        side: Side in pixels of the images the network takes.
        folder: Folder of the run, for the cache; None caches nothing.
        device: Device of the batches.
        on_item: Callback that receives (files read, total number of files).
    """
    data = recipe.data
    settings = pair_settings(data.options, side=side)
    # The table of the options gives a wrong type its message.
    squares = from_table(
        ImageSettings,
        {
            "side": round(_STORED_SIDE * side),
            "frames_per_video": data.frames_per_video,
            "neighbor_seconds": data.options.get("neighbor_seconds", 0.0),
        },
        "data.options",
    )
    cache = None
    if folder is not None and data.cache == "disk":
        cache = folder / CACHE_FOLDER / "images.safetensors"
    if cache is not None:
        cache.parent.mkdir(exist_ok=True)
    images = read_images(
        [Path(folder).expanduser() for folder in (data.source, *data.folders)],
        squares,
        cache=cache,
        on_file=on_item,
    )
    if squares.neighbor_seconds and images.neighbors is None:
        logger.warning(
            "data.options.neighbor_seconds = %g has no effect: no video has two frames as close as that",
            squares.neighbor_seconds,
        )
    train, validation = images, None
    if recipe.validation.every:
        train, validation = split_images(images, share=data.validation, seed=data.split_seed)
    return UnlabeledData(
        train,
        validation,
        settings,
        recipe.schedule,
        device,
        seed=data.split_seed,
        threads=data.threads,
        scene_images=int(data.options.get("scene_images", 1)),
    )


def _assemble(
    recipe: Recipe,
    folder: Path,
    model: Encoder,
    data: TrainingData[Encoder, Batch],
    device: torch.device,
    *,
    classes: int,
) -> TrainingRun:
    schedule = recipe.schedule
    objective = build_objective(recipe.objectives, model, classes=classes, seed=schedule.seed).to(device)
    # Hash of recipe, items and frozen weights: a checkpoint with another fingerprint belongs to another run.
    digest = hashlib.sha256(recipe.digest().encode())
    digest.update(data.identity())
    if model.config.trainable == "head":
        for name, tensor in sorted(model.state_dict().items()):
            if name.startswith("backbone."):
                digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return TrainingRun(
        recipe=recipe,
        folder=folder,
        model=model,
        objective=objective,
        draws=objective.draws,
        optimizer=make_optimizer(
            schedule,
            model.parameter_groups(schedule.learning_rate, head_factor=schedule.head_factor),
            objective,
        ),
        schedule=make_schedule(schedule),
        data=data,
        device=device,
        fingerprint=digest.hexdigest(),
        watch=CollapseWatch(schedule.collapse_below),
        store=lambda metrics, notes: save_model(model, folder, metrics=metrics, notes=notes),
    )
