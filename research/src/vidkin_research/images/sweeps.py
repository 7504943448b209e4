"""Sweeps over two-head settings: lambda and embedding size, collapse with soft and hard margins, and step time."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal, get_args

import torch

from vidkin.features.sessions import resolve_device
from vidkin.models.randomness import seeded
from vidkin.rendering.pictures import new_figure, write_figure
from vidkin.training.engine import read_terms
from vidkin_research.images.contract import ImageRow, ImageTask
from vidkin_research.images.figures import RowFigures
from vidkin_research.images.study import run_image_study
from vidkin_research.images.two_head_rows import VARIANTS, TwoHeadVariant, fit_two_head, start_two_head
from vidkin_research.runs import OnStudyProgress, load_or_run, run_path

__all__ = [
    "SWEEP_PARTS",
    "CollapseCurve",
    "StepTime",
    "SweepPart",
    "SweepReport",
    "draw_sweeps",
    "run_sweeps",
    "sweeps_page",
    "time_steps",
]

_LAMBDAS = (0.1, 0.5, 1.0, 2.0, 5.0)
_DIMENSIONS = (16, 64, 256, 512)
SETTINGS_SWEPT = len(_LAMBDAS) + len(_DIMENSIONS)
"""Number of training runs per seed in the part ``settings``."""
_MARGINS: Mapping[str, TwoHeadVariant] = {
    "soft margin": VARIANTS["two-head, hard (soft margin)"],
    "hard margin .2": VARIANTS["two-head, hard (margin .2)"],
}
# Number of points per curve.
_POINTS = 10


SweepPart = Literal["settings", "collapse", "time"]
"""``settings``: lambda and embedding size; ``collapse``: hardest triplets in a long run; ``time``: step time."""

SWEEP_PARTS: tuple[SweepPart, ...] = get_args(SweepPart)


@dataclass(frozen=True)
class StepTime:
    """Duration of a training step: CPU time, or wall-clock time on a GPU.

    Attributes:
        row: Name of the variant.
        seconds: Median time over the steps.
        ratio: Ratio to the median of softmax alone, measured with interleaved steps.
    """

    row: str
    seconds: float
    ratio: float


@dataclass(frozen=True)
class CollapseCurve:
    """Mean pairwise distance of the embeddings in a batch, in [0, 2], over a training run.

    Attributes:
        margin: Name of the margin.
        distances: Mean over each tenth of the run.
    """

    margin: str
    distances: Sequence[float]


@dataclass(frozen=True)
class SweepReport:
    """Result of the sweeps on one set.

    Attributes:
        set: Name of the set.
        runs: Semi-hard runs, one per lambda and embedding size.
        curves: Curves of runs with the hardest triplets for both margins, with ``longer`` times as many steps.
        times: Step time of every variant.
        longer: Factor on the number of steps for the collapse curves.
    """

    set: str
    runs: Sequence[RowFigures]
    curves: Sequence[CollapseCurve]
    times: Sequence[StepTime]
    longer: int = 10


def run_sweeps(
    task: ImageTask,
    work: Path,
    *,
    parts: Collection[SweepPart] = SWEEP_PARTS,
    seeds: Sequence[int] = (0,),
    timed: int = 5,
    longer: int = 10,
    on_progress: OnStudyProgress = lambda *told: None,
) -> SweepReport:
    """Train with each setting; finished runs in ``work`` are not repeated, except for timing.

    Args:
        task: The set.
        work: Folder of finished runs.
        parts: Parts to run.
        seeds: Seeds of the runs of each lambda and embedding size.
        timed: Number of timed steps per variant, after one untimed step.
        longer: Factor on the number of steps for the collapse curves.
        on_progress: Callback that receives the runs done, the total number of runs, and the current step.
    """
    variants = {f"lambda {weight:g}": TwoHeadVariant("semi_hard", weight=weight) for weight in _LAMBDAS}
    variants |= {
        f"embedding of {length}": TwoHeadVariant("semi_hard", model={"embedding": length}) for length in _DIMENSIONS
    }
    rows = [ImageRow(name, partial(fit_two_head, variant=variant)) for name, variant in variants.items()]
    runs: Sequence[RowFigures] = ()
    if "settings" in parts:
        runs = run_image_study(rows, [task], work, seeds=seeds, on_progress=on_progress).runs
    watched = replace(task, steps=longer * task.steps)
    curves = []
    for margin, variant in _MARGINS.items() if "collapse" in parts else ():
        on_progress(0, 0, f"collapse, {margin}")
        path = run_path(
            work / "collapse",
            (task.name, task.train.size, len(task.train), watched.steps, task.learning_rate, margin),
        )

        def run(margin: str = margin, variant: TwoHeadVariant = variant) -> object:
            terms = read_terms(fit_two_head(watched, seeds[0], variant=variant).steps)
            width = -(-len(terms) // _POINTS)
            tenths = [terms[first : first + width] for first in range(0, len(terms), width)]
            means = [sum(step["distance"] for step in tenth) / len(tenth) for tenth in tenths]
            return asdict(CollapseCurve(margin, means))

        curves.append(CollapseCurve(**load_or_run(path, run)))
    times: Sequence[StepTime] = ()
    if "time" in parts:
        on_progress(0, 0, "step time")
        times = time_steps(task, steps=timed)
    return SweepReport(task.name, runs, curves, times, longer)


def time_steps(task: ImageTask, *, steps: int = 5, rows: Sequence[str] = tuple(VARIANTS)) -> list[StepTime]:
    """Measure the duration of a training step of each variant, interleaved so that all run under the same load.

    Args:
        task: The set.
        steps: Number of timed steps per variant, after one untimed step.
        rows: Names of the variants; the first one is the reference.
    """
    with seeded(0):
        longer = replace(task, steps=steps + 1)
        running = {name: start_two_head(longer, 0, variant=VARIANTS[name])[1] for name in rows}
        spent: dict[str, list[float]] = {name: [] for name in rows}
        on_gpu = resolve_device(task.device).startswith("cuda")
        clock = time.perf_counter if on_gpu else time.process_time
        for _ in range(steps + 1):
            for name, training in running.items():
                began = clock()
                next(training)
                if on_gpu:
                    torch.cuda.synchronize()
                spent[name].append(clock() - began)
    seconds = {name: median(values[1:]) for name, values in spent.items()}
    return [StepTime(name, value, value / seconds[rows[0]]) for name, value in seconds.items()]


def draw_sweeps(report: SweepReport, path: Path) -> None:
    """Plot top-1, R@1 and R@4 over lambda and over the embedding size, the collapse curves, and the step times.

    Raises:
        MediaError: The file cannot be written.
    """
    figure = new_figure(10.0, 7.0)
    axes = figure.subplots(2, 2)
    for axis, prefix, title in (
        (axes[0][0], "lambda ", "lambda"),
        (axes[0][1], "embedding of ", "embedding size"),
    ):
        names = [name for name in dict.fromkeys(run.row for run in report.runs) if name.startswith(prefix)]
        runs = [[run for run in report.runs if run.row == name] for name in names]
        for label, figures in (
            ("top-1", [[run.top_1 for run in each] for each in runs]),
            ("R@1", [[run.recalls[0] for run in each] for each in runs]),
            ("R@4", [[run.recalls[1] for run in each] for each in runs]),
        ):
            values = [100 * sum(each) / len(each) for each in figures]
            axis.plot([float(name.removeprefix(prefix)) for name in names], values, marker="o", label=label)
        axis.set(xscale="log", xlabel=title, ylabel="%")
        if names:
            axis.legend()
    for curve in report.curves:
        axes[1][0].plot(range(1, len(curve.distances) + 1), curve.distances, marker="o", label=curve.margin)
    axes[1][0].set(
        xlabel=f"tenth of a run with {report.longer} times the steps", ylabel="mean pairwise distance", ylim=(0, None)
    )
    if report.curves:
        axes[1][0].legend()
    axes[1][1].barh([step.row for step in report.times], [step.ratio for step in report.times])
    axes[1][1].axvline(1.0, color="black", linewidth=1)
    axes[1][1].invert_yaxis()
    axes[1][1].set(xlabel="step time relative to softmax alone")
    write_figure(figure, path)


def sweeps_page(report: SweepReport) -> str:
    """Format the sweeps as Markdown."""
    lines = ["# Two-head settings", "", f"Set {report.set}, semi-hard triplets in addition to cross entropy."]
    if report.runs:
        lines += ["", "| | top-1 | macro | R@1 | R@4 |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(run.row for run in report.runs):
        runs = [run for run in report.runs if run.row == name]
        figures = [[run.top_1, run.macro, *run.recalls[:2]] for run in runs]
        means = [100 * sum(column) / len(runs) for column in zip(*figures, strict=True)]
        lines.append(f"| {name} | {' | '.join(f'{value:.1f}' for value in means)} |")
    if report.curves:
        lines += [
            "",
            f"Mean pairwise distance of embeddings over tenths of a run with {report.longer} times the steps:",
            "",
        ]
    lines += [f"* {curve.margin}: {', '.join(f'{value:.2f}' for value in curve.distances)}" for curve in report.curves]
    if report.times:
        lines += [
            "",
            "Time of a step with 32 images, interleaved with softmax alone:",
            "",
            "| | s | ratio |",
            "|---|---|---|",
        ]
    lines += [f"| {step.row} | {step.seconds:.3f} | {step.ratio:.3f} |" for step in report.times]
    return "\n".join([*lines, ""])
