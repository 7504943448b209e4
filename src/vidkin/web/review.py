"""Review: verdicts on pairs and cuts, training on them, and switching to the trained result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from vidkin._base.install import install_command
from vidkin.errors import NotIndexedError
from vidkin.index import Index
from vidkin.index.storage.manifest import Manifest
from vidkin.rendering.text import number
from vidkin.review import (
    CutReview,
    Labels,
    MeasureReview,
    Readiness,
    read_detector,
    read_reviews,
    readiness_of_cuts,
    readiness_of_pairs,
    suggest_pairs,
    train_cuts,
    train_measure,
    use_detector,
    use_measure,
)
from vidkin.web.jobs import Job
from vidkin.web.library import VideoModel, video_values
from vidkin.web.parameters import Body, VideoId
from vidkin.web.site import CurrentSite, Page, ResultResponse, Site, accepted, answer_model, job_model, result_model

router = APIRouter(tags=["review"])
review_page = Page(router, "Review", "/review")

_SOURCE = "review page"


# Maximum number of verdicts in the history.
_MAX_PAST = 50

PairToJudge: Any = answer_model(
    "PairToJudge", "Two videos that have not been judged yet.", first=VideoModel, second=VideoModel
)


PastVerdict: Any = answer_model(
    "PastVerdict", "A verdict that was given.", first=VideoModel, second=VideoModel, verdict=str, given=str
)


class JudgedPair(Body):
    """A person's verdict on two videos of the index."""

    first: VideoId = Field(description="Number of the first video.")
    second: VideoId = Field(description="Number of the second video.", examples=[2])
    verdict: Literal["same", "same kind", "different", "forget"] = Field(
        description="How similar they are; `forget` undoes an earlier verdict."
    )


_MeasureRun: Any = result_model(MeasureReview, kind=Literal["measure"])
_CutRun: Any = result_model(CutReview, kind=Literal["cuts"])
_ReadinessModel: Any = result_model(Readiness)
# ``pairs``, ``cuts``: whether there are enough verdicts for training; ``same``, ``same_kind``, ``different``, ``cut``,
# ``no_cut``: numbers of verdicts; ``runs``: newest first; ``measure_in_use``: whether searches use the trained scorer;
# ``detector``: detector of the shots page.
ReviewState: Any = answer_model(
    "ReviewState",
    "The verdicts so far, the trainings on them, and the scorer and detector in use.",
    same=int,
    same_kind=int,
    different=int,
    cut=int,
    no_cut=int,
    runs=list[_MeasureRun | _CutRun],
    measure_in_use=bool,
    detector=str,
    pairs=_ReadinessModel,
    cuts=_ReadinessModel,
)


class Training(Body):
    """The scorer or threshold to train."""

    what: Literal["measure", "cuts"] = Field(
        description="`measure` trains on verdicts on pairs, `cuts` on verdicts on cuts."
    )


class Switch(Body):
    """The scorer or detector to use from now on."""

    what: Literal["measure", "cuts"] = Field(description="`measure` in searches, `cuts` on the shots page.")
    use: bool = Field(description="True for the trained one, false for the original.")


ReviewJob = job_model("review", _MeasureRun | _CutRun)


@router.get("/review", response_class=HTMLResponse, include_in_schema=False)
async def show_review(request: Request, site: CurrentSite) -> HTMLResponse:
    """Page with two videos to judge, and the trainings so far."""
    values = {
        "state": await site.lists.run(lambda: _state(site)),
        "history": await site.lists.run(lambda: _history(site)),
        "is_empty": await site.lists.run(site.is_empty),
        "describe_run": describe_run,
        "install": "" if find_spec("torch") else install_command("train"),
    }
    return site.page("review.html", request, values)


@router.get("/api/review", response_model=ReviewState)
async def get_review(site: CurrentSite) -> ResultResponse:
    """Get the numbers of verdicts, the trainings, and the scorer and detector in use."""
    return ResultResponse(await site.lists.run(lambda: _state(site)))


@router.get("/api/review/pairs", response_model=list[PairToJudge])
async def list_pairs_to_judge(
    site: CurrentSite,
    limit: Annotated[int, Query(ge=1, le=50, description="Maximum number of pairs.", examples=[10])] = 10,
) -> ResultResponse:
    """List pairs to judge next, from similar to dissimilar."""

    def work() -> list[dict[str, Any]]:
        with site.index.reader() as index:
            index.refresh()
            pairs = suggest_pairs(index, Labels.open(site.index.folder), limit=limit)
        return [{"first": video_values(pair.first), "second": video_values(pair.second)} for pair in pairs]

    return ResultResponse(await site.searches.run(work))


@router.post("/api/review/pairs", response_model=ReviewState)
async def judge_pair(site: CurrentSite, verdict: JudgedPair) -> ResultResponse:
    """Store a verdict on two videos as a label; it replaces an earlier one."""
    site.check_writable()

    def work() -> dict[str, Any]:
        one, other = (site.index.record(video).content_hash for video in (verdict.first, verdict.second))
        if not (one and other):
            raise NotIndexedError("a video changed while it was being read; index it again")
        if verdict.verdict == "forget":
            Labels.forget_pair(site.index.place, one, other)
        else:
            Labels.judge_pair(site.index.place, one, other, verdict.verdict, source=_SOURCE)
        return _state(site)

    return ResultResponse(await site.lists.run(work))


@router.get("/api/review/history", response_model=list[PastVerdict])
async def list_verdicts(site: CurrentSite) -> ResultResponse:
    """List the last verdicts on pairs, newest first, without verdicts on videos that are no longer in the index."""
    return ResultResponse(await site.lists.run(lambda: _history(site)))


@router.post("/api/review/train", status_code=202, response_model=ReviewJob)
async def train_on_verdicts(site: CurrentSite, training: Training) -> ResultResponse:
    """Train on the verdicts, as a job; the scorer and detector in use do not change."""
    site.check_writable()

    def work(job: Job) -> object:
        with Index.open(site.index.location, read_only=True) as index:
            run: Callable[..., MeasureReview | CutReview] = train_measure if training.what == "measure" else train_cuts
            trained = run(index, on_progress=lambda done, total: job.report(done, total, "training"))
        return {"kind": training.what, **trained.to_dict()}

    return accepted(site.jobs.start("review", "Train on verdicts", work))


@router.post("/api/review/use", response_model=ReviewState)
async def switch_trained(site: CurrentSite, switch: Switch) -> ResultResponse:
    """Switch to the result trained last, or back to the original."""
    site.check_writable()

    def work() -> dict[str, Any]:
        if switch.what == "measure":
            use_measure(site.index.place, use=switch.use)
            site.index.reopen()
        else:
            use_detector(site.index.place, use=switch.use)
        return _state(site)

    return ResultResponse(await site.lists.run(work))


def _history(site: Site) -> list[dict[str, Any]]:
    records = {record.content_hash: record for record in site.index.listing().records if record.status == "ok"}
    labels = [
        label
        for label in reversed(Labels.open(site.index.folder).pairs)
        if label.first in records and label.second in records
    ]
    return [
        {
            "first": video_values(records[label.first]),
            "second": video_values(records[label.second]),
            "verdict": label.verdict,
            "given": label.given,
        }
        for label in labels[:_MAX_PAST]
    ]


def describe_run(run: Mapping[str, Any]) -> str:
    """Describe in a sentence how a training changed the figures."""
    before, after = 100 * run["before"], 100 * run["after"]
    if run["kind"] == "measure":
        what = f"puts {after:.0f} % of pairs of verdicts in the right order, {before:.0f} % before"
    else:
        what = f"reaches an F1 of {after:.0f} % on cuts, {before:.0f} % before"
    words = {"better": "it is better", "worse": "it is worse; keep the current one"}
    judgment = words.get(run["judgment"], "the difference may be chance")
    trained = "scorer" if run["kind"] == "measure" else "threshold"
    return (
        f"The trained {trained} {what}, on {number(run['held_back'], 'verdict')} held back from training: {judgment}."
    )


def _state(site: Site) -> dict[str, Any]:
    path = site.index.folder
    labels = Labels.open(path)
    pairs = [label.verdict for label in labels.pairs]
    cuts = [label.verdict for label in labels.cuts]
    contents = {record.content_hash for record in site.index.listing().records if record.status == "ok"}
    return {
        "pairs": readiness_of_pairs(labels, contents),
        "cuts": readiness_of_cuts(labels, contents),
        "same": pairs.count("same"),
        "same_kind": pairs.count("same kind"),
        "different": pairs.count("different"),
        "cut": cuts.count("cut"),
        "no_cut": cuts.count("no cut"),
        "runs": read_reviews(path)[::-1],
        "measure_in_use": Manifest.read(site.index.place).reviewed,
        "detector": read_detector(path),
    }
