"""vidkin finds kindred videos: fine-grained similarity for indexing, search, localization, training and shots."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vidkin._version import __version__

if TYPE_CHECKING:
    from vidkin._base.stopping import StoppedError, stopping_when
    from vidkin.errors import CollectionNotFoundError, InvalidArgumentError, MediaError, VidkinError
    from vidkin.index import Comparison, DuplicateGroup, DuplicateMember, Index, IngestReport, Match, compare, embed
    from vidkin.media.notebook import Results
    from vidkin.rendering.notebook import show
    from vidkin.shots import Shot, ShotDetection, Shots, detect_shots
    from vidkin.shots.train import train_shots
    from vidkin.similarity import Segment
    from vidkin.training import Evaluation, TrainingReport, evaluate, train

__all__ = [
    "CollectionNotFoundError",
    "Comparison",
    "DuplicateGroup",
    "DuplicateMember",
    "Evaluation",
    "Index",
    "IngestReport",
    "InvalidArgumentError",
    "Match",
    "MediaError",
    "Results",
    "Segment",
    "Shot",
    "ShotDetection",
    "Shots",
    "StoppedError",
    "TrainingReport",
    "VidkinError",
    "__version__",
    "compare",
    "detect_shots",
    "embed",
    "evaluate",
    "show",
    "stopping_when",
    "train",
    "train_shots",
]

# Package that exports each public name. Names are imported on first use, so that importing vidkin loads no database,
# and torch is loaded only for training.
_HOMES = {
    "CollectionNotFoundError": "vidkin.errors",
    "Comparison": "vidkin.index",
    "DuplicateGroup": "vidkin.index",
    "DuplicateMember": "vidkin.index",
    "Evaluation": "vidkin.training",
    "Index": "vidkin.index",
    "IngestReport": "vidkin.index",
    "InvalidArgumentError": "vidkin.errors",
    "Match": "vidkin.index",
    "MediaError": "vidkin.errors",
    "Results": "vidkin.media.notebook",
    "Segment": "vidkin.similarity",
    "Shot": "vidkin.shots",
    "ShotDetection": "vidkin.shots",
    "Shots": "vidkin.shots",
    "StoppedError": "vidkin._base.stopping",
    "TrainingReport": "vidkin.training",
    "VidkinError": "vidkin.errors",
    "compare": "vidkin.index",
    "detect_shots": "vidkin.shots",
    "embed": "vidkin.index",
    "evaluate": "vidkin.training",
    "show": "vidkin.rendering.notebook",
    "stopping_when": "vidkin._base.stopping",
    "train": "vidkin.training",
    "train_shots": "vidkin.shots.train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vidkin' has no attribute {name!r}")
    from vidkin._base.registry import name_missing_parts

    with name_missing_parts(f"vidkin.{name}"):
        value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
