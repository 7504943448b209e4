"""Detect shots in one or many files; drop or merge short shots."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.blas import one_blas_thread
from vidkin._base.files import PathLike
from vidkin._base.stopping import check_wanted
from vidkin._base.values import check_choice, check_not_negative
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.features.sessions import check_device, set_device, set_threads
from vidkin.media import (
    FramePlanes,
    Frames,
    Source,
    VideoInfo,
    iter_frames,
    iter_planes,
    open_source,
    probe,
    source_name,
    time_in,
)
from vidkin.media.frames import earliest, is_before
from vidkin.shots.black import BlackFrames
from vidkin.shots.contract import (
    TRANSITIONS,
    Cut,
    DetectedCut,
    DetectedCuts,
    PlanesDetector,
    RgbFrame,
    Shot,
    ShotDetection,
    ShotDetector,
    Transition,
)
from vidkin.shots.registry import open_detector, with_threshold
from vidkin.shots.shot_list import Shots

# Duration in seconds of the only frame of a video, if the file does not state a duration.
_SINGLE_FRAME = 1.0 / 25.0


@check_arguments
@one_blas_thread()
def detect(
    source: Source,
    detector: str | ShotDetector | PlanesDetector = "default",
    *,
    threshold: float | None = None,
    types: Collection[Transition] = TRANSITIONS,
    start: float | str = 0.0,
    end: float | str | None = None,
    stream: int | None = None,
    frame_rate: float | None = None,
    on_progress: Callable[[float, float | None], None] | None = None,
) -> ShotDetection:
    """Detect the cuts and shots in a video, or in part of it.

    Frame numbers and times always refer to the whole video, but the detector sees only frames from ``start`` on.

    Args:
        source: The video, see `vidkin.media.Source`: a path, bytes, an open binary file, an array, or frames.
        detector: A name for `open_detector`, or a new detector object.
        threshold: Threshold for a detector given by name, see `with_threshold`.
        types: Kinds of transitions to report. Transitions of the unspecified kind ``gradual`` are reported if any
            gradual kind is listed; jumps are reported only if ``jump`` is listed.
        start: Start of the part: seconds, or text such as ``1:30.5`` or ``250f`` (a frame number).
        end: End of the part, in the same form; None for the end of the video.
        stream: Number of the video stream in the file; None for the first one, as in players.
        frame_rate: Frames per second of an array or an iterator of frames.
        on_progress: Callback that receives (frames done, total number of frames if the file states it).

    Raises:
        MediaError: The file cannot be read as video, or has no frames between start and end.
        InvalidArgumentError: The source is invalid, there is no detector with this name, the detector reports cuts
            after the end, a type is unknown, or end is not after start.
    """
    for kind in types:
        check_choice("types", kind, TRANSITIONS)
    worker = open_with(detector, threshold)
    with open_source(source, frame_rate) as path:
        detection = _detect_in_file(os.fspath(path), worker, types, start, end, stream, on_progress)
    return replace(detection, path=source_name(source))


def open_with(detector: str | ShotDetector | PlanesDetector, threshold: float | None) -> ShotDetector | PlanesDetector:
    """Open a detector with a threshold.

    Raises:
        InvalidArgumentError: There is no detector with this name, it has no threshold, or it is already open.
    """
    if isinstance(detector, str):
        return open_detector(detector if threshold is None else with_threshold(detector, threshold))
    if threshold is not None:
        raise InvalidArgumentError("threshold requires a detector name; an open detector already has a threshold")
    return detector


def _detect_in_file(
    name: str,
    worker: ShotDetector | PlanesDetector,
    types: Collection[Transition],
    start: float | str,
    end: float | str | None,
    stream: int | None,
    on_progress: Callable[[float, float | None], None] | None,
) -> ShotDetection:
    given = f"{start} and {end}"
    start = time_in(name, start, stream=stream) if isinstance(start, str) else start
    end = time_in(name, end, stream=stream) if isinstance(end, str) else end
    if not (0 <= start < math.inf and (end is None or end > start)):
        raise InvalidArgumentError(f"start must be at least 0 s and end after start, got {given}")
    info = probe(name, stream=stream)
    expected = max(1, round(min(info.duration, math.inf if end is None else end) * info.frame_rate))
    times: list[float] = []
    skipped, known_end = 0, 0.0
    is_cut_short = False
    limits = earliest(start), math.inf if end is None else earliest(end)
    black = BlackFrames()
    for batch in _push_frames(info, worker, black, *limits):
        check_wanted()
        times += batch.times
        skipped += batch.skipped
        known_end, is_cut_short = batch.end, batch.is_last
        if on_progress is not None:
            on_progress(len(times), max(expected, len(times)))
    if skipped == len(times):
        raise MediaError(name, f"it has no frames between {start:g} s and the end of the requested part")
    cuts = worker.finish().select(types)
    if skipped:
        cuts = _shift(cuts, skipped, times[skipped])
    detection = build_detection(
        name, worker.name, cuts, np.array(times), end=known_end, first=skipped, is_cut_short=is_cut_short
    )
    return replace(
        detection,
        stream=info.stream,
        offset=info.offset,
        time_code=info.time_code,
        black=black.finish(times, first=skipped, end=detection.shots[-1].end),
    )


@check_arguments
def detect_shots(
    source: Source,
    detector: str | ShotDetector | PlanesDetector = "default",
    *,
    threshold: float | None = None,
    start: float | str = 0.0,
    end: float | str | None = None,
    frame_rate: float | None = None,
    on_progress: Callable[[float, float | None], None] | None = None,
) -> Shots:
    """Detect the shots in a video, or in part of it, as a list that can be saved as images, split and exported.

    Frame numbers and times always refer to the whole video. `vidkin.shots.detect` has more settings and returns the
    complete result.

    Args:
        source: A path, bytes, an open binary file, an array, or frames; see `vidkin.media.Source`.
        detector: A name such as ``default``, see `vidkin.shots.available_detectors`, or a new detector object.
        threshold: For the default detector, the minimum probability of a transition, in (0, 1); the meaning of other
            detectors' thresholds differs. None: the detector's default.
        start: Start of the part: seconds, or text such as ``1:30.5`` or ``250f`` (a frame number).
        end: End of the part, in the same form; None for the end of the video.
        frame_rate: Frames per second of an array or an iterator of frames.
        on_progress: Callback that receives (frames done, total number of frames if the file states it).

    Returns:
        The shots in order. The list has the methods ``save_images``, ``split`` and ``export``, and the attributes
        ``curve`` and ``cuts``.

    Raises:
        MediaError: The file cannot be read as video, or has no frames between start and end.
        InvalidArgumentError: The source is invalid, there is no detector with this name or threshold, or end is not
            after start.
    """
    detection = detect(
        source,
        detector,
        threshold=threshold,
        start=start,
        end=end,
        frame_rate=frame_rate,
        on_progress=on_progress,
    )
    return Shots.of(detection)


@check_arguments
def build_detection(
    path: str,
    detector: str,
    detected: DetectedCuts,
    frame_times: NDArray[np.float64],
    *,
    end: float = 0.0,
    first: int = 0,
    is_cut_short: bool = False,
) -> ShotDetection:
    """Add times to detected cuts, and determine the shots between them.

    A fade at the very start or end is reported as a cut, but does not split shots.

    Args:
        path: The video.
        detector: Name of the detector.
        detected: Cuts reported by the detector.
        frame_times: [T] times of all frames in seconds, at least one.
        end: End of the video in seconds, if known. The last frame lasts at least the median frame interval.
        first: First frame of the first shot.
        is_cut_short: Whether the video continues after ``end``.

    Raises:
        InvalidArgumentError: A cut lies after the last frame.
    """
    times = frame_times.tolist()
    if not is_cut_short:
        interval = float(np.median(np.diff(frame_times))) if len(times) > 1 else _SINGLE_FRAME
        end = max(end, times[-1] + interval)
    cuts = []
    for cut in detected.cuts:
        last = cut.frame if cut.end_frame is None else cut.end_frame
        if max(cut.frame, last) >= len(times):
            raise InvalidArgumentError(
                f"{path}: detector {detector!r} reports a cut at frame {max(cut.frame, last)}, "
                f"but the video has {len(times)} frames"
            )
        cuts.append(add_times(cut, times))
    shots = _make_shots(cuts, times, first, end, detected.critical)
    return ShotDetection(
        path=path,
        detector=detector,
        cuts=tuple(cuts),
        shots=shots,
        curve=detected.curve,
        frame_times=frame_times,
    )


def add_times(cut: DetectedCut, times: Sequence[float]) -> Cut:
    """Add times in seconds to a cut; ``times`` must include all its frames."""
    opening = cut.frame if cut.start_frame is None else cut.start_frame
    last = cut.frame if cut.end_frame is None else cut.end_frame
    return Cut(
        time=times[cut.frame],
        frame=cut.frame,
        kind=cut.kind,
        confidence=cut.confidence,
        start=times[opening],
        end=times[last],
        start_frame=opening,
        end_frame=last,
        kind_confidence=cut.kind_confidence,
        is_to_ground=cut.is_to_ground,
        is_from_ground=cut.is_from_ground,
    )


def _make_shots(
    cuts: Sequence[Cut], times: Sequence[float], first: int, end: float, critical: Sequence[float] | None
) -> tuple[Shot, ...]:
    """Determine the shots between cuts.

    A plain background is not a shot. Therefore, a fade at the very start or end does not split shots, and a cut and a
    fade that belong together count as a single fade.
    """
    scores: list[float | None] = [None] * (len(cuts) + 1) if critical is None else list(critical)
    dividing = list(cuts)
    opening: Cut | None = None
    if dividing and dividing[0].kind == "fade" and dividing[0].start_frame <= first:
        opening = dividing.pop(0)
        del scores[0]
    if dividing and dividing[-1].kind == "fade" and dividing[-1].end_frame >= len(times) - 1:
        dividing.pop()
        del scores[-1]
    begins: dict[int, float] = {}  # start of each fade composed of two transitions, by frame
    for number in reversed(range(len(dividing) - 1)):
        one, other = dividing[number : number + 2]
        if (one.is_to_ground and other.kind == "fade") or (one.kind == "fade" and other.is_from_ground):
            begins[other.frame] = one.start
            del dividing[number], scores[number + 1]
    frames = [first, *(cut.frame for cut in dividing), len(times)]
    moments = [times[first], *(cut.time for cut in dividing), end]
    return tuple(
        Shot(
            start=moments[number],
            end=moments[number + 1],
            start_frame=frames[number],
            end_frame=frames[number + 1],
            kind="start" if cut is None else "fade" if cut.frame in begins else cut.kind,
            confidence=1.0 if cut is None else cut.confidence,
            transition_start=moments[number] if cut is None else begins.get(cut.frame, min(cut.start, moments[number])),
            transition_end=moments[number] if cut is None else cut.end,
            kind_confidence=1.0 if cut is None else cut.kind_confidence,
            critical=scores[number],
        )
        for number, cut in enumerate((opening, *dividing))
    )


class _Pushed(NamedTuple):
    """A batch of frames that were read.

    Attributes:
        times: Times of all frames in the batch in seconds.
        skipped: Number of frames before the requested part.
        end: End of the video, if known, or end of the part if this is the last batch.
        is_last: Whether the part ends in this batch, before the end of the video.
    """

    times: list[float]
    skipped: int
    end: float
    is_last: bool


def _push_frames(
    info: VideoInfo, worker: ShotDetector | PlanesDetector, black: BlackFrames, start: float, end: float
) -> Iterator[_Pushed]:
    """Push the frames of the requested part of a video to the detector."""
    offset: float | None = 0.0 if start <= 0 else None
    count = 0
    stated_end = 0.0
    batches: Iterator[FramePlanes | Frames]
    if isinstance(worker, PlanesDetector):
        batches = iter_planes(info.path, height=worker.grid[0], width=worker.grid[1], stream=info.stream)
    else:
        batches = iter_frames(info.path, rate=None, short_side=worker.short_side, stream=info.stream)
        stated_end = info.duration
    for batch in _read_ahead(batches):
        times: NDArray[np.float64] = batch.timestamps
        first, last = (int(number) for number in np.searchsorted(times, [start, end]))
        if first < last:
            offset = float(times[first]) if offset is None else offset
            shown = times[first:last] - offset
            if isinstance(worker, PlanesDetector):
                assert isinstance(batch, FramePlanes)
                part = FramePlanes(batch.luma[first:last], batch.chroma[first:last], shown, batch.end)
                black.push_planes(part)
                worker.push_planes(part)
            else:
                assert isinstance(batch, Frames)
                black.push_images(batch.images[first:last])
                for image, time in zip(batch.images[first:last], shown.tolist(), strict=True):
                    worker.push(RgbFrame(count, time, image))
                    count += 1
        if isinstance(batch, FramePlanes):
            stated_end = batch.end or 0.0
        is_last = last < len(times)
        known_end = float(times[last]) if is_last else stated_end
        yield _Pushed(times[:last].tolist(), min(first, last), known_end, is_last)
        if is_last:
            return


def _read_ahead(batches: Iterator[FramePlanes | Frames]) -> Iterator[FramePlanes | Frames]:
    """Yield batches while a thread reads the next one, so that decoding and detection overlap."""
    with ThreadPoolExecutor(1, thread_name_prefix="vidkin-frames") as reader:
        following = reader.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = reader.submit(next, batches, None)
            yield batch


def _shift(detected: DetectedCuts, frames: int, seconds: float) -> DetectedCuts:
    """Convert frame numbers and times within a part to those of the whole video."""

    def shift(frame: int | None) -> int | None:
        return None if frame is None else frame + frames

    cuts = tuple(
        replace(
            cut,
            frame=cut.frame + frames,
            start_frame=shift(cut.start_frame),
            end_frame=shift(cut.end_frame),
        )
        for cut in detected.cuts
    )
    curve = detected.curve
    if curve is not None:
        curve = replace(curve, times=curve.times + seconds)
    return replace(detected, cuts=cuts, curve=curve)


@check_arguments
def detect_many(
    paths: Sequence[PathLike],
    detector: str = "default",
    *,
    types: Collection[Transition] = TRANSITIONS,
    start: float | str = 0.0,
    end: float | str | None = None,
    stream: int | None = None,
    workers: int | None = None,
) -> Iterator[ShotDetection | MediaError]:
    """Detect the shots in many videos in parallel.

    Args:
        paths: The videos.
        detector: A name for `open_detector`; every process opens its own detector.
        types, start, end, stream: As in `detect`.
        workers: Number of processes; None for one per core. They are started with ``spawn``, so the calling script
            needs ``if __name__ == "__main__"``. With one worker, everything runs in the current process.

    Yields:
        For each video, in the order of ``paths``, the result of `detect` or the `MediaError` it raised. A crash of the
        decoder's process is also reported as a `MediaError`.

    Raises:
        InvalidArgumentError: There is no detector with this name, a kind is unknown, or workers is below 1.
    """
    if workers is not None and workers < 1:
        raise InvalidArgumentError(f"workers must be at least 1, got {workers}")
    open_detector(detector)  # Report an unknown name before any process starts.
    names = [os.fspath(path) for path in paths]
    count = min(workers or os.cpu_count() or 1, len(names))
    one = partial(_detect_one, detector=detector, types=tuple(types), start=start, end=end, stream=stream)
    if count <= 1:
        yield from map(one, names)
        return
    with _pool(count) as pool:
        futures = [pool.submit(one, name) for name in names]
        for name, future in zip(names, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:
                # A process died and broke the pool, so each remaining video gets a pool with one process.
                with _pool(1) as alone:
                    try:
                        yield alone.submit(one, name).result()
                    except BrokenProcessPool:
                        yield MediaError(name, "the process that read it crashed")


def _pool(count: int) -> ProcessPoolExecutor:
    # The processes already use all cores, so more threads per process would only compete.
    return ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_prepare,
        initargs=(check_device("auto"),),
    )


def _prepare(device: str) -> None:
    set_threads(1)
    set_device(device)


def _detect_one(name: str, **settings: Any) -> ShotDetection | MediaError:
    try:
        return detect(name, **settings)
    except MediaError as error:
        return error


@check_arguments
def drop_short_shots(detection: ShotDetection, min_length: float) -> ShotDetection:
    """Remove shots shorter than ``min_length`` seconds; transitions are kept.

    Raises:
        InvalidArgumentError: The length is negative.
    """
    check_not_negative(min_length=min_length)
    shots = tuple(shot for shot in detection.shots if not _is_short(shot, min_length))
    return replace(detection, shots=shots)


@check_arguments
def merge_short_shots(detection: ShotDetection, min_length: float) -> ShotDetection:
    """Merge shots shorter than ``min_length`` seconds with a neighbor, starting with the shortest.

    The transition with the lower confidence is removed. A merged shot takes ``critical`` from its last part. At least
    one shot remains, however short it is.

    Raises:
        InvalidArgumentError: The length is negative.
    """
    check_not_negative(min_length=min_length)
    shots = list(detection.shots)
    while len(shots) > 1:
        number = min(range(len(shots)), key=lambda number: shots[number].end - shots[number].start)
        if not _is_short(shots[number], min_length):
            break
        is_first, is_last = number == 0, number == len(shots) - 1
        goes_back = is_last or (not is_first and shots[number].confidence <= shots[number + 1].confidence)
        first = number - 1 if goes_back else number
        one, two = shots[first : first + 2]
        merged = replace(one, end=two.end, end_frame=two.end_frame, critical=two.critical)
        shots[first : first + 2] = [merged]
    merged_at = {shot.start_frame for shot in detection.shots} - {shot.start_frame for shot in shots}
    cuts = tuple(cut for cut in detection.cuts if cut.frame not in merged_at)
    return replace(detection, shots=tuple(shots), cuts=cuts)


def _is_short(shot: Shot, min_length: float) -> bool:
    return is_before(shot.end - shot.start, min_length)
