"""From a name to an extractor: the one place where extractors are resolved."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from vidkin.errors import InvalidArgumentError, UnknownExtractorError

if TYPE_CHECKING:
    from vidkin.features.contracts import FrameExtractor

__all__ = [
    "ExtractorFactory",
    "absolute_name",
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
    "timm": "vidkin.features.networks.backbone:open_backbone",
    "torchvision": "vidkin.features.networks.backbone:open_backbone",
}
_USAGE = {
    "classical": "classical",
    "model": "model:<folder>",
    "timm": "timm:<model>",
    "torchvision": "torchvision:<model>",
}

# Packages that bring extractors of their own say so in their metadata: prefix = "module:factory".
_PLUGINS = "vidkin.extractors"
# One of them is this package's own: a folder with such a file is a trained model.
_MODEL_PREFIX = "model"
_MODEL_FILE = "config.toml"


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
            the folder of a trained model (``path/to/model`` or ``model:path/to/model``), a registered prefix or
            that of an installed plugin (entry point group ``vidkin.extractors``). Settings follow a question mark:
            ``timm:mobilenetv2_100?pad_type=same&size=256``
            (see :class:`~vidkin.features.networks.backbone.BackboneExtractor`).
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
    factory = _factory(_prefix(name))
    if factory is None:
        raise UnknownExtractorError(f"no extractor is called {name!r}; allowed are {_allowed()}")
    return factory(name, weights=weights, whitening=whitening, device=device)


def available_extractors() -> tuple[str, ...]:
    """The forms of name that :func:`open_extractor` takes, sorted."""
    plugins = {_USAGE.get(plugin.name, f"{plugin.name}:<name>") for plugin in _plugins()}
    return tuple(sorted(plugins | {_USAGE[prefix] for prefix in _factories}))


def absolute_name(name: str) -> str:
    """The name as it can be kept: that of a model's folder made absolute, any other unchanged."""
    if _prefix(name) != _MODEL_PREFIX:
        return name
    address, question, settings = name.partition("?")
    folder = Path(address.removeprefix(f"{_MODEL_PREFIX}:")).expanduser().absolute()
    return f"{_MODEL_PREFIX}:{folder}{question}{settings}"


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


def _prefix(name: str) -> str:
    """What decides who makes the extractor; a registered name comes before a folder of the same name."""
    address = name.partition("?")[0]
    prefix = address.partition(":")[0]
    if prefix not in _factories and (Path(address).expanduser() / _MODEL_FILE).is_file():
        return _MODEL_PREFIX
    return prefix


def _plugins() -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group=_PLUGINS)


def _factory(prefix: str) -> ExtractorFactory | None:
    found = _factories.get(prefix)
    if found is None:
        for plugin in _plugins():
            if plugin.name == prefix:
                return cast("ExtractorFactory", plugin.load())
        return None
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
