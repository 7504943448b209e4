"""How high a trained comparator scores unrelated videos of an index: what its scores mean there.

A model knows how high it scores unrelated photographs, and unrelated videos of its training. The videos of an index can
be more alike than those: of one camera, one show, one subject.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from vidkin._base.values import parse_json
from vidkin.errors import CollectionMismatchError
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import reading, write_whole
from vidkin.index.storage.place import Place
from vidkin.match import LearnedScorer, open_scorer
from vidkin.similarity import FrameFeatures
from vidkin.similarity.scale import UNRELATED

# Pairs among this many videos: 496.
_MOST_VIDEOS = 32
# 66 pairs; fewer say little about the 99th percentile.
_FEWEST_VIDEOS = 12

# Of each video the middle, at most this many seconds.
_SECONDS = 60.0

# Share of videos added since, from which on the scale is measured again.
_GROWTH = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScale:
    """What the scores of a comparator mean on the videos of an index.

    Attributes:
        scorer: Identity of the scorer it was measured with.
        total: Number of videos in the index then.
        videos: Number of videos that were compared, each with each.
        pairs: Number of unrelated pairs among them, to which the built-in score of the same frames gives less than .2.
        median, high: m and u of :class:`~vidkin.similarity.LearnedScorer`: its own m, and the larger one of its own u
            and the 99th percentile of these pairs.
        highest: The highest score of such a pair on this scale, in [0, 1].
    """

    FILE = "learned_scale.json"

    scorer: str
    total: int
    videos: int
    pairs: int
    median: float
    high: float
    highest: float

    @property
    def is_measured(self) -> bool:
        """Whether enough videos were compared to say something."""
        return self.videos >= _FEWEST_VIDEOS and self.pairs > 0

    def is_outgrown(self, total: int) -> bool:
        """Whether so many videos were added since that it should be measured again."""
        return total >= (1 + _GROWTH) * self.total

    def applied(self, scorer: LearnedScorer) -> LearnedScorer:
        """The scorer on this scale; itself if the scale belongs to other weights or settings."""
        if not self.is_measured or self.scorer != scorer.identity:
            return scorer
        return replace(scorer, unrelated=(self.median, self.high))

    @classmethod
    def open(cls, place: Place) -> LearnedScale | None:
        """The scale of an index; None if it was not measured yet.

        Raises:
            CollectionDamagedError: The file cannot be read.
        """
        with reading(place.address(cls.FILE)):
            content = place.read(cls.FILE)
            return None if content is None else cls(**_checked(parse_json(content)))

    def save(self, place: Place) -> None:
        """Write to the index, whole or not at all."""
        write_whole(place, self.FILE, json.dumps(asdict(self)).encode())


def require_proven(scale: LearnedScale | None, threshold: float, index: str) -> None:
    """Refuse to call videos copies by a score that unrelated videos of the index reach, or may reach.

    Args:
        scale: What was measured in the index; None if nothing was.
        threshold: From this score on two videos are called copies.
        index: Address of the index, for messages.

    Raises:
        CollectionMismatchError: An unrelated pair reaches the threshold, or what such pairs reach is not known.
    """
    if scale is None:
        raise CollectionMismatchError(
            f"{index}: it was never measured how high the model scores unrelated videos here, so that no score means a "
            "copy; `vidkin index` on its folders measures it"
        )
    if not scale.is_measured:
        raise CollectionMismatchError(
            f"{index}: {scale.videos} videos with {scale.pairs} unrelated pairs are too few to say how high the model "
            f"scores unrelated videos, so that no score means a copy; add videos ({_FEWEST_VIDEOS} are enough), or "
            "index with the default extractor to find copies"
        )
    if scale.highest >= threshold:
        raise CollectionMismatchError(
            f"{index}: the model gives an unrelated pair of its videos a score of {scale.highest:.2f} (highest of "
            f"{scale.pairs} pairs), so that {threshold:g} and more does not mean a copy; choose a threshold above it, "
            "or index with the default extractor to find copies"
        )


def measure_scale(store: VectorStore, scorer: LearnedScorer) -> LearnedScale:
    """Compare up to 32 videos of an index, evenly spaced by path, each with each.

    Pairs that show the same say nothing about unrelated videos. They are recognized by other evidence than the score
    that is measured: the built-in score of the same frames, whose scale is known.

    Args:
        store: Store of the index.
        scorer: The scorer with the scale of its model.
    """
    ids = [record.id for record in store.videos() if record.status == "ok" and record.frames]
    count = min(len(ids), _MOST_VIDEOS)
    chosen = [ids[position * len(ids) // count] for position in range(count)]
    clips = [_middle(features) for features in store.read_many(chosen)]
    own = [scorer.raw_score(clip, clip) for clip in clips]
    raw: list[float] = []
    itself: list[float] = []
    for first, clip in enumerate(clips):
        others = range(first + 1, len(clips))
        builtin = open_scorer("copies").score(clip, [clips[second] for second in others])
        for second, known in zip(others, builtin, strict=True):
            if known.score < UNRELATED:
                raw.append(scorer.raw_score(clip, clips[second]))
                itself.append(min(own[first], own[second]))
    median, high = scorer.unrelated
    if raw:
        high = max(high, float(np.quantile(raw, 0.99)))
    placed = replace(scorer, unrelated=(median, high))
    scores = [placed.scaled(value, whole) for value, whole in zip(raw, itself, strict=True)]
    return LearnedScale(
        scorer=scorer.identity,
        total=len(ids),
        videos=len(clips),
        pairs=len(raw),
        median=median,
        high=high,
        highest=max(scores, default=0.0),
    )


def _middle(features: FrameFeatures) -> FrameFeatures:
    times = features.timestamps
    start = max(times[0], (times[0] + times[-1] - _SECONDS) / 2)
    return features.frames(np.flatnonzero((times >= start) & (times <= start + _SECONDS)))


def _checked(values: Any) -> dict[str, Any]:
    kinds: dict[str, Sequence[type]] = {
        "scorer": (str,),
        **dict.fromkeys(("total", "videos", "pairs"), (int,)),
        **dict.fromkeys(("median", "high", "highest"), (int, float)),
    }
    if not isinstance(values, dict) or set(values) != set(kinds):
        raise ValueError("its values are not what was written")
    for name, allowed in kinds.items():
        if type(values[name]) not in allowed or (str not in allowed and not np.isfinite(values[name])):
            raise ValueError("its values are not what was written")
    if not values["median"] < values["high"]:
        raise ValueError("its values are not what was written")
    return values
