"""From a name to an extractor: the one place where extractors are resolved."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Protocol, cast

from vidkin.errors import InvalidArgumentError, UnknownExtractorError

if TYPE_CHECKING:
    from vidkin.features.frame_features import FrameExtractor

__all__ = [
    "ExtractorFactory",
    "available_extractors",
    "better_extractor_hint",
    "open_extractor",
    "register_extractor",
]

PathLike = str | os.PathLike[str]


class ExtractorFactory(Protocol):
    """Makes the extractor of a name; what :func:`register_extractor` takes."""

    def __call__(
        self, name: str, *, weights: PathLike | None, whitening: PathLike | None, device: str
    ) -> FrameExtractor:
        """The extractor of the full ``name``, prefix and query part included."""
        ...


# Prefix -> factory, or where to find it when it is first asked for (so that this module stays light).
_factories: dict[str, ExtractorFactory | str] = {
    "classical": "vidkin.features.registry:_open_classical",
    "timm": "vidkin.features.backbone:open_backbone",
    "torchvision": "vidkin.features.backbone:open_backbone",
}
_USAGE = {
    "classical": "classical",
    "timm": "timm:<model>",
    "torchvision": "torchvision:<model>",
}


def open_extractor(
    name: str = "classical",
    *,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    device: str = "auto",
) -> FrameExtractor:
    """The extractor that a name stands for.

    Args:
        name: ``classical`` (the default: no weights, works offline), ``timm:<model>``, ``torchvision:<model>``,
            or a registered prefix. Settings follow a question mark:
            ``timm:mobilenetv2_100?pad_type=same&size=256`` (see :class:`~vidkin.features.backbone.BackboneExtractor`).
        weights: A safetensors file of the network's weights; without one they come from the hub's cache or
            the hub. Not for ``classical``.
        whitening: A safetensors file made by :meth:`vidkin.features.Whitening.save`.
        device: ``auto`` (CUDA where there is one), ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: Nothing answers to this name; the message lists what does.
        WeightsUnavailableError: The weights are neither given nor cached nor to be had.
        InvalidArgumentError: A setting is not allowed.
    """
    if not name:
        raise UnknownExtractorError(f"the extractor's name is empty; allowed are {_allowed()}")
    prefix = name.partition("?")[0].partition(":")[0]
    if prefix not in _factories:
        raise UnknownExtractorError(f"no extractor is called {name!r}; allowed are {_allowed()}")
    return _factory(prefix)(name, weights=weights, whitening=whitening, device=device)


def available_extractors() -> tuple[str, ...]:
    """The forms of name that :func:`open_extractor` takes, sorted."""
    return tuple(sorted(_USAGE[prefix] for prefix in _factories))


def register_extractor(prefix: str, factory: ExtractorFactory, *, usage: str | None = None) -> None:
    """Let :func:`open_extractor` answer to names ``prefix`` and ``prefix:...`` (and to those with ``?settings``).

    Args:
        prefix: Letters, digits, ``_`` and ``-``; not one that is taken.
        factory: Called as ``factory(name, weights=..., whitening=..., device=...)``.
        usage: How the name is written, for lists and messages; default ``prefix:<name>``.

    Raises:
        InvalidArgumentError: The prefix is malformed or taken.
    """
    if not prefix or not prefix.replace("_", "").replace("-", "").isalnum():
        raise InvalidArgumentError(
            f"an extractor's prefix is made of letters, digits, '_' and '-', given is {prefix!r}"
        )
    if prefix in _factories:
        raise InvalidArgumentError(f"the prefix {prefix!r} is taken; choose one that is not in {_allowed()}")
    _factories[prefix] = factory
    _USAGE[prefix] = usage or f"{prefix}:<name>"


def better_extractor_hint() -> str:
    """One line for people on the offline default: how to get learned features."""
    return (
        "learned features find more: try --extractor timm:resnet50.tv_in1k "
        "(downloads its weights once; offline give --weights FILE)"
    )


def _allowed() -> str:
    return ", ".join(available_extractors())


def _factory(prefix: str) -> ExtractorFactory:
    found = _factories[prefix]
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        found = cast("ExtractorFactory", getattr(importlib.import_module(module), attribute))
        _factories[prefix] = found
    return found


def _open_classical(
    name: str, *, weights: PathLike | None, whitening: PathLike | None, device: str
) -> FrameExtractor:
    """The classical extractor; it computes on the CPU whatever ``device`` says, as all it does is cheap."""
    if name != "classical":
        raise UnknownExtractorError(
            f"no extractor is called {name!r}; 'classical' takes neither a model nor settings"
        )
    if weights is not None:
        raise InvalidArgumentError(
            f"the classical extractor has no weights, given is {os.fspath(weights)!r}; leave weights out, "
            f"or name a network: {_allowed()}"
        )
    module = importlib.import_module("vidkin.features.classical")
    return cast("FrameExtractor", module.ClassicalExtractor(whitening=whitening))
