"""Resolve names to extractors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vidkin._base.files import PathLike
from vidkin._base.registry import Name, Registry, parse_name
from vidkin.errors import UnknownExtractorError

if TYPE_CHECKING:
    from vidkin.features.contracts import FrameExtractor


class ExtractorFactory(Protocol):
    """Makes the extractor for a name; the argument of :func:`register_extractor`."""

    def __call__(
        self, name: str, *, weights: PathLike | None, whitening: PathLike | None, device: str
    ) -> FrameExtractor:
        """Open the extractor with the full ``name``, including its prefix and settings."""
        ...


_EXTRACTORS: Registry[ExtractorFactory] = Registry(
    "extractor",
    # Named rather than imported, so that this module stays light. Trained models are found through an entry point.
    {
        "classical": "vidkin.features.classical:open_classical",
        "onnx": "vidkin.features.onnx:open_onnx",
        "timm": "vidkin.features.backbone:BackboneExtractor",
        "torchvision": "vidkin.features.backbone:BackboneExtractor",
        "vidkin": "vidkin.features.frame_extractor:open_frame_extractor",
    },
    usages={
        "classical": "classical",
        "vidkin": "vidkin",
        "model": "model:<folder>",
        "onnx": "onnx:<file>",
        "timm": "timm:<model>",
        "torchvision": "torchvision:<model>",
    },
    usage="{prefix}:<name>",
    group="vidkin.extractors",
    researched=True,
    error=UnknownExtractorError,
)
_MODEL_PREFIX = "model"
# Prefixes that are followed by a path.
_PATH_PREFIXES = (_MODEL_PREFIX, "onnx")
# A folder with this file is a trained model.
_MODEL_FILE = "config.toml"


def default_extractor(whitening: PathLike | None = None) -> str:
    """The name of the default extractor: ``vidkin``, or ``classical`` if a whitening is given, which is fitted to it.

    Args:
        whitening: A file written by :meth:`vidkin.features.Whitening.save`, or None.
    """
    return "vidkin" if whitening is None else "classical"


def open_extractor(
    name: str | None = None,
    *,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    device: str = "auto",
) -> FrameExtractor:
    """Open the extractor with a name.

    Args:
        name: ``vidkin`` (the default: vidkin's own small encoder, over views of every frame), ``classical`` (color,
            gradients and texture of the whole frame), ``classical:<feature>`` (one classical description of a whole
            picture, of the package vidkin-research), ``timm:<model>``, ``torchvision:<model>``,
            ``onnx:<file>`` (any image encoder, see :class:`~vidkin.features.onnx.OnnxExtractor`), the folder
            of a trained model (``path/to/model`` or ``model:path/to/model``), or a prefix that was registered or
            belongs to an installed plugin (entry point group ``vidkin.extractors``). Settings follow a question mark:
            ``timm:mobilenetv2_100?pad_type=same&size=256`` (see
            :class:`~vidkin.features.backbone.BackboneExtractor`).
        weights: A safetensors file of the network's weights; without one they come from the local cache or the hub.
            For ``classical:<feature>`` the fitted state; not accepted by ``classical`` and ``onnx:<file>``.
        whitening: A safetensors file written by :meth:`vidkin.features.Whitening.save`.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``: what :func:`vidkin.features.set_device` set, else CUDA if it
            is there. ``classical`` computes on the processor in any case.

    Raises:
        UnknownExtractorError: No extractor has this name; the message lists the available ones.
        WeightsUnavailableError: The weights are not given, not cached, and cannot be downloaded.
        InvalidArgumentError: A setting is invalid.
    """
    name = default_extractor(whitening) if name is None else name
    parsed = parse_name(name) if name else None
    factory = _EXTRACTORS.find(_prefix(parsed), addressed=parsed.address is not None) if parsed else None
    if factory is None:
        raise _EXTRACTORS.unknown(name)
    return factory(name, weights=weights, whitening=whitening, device=device)


def available_extractors() -> tuple[str, ...]:
    """The forms of names that :func:`open_extractor` accepts, sorted."""
    return _EXTRACTORS.usages()


def absolute_name(name: str) -> str:
    """The name as it is stored: with absolute paths of models and ONNX files; other names are unchanged."""
    parsed = parse_name(name)
    prefix = _prefix(parsed)
    if prefix not in _PATH_PREFIXES:
        return name
    path = Path(parsed.path.removeprefix(f"{prefix}:")).expanduser().absolute()
    return f"{prefix}:{path}{name[len(parsed.path) :]}"


def register_extractor(prefix: str, factory: ExtractorFactory, *, usage: str | None = None) -> None:
    """Make :func:`open_extractor` accept the names ``prefix`` and ``prefix:...`` (with or without ``?settings``).

    Args:
        prefix: A new prefix of letters, digits, ``_`` and ``-``.
        factory: Function called as ``factory(name, weights=..., whitening=..., device=...)``.
        usage: How the name is written, for lists and messages; default ``prefix:<name>``.

    Raises:
        InvalidArgumentError: The prefix is malformed or already in use.
    """
    _EXTRACTORS.register(prefix, factory, usage=usage)


def _prefix(name: Name) -> str:
    """The part of a name that selects the factory; a registered name comes before a folder of the same name."""
    if name.prefix not in _EXTRACTORS and (Path(name.path).expanduser() / _MODEL_FILE).is_file():
        return _MODEL_PREFIX
    return name.prefix
