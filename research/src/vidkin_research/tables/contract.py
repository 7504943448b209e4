"""Description of a published table: its source, its requirements, and the function that reproduces it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin_research.runs import OnStudyProgress
from vidkin_research.tables.needs import Workload, hours_of, measure_speed

__all__ = ["DataNeed", "PaperTable", "TableNeeds", "TableOptions", "table_needs"]


@dataclass(frozen=True, kw_only=True)
class DataNeed:
    """A folder or file that a table reads.

    Attributes:
        path: Path relative to the data folder; empty for the data folder itself.
        what: Content, with the published number of items.
        where: Where to get it.
    """

    path: str
    what: str
    where: str


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Settings for reproducing a table.

    Attributes:
        data: Data folder; None if only requirements are computed.
        output: Folder for runs and pages.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
        backbone: Backbone to use instead of the published one.
        weights: Safetensors file with the backbone weights; None downloads them from the hub.
        sets: Names of collections to use instead of the published ones.
        reduced: Whether to use sizes, steps and seeds that a CPU can manage.
        seeds: Number of runs per row; default: as published, or 1 if reduced.
    """

    data: Path | None = None
    output: Path = Path("vidkin-benchmark/tables")
    device: str = "auto"
    backbone: str | None = None
    weights: Path | None = None
    sets: tuple[str, ...] = ()
    reduced: bool = False
    seeds: int | None = None


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table or figure of a source.

    Attributes:
        name: Name on the command line.
        source: Paper, and number of the table or figure.
        about: What is compared.
        differs: Differences from the published version; empty if there are none.
        has_backbone: Whether another backbone can be chosen.
        data: Function that returns the required data for the options.
        workloads: Function that returns the training runs for the options.
        gib: Function that returns the memory for items in GiB.
        disk: Function that returns the disk space for items in the output in GiB.
        run: Function that creates the table and returns the paths of the written files.
    """

    name: str
    source: str
    about: str
    differs: str = ""
    has_backbone: bool = True
    data: Callable[[TableOptions], Sequence[DataNeed]]
    workloads: Callable[[TableOptions], Sequence[Workload]]
    gib: Callable[[TableOptions], float]
    disk: Callable[[TableOptions], float] = lambda options: 0.0
    run: Callable[[TableOptions, OnStudyProgress], Sequence[Path]]


@dataclass(frozen=True, kw_only=True)
class TableNeeds(Result):
    """Requirements of a table.

    Attributes:
        table: Name of the table.
        source: Paper, and number of the table or figure.
        differs: Differences from the published version.
        data: Required data.
        missing: Paths that do not exist; None without a data folder.
        work: The training runs: description, number of runs, and steps per run.
        memory_gib: Memory in GiB.
        device_gib: Device memory in GiB.
        disk_gib: Disk space for the output in GiB.
        hours: Estimated time in hours, not counting the time to read the items.
        speed: Description of the speed behind the estimate.
    """

    table: str
    source: str
    differs: str
    data: tuple[DataNeed, ...]
    missing: tuple[str, ...] | None
    work: tuple[tuple[str, int, int], ...] = field(default=())
    memory_gib: float
    device_gib: float
    disk_gib: float
    hours: float
    speed: str


# Memory for Python, torch and the network.
_PROGRAM_GIB = 2.0


def table_needs(table: PaperTable, options: TableOptions, *, elsewhere: bool = False) -> TableNeeds:
    """Estimate the requirements of a table, without reading data or loading weights.

    Args:
        table: The table.
        options: Settings for reproducing the table.
        elsewhere: Whether to assume a GPU even if there is none, unless the table is reduced or the device is set.

    Raises:
        InvalidArgumentError: A backbone was chosen for a table that has no choice of backbone.
    """
    if options.backbone is not None and not table.has_backbone:
        raise InvalidArgumentError(f"the backbone of table {table.name} cannot be changed, got {options.backbone!r}")
    needed, workloads = tuple(table.data(options)), table.workloads(options)
    missing = None
    if options.data is not None:
        folder = options.data
        missing = tuple(need.path or os.fspath(folder) for need in needed if not (folder / need.path).exists())
    is_gpu = elsewhere and options.device == "auto" and not options.reduced
    speed, words = measure_speed("cuda" if is_gpu else options.device)
    return TableNeeds(
        table=table.name,
        source=table.source,
        differs=table.differs,
        data=needed,
        missing=missing,
        work=tuple((load.what, load.runs, load.steps) for load in workloads),
        memory_gib=_PROGRAM_GIB + table.gib(options),
        device_gib=max(load.cost.gib for load in workloads),
        disk_gib=table.disk(options),
        hours=hours_of(workloads, speed=speed, cores=os.cpu_count() or 1),
        speed=words,
    )
