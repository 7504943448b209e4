"""How positive clips are made from unlabeled videos, as settings of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vidkin._base.checks import check_at_least, check_positive
from vidkin._base.docstrings import describe_settings
from vidkin._base.toml_tables import from_table
from vidkin.datasets.augmentation.clips.temporal import TemporalSettings
from vidkin.datasets.augmentation.clips.views import StrongSettings

__all__ = ["ClipSettings", "clip_settings", "describe_clip_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSettings:
    """How unlabeled videos become clips; the defaults are the published values.

    Attributes:
        rate: Frames per second.
        window: Number of frames in a stretch of video, from which all views of one clip are made: long videos are cut
            into stretches of about this length.
        length: Maximum number of frames in a view.
        side: Side of the edited squares in pixels; the whole frame is squeezed into a square.
        views: Number of strong views of each stretch that are made once, before the first step, and kept as
            descriptors; 0 makes new views at every step.
        teacher: Extractor whose similarities of unedited frames are the labels of `frame_quad_linear_ap`; empty: the
            model's extractor.
        teacher_weights: A safetensors file with the teacher's weights; empty: its own weights.
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
    """The settings in ``data.options`` of a recipe; missing settings get their defaults.

    Args:
        options: Settings of :class:`ClipSettings`; ``strong`` is a table of :class:`StrongSettings`, in which
            ``temporal`` is a table of :class:`TemporalSettings`.

    Raises:
        InvalidArgumentError: A setting is unknown or not allowed.
    """
    return from_table(ClipSettings, options, "data.options")


def describe_clip_settings() -> dict[str, Any]:
    """The meaning of each setting, in the tables of ``data.options``."""
    strong = {**describe_settings(StrongSettings), "temporal": describe_settings(TemporalSettings)}
    return {**describe_settings(ClipSettings), "strong": strong}
