"""``vidkin benchmark table``: show the requirements of a published table and reproduce it at full size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import meter, note, say, table, wrote
from vidkin.cli.options import DeviceOption, JsonFormat, JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import print_json
from vidkin_research.commands.study_options import duration

if TYPE_CHECKING:
    from vidkin_research.tables import TableNeeds

__all__ = ["make_table"]


def make_table(
    name: Annotated[
        str | None, typer.Argument(help="Table to reproduce; without it, all tables are listed.", metavar="[TABLE]")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder with the collections, each in a subfolder with its name.", file_okay=False),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Show the required data, memory and time, and exit. Does not need the data."),
    ] = False,
    reduced: Annotated[
        bool,
        typer.Option("--reduced", help="Test run with sizes and steps for a CPU; the results are not comparable."),
    ] = False,
    device: DeviceOption = "auto",
    backbone: Annotated[
        str | None,
        typer.Option(
            "--backbone",
            help="Frame network or backbone to use instead of the published one.",
            show_default="as published",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            help="Backbone weights, a safetensors file.",
            show_default="from the hub",
            dir_okay=False,
            exists=True,
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            help="Collection to use instead of the published ones; repeatable.",
            show_default="as published",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="Number of runs (seeds) per row.", show_default="3 for losses, else 1"),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for runs and pages. A second call resumes.", file_okay=False),
    ] = Path("vidkin-benchmark/tables"),
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Reproduce a table from a paper at its published size, or show its requirements.

    Each run is saved when it finishes. Run the same command again to resume an interrupted table.
    """
    with meter("starting"):
        from vidkin_research.tables import PAPER_TABLES, TableOptions, paper_table, table_needs

    if name is None:
        if format == "json":
            print_json(
                {"tables": [{"name": each.name, "source": each.source, "about": each.about} for each in PAPER_TABLES]}
            )
            return
        rows = [[each.name, each.source, each.about] for each in PAPER_TABLES]
        table(None, [("table", "left"), ("source", "left"), ("what", "left")], rows)
        say("`vidkin benchmark table TABLE --check` shows the requirements of a table.")
        return
    chosen = paper_table(name)
    options = TableOptions(
        data=data,
        output=output,
        device=device,
        backbone=backbone,
        weights=weights,
        sets=tuple(sets or ()),
        reduced=reduced,
        seeds=seeds,
    )
    with meter("counting"):
        needs = table_needs(chosen, options, elsewhere=check)
    if check:
        if format == "json":
            print_json(needs)
        else:
            _print(needs)
        raise typer.Exit(Status.NOTHING_USABLE if needs.missing else Status.DONE)
    if data is None:
        raise InvalidArgumentError(
            f"--data is missing; `vidkin benchmark table {name} --check` lists the required data"
        )
    if needs.missing:
        first = next(need for need in needs.data if (need.path or str(data)) == needs.missing[0])
        raise InvalidArgumentError(
            f"{data}: missing {', '.join(needs.missing)}; get the first ({first.what}) from {first.where}. "
            f"`vidkin benchmark table {name} --check` lists all required data"
        )
    if format != "json":
        note(f"About {duration(needs.hours)} ({needs.speed}), not counting the time to read the items.")
    with meter(name) as bar:
        files = chosen.run(options, lambda done, total, what: bar.update(done, total or None, detail=what))
    if format == "json":
        print_json({"table": name, "files": files})
        return
    for file in files:
        wrote(file)


def _print(needs: TableNeeds) -> None:
    rows = [[need.path or ".", need.what, need.where] for need in needs.data]
    if needs.missing is not None:
        rows = [
            [*row, "missing" if (need.path or "") in needs.missing or row[0] in needs.missing else "there"]
            for row, need in zip(rows, needs.data, strict=True)
        ]
    columns = [("in --data", "left"), ("what", "left"), ("from", "left")]
    columns += [("", "left")] if needs.missing is not None else []
    table(f"{needs.table}: {needs.source}", columns, rows)
    table(
        None,
        [("trained", "left"), ("runs", "right"), ("steps per run", "right")],
        [[what, f"{runs:,}", f"{steps:,}"] for what, runs, steps in needs.work],
    )
    say(
        f"Memory: {needs.memory_gib:.1f} GiB, and {needs.device_gib:.1f} GiB on the device. "
        + (f"Disk: {needs.disk_gib:,.0f} GiB. " if needs.disk_gib >= 1 else "")
        + f"Time: about {duration(needs.hours)} ({needs.speed}), not counting the time to read the items."
    )
    if needs.differs:
        note(f"Differs from the source: {needs.differs}.")
