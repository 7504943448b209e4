"""``vidkin duplicates``: groups of copies in an index."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli import options
from vidkin.cli.commands import source_of
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import Meter, end_with_failures, is_roomy, meter, note, path_text, print_data, say, table, wrote
from vidkin.cli.index import cached_index, index_in_cache
from vidkin.cli.options import OutputFormat, ScoreBasis, folder_option, rare_option
from vidkin.rendering.removals import describe_plan
from vidkin.rendering.text import clock, command_line, file_size, name_scores, number, printable, score_cells
from vidkin.similarity.scale import SURE

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import DuplicateGroup, FoundGroup

# Seconds between two lines about the progress where there is no terminal.
_SECONDS_A_NOTE = 30.0
# Groups that are named on a terminal while pairs are compared, and files of each.
_MAX_NAMED, _NAMES_A_LINE = 20, 4

_PREFERENCES = "picture,frame-rate,dynamic-range,sound,streams,metadata,bit-rate,size,age"


def duplicates(
    context: typer.Context,
    paths: Annotated[list[Path] | None, typer.Argument(metavar="[FOLDER]")] = None,
    index: options.IndexOption = DEFAULT_INDEX,
    threshold: Annotated[float, options.threshold_option()] = SURE,
    output: Annotated[list[Path] | None, options.output_option()] = None,
    parts: Annotated[bool, typer.Option("--parts")] = False,
    by: options.ByOption = ScoreBasis.PICTURE,
    prefer: Annotated[
        list[str] | None, typer.Option("--prefer", metavar="COLUMN,...", show_default=_PREFERENCES)
    ] = None,
    accept: Annotated[list[str] | None, typer.Option("--accept", metavar="KIND,...")] = None,
    only: Annotated[list[Path] | None, folder_option("--only")] = None,
    across: Annotated[tuple[Path, Path] | None, rare_option("--across", metavar="A B")] = None,
    incoming: Annotated[list[Path] | None, folder_option("--incoming")] = None,
    ignore_start: Annotated[float, typer.Option("--ignore-start", min=0.0)] = 0.0,
    ignore_end: Annotated[float, typer.Option("--ignore-end", min=0.0)] = 0.0,
    plan: Annotated[Path | None, typer.Option("--plan", dir_okay=False)] = None,
    protect: Annotated[list[Path] | None, folder_option("--protect", exists=True)] = None,
    workers: options.WorkersOption = None,
    device: options.DeviceOption = "auto",
    cluster: str | None = None,
    format: options.FormatOption = OutputFormat.TABLE,
) -> None:
    """List groups of copies in the index, or in folders; the best copy of each group is marked.

    Uncertain pairs are read again. Comparisons are stored in the index, so that the next run is fast. The index of
    folders that are named here is kept in the cache folder.

    Args:
        paths: Folders and files to compare, without an index of your own; default: all files of the index.
        threshold: Lowest score of two copies.
        output: Write the groups to this file: a table (.csv, .json), a page with pictures of all copies side by side
            (.html), or a format of an installed package. Repeatable.
        parts: Also group excerpts with the video that they are from.
        prefer: Order in which a copy is preferred over others that hold as much: picture, frame-rate, dynamic-range,
            sound, streams, metadata, bit-rate, size, age, newest, longest, smallest; or a folder whose files come
            first, or outside:FOLDER. Repeatable.
        accept: With --plan: what a removed file may have that the kept one lacks: resolution, quality, borders,
            frame-rate, dynamic-range, alpha, sound, subtitles, chapters, attachments, data, metadata. Repeatable.
        only: Compare only files in this folder. Repeatable.
        incoming: Compare only this folder with all other files, which the plan does not touch. Repeatable.
        ignore_start: Compare files without this many seconds at their start.
        ignore_end: Compare files without this many seconds at their end.
        plan: Decode all copies to prove what can be removed without loss, and write it to this JSON file, for `vidkin
            apply`.
        protect: The plan touches no file in this folder. Repeatable.
    """
    if accept and plan is None:
        raise typer.BadParameter("--accept needs --plan: only a proof finds what a kept file lacks")
    from vidkin.files import check_plan_is_settled, write_plan
    from vidkin.files.findings import check_accepted
    from vidkin.index import plan_removal
    from vidkin.rendering.duplicates import describe_member, duplicate_cells

    reports = {}
    if output:  # the reports of recurring segments, which come with them, cut videos
        from vidkin.rendering.reports import duplicate_reports

        reports = duplicate_reports()
    targets = options.parse_outputs(output, {name: (form.suffix,) for name, form in reports.items()})
    if plan is not None:
        targets["plan"] = plan
    failures: list[str] = []
    if paths:
        if source_of(context, "index") == "COMMANDLINE":
            raise typer.BadParameter(f"folders and --index exclude each other: `vidkin index` adds folders to {index}")
        index = os.fspath(cached_index(paths))
    sources = options.check_targets(targets, "duplicates", index)
    if plan is not None:
        check_plan_is_settled(plan)
    if paths:
        with index_in_cache(paths) as (collection, report):
            failures = [f"{item.path}: {item.cause}" for item in report.broken]
        if not report.usable:
            end_with_failures(failures or ["no videos found; name folders with videos"], some_usable=False)
    with (
        options.open_index(index, cluster=cluster) as collection,
        meter("comparing" if plan is None else "comparing and proving") as bar,
    ):
        progress = SearchProgress(bar)
        groups = collection.duplicates(
            threshold=threshold,
            parts=parts,
            prefer=prefer or (),
            prove=plan is not None,
            accept=check_accepted([kind for text in accept or () for kind in text.split(",") if kind]),
            only=only or (),
            across=across or (),
            incoming=incoming or (),
            ignore_start=ignore_start,
            ignore_end=ignore_end,
            workers=workers,
            by=by.value,
            on_progress=progress.update,
            on_found=progress.add,
        )
        records = collection.videos() if plan is not None else []
    with meter("writing"):
        options.write_targets(targets, sources, reports, groups)
    if plan is not None:
        planned = plan_removal(groups, protected=protect or [], records=records)
        write_plan(planned, plan, source=sources["plan"])
        wrote(plan, describe_plan(planned))
    named = [] if index == DEFAULT_INDEX else ["--index", printable(index)]
    facts = {"index": index, "threshold": threshold, "by": by.value, "groups": groups, "outputs": targets}
    if not print_data(format, facts, duplicate_cells(groups)):
        if format is OutputFormat.PLAIN:
            for position, group in enumerate(groups, start=1):
                for each in group.members:
                    say(f"{position}  {each.score:.2f}  {describe_member(each, group)}  ", path_text(each.path))
        else:
            _print_groups(groups)
        if groups:
            words = ["vidkin", "decisions", "--not-a-match", "A", "B", *named]
            note(f"A wrong pair? `{command_line(words)}` keeps it out of the groups.")
    if plan is not None and planned.groups:
        words = ["vidkin", "apply", printable(os.fspath(plan)), *named]
        note(f"Check the plan, then carry it out: `{command_line(words)}`")
    end_with_failures(failures)


class SearchProgress:
    """Steps done and groups found: on a terminal in the line of progress, elsewhere in a line every half minute.

    Args:
        bar: The line of progress.
    """

    def __init__(self, bar: Meter) -> None:
        self.groups: set[int] = set()
        self._named: set[int] = set()
        self._bar = bar
        self._began = self._noted = time.monotonic()
        self._first: int | None = None

    def add(self, found: FoundGroup) -> None:
        """Count a group, and name the first ones on a terminal, each once; the table follows at the end."""
        if found.group is None:
            self.groups.discard(found.id)
            return
        self.groups.add(found.id)
        if found.is_final or not self._bar.is_shown or found.id in self._named or len(self._named) > _MAX_NAMED:
            return
        self._named.add(found.id)
        if len(self._named) > _MAX_NAMED:
            note("and more; all are listed at the end")
            return
        names = [os.path.basename(member.path) for member in found.group.members]
        more = f" and {len(names) - _NAMES_A_LINE} more" if len(names) > _NAMES_A_LINE else ""
        note(f"found: {printable(', '.join(names[:_NAMES_A_LINE]))}{more}")

    def update(self, done: int, total: int) -> None:
        """Show how far the search is."""
        found = number(len(self.groups), "group") if self.groups else ""
        self._bar.update(done, total, detail=found)
        now = time.monotonic()
        if self._first is None:
            self._first = done  # the work of earlier runs took no time
        if self._bar.is_shown or now - self._noted < _SECONDS_A_NOTE:
            return
        self._noted = now
        rate = (done - self._first) / (now - self._began)
        parts = [f"comparing: {done} of {total}"]
        if rate > 0 and done < total:
            parts += [f"{rate:.1f}/s", f"{timedelta(seconds=round((total - done) / rate))} left"]
        note(", ".join(filter(None, [*parts, found])))


def _print_groups(groups: Sequence[DuplicateGroup]) -> None:
    """Print all groups in one table, with an empty line between them."""
    from vidkin.rendering.duplicates import describe_member, describe_removable

    if not groups:
        say("No duplicates found.")
        return
    rows: list[Sequence[str | Text]] = []
    members = [member for group in groups for member in group.members]
    scores = name_scores(members)
    for position, group in enumerate(groups, start=1):
        if rows:
            rows.append([""] * (6 + len(scores)))
        for member in group.members:
            # A narrow terminal has no room for them next to the names.
            sizes = [clock(member.duration), file_size(member.size)] if is_roomy() else ["", ""]
            facts = [*score_cells(member, scores), f"{member.width}x{member.height}", *sizes]
            file = path_text(member.path, style="bold green" if member.best else "")
            rows.append([str(position), *facts, describe_member(member, group), file])
    numbers = [(name, "right") for name in ("group", *scores, "resolution", "length", "file size")]
    table(None, [*numbers, ("what it is", "left"), ("file", "left")], rows)
    copies = number(len(members) - len(groups), "copy", "copies")
    removable = describe_removable(groups) or "none of them may be removable"
    say(f"{number(len(groups), 'group')}, {copies} besides the best ones; {removable}")
    if any(member.is_spare and not member.is_proven for member in members):
        note("--plan FILE decodes the copies to prove which of them can be removed without loss.")
