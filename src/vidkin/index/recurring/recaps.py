"""Find the shots of a recap that stored features do not show: those that follow on what was found.

A shot of two seconds has two frames in an index, taken at other moments than those of the shot that it repeats, and a
small thing before the sky looks like any other sky. Where a recap is known by some of its shots, the next one is looked
for by its pictures, in the file that the recap is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from vidkin.errors import MediaError, NotIndexedError
from vidkin.index.recurring.clips import Clips
from vidkin.index.recurring.ends import FittedStretch, StretchEnd, fit_neighbor, nearest_speed
from vidkin.index.recurring.groups import RecurringGroup, SharedByFiles
from vidkin.index.recurring.stretches import Track, Tracks
from vidkin.index.storage.records import VideoRecord

_SIDES: tuple[StretchEnd, StretchEnd] = ("start", "end")
_MOST_SHOTS = 6  # that are added at each side of a recap
# Moments of the earlier file that are looked at for each shot, those most similar by features; seconds between them.
_CANDIDATES, _APART = 4, 2.0
_NEAREST = 1.6  # seconds from an end to the stored frames that may be of the shot beside it


RememberFit: TypeAlias = Callable[
    [tuple[str, str], float, StretchEnd, Callable[[], FittedStretch | None]], FittedStretch | None
]
"""Returns the shot beside an end of a recap if it is known, and else finds it with the last argument."""


@dataclass(frozen=True, slots=True)
class RecapShots:
    """Looks for further shots of recaps.

    Attributes:
        records: The videos by path.
        tracks: Their stored features.
        clips: Their frames.
        remember: Keeps what was found.
    """

    records: Mapping[str, VideoRecord]
    tracks: Tracks
    clips: Clips
    remember: RememberFit

    def find(self, groups: Sequence[RecurringGroup], links: Sequence[SharedByFiles]) -> list[SharedByFiles]:
        """The shots before and after each recap of these groups, as far as they are of the file that it is of.

        Args:
            groups: Groups of what is known.
            links: What is known: it tells how fast a file runs compared with another one.
        """
        speeds = _speeds(links)
        found: list[SharedByFiles] = []
        for group in groups:
            if group.kind != "recap":
                continue
            shown = next(one for one in group.occurrences if not one.source)
            for path in dict.fromkeys(one.path for one in group.occurrences if one.source):
                speed = speeds.get((shown.path, path), 1.0)
                for side in _SIDES:
                    edge = shown.start if side == "start" else shown.end
                    found += self._walk((shown.path, path), speed, edge, side)
        return found

    def _walk(self, paths: tuple[str, str], speed: float, edge: float, side: StretchEnd) -> Iterator[SharedByFiles]:
        """Shot after shot outwards from an end of a recap, up to one that the other file does not have."""
        files = self.records[paths[0]], self.records[paths[1]]
        for _ in range(_MOST_SHOTS):
            link = self.remember(paths, edge, side, partial(self._fit, files, speed, edge, side))
            if link is None:
                return
            yield SharedByFiles(*paths, link)
            edge = link.first_start if side == "start" else link.first_end

    def _fit(
        self, files: tuple[VideoRecord, VideoRecord], speed: float, edge: float, side: StretchEnd
    ) -> FittedStretch | None:
        try:
            first, second = (self.tracks.of(record) for record in files)
            moments = _similar_moments(first, second, edge, side)
            self.clips.read_ahead(
                (record, time) for near, other, _ in moments for record, time in zip(files, (near, other), strict=True)
            )
            best: FittedStretch | None = None
            for near, other, score in moments:
                link = fit_neighbor(self.clips, files, edge, (near, other), speed, side)
                if link is not None and (best is None or link.match > best.match):
                    best = link._replace(score=score)
            return best
        except (MediaError, NotIndexedError):
            return None


def _speeds(links: Sequence[SharedByFiles]) -> dict[tuple[str, str], float]:
    """Seconds of a file per second of another one, by the longest stretch that both have."""
    speeds: dict[tuple[str, str], float] = {}
    for each in sorted(links, key=lambda each: each.link.first_end - each.link.first_start):
        speeds[each.first, each.second] = nearest_speed(each.link)
        speeds[each.second, each.first] = nearest_speed(each.link.swapped())
    return speeds


def _similar_moments(first: Track, second: Track, edge: float, side: StretchEnd) -> list[tuple[float, float, float]]:
    """(time, time in the second video, similarity) of the frame beside an end and frames like it, the best first."""
    outwards = edge - first.times if side == "start" else first.times - edge
    rows = np.flatnonzero((outwards > 0.05) & (outwards <= _NEAREST))
    if len(rows) == 0 or len(second.times) == 0:
        return []
    row = rows[np.argmin(outwards[rows])]
    cosine = second.vectors.astype(np.float32) @ first.vectors[row].astype(np.float32)
    base = np.maximum(second.baseline, first.baseline[row])
    scores = (cosine - base) / np.maximum(1 - base, 1e-3)
    moments: list[tuple[float, float, float]] = []
    for at in np.argsort(-scores).tolist():
        if scores[at] <= 0 or len(moments) == _CANDIDATES:
            break
        time = float(second.times[at])
        if all(abs(time - other) >= _APART for _, other, _ in moments):
            moments.append((float(first.times[row]), time, float(min(1.0, scores[at]))))
    return moments
