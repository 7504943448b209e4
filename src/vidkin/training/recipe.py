"""Recipes: data, model, objectives and schedule of a training run, as frozen values."""

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

# Settings that cannot change the weights.
_WITHOUT_EFFECT = ("cache", "memory", "threads", "log_every", "checkpoint_every", "tensorboard", "device")


@check_constructor
@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """Where the training items come from.

    Attributes:
        source: Folder or file of the collection; a relative path starts at the current folder.
        kind: ``labeled``: items with a category and a subcategory. ``unlabeled``: a folder of images and videos, from
            which pairs of edited views are made; for a comparator a folder of videos.
        reader: Reader of labeled data: ``tree`` for any folder ``category/subcategory/file``, ``manifest`` for a CSV
            file, others for public collections (:func:`vidkin.datasets.available_readers`).
        options: Options of the reader. For unlabeled data, settings of the edits, see
            :func:`vidkin.training.unlabeled.pair_settings`; for a comparator also how clips are cut, see
            :class:`vidkin.training.clip_views.ClipSettings`.
        split: A stored split to use, such as the ``split.json`` of an earlier model. Empty: the collection's own
            split; if it has none, a split is made and written beside the model.
        split_by: How a split is made: by ``group`` (items that must stay together, such as the files of one folder),
            by ``item``, or by ``subcategory`` (test and training have different ones). ``auto``: by group if groups
            allow it, otherwise without a validation split, by item, or without a test split, with a message.
        test: Share of the test split in a split made here; 0 makes none.
        validation: Share of the validation split in a split made here, or of unlabeled images if they are validated; 0
            makes none.
        split_seed: Seed of a split made here.
        excerpts: Number of evenly spaced clips cut out of every training video, each an item of its own; 1 takes the
            whole video. Use it for collections with one video per subcategory: excerpts of a video are then positives.
        excerpt_share: Length of an excerpt as a share of its video.
        moving: Training clips move: each step takes new consecutive frames at a random position of the item, at
            ``model.rate`` frames per second. Otherwise a clip shows the same frames at every step.
        memory: GiB of decoded frames, or of features of moving clips, to keep; other items are decoded again whenever
            they are drawn. For a comparator: GiB of descriptors made in advance.
        augmentation: Random changes of labeled training items: ``flip``, ``crop``, ``color``. With any of them,
            features of a frozen backbone are not cached.
        relevance: How relevant two items are to each other, for the objective ``deep_ranking``: ``labels`` (number of
            shared levels), ``classical:<feature>`` (visual similarity inside a category), or a safetensors file with
            ``relevance`` [N, N] of the N training items in their order.
        folders: Additional folders of unlabeled data.
        frames_per_video: Number of frames taken from each video of unlabeled data.
        cache: Where to keep decoded images or features of a frozen backbone: ``disk`` (beside the model, for later
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
            _check_least(f"data.{name}", getattr(self, name), 1)
        _check_seed("data.split_seed", self.split_seed)
        if not 0.0 < self.excerpt_share <= 1.0:
            raise InvalidArgumentError(f"data.excerpt_share must be above 0 and at most 1, got {self.excerpt_share}")
        _check_least("data.memory", self.memory, 0)
        if self.kind == "unlabeled" and self.moving:
            raise InvalidArgumentError("data.moving must be false for unlabeled data, whose items are images")
        if self.kind == "labeled" and self.folders:
            raise InvalidArgumentError("data.folders must be empty for labeled data; use data.kind = 'unlabeled'")


@dataclass(frozen=True, kw_only=True)
class ObjectiveRecipe:
    """One term of the loss to minimize.

    Attributes:
        name: One of :func:`vidkin.training.available_objectives`.
        weight: Factor of this objective in the sum.
        parameters: All parameters of the loss.
    """

    name: str
    weight: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)


@check_constructor
@dataclass(frozen=True, kw_only=True)
class ScheduleRecipe:
    """Number of steps, items of a step, optimizer and learning rates.

    Attributes:
        steps: Number of optimizer steps.
        quadlets: Tuples per step; batches hold as many items as the tuples have members, 4 times as many.
        batch: For objectives on batches: categories, subcategories of each and items of each; or, with two numbers,
            classes and items of each, whatever their categories. Empty: up to 8 categories, up to 4 items of a
            subcategory, and as many subcategories as ``quadlets`` allows; with one level of labels, and for
            ``two_head``, up to 8 classes with as many items each as that allows. ``classification`` alone draws as many
            items, whatever their class.
        buffer: For ``deep_ranking``: number of items per category from which triplets are drawn.
        relevance_margin: For ``deep_ranking``: how much more relevant a positive must be than a negative.
        in_class: For ``deep_ranking``: share of the tries for a negative of the query's own category, in [0, 1].
        pairs: For unlabeled data: images (for a comparator, clips) per step; two views of each are compared.
        optimizer: ``adamw``, ``adam`` or ``sgd``.
        learning_rate: Learning rate of the head; if the backbone is trained as well, the rate of the backbone.
        head_factor: If the backbone is trained as well, the head learns this many times as fast.
        momentum: Momentum of ``sgd``.
        weight_decay: Decay d of all weights. With ``adam`` and ``sgd`` d W is added to the gradient, as if the loss had
            the term lambda ||W||^2 with d = 2 lambda. With ``adamw`` weights shrink by the learning rate times d at
            each step, which does next to nothing at a rate of 1e-5.
        decay_biases: Whether biases and the parameters of norms decay as well.
        clip: Maximum gradient norm; 0 does not clip.
        warm_up: Steps during which the rate rises from near 0.
        decay: ``constant``, ``cosine`` (down to ``final_factor`` at the last step), ``linear``
            (down to 0 after the last step), ``step`` (times ``step_factor``
            every ``step_every`` steps) or ``one_cycle`` (up for 30 % of the steps, then down to almost 0; no
            warm-up).
        final_factor: Share of the learning rate at the last step, with ``cosine``.
        step_every: Steps between two changes of the rate, with ``step``.
        step_factor: Factor of each change of the rate, with ``step``.
        precision: ``float32`` or, for automatic mixed precision, ``bfloat16``.
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA if it is available.
        seed: Seed of weights, draws and augmentation: the same seed gives the same model.
        log_every: Steps between lines in the log.
        checkpoint_every: Steps between checkpoints.
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
            _check_least(f"schedule.{name}", getattr(self, name), 1)
        _check_least("schedule.pairs", self.pairs, 2)
        _check_least("schedule.buffer", self.buffer, 2)
        _check_least("schedule.relevance_margin", self.relevance_margin, 0)
        if not 0 <= self.in_class <= 1:
            raise InvalidArgumentError(f"schedule.in_class must be in [0, 1], got {self.in_class}")
        for name in ("warm_up", "momentum", "weight_decay", "clip", "final_factor", "collapse_below"):
            _check_least(f"schedule.{name}", getattr(self, name), 0)
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
                f"schedule.warm_up must be 0 with decay 'one_cycle', which has its own, got {self.warm_up}"
            )


@check_constructor
@dataclass(frozen=True, kw_only=True)
class ValidationRecipe:
    """When to measure the validation split, and which weights to keep.

    Attributes:
        every: Steps between validations; 0 never validates.
        measure: The figure that counts, higher is better: ``qp`` and ``tp`` among the validation items; ``ndcg``,
            ``map``, ``hap``, ``asi`` and ``recall_at_1`` with validation as queries and train as gallery. ``auto``:
            ``qp``, or ``map`` if the validation items have no quadlets; for a ``two_head`` model ``accuracy``, the
            share of validation items that it classifies correctly (``macro_accuracy``: the mean over classes). For
            unlabeled data ``recall_at_1``: the share of images whose edited view is nearest to their own plain view;
            for a comparator ``map`` over the two views of each validation clip among all others.
        patience: Number of validations without improvement after which training ends; 0 never ends early.
        keep: The weights that become the model: ``best`` by ``measure``, or ``last``.
    """

    every: int = 0
    measure: _MeasureOrAuto = "auto"
    patience: int = 0
    keep: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        _check_least("validation.every", self.every, 0)
        _check_least("validation.patience", self.patience, 0)
        if self.patience and not self.every:
            raise InvalidArgumentError(
                f"validation.patience must be 0 while validation.every is 0, got {self.patience}"
            )

    @property
    def figure(self) -> Measure:
        """The measure; ``qp`` if ``auto`` has not been resolved with the data yet."""
        return "qp" if self.measure == "auto" else self.measure


@check_constructor
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole training run.

    Attributes:
        name: Name of the recipe; the model's folder is named after it.
        data: Training items.
        model: Settings of :class:`vidkin.models.EncoderConfig` except ``classes``, which the data decide; for kind
            ``comparator``, settings of ``ComparatorConfig`` except ``unrelated``, which is measured.
        weights: A safetensors file with weights of the backbone (for a comparator, of its extractor). Empty: the
            bundled weights for ``vidkin``, weights from the hub for ``timm:`` and ``torchvision:``, random ones for
            all others.
        whitening: For a comparator: a safetensors file with the whitening of its extractor. Empty: none.
        objectives: Terms of the loss. Those of weight 0 are left out: they would still decide how items are drawn.
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
            raise InvalidArgumentError(f"a recipe needs an objective whose weight is not 0, got {listed}")
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
        """SHA-256 of everything that decides the weights: runs with the same digest can continue each other."""
        parts = {"schedule": _deciding(self.schedule), "validation": _deciding(self.validation)}
        objectives = [asdict(part) for part in self.objectives]
        files = (self.weights, self.whitening) if self.whitening else (self.weights,)
        whole = (_deciding(self.data), dict(self.model), *files, objectives, parts)
        return hashlib.sha256(repr(whole).encode()).hexdigest()


def _deciding(part: DataRecipe | ScheduleRecipe | ValidationRecipe) -> dict[str, Any]:
    """The settings that decide the weights."""
    return {name: value for name, value in asdict(part).items() if name not in _WITHOUT_EFFECT}


def _check_least(name: str, value: float, least: float) -> None:
    if not (value >= least and math.isfinite(value)):
        raise InvalidArgumentError(f"{name} must be at least {least}, got {value}")


def _check_seed(name: str, value: int) -> None:
    # The range that every generator accepts.
    if not 0 <= value < 2**32:
        raise InvalidArgumentError(f"{name} must be a whole number from 0 to {2**32 - 1}, got {value}")
