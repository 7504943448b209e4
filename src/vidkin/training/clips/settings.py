"""How positive clips are made from videos without labels, as settings of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vidkin._base.checks import check_at_least, check_positive
from vidkin._base.docstrings import describe_settings
from vidkin._base.toml_tables import from_table
from vidkin.datasets.augmentation.clips.temporal import TemporalSettings
from vidkin.datasets.augmentation.clips.views import StrongSettings

__all__ = ["ClipSettings", "clip_options", "clip_settings", "describe_clip_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSettings:
    """How videos without labels become clips; the defaults are the published ones.

    Attributes:
        rate: Frames a second.
        window: Frames of a stretch of a video, from which all views of one clip are made: long videos are cut into
            stretches of about this length.
        length: Most frames of a view.
        side: Side of the squares that are edited, pixels; the whole frame is squeezed into a square.
        views: Strong views of each stretch that are made once, before the first step, and kept as descriptors; 0 makes
            new ones at every step.
        teacher: Extractor whose similarities of unedited frames are the labels of `frame_quad_linear_ap`; empty: that
            of the model.
        teacher_weights: Its safetensors file of weights; empty: its own.
        strong: Edits of the strong view.

    Raises:
        InvalidArgumentError: A value is out of range.
    """

    rate: float = 1.0
    window: int = 56
    length: int = 28
    side: int = 96
    views: int = 0
    teacher: str = ""
    teacher_weights: str = ""
    strong: StrongSettings = field(default_factory=StrongSettings)

    def __post_init__(self) -> None:
        check_positive(rate=self.rate)
        check_at_least(4, window=self.window, length=self.length)
        check_at_least(16, side=self.side)
        check_at_least(0, views=self.views)


def clip_settings(options: Mapping[str, Any]) -> ClipSettings:
    """The settings in ``data.options`` of a recipe; what is not named has its default.

    Args:
        options: Settings of :class:`ClipSettings`; ``strong`` is a table with settings of :class:`StrongSettings`, in
            which ``temporal`` is a table with settings of :class:`TemporalSettings`.

    Raises:
        InvalidArgumentError: A setting is unknown or not allowed.
    """
    return from_table(ClipSettings, options, "data.options")


def clip_options(settings: ClipSettings) -> dict[str, Any]:
    """All settings as the table that :func:`clip_settings` reads."""
    return asdict(settings)


def describe_clip_settings() -> dict[str, Any]:
    """The meaning of each setting, in the tables of ``data.options``."""
    strong = {**describe_settings(StrongSettings), "temporal": describe_settings(TemporalSettings)}
    return {**describe_settings(ClipSettings), "strong": strong}
