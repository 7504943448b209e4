"""The one place where torchvision and timm are imported.

Package indices offer a torchvision wheel whose compiled operators were linked against CUDA. Beside a CPU-only
torch its library does not load, which torchvision forgives, but its import then describes two operators that
do not exist (``operator torchvision::nms does not exist``). Nothing here detects boxes: it is enough that
the two are *declared*.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch

from vidkin._base.parts import import_part

__all__ = ["import_timm", "import_torchvision"]

# Operators that torchvision describes at import whether or not its library was loaded.
_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}

# A declaration lasts as long as its Library object.
_declared: list[torch.library.Library] = []


@cache
def import_torchvision() -> Any:
    """The module torchvision, even if its compiled operators cannot be loaded.

    Raises:
        MissingPartError: torchvision is not installed.
    """
    if "torchvision" not in sys.modules:
        _declare_missing_operators()
    return import_part("torchvision", extra="train")


@cache
def import_timm() -> Any:
    """The module timm (which imports torchvision).

    Raises:
        MissingPartError: timm or torchvision is not installed.
    """
    import_torchvision()
    return import_part("timm", extra="train")


def _declare_missing_operators() -> None:
    """Declare the operators unless torchvision's own library brings them."""
    specification = importlib.util.find_spec("torchvision")
    if specification is None or not specification.submodule_search_locations:
        return
    for folder in specification.submodule_search_locations:
        for library in sorted(Path(folder).glob("_C*")):
            try:
                torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
            except OSError:
                continue  # linked against another build of torch: this is the case that is mended below
    missing = [schema for name, schema in _SCHEMAS.items() if not hasattr(torch.ops.torchvision, name)]
    if missing:
        fragment = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for schema in missing:
            fragment.define(schema)  # type: ignore[no-untyped-call]
        _declared.append(fragment)
