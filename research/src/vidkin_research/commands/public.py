"""``vidkin benchmark retrieval``: public video retrieval benchmarks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import meter, note, say, table, wrote
from vidkin.cli.options import (
    DeviceOption,
    ExtractorOption,
    JsonFormat,
    JsonOption,
    ModelOption,
    WeightsOption,
    WhiteningOption,
    extractor_name,
)
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import number, print_json
from vidkin_research.commands.study_options import duration

if TYPE_CHECKING:
    from vidkin_research.public.study import BenchmarkReport

__all__ = ["retrieval"]

_Scorer = Literal["own", "chamfer"]
_SHOWN = 5
# The estimated time is shown before the comparison if it exceeds this many hours.
_MIN_HOURS = 1 / 60


def retrieval(
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            "-d",
            help="Benchmark: fivr-5k, fivr-200k, evve, svd, vcdb, vcsl, vsc2022 or cc_web_video.",
        ),
    ],
    annotations: Annotated[
        Path,
        typer.Option(
            "--annotations",
            "-a",
            help="Folder with the published annotation files of the benchmark.",
            file_okay=False,
            exists=True,
        ),
    ],
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            help="Folder of features: files from `vidkin embed`, ID.safetensors with values [T, R, D], or HDF5 files "
            "with one data set per video.",
            file_okay=False,
            exists=True,
        ),
    ] = None,
    videos: Annotated[
        Path | None,
        typer.Option("--videos", help="Folder of videos named by ID.", file_okay=False, exists=True),
    ] = None,
    scorer: Annotated[
        _Scorer,
        typer.Option("--scorer", help="own: the extractor's or model's scorer. chamfer: TopK-Chamfer similarity only."),
    ] = "own",
    spatial_share: Annotated[
        float | None,
        typer.Option(
            "--spatial-share",
            help="k_s of --scorer chamfer: a fraction of the regions up to 1, or a count of at least 2.",
        ),
    ] = None,
    temporal_share: Annotated[
        float | None,
        typer.Option(
            "--temporal-share",
            help="k_t of --scorer chamfer: a fraction of the frames up to 1, or a count of at least 2.",
        ),
    ] = None,
    extractor: ExtractorOption = None,
    model: ModelOption = None,
    weights: WeightsOption = None,
    whitening: WhiteningOption = None,
    work: Annotated[
        Path, typer.Option("--work", help="Folder for the features of --videos. A second call reuses them.")
    ] = Path("vidkin-benchmark/features"),
    device: DeviceOption = "auto",
    check: Annotated[
        bool, typer.Option("--check", help="Show the number of missing videos and the estimated time, and exit.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the results to this JSON file.")
    ] = None,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Evaluate retrieval on a public benchmark and compare with published results.

    Missing videos are counted and left out, as in the published evaluations. Without --extractor and --model, the
    --features are compared by Chamfer similarity.
    """
    from vidkin.cli.options import check_output_file
    from vidkin.features import open_extractor
    from vidkin_research.public.features import StoredFeatures, describe_videos, find_videos
    from vidkin_research.public.names import open_benchmark
    from vidkin_research.public.study import estimate_hours, run_benchmark
    from vidkin_research.public.systems import choose_system
    from vidkin_research.runs import FIGURES, write_figures

    if (features is None) == (videos is None):
        raise InvalidArgumentError("one of --features and --videos must be given")
    check_output_file(output, FIGURES)
    benchmark = open_benchmark(dataset, annotations)
    name = extractor_name(extractor, model)
    maker = None
    if name is not None or videos is not None:
        maker = open_extractor(name or "classical", weights=weights, whitening=whitening, device=device)
    with meter(dataset) as bar:

        def advance(done: int, total: int, what: str) -> None:
            bar.update(done, total, detail=what)

        if features is not None:
            stored, broken = StoredFeatures.open(features), dict[str, str]()
        else:
            assert videos is not None
            assert maker is not None
            files = find_videos(videos, benchmark.videos)
            stored, broken = describe_videos(files, maker, work, on_progress=advance)
        system = choose_system(maker, scorer, spatial_share=spatial_share, temporal_share=temporal_share, device=device)
        bar.update(0, None, detail="estimating run time")
        hours = estimate_hours(benchmark, stored, system)
        if check:
            missing = sum(video not in stored for video in benchmark.videos)
            say(
                f"{number(len(benchmark.queries), 'query', 'queries')}, {number(len(benchmark.database), 'video')}; "
                f"{number(missing, 'video')} without features. About {duration(hours)} on this machine."
            )
            return
        if hours > _MIN_HOURS:
            note(f"About {duration(hours)} on this machine.")
        report = run_benchmark(benchmark, stored, system, on_progress=advance)
    write_figures(report, output)
    if output is not None:
        wrote(output, "the results")
    if format == "json":
        print_json({"report": report, "broken": broken})
    else:
        _print(report, broken)
    if broken:
        raise typer.Exit(Status.SOME_FAILED)


def _print(report: BenchmarkReport, broken: dict[str, str]) -> None:
    names = [figure.name for figure in report.figures]
    ours = {figure.name: figure.value for figure in report.figures}
    rows = [
        [system, *("" if math.isnan(row.get(name, math.nan)) else f"{100 * row[name]:.2f}" for name in names)]
        for system, row in ({f"here: {report.system}": ours, **report.published}).items()
    ]
    title = f"{report.benchmark}: {number(report.queries, 'query', 'queries')}, {number(report.videos, 'video')}"
    table(title, [("system", "left"), *((name, "right") for name in names)], rows)
    note("Percent. Rows below the first are published results." if report.published else "Percent.")
    for what, plural, missing in (
        ("query", "queries", report.missing_queries),
        ("video", "videos", report.missing_videos),
    ):
        if missing:
            shown = ", ".join(missing[:_SHOWN])
            note(
                f"Left out because the file is missing: {number(len(missing), what, plural)} of the benchmark ({shown}"
                f"{', ...' if len(missing) > _SHOWN else ''}). The results are not comparable with published ones.",
                style="yellow",
            )
    for video, cause in broken.items():
        note(f"{video} cannot be read: {cause}", style="yellow")
