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
"""Allowed values in ``data.augmentation``."""

Measure = Literal["qp", "tp", "ndcg", "map", "hap", "asi", "recall_at_1", "accuracy", "macro_accuracy"]
_MeasureOrAuto = Literal["auto", Measure]

# Settings that do not affect the weights.
_NEUTRAL_SETTINGS = ("cache", "memory", "threads", "log_every", "checkpoint_every", "tensorboard", "device")


@check_constructor
@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """Source, split and preparation of the training items.

    Attributes:
        source: Folder or file of the collection; a relative path starts at the current folder.
        kind: ``labeled``: items with a category and a subcategory. ``unlabeled``: a folder of images and videos, from
            which pairs of edited views are made; for a comparator a folder of videos.
        reader: Reader of labeled data: ``tree`` for any folder ``category/subcategory/file``, ``manifest`` for a CSV
            file, others for public collections (:func:`vidkin.datasets.available_readers`).
        options: Options of the reader. For unlabeled data, settings of the edits, see
            :func:`vidkin.training.unlabeled.pair_settings`; for a comparator also settings of the clips, see
            :class:`vidkin.training.clip_views.ClipSettings`.
        split: A stored split to use, such as the ``split.json`` of an earlier model. Empty: the collection's own
            split; if it has none, a split is made and written to the model's folder.
        split_by: How a new split is made: by ``group`` (items that must stay together, such as the files of one
            folder), by ``item``, or by ``subcategory`` (test and training have different subcategories). ``auto``: by
            group if groups allow it, otherwise without a validation split, by item, or without a test split, with a
            message.
        test: Share of the test split in a new split; 0 makes no test split.
        validation: Share of the validation split in a new split, or of unlabeled images if they are validated; 0 makes
            no validation split.
        split_seed: Seed of a new split.
        excerpts: Number of evenly spaced clips cut out of every training video, each a separate item; 1 uses the
            whole video. Use it for collections with one video per subcategory: excerpts of a video are then positives.
        excerpt_share: Length of an excerpt as a share of its video.
        moving: Whether training clips move: each step takes new consecutive frames at a random position of the item, at
            ``model.rate`` frames per second. Otherwise a clip shows the same frames at every step.
        memory: GiB of decoded frames, or of features of moving clips, to keep in memory; other items are decoded again
            whenever they are drawn. For a comparator: GiB of descriptors made in advance.
        augmentation: Random changes of labeled training items: ``flip``, ``crop``, ``color``. With any of them,
            features of a frozen backbone are not cached.
        relevance: Relevance of two items to each other, for the objective ``deep_ranking``: ``labels`` (number of
            shared levels), ``classical:<feature>`` (visual similarity within a category), or a safetensors file with
            ``relevance`` [N, N] of the N training items in their order.
        folders: Additional folders of unlabeled data.
        frames_per_video: Number of frames taken from each video of unlabeled data.
        cache: Where to keep decoded images or features of a frozen backbone: ``disk`` (in the model's folder, for later
            runs) or ``memory``.
        threads: Number of threads that decode files or edit images.
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
    """One term of the loss to minimize.

    Attributes:
        name: Name of the objective, see :func:`vidkin.training.available_objectives`.
        weight: Factor of this objective in the sum.
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
        quadlets: Number of tuples per step; batches have 4 times this number of items, like the members of the tuples.
        batch: For objectives on batches: categories, subcategories per category and items per subcategory; or, with
            two numbers, classes and items per class, regardless of categories. Empty: up to 8 categories, up to 4 items
            per subcategory, and the number of subcategories that ``quadlets`` allows; with one level of labels, and for
            ``two_head``, up to 8 classes with the number of items that ``quadlets`` allows. ``classification`` alone
            draws the same number of items, regardless of class.
        buffer: For ``deep_ranking``: number of items per category from which triplets are drawn.
        relevance_margin: For ``deep_ranking``: minimum difference in relevance between positive and negative.
        in_class: For ``deep_ranking``: share of the tries that draw the negative from the query's own category, in
            [0, 1].
        pairs: For unlabeled data: images (for a comparator, clips) per step; two views of each are compared.
        optimizer: ``adamw``, ``adam`` or ``sgd``.
        learning_rate: Learning rate of the head; if the backbone is trained too, the rate of the backbone.
        head_factor: If the backbone is trained too, factor of the head's learning rate.
        momentum: Momentum of ``sgd``.
        weight_decay: Decay d of all weights. With ``adam`` and ``sgd`` d W is added to the gradient, as if the loss had
            the term lambda ||W||^2 with d = 2 lambda. With ``adamw`` weights shrink by the learning rate times d at
            each step, which has almost no effect at a rate of 1e-5.
        decay_biases: Whether biases and the parameters of norms decay too.
        clip: Maximum gradient norm; 0 does not clip.
        warm_up: Number of steps during which the rate rises from near 0.
        decay: ``constant``, ``cosine`` (down to ``final_factor`` at the last step), ``linear``
            (down to 0 after the last step), ``step`` (times ``step_factor``
            every ``step_every`` steps) or ``one_cycle`` (up for 30 % of the steps, then down to almost 0; no
            warm-up).
        final_factor: Share of the learning rate at the last step, with ``cosine``.
        step_every: Number of steps between two changes of the rate, with ``step``.
        step_factor: Factor of each change of the rate, with ``step``.
        precision: ``float32`` or, for automatic mixed precision, ``bfloat16``.
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA if it is available.
        seed: Seed of weights, draws and augmentation; the same seed gives the same model.
        log_every: Number of steps between lines in the log.
        checkpoint_every: Number of steps between checkpoints.
        tensorboard: Also write a TensorBoard log (needs the extra ``tensorboard``).
        collapse_below: Warn when the mean distance of pairs in a batch falls below this share of its initial value.
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
                "schedule.batch must be 3 numbers of at least 1 (categories, subcategories of each, items of each), 2 "
                f"(classes, items of each) or empty, got {list(self.batch)}"
            )
        if self.decay == "one_cycle" and self.warm_up:
            raise InvalidArgumentError(
                f"schedule.warm_up must be 0 with decay 'one_cycle', which has its own warm-up, got {self.warm_up}"
            )


@check_constructor
@dataclass(frozen=True, kw_only=True)
class ValidationRecipe:
    """When to measure the validation split, and which weights to keep.

    Attributes:
        every: Number of steps between validations; 0 never validates.
        measure: The figure to maximize: ``qp`` and ``tp`` among the validation items; ``ndcg``, ``map``, ``hap``,
            ``asi`` and ``recall_at_1`` with the validation items as queries and the training items as gallery.
            ``auto``: ``qp``, or ``map`` if the validation items have no quadlets; for a ``two_head`` model
            ``accuracy``, the share of validation items classified correctly (``macro_accuracy``: the mean over
            classes). For unlabeled data ``recall_at_1``: the share of images whose edited view is nearest to their own
            plain view; for a comparator ``map`` over the two views of each validation clip among all others.
        patience: Number of validations without improvement after which training ends; 0 never ends early.
        keep: The weights that become the model: ``best`` by ``measure``, or ``last``.
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
        """The measure; ``qp`` as long as ``auto`` has not been resolved from the data."""
        return "qp" if self.measure == "auto" else self.measure


@check_constructor
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole training run.

    Attributes:
        name: Name of the recipe; the model's folder is named after it.
        data: Training items.
        model: Settings of :class:`vidkin.models.EncoderConfig` except ``classes``, which depends on the data; for kind
            ``comparator``, settings of ``ComparatorConfig`` except ``unrelated``, which is measured.
        weights: A safetensors file with weights of the backbone (for a comparator, of its extractor). Empty: the
            bundled weights for ``vidkin`` and ``squares``, weights from the hub for ``timm:`` and ``torchvision:``,
            random ones for all others.
        whitening: For a comparator: a safetensors file with the whitening of its extractor. Empty: no whitening.
        objectives: Terms of the loss. Terms of weight 0 are dropped, so that they do not affect how items are drawn.
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
            raise InvalidArgumentError(f"a recipe needs an objective with a weight other than 0, got {listed}")
        object.__setattr__(self, "objectives", counted)

    def config(self, *, classes: int = 2) -> EncoderConfig:
        """Configuration of the model, with this number of classes if it classifies."""
        kind = self.model.get("kind", "clip")
        needed = {"classes": classes} if kind in ("c3d", "deep_sbd", "two_head") else {}
        return EncoderConfig.from_mapping({**self.model, **needed})

    @property
    def is_comparator(self) -> bool:
        """Whether the recipe trains a comparator of videos rather than an encoder."""
        return self.model.get("kind") == "comparator"

    def comparator(self) -> ComparatorConfig:
        """Configuration of the comparator."""
        return ComparatorConfig.from_mapping(self.model)

    def digest(self) -> str:
        """SHA-256 of everything that affects the weights; a run can only resume from a run with the same digest."""
        parts = {"schedule": _select_relevant(self.schedule), "validation": _select_relevant(self.validation)}
        objectives = [asdict(part) for part in self.objectives]
        files = (self.weights, self.whitening) if self.whitening else (self.weights,)
        whole = (_select_relevant(self.data), dict(self.model), *files, objectives, parts)
        return hashlib.sha256(repr(whole).encode()).hexdigest()


def _select_relevant(part: DataRecipe | ScheduleRecipe | ValidationRecipe) -> dict[str, Any]:
    """The settings that affect the weights."""
    return {name: value for name, value in asdict(part).items() if name not in _NEUTRAL_SETTINGS}


def _check_minimum(name: str, value: float, minimum: float) -> None:
    if not (value >= minimum and math.isfinite(value)):
        raise InvalidArgumentError(f"{name} must be at least {minimum}, got {value}")


def _check_seed(name: str, value: int) -> None:
    # The range that all random generators accept.
    if not 0 <= value < 2**32:
        raise InvalidArgumentError(f"{name} must be a whole number from 0 to {2**32 - 1}, got {value}")
