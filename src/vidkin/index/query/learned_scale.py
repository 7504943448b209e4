"""Calibrate the scores of a trained comparator on an index, by measuring how high it scores unrelated videos there.

A model comes with score statistics for unrelated photographs and training videos, but the videos of an index may be
more similar to each other: from one camera, one show, or on one subject.
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
from vidkin.index.storage.files import reading, write_atomically
from vidkin.index.storage.place import Place
from vidkin.match import LearnedScorer, open_scorer
from vidkin.similarity import FrameFeatures
from vidkin.similarity.scale import UNRELATED

# Maximum number of videos to compare with each other: 496 pairs.
_MAX_VIDEOS = 32
# Minimum number of videos: 66 pairs; with fewer, the 99th percentile is unreliable.
_MIN_VIDEOS = 12

# Duration in seconds of the clip from the middle of each video that is compared.
_SECONDS = 60.0

# Relative growth of the index after which the scale is measured again.
_GROWTH = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScale:
    """Scale of a comparator's scores for the videos of an index.

    Attributes:
        scorer: Identity of the scorer the scale was measured with.
        total: Number of videos in the index when the scale was measured.
        videos: Number of videos compared with each other.
        pairs: Number of unrelated pairs among them: those that the built-in scorer scores below 0.2.
        median, high: m and u of :class:`~vidkin.match.LearnedScorer`: m from the model, and the larger of u from the
            model and the 99th percentile of these pairs.
        highest: Highest score of an unrelated pair on this scale, in [0, 1].
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
        """Whether enough videos were compared for the scale to be reliable."""
        return self.videos >= _MIN_VIDEOS and self.pairs > 0

    def is_outgrown(self, total: int) -> bool:
        """Whether the index has grown enough to measure the scale again."""
        return total >= (1 + _GROWTH) * self.total

    def applied(self, scorer: LearnedScorer) -> LearnedScorer:
        """Return the scorer with this scale; unchanged if the scale was measured with other weights or settings."""
        if not self.is_measured or self.scorer != scorer.identity:
            return scorer
        return replace(scorer, unrelated=(self.median, self.high))

    @classmethod
    def open(cls, place: Place) -> LearnedScale | None:
        """Load the scale of an index; None if it has not been measured.

        Raises:
            CollectionDamagedError: The file cannot be read.
        """
        with reading(place.address(cls.FILE)):
            content = place.read(cls.FILE)
            return None if content is None else cls(**_check_values(parse_json(content)))

    def save(self, place: Place) -> None:
        """Save the scale in the index, atomically."""
        write_atomically(place, self.FILE, json.dumps(asdict(self)).encode())


def require_proven(scale: LearnedScale | None, threshold: float, index: str) -> None:
    """Require that no unrelated pair in the index reaches the threshold for copies.

    Args:
        scale: Scale of the index; None if it has not been measured.
        threshold: Minimum score for copies.
        index: Address of the index, for error messages.

    Raises:
        CollectionMismatchError: An unrelated pair reaches the threshold, or the scores of unrelated pairs are unknown.
    """
    if scale is None:
        raise CollectionMismatchError(
            f"{index}: the model's scores have not been calibrated on this index, so copies cannot be identified; run "
            "`vidkin index` on its folders to calibrate them"
        )
    if not scale.is_measured:
        raise CollectionMismatchError(
            f"{index}: {scale.videos} videos with {scale.pairs} unrelated pairs are too few to calibrate the model's "
            f"scores, so copies cannot be identified; add videos (at least {_MIN_VIDEOS} in total), or index with the "
            "default extractor to find copies"
        )
    if scale.highest >= threshold:
        raise CollectionMismatchError(
            f"{index}: the model scores unrelated videos up to {scale.highest:.2f} ({scale.pairs} pairs), so a score "
            f"of {threshold:g} does not identify a copy; choose a threshold above {scale.highest:.2f}, or index with "
            "the default extractor to find copies"
        )


def measure_scale(store: VectorStore, scorer: LearnedScorer) -> LearnedScale:
    """Measure the scale on all pairs of up to 32 videos, chosen at even steps from the index sorted by path.

    Related pairs are excluded. They are recognized independently of the comparator, by the built-in scorer, whose scale
    is known.

    Args:
        store: Store of the index.
        scorer: The scorer with the scale from its model.
    """
    ids = [record.id for record in store.videos() if record.status == "ok" and record.frames]
    count = min(len(ids), _MAX_VIDEOS)
    chosen = [ids[position * len(ids) // count] for position in range(count)]
    clips = [_middle_clip(features) for features in store.read_many(chosen)]
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


def _middle_clip(features: FrameFeatures) -> FrameFeatures:
    times = features.timestamps
    start = max(times[0], (times[0] + times[-1] - _SECONDS) / 2)
    return features.frames(np.flatnonzero((times >= start) & (times <= start + _SECONDS)))


def _check_values(values: Any) -> dict[str, Any]:
    kinds: dict[str, Sequence[type]] = {
        "scorer": (str,),
        **dict.fromkeys(("total", "videos", "pairs"), (int,)),
        **dict.fromkeys(("median", "high", "highest"), (int, float)),
    }
    if not isinstance(values, dict) or set(values) != set(kinds):
        raise ValueError("it contains invalid values")
    for name, allowed in kinds.items():
        if type(values[name]) not in allowed or (str not in allowed and not np.isfinite(values[name])):
            raise ValueError("it contains invalid values")
    if not values["median"] < values["high"]:
        raise ValueError("it contains invalid values")
    return values
