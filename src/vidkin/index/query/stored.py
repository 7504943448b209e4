"""Prepare stored features for scoring, and cache them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vidkin.index.storage.contract import FeatureReader
from vidkin.similarity import FrameFeatures


def prepare_features(features: FrameFeatures, end: float = 0.0) -> FrameFeatures:
    """Prepare features for a scorer: convert values to single precision and add the end of the video.

    Args:
        features: Features as stored.
        end: End of the video or clip in seconds, according to its container; 0 if unknown.
    """
    return replace(
        features,
        values=features.values.astype(np.float32, copy=False),
        # The container may be wrong, so the end is never before the last frame.
        end=max(end, float(features.timestamps[-1])) if end > 0 else None,
    )


class FeatureCache:
    """Cache of features prepared for scoring, because consecutive searches often score the same videos.

    The features of an id never change, so entries never become stale.

    Args:
        most: Maximum size in bytes.
    """

    def __init__(self, most: int = 64 << 20) -> None:
        self._most, self._bytes = most, 0
        self._cached: OrderedDict[int, FrameFeatures] = OrderedDict()
        # Searches of one index may run in several threads.
        self._lock = threading.Lock()

    def read(self, store: FeatureReader, video_ids: Sequence[int]) -> list[FrameFeatures]:
        """Return features of these videos, prepared by :func:`prepare_features`.

        Raises:
            NotIndexedError: A video is not in the store.
        """
        with self._lock:
            cached = {video_id: self._cached[video_id] for video_id in video_ids if video_id in self._cached}
            for video_id in cached:
                self._cached.move_to_end(video_id)
        missing = [video_id for video_id in video_ids if video_id not in cached]
        read = {
            video_id: prepare_features(features, store.get(video_id).duration)
            for video_id, features in zip(missing, store.read_many(missing) if missing else [], strict=True)
        }
        with self._lock:
            self._add(read)
        return [cached[video_id] if video_id in cached else read[video_id] for video_id in video_ids]

    def _add(self, read: Mapping[int, FrameFeatures]) -> None:
        for video_id, features in read.items():
            # Count the size twice, because scoring keeps a second copy of the views of short videos.
            if video_id not in self._cached and 2 * features.values.nbytes <= self._most:
                self._cached[video_id] = features
                self._bytes += 2 * features.values.nbytes
        while self._bytes > self._most:
            _, features = self._cached.popitem(last=False)
            self._bytes -= 2 * features.values.nbytes
