"""Shots: detection, the timeline with transitions and critical parts, corrections, and exports."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request
from fastapi import Path as PathPart
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field

from vidkin._base.values import LONG_JSON_LIMITS, as_json, read_json
from vidkin.errors import InvalidArgumentError, VidkinError
from vidkin.index import VideoRecord
from vidkin.rendering.text import printable
from vidkin.review import CorrectedShots, forget_corrected, read_corrected, write_corrected
from vidkin.shots import (
    BlackStretch,
    Curve,
    Cut,
    DetectedCut,
    DetectedCuts,
    Shot,
    ShotDetection,
    Transition,
    build_detection,
    detect,
    find_shot_format,
    shot_format_names,
)
from vidkin.web.files import open_record
from vidkin.web.jobs import Job, JobRunningError
from vidkin.web.library import video_values
from vidkin.web.media import source_item
from vidkin.web.parameters import Body, VideoId, VideoNumber
from vidkin.web.site import (
    CurrentSite,
    Page,
    ResultResponse,
    Site,
    accepted,
    answer_model,
    base_name,
    download,
    job_model,
    result_model,
    safe_stem,
    shots_key,
    thumbnail_address,
)

router = APIRouter(tags=["shots"])
shots_page = Page(router, "Shots", "/shots")

_MAX_POINTS = 2000
_A_PAGE = 60


CutResult: Any = result_model(Cut, moved_from=float | None)
ShotResult: Any = result_model(Shot, is_critical=bool, thumbnail=str)
# ``corrected``: by a person; ``curve``: (second, value) of the detector's curve, thinned by maxima to some thousand
# points; ``critical``: (start, end) in seconds of the parts that a person marked.
ShotList: Any = result_model(
    ShotDetection,
    leave_out=("frame_times", "stream"),
    frames=int,
    frame_rate=float,
    duration=float,
    corrected=bool,
    cuts=list[CutResult],
    shots=list[ShotResult],
    curve=list[tuple[float, float]],
    critical=list[tuple[float, float]],
)


class WantedCut(Body):
    """A cut as corrected by a person."""

    time: float = Field(
        ge=0, le=1e6, description="Time of the first frame of the new shot, seconds; rounded to the nearest frame."
    )
    kind: Transition = Field("hard", description="Kind of the transition; a detected gradual one keeps its length.")
    moved_from: float | None = Field(
        None, ge=0, le=1e6, description="Time of the cut before it was moved, seconds; null if it was not moved."
    )


class WantedCuts(Body):
    """All cuts and critical parts of a video, as corrected by a person."""

    cuts: list[WantedCut] = Field(max_length=100_000, description="The cuts.")
    critical: list[Annotated[tuple[float, float], Field(strict=False)]] = Field(
        default_factory=list,
        max_length=100_000,
        description="Start and end of each critical part, seconds; rounded to the nearest frames.",
        examples=[[[1.0, 2.5]]],
    )


class FailedVideo(BaseModel):
    """A video that could not be processed."""

    path: str = Field(description="Path of the video.")
    cause: str = Field(description="Why it could not be processed.")


ShotsJob = job_model(
    "shots", answer_model("ShotsResult", "Outcome for the videos.", videos=int, failed=list[FailedVideo])
)
_FORMATS = {name: find_shot_format(name).media_type for name in shot_format_names()}
ShotForm = Annotated[
    str,
    PathPart(
        description="Format of `vidkin shots --export`.", json_schema_extra={"enum": [*_FORMATS]}, examples=["csv"]
    ),
]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A cached detection, and its corrections."""

    detection: ShotDetection
    detected: tuple[DetectedCut, ...]
    corrected: CorrectedShots | None


class _NotDetectedError(HTTPException):
    """Shots were requested before detection; answered with 404."""

    def __init__(self) -> None:
        super().__init__(404, "the shots of this video have not been detected yet")


@router.get("/shots", response_class=HTMLResponse, include_in_schema=False)
async def choose_video(
    request: Request,
    site: CurrentSite,
    q: str = "",
    number: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> HTMLResponse:
    """Page to choose a video, filtered by name as in the library."""

    def prepare() -> dict[str, Any]:
        words = q.casefold().split()
        records = [
            record
            for record in site.index.listing().records
            if record.status == "ok" and record.frames > 1 and all(word in record.path.casefold() for word in words)
        ]
        records.sort(key=lambda record: (os.path.basename(record.path).casefold(), record.path))
        shown, detector = records[(number - 1) * _A_PAGE : number * _A_PAGE], site.detector()
        videos = [video_values(record) for record in shown]
        return {
            "is_empty": site.is_empty(),
            "videos": [video for video in videos if not video["still"]],
            "known": {record.id for record in shown if site.has_shots(record, detector)},
            "query": q,
            "page": number,
            "pages": max(-(-len(records) // _A_PAGE), 1),
            "address": lambda page: f"/shots?{urlencode({'q': q, 'page': page})}",
        }

    return site.page("shots.html", request, await site.lists.run(prepare))


@router.get("/videos/{video}/shots", response_class=HTMLResponse, include_in_schema=False)
async def show_shots(request: Request, site: CurrentSite, video: int) -> HTMLResponse:
    """Page with the timeline of a video; its script requests the shots."""

    def find() -> dict[str, Any]:
        return {
            "video": video_values(site.index.record(video)),
            "source": source_item(site, video=video),
            "exports": [
                (f"/api/videos/{video}/shots/{name}", find_shot_format(name).label) for name in shot_format_names()
            ],
        }

    return site.page("video_shots.html", request, await site.lists.run(find))


class Videos(Body):
    """Videos of the index."""

    videos: list[VideoId] = Field(min_length=1, max_length=100_000, description="Numbers of the videos.")


@router.post("/api/shots", status_code=202, response_model=ShotsJob)
async def detect_shots_of_videos(site: CurrentSite, chosen: Videos) -> ResultResponse:
    """Detect the shots of several videos, one after another, as a job; videos with known shots are skipped."""
    records = await site.lists.run(lambda: [site.index.record(video) for video in chosen.videos])

    def work(job: Job) -> dict[str, Any]:
        failed = []
        for done, record in enumerate(records):
            job.report(done, len(records), base_name(record.path))
            try:
                # Reporting each frame allows the work to stop between frames.
                detect_shots_of(site, record, lambda *_, done=done: job.report(done, len(records), job.state().detail))
            except VidkinError as error:
                failed.append({"path": printable(record.path), "cause": printable(str(error))})
                job.note(f"{record.path}: {error}")
        return {"videos": len(records) - len(failed), "failed": failed}

    words = base_name(records[0].path) + (f" and {len(records) - 1} more" if len(records) > 1 else "")
    return accepted(site.jobs.start("shots", f"Shots of {words}", work))


@router.post("/api/videos/{video}/shots", status_code=202, response_model=ShotsJob)
async def detect_shots(site: CurrentSite, video: VideoNumber) -> ResultResponse:
    """Detect the shots of a video, as a job; they are cached until the file or the detector changes.

    If that job is already running, it is the answer.
    """
    record = await site.lists.run(lambda: site.index.record(video))

    def work(job: Job) -> dict[str, Any]:
        detect_shots_of(site, record, lambda done, total: job.report(int(done), int(total or 0), "frames"))
        return {"videos": 1, "failed": []}

    try:
        return accepted(site.jobs.start("shots", f"Shots of {base_name(record.path)}", work, video=video))
    except JobRunningError as error:
        if error.job.video != video:
            raise
        return accepted(error.job)


def detect_shots_of(site: Site, record: VideoRecord, on_progress: Callable[..., None]) -> None:
    """Detect and cache the shots of a video, unless they are known."""
    name = site.detector()

    def make(path: Path) -> None:
        open_record(record).close()  # refuses a file other than the indexed one
        detection = detect(record.path, name, on_progress=on_progress)
        path.write_text(json.dumps(_as_json(detection)), encoding="utf-8")

    site.cache.get(shots_key(record, name), ".json", make)


@router.get("/api/videos/{video}/shots", response_model=ShotList | None)
async def get_shots(site: CurrentSite, video: VideoNumber) -> ResultResponse:
    """The shots of a video, as they were corrected if they were; null until they are detected."""
    return ResultResponse(await site.lists.run(lambda: known_shots(site, site.index.record(video))))


def known_shots(site: Site, record: VideoRecord) -> dict[str, Any] | None:
    """The shots of a video as the API has them; None until they are detected."""
    try:
        return _list(site, record)
    except _NotDetectedError:
        return None


@router.put("/api/videos/{video}/shots", response_model=ShotList)
async def correct_shots(site: CurrentSite, video: VideoNumber, wanted: WantedCuts) -> ResultResponse:
    """Store corrected cuts. Each cut in the list, moved or not, becomes a label `cut`; each detected cut missing from
    it becomes `no cut`. Critical parts are included in exported labels."""
    site.check_writable()

    def work() -> dict[str, Any]:
        record = site.index.record(video)
        stored = _open(site, record)
        times = stored.detection.frame_times
        nearest: dict[int, DetectedCut] = {}
        moved: dict[int, int] = {}
        for cut in wanted.cuts:
            frame = int(np.abs(times - cut.time).argmin())
            if frame < 1:
                raise InvalidArgumentError(f"a cut must be after the first frame, got {cut.time:g} s")
            old = next((one for one in stored.detected if one.frame == frame and one.kind == cut.kind), None)
            nearest[frame] = old or DetectedCut(frame, cut.kind)
            if cut.moved_from is not None and (origin := int(np.abs(times - cut.moved_from).argmin())) not in (
                0,
                frame,
            ):
                moved[frame] = origin
        cuts = tuple(nearest[frame] for frame in sorted(nearest))
        moments = np.append(times, stored.detection.shots[-1].end)
        marked = sorted(
            tuple(int(np.abs(moments - time).argmin()) for time in (start, end)) for start, end in wanted.critical
        )
        corrected = CorrectedShots(
            cuts, tuple((start, end) for start, end in marked if start < end), tuple(moved.items())
        )
        write_corrected(site.index.place, record.content_hash, corrected, detected=stored.detected, source="shots page")
        return _list(site, record)

    return ResultResponse(await site.lists.run(work))


@router.delete("/api/videos/{video}/shots", response_model=ShotList)
async def forget_shots(site: CurrentSite, video: VideoNumber) -> ResultResponse:
    """Discard corrections and return to the detected shots; labels already given stay."""
    site.check_writable()

    def work() -> dict[str, Any]:
        record = site.index.record(video)
        forget_corrected(site.index.folder, record.content_hash)
        return _list(site, record)

    return ResultResponse(await site.lists.run(work))


@router.get(
    "/api/videos/{video}/shots/{form}", response_class=Response, responses=download(*sorted({*_FORMATS.values()}))
)
async def export_shots(site: CurrentSite, video: VideoNumber, form: ShotForm) -> Response:
    """Download the shots, with corrections, as a file."""
    kind = find_shot_format(form)

    def work() -> tuple[bytes, str]:
        record = site.index.record(video)
        detection = _open(site, record).detection
        if kind.reads_video:
            open_record(record).close()  # refuses a file other than the indexed one
        with tempfile.TemporaryDirectory(prefix="vidkin-run-") as folder:
            path = Path(folder, f"shots{kind.suffix}")
            kind.write(detection, path)
            return path.read_bytes(), Path(record.path).stem

    content, stem = await (site.pictures if kind.reads_video else site.lists).run(work)
    headers = {"Content-Disposition": f'attachment; filename="{safe_stem(stem)}{kind.suffix}"'}
    return Response(content, media_type=kind.media_type, headers=headers)


def stored_shots(site: Site, record: VideoRecord) -> ShotDetection:
    """The shots of a video, with corrections; until they are detected, an exception answered with 404."""
    return _open(site, record).detection


def _as_json(detection: ShotDetection) -> dict[str, Any]:
    """The values from which :func:`_open` rebuilds the detection."""
    return {
        "detector": detection.detector,
        "cuts": [
            asdict(
                DetectedCut(
                    frame=cut.frame,
                    kind=cut.kind,
                    confidence=cut.confidence,
                    start_frame=cut.start_frame,
                    end_frame=cut.end_frame,
                    kind_confidence=cut.kind_confidence,
                    is_to_ground=cut.is_to_ground,
                    is_from_ground=cut.is_from_ground,
                )
            )
            for cut in detection.cuts
        ],
        "critical": [shot.critical for shot in detection.shots],
        "black": as_json(detection.black),
        "stream": detection.stream,
        "offset": detection.offset,
        "time_code": detection.time_code,
        "times": np.asarray(detection.frame_times).round(6).tolist(),
        "end": detection.shots[-1].end,
        "curve": None
        if detection.curve is None
        else [
            detection.curve.times.round(4).tolist(),
            detection.curve.values.round(4).tolist(),
            detection.curve.name,
        ],
    }


def _open(site: Site, record: VideoRecord) -> _Stored:
    """Read the cached shots; _NotDetectedError if there are none."""

    def refuse(_: Path) -> None:
        raise _NotDetectedError

    key = shots_key(record, site.detector())
    path = site.cache.get(key, ".json", refuse)
    try:
        table = read_json(path, LONG_JSON_LIMITS)
        detected = tuple(DetectedCut(**row) for row in table["cuts"])
        detector = str(table["detector"])
        times, end, critical = (
            np.array(table["times"], dtype=float),
            float(table["end"]),
            list(table["critical"]),
        )
        black = tuple(BlackStretch(**row) for row in table["black"])
        stream, offset, time_code = table["stream"], float(table["offset"]), str(table["time_code"])
        curve = table["curve"] and Curve(np.array(table["curve"][0]), np.array(table["curve"][1]), table["curve"][2])
    except (OSError, ValueError, TypeError, LookupError):
        # The cached file is damaged, but can be made again.
        site.cache.discard(key, ".json")
        raise _NotDetectedError from None
    corrected = read_corrected(site.index.folder, record.content_hash) if record.content_hash else None
    cuts, marked = (detected, ()) if corrected is None else (corrected.cuts, corrected.critical)
    scores = None
    if all(score is not None for score in critical):
        # Critical events lie at the end of a shot, so a corrected shot takes the value of the detected shot with the
        # same end.
        ends = [cut.frame for cut in detected]
        lasts = [cut.frame - 1 for cut in cuts] + [len(times) - 1]
        scores = tuple(critical[sum(end <= last for end in ends)] for last in lasts)
    detected_cuts = DetectedCuts(cuts, curve, scores)
    built = build_detection(record.path, detector, detected_cuts, times, end=end)
    detection = replace(
        built,
        # A part that a person marked makes its shot critical, regardless of the detector.
        shots=tuple(
            replace(shot, critical=1.0)
            if any(start < shot.end_frame and last > shot.start_frame for start, last in marked)
            else shot
            for shot in built.shots
        ),
        stream=stream,
        offset=offset,
        time_code=time_code,
        black=black,
        critical=tuple((start, min(last, len(times))) for start, last in marked if start < len(times)),
    )
    return _Stored(detection, detected, corrected)


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
