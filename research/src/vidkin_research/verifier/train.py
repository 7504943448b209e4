"""Training of the verifier with an order-preserving loss on three levels or a logistic loss, and calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from torch import Tensor, nn

from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.match import NUMBERS, Verifier
from vidkin.match.verify import SOFTNESS
from vidkin.metric.losses import quad_linear_ap_loss, quadlet_loss, radial_loss, triplet_loss
from vidkin_research.verifier.pairs import COPY, LEFT_OUT, SCENE, STRANGER, Pairs

__all__ = ["Loss", "VerifierSettings", "average_verifiers", "calibrate", "score_pairs", "train_verifier", "tuple_loss"]

Loss = Literal["quad_linear", "triplet", "quadlet", "radial", "logistic"]

# Fraction of unrelated pairs that may exceed the minimum score of a reported pair.
_FEW = 2e-4
# Calibrated scores of the highest unrelated pairs, the lowest certain copies, and the median of these copies.
_UNRELATED, _SURE, _PLAIN = 0.2, 0.7, 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierSettings:
    """Settings of a training run.

    Attributes:
        loss: ``quad_linear``: QuadLinear-AP of copies before all others and of the same location before unrelated
            videos, within each query's list and over all lists of a batch. ``triplet``, ``quadlet``, ``radial``: tuple
            losses, see :func:`tuple_loss`. ``logistic``: copy or not, the baseline.
        units: Number of hidden units.
        steps, rate, decay: Steps, learning rate and weight decay of AdamW, with a cosine schedule.
        queries: Number of queries per batch.
        copies, scenes, strangers: Number of videos of each level per query in a batch; half of the unrelated videos
            (``strangers``) are the ones most similar to the query.
        tie: Weight of the logistic loss added to ranking losses, which do not fix the zero point.
        seed: Random seed.
    """

    loss: Loss = "quad_linear"
    units: int = 16
    steps: int = 1000
    rate: float = 3e-3
    decay: float = 1e-2
    queries: int = 8
    copies: int = 16
    scenes: int = 8
    strangers: int = 48
    tie: float = 0.3
    seed: int = 58

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, get_args(Loss))


def train_verifier(
    pairs: Pairs, settings: VerifierSettings, *, on_step: Callable[[int, float], None] | None = None
) -> tuple[Verifier, dict[str, Any]]:
    """Train on pairs with three levels; return the verifier and its training settings.

    Pairs that were not compared are not used for training; in calibration they score 0.

    Args:
        pairs: The training pairs.
        settings: Settings of the run.
        on_step: Callback that receives the number of each step and its loss.

    Raises:
        InvalidArgumentError: There are no copies or no unrelated videos.
    """
    known = pairs.numbers[pairs.compared & (pairs.levels >= STRANGER)]
    if not (pairs.levels == COPY).any() or not (pairs.levels == STRANGER).any():
        raise InvalidArgumentError("pairs must include both copies and unrelated videos")
    mean, deviation = known.mean(axis=0), known.std(axis=0) + 1e-3
    scaled = torch.from_numpy(np.clip((pairs.numbers - mean) / deviation, -6, 6).astype(np.float32))
    torch.manual_seed(settings.seed)
    network = nn.Sequential(nn.Linear(len(NUMBERS), settings.units), nn.Tanh(), nn.Linear(settings.units, 1))
    optimizer = torch.optim.AdamW(network.parameters(), settings.rate, weight_decay=settings.decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    random = np.random.default_rng(settings.seed)
    draw = _BatchSampler(pairs, settings)
    curve = []
    for step in range(settings.steps):
        rows, columns = draw(random)
        outputs = network(scaled[rows, columns])[..., 0]
        loss = _loss(outputs, torch.from_numpy(pairs.levels[rows, columns].astype(np.int64)), settings)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == settings.steps - 1:
            curve.append({"step": step, "loss": round(float(loss.detach()), 5)})
        if on_step is not None:
            on_step(step, float(loss.detach()))
    first, last = network[0], network[2]
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    plain = Verifier(
        mean.astype(np.float32),
        deviation.astype(np.float32),
        first.weight.detach().numpy().copy(),
        first.bias.detach().numpy().copy(),
        last.weight.detach().numpy()[0].copy(),
        float(last.bias.detach()),
        np.array([[0, 0], [1, 1]], np.float32),
    )
    calibrated = calibrate(plain, pairs)
    counts = {name: int((pairs.levels == level).sum()) for name, level in _NAMES.items()}
    return calibrated, {"settings": asdict(settings), "pairs": counts, "curve": curve}


_NAMES = {"copies": COPY, "same place": SCENE, "strangers": STRANGER}


class _BatchSampler:
    """Samples batches: for each query some copies, some videos of the same location, and unrelated videos, half of them
    hard."""

    def __init__(self, pairs: Pairs, settings: VerifierSettings) -> None:
        self._settings = settings
        levels = np.where(pairs.compared, pairs.levels, LEFT_OUT)
        self._of = [[np.flatnonzero(kinds == level) for level in range(3)] for kinds in levels]
        self._queries = [row for row, of in enumerate(self._of) if len(of[COPY]) and len(of[STRANGER])]
        # Videos that look like copies are sampled more often, weighted by similarity.
        self._weights = []
        for kinds, similar in zip(self._of, pairs.mean_of_best, strict=True):
            weight = np.exp(6 * (similar[kinds[STRANGER]] - similar.max()))
            self._weights.append(weight / max(float(weight.sum()), 1e-9))

    def __call__(self, random: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        settings = self._settings
        chosen = random.choice(self._queries, min(settings.queries, len(self._queries)), replace=False)
        columns = []
        for query in chosen:
            strangers, scenes, copies = self._of[query]
            half = settings.strangers // 2
            middle = scenes if len(scenes) else strangers
            columns.append(
                np.concatenate([
                    random.choice(copies, settings.copies),
                    random.choice(middle, settings.scenes),
                    random.choice(strangers, half, p=self._weights[query]),
                    random.choice(strangers, settings.strangers - half),
                ])
            )  # fmt: skip
        return chosen[:, None], np.stack(columns)


def _loss(outputs: Tensor, kinds: Tensor, settings: VerifierSettings) -> Tensor:
    """Compute the loss of the queries' lists, given [Q, N] outputs and levels."""
    is_copy = (kinds == COPY).float()
    logistic = nn.functional.binary_cross_entropy_with_logits(outputs, is_copy)
    if settings.loss == "logistic":
        return logistic
    # Map outputs to [-1, 1], because the margins of the losses are meant for cosines and unit vectors.
    scores = torch.tanh(outputs / SOFTNESS)
    if settings.loss != "quad_linear":
        return tuple_loss(scores, kinds, settings.loss) + settings.tie * logistic
    relevant = (kinds >= SCENE).float().masked_fill(kinds == COPY, -1.0)
    together = scores.reshape(1, -1)
    return (
        quad_linear_ap_loss(scores, is_copy)
        + quad_linear_ap_loss(together, is_copy.reshape(1, -1))
        + quad_linear_ap_loss(scores, relevant)
        # Ranking losses do not fix the zero point; without this term, scores would not be comparable across batches.
        + settings.tie * logistic
    )


def tuple_loss(scores: Tensor, kinds: Tensor, loss: Literal["triplet", "quadlet", "radial"]) -> Tensor:
    """Compute a loss on tuples of a query (q), a copy (p), the same location (i) and an unrelated video (n).

    Because a verifier outputs scores [Q, N] rather than vectors, the members are placed on a line, with the query at 0
    and the others at distances 1 - s, so that d(p, i) is the squared difference of two distances. The tuples combine
    copies, videos of the same location and unrelated videos in sampling order; shorter lists are repeated to the length
    of the longest.
    """
    members = [[], [], []]  # type: list[list[Tensor]]
    for row, levels in zip(1.0 - scores, kinds, strict=True):
        lists = [row[levels == level] for level in (COPY, SCENE, STRANGER)]
        if all(len(each) for each in lists):
            longest = max(map(len, lists))
            for collected, each in zip(members, lists, strict=True):
                collected.append(each[torch.arange(longest) % len(each)])
    if not members[0]:
        return scores.sum() * 0.0
    positive, intermediate, negative = (torch.cat(each)[:, None] for each in members)
    query = torch.zeros_like(positive)
    if loss == "triplet":
        return triplet_loss(query, positive, negative)
    if loss == "quadlet":
        return quadlet_loss(query, positive, intermediate, negative)
    return radial_loss(query, positive, intermediate, negative)


def average_verifiers(verifiers: Sequence[Verifier]) -> Verifier:
    """Combine several networks with the same input scale into one that outputs their mean, without calibration."""
    return replace(
        verifiers[0],
        hidden=np.concatenate([each.hidden for each in verifiers]),
        hidden_bias=np.concatenate([each.hidden_bias for each in verifiers]),
        out=np.asarray(np.concatenate([each.out for each in verifiers]) / len(verifiers), np.float32),
        out_bias=float(np.mean([each.out_bias for each in verifiers])),
        knots=np.array([[0, 0], [1, 1]], np.float32),
    )


def calibrate(verifier: Verifier, pairs: Pairs) -> Verifier:
    """Calibrate the scores: nearly all unrelated videos score below 0.2, and nine of ten videos at 0.7 are copies.

    At most the same fraction of other moments of a location scores 0.7 or more; the median of the copies above is 0.95.
    The curve in between is isotonic, so it never changes the order.
    """
    raw = score_pairs(verifier, pairs)
    copies, others = raw[pairs.levels == COPY], raw[(pairs.levels == STRANGER) | (pairs.levels == SCENE)]
    low = float(np.quantile(raw[pairs.levels == STRANGER], 1 - _FEW))
    scenes = raw[pairs.levels == SCENE]
    ceiling = float(np.quantile(scenes, 1 - _FEW)) if len(scenes) else low
    outputs = np.concatenate([copies, others])
    is_copy = np.concatenate([np.ones(len(copies)), np.zeros(len(others))])
    # Copies and others have the same total weight, regardless of how many there are.
    weights = np.where(is_copy == 1, 1 / len(copies), 1 / len(others))
    regression = IsotonicRegression(out_of_bounds="clip").fit(outputs, is_copy, sample_weight=weights)
    grid = np.linspace(0, 1, 2001)
    sure = grid[np.flatnonzero(regression.predict(grid) >= 0.9)[:1]]
    # In a still scene, other moments look like copies, so they must not raise the bar above the median copy.
    bar = min(ceiling, float(np.median(copies)))
    high = max(float(sure[0]) if len(sure) else 1.0, bar, low + 1e-3)
    # Half of the certain copies get at least this calibrated score.
    plain = float(np.median(np.append(copies[copies >= high], high)))
    knots = [(0.0, 0.0), (min(low, 1 - 3e-3), _UNRELATED), (min(high, 1 - 2e-3), _SURE)]
    knots += [(min(max(plain, high + 1e-3), 1 - 1e-3), _PLAIN), (1.0, 1.0)]
    return replace(verifier, knots=np.array(knots, np.float32))


def score_pairs(verifier: Verifier, pairs: Pairs) -> NDArray[np.float64]:
    """Compute scores [Q, G]; 0 for pairs that were not compared."""
    return np.where(pairs.compared, verifier.score_numbers(pairs.numbers), 0.0)
