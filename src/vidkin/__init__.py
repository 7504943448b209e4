"""vidkin finds kindred video: it learns, indexes, searches, localises and cuts by fine-grained similarity."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vidkin.errors import MediaError, VidkinError

__version__ = "0.1.0"

__all__ = ["MediaError", "VidkinError", "__version__"]

# Public name -> module that defines it. Looked up on first use: importing vidkin loads neither torch nor a database.
_HOMES = {
    "MediaError": "vidkin.errors",
    "VidkinError": "vidkin.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vidkin' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
