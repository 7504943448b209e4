"""Open shot detectors by name, and register new ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from vidkin._base.arguments import check_arguments
from vidkin._base.registry import Registry, missing_research, parse_name
from vidkin.errors import InvalidArgumentError
from vidkin.models import read_model_info
from vidkin.shots.contract import PlanesDetector, ShotDetector

DetectorFactory = Callable[..., ShotDetector | PlanesDetector]
"""Callable that creates a detector, usually its class.

Keyword-only parameters of type int, float or str are settings. A parameter ``model`` receives the model folder in
``prefix:FOLDER``.
"""

_CUTS = "vidkin.shots.detector:CutDetector"
_MODEL_FILE = "config.toml"
# Other packages register detectors as entry points: prefix = "module:factory".
_DETECTORS: Registry[DetectorFactory] = Registry(
    "shot detector",
    {"cuts": _CUTS, "default": _CUTS},
    group="vidkin.shot_detectors",
    researched=True,
)


@check_arguments
def open_detector(name: str = "default") -> ShotDetector | PlanesDetector:
    """Open a new detector for one video.

    Args:
        name: One of `available_detectors` (``default`` is ``cuts``), which include those of other packages (entry point
            group ``vidkin.shot_detectors``), or the folder of a trained model. Settings follow after a question mark:
            ``shotdetect?threshold=75``, ``models/cuts?similarity=1``.

    Raises:
        InvalidArgumentError: The name or a setting is unknown; the message lists the known ones.
        MissingPartError: The detector requires a package that is not installed.
    """
    parsed = parse_name(name)
    factory, prefix, folder = _find(name)
    parameters = dict(inspect.signature(factory, eval_str=True).parameters)
    model = parameters.pop("model", None)
    if folder is not None and model is None:
        raise InvalidArgumentError(f"{prefix} must be used without a folder, got {name!r}")
    if folder is None and model is not None and model.default is model.empty:
        raise InvalidArgumentError(f"{prefix} requires the folder of a model, {prefix}:FOLDER, got {name!r}")
    settings = parsed.typed_settings(_setting_types(factory))
    detector = factory(**settings) if folder is None else factory(model=Path(folder), **settings)
    detector.name = name
    return detector


@check_arguments
def with_threshold(name: str, threshold: float) -> str:
    """Return a detector name with the given threshold; higher thresholds find fewer transitions.

    The meaning depends on the detector: for ``default`` and ``cuts``, the threshold is the minimum probability, in
    (0, 1), of hard and gradual transitions; for ``content``, ``adaptive`` and ``shotdetect``, it is a difference.

    Raises:
        InvalidArgumentError: There is no detector with this name, it has no threshold, or the probability is out of
            range.
    """
    known = _setting_types(_find(name)[0])
    for settings in (("threshold",), ("hard", "gradual")):
        if known.keys() >= set(settings):
            if len(settings) > 1 and not 0 < threshold < 1:
                raise InvalidArgumentError(f"threshold must be above 0 and below 1, got {threshold:g}")
            joint = "&" if "?" in name else "?"
            return name + joint + "&".join(f"{setting}={threshold:g}" for setting in settings)
    raise InvalidArgumentError(f"detector {name!r} has no threshold; its settings are {', '.join(known) or 'none'}")


def available_detectors() -> tuple[str, ...]:
    """Return the sorted names that `open_detector` accepts, including detectors of other packages."""
    return _DETECTORS.usages()


@check_arguments
def register_detector(prefix: str, factory: DetectorFactory, *, usage: str | None = None) -> None:
    """Register a detector, so that `open_detector` accepts ``prefix``.

    Args:
        prefix: New prefix, consisting of letters, digits, ``_`` and ``-``.
        factory: Callable that creates the detector; see `DetectorFactory`.
        usage: Form of the name to show in lists and messages; default: ``prefix``.

    Raises:
        InvalidArgumentError: The prefix is malformed or already in use.
    """
    _DETECTORS.register(prefix, factory, usage=usage)


def _find(name: str) -> tuple[DetectorFactory, str, str | None]:
    """Return the factory for this name, its prefix, and its model folder."""
    parsed = parse_name(name)
    prefix, folder = parsed.prefix, parsed.address
    factory = _DETECTORS.find(prefix)
    if factory is None and parsed.path and (Path(parsed.path) / _MODEL_FILE).is_file():
        prefix, folder = "learned", parsed.path
        if read_model_info(folder).config.kind == "deep_sbd":
            prefix = "deepsbd"
        factory = _DETECTORS.find(prefix)
        missing = missing_research(f"{name}: using a trained model as a shot detector") if factory is None else None
        if missing is not None:
            raise missing
    if factory is None:
        raise InvalidArgumentError(
            f"{_DETECTORS.unknown(name)}, or use the folder of a trained model (from `vidkin train-shots`)"
        )
    return factory, prefix, folder


def _setting_types(factory: DetectorFactory) -> dict[str, type]:
    """Return the settings that a factory accepts, and the types to convert their text to."""
    types: dict[str, type] = {}
    for parameter in inspect.signature(factory, eval_str=True).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "model":
            # int, float or str, possibly in a union with other types
            choices = get_args(parameter.annotation) or (parameter.annotation,)
            types[parameter.name] = next((kind for kind in (int, float) if kind in choices), str)
    return types
