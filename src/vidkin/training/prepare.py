"""Assemble training runs from recipes, for encoders and comparators."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from vidkin._base.files import write_bytes
from vidkin._base.toml import from_table
from vidkin.datasets import LabelledSet, make_excerpts
from vidkin.errors import InvalidArgumentError, WeightsUnavailableError
from vidkin.features import BackboneExtractor, ClipExtractor, FrameExtractor, open_extractor
from vidkin.features.fitting import DescribesImages
from vidkin.features.frame_extractor import NETWORK_FILE
from vidkin.features.sessions import SHIPPED
from vidkin.media import Frames
from vidkin.models import Encoder, TwoHeadNetwork, build_model, save_model
from vidkin.models.comparator import Comparator, build_comparator
from vidkin.models.comparator_extractor import EXTRACTOR_WEIGHTS_FILE, measure_unrelated
from vidkin.models.comparator_folder import save_comparator
from vidkin.models.config import ComparatorConfig
from vidkin.training.batch import Batch, TrainingData
from vidkin.training.classifier import store_training_items
from vidkin.training.clip_data import ClipData, ComparatorObjective, raise_unrelated
from vidkin.training.clip_footage import cut_windows, read_squares, split_windows
from vidkin.training.clip_views import ViewMaker, clip_settings, store_views, teacher_vectors
from vidkin.training.division import split_data
from vidkin.training.draws import ClusterDraws, read_relevance
from vidkin.training.evaluation import CACHE_FOLDER
from vidkin.training.image_set import ImageSettings, read_images
from vidkin.training.inputs import OnItem, prepare_parts
from vidkin.training.labeled import LabeledData
from vidkin.training.objectives import build_objective, find_loss
from vidkin.training.recipe import Recipe
from vidkin.training.state import TrainingRun, choose_device, make_optimizer
from vidkin.training.trained_descriptors import PreparedFrames, TrainedDescriptors
from vidkin.training.unlabeled import UnlabeledData, pair_settings, split_images

logger = logging.getLogger(__name__)

# Weights of the extractors whose networks are included in the package.
_SHIPPED_WEIGHTS = {"squares": SHIPPED.with_suffix(".safetensors"), "vidkin": NETWORK_FILE}


def prepare_comparator(recipe: Recipe, folder: Path, device: torch.device, *, on_item: OnItem | None) -> TrainingRun:
    """Read the videos, precompute views and teacher vectors, and build the comparator and its training run.

    Raises:
        DatasetError: A folder does not exist, or contains fewer than two usable videos.
        InvalidArgumentError: A setting is not allowed.
        ExtractorError: The extractor cannot be opened.
    """
    extractor = open_descriptors(recipe, device)
    network = extractor if recipe.comparator().trainable == "all" else None
    if network is not None:
        extractor = PreparedFrames(network)
    objective = ComparatorObjective(recipe.objectives).to(device)
    cache = folder / CACHE_FOLDER if recipe.data.cache == "disk" else None
    data = read_clips(recipe, extractor, cache, device, on_item)
    recipe, notes = fit_recipe(recipe, data)
    for text in notes:
        logger.warning("%s", text)
    schedule = data.schedule = recipe.schedule
    teacher: FrameExtractor | None = None
    if objective.needs_teacher:
        name, weights = data.maker.settings.teacher, data.maker.settings.teacher_weights or None
        with _name_missing_weights(recipe):
            teacher = open_extractor(name, weights=weights, device=device.type) if name else network or extractor
        if data.maker.settings.teacher_sees == "edited":
            data.maker = replace(data.maker, teacher=teacher)
            teacher = None
    if data.maker.settings.views:
        data.stored = store_views(
            data.windows,
            data.maker,
            cache=None if cache is None else cache / "views",
            most_bytes=round(recipe.data.memory * 2**30),
            on_video=on_item,
        )
    if teacher is not None:
        data.teacher = teacher_vectors(
            data.maker.videos,
            teacher,
            cache=None if cache is None else cache / "teacher",
            on_video=on_item,
        )
    comparator = build_comparator(recipe.comparator(), weights="random", seed=schedule.seed).to(device)
    rate = schedule.learning_rate
    groups = [{"params": list(comparator.parameters()), "lr": rate, "name": "comparator"}]
    trained: TrainedDescriptors | None = None
    if isinstance(network, BackboneExtractor):
        trained = TrainedDescriptors(comparator, network)
        groups = [{"params": list(trained.backbone.parameters()), "lr": rate, "name": "backbone"}]
        factor = schedule.head_factor
        groups.append({"params": list(comparator.parameters()), "lr": rate * factor, "name": "comparator"})
    return TrainingRun(
        notes=notes,
        recipe=recipe,
        folder=folder,
        model=trained or comparator,
        objective=objective,
        draws=objective.draws,
        optimizer=make_optimizer(schedule, groups, objective),
        data=data,
        device=device,
        fingerprint=hashlib.sha256(recipe.digest().encode() + data.identity()).hexdigest(),
        store=lambda metrics, notes: _store(recipe, comparator, data, folder, metrics, notes, trained),
    )


def open_descriptors(recipe: Recipe, device: torch.device) -> FrameExtractor:
    """Open the extractor of a recipe's comparator.

    Raises:
        InvalidArgumentError: The extractor describes clips, or the dimension of its descriptors is not
            ``model.dimension``.
        ExtractorError: The extractor cannot be opened.
    """
    config = recipe.comparator()
    with _name_missing_weights(recipe):
        extractor = open_extractor(
            config.extractor,
            weights=recipe.weights or None,
            whitening=recipe.whitening or None,
            device=device.type,
        )
    if isinstance(extractor, ClipExtractor):
        raise InvalidArgumentError(
            f"model.extractor must describe single frames, but {config.extractor!r} describes clips"
        )
    side = extractor.short_side
    values = extractor.extract(Frames(np.zeros((1, side, side, 3), np.uint8), np.zeros(1))).whole
    length = values.shape[-1]
    if length != config.dimension:
        hint = ""
        if not recipe.whitening and length > config.dimension and isinstance(extractor, DescribesImages):
            hint = (
                f"; or fit a whitening to {config.dimension} dimensions (`vidkin whiten FOLDER --kind pca --dimension "
                f"{config.dimension} --extractor '{config.extractor}' -o FILE`) and use it: --set model.whitening=FILE"
            )
        raise InvalidArgumentError(
            f"model.dimension must be {length}, the dimension of the descriptors of {config.extractor!r}, got "
            f"{config.dimension}{hint}"
        )
    return extractor


def read_clips(
    recipe: Recipe,
    extractor: FrameExtractor,
    cache: Path | None,
    device: torch.device,
    on_item: OnItem | None,
) -> ClipData:
    """Read a recipe's videos, and split their windows into training and validation."""
    data, settings = recipe.data, clip_settings(recipe.data.options)
    folders = [Path(folder).expanduser() for folder in (data.source, *data.folders)]
    videos, broken = read_squares(
        folders,
        rate=settings.rate,
        side=settings.side,
        fit=settings.fit,
        cache=None if cache is None else cache / "frames",
        on_video=on_item,
    )
    windows = cut_windows(videos, settings.window)
    share = data.validation if recipe.validation.every else 0.0
    train, validation = split_windows(windows, share=share, seed=data.split_seed)
    return ClipData(
        name=f"{', '.join(folder.name for folder in folders)}: {len(videos)} videos",
        broken=tuple(broken),
        windows=train,
        validation=validation,
        maker=ViewMaker(videos, settings, extractor, data.split_seed),
        schedule=recipe.schedule,
        device=device,
        threads=data.threads,
    )


def fit_recipe(recipe: Recipe, data: ClipData) -> tuple[Recipe, tuple[str, ...]]:
    """Adapt the recipe to a small number of videos; return it with notes on the changes."""
    notes = []
    if recipe.validation.every and not data.validation:
        recipe = replace(recipe, validation=replace(recipe.validation, every=0, patience=0))
        notes.append(
            f"no validation: splitting {data.name} with data.validation = {recipe.data.validation:g} would leave fewer "
            "than 2 videos in one of the splits"
        )
    count = len(data.windows)
    if count < recipe.schedule.pairs:
        notes.append(f"{count} clips per step instead of {recipe.schedule.pairs} (schedule.pairs): there are no more")
        recipe = replace(recipe, schedule=replace(recipe.schedule, pairs=count))
    return recipe, tuple(notes)


def _store(
    recipe: Recipe,
    comparator: Comparator,
    data: ClipData,
    folder: Path,
    metrics: Mapping[str, float],
    notes: Mapping[str, Any],
    trained: TrainedDescriptors | None = None,
) -> None:
    """Write the comparator with its extractor files and the measured scores of unrelated videos."""
    weights = Path(recipe.weights).expanduser() if recipe.weights else None
    if trained is not None:
        weights = folder / EXTRACTOR_WEIGHTS_FILE
        write_bytes(weights, save(dict(trained.weights())))
        extractor = open_extractor(
            recipe.comparator().extractor, weights=weights, whitening=recipe.whitening or None, device="cpu"
        )
        data = replace(data, maker=replace(data.maker, extractor=extractor), stored=None)
    elif weights is None:
        # Save the included weights, because later versions may include networks this comparator was not trained on.
        weights = _SHIPPED_WEIGHTS.get(recipe.comparator().extractor.split("?")[0])
    comparator = comparator.cpu()
    unrelated = raise_unrelated(measure_unrelated(comparator.on_arrays(), data.maker.extractor), comparator, data)
    values = {**recipe.comparator().to_mapping(), "unrelated": list(unrelated)}
    comparator.config = ComparatorConfig.from_mapping(values)
    save_comparator(
        comparator, folder, weights=weights, whitening=recipe.whitening or None, metrics=metrics, notes=notes
    )


# Side of the stored squares of unlabeled data relative to the model's input side, so that crops retain detail.
_STORED_SIDE = 1.5


def prepare_run(recipe: Recipe, folder: Path, *, on_item: OnItem | None) -> TrainingRun:
    """Open the data, read the items and build the model. The caller must seed the random generators first.

    Raises:
        DatasetError: The dataset or the split is invalid, or no item can be read.
        InvalidArgumentError: A setting is not allowed.
        WeightsUnavailableError: The weights of a network are not available.
    """
    device = choose_device(recipe.schedule)
    if recipe.is_comparator:
        return prepare_comparator(recipe, folder, device, on_item=on_item)
    if recipe.data.kind == "unlabeled":
        recipe = replace(recipe, validation=replace(recipe.validation, measure="recall_at_1"))
        model = build_encoder(recipe, classes=2).to(device)
        data: TrainingData[Encoder, Batch] = read_unlabeled(recipe, model.config.size, folder, device, on_item)
        return _assemble(recipe, folder, model, data, device, classes=0)
    division = split_data(recipe)
    for text in division.notes:
        logger.warning("%s", text)
    recipe, labelled = division.recipe, division.labelled
    classes = len(labelled.subcategories())
    model = build_encoder(recipe, classes=classes).to(device)
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


def build_encoder(recipe: Recipe, *, classes: int) -> Encoder:
    """Build the untrained network for a recipe, on the CPU."""
    config = recipe.config(classes=classes)
    with _name_missing_weights(recipe):
        return build_model(config, weights=recipe.weights or None, seed=recipe.schedule.seed)


@contextmanager
def _name_missing_weights(recipe: Recipe) -> Iterator[None]:
    """Add the settings that can provide missing weights to an error raised in the block."""
    try:
        yield
    except WeightsUnavailableError as error:
        other = "model.backbone=vidkin"
        files = "--set model.weights=FILE"
        if recipe.is_comparator:
            other = "model.extractor=squares and model.dimension=128"
            files += ", or for the teacher --set data.options.teacher_weights=FILE"
        raise WeightsUnavailableError(
            f"{error.cause}. Specify a safetensors file ({files}), or run once with a network connection, or use the "
            f"encoder included in vidkin (--set {other})",
            cause=error.cause,
        ) from error


def training_items(recipe: Recipe, labelled: LabelledSet) -> LabelledSet:
    """Return the training items of a dataset with a split, split into excerpts if the recipe requires it."""
    train = labelled.part("train")
    if recipe.data.excerpts == 1:
        return train
    return make_excerpts(train, recipe.data.excerpts, share=recipe.data.excerpt_share)


def _read_labeled(
    recipe: Recipe,
    model: Encoder,
    labelled: LabelledSet,
    folder: Path,
    device: torch.device,
    on_item: OnItem | None,
) -> LabeledData:
    data = recipe.data
    train = training_items(recipe, labelled)
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
        side: Side of the network's input in pixels.
        folder: Folder of the run, for the cache; None disables the cache.
        device: Device of the batches.
        on_item: Callback that receives (files read, total number of files).
    """
    data = recipe.data
    settings = pair_settings(data.options, side=side)
    # from_table checks the types, and its errors include the setting's name.
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
            "data.options.neighbor_seconds = %g has no effect: no video has two frames this close in time",
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
    # A checkpoint belongs to this run only if the hash of the recipe, items and frozen weights is equal.
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
        data=data,
        device=device,
        fingerprint=digest.hexdigest(),
        store=lambda metrics, notes: save_model(model, folder, metrics=metrics, notes=notes),
    )
