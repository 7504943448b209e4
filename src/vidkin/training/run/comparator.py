"""The parts of a comparator's training run, made from its recipe."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.features import ClipExtractor, FrameExtractor, open_extractor
from vidkin.features.frame_encoder import load_frame_encoder, save_frame_encoder
from vidkin.media import Frames
from vidkin.models.collapse import CollapseWatch
from vidkin.models.comparator.comparator import Comparator, build_comparator
from vidkin.models.comparator.config import ComparatorConfig
from vidkin.models.comparator.extractor import measure_unrelated
from vidkin.models.comparator.folder import EXTRACTOR_WEIGHTS_FILE, save_comparator
from vidkin.training.clips.data import ClipData
from vidkin.training.clips.objective import ComparatorObjective
from vidkin.training.clips.settings import clip_settings
from vidkin.training.clips.squares import read_squares
from vidkin.training.clips.stored import store_views, teacher_vectors
from vidkin.training.clips.unrelated import raise_unrelated
from vidkin.training.clips.views import ViewMaker
from vidkin.training.clips.windows import cut_windows, split_windows
from vidkin.training.data.inputs import OnItem
from vidkin.training.evaluation import CACHE_FOLDER
from vidkin.training.recipe import Recipe
from vidkin.training.run.optimization import make_optimizer, make_schedule
from vidkin.training.run.state import TrainingRun

__all__ = ["fit_recipe", "open_descriptors", "prepare_comparator", "read_clips"]

logger = logging.getLogger(__name__)


def prepare_comparator(
    recipe: Recipe, folder: Path, device: torch.device, *, on_item: OnItem | None
) -> TrainingRun:
    """Read the videos, prepare stored views and teacher vectors, and build the comparator.

    Raises:
        DatasetError: A folder does not exist, or holds fewer than two usable videos.
        InvalidArgumentError: A setting is not allowed.
        ExtractorError: The extractor cannot be opened.
    """
    extractor = open_descriptors(recipe, device)
    objective = ComparatorObjective(recipe.objectives).to(device)
    cache = folder / CACHE_FOLDER if recipe.data.cache == "disk" else None
    data = read_clips(recipe, extractor, cache, device, on_item)
    recipe, notes = fit_recipe(recipe, data)
    for text in notes:
        logger.warning("%s", text)
    schedule = data.schedule = recipe.schedule
    if data.maker.settings.views:
        data.stored = store_views(
            data.windows,
            data.maker,
            cache=None if cache is None else cache / "views",
            most_bytes=round(recipe.data.memory * 2**30),
            on_video=on_item,
        )
    if objective.needs_teacher:
        name, weights = data.maker.settings.teacher, data.maker.settings.teacher_weights or None
        teacher = open_extractor(name, weights=weights, device=device.type) if name else extractor
        data.teacher = teacher_vectors(
            data.maker.videos,
            teacher,
            cache=None if cache is None else cache / "teacher",
            on_video=on_item,
        )
    comparator = build_comparator(recipe.comparator(), weights="random", seed=schedule.seed).to(device)
    groups = [{"params": list(comparator.parameters()), "lr": schedule.learning_rate, "name": "comparator"}]
    return TrainingRun(
        notes=notes,
        recipe=recipe,
        folder=folder,
        model=comparator,
        objective=objective,
        draws=objective.draws,
        optimizer=make_optimizer(schedule, groups, objective),
        schedule=make_schedule(schedule),
        data=data,
        device=device,
        fingerprint=hashlib.sha256(recipe.digest().encode() + data.identity()).hexdigest(),
        watch=CollapseWatch(schedule.collapse_below),
        store=lambda metrics, notes: _store(recipe, comparator, data, folder, metrics, notes),
    )


def open_descriptors(recipe: Recipe, device: torch.device) -> FrameExtractor:
    """Open the extractor of a recipe's comparator.

    Raises:
        InvalidArgumentError: The extractor describes clips, or the length of its descriptors differs from
            ``model.dimension``.
        ExtractorError: The extractor cannot be opened.
    """
    config = recipe.comparator()
    extractor = open_extractor(
        config.extractor,
        weights=recipe.weights or None,
        whitening=recipe.whitening or None,
        device=device.type,
    )
    if isinstance(extractor, ClipExtractor):
        raise InvalidArgumentError(
            f"model.extractor must describe frames, got {config.extractor!r}, which takes clips"
        )
    side = extractor.short_side
    values = extractor.extract(Frames(np.zeros((1, side, side, 3), np.uint8), np.zeros(1))).whole
    if values.shape[-1] != config.dimension:
        raise InvalidArgumentError(
            f"model.dimension must be {values.shape[-1]}, the length of the descriptors of {config.extractor!r}, got "
            f"{config.dimension}"
        )
    return extractor


def read_clips(
    recipe: Recipe,
    extractor: FrameExtractor,
    cache: Path | None,
    device: torch.device,
    on_item: OnItem | None,
) -> ClipData:
    """Read the windows of a recipe's videos, divided and ready to be edited."""
    data, settings = recipe.data, clip_settings(recipe.data.options)
    folders = [Path(folder).expanduser() for folder in (data.source, *data.folders)]
    videos, broken = read_squares(
        folders,
        rate=settings.rate,
        side=settings.side,
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
    """The recipe adapted to a small folder, and notes on the changes."""
    notes = []
    if recipe.validation.every and not data.validation:
        recipe = replace(recipe, validation=replace(recipe.validation, every=0, patience=0))
        notes.append(
            f"no validation: a share of {recipe.data.validation:g} (data.validation) of {data.name} leaves fewer than "
            "2 for one part"
        )
    count = len(data.windows)
    if count < recipe.schedule.pairs:
        notes.append(
            f"{count} clips a step instead of {recipe.schedule.pairs} (schedule.pairs): there are no more"
        )
        recipe = replace(recipe, schedule=replace(recipe.schedule, pairs=count))
    return recipe, tuple(notes)


def _store(
    recipe: Recipe,
    comparator: Comparator,
    data: ClipData,
    folder: Path,
    metrics: Mapping[str, float],
    notes: Mapping[str, Any],
) -> None:
    """Write the comparator with the files of its extractor and its scores of unrelated videos."""
    weights = Path(recipe.weights).expanduser() if recipe.weights else None
    if weights is None and recipe.comparator().extractor.split("?")[0] == "vidkin":
        # A later vidkin can come with another encoder, whose vectors this comparator does not know.
        weights = save_frame_encoder(load_frame_encoder(), folder / EXTRACTOR_WEIGHTS_FILE)
    comparator = comparator.cpu()
    unrelated = raise_unrelated(measure_unrelated(comparator, data.maker.extractor), comparator, data)
    values = {**recipe.comparator().to_mapping(), "unrelated": list(unrelated)}
    comparator.config = ComparatorConfig.from_mapping(values)
    save_comparator(
        comparator, folder, weights=weights, whitening=recipe.whitening or None, metrics=metrics, notes=notes
    )
