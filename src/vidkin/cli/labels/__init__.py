"""``vidkin labels``: labels of shots from other formats, and of several annotators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vidkin.cli.lazy import LazyCommand, LazyGroup, new_app

__all__ = ["app"]


class _Labels(LazyGroup):
    table: ClassVar[Mapping[str, LazyCommand]] = {
        "soccernet": LazyCommand(
            "vidkin.cli.labels.soccernet:soccernet",
            "Turn the labels of SoccerNet-v2 games into labels for `vidkin train-shots`.",
        ),
        "merge": LazyCommand(
            "vidkin.cli.labels.merge:merge", "Make one file of labels from those of several annotators."
        ),
    }


app = new_app("labels", _Labels)


@app.callback()
def labels() -> None:
    """Make labels of shots for `vidkin train-shots`: from SoccerNet-v2, or from several annotators."""
