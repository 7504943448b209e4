"""The contract of a published table: its source, its requirements, and how it is reproduced."""

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
        path: Inside the folder of the data; empty for that folder itself.
        what: What is in it, with its published number of items.
        where: Where to get it.
    """

    path: str
    what: str
    where: str


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is made.

    Attributes:
        data: Folder of the data; None where needs alone are asked for.
        output: Folder of runs and pages.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
        backbone: Another backbone than the published one.
        weights: A safetensors file with weights of the backbone; None: from the hub.
        sets: Other collections than the published ones, by name.
        reduced: Sizes, steps and seeds that a CPU can take.
        seeds: Runs of each row; None: as published, or 1 if reduced.
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
        about: What it compares.
        differs: How this form differs from the published one; empty if it does not.
        has_backbone: Whether another backbone can be chosen.
        data: Function of the options to what is read.
        workloads: Function of the options to what is trained.
        gib: Function of the options to the GiB of main memory that items take.
        disk: Function of the options to the GiB of disk that items take in the output.
        run: Function that makes it and returns the files written.
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
    """What a table needs before it starts.

    Attributes:
        table: Name of the table.
        source: Paper, and number of the table or figure.
        differs: How this form differs from the published one.
        data: What it reads.
        missing: Paths of it that are not there; None without a folder of the data.
        work: What is trained: words, trainings, steps of each.
        memory_gib: GiB of main memory.
        device_gib: GiB of the device.
        disk_gib: GiB of disk in the output.
        hours: Hours it takes, without reading the items.
        speed: In words, what the hours are computed from.
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


# Python, torch and the network on the side of the processor.
_PROGRAM_GIB = 2.0


def table_needs(table: PaperTable, options: TableOptions, *, elsewhere: bool = False) -> TableNeeds:
    """Count what a table needs; reads no data and loads no weights.

    Args:
        table: The table.
        options: How it is made.
        elsewhere: The hours are those of a GPU, even if none is here, unless the table is reduced or the device named.

    Raises:
        InvalidArgumentError: Another backbone is asked of a table that has none.
    """
    if options.backbone is not None and not table.has_backbone:
        raise InvalidArgumentError(f"table {table.name} has no backbone to choose, got {options.backbone!r}")
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
