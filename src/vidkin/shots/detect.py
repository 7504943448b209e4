"""One call from a file to its shots."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.media import PLANE_HEIGHT, PLANE_WIDTH, iter_frames, iter_planes, probe
from vidkin.shots.contract import DetectedCuts, PlanesDetector, RgbFrame, ShotDetector
from vidkin.shots.registry import open_detector
from vidkin.shots.shot import TRANSITIONS, Cut, Opening, Shot, ShotDetection, Transition, check_choice

__all__ = ["build_detection", "detect", "detect_shots"]

PathLike = str | os.PathLike[str]

# Seconds that the only frame of a video is shown for, if the file does not say.
_SINGLE_FRAME = 1.0 / 25.0


def detect(
    path: PathLike,
    detector: str | ShotDetector | PlanesDetector = "default",
    *,
    types: Collection[Transition] = TRANSITIONS,
    on_progress: Callable[[float, float | None], None] | None = None,
) -> ShotDetection:
    """The cuts and the shots of a video.

    Args:
        path: The video.
        detector: A name for `open_detector`, or a fresh detector.
        types: Kinds of transitions to report. One whose detector does not tell its kind, ``gradual``, is reported with
            any of the gradual kinds.
        on_progress: Called with (frames done, frames in all as far as the file tells).

    Raises:
        MediaError: The file cannot be read as video.
        InvalidArgumentError: No detector has this name, it reports cuts behind the end, or a type is unknown.
    """
    for kind in types:
        check_choice("types", kind, TRANSITIONS)
    name = os.fspath(path)
    worker = open_detector(detector) if isinstance(detector, str) else detector
    expected = 0
    if on_progress is not None:
        info = probe(name)
        expected = max(1, round(info.duration * info.frame_rate))
    times: list[float] = []
    end = 0.0
    for pushed, known_end in _push_frames(name, worker):
        times += pushed
        end = known_end
        if on_progress is not None:
            on_progress(len(times), max(expected, len(times)))
    # Without transitions of other kinds; shots that are no longer divided are as critical as the last of them.
    detected = worker.finish()
    wanted = set(types)
    if wanted - {"hard"}:
        wanted.add("gradual")
    kept = [cut.kind in wanted for cut in detected.cuts]
    critical = detected.critical
    if critical is not None:
        critical = tuple(score for score, keep in zip(critical, (*kept, True), strict=True) if keep)
    cuts = tuple(cut for cut, keep in zip(detected.cuts, kept, strict=True) if keep)
    return build_detection(
        name, worker.name, replace(detected, cuts=cuts, critical=critical), np.array(times), end=end
    )


def detect_shots(path: PathLike, detector: str | ShotDetector | PlanesDetector = "default") -> list[Shot]:
    """The shots of a video: `detect` without the rest."""
    return list(detect(path, detector).shots)


def build_detection(
    path: str, detector: str, detected: DetectedCuts, frame_times: NDArray[np.float64], *, end: float = 0.0
) -> ShotDetection:
    """Cuts in frames with their times, and the shots between them.

    Args:
        path: The video.
        detector: Name of the detector.
        detected: What it found.
        frame_times: [T] seconds of every frame, at least one.
        end: End of the video in seconds, as far as it is known. The last frame is shown for at least the median
            distance of two frames.

    Raises:
        InvalidArgumentError: A cut lies behind the last frame.
    """
    times = frame_times.tolist()
    end = max(end, times[-1] + (float(np.median(np.diff(frame_times))) if len(times) > 1 else _SINGLE_FRAME))
    cuts = []
    for cut in detected.cuts:
        first = cut.frame if cut.start_frame is None else cut.start_frame
        last = cut.frame if cut.end_frame is None else cut.end_frame
        if max(cut.frame, last) >= len(times):
            raise InvalidArgumentError(
                f"{path}: detector {detector!r} reports a cut at frame {max(cut.frame, last)}, "
                f"but the video has {len(times)} frames"
            )
        cuts.append(
            Cut(
                time=times[cut.frame],
                frame=cut.frame,
                kind=cut.kind,
                confidence=cut.confidence,
                start=times[first],
                end=times[last],
                start_frame=first,
                end_frame=last,
            )
        )
    openings: list[tuple[Opening, float]] = [("start", 1.0), *((cut.kind, cut.confidence) for cut in cuts)]
    frames = [0, *(cut.frame for cut in cuts), len(times)]
    moments = [times[0], *(cut.time for cut in cuts), end]
    shots = tuple(
        Shot(
            start=moments[place],
            end=moments[place + 1],
            start_frame=frames[place],
            end_frame=frames[place + 1],
            kind=kind,
            confidence=confidence,
            critical=None if detected.critical is None else detected.critical[place],
        )
        for place, (kind, confidence) in enumerate(openings)
    )
    return ShotDetection(
        path=path,
        detector=detector,
        cuts=tuple(cuts),
        shots=shots,
        curve=detected.curve,
        frame_times=frame_times,
    )


def _push_frames(name: str, worker: ShotDetector | PlanesDetector) -> Iterator[tuple[list[float], float]]:
    """Push all frames of a video; yields the times of each batch, and the end of the video as far as it is known."""
    if isinstance(worker, PlanesDetector):
        height, width = getattr(worker, "grid", (PLANE_HEIGHT, PLANE_WIDTH))
        for planes in iter_planes(name, height=height, width=width):
            worker.push_planes(planes)
            yield planes.timestamps.tolist(), planes.end or 0.0
        return
    count = 0
    end = probe(name).duration
    for batch in iter_frames(name, rate=None, short_side=worker.short_side):
        times = batch.timestamps.tolist()
        for image, time in zip(batch.images, times, strict=True):
            worker.push(RgbFrame(count, time, image))
            count += 1
        yield times, end
