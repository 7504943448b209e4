"""Train comparators with different losses, without labels, and evaluate them on other videos."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from vidkin._base.values import check_at_least
from vidkin.datasets.augmentation.clip_views import StrongSettings
from vidkin.errors import InvalidArgumentError
from vidkin.features import open_extractor
from vidkin.metric.measures import mean_average_precision, micro_average_precision
from vidkin.models.comparator import ClipComparison, Comparator, build_comparator
from vidkin.models.config import ComparatorConfig
from vidkin.similarity import length_mask, temporal_chamfer
from vidkin.training.clip_data import ClipBatch, ClipData, ComparatorObjective, make_batch
from vidkin.training.clip_footage import Window, cut_windows, read_squares, split_windows
from vidkin.training.clip_views import ClipFeatures, ClipSettings, ViewMaker, store_views, teacher_vectors
from vidkin.training.engine import take_steps
from vidkin.training.objectives import settle_parameters
from vidkin.training.recipe import ObjectiveRecipe, ScheduleRecipe
from vidkin.training.schedules import Decay
from vidkin_research.losses.methods import METHODS, LossMethod
from vidkin_research.runs import OnStudyProgress, load_or_run, run_path

__all__ = [
    "LossFigures",
    "LossReport",
    "LossStudy",
    "choose_windows",
    "method_objectives",
    "run_loss_study",
    "scores_at",
]

_CPU = torch.device("cpu")
# Number of strong views per test clip; few, because all views are compared with each other.
_TEST_VIEWS = 2
# Values of k_t from table 4 of HAP-VR, as fractions of the frames.
_TIMES = (0.0, 0.03, 0.06, 0.1, 0.2, 0.3, 1.0)
# Reported quantiles of the score distributions.
_QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)


@dataclass(frozen=True, kw_only=True)
class LossStudy:
    """Settings of the comparison.

    Attributes:
        methods: Methods to train.
        clips: Settings of clips and their edits. Each clip gets `views` strong views, with captions and stickers on all
            frames. Its `teacher`, whose similarities label the frames, should differ from the trained extractor.
        extractor: Frame feature extractor.
        shortest: Minimum number of frames of a clip: with few frames, the k of TopK-Chamfer has no effect.
        per_video: Maximum number of clips per video, sampled evenly.
        test: Fraction of the videos used for testing instead of training.
        steps: Number of optimizer steps.
        pairs: Number of clips per step, with two views each.
        learning_rate: Learning rate of AdamW, with cosine decay.
        seeds: Random seeds for weights and sampling, with one run each.
        split_seed: Random seed for splitting the videos and for all edits.
    """

    methods: Sequence[LossMethod] = METHODS
    clips: ClipSettings = field(
        default_factory=lambda: ClipSettings(
            rate=10.0, window=56, length=48, views=6, teacher="vidkin", strong=StrongSettings(overlaid=(1.0, 1.0))
        )
    )
    extractor: str = "classical"
    shortest: int = 48
    per_video: int = 4
    test: float = 0.4
    steps: int = 120
    pairs: int = 4
    learning_rate: float = 1e-3
    seeds: Sequence[int] = (0, 1, 2)
    split_seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, steps=self.steps, views=self.clips.views, methods=len(self.methods), per_video=self.per_video)
        check_at_least(2, pairs=self.pairs)
        if not 0 < self.test < 1:
            raise InvalidArgumentError(f"test must be above 0 and below 1, got {self.test}")


@dataclass(frozen=True, slots=True)
class LossFigures:
    """Results of one run on the test videos: each weak view is a query for the strong views of its clip.

    Attributes:
        method: Name of the method.
        seed: Random seed for weights and sampling.
        map: Mean average precision.
        micro_ap: Average precision of all pairs in one list.
        positives: Quantiles 0.01, 0.25, 0.5, 0.75 and 0.99 of the scores of positive pairs, in [0, 1].
        negatives: The same quantiles for pairs of different videos.
        own_map: Learned map of one test clip, weak against strong view.
        other_map: Learned map of the weak view against a view of another video.
        by_times: mAP and micro-AP of the same model scored with other k_t, by k_t as a fraction of the frames.
    """

    method: str
    seed: int
    map: float
    micro_ap: float
    positives: Sequence[float]
    negatives: Sequence[float]
    own_map: Sequence[Sequence[float]]
    other_map: Sequence[Sequence[float]]
    by_times: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LossReport:
    """Result of a study.

    Attributes:
        study: Settings of the comparison.
        train: Number of training videos and clips.
        test: Number of test videos and clips.
        runs: One entry per method and seed.
    """

    study: LossStudy
    train: tuple[int, int]
    test: tuple[int, int]
    runs: Sequence[LossFigures]


def run_loss_study(
    study: LossStudy,
    folders: Sequence[Path],
    work: Path,
    *,
    on_progress: OnStudyProgress = lambda *told: None,
) -> LossReport:
    """Train and evaluate every method with every seed; finished runs in ``work`` are not repeated.

    Args:
        study: Settings of the comparison.
        folders: Folders of unrelated videos.
        work: Folder for features and finished runs; created if it does not exist.
        on_progress: Callback that receives the runs done, the total number of runs, and the current step.

    Raises:
        DatasetError: There are too few videos.
        InvalidArgumentError: There would be fewer than two training or test videos.
    """
    torch.manual_seed(0)
    total = len(study.methods) * len(study.seeds)
    data, test = _read(study, folders, work, lambda done, count: on_progress(0, total, f"videos: {done} of {count}"))
    told = [asdict(study.clips), study.per_video, study.shortest]
    content = hashlib.sha256(data.identity() + repr(told).encode()).hexdigest()
    runs: list[LossFigures] = []
    for seed in study.seeds:
        for method in study.methods:
            on_progress(len(runs), total, f"{method.name}, seed {seed}")
            # The key leaves out the name, because one run can be a row of several tables.
            trained: tuple[object, ...] = (method.terms, method.model)
            if method.parameters:
                trained += (method.parameters,)
            settings = (content, study.steps, study.pairs, study.learning_rate, study.test, trained, seed)
            stored = load_or_run(
                run_path(work / "runs", settings),
                lambda method=method, seed=seed: asdict(_run(study, method, seed, data, test)),  # type: ignore[misc]
            )
            runs.append(LossFigures(**{**stored, "method": method.name}))
    on_progress(total, total, "done")
    numbers = [[window.video for window in part] for part in (data.windows, test.windows)]
    train_size, test_size = ((len(set(videos)), len(videos)) for videos in numbers)
    return LossReport(study, train_size, test_size, runs)


@dataclass(frozen=True, slots=True, eq=False)
class _TestClips:
    """Views of the test clips: all weak views, then all strong ones."""

    windows: Sequence[Window]
    batch: ClipBatch


def _read(
    study: LossStudy, folders: Sequence[Path], work: Path, on_video: Callable[[int, int], None]
) -> tuple[ClipData, _TestClips]:
    clips = study.clips
    videos, broken = read_squares(
        folders, rate=clips.rate, side=clips.side, fit=clips.fit, cache=work / "frames", on_video=on_video
    )
    windows = choose_windows(cut_windows(videos, clips.window), shortest=study.shortest, per_video=study.per_video)
    train, test = split_windows(windows, share=study.test, seed=study.split_seed)
    if not test:
        usable = len({window.video for window in windows})
        raise InvalidArgumentError(
            f"training and test need at least two videos each, with {study.shortest} frames at {clips.rate:g} per "
            f"second, got {usable} videos and test = {study.test}"
        )
    extractor = open_extractor(study.extractor, device="cpu")
    maker = ViewMaker(videos, clips, extractor, study.split_seed)
    made = [
        store_views(part, maker, cache=work / "views", most_bytes=2**32, on_video=on_video) for part in (train, test)
    ]
    labels = open_extractor(clips.teacher, device="cpu") if clips.teacher else extractor
    teacher = teacher_vectors(videos, labels, cache=work / "teacher", on_video=on_video)
    schedule = ScheduleRecipe(steps=study.steps, pairs=min(study.pairs, len(train)))
    data = ClipData(
        name="videos",
        broken=tuple(broken),
        windows=train,
        validation=(),
        maker=maker,
        schedule=schedule,
        device=_CPU,
        stored=made[0],
        teacher=teacher,
    )
    views: list[ClipFeatures] = [made[1][window.number][0] for window in test]
    views += [view for window in test for view in made[1][window.number][1 : 1 + _TEST_VIEWS]]
    return data, _TestClips(test, make_batch(views))


def _run(study: LossStudy, method: LossMethod, seed: int, data: ClipData, test: _TestClips) -> LossFigures:
    dimension = test.batch.values.shape[-1]
    config = ComparatorConfig.from_mapping(
        {"extractor": study.extractor, "dimension": dimension, "symmetric": True, **method.model}
    )
    model = build_comparator(config, weights="random", seed=seed)
    if method.terms:
        schedule = ScheduleRecipe(steps=study.steps, pairs=data.schedule.pairs, seed=seed)
        data.schedule = schedule
        objective = ComparatorObjective(method_objectives(method))
        optimizer = torch.optim.AdamW(model.parameters(), lr=study.learning_rate, weight_decay=0.01)
        decay = Decay(kind="cosine", steps=study.steps, warm_up=study.steps // 10)
        for _ in take_steps(model, objective, optimizer, data.batches(("clips",), first=0), schedule=decay, clip=1.0):
            continue
    return _measure(model.eval(), method.name, seed, test)


def method_objectives(method: LossMethod) -> list[ObjectiveRecipe]:
    """Return the loss terms of a method with all parameters."""
    return [
        ObjectiveRecipe(
            name=name, weight=weight, parameters=settle_parameters(name, dict(method.parameters.get(name, {})))
        )
        for name, weight in method.terms
    ]


@torch.no_grad()
def _measure(model: Comparator, name: str, seed: int, test: _TestClips) -> LossFigures:
    count, batch = len(test.windows), test.batch
    # Only the weak views are queries.
    comparison = model(batch.values, batch.lengths, slice(0, count))
    scores, relevance = comparison.scores[:, count:], batch.relevance[:count, count:]
    counted = relevance >= 0
    # Find a weak view that shares frames with a strong one; edits can leave a pair nothing in common.
    usable = ((relevance == 1).any(1) & (relevance == 0).any(1)).nonzero()
    if not len(usable):
        raise InvalidArgumentError(
            f"the test needs a weak view with both a positive and a negative, but none of the {count} test clips "
            "has one; add videos"
        )
    query = int(usable[0, 0])
    positive, negative = (int((relevance[query] == value).nonzero()[0, 0]) for value in (1, 0))

    def measure(scores: Tensor) -> tuple[float, float]:
        options = {"valid": counted, "ties": "expected"}
        every = relevance.clamp(min=0)
        return (
            float(mean_average_precision(scores, every, **options)),  # type: ignore[arg-type]
            micro_average_precision(scores, every, **options),  # type: ignore[arg-type]
        )

    own = measure(scores)
    return LossFigures(
        name,
        seed,
        *own,
        _quantiles(scores[relevance == 1]),
        _quantiles(scores[relevance == 0]),
        comparison.learned_maps[query, positive + count].clamp(-1, 1).tolist(),
        comparison.learned_maps[query, negative + count].clamp(-1, 1).tolist(),
        {f"{share:g}": measure(scores_at(model, comparison, batch.lengths, share)[:, count:]) for share in _TIMES},
    )


def scores_at(model: Comparator, comparison: ClipComparison, lengths: Tensor, share: float) -> Tensor:
    """Compute the scores [Q, N] of a comparison's learned maps with another k_t.

    Args:
        model: The comparator, whose network must not drop remainders.
        comparison: Comparison of the first Q of N videos with all of them.
        lengths: [N] number of frames of each video.
        share: k_t, as a fraction of the frames of the second video.
    """
    learned = comparison.learned_maps
    cells = -(-lengths // model.reduction)
    masks = [
        length_mask(cells[: len(learned)], learned.shape[2])[:, None].expand(-1, len(cells), -1),
        length_mask(cells, learned.shape[3])[None].expand(len(learned), -1, -1),
    ]
    scores: Tensor = temporal_chamfer(
        learned.flatten(0, 1).clamp(-1, 1),
        temporal_share=share,
        symmetric=model.config.symmetric,
        query_mask=masks[0].flatten(0, 1),
        target_mask=masks[1].flatten(0, 1),
    )
    scaled: Tensor = scores.view(len(learned), -1) / 2 + 0.5
    return scaled


def choose_windows(windows: Sequence[Window], *, shortest: int, per_video: int) -> list[Window]:
    """Choose at most ``per_video`` evenly sampled windows of at least ``shortest`` frames per video; renumber them."""
    by_video: defaultdict[int, list[Window]] = defaultdict(list)
    for window in windows:
        if window.stop - window.start >= shortest:
            by_video[window.video].append(window)
    chosen: list[Window] = []
    for own in by_video.values():
        count = min(per_video, len(own))
        chosen += [own[(2 * number + 1) * len(own) // (2 * count)] for number in range(count)]
    return [replace(window, number=number) for number, window in enumerate(chosen)]


def _quantiles(scores: Tensor) -> list[float]:
    values: list[float] = scores.float().quantile(torch.tensor(_QUANTILES)).tolist()
    return values
