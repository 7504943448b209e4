"""From a name to a shot detector: the one place where detectors are resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from vidkin._base.names import load_attribute, parse_name
from vidkin.errors import InvalidArgumentError
from vidkin.shots.contract import PlanesDetector, ShotDetector

__all__ = ["DetectorFactory", "available_detectors", "open_detector", "register_detector"]

DetectorFactory = Callable[..., "ShotDetector | PlanesDetector"]
"""Makes a detector; takes its settings as keyword arguments, and after a colon in the name ``model``."""

# Prefix -> (factory or where to find it, settings and their types, whether a model follows after a colon).
_Entry = tuple["DetectorFactory | str", Mapping[str, type], bool]
_ROOM = "vidkin.shots.baselines"
_DEFAULT = "band"
_DETECTORS: dict[str, _Entry] = {
    "adaptive": (
        f"{_ROOM}.pyscenedetect:AdaptiveBaseline",
        {"threshold": float, "min_scene_len": int, "min_content_val": float},
        False,
    ),
    "band": (
        "vidkin.shots.band.detector:BandDetector",
        {"weights": str, "hard": float, "gradual": float},
        False,
    ),
    "content": (f"{_ROOM}.pyscenedetect:ContentBaseline", {"threshold": float, "min_scene_len": int}, False),
    "deepsbd": (f"{_ROOM}.deep_sbd.detector:open_deep_sbd", {"similarity": float}, True),
    "learned": ("vidkin.shots.learned.detector:open_learned", {}, True),
    "shotdetect": (
        f"{_ROOM}.shotdetect:ShotDetectBaseline",
        {"threshold": float, "min_scene_len": int},
        False,
    ),
    "svd": (f"{_ROOM}.svd.detector:SvdBaseline", {}, False),
}


def open_detector(name: str = "default") -> ShotDetector | PlanesDetector:
    """A fresh detector, for one video.

    Args:
        name: One of `available_detectors`, ``default`` (which is ``band``), or the folder of a trained model.
            Settings follow a question mark: ``shotdetect?threshold=75``, ``models/cuts?similarity=1``.

    Raises:
        InvalidArgumentError: Nothing answers to this name, or a setting is not allowed; the message lists what is.
        MissingPartError: It needs a package that is not installed.
    """
    parsed = parse_name(name)
    prefix = _DEFAULT if parsed.path == "default" else parsed.prefix
    model = parsed.address
    entry = _DETECTORS.get(prefix)
    if entry is None and parsed.path and (Path(parsed.path) / "config.toml").is_file():
        prefix, model = _prefix_of(Path(parsed.path)), parsed.path
        entry = _DETECTORS[prefix]
    if entry is None or (model is not None) != entry[2]:
        raise InvalidArgumentError(
            f"{name!r} is not a shot detector; choose from default, {', '.join(available_detectors())}, "
            "or the folder of a trained model (`vidkin train-shots` makes one)"
        )
    arguments = parsed.typed_settings(entry[1])
    if model is not None:
        arguments["model"] = Path(model)
    detector = _factory(prefix)(**arguments)
    detector.name = name
    return detector


def available_detectors() -> tuple[str, ...]:
    """The forms of name that `open_detector` takes, sorted."""
    return tuple(sorted(f"{prefix}:FOLDER" if entry[2] else prefix for prefix, entry in _DETECTORS.items()))


def register_detector(
    prefix: str, factory: DetectorFactory, *, settings: Mapping[str, type] | None = None, model: bool = False
) -> None:
    """Let `open_detector` answer to ``prefix``, or with ``model`` to ``prefix:FOLDER``.

    Args:
        prefix: Letters, digits, ``_`` and ``-``; not one that is taken.
        factory: Called with the settings given, and with ``model=Path``.
        settings: Names of the settings and their types (int, float, str).
        model: A folder follows after a colon.

    Raises:
        InvalidArgumentError: The prefix is malformed or taken.
    """
    if not prefix or not prefix.replace("_", "").replace("-", "").isalnum():
        raise InvalidArgumentError(
            f"a detector's prefix is made of letters, digits, '_' and '-', given is {prefix!r}"
        )
    if prefix in _DETECTORS:
        raise InvalidArgumentError(
            f"the prefix {prefix!r} is taken; choose one that is not in {available_detectors()}"
        )
    _DETECTORS[prefix] = (factory, dict(settings or {}), model)


def _factory(prefix: str) -> DetectorFactory:
    found, settings, model = _DETECTORS[prefix]
    if isinstance(found, str):
        found = cast("DetectorFactory", load_attribute(found))
        _DETECTORS[prefix] = (found, settings, model)
    return found


def _prefix_of(folder: Path) -> str:
    """Which detector takes the model of a folder."""
    from vidkin.models import read_model_info

    return "deepsbd" if read_model_info(folder).config.kind == "deep_sbd" else "learned"
