"""What an encoder is made of, as a value that can be written down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from vidkin.errors import InvalidArgumentError

__all__ = ["EncoderConfig", "EncoderKind", "Fit", "Trainable"]

EncoderKind = Literal["clip", "image", "c3d", "deep_sbd", "deep_ranking"]
Fit = Literal["letterbox", "crop", "stretch"]
Trainable = Literal["head", "all"]
Triple = tuple[float, float, float]

_CLASSIFIERS = ("c3d", "deep_sbd")
_CLIP_KINDS = ("clip", "c3d", "deep_sbd")


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Kind, sizes and input of an encoder.

    Attributes:
        kind: ``clip`` (frame network, fully connected layer, LSTM), ``image`` (the same without the LSTM),
            ``c3d`` and ``deep_sbd`` (3-D convolutions, trained to classify), ``deep_ranking`` (three paths).
        backbone: The frame network of ``clip``, ``image`` and ``deep_ranking``: ``small`` (made here, trains on a CPU
            in minutes), ``alexnet``, ``timm:<model>`` or ``torchvision:<model>``, with settings after a question mark
            (``timm:mobilenetv2_100?pad_type=same``). Others have none.
        trainable: ``head``: the backbone stays as it is, in eval mode; ``all``: it is trained, too.
        frozen_batch_norm: Batch norms of a trained backbone stay in eval mode (right for folded ones).
        hidden: Length of the fully connected layer's output.
        activation: After the fully connected layer of ``clip``: ``relu`` or ``none``.
        lstm: Units of the LSTM, the length of a ``clip`` embedding.
        embedding: Length of a further linear layer at the end of ``clip`` and ``image``; 0 leaves it out. Of
            ``deep_ranking`` the length of the embedding (0: ``hidden``).
        local_normalization: Of ``deep_ranking``: side of the blocks in which the maps of the shallow paths are
            brought to mean 0 and length 1, odd; 0 leaves it out.
        dropout: Share of the fully connected layer's output that is dropped in training, [0, 1).
        width: Factor on the channels of ``small``, ``c3d`` and ``deep_sbd``.
        batch_norm: ``c3d`` and ``deep_sbd`` with a batch norm after every convolution.
        classes: Outputs of ``c3d`` and ``deep_sbd``.
        frames: Frames of a clip.
        rate: Frames a second of a clip; None: a clip's frames are spread evenly over the item (or over pieces
            of ``seconds``).
        seconds: Without a rate: what a clip spans; None: the whole item, however long.
        size: Side of the square input, pixels.
        fit: How pictures that are not square become so: between black bars, middle cut out, or squeezed.
        mean: Of the input in units of full scale, three numbers; None: the backbone's own, (.5, .5, .5) where
            there is none.
        std: Likewise; None: the backbone's own, or (.25, .25, .25).

    Raises:
        InvalidArgumentError: A value is not allowed.
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

    def __post_init__(self) -> None:
        _choice("kind", self.kind, get_args(EncoderKind))
        _choice("trainable", self.trainable, get_args(Trainable))
        _choice("activation", self.activation, ("relu", "none"))
        _choice("fit", self.fit, get_args(Fit))
        for name in ("hidden", "lstm", "frames"):
            _whole(name, getattr(self, name), 1)
        _whole("size", self.size, 16)
        _whole("embedding", self.embedding, 0)
        _whole("classes", self.classes, 0)
        _whole("local_normalization", self.local_normalization, 0)
        if self.local_normalization and self.kind != "deep_ranking":
            raise InvalidArgumentError(
                f"local_normalization is {self.local_normalization}; {self.kind} has none, leave it at 0"
            )
        if self.is_classifier and self.classes < 2:
            raise InvalidArgumentError(
                f"classes is {self.classes}; a {self.kind} network classifies, give it 2 or more"
            )
        if not self.is_classifier and self.classes:
            raise InvalidArgumentError(f"classes is {self.classes}; {self.kind} has none, leave it at 0")
        if not 0.0 <= self.dropout < 1.0:
            raise InvalidArgumentError(f"dropout is {self.dropout}, allowed is [0, 1)")
        for name in ("width", "rate", "seconds"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InvalidArgumentError(f"{name} is {value}, allowed is a number above 0")
        if self.rate is not None and self.seconds is not None:
            raise InvalidArgumentError(
                f"rate is {self.rate} and seconds is {self.seconds}; with a rate the frames say how long a clip "
                "is, leave seconds out"
            )
        if self.is_classifier and self.trainable != "all":
            raise InvalidArgumentError(
                f"trainable is {self.trainable!r}; a {self.kind} network has no backbone and is trained whole: 'all'"
            )
        for name in ("mean", "std"):
            _triple(name, getattr(self, name))

    @property
    def is_classifier(self) -> bool:
        """Trained to classify; the embedding is its last hidden layer."""
        return self.kind in _CLASSIFIERS

    @property
    def takes_clips(self) -> bool:
        """The input is [B, T, 3, S, S] and not [B, 3, S, S]."""
        return self.kind in _CLIP_KINDS

    def to_mapping(self) -> dict[str, Any]:
        """All fields that are not None, ready for a TOML table."""
        found = {name: value for name, value in asdict(self).items() if value is not None}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> EncoderConfig:
        """From a table as :meth:`to_mapping` makes it; what is left out has its default.

        Raises:
            InvalidArgumentError: A name is unknown, or a value has the wrong type or is not allowed.
        """
        known = {field.name: field.type for field in fields(cls)}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InvalidArgumentError(
                f"a model has no setting {', '.join(unknown)}; allowed are {', '.join(known)}"
            )
        return cls(**{name: _typed(name, str(known[name]), value) for name, value in given.items()})


def _typed(name: str, kind: str, value: Any) -> Any:
    """The value as the type of its field; TOML knows no tuples, and writes 2.0 as 2 where it likes."""
    if kind.startswith("Triple"):
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise InvalidArgumentError(f"{name} is {value!r}, allowed is a list of three numbers")
        return tuple(value)
    wanted: Any = str
    if kind.startswith("float"):
        wanted = (int, float)
    elif kind in ("int", "bool"):
        wanted = {"int": int, "bool": bool}[kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
        raise InvalidArgumentError(f"{name} is {value!r}, allowed is a value of type {kind}")
    return float(value) if kind.startswith("float") else value


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(f"{name} is {value!r}, allowed are {', '.join(allowed)}")


def _whole(name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidArgumentError(f"{name} is {value}, allowed is {least} or more")


def _triple(name: str, value: Triple | None) -> None:
    if value is None:
        return
    numbers = [part for part in value if isinstance(part, int | float) and math.isfinite(part)]
    if len(value) != 3 or len(numbers) != 3 or (name == "std" and min(numbers) <= 0):
        raise InvalidArgumentError(
            f"{name} is {value}, allowed are three numbers{' above 0' if name == 'std' else ''}"
        )
