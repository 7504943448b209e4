"""Frames of copies with three levels of similarity: the same moment under edits, the same location, other locations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin_research.copies.material import CopyMaterial, GalleryVideo

__all__ = ["FrameSet", "gather_frames"]

Features = NDArray[np.float32]

# Maximum distance in seconds of a frame from a whole second of its source; frames in between are left out.
_NEAR = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class FrameSet:
    """Query and gallery frames.

    Attributes:
        features: [N, F] features from the frozen network.
        moments: [N] index of the moment each frame shows; every frame of an unrelated video is a separate moment.
        places: [N] index of the scene.
        is_query: [N], whether the frame is an unedited frame of a query.
    """

    features: Features
    moments: NDArray[np.int64]
    places: NDArray[np.int64]
    is_query: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.features)

    def relevance(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Return the query rows, all other rows, and the relevance levels [Q, G]: 2 for the same moment, 1 for the same
        location, 0 otherwise."""
        queries, gallery = np.flatnonzero(self.is_query), np.flatnonzero(~self.is_query)
        levels = (self.places[queries][:, None] == self.places[gallery]).astype(np.int64)
        levels += self.moments[queries][:, None] == self.moments[gallery]
        return queries, gallery, levels


def gather_frames(
    material: CopyMaterial, features: Callable[[Sequence[Path]], list[Features]], rate: float
) -> FrameSet:
    """Gather the frames at whole seconds of the queries, and all frames of videos that are not copies.

    Args:
        material: Queries and gallery, with ``rate`` frames per second.
        features: Function that returns the frame features [T, F] of each file.
        rate: Frames per second of the files.
    """
    names: dict[str, int] = {}
    numbers = {query.name: number for number, query in enumerate(material.queries)}
    rows: list[Features] = []
    moments: list[int] = []
    places: list[int] = []
    is_query: list[bool] = []

    def keep(values: Features, moment: int, scene: str, *, of_query: bool) -> None:
        rows.append(values)
        moments.append(moment)
        places.append(names.setdefault(scene, len(names)))
        is_query.append(of_query)

    # Query moments come first, with a thousand indices per query; other moments follow.
    free = 1000 * len(numbers)
    for query, values in zip(material.queries, features([query.path for query in material.queries]), strict=True):
        for frame, row in enumerate(values):
            second = _second(frame / rate)
            if second is not None:
                keep(row, 1000 * numbers[query.name] + second, query.recording.scene, of_query=True)
    for video, values in zip(material.gallery, features([video.path for video in material.gallery]), strict=True):
        for frame, row in enumerate(values):
            if video.source is None:
                keep(row, free, video.scene, of_query=False)
                free += 1
            elif (second := _second(_source_time(video, frame / rate))) is not None:
                keep(row, 1000 * numbers[video.source.name] + second, video.scene, of_query=False)
    return FrameSet(np.stack(rows), np.array(moments), np.array(places), np.array(is_query))


def _source_time(video: GalleryVideo, time: float) -> float | None:
    """Return the time in the query that corresponds to a time in a copy; None for other footage."""
    for segment in video.segments:
        if segment.edited_start <= time < segment.edited_end:
            fraction = (time - segment.edited_start) / (segment.edited_end - segment.edited_start)
            return segment.source_start + fraction * (segment.source_end - segment.source_start)
    return None


def _second(time: float | None) -> int | None:
    """Return the whole second near a time; None if there is none nearby."""
    if time is None or abs(time - round(time)) > _NEAR:
        return None
    return round(time)
