"""Time, memory and values of the losses on (scores, relevance), compared with pytorch-metric-learning.

    python research/benchmarks/metric_scores.py [--output FILE.json] [--sizes 512 2048] [--skip-package]

Prints three tables and checks the targets: every loss at N=2048 takes at most 1 GiB above its input; Smooth-AP and
NT-Xent at N=512 are at least 10 times faster and take at most one 20th of the memory of pytorch-metric-learning in the
same run; frame-level QuadLinear-AP of 64 clips of 28 frames takes at most one 20th of the memory of its [B, B, T, T, T]
form and is equal to it. The exit status is 1 if a target is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from _measure import Measurement, compare, measure
from _report import finish, options, values_differ
from vidkin.metric import losses


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: the loss, its source and its cost."""

    make: Callable[[], nn.Module]
    formula: str
    source: str
    complexity: str
    systems: str


RANKS = "N M P time"
LINEAR = "N M"
LOSSES: dict[str, Row] = {
    "QuadLinearAPLoss": Row(
        losses.QuadLinearAPLoss, "mean h(sum R-(d) / (1 + rho sum H(d)))", "HAP-VR, MM 2024", RANKS, "HAP-VR"
    ),
    "SmoothAPLoss": Row(
        losses.SmoothAPLoss, "1 - AP, sigmoid ranks", "Brown, ECCV 2020", RANKS, "Smooth_AP, PML, ROADMAP"
    ),
    "SupAPLoss": Row(losses.SupAPLoss, "1 - AP, upper-bound ranks", "ROADMAP, NeurIPS 2021", RANKS, "ROADMAP"),
    "HierarchicalAPLoss": Row(
        losses.HierarchicalAPLoss, "1 - H-AP, upper-bound ranks", "HAPPIER, ECCV 2022", RANKS, "HAPPIER"
    ),
    "FastAPLoss": Row(losses.FastAPLoss, "1 - AP of histograms", "Cakir, CVPR 2019", LINEAR, "FastAP, PML"),
    "QuantizedAPLoss": Row(
        losses.QuantizedAPLoss, "1 - AP of histograms", "DIR, ICCV 2019", LINEAR, "deep-image-retrieval"
    ),
    "QuantizedAPLoss tie-aware": Row(
        lambda: losses.QuantizedAPLoss(tie_aware=True),
        "1 - mean AP over orders of ties",
        "He, CVPR 2018",
        LINEAR,
        "deep-image-retrieval",
    ),
    "BlackBoxAPLoss": Row(
        losses.BlackBoxAPLoss, "1 - AP, interpolated", "Rolinek, CVPR 2020", "N M log M", "blackbox-backprop"
    ),
    "ContrastiveLoss": Row(losses.ContrastiveLoss, "[m+ - s+]+ + [s- - m-]+", "Hadsell, CVPR 2006", LINEAR, "PML, OML"),
    "ScoreTripletLoss": Row(losses.ScoreTripletLoss, "[m + s- - s+]+", "FaceNet, CVPR 2015", RANKS, "PML, OML"),
    "ScoreTripletLoss hard": Row(
        lambda: losses.ScoreTripletLoss(mining="hard"),
        "[m + max s- - min s+]+",
        "Hermans 2017",
        LINEAR,
        "PML",
    ),
    "CircleLoss": Row(losses.CircleLoss, "softplus(lse- + lse+) of a query", "Sun, CVPR 2020", LINEAR, "PML"),
    "CircleLoss global": Row(
        lambda: losses.CircleLoss(form="global"),
        "the same of the matrix",
        "Sun, CVPR 2020",
        LINEAR,
        "CircleLoss",
    ),
    "InfoNCELoss": Row(losses.InfoNCELoss, "-log softmax, negatives", "Chen, ICML 2020", LINEAR, "S2VS, HAP-VR, PML"),
    "InfoNCELoss all": Row(
        lambda: losses.InfoNCELoss(denominator="all"),
        "-log softmax, all",
        "SupCon, NeurIPS 2020",
        LINEAR,
        "PML",
    ),
    "SelfHardNegativeLoss": Row(
        losses.SelfHardNegativeLoss, "-log s_kk - log(1 - max s-)", "S2VS 2023", LINEAR, "S2VS, HAP-VR"
    ),
    "MAELoss": Row(losses.MAELoss, "|s - y|", "-", LINEAR, "torch"),
    "MSELoss": Row(losses.MSELoss, "(s - y)^2", "-", LINEAR, "torch"),
}


def labelled_embeddings(size: int, dimension: int = 128, per_class: int = 4) -> tuple[Tensor, Tensor]:
    """Unit vectors [N, D] around the centers of classes of four, and their labels."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(size) // per_class
    centers = torch.randn(size // per_class, dimension, generator=generator)
    noise = torch.randn(size, dimension, generator=generator)
    return nn.functional.normalize(centers[labels] + noise, dim=1), labels


def relevance_of(labels: Tensor, *, graded: bool = False) -> Tensor:
    """Return 1 for the same class and, if `graded`, 1/2 for the same group of four classes."""
    same = (labels.unsqueeze(1) == labels.unsqueeze(0)).float()
    group = labels // 4
    kind = (group.unsqueeze(1) == group.unsqueeze(0)).float()
    return torch.where(same > 0, 1.0, 0.5 * kind) if graded else same


def cosine_run(
    loss: nn.Module, embeddings: Tensor, target: Tensor, *, self_labels: bool = False
) -> Callable[[], Tensor]:
    """Loss and gradient from embeddings: by cosines for a score loss, by labels for a package loss."""

    def run() -> Tensor:
        leaf = embeddings.detach().requires_grad_()
        if self_labels:
            value: Tensor = loss(leaf, target)
        else:
            unit = nn.functional.normalize(leaf, dim=1)
            value = loss(unit @ unit.T, target)
        value.backward()
        return value.detach()

    return run


def measure_losses(sizes: list[int]) -> list[dict[str, Any]]:
    """Measure every loss at every size, on embeddings of 128 dimensions in classes of four."""
    rows = []
    for name, row in LOSSES.items():
        result: dict[str, Any] = {
            "loss": name,
            "formula": row.formula,
            "source": row.source,
            "complexity": row.complexity,
            "systems": row.systems,
        }
        for size in sizes:
            embeddings, labels = labelled_embeddings(size)
            target = relevance_of(labels, graded=name.startswith("Hierarchical"))
            result[str(size)] = asdict(measure(cosine_run(row.make(), embeddings, target)))
        rows.append(result)
        print_row(result, sizes)
    return rows


def compare_with_package(size: int = 512) -> dict[str, dict[str, Measurement]]:
    """Compare Smooth-AP and NT-Xent of both packages on the same embeddings, in one run."""
    from pytorch_metric_learning import losses as package

    embeddings, labels = labelled_embeddings(size)
    target = relevance_of(labels)
    # As many groups as members per group: the only layout for which the package's Smooth-AP is correct.
    square = labelled_embeddings(256, per_class=16)
    square_target = relevance_of(square[1])
    ours = losses.SmoothAPLoss(0.01, include_self=True)
    cases = {
        f"Smooth-AP N={size} (values differ: the package groups wrongly)": {
            "vidkin": cosine_run(ours, embeddings, target),
            "package": cosine_run(package.SmoothAPLoss(0.01), embeddings, labels, self_labels=True),
        },
        "Smooth-AP N=256, 16 classes of 16 (values equal)": {
            "vidkin": cosine_run(ours, square[0], square_target),
            "package": cosine_run(package.SmoothAPLoss(0.01), *square, self_labels=True),
        },
        f"NT-Xent N={size} (values equal)": {
            "vidkin": cosine_run(losses.InfoNCELoss(0.07), embeddings, target),
            "package": cosine_run(package.NTXentLoss(0.07), embeddings, labels, self_labels=True),
        },
    }
    return {name: compare(runs) for name, runs in cases.items()}


def five_dimensional(scores: Tensor, labels: Tensor, relevance: Tensor) -> Tensor:
    """Frame-level QuadLinear-AP as published: computes all differences of all pairs, then selects the relevant ones."""
    delta, rho, targets = 0.05, 5.0, scores.shape[3]
    size = max(1, round(0.35 * targets))
    top = torch.zeros_like(labels).scatter(3, labels.topk(size, dim=3).indices, 1.0)
    low = torch.zeros_like(labels).scatter(3, labels.topk(size, dim=3, largest=False).indices, 1.0)
    difference = scores.unsqueeze(3) - scores.unsqueeze(4)
    step = torch.where(difference >= 0, 2 * difference / delta + 1, (difference / delta + 1).clamp(min=0) ** 2)
    above = (step * low.unsqueeze(3)).sum(dim=4)
    x = above / (1 + rho * ((difference > 0) * top.unsqueeze(3)).sum(dim=4))
    risks = (x / (1 + x) * top).sum(dim=3) / size
    return (risks.mean(dim=2) * relevance).sum() / relevance.sum()


def compare_frames(clips: int = 64, frames: int = 28) -> dict[str, Measurement]:
    """Compare on two views of each of 32 videos, where the other view is the only relevant clip."""
    generator = torch.Generator().manual_seed(0)
    shape = (clips, clips, frames, frames)
    scores = 2 * torch.rand(shape, generator=generator) - 1
    labels = torch.rand(shape, generator=generator)
    relevance = relevance_of(torch.arange(clips) // 2)
    loss = losses.FrameQuadLinearAPLoss()

    def run(form: Callable[[Tensor, Tensor, Tensor], Tensor], target: Tensor) -> Callable[[], Tensor]:
        def once() -> Tensor:
            leaf = scores.detach().requires_grad_()
            value = form(leaf, labels, target)
            value.backward()
            return value.detach()

        return once

    others = relevance.clone().fill_diagonal_(0)
    return compare({"vidkin": run(loss, relevance), "five dimensions": run(five_dimensional, others)})


def print_row(row: dict[str, Any], sizes: list[int]) -> None:
    figures = "  ".join(f"{row[str(n)]['seconds']:8.3f} s {row[str(n)]['peak_mib']:7.1f} MiB" for n in sizes)
    print(f"{row['loss']:26s} {row['source']:22s} {row['complexity']:11s} {figures}", flush=True)


def missed_targets(name: str, pair: dict[str, Any]) -> list[str]:
    """List the targets that a comparison missed."""
    found = []
    if pair["smaller"] < 20:
        found.append(f"{name}: {pair['smaller']:.1f} times smaller; the target is 20")
    if pair["against"] == "package" and "N=512" in name and pair["faster"] < 10:
        found.append(f"{name}: {pair['faster']:.1f} times faster; the target is 10")
    if "differ" not in name and values_differ(pair):
        found.append(f"{name}: values differ by {pair['difference']:.2g}")
    return found


def main() -> int:
    given = options(__doc__)
    torch.set_num_threads(1)
    print(f"forward and backward from embeddings [N, 128], classes of 4, N = {given.sizes}")
    rows = measure_losses(given.sizes)
    pairs = {} if given.skip_package else compare_with_package()
    pairs["frame-level QuadLinear-AP, 64 clips of 28 frames (values equal)"] = compare_frames()
    return finish(rows, pairs, missed_targets, given.output)


if __name__ == "__main__":
    sys.exit(main())
