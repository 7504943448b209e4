"""Hide the packages needed only for training and plots; used by putting this folder on PYTHONPATH."""

from __future__ import annotations

from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

_MISSING = {
    *("torch", "torchvision", "timm", "scipy", "sklearn", "skimage", "pywt", "onnx", "onnxscript", "matplotlib"),
}
_find_spec = PathFinder.find_spec


def _find(name: str, *places: Any, **settings: Any) -> ModuleSpec | None:
    return None if name.partition(".")[0] in _MISSING else _find_spec(name, *places, **settings)


# Not a function, which would become a method when pytest stores it in a class.
PathFinder.find_spec = partial(_find)  # type: ignore[method-assign, assignment]
