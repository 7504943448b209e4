"""Recipes: data, model, objectives and schedule of a training run, as frozen dataclasses."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin.models.config import ComparatorConfig

AUGMENTATIONS = ("flip", "crop", "color")
"""Allowed values of ``data.augmentation``."""

Measure = Literal["qp", "tp", "ndcg", "map", "hap", "asi", "recall_at_1", "accuracy", "macro_accuracy"]
_MeasureOrAuto = Literal["auto", Measure]

# Settings that do not affect the weights.
_NEUTRAL_SETTINGS = ("cache", "memory", "threads", "log_every", "checkpoint_every", "tensorboard", "device")


@check_constructor
@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """Source, split and preprocessing of the training items.

    Attributes:
        source: Folder or file of the dataset; a relative path is relative to the current folder.
        kind: ``labeled``: items with a category and a subcategory. ``unlabeled``: a folder of images and videos, from
            which pairs of edited views are created; for a comparator, a folder of videos.
        reader: Reader for labeled data: ``tree`` for any folder ``category/subcategory/file``, ``manifest`` for a CSV
            file, others for public datasets (:func:`vidkin.datasets.available_readers`).
        options: Options of the reader. For unlabeled data, settings of the edits, see
            :func:`vidkin.training.unlabeled.pair_settings`; for a comparator, also settings of the clips, see
            :class:`vidkin.training.clip_views.ClipSettings`.
        split: Split file to use, such as the ``split.json`` of an earlier model. If empty, the dataset's own split, or,
            if there is none, a new split, which is written to the model's folder.
        split_by: How to create a new split: by ``group`` (items that must stay together, such as the files in one
            folder), by ``item``, or by ``subcategory`` (test and training have different subcategories). ``auto``: by
            group if possible; otherwise without a validation split, by item, or without a test split, with a message.
        test: Fraction of the items in the test split of a new split; 0 for no test split.
        validation: Fraction of the items in the validation split of a new split, or of unlabeled images if they are
            validated; 0 for no validation split.
        split_seed: Seed for a new split.
        excerpts: Number of evenly spaced excerpts to take from every training video as separate items; 1 uses the whole
            video. Intended for datasets with one video per subcategory, where excerpts of a video are positives.
        excerpt_share: Length of an excerpt as a fraction of the video.
        moving: Whether each step takes new consecutive frames at a random position in the item, at ``model.rate``
            frames per second; otherwise a clip has the same frames at every step.
        memory: GiB of decoded frames, or of features of moving clips, to keep in memory; other items are decoded every
            time they are sampled. For a comparator: GiB of precomputed descriptors.
        augmentation: Augmentations of labeled training items: ``flip``, ``crop``, ``color``. With any of them, features
            of a frozen backbone are not cached.
        relevance: Relevance between items, for the objective ``deep_ranking``: ``labels`` (number of shared label
            levels), ``classical:<feature>`` (visual similarity within a category), or a safetensors file with
            ``relevance`` [N, N] for the N training items in order.
        folders: Additional folders of unlabeled data.
        frames_per_video: Number of frames to take from each video of unlabeled data.
        cache: Where to cache decoded images or features of a frozen backbone: on ``disk`` (in the model's folder, for
            later runs) or in ``memory``.
        threads: Number of threads for decoding files or editing images.
    """

    source: str
    kind: Literal["labeled", "unlabeled"] = "labeled"
    reader: str = "tree"
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str = ""
    split_by: Literal["auto", "group", "item", "subcategory"] = "auto"
    test: float = 0.3
    validation: float = 0.1
    split_seed: int = 0
    excerpts: int = 1
    excerpt_share: float = 0.5
    moving: bool = False
    memory: float = 4.0
    augmentation: tuple[str, ...] = ()
    relevance: str = "labels"
    folders: tuple[str, ...] = ()
    frames_per_video: int = 4
    cache: Literal["disk", "memory"] = "disk"
    threads: int = 2

    def __post_init__(self) -> None:
        for name in self.augmentation:
            if name not in AUGMENTATIONS:
                raise InvalidArgumentError(
                    f"data.augmentation must consist of {', '.join(AUGMENTATIONS)}, got {name!r}"
                )
        for name in ("excerpts", "threads", "frames_per_video"):
            _check_minimum(f"data.{name}", getattr(self, name), 1)
        _check_seed("data.split_seed", self.split_seed)
        if not 0.0 < self.excerpt_share <= 1.0:
            raise InvalidArgumentError(f"data.excerpt_share must be above 0 and at most 1, got {self.excerpt_share}")
        _check_minimum("data.memory", self.memory, 0)
        if self.kind == "unlabeled" and self.moving:
            raise InvalidArgumentError("data.moving must be false for unlabeled data, whose items are images")
        if self.kind == "labeled" and self.folders:
            raise InvalidArgumentError("data.folders must be empty for labeled data; use data.kind = 'unlabeled'")


@dataclass(frozen=True, kw_only=True)
class ObjectiveRecipe:
    """A term of the loss to minimize.

    Attributes:
        name: Name of the objective, see :func:`vidkin.training.available_objectives`.
        weight: Weight of this objective in the sum.
        parameters: All parameters of the loss.
    """

    name: str
    weight: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)


@check_constructor
@dataclass(frozen=True, kw_only=True)
class ScheduleRecipe:
    """Number of steps, batch sizes, optimizer and learning rates.

    Attributes:
        steps: Number of optimizer steps.
        quadlets: Number of tuples per step; by default, batches also have 4 times this number of items.
        batch: For objectives on batches: categories, subcategories per category and items per subcategory; or, with
            two numbers, classes and items per class, regardless of categories. Empty: up to 8 categories, up to 4 items
            per subcategory, and the number of subcategories that ``quadlets`` allows; with a single level of labels,
            and for ``two_head``, up to 8 classes with the number of items that ``quadlets`` allows. ``classification``
            alone samples the same number of items, regardless of class.
        buffer: For ``deep_ranking``: number of items per category from which triplets are sampled.
        relevance_margin: For ``deep_ranking``: minimum difference in relevance between positive and negative.
        in_class: For ``deep_ranking``: probability of sampling the negative from the query's category, in [0, 1].
        pairs: For unlabeled data: number of images (for a comparator, clips) per step; two views of each are compared.
        optimizer: ``adamw``, ``adam`` or ``sgd``.
        learning_rate: Learning rate of the backbone or, if the backbone is frozen, of the head.
        head_factor: If the backbone is trained, factor between its learning rate and that of the head.
        momentum: Momentum of ``sgd``.
        weight_decay: Weight decay d. With ``adam`` and ``sgd``, d W is added to the gradient, as if the loss had the
            term lambda ||W||^2 with d = 2 lambda. With ``adamw``, weights are multiplied by 1 minus the learning rate
            times d at each step, which has almost no effect at a learning rate of 1e-5.
        decay_biases: Whether weight decay also applies to biases and the parameters of norms.
        clip: Maximum gradient norm; 0 disables clipping.
        warm_up: Number of steps during which the learning rate rises from near 0.
        decay: Schedule of the learning rate: ``constant``, ``cosine`` (down to ``final_factor`` at the last step),
            ``linear`` (down to 0 after the last step), ``step`` (multiplied by ``step_factor`` every ``step_every``
            steps) or ``one_cycle`` (up for 30 % of the steps, then down to almost 0; no warm-up).
        final_factor: For ``cosine``: fraction of the learning rate at the last step.
        step_every: For ``step``: number of steps between changes of the learning rate.
        step_factor: For ``step``: factor by which the learning rate is multiplied.
        precision: ``float32``, or ``bfloat16`` for automatic mixed precision.
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA if available.
        seed: Seed for weights, sampling and augmentation; the same seed gives the same model.
        log_every: Number of steps between log lines.
        checkpoint_every: Number of steps between checkpoints.
        tensorboard: Also write a TensorBoard log (requires the extra ``tensorboard``).
        collapse_below: Warn if the mean distance between the embeddings in a batch falls below this fraction of its
            initial value.
    """

    steps: int = 500
    quadlets: int = 32
    batch: tuple[int, ...] = ()
    buffer: int = 64
    relevance_margin: float = 0.1
    in_class: float = 0.5
    pairs: int = 128
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = 1e-3
    head_factor: float = 10.0
    momentum: float = 0.9
    weight_decay: float = 1e-3
    decay_biases: bool = True
    clip: float = 5.0
    warm_up: int = 0
    decay: Literal["constant", "cosine", "linear", "step", "one_cycle"] = "constant"
    final_factor: float = 0.01
    step_every: int = 200
    step_factor: float = 0.1
    precision: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    seed: int = 0
    log_every: int = 10
    checkpoint_every: int = 100
    tensorboard: bool = False
    collapse_below: float = 0.2

    def __post_init__(self) -> None:
        for name in ("steps", "quadlets", "step_every", "log_every", "checkpoint_every"):
            _check_minimum(f"schedule.{name}", getattr(self, name), 1)
        _check_minimum("schedule.pairs", self.pairs, 2)
        _check_minimum("schedule.buffer", self.buffer, 2)
        _check_minimum("schedule.relevance_margin", self.relevance_margin, 0)
        if not 0 <= self.in_class <= 1:
            raise InvalidArgumentError(f"schedule.in_class must be in [0, 1], got {self.in_class}")
        for name in ("warm_up", "momentum", "weight_decay", "clip", "final_factor", "collapse_below"):
            _check_minimum(f"schedule.{name}", getattr(self, name), 0)
        for name in ("learning_rate", "head_factor", "step_factor"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InvalidArgumentError(f"schedule.{name} must be a number above 0, got {value}")
        _check_seed("schedule.seed", self.seed)
        if self.batch and (len(self.batch) not in (2, 3) or min(self.batch) < 1):
            raise InvalidArgumentError(
                "schedule.batch must be 3 numbers of at least 1 (categories, subcategories per category, items per "
                f"subcategory), 2 numbers (classes, items per class), or empty, got {list(self.batch)}"
            )
        if self.decay == "one_cycle" and self.warm_up:
            raise InvalidArgumentError(
                f"schedule.warm_up must be 0 with decay 'one_cycle', which includes a warm-up, got {self.warm_up}"
            )


@check_constructor
@dataclass(frozen=True, kw_only=True)
class ValidationRecipe:
    """When to validate, and which weights to keep.

    Attributes:
        every: Number of steps between validations; 0 disables validation.
        measure: Measure to maximize: ``qp`` and ``tp`` among the validation items; ``ndcg``, ``map``, ``hap``,
            ``asi`` and ``recall_at_1`` with the validation items as queries and the training items as gallery.
            ``auto``: ``qp``, or ``map`` if the validation items have no quadlets; for a ``two_head`` model,
            ``accuracy`` on the validation items (``macro_accuracy``: the mean over classes). For unlabeled data,
            ``recall_at_1``: the fraction of images whose edited view is closest to their own plain view; for a
            comparator, ``map`` over the two views of each validation clip among all clips.
        patience: Number of validations without improvement before training stops early; 0 disables early stopping.
        keep: Weights to save as the model: ``best`` according to ``measure``, or ``last``.
    """

    every: int = 0
    measure: _MeasureOrAuto = "auto"
    patience: int = 0
    keep: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        _check_minimum("validation.every", self.every, 0)
        _check_minimum("validation.patience", self.patience, 0)
        if self.patience and not self.every:
            raise InvalidArgumentError(
                f"validation.patience must be 0 while validation.every is 0, got {self.patience}"
            )

    @property
    def figure(self) -> Measure:
        """The measure, or ``qp`` if ``auto`` has not been resolved yet."""
        return "qp" if self.measure == "auto" else self.measure


@check_constructor
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Description of a complete training run.

    Attributes:
        name: Name of the recipe, which determines the name of the model's folder.
        data: Training items.
        model: Settings of :class:`vidkin.models.EncoderConfig` except ``classes``, which depends on the data; for kind
            ``comparator``, settings of ``ComparatorConfig`` except ``unrelated``, which is measured.
        weights: Safetensors file with the weights of the backbone (for a comparator, of its extractor). If empty, the
            included weights for ``vidkin`` and ``squares``, weights from the hub for ``timm:`` and ``torchvision:``,
            and random weights otherwise.
        whitening: For a comparator: safetensors file with the whitening of its extractor. If empty, no whitening.
        objectives: Terms of the loss. Terms with weight 0 are dropped, so that they do not affect sampling.
        schedule: Steps, batches, optimizer and learning rates.
        validation: When to validate, and which weights to keep.
    """

    name: str
    data: DataRecipe
    model: Mapping[str, Any]
    weights: str = ""
    whitening: str = ""
    objectives: tuple[ObjectiveRecipe, ...]
    schedule: ScheduleRecipe = field(default_factory=ScheduleRecipe)
    validation: ValidationRecipe = field(default_factory=ValidationRecipe)

    def __post_init__(self) -> None:
        counted = tuple(part for part in self.objectives if part.weight)
        if not counted:
            listed = ", ".join(part.name for part in self.objectives) or "none"
            raise InvalidArgumentError(f"a recipe requires an objective with nonzero weight, got {listed}")
        object.__setattr__(self, "objectives", counted)

    def config(self, *, classes: int = 2) -> EncoderConfig:
        """Return the configuration of the model, with this number of classes if it is a classifier."""
        kind = self.model.get("kind", "clip")
        needed = {"classes": classes} if kind in ("c3d", "deep_sbd", "two_head") else {}
        return EncoderConfig.from_mapping({**self.model, **needed})

    @property
    def is_comparator(self) -> bool:
        """Whether the recipe trains a video comparator rather than an encoder."""
        return self.model.get("kind") == "comparator"

    def comparator(self) -> ComparatorConfig:
        """Return the configuration of the comparator."""
        return ComparatorConfig.from_mapping(self.model)

    def digest(self) -> str:
        """SHA-256 of all settings that affect the weights; a run can be resumed only with the same digest."""
        parts = {"schedule": _select_relevant(self.schedule), "validation": _select_relevant(self.validation)}
        objectives = [asdict(part) for part in self.objectives]
        files = (self.weights, self.whitening) if self.whitening else (self.weights,)
        whole = (_select_relevant(self.data), dict(self.model), *files, objectives, parts)
        return hashlib.sha256(repr(whole).encode()).hexdigest()


def _select_relevant(part: DataRecipe | ScheduleRecipe | ValidationRecipe) -> dict[str, Any]:
    """Return the settings that affect the weights."""
    return {name: value for name, value in asdict(part).items() if name not in _NEUTRAL_SETTINGS}


def _check_minimum(name: str, value: float, minimum: float) -> None:
    if not (value >= minimum and math.isfinite(value)):
        raise InvalidArgumentError(f"{name} must be at least {minimum}, got {value}")


def _check_seed(name: str, value: int) -> None:
    # The range accepted by all random generators.
    if not 0 <= value < 2**32:
        raise InvalidArgumentError(f"{name} must be an integer from 0 to {2**32 - 1}, got {value}")
