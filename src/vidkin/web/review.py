"""Review: verdicts on pairs and cuts, training on them, and switching to the trained result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from vidkin import review
from vidkin._base.install import install_command
from vidkin.errors import NotIndexedError
from vidkin.index import Index, VideoRecord
from vidkin.index.storage.manifest import Manifest
from vidkin.rendering.text import number
from vidkin.web.jobs import Job
from vidkin.web.library import VideoModel, video_values
from vidkin.web.routes import Body, Page, VideoId, extends, in_lane
from vidkin.web.site import CurrentSite, Site, WritableSite

router = Page("review", "Review", "/review")

_SOURCE = "review page"


# Maximum number of verdicts in the history.
_MAX_PAST = 50


@dataclass(frozen=True, slots=True)
class PairToJudge:
    """Two videos that have not been judged yet.

    Attributes:
        first: The first of the two videos.
        second: The second of the two videos.
    """

    first: VideoModel
    second: VideoModel


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """A verdict that was given.

    Attributes:
        first: The first of the two videos.
        second: The second of the two videos.
        verdict: The verdict.
        given: Time of the verdict, ISO 8601.
    """

    first: VideoModel
    second: VideoModel
    verdict: str
    given: str


class JudgedPair(Body):
    """A person's verdict on two videos of the index.

    Attributes:
        first: Number of the first video.
        second: Number of the second video.
        verdict: How similar they are; `forget` undoes an earlier verdict.
    """

    first: VideoId
    second: VideoId = Field(examples=[2])
    verdict: Literal["same", "same kind", "different", "forget"]


Trained = Literal["measure", "cuts"]


@extends(review.MeasureReview)
class _MeasureRun:
    """A training on verdicts on pairs.

    Attributes:
        kind: Kind of the item.
    """

    kind: Literal["measure"]


@extends(review.CutReview)
class _CutRun:
    """A training on verdicts on cuts.

    Attributes:
        kind: Kind of the item.
    """

    kind: Literal["cuts"]


@dataclass(frozen=True, slots=True)
class ReviewState:
    """The verdicts so far, the trainings on them, and the scorer and detector in use.

    Attributes:
        same: Number of verdicts `same`.
        same_kind: Number of verdicts `same kind`.
        different: Number of verdicts `different`.
        cut: Number of verdicts `cut`.
        no_cut: Number of verdicts `no cut`.
        runs: The trainings, newest first.
        measure_in_use: Whether searches use the trained scorer.
        detector: Name of the shot detector.
        pairs: Whether there are enough verdicts on pairs for training.
        cuts: Whether there are enough verdicts on cuts for training.
    """

    same: int
    same_kind: int
    different: int
    cut: int
    no_cut: int
    runs: list[_MeasureRun | _CutRun]
    measure_in_use: bool
    detector: str
    pairs: review.Readiness
    cuts: review.Readiness


class Training(Body):
    """The scorer or threshold to train.

    Attributes:
        what: `measure` trains on verdicts on pairs, `cuts` on verdicts on cuts.
    """

    what: Trained


class Switch(Body):
    """The scorer or detector to use from now on.

    Attributes:
        what: `measure` in searches, `cuts` on the shots page.
        use: True for the trained one, false for the original.
    """

    what: Trained
    use: bool


@router.page("/review", "review.html")
def show_review(site: CurrentSite) -> dict[str, Any]:
    """Page with two videos to judge, and the trainings so far."""
    return {
        "state": get_review(site),
        "history": list_verdicts(site),
        "describe_run": describe_run,
        "install": "" if find_spec("torch") else install_command("train"),
    }


@router.get("/api/review")
def get_review(site: CurrentSite) -> ReviewState:
    """Get the numbers of verdicts, the trainings, and the scorer and detector in use."""
    path = site.index.folder
    labels = review.Labels.open(path)
    pairs = [label.verdict for label in labels.pairs]
    cuts = [label.verdict for label in labels.cuts]
    contents = set(_by_content(site))
    runs: Any = review.read_reviews(path)[::-1]
    return ReviewState(
        same=pairs.count("same"),
        same_kind=pairs.count("same kind"),
        different=pairs.count("different"),
        cut=cuts.count("cut"),
        no_cut=cuts.count("no cut"),
        runs=runs,
        measure_in_use=Manifest.read(site.index.place).reviewed,
        detector=review.read_detector(path),
        pairs=review.readiness_of_pairs(labels, contents),
        cuts=review.readiness_of_cuts(labels, contents),
    )


@router.get("/api/review/pairs")
@in_lane("searches")
def list_pairs_to_judge(
    site: CurrentSite,
    limit: Annotated[int, Query(ge=1, le=50, description="Maximum number of pairs.", examples=[10])] = 10,
) -> list[PairToJudge]:
    """List pairs to judge next, from similar to dissimilar."""
    with site.index.reader() as index:
        index.refresh()
        pairs = review.suggest_pairs(index, review.Labels.open(site.index.folder), limit=limit)
    return [PairToJudge(video_values(pair.first), video_values(pair.second)) for pair in pairs]


@router.post("/api/review/pairs")
def judge_pair(site: WritableSite, verdict: JudgedPair) -> ReviewState:
    """Store a verdict on two videos as a label; it replaces an earlier one."""
    one, other = (site.index.record(video).content_hash for video in (verdict.first, verdict.second))
    if not (one and other):
        raise NotIndexedError("a video changed while it was being read; index it again")
    if verdict.verdict == "forget":
        review.Labels.forget_pair(site.index.place, one, other)
    else:
        review.Labels.judge_pair(site.index.place, one, other, verdict.verdict, source=_SOURCE)
    return get_review(site)


@router.get("/api/review/history")
def list_verdicts(site: CurrentSite) -> list[PastVerdict]:
    """List the last verdicts on pairs, newest first, without verdicts on videos that are no longer in the index."""
    records = _by_content(site)
    labels = reversed(review.Labels.open(site.index.folder).pairs)
    known = [label for label in labels if label.first in records and label.second in records]
    return [
        PastVerdict(video_values(records[label.first]), video_values(records[label.second]), label.verdict, label.given)
        for label in known[:_MAX_PAST]
    ]


@router.job("/api/review/train", "review", _MeasureRun | _CutRun)
def train_on_verdicts(site: WritableSite, training: Training) -> Job:
    """Train on the verdicts, as a job; the scorer and detector in use do not change."""

    def work(job: Job) -> object:
        with Index.open(site.index.location, read_only=True) as index:
            run: Callable[..., review.MeasureReview | review.CutReview] = (
                review.train_measure if training.what == "measure" else review.train_cuts
            )
            trained = run(index, on_progress=lambda done, total: job.report(done, total, "training"))
        return {"kind": training.what, **trained.to_dict()}

    return site.jobs.start("review", "Train on verdicts", work)


@router.post("/api/review/use")
def switch_trained(site: WritableSite, switch: Switch) -> ReviewState:
    """Switch to the result trained last, or back to the original."""
    if switch.what == "measure":
        review.use_measure(site.index.place, use=switch.use)
        site.index.reopen()
    else:
        review.use_detector(site.index.place, use=switch.use)
    return get_review(site)


def _by_content(site: Site) -> dict[str, VideoRecord]:
    return {record.content_hash: record for record in site.index.listing().records if record.status == "ok"}


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
