"""Shots: detection, the timeline with transitions and critical parts, corrections, and exports."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import HTTPException, Request
from fastapi import Path as PathPart
from fastapi.responses import Response
from pydantic import Field

from vidkin.errors import InvalidArgumentError
from vidkin.index import VideoRecord
from vidkin.review import CorrectedShots, forget_corrected, read_corrected, write_corrected
from vidkin.shots import (
    Cut,
    DetectedCut,
    Shot,
    ShotDetection,
    Transition,
    detect,
    find_shot_format,
    shot_format_names,
)
from vidkin.web import routes
from vidkin.web.files import open_record
from vidkin.web.filters import LibraryFilter, choose_records
from vidkin.web.jobs import FailedVideo, Job, JobRunningError, process_each
from vidkin.web.library import video_values
from vidkin.web.media import open_source
from vidkin.web.site import CurrentSite, Site, WritableSite, base_name, cut_page, shots_key, thumbnail_address

router = routes.Page("shots", "Shots", "/shots")

_MAX_POINTS = 2000
_A_PAGE = 60


@routes.extends(Cut)
class CutResult:
    """A cut.

    Attributes:
        moved_from: Time of the cut before a person moved it, seconds; null if it was not moved.
    """

    moved_from: float | None


@routes.extends(Shot)
class ShotResult:
    """A shot.

    Attributes:
        thumbnail: Address of an image; add `&time=SECONDS` for another moment.
    """

    thumbnail: str


@routes.extends(ShotDetection, leave_out=("frame_times", "stream"))
class ShotList:
    """The shots of a video.

    Attributes:
        duration: Duration in seconds.
        corrected: Whether a person corrected the cuts.
        cuts: The cuts.
        shots: The shots.
        curve: Time in seconds and value of the detector's curve, thinned by maxima.
        critical: Start and end in seconds of each part that a person marked.
    """

    duration: float
    corrected: bool
    cuts: list[CutResult]
    shots: list[ShotResult]
    curve: list[tuple[float, float]]
    critical: list[tuple[float, float]]


class WantedCut(routes.Body):
    """A cut as corrected by a person.

    Attributes:
        time: Time of the first frame of the new shot, seconds; rounded to the nearest frame.
        kind: Kind of the transition; a detected gradual one keeps its length.
        moved_from: Time of the cut before it was moved, seconds; null if it was not moved.
    """

    time: float = Field(ge=0, le=1e6)
    kind: Transition = "hard"
    moved_from: float | None = Field(None, ge=0, le=1e6)


class WantedCuts(routes.Body):
    """All cuts and critical parts of a video, as corrected by a person.

    Attributes:
        cuts: The cuts.
        critical: Start and end of each critical part, seconds; rounded to the nearest frames.
    """

    cuts: list[WantedCut] = Field(max_length=100_000)
    critical: list[Annotated[tuple[float, float], Field(strict=False)]] = Field(
        default_factory=list, max_length=100_000, examples=[[[1.0, 2.5]]]
    )


@dataclass(frozen=True, slots=True)
class ShotsResult:
    """Outcome for the videos.

    Attributes:
        videos: Number of videos whose shots are now known.
        failed: Videos that could not be processed.
    """

    videos: int
    failed: list[FailedVideo]


_FORMATS = {name: find_shot_format(name).media_type for name in shot_format_names()}


@dataclass(frozen=True, slots=True)
class _Stored:
    """A cached detection, the detection as a person corrected it, and the corrections."""

    detected: ShotDetection
    detection: ShotDetection
    corrected: CorrectedShots | None


class _NotDetectedError(HTTPException):
    """Shots were requested before detection; answered with 404."""

    def __init__(self) -> None:
        super().__init__(404, "the shots of this video have not been detected yet")


@router.page("/shots", "shots.html")
def choose_video(site: CurrentSite, q: str = "", page: routes.PageNumber = 1) -> dict[str, Any]:
    """Page to choose a video, filtered by name as in the library."""
    records = [record for record in choose_records(site, LibraryFilter(q=q, state="ok")) if record.frames > 1]
    (shown, pager), detector = cut_page(records, page, _A_PAGE), site.detector()
    videos = [video_values(record) for record in shown]
    return {
        "videos": [video for video in videos if not video["still"]],
        "known": {record.id for record in shown if site.has_shots(record, detector)},
        "query": q,
        **pager,
        "address": lambda page: f"/shots?{urlencode({'q': q, 'page': page})}",
    }


@router.page("/videos/{video}/shots", "video_shots.html")
def show_shots(request: Request, site: CurrentSite, video: int) -> dict[str, Any]:
    """Page with the timeline of a video; its script requests the shots."""
    formats = [(f"/api/videos/{video}/shots/{name}", find_shot_format(name).label) for name in shot_format_names()]
    return {
        "video": video_values(site.index.record(video)),
        "source": open_source(site, video=video).item,
        "exports": formats,
    }


class Videos(routes.Body):
    """Videos of the index.

    Attributes:
        videos: Numbers of the videos.
    """

    videos: list[routes.VideoId] = Field(min_length=1, max_length=100_000)


@router.job("/api/shots", "shots", ShotsResult)
def detect_shots_of_videos(site: CurrentSite, chosen: Videos) -> Job:
    """Detect the shots of several videos, one after another, as a job; videos with known shots are skipped."""
    records = site.index.records(chosen.videos)

    def work(job: Job) -> ShotsResult:
        failed = process_each(job, records, partial(detect_shots_of, site))
        return ShotsResult(len(records) - len(failed), failed)

    words = base_name(records[0].path) + (f" and {len(records) - 1} more" if len(records) > 1 else "")
    return site.jobs.start("shots", f"Shots of {words}", work)


@router.job("/api/videos/{video}/shots", "shots", ShotsResult)
def detect_shots(site: CurrentSite, video: routes.VideoNumber) -> Job:
    """Detect the shots of a video, as a job; they are cached until the file or the detector changes.

    If that job is already running, it is the answer.
    """
    record = site.index.record(video)

    def work(job: Job) -> ShotsResult:
        detect_shots_of(site, record, lambda done, total: job.report(int(done), int(total or 0), "frames"))
        return ShotsResult(1, [])

    try:
        return site.jobs.start("shots", f"Shots of {base_name(record.path)}", work, video=video)
    except JobRunningError as error:
        if error.job.video != video:
            raise
        return error.job


def detect_shots_of(site: Site, record: VideoRecord, on_progress: Callable[..., None]) -> None:
    """Detect and cache the shots of a video, unless they are known."""
    name = site.detector()

    def make() -> ShotDetection:
        open_record(record).close()  # refuses a file other than the indexed one
        return detect(record.path, name, on_progress=on_progress)

    site.cache.compute(shots_key(record, name), make, ShotDetection.from_dict)


@router.get("/api/videos/{video}/shots", response_model=ShotList | None)
def get_shots(site: CurrentSite, video: routes.VideoNumber) -> dict[str, Any] | None:
    """The shots of a video, as they were corrected if they were; null until they are detected."""
    try:
        return _list(site, site.index.record(video))
    except _NotDetectedError:
        return None


@router.put("/api/videos/{video}/shots", response_model=ShotList)
def correct_shots(site: WritableSite, video: routes.VideoNumber, wanted: WantedCuts) -> dict[str, Any]:
    """Store corrected cuts. Each cut in the list, moved or not, becomes a label `cut`; each detected cut missing from
    it becomes `no cut`. Critical parts are included in exported labels."""
    record = site.index.record(video)
    stored = _open(site, record)
    times = stored.detected.frame_times
    names = [field.name for field in fields(DetectedCut)]
    detected = [DetectedCut(**{name: getattr(cut, name) for name in names}) for cut in stored.detected.cuts]
    nearest: dict[int, DetectedCut] = {}
    moved: dict[int, int] = {}
    for cut in wanted.cuts:
        frame = int(np.abs(times - cut.time).argmin())
        if frame < 1:
            raise InvalidArgumentError(f"a cut must be after the first frame, got {cut.time:g} s")
        old = next((one for one in detected if one.frame == frame and one.kind == cut.kind), None)
        nearest[frame] = old or DetectedCut(frame, cut.kind)
        origin = frame if cut.moved_from is None else int(np.abs(times - cut.moved_from).argmin())
        if origin not in (0, frame):
            moved[frame] = origin
    moments = np.append(times, stored.detected.shots[-1].end)
    marked = sorted(tuple(int(np.abs(moments - time).argmin()) for time in part) for part in wanted.critical)
    corrected = CorrectedShots(
        tuple(nearest[frame] for frame in sorted(nearest)),
        tuple((start, end) for start, end in marked if start < end),
        tuple(moved.items()),
    )
    write_corrected(site.index.place, record.content_hash, corrected, detected=detected, source="shots page")
    return _list(site, record)


@router.delete("/api/videos/{video}/shots", response_model=ShotList)
def forget_shots(site: WritableSite, video: routes.VideoNumber) -> dict[str, Any]:
    """Discard corrections and return to the detected shots; labels already given stay."""
    record = site.index.record(video)
    forget_corrected(site.index.folder, record.content_hash)
    return _list(site, record)


@router.file("/api/videos/{video}/shots/{form}", *sorted({*_FORMATS.values()}))
async def export_shots(
    site: CurrentSite,
    video: routes.VideoNumber,
    form: Annotated[str, PathPart(json_schema_extra={"enum": [*_FORMATS]})],
) -> Response:
    """Download the shots, with corrections, as a file.

    Args:
        site: The site.
        video: Number of the video.
        form: Format of `vidkin shots --export`.
    """
    kind = find_shot_format(form)

    def work() -> Response:
        record = site.index.record(video)
        detection = _open(site, record).detection
        if kind.reads_video:
            open_record(record).close()  # refuses a file other than the indexed one
        with tempfile.TemporaryDirectory(prefix="vidkin-run-") as folder:
            path = Path(folder, f"shots{kind.suffix}")
            kind.write(detection, path)
            name = f"{routes.safe_stem(Path(record.path).stem)}{kind.suffix}"
            return routes.attachment(path.read_bytes(), name, kind.media_type)

    return await (site.pictures if kind.reads_video else site.lists).run(work)


def stored_shots(site: Site, record: VideoRecord) -> ShotDetection:
    """The shots of a video, with corrections; until they are detected, an exception answered with 404."""
    return _open(site, record).detection


def _open(site: Site, record: VideoRecord) -> _Stored:
    """Read the cached shots; _NotDetectedError if there are none."""
    detected = site.cache.load(shots_key(record, site.detector()), ShotDetection.from_dict)
    if detected is None:
        raise _NotDetectedError
    corrected = read_corrected(site.index.folder, record.content_hash) if record.content_hash else None
    return _Stored(detected, detected if corrected is None else corrected.apply_to(detected), corrected)


def _list(site: Site, record: VideoRecord) -> dict[str, Any]:
    stored = _open(site, record)
    detection = stored.detection
    duration = detection.shots[-1].end
    points: tuple[tuple[float, float], ...] = ()
    if detection.curve is not None and len(detection.curve.times):
        edges = np.linspace(0, len(detection.curve.times), min(_MAX_POINTS, len(detection.curve.times)) + 1).astype(int)
        tops = [start + int(detection.curve.values[start:end].argmax()) for start, end in pairwise(edges)]
        points = tuple((float(detection.curve.times[top]), float(detection.curve.values[top])) for top in tops)
    moments = np.append(detection.frame_times, duration)
    last = len(moments) - 1
    moved = {frame: min(origin, last) for frame, origin in (stored.corrected.moved if stored.corrected else ())}
    seen = [sum(detection.seen(place)) // 2 for place in range(len(detection.shots))]
    return {
        **detection.to_dict(short=True),
        "corrected": stored.corrected is not None,
        "duration": duration,
        "cuts": [
            {**cut.to_dict(), "moved_from": float(moments[moved[cut.frame]]) if cut.frame in moved else None}
            for cut in detection.cuts
        ],
        "shots": [
            {**shot.to_dict(), "thumbnail": thumbnail_address(record, float(moments[frame]))}
            for shot, frame in zip(detection.shots, seen, strict=True)
        ],
        "critical": [(float(moments[start]), float(moments[end])) for start, end in detection.critical],
        "curve": points,
    }
