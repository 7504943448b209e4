"""Review: verdicts on pairs and cuts, training on them, and the switch to the trained result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from vidkin.errors import NotIndexedError
from vidkin.index import Index
from vidkin.index.manifest import Manifest
from vidkin.index.storage.places.opening import open_place
from vidkin.review import (
    Labels,
    read_detector,
    read_reviews,
    suggest_pairs,
    train_cuts,
    train_measure,
    use_detector,
    use_measure,
)
from vidkin.web.jobs import Job, JobState
from vidkin.web.pages.library import VideoItem, video_item
from vidkin.web.site import CurrentSite, Page, Site

__all__ = ["page"]

router = APIRouter(tags=["review"])
page = Page(router, "Review", "/review")

_SOURCE = "review page"


@dataclass(frozen=True, slots=True)
class PairToJudge:
    """Two videos that nobody judged yet.

    Attributes:
        first, second: Records in the index.
    """

    first: VideoItem
    second: VideoItem


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """What a person says of two videos of the index.

    Attributes:
        first, second: Numbers of the two videos.
        verdict: How alike they are.
    """

    first: int
    second: int
    verdict: Literal["same", "same kind", "different"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A training on verdicts, measured on those that were held back.

    Attributes:
        kind: ``measure`` (of pairs) or ``cuts``.
        trained_on, held_back: Numbers of verdicts.
        before, after: Figure before and after the training: the share of pairs of verdicts in the right
            order, or F1 of cuts.
        judgment: ``better``, ``no clear difference`` or ``worse``.
    """

    kind: Literal["measure", "cuts"]
    trained_on: int
    held_back: int
    before: float
    after: float
    judgment: str


@dataclass(frozen=True, slots=True)
class ReviewState:
    """The verdicts so far, the trainings on them, and what is in use.

    Attributes:
        same, same_kind, different: Numbers of verdicts on pairs.
        cut, no_cut: Numbers of verdicts on cuts.
        runs: Trainings, the last one first.
        measure_in_use: Searches use the trained measure.
        detector: Name of the detector that the shots page uses.
    """

    same: int
    same_kind: int
    different: int
    cut: int
    no_cut: int
    runs: tuple[Measured, ...]
    measure_in_use: bool
    detector: str


@dataclass(frozen=True, slots=True)
class Training:
    """What to train.

    Attributes:
        what: ``measure`` on verdicts on pairs, ``cuts`` on those on cuts.
    """

    what: Literal["measure", "cuts"]


@dataclass(frozen=True, slots=True)
class Switch:
    """What to use from now on.

    Attributes:
        what: ``measure`` in searches, ``cuts`` on the shots page.
        use: The trained one, or the original again.
    """

    what: Literal["measure", "cuts"]
    use: bool


@router.get("/review", response_class=HTMLResponse, include_in_schema=False)
async def show_review(request: Request, site: CurrentSite) -> HTMLResponse:
    """The page."""
    values = {
        "state": await site.lists.run(lambda: _state(site)),
        "is_empty": await site.lists.run(site.is_empty),
    }
    return site.page("review.html", request, values)


@router.get("/api/review")
async def get_review(site: CurrentSite) -> ReviewState:
    """How many verdicts there are, what was trained on them, and what is in use."""
    return await site.lists.run(lambda: _state(site))


@router.get("/api/review/pairs")
async def list_pairs(site: CurrentSite, limit: Annotated[int, Query(ge=1, le=50)] = 10) -> list[PairToJudge]:
    """Pairs to judge next, from near to far."""

    def work() -> list[PairToJudge]:
        with site.collection.reader() as index:
            index.refresh()
            pairs = suggest_pairs(index, Labels.open(site.collection.folder), limit=limit)
        return [PairToJudge(video_item(pair.first), video_item(pair.second)) for pair in pairs]

    return await site.searches.run(work)


@router.post("/api/review/pairs")
async def judge_pair(site: CurrentSite, verdict: JudgedPair) -> ReviewState:
    """Store a verdict on two videos as a label; a later one replaces it."""
    site.check_writable()

    def work() -> ReviewState:
        one, other = (site.collection.record(video).content_hash for video in (verdict.first, verdict.second))
        if not (one and other):
            raise NotIndexedError("a video changed while it was being read; index it again")
        Labels.judge_pair(site.collection.folder, one, other, verdict.verdict, source=_SOURCE)
        return _state(site)

    return await site.lists.run(work)


@router.post("/api/review/train")
async def train(site: CurrentSite, training: Training) -> JobState:
    """Train on the verdicts, as a job; what is in use stays."""
    site.check_writable()

    def work(job: Job) -> object:
        with Index.open(site.collection.location, read_only=True) as index:
            run = train_measure if training.what == "measure" else train_cuts
            return run(index, on_progress=lambda done, total: job.report(done, total, "training"))

    return site.jobs.start("review", "Train on verdicts", work).state()


@router.post("/api/review/use")
async def switch(site: CurrentSite, switch: Switch) -> ReviewState:
    """Use what was trained last, or what was there before."""
    site.check_writable()

    def work() -> ReviewState:
        if switch.what == "measure":
            use_measure(site.collection.folder, use=switch.use)
            site.collection.reopen()
        else:
            use_detector(site.collection.folder, use=switch.use)
        return _state(site)

    return await site.lists.run(work)


def _state(site: Site) -> ReviewState:
    path = site.collection.folder
    labels = Labels.open(path)
    pairs = [label.verdict for label in labels.pairs]
    cuts = [label.verdict for label in labels.cuts]
    names = Measured.__dataclass_fields__
    return ReviewState(
        same=pairs.count("same"),
        same_kind=pairs.count("same kind"),
        different=pairs.count("different"),
        cut=cuts.count("cut"),
        no_cut=cuts.count("no cut"),
        runs=tuple(Measured(**{name: run[name] for name in names}) for run in reversed(read_reviews(path))),
        measure_in_use=Manifest.read(open_place(site.collection.location)).reviewed,
        detector=read_detector(path),
    )
