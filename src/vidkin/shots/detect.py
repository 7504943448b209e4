"""One call from a file to its shots."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin.media import iter_frames, iter_planes, probe
from vidkin.shots.contract import DetectedCut, DetectedCuts, PlanesDetector, RgbFrame, ShotDetector
from vidkin.shots.registry import open_detector
from vidkin.shots.shot import Cut, Opening, Shot, ShotDetection

__all__ = ["detect", "detect_shots"]

PathLike = str | os.PathLike[str]


def detect(
    path: PathLike,
    detector: str | ShotDetector | PlanesDetector = "default",
    *,
    on_progress: Callable[[float, float | None], None] | None = None,
) -> ShotDetection:
    """Find the cuts and the shots of a video.

    Args:
        path: The video.
        detector: A name for `open_detector`, or a fresh detector.
        on_progress: Called with (frames done, frames in all as far as the file says).

    Raises:
        MediaError: The file cannot be read as video.
        InvalidArgumentError: Nothing answers to the detector's name.
    """
    name = os.fspath(path)
    worker = open_detector(detector) if isinstance(detector, str) else detector
    total = _frame_count(name) if on_progress is not None else 0
    times: list[float] = []
    end = 0.0
    for fed, known_end in _fed(name, worker):
        times += fed
        end = known_end
        if on_progress is not None:
            on_progress(len(times), max(total, len(times)))
    found = worker.finish()
    frame_times = np.array(times)
    end = max(end, times[-1] + _usual_distance(frame_times))
    cuts = tuple(_timed(cut, frame_times) for cut in found.cuts)
    return ShotDetection(
        path=name,
        detector=worker.name,
        cuts=cuts,
        shots=_shots(cuts, found, frame_times, end),
        curve=found.curve,
        frame_times=frame_times,
    )


def detect_shots(path: PathLike, detector: str | ShotDetector | PlanesDetector = "default") -> list[Shot]:
    """The shots of a video: `detect` without the rest."""
    return list(detect(path, detector).shots)


def _fed(name: str, worker: ShotDetector | PlanesDetector) -> Iterator[tuple[list[float], float]]:
    """Push all frames; the times of each lot, and the end of the video as far as it is known."""
    if isinstance(worker, PlanesDetector):
        for planes in iter_planes(name):
            worker.push_planes(planes)
            yield planes.timestamps.tolist(), planes.end or 0.0
        return
    count = 0
    end = probe(name).duration
    for batch in iter_frames(name, rate=None, short_side=worker.short_side):
        lot = batch.timestamps.tolist()
        for number, (image, time) in enumerate(zip(batch.images, lot, strict=True), start=count):
            worker.push(RgbFrame(number, time, image))
        count += len(lot)
        yield lot, end


def _frame_count(name: str) -> int:
    info = probe(name)
    return max(1, round(info.duration * info.frame_rate))


def _usual_distance(times: NDArray[np.float64]) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 1.0 / 25.0


def _timed(cut: DetectedCut, times: NDArray[np.float64]) -> Cut:
    first = cut.frame if cut.start_frame is None else cut.start_frame
    last = cut.frame if cut.end_frame is None else cut.end_frame
    return Cut(
        time=float(times[cut.frame]),
        frame=cut.frame,
        kind=cut.kind,
        confidence=cut.confidence,
        start=float(times[first]),
        end=float(times[last]),
        start_frame=first,
        end_frame=last,
    )


def _shots(
    cuts: Sequence[Cut], found: DetectedCuts, times: NDArray[np.float64], end: float
) -> tuple[Shot, ...]:
    borders = [0, *(cut.frame for cut in cuts), len(times)]
    moments = [float(times[0]), *(cut.time for cut in cuts), end]
    openings: list[tuple[Opening, float]] = [("start", 1.0), *((cut.kind, cut.confidence) for cut in cuts)]
    critical: Sequence[float | None] = found.critical or [None] * len(openings)
    return tuple(
        Shot(
            start=moments[place],
            end=moments[place + 1],
            start_frame=borders[place],
            end_frame=borders[place + 1],
            kind=kind,
            confidence=confidence,
            critical=score,
        )
        for place, ((kind, confidence), score) in enumerate(zip(openings, critical, strict=True))
    )
