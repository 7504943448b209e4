"""Unlabeled videos as batches of a comparator: a weak and a strong view of each window."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import torch

from vidkin.metric.measures import mean_average_precision
from vidkin.models.comparator.comparator import Comparator
from vidkin.training.clips.batch import ClipBatch, make_batch
from vidkin.training.clips.views import ClipFeatures, EditedClip, ViewMaker
from vidkin.training.clips.windows import Window
from vidkin.training.data.batch import Draw
from vidkin.training.recipe import Measure, ScheduleRecipe

__all__ = ["ClipData"]

# Most validation windows: the cost of comparison grows with the square of their number.
_MOST_VALIDATION = 64


@dataclass(eq=False)
class ClipData:
    """See :class:`vidkin.training.data.source.TrainingData`.

    Attributes:
        name: Names of the folders with their number of videos.
        broken: (file, cause) of files that could not be used.
        windows: Training windows.
        validation: Validation windows; empty without validation.
        maker: Makes the views of the windows.
        schedule: Number of windows per step, at most as many as there are, and the seed of the steps.
        device: Device of the batches.
        stored: Views made in advance by window number: the weak one, then strong ones; None makes new views at every
            step.
        teacher: Unit vectors [T, D'] of each video's frames; None without an objective that needs them.
        threads: Number of threads that edit clips ahead of the steps.
    """

    name: str
    broken: tuple[tuple[str, str], ...]
    windows: Sequence[Window]
    validation: Sequence[Window]
    maker: ViewMaker
    schedule: ScheduleRecipe
    device: torch.device
    stored: dict[int, list[ClipFeatures]] | None = None
    teacher: Sequence[torch.Tensor] | None = None
    threads: int = 1
    _judged: ClipBatch | None = field(default=None, init=False)

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[ClipBatch]:
        """The batches of all steps from ``first`` on; each depends only on the seed and the step, not on the
        threads."""
        assert tuple(draws) == ("clips",)
        for clips in self._drawn(first) if self.stored is None else self._looked_up(first):
            yield make_batch(clips, self.teacher).to(self.device)

    def edited(self, step: int) -> list[EditedClip]:
        """Remake the weak views of a step's windows, then their strong views."""
        chosen, _ = self._choose(step)
        weak = [self.maker.edit(window, 2 * step, chosen) for window in chosen]
        strong = []
        for position, window in enumerate(chosen):
            others = [*chosen[position + 1 :], *chosen[:position]]
            donors = [other for other in others if other.video != window.video]
            strong.append(self.maker.edit(window, 2 * step + 1, donors or others))
        return weak + strong

    def measure(self, model: Comparator, measure: Measure) -> float:
        """mAP of validation clips: each view is a query for the other view of its window among all others."""
        assert measure == "map"
        if self._judged is None:
            clips = []
            chosen = self.validation[:_MOST_VALIDATION]
            for number in (0, 1):
                for position, window in enumerate(chosen):
                    donors = [other for other in (*chosen[position:], *chosen) if other.video != window.video]
                    clips.append(self.maker.describe(self.maker.edit(window, number, donors)))
            self._judged = make_batch(clips).to(self.device)
        batch = self._judged
        training = model.training
        model.eval()
        with torch.no_grad():
            scores = model(batch.values, batch.lengths).scores.float().cpu()
        model.train(training)
        relevance = batch.relevance.cpu()
        counts = (relevance >= 0) & ~torch.eye(len(scores), dtype=torch.bool)
        return float(mean_average_precision(scores, relevance.clamp(min=0), valid=counts))

    def identity(self) -> bytes:
        """Content of the videos, their windows, and the extractor's fingerprint."""
        keys = [video.key for video in self.maker.videos]
        windows = [[window.number, window.start, window.stop] for window in self.windows]
        return hashlib.sha256(json.dumps([keys, windows, self.maker.extractor.fingerprint]).encode()).digest()

    def _choose(self, step: int) -> tuple[list[Window], torch.Generator]:
        """The windows of a step, and the generator for its other draws."""
        generator = torch.Generator().manual_seed(self.schedule.seed * 1_000_003 + step)
        order = torch.randperm(len(self.windows), generator=generator)[: self.schedule.pairs]
        return [self.windows[position] for position in order.tolist()], generator

    def _looked_up(self, first: int) -> Iterator[list[ClipFeatures]]:
        """The clips of each step, from clips made in advance."""
        assert self.stored is not None
        for step in range(first, self.schedule.steps):
            windows, generator = self._choose(step)
            chosen = [self.stored[window.number] for window in windows]
            picks = torch.randint(len(chosen[0]) - 1, (len(chosen),), generator=generator).tolist()
            strong = [views[1 + pick] for views, pick in zip(chosen, picks, strict=True)]
            yield [views[0] for views in chosen] + strong

    def _drawn(self, first: int) -> Iterator[list[ClipFeatures]]:
        """The clips of each step, edited ahead of time by threads."""
        waiting: deque[Future[list[EditedClip]]] = deque()
        with ThreadPoolExecutor(max_workers=self.threads) as pool:
            ahead = iter(range(first, self.schedule.steps))
            try:
                for _ in range(first, self.schedule.steps):
                    while len(waiting) <= self.threads and (step := next(ahead, None)) is not None:
                        waiting.append(pool.submit(self.edited, step))
                    yield [self.maker.describe(clip) for clip in waiting.popleft().result()]
            finally:
                for future in waiting:
                    future.cancel()
