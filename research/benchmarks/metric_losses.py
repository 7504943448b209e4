"""Time, memory and values of the losses on embeddings, compared with pytorch-metric-learning.

    python research/benchmarks/metric_losses.py [--output FILE.json] [--sizes 512 2048] [--skip-package]

Prints two tables and checks the targets: every loss at N=2048, 4 items per class and 128 dimensions takes at most 1 GiB
above its input; batch-all triplets at N=512 are at least 3 times faster than pytorch-metric-learning in the same run,
with equal values. The exit status is 1 if a target is missed. The losses on scores are in metric_scores.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from _measure import Measurement, compare, measure  # first: sets up the logging of the profiler
from _report import finish, options, values_differ
from vidkin.metric import losses

Inputs = Literal["tuples", "classes", "levels"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: the loss, its source and its cost."""

    make: Callable[[int], nn.Module]
    inputs: Inputs
    members: int
    formula: str
    source: str
    complexity: str
    systems: str


def tuple_row(make: Callable[[], nn.Module], members: int, formula: str, source: str, systems: str) -> Row:
    return Row(lambda _: make(), "tuples", members, formula, source, "B D", systems)


def batch_row(
    make: Callable[[int], nn.Module], inputs: Inputs, formula: str, source: str, complexity: str, systems: str
) -> Row:
    return Row(make, inputs, 1, formula, source, complexity, systems)


SORTED = "N^2 log N"
RADIAL_PAPER = "Radial loss paper"
LOSSES: dict[str, Row] = {
    "TripletLoss": tuple_row(losses.TripletLoss, 3, "[g + d(q,p) - d(q,n)]+", "Wang, CVPR 2014", "PML, OML, torch"),
    "QuadletLoss": tuple_row(losses.QuadletLoss, 4, "L1 + L2 + L3", RADIAL_PAPER, "-"),
    "RadialLoss": tuple_row(losses.RadialLoss, 4, "[(cR)^2 - |n-X|^2]+ + [m + d(q,p) - d(q,i)]+", RADIAL_PAPER, "-"),
    "QuadrupletwiseLoss": tuple_row(
        losses.QuadrupletwiseLoss, 4, "sum [delta + D(a,b) - D(c,d)]+", "Law, IJCV 2017", "-"
    ),
    "QuadrupletLoss": tuple_row(
        losses.QuadrupletLoss,
        4,
        "[d(a,p) - d(a,n1) + a1]+ + [d(a,p) - d(n1,n2) + a2]+",
        "Chen, CVPR 2017",
        "OML",
    ),
    "AngularLoss": tuple_row(losses.AngularLoss, 3, "[|a-p|^2 - 4 tan^2 |n-(a+p)/2|^2]+", "Wang, ICCV 2017", "-"),
    "AngularLoss quadlet": tuple_row(lambda: losses.AngularLoss(form="quadlet"), 4, "three of them", RADIAL_PAPER, "-"),
    "BatchHardTripletLoss": batch_row(
        lambda _: losses.BatchHardTripletLoss(),
        "classes",
        "softplus(max d+ - min d-)",
        "Hermans 2017",
        "N^2",
        "PML, OML, two-head",
    ),
    "SemiHardTripletLoss": batch_row(
        lambda _: losses.SemiHardTripletLoss(),
        "classes",
        "[m + d+ - next d-]+",
        "FaceNet, CVPR 2015",
        SORTED,
        "TF addons, two-head",
    ),
    "BatchAllTripletLoss": batch_row(
        lambda _: losses.BatchAllTripletLoss(),
        "classes",
        "sum [m + d+ - d-]+",
        "Hermans 2017",
        SORTED,
        "PML, OML",
    ),
    "AllQuadletsLoss": batch_row(
        lambda _: losses.AllQuadletsLoss(), "levels", "sum L1 + L2 + L3", RADIAL_PAPER, SORTED, "-"
    ),
    "AllQuadletsLoss radial": batch_row(
        lambda _: losses.AllQuadletsLoss("radial"), "levels", "sum of radial", RADIAL_PAPER, "T N time", "-"
    ),
    "CenterLoss": batch_row(
        lambda n: losses.CenterLoss(n // 4, 128),
        "classes",
        "1/2 sum |x - c|^2",
        "Wen, ECCV 2016",
        "N D",
        "PML, two-head",
    ),
    "TripletCenterLoss": batch_row(
        lambda n: losses.TripletCenterLoss(n // 4, 128),
        "classes",
        "[D(x,c) + m - min D(x,c')]+",
        "He, CVPR 2018",
        "N C",
        "-",
    ),
    "MagnetLoss": batch_row(
        lambda _: losses.MagnetLoss(),
        "classes",
        "[d/2s^2 + a + lse(-d'/2s^2)]+",
        "Rippel, ICLR 2016",
        "N^2",
        "-",
    ),
}


def labelled_embeddings(size: int, dimension: int = 128, per_class: int = 4) -> tuple[Tensor, Tensor]:
    """Unit vectors [N, D] around the centers of classes of four, and labels [N, 2] with four classes per category."""
    generator = torch.Generator().manual_seed(0)
    fine = torch.arange(size) // per_class
    centers = torch.randn(size // per_class, dimension, generator=generator)
    noise = torch.randn(size, dimension, generator=generator)
    embeddings = nn.functional.normalize(centers[fine] + noise, dim=1)
    return embeddings, torch.stack([fine // 4, fine], dim=1)


def loss_run(row: Row, size: int) -> Callable[[], Tensor]:
    """Loss and gradient of a batch of ``size`` items or tuples."""
    loss = row.make(size)
    embeddings, levels = labelled_embeddings(size)
    if row.inputs == "tuples":
        # Item k of each tuple is the batch rotated by k: the order does not affect the cost.
        batch = [embeddings.roll(shift, dims=0) for shift in range(row.members)]
        labels = []
    else:
        batch, labels = [embeddings], [levels[:, 1] if row.inputs == "classes" else levels]

    def run() -> Tensor:
        leaves = [member.detach().requires_grad_() for member in batch]
        value: Tensor = loss(*leaves, *labels)
        value.backward()
        return value.detach()

    return run


def measure_losses(sizes: list[int]) -> list[dict[str, Any]]:
    """Measure every loss at every size."""
    rows = []
    for name, row in LOSSES.items():
        result: dict[str, Any] = {"loss": name}
        for field in ("formula", "source", "complexity", "systems"):
            result[field] = getattr(row, field)
        for size in sizes:
            result[str(size)] = asdict(measure(loss_run(row, size)))
        rows.append(result)
        figures = "  ".join(f"{result[str(n)]['seconds']:8.4f} s {result[str(n)]['peak_mib']:7.1f} MiB" for n in sizes)
        print(f"{name:23s} {row.source:19s} {row.complexity:10s} {figures}", flush=True)
    return rows


def embedding_run(loss: Callable[[Tensor], Tensor], embeddings: Tensor) -> Callable[[], Tensor]:
    def run() -> Tensor:
        leaf = embeddings.detach().requires_grad_()
        value = loss(nn.functional.normalize(leaf, dim=1))
        value.backward()
        return value.detach()

    return run


def compare_with_package(size: int = 512) -> dict[str, dict[str, Measurement]]:
    """Compare losses of both packages in one run, with the package's default of plain Euclidean distances."""
    from pytorch_metric_learning import losses as package
    from pytorch_metric_learning import miners, reducers

    embeddings, levels = labelled_embeddings(size)
    labels = levels[:, 1]
    margin = package.TripletMarginLoss(margin=0.2)
    margin_of_all = package.TripletMarginLoss(margin=0.2, reducer=reducers.MeanReducer())
    hardest = miners.BatchHardMiner()
    cases: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
        "batch-all triplets, mean of active": (
            lambda x: losses.batch_all_triplet_loss(x, labels, margin=0.2, distance="euclidean"),
            lambda x: margin(x, labels),
        ),
        "batch-all triplets, mean of all": (
            lambda x: losses.batch_all_triplet_loss(x, labels, margin=0.2, distance="euclidean", average="all"),
            lambda x: margin_of_all(x, labels),
        ),
        "batch-hard triplets, margin .2": (
            lambda x: losses.batch_hard_triplet_loss(x, labels, margin=0.2, distance="euclidean"),
            lambda x: margin_of_all(x, labels, hardest(x, labels)),
        ),
    }
    return {
        f"{name}, N={size}": compare(
            {"vidkin": embedding_run(own, embeddings), "package": embedding_run(other, embeddings)}, repeats=5
        )
        for name, (own, other) in cases.items()
    }


def missed_targets(name: str, pair: dict[str, Any]) -> list[str]:
    """List the targets that a comparison missed."""
    found = []
    if "batch-all" in name and pair["faster"] < 3:
        found.append(f"{name}: {pair['faster']:.1f} times faster; the target is 3")
    if values_differ(pair):
        found.append(f"{name}: values differ by {pair['difference']:.2g}")
    return found


def main() -> int:
    given = options(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"forward and backward from embeddings [N, 128], classes of 4 in categories of 16, N = {given.sizes}")
    rows = measure_losses(given.sizes)
    pairs = {} if given.skip_package else compare_with_package()
    return finish(rows, pairs, missed_targets, given.output)


if __name__ == "__main__":
    sys.exit(main())
