"""What the comparison on critical clips trains and evaluates on: highlight videos composed of recordings, in parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import write_text
from vidkin._base.values import read_json
from vidkin.datasets import VideoAnnotation, read_shot_annotations
from vidkin.shots.judging import TrueShot
from vidkin_research.heads import HeadStore
from vidkin_research.made.highlights import HIGHLIGHT_PLACES, Part, build_highlights
from vidkin_research.runs import OnStudyProgress

__all__ = ["ALL_PLACES", "HighlightPart", "compose_splits"]

ALL_PLACES = "all places"


@dataclass(frozen=True, slots=True)
class HighlightPart:
    """Labelled videos with their features.

    Attributes:
        labels: One entry for every video.
        features: Features [T, F] of each video.
        rate: Frames per second of the videos.
    """

    labels: tuple[VideoAnnotation, ...]
    features: tuple[NDArray[np.float32], ...]
    rate: float

    def stretches(self) -> list[list[tuple[int, int]]]:
        """Frames [start, end) of every shot of every video."""
        return [[(shot.start, shot.end) for shot in label.shots] for label in self.labels]

    def critical(self) -> list[list[bool]]:
        """Whether each shot is labeled critical."""
        return [[shot.critical is not None for shot in label.shots] for label in self.labels]

    def truth(self) -> list[list[TrueShot]]:
        """The labeled shots with the seconds at which something begins to happen."""
        return [
            [
                TrueShot(
                    shot.start, shot.end, None if shot.critical is None else shot.critical[0] / self.rate
                )
                for shot in label.shots
            ]
            for label in self.labels
        ]

    def counts(self) -> dict[str, int]:
        """How many shots there are, and how many are critical."""
        flags = [flag for video in self.critical() for flag in video]
        return {"shots": len(flags), "critical": sum(flags)}


def compose_splits(
    data: Path,
    work: Path,
    store: HeadStore,
    *,
    rate: int,
    train: tuple[int, int],
    test: tuple[int, int],
    held_out_videos: int,
    on_progress: OnStudyProgress,
) -> Mapping[str, tuple[HighlightPart, HighlightPart]]:
    """Name of a split -> its training and test split: all places first, then each place held out from training.

    Args:
        data: Folder of the recordings.
        work: Where composed videos are stored.
        store: Makes the features.
        rate: Frames per second of the composed videos.
        train: (videos, seed) of the training split with all places.
        test: (videos, seed) of the test split with all places.
        held_out_videos: Videos of each part where one place is held out; 0 holds out none.
        on_progress: Called while features are made.
    """

    def compose(
        name: str, videos: int, seed: int, which: Part, places: Sequence[str] | None
    ) -> HighlightPart:
        folder = work / "highlights" / name
        record = folder / "made.json"
        settings = {"part": which, "videos": videos, "seed": seed, "places": places, "rate": rate}
        if record.is_file() and read_json(record) == settings:
            labels = read_shot_annotations(folder / "labels.json")
        else:
            labels = build_highlights(
                data, folder, part=which, videos=videos, seed=seed, rate=rate, places=places
            )
            write_text(record, json.dumps(settings))
        features = store.features([label.video for label in labels], on_progress=on_progress)
        return HighlightPart(tuple(labels), tuple(features), rate)

    splits = {ALL_PLACES: (compose("train", *train, "train", None), compose("test", *test, "test", None))}
    for number, place in enumerate(HIGHLIGHT_PLACES if held_out_videos else ()):
        others = [other for other in HIGHLIGHT_PLACES if other != place]
        splits[f"{place} held out"] = (
            compose(f"train-without-{place}", held_out_videos, 10 + number, "train", others),
            compose(f"test-{place}", held_out_videos, 20 + number, "test", [place]),
        )
    return splits
