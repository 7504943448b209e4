"""Configuration of encoders and comparators: kind, sizes and input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from vidkin._base.arguments import check_constructor
from vidkin._base.toml import from_table, to_table
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import Fit
from vidkin.similarity.frame_maps import check_top_share

EncoderKind = Literal["clip", "image", "c3d", "deep_sbd", "deep_ranking", "frame_encoder", "two_head"]
Trainable = Literal["head", "all"]
Triple = tuple[float, float, float]

PLAIN_MEAN: Triple = (0.5, 0.5, 0.5)
"""Input mean for networks without pretrained weights, as a fraction of full scale."""

PLAIN_STD: Triple = (0.25, 0.25, 0.25)
"""Input standard deviation for networks without pretrained weights, as a fraction of full scale."""

_CHOICES: Mapping[str, Sequence[str | None]] = {
    "kind": get_args(EncoderKind),
    "trainable": get_args(Trainable),
    "activation": ("relu", "none"),
    "fit": get_args(Fit),
    "embedding_from": (None, "map", "pooled", "none"),
    "motion": (None, "differences"),
}
_CLASSIFIERS = ("c3d", "deep_sbd", "two_head")
_MINIMUMS = {
    "hidden": 1,
    "lstm": 1,
    "frames": 1,
    "size": 16,
    "embedding": 0,
    "classes": 0,
    "local_normalization": 0,
}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Base class of model configurations, which are stored in the ``[model]`` table of a model's ``config.toml``."""

    def to_mapping(self) -> dict[str, Any]:
        """Return all settings that are not None, in the form of a TOML table."""
        return to_table(self)

    @classmethod
    def from_mapping(cls, table: Mapping[str, Any]) -> Self:
        """Create a configuration from a table as returned by :meth:`to_mapping`; missing settings get their defaults.

        Raises:
            InvalidArgumentError: A name is unknown, or a value has the wrong type or is not allowed.
        """
        return from_table(cls, table, "model")

    def check_choices(self, choices: Mapping[str, Sequence[str | None]]) -> None:
        """Raise :class:`InvalidArgumentError` unless each of these settings is one of its choices."""
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InvalidArgumentError(
                    f"{name} must be one of {', '.join(filter(None, allowed))}, got {getattr(self, name)!r}"
                )


@check_constructor
@dataclass(frozen=True, kw_only=True)
class EncoderConfig(ModelConfig):
    """Kind, sizes and input of an encoder.

    Attributes:
        kind: ``clip`` (frame network, fully connected layer, LSTM), ``image`` (the same without the LSTM),
            ``c3d`` and ``deep_sbd`` (3-D convolutional networks, trained as classifiers), ``deep_ranking`` (three
            paths), ``frame_encoder`` (small network of depthwise-separable blocks for views of frames), ``two_head``
            (frame network with a classifier on the pooled map and an embedding head on the whole map).
        backbone: Frame network of ``clip``, ``image``, ``deep_ranking`` and ``two_head``: ``small`` (trains on a CPU
            in minutes), ``vidkin`` (the small encoder included in the package, trained without labels),
            ``timm:<model>`` or ``torchvision:<model>``, with settings after a question mark
            (``timm:mobilenetv2_100?pad_type=same``). Other kinds have no backbone.
        trainable: ``head``: the backbone is frozen and stays in eval mode; ``all``: the backbone is trained as well.
        frozen_batch_norm: Keep the batch norms of a trained backbone in eval mode; required for folded batch norms.
        hidden: Number of outputs of the fully connected layer.
        activation: Activation after the fully connected layer of ``clip``: ``relu`` or ``none``.
        lstm: Number of LSTM units, which is the dimension of a ``clip`` embedding.
        embedding: Number of outputs of an additional linear layer at the end of ``clip`` and ``image``; 0 for no such
            layer. For ``deep_ranking``, ``frame_encoder`` and ``two_head``: dimension of the embedding; 0 for the
            default (``hidden``, 128 and 256, respectively).
        local_normalization: For ``deep_ranking``: side of the blocks in which the maps of the shallow paths are
            normalized to zero mean and unit length, an odd number; 0 disables the normalization.
        dropout: Dropout probability of the fully connected layer's outputs, in [0, 1).
        width: Factor by which the channels of ``small``, ``c3d`` and ``deep_sbd`` are multiplied.
        batch_norm: Add a batch norm after every convolution of ``c3d`` and ``deep_sbd``.
        classes: Number of classes of ``c3d``, ``deep_sbd`` and ``two_head``.
        frames: Number of frames in a clip.
        rate: Frames per second of a clip; if None, the frames of a clip are spaced evenly over the item (or over
            pieces of about ``seconds``).
        seconds: Length of a clip in seconds if ``rate`` is None; if None, a clip covers the whole item.
        size: Side of the square input in pixels.
        fit: How images are made square: ``letterbox`` (add black bars), ``crop`` (keep the center) or ``stretch``.
        mean: Input mean of the three channels as a fraction of full scale; if None, that of the backbone or
            (0.5, 0.5, 0.5).
        std: Input standard deviation of the three channels, above 0; if None, that of the backbone or
            (0.25, 0.25, 0.25).
        network: For ``frame_encoder``: widths, strides, grid and normalization; if None, the defaults.
        embedding_from: For ``two_head``: input of the embedding head: the whole ``map`` (the default), the ``pooled``
            map, or ``none``, which uses the pooled map itself as the embedding.
        motion: For ``two_head``: ``differences`` to take clips and compute the differences of consecutive gray frames;
            None to take images.

    Raises:
        InvalidArgumentError: A value is out of range or not allowed for this kind.
    """

    kind: EncoderKind = "clip"
    backbone: str = "small"
    trainable: Trainable = "all"
    frozen_batch_norm: bool = True
    hidden: int = 512
    activation: Literal["relu", "none"] = "relu"
    lstm: int = 512
    embedding: int = 0
    local_normalization: int = 0
    dropout: float = 0.0
    width: float = 1.0
    batch_norm: bool = False
    classes: int = 0
    frames: int = 16
    rate: float | None = None
    seconds: float | None = None
    size: int = 112
    fit: Fit = "letterbox"
    mean: Triple | None = None
    std: Triple | None = None
    network: Mapping[str, Any] | None = None
    embedding_from: Literal["map", "pooled", "none"] | None = None
    motion: Literal["differences"] | None = None

    def __post_init__(self) -> None:
        self.check_choices(_CHOICES)
        for name, minimum in _MINIMUMS.items():
            if getattr(self, name) < minimum:
                raise InvalidArgumentError(f"{name} must be at least {minimum}, got {getattr(self, name)}")
        if not 0.0 <= self.dropout < 1.0:
            raise InvalidArgumentError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        for name in ("width", "rate", "seconds"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InvalidArgumentError(f"{name} must be a number above 0, got {value}")
        if self.rate is not None and self.seconds is not None:
            raise InvalidArgumentError(
                f"only one of rate and seconds can be set, got {self.rate} and {self.seconds}: a clip's length follows "
                "from its rate and number of frames"
            )
        # Settings that only some kinds have.
        if self.local_normalization and self.kind != "deep_ranking":
            raise InvalidArgumentError(
                f"local_normalization must be 0 for kind {self.kind!r}, got {self.local_normalization}"
            )
        if self.is_classifier and self.classes < 2:
            raise InvalidArgumentError(f"classes must be at least 2 for kind {self.kind!r}, got {self.classes}")
        if self.network is not None and self.kind != "frame_encoder":
            raise InvalidArgumentError(f"network must not be set for kind {self.kind!r}")
        if self.kind != "two_head" and (self.embedding_from or self.motion):
            raise InvalidArgumentError(f"embedding_from and motion must not be set for kind {self.kind!r}")
        if self.motion and (self.trainable != "all" or self.frames < 2):
            raise InvalidArgumentError(
                f"motion needs trainable 'all' and at least 2 frames, got {self.trainable!r} and {self.frames}"
            )
        if self.kind == "frame_encoder" and (self.mean or self.std):
            raise InvalidArgumentError(
                "mean and std must not be set for kind 'frame_encoder', which normalizes its input itself"
            )
        if not self.is_classifier and self.classes:
            raise InvalidArgumentError(f"classes must be 0 for kind {self.kind!r}, got {self.classes}")
        if self.kind in ("c3d", "deep_sbd", "frame_encoder") and self.trainable != "all":
            raise InvalidArgumentError(
                f"trainable must be 'all' for kind {self.kind!r}, which has no backbone, got {self.trainable!r}"
            )
        for name, above in (("mean", -math.inf), ("std", 0.0)):
            value = getattr(self, name)
            if value is not None and not (len(value) == 3 and all(above < part < math.inf for part in value)):
                raise InvalidArgumentError(
                    f"{name} must be three numbers{' above 0' if name == 'std' else ''}, got {value}"
                )

    @property
    def is_classifier(self) -> bool:
        """Whether the model outputs logits; its embedding is then the last hidden layer or, for ``two_head``, the
        output of a second head."""
        return self.kind in _CLASSIFIERS

    @property
    def takes_clips(self) -> bool:
        """Whether the input is [B, T, 3, S, S] rather than [B, 3, S, S]."""
        return self.kind in ("clip", "c3d", "deep_sbd") or self.motion is not None

    @property
    def has_fixed_features(self) -> bool:
        """Whether the backbone is frozen, so that its features can be computed once per item and cached."""
        return self.trainable == "head" and self.kind in ("clip", "image", "two_head")


COMPARATOR = "comparator"

"""Model kind stored in a comparator's folder."""

Weighting = Literal["none", "attention", "direction", "signs"]

Padding = Literal["zeros", "replicate"]

Remainder = Literal["pooled", "dropped"]


@check_constructor
@dataclass(frozen=True, kw_only=True)
class ComparatorConfig(ModelConfig):
    """Architecture of a comparator, and the descriptors it compares.

    Attributes:
        kind: Always ``comparator``.
        extractor: Name of the descriptor extractor, as accepted by :func:`vidkin.features.open_extractor`; must not be
            the folder of a trained model.
        trainable: ``head``: only the comparator is trained, on fixed descriptors. ``all``: the extractor's network
            (``timm:<model>`` or ``torchvision:<model>``) is trained as well, and saved with the model.
        dimension: D, dimension of a region descriptor.
        weighting: How descriptors are weighted. ``attention``: by a weight per region, ``sigmoid(v . tanh(W x + b))``.
            ``direction``: by ``(1 + cos(x, v)) / 2``, as in ViSiL. ``signs``: replaced by the signs of a projection, as
            in the binary student of DnS. ``none``: not weighted.
        network: ``cnn``: four convolutions over the frame similarity map, which reduce each side to a quarter.
            ``none``: the map itself, without a network (plain Chamfer similarity).
        padding: Padding around the map: ``zeros`` (S2VS, DnS, HAP-VR) or ``replicate`` (ViSiL).
        remainder: How 2 x 2 pooling handles the last row and column of maps of odd size: ``pooled`` over the remaining
            cells, so that no frame is lost, or ``dropped``, as in the published code, which pads maps shorter than four
            frames by repeating the last frame.
        spatial_share: k_s of the TopK-Chamfer similarity over regions: a fraction of the regions in [0, 1], or a count
            of at least 2; None: only the largest similarity counts.
        temporal_share: k_t of the TopK-Chamfer similarity over time steps, in the same form.
        temporal_span: Number of time steps of the learned map (four frames each with ``cnn``) up to which k grows with
            the target's length; 0 sets no limit, which dilutes the score of a clip contained in a long video.
        symmetric: Average both directions, over regions and over time steps.
        unrelated: Median and 99th percentile of uncalibrated scores between unrelated videos; None: measured on
            background photographs when the comparator is opened. Training measures them on photographs and on the
            training videos.

    Raises:
        InvalidArgumentError: A value is out of range.
    """

    kind: Literal["comparator"] = "comparator"
    extractor: str = "squares"
    trainable: Trainable = "head"
    dimension: int = 128
    weighting: Weighting = "none"
    network: Literal["cnn", "none"] = "cnn"
    padding: Padding = "zeros"
    remainder: Remainder = "pooled"
    spatial_share: float | None = None
    temporal_share: float | None = None
    temporal_span: int = 0
    symmetric: bool = False
    unrelated: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self.check_choices(_COMPARATOR_CHOICES)
        if not self.extractor:
            raise InvalidArgumentError("extractor must be the name of an extractor, got an empty name")
        if self.dimension < 1:
            raise InvalidArgumentError(f"dimension must be at least 1, got {self.dimension}")
        if self.temporal_span < 0:
            raise InvalidArgumentError(f"temporal_span must be at least 0, got {self.temporal_span}")
        check_top_share("spatial_share", self.spatial_share)
        check_top_share("temporal_share", self.temporal_share)
        if self.unrelated is not None:
            ordered = len(self.unrelated) == 2 and self.unrelated[0] < self.unrelated[1]
            if not ordered or not all(map(math.isfinite, self.unrelated)):
                raise InvalidArgumentError(f"unrelated must be two numbers in increasing order, got {self.unrelated}")


_COMPARATOR_CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": (COMPARATOR,),
    "trainable": get_args(Trainable),
    "weighting": get_args(Weighting),
    "network": ("cnn", "none"),
    "padding": get_args(Padding),
    "remainder": get_args(Remainder),
}
