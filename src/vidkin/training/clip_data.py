"""Training data and objective of a comparator: batches of clips with relevance labels, and losses on comparisons."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from vidkin.datasets.augmentation.clip_views import LEAST_SHARED
from vidkin.metric.measures import mean_average_precision
from vidkin.models.comparator import ClipComparison, Comparator
from vidkin.models.encoder import evaluation_mode
from vidkin.similarity import length_mask
from vidkin.training.batch import Draw, weighted_sum, work_ahead
from vidkin.training.clip_footage import Window
from vidkin.training.clip_views import VIEWS_REVISION, ClipFeatures, EditedClip, ViewMaker
from vidkin.training.objectives import LossCall, find_loss, make_loss
from vidkin.training.processes import compute_in_shares, process_count
from vidkin.training.recipe import Measure, ObjectiveRecipe, ScheduleRecipe


@dataclass(frozen=True, slots=True, eq=False)
class ClipBatch:
    """N clips to be compared with each other.

    Attributes:
        values: [N, T, R, D] float32 descriptors, zero beyond the lengths.
        lengths: [N] int64, number of frames in each clip.
        relevance: [N, N] int64: 1 if the clips share at least a quarter (``LEAST_SHARED``) of the shorter clip's
            frames, 0 if they come from different videos, -1 (ignored) if they show different moments of the same video,
            which may look alike.
        same_window: [N, N] bool, whether both clips come from the same window and share at least that many frames.
        labeled: [N, T] bool, whether a frame shows a frame of the window rather than noise.
        teacher: [N, T, D'] float32, the teacher's unit vectors of these frames, unedited or edited; None without a
            teacher.
    """

    values: torch.Tensor
    lengths: torch.Tensor
    relevance: torch.Tensor
    same_window: torch.Tensor
    labeled: torch.Tensor
    teacher: torch.Tensor | None = None

    def to(self, device: torch.device) -> ClipBatch:
        """Copy the batch to a device."""
        tensors: dict[str, Any] = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items() if tensor is not None})


def make_batch(clips: Sequence[ClipFeatures], teacher: Sequence[torch.Tensor] | None = None) -> ClipBatch:
    """Create a batch of clips.

    Args:
        clips: Views of windows.
        teacher: The teacher's vectors [T, D'] of each video's frames; None without a teacher, or if the clips include
            the teacher's vectors.
    """
    lengths = torch.tensor([len(clip.values) for clip in clips])
    pad = torch.nn.utils.rnn.pad_sequence
    sources = pad([clip.sources for clip in clips], batch_first=True, padding_value=-1)
    vectors = None
    if teacher is not None:
        seen = [teacher[clip.videos[0]][clip.sources.clamp(min=0)] for clip in clips]
        vectors = pad(seen, batch_first=True)
    elif own_labels := [clip.teacher for clip in clips if clip.teacher is not None]:
        vectors = pad(own_labels, batch_first=True)
    own = torch.tensor([clip.windows[0] for clip in clips])
    common, own_common = _compare_frames(clips)
    related = _have_common([clip.videos for clip in clips])
    return ClipBatch(
        values=pad([clip.values for clip in clips], batch_first=True),
        lengths=lengths,
        relevance=torch.where(common, 1, torch.where(related, -1, 0)),
        same_window=(own[:, None] == own) & own_common,
        labeled=(sources >= 0) & length_mask(lengths, sources.shape[1]),
        teacher=vectors,
    )


def _compare_frames(clips: Sequence[ClipFeatures]) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute two masks [N, N] bool: whether two clips share enough frames of any video, and of their own videos."""
    parts: list[torch.Tensor] = []
    owners: list[int] = []
    firsts: list[int] = []
    for position, clip in enumerate(clips):
        firsts.append(len(parts))
        frames = [torch.unique(clip.sources[clip.sources >= 0]), *(torch.arange(*stretch) for stretch in clip.lent)]
        # The video number in the upper bits distinguishes frames of different videos.
        parts += [own + (video << 32) for own, video in zip(frames, clip.videos, strict=True)]
        owners += [position] * len(frames)
    sizes = torch.tensor([len(part) for part in parts])
    _, columns = torch.unique(torch.cat(parts), return_inverse=True)
    shows = torch.zeros(len(parts), int(columns.max()) + 1 if len(columns) else 1)
    shows[torch.arange(len(parts)).repeat_interleave(sizes), columns] = 1.0
    enough = shows @ shows.T >= LEAST_SHARED * torch.minimum(sizes[:, None], sizes).clamp(min=1)
    belongs = torch.zeros(len(clips), len(parts))
    belongs[owners, torch.arange(len(parts))] = 1.0
    # A clip that shows only noise has no frames, but still matches itself.
    same = torch.eye(len(clips), dtype=torch.bool)
    return (belongs @ enough.float() @ belongs.T > 0) | same, enough[firsts][:, firsts] | same


def _have_common(numbers: Sequence[tuple[int, ...]]) -> torch.Tensor:
    """Compute a mask [N, N] bool: whether two tuples have a number in common."""
    rows = torch.nn.utils.rnn.pad_sequence([torch.tensor(own) for own in numbers], batch_first=True, padding_value=-1)
    equal = (rows[:, None, :, None] == rows[None, :, None, :]) & (rows >= 0)[:, None, :, None]
    return equal.flatten(2).any(2)


# Maximum number of validation windows; the cost of comparing them is quadratic.
_MAX_VALIDATION = 64


@dataclass(eq=False)
class ClipData:
    """Training data of a comparator; see :class:`vidkin.training.batch.TrainingData`.

    Attributes:
        name: Names of the folders with the number of videos.
        broken: (file, cause) for each file that could not be used.
        windows: Training windows.
        validation: Validation windows; empty without validation.
        maker: Creates the views of the windows.
        schedule: Number of windows per step, at most the number of all windows, and the seed of the steps.
        device: Device of the batches.
        stored: Precomputed views by window number: the weak view, then strong views; None to create new views at every
            step.
        teacher: The teacher's unit vectors [T, D'] of each video's frames; None if the objective does not need them.
        threads: Number of threads that edit clips in advance.
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
    _validation_batch: ClipBatch | None = field(default=None, init=False)

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[ClipBatch]:
        """Yield the batches from step ``first``; each depends only on the seed and the step, not on the number of
        threads."""
        assert tuple(draws) == ("clips",)
        for clips in self._edit_clips(first) if self.stored is None else self._select_stored(first):
            yield make_batch(clips, self.teacher).to(self.device)

    def edit(self, step: int) -> list[EditedClip]:
        """Edit the clips of a step: the weak views of its windows, then their strong views."""
        chosen = [self.maker.move(window, step) for window in self._choose(step)[0]]
        weak = [self.maker.edit(window, 2 * step, chosen) for window in chosen]
        strong = []
        for position, window in enumerate(chosen):
            others = [*chosen[position + 1 :], *chosen[:position]]
            donors = [other for other in others if other.video != window.video]
            strong.append(self.maker.edit(window, 2 * step + 1, donors or others, beside=weak[position]))
        return weak + strong

    def measure(self, model: Comparator, measure: Measure) -> float:
        """Compute the mAP of the validation clips: each view is a query for the other view of its window among all
        clips."""
        assert measure == "map"
        if self._validation_batch is None:
            chosen = self.validation[:_MAX_VALIDATION]
            weak, strong = [], []
            for position, window in enumerate(chosen):
                donors = [other for other in (*chosen[position:], *chosen) if other.video != window.video]
                weak.append(self.maker.edit(window, 0, donors))
                strong.append(self.maker.edit(window, 1, donors, beside=weak[-1]))
            clips = [self.maker.describe(clip) for clip in weak + strong]
            self._validation_batch = make_batch(clips).to(self.device)
        batch = self._validation_batch
        with evaluation_mode(model):
            scores = model(batch.values, batch.lengths).scores.float().cpu()
        relevance = batch.relevance.cpu()
        counts = (relevance >= 0) & ~torch.eye(len(scores), dtype=torch.bool)
        return float(mean_average_precision(scores, relevance.clamp(min=0), valid=counts))

    def identity(self) -> bytes:
        """Return a hash of the videos' content, the windows, and the extractor's fingerprint."""
        keys = [video.key for video in self.maker.videos]
        windows = [[window.number, window.start, window.stop] for window in self.windows]
        return hashlib.sha256(
            json.dumps([VIEWS_REVISION, keys, windows, self.maker.extractor.fingerprint]).encode()
        ).digest()

    def _choose(self, step: int) -> tuple[list[Window], torch.Generator]:
        """Sample the windows of a step; also return the generator for further random choices."""
        generator = torch.Generator().manual_seed(self.schedule.seed * 1_000_003 + step)
        order = torch.randperm(len(self.windows), generator=generator)[: self.schedule.pairs]
        return [self.windows[position] for position in order.tolist()], generator

    def _select_stored(self, first: int) -> Iterator[list[ClipFeatures]]:
        """Yield the clips of each step, selected from precomputed views."""
        assert self.stored is not None
        for step in range(first, self.schedule.steps):
            windows, generator = self._choose(step)
            chosen = [self.stored[window.number] for window in windows]
            picks = torch.randint(len(chosen[0]) - 1, (len(chosen),), generator=generator).tolist()
            strong = [views[1 + pick] for views, pick in zip(chosen, picks, strict=True)]
            yield [views[0] for views in chosen] + strong

    def _edit_clips(self, first: int) -> Iterator[list[ClipFeatures]]:
        """Yield the clips of each step, edited in advance by threads."""
        for clips in work_ahead(self.edit, range(first, self.schedule.steps), threads=self.threads):
            yield [self.maker.describe(clip) for clip in clips]


# With fewer videos, the 99th percentile over their pairs is not reliable; the cost is quadratic in their number.
_MIN_VIDEOS, _MAX_VIDEOS = 12, 64


def raise_unrelated(unrelated: tuple[float, float], comparator: Comparator, data: ClipData) -> tuple[float, float]:
    """Raise the 99th percentile of scores between unrelated photographs to that between unrelated training videos.

    One clip from each of up to 64 videos is compared with all other clips. Pairs whose score is closer to the median
    score of a clip with itself than to ``u`` are excluded, because they may be copies.

    Args:
        unrelated: Median m and 99th percentile u of the raw scores of photographs, in [-1, 1].
        comparator: The trained comparator, on the CPU.
        data: The training videos.

    Returns:
        m, and the maximum of u and the 99th percentile over the pairs; unchanged if there are fewer than 12 videos.
    """
    median, high = unrelated
    windows = [next(own) for _, own in groupby(data.windows, key=lambda window: window.video)]
    count = len(windows)
    if count < _MIN_VIDEOS:
        return unrelated
    chosen = [windows[n * count // _MAX_VIDEOS] for n in range(_MAX_VIDEOS)] if count > _MAX_VIDEOS else windows
    stored = data.stored
    clips = [
        data.maker.describe(data.maker.edit(window, 0, [window])) if stored is None else stored[window.number][0]
        for window in chosen
    ]
    batch = make_batch(clips)
    with evaluation_mode(comparator):
        scores = comparator(batch.values, batch.lengths).scores * 2 - 1
    pairs = scores[batch.relevance == 0]
    pairs = pairs[pairs < (high + float(scores.diagonal().median())) / 2]
    return median, max(high, float(pairs.quantile(0.99))) if len(pairs) else high


COMPARATOR_CALLS: tuple[LossCall, ...] = ("fine_scores", "learned_maps", "frame_maps")

"""Kinds of losses that can train a comparator: on scores, learned maps, and frame similarity maps."""


class ComparatorObjective(nn.Module):
    """A weighted sum of losses on the pairwise comparison of all clips.

    Losses on scores receive the scores [N, N] in [0, 1] and their relevance; ``learned_maps`` losses receive the
    learned maps before clipping; ``frame_maps`` losses receive the frame similarities and those of the teacher for the
    two views of each window.

    Args:
        parts: The objectives of a recipe.
    """

    def __init__(self, parts: Sequence[ObjectiveRecipe]) -> None:
        super().__init__()
        self._parts = tuple(parts)
        self._calls = tuple(find_loss(part.name).call for part in parts)
        self.losses = nn.ModuleList(make_loss(part.name, part.parameters) for part in parts)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """``clips``: edited views of unlabeled clips, the only sampling method of this objective."""
        return ("clips",)

    @property
    def needs_teacher(self) -> bool:
        """Whether a loss compares frame similarities with those of a teacher."""
        return "frame_maps" in self._calls

    def forward(self, model: Comparator, batch: ClipBatch) -> dict[str, Tensor]:
        """Compute the terms of a step: the value of each objective before weighting, ``loss``, which is minimized, and
        the mean scores of ``positives`` and ``negatives``, which are only reported."""
        comparison = _compare(model, batch)
        terms: dict[str, Tensor] = {}
        with torch.autocast(comparison.scores.device.type, enabled=False):
            total = weighted_sum(
                terms,
                (
                    (part, _compute(loss, call, comparison, batch))
                    for part, call, loss in zip(self._parts, self._calls, self.losses, strict=True)
                ),
            )
        scores = comparison.scores.detach().float()
        others = ~torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        for name, relevance in (("positives", 1), ("negatives", 0)):
            terms[name] = scores[(batch.relevance == relevance) & others].mean()
        return {**terms, "loss": total}


def _compare(model: Comparator, batch: ClipBatch) -> ClipComparison:
    """Compare all clips with each other; with several processes, each compares part of the clips with all clips."""
    if process_count() == 1:
        comparison: ClipComparison = model(batch.values, batch.lengths)
        return comparison
    shapes: list[torch.Size] = []

    def compute(rows: slice) -> Tensor:
        own: ClipComparison = model(batch.values, batch.lengths, rows)
        parts = (own.scores, own.frame_maps, own.learned_maps)
        shapes.extend(part.shape[1:] for part in parts)
        return torch.cat([part.float().flatten(1) for part in parts], dim=1)

    joined = compute_in_shares(compute, len(batch.values))
    parts = torch.split(joined, [shape.numel() for shape in shapes], dim=1)
    return ClipComparison(*(part.view(-1, *shape) for part, shape in zip(parts, shapes, strict=True)))


def _compute(loss: nn.Module, call: LossCall, comparison: ClipComparison, batch: ClipBatch) -> Tensor:
    value: Tensor
    if call == "learned_maps":
        value = loss(comparison.learned_maps)
    elif call == "frame_maps":
        assert batch.teacher is not None
        count, frames = batch.labeled.shape
        rows = batch.teacher.flatten(0, 1)
        labels = (rows @ rows.T).view(count, frames, count, frames).transpose(1, 2)
        value = loss(
            comparison.frame_maps,
            labels,
            batch.same_window.long(),
            query_mask=batch.labeled,
            target_mask=batch.labeled,
        )
    else:
        value = loss(comparison.scores, batch.relevance, self_offset=0)
    return value
