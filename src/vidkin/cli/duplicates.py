"""``vidkin duplicates``: groups of copies in an index."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from vidkin._base.values import write_csv_rows
from vidkin.cli.console import (
    FormatOption,
    Meter,
    OutputFormat,
    is_roomy,
    meter,
    note,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
    wrote,
)
from vidkin.cli.options import (
    DEFAULT_INDEX,
    ByOption,
    DeviceOption,
    IndexOption,
    MirrorOption,
    Witness,
    WorkersOption,
    check_targets,
    folder_option,
    open_index,
    output_option,
    parse_outputs,
    threshold_option,
)
from vidkin.rendering.text import (
    FileFormat,
    clock,
    command_line,
    file_size,
    number,
    print_json,
    printable,
    write_format,
)
from vidkin.similarity.scale import SURE

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.files.findings import FindingKind
    from vidkin.index import DuplicateGroup, DuplicateMember, DuplicatePlan, FoundGroup, Index
    from vidkin.index.query.sound import By

_ENDINGS = {"csv": (".csv",), "html": (".html",)}
# Without a terminal, seconds from one line about the progress to the next.
_SECONDS_A_NOTE = 30.0
# On a terminal, groups that are named while pairs are compared, and files of each.
_MOST_NAMED, _NAMES_A_LINE = 20, 4


def duplicates(
    index: IndexOption = DEFAULT_INDEX,
    threshold: Annotated[float, threshold_option("Lowest score of two copies.")] = SURE,
    output: Annotated[
        list[Path] | None,
        output_option(
            "Write the groups to this file: a table (.csv, .json), a page with pictures of all copies side by side "
            "(.html), or a format of an installed package."
        ),
    ] = None,
    parts: Annotated[
        bool, typer.Option("--parts", help="Also group excerpts with the video that they are from.")
    ] = False,
    mirror: MirrorOption = True,
    by: ByOption = Witness.PICTURE,
    prefer: Annotated[
        list[str] | None,
        typer.Option(
            "--prefer",
            metavar="COLUMN,...",
            help="Order in which a copy is preferred over others that hold as much: picture, frame-rate, "
            "dynamic-range, sound, streams, metadata, bit-rate, size, age, newest, longest, smallest; or a folder "
            "whose files come first, or outside:FOLDER. Repeatable.",
            show_default="picture,frame-rate,dynamic-range,sound,streams,metadata,bit-rate,size,age",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="KIND,...",
            help="With --plan: what a removed file may have that the kept one lacks: resolution, quality, borders, "
            "frame-rate, dynamic-range, alpha, sound, subtitles, chapters, attachments, data, metadata. Repeatable.",
        ),
    ] = None,
    only: Annotated[list[Path] | None, folder_option("--only", "Compare only files in this folder.")] = None,
    across: Annotated[tuple[Path, Path] | None, typer.Option("--across", metavar="A B", hidden=True)] = None,
    incoming: Annotated[
        list[Path] | None,
        folder_option(
            "--incoming", "Compare only this folder with the rest, the library, of which the plan touches no file."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            help="Decode all copies to prove what can be removed without loss, and write it to this JSON file, for "
            "`vidkin apply`.",
            dir_okay=False,
        ),
    ] = None,
    protect: Annotated[
        list[Path] | None, folder_option("--protect", "The plan touches no file in this folder.", exists=True)
    ] = None,
    workers: WorkersOption = None,
    device: DeviceOption = "auto",
    cluster: str | None = None,
    format: FormatOption = OutputFormat.TABLE,
) -> None:
    """List groups of copies in the index; the best copy of each group is marked.

    Pairs in doubt are read again. What was compared is kept in the index, so that the next run is fast.
    """
    if accept and plan is None:
        raise typer.BadParameter("--accept needs --plan: without a proof nothing is found missing")
    from vidkin.files.findings import check_accepted

    reports = _read_reports() if output else {}
    targets = parse_outputs(output, {**_ENDINGS, **{name: (form.suffix,) for name, form in reports.items()}})
    if plan is not None:
        targets["plan"] = plan
    sources = check_targets(targets, "duplicates", index)
    if plan is not None:
        from vidkin.index import check_plan_is_settled

        check_plan_is_settled(plan)
    with open_index(index, cluster=cluster) as collection:
        groups = find_groups(
            collection,
            threshold,
            parts=parts,
            mirrored=mirror,
            prefer=prefer or (),
            prove=plan is not None,
            accept=check_accepted([kind for text in accept or () for kind in text.split(",") if kind]),
            only=only or (),
            across=across or (),
            incoming=incoming or (),
            workers=workers,
            by=by.value,
        )
        place = collection.place
        records = collection.videos() if plan is not None else []
    if "csv" in targets:
        write_format(FileFormat(".csv", "every copy", _write_csv), groups, targets["csv"], source=sources["csv"])
    for name in targets.keys() & reports.keys():
        write_format(reports[name], groups, targets[name], source=sources[name])
    if plan is not None:
        from vidkin.index import plan_removal, sign_plan, write_plan

        planned = sign_plan(plan_removal(groups, protected=protect or [], records=records), place)
        write_plan(planned, plan, source=sources["plan"])
    if "html" in targets:
        from vidkin.rendering.duplicates import write_duplicate_page

        with meter("pictures") as bar:
            write_duplicate_page(groups, targets["html"], source=sources["html"], on_progress=bar.update)
    if format is OutputFormat.JSON:
        print_json({"index": index, "threshold": threshold, "by": by.value, "groups": groups, "outputs": targets})
    elif format is OutputFormat.TSV:
        from vidkin.rendering.duplicates import duplicate_cells

        for line in duplicate_cells(groups):
            write_tsv(line)
    elif format is OutputFormat.PLAIN:
        from vidkin.rendering.duplicates import describe_member

        for position, group in enumerate(groups, start=1):
            for member in group.members:
                facts = f"{position}  {member.score:.2f}  {describe_member(member, group)}  "
                say(plain_text(facts).append_text(path_text(member.path)))
    else:
        print_groups(groups)
    for name, path in targets.items():
        wrote(path, _describe_plan(planned) if name == "plan" else "")
    if plan is not None and planned.groups:
        words = ["vidkin", "apply", printable(os.fspath(plan))]
        if not planned.index:  # nothing can be written to the index, so that it could not sign the plan
            words.append("--any-file")
        note(f"Look at it, then carry it out: `{command_line(words)}`")
    if groups and format in (OutputFormat.TABLE, OutputFormat.PLAIN):
        note("A wrong pair? `vidkin decisions --not-a-match A B` keeps it out of the groups.")


def _read_reports() -> dict[str, FileFormat[Sequence[DuplicateGroup]]]:
    """Further formats of the groups: JSON, and those of installed packages."""
    from vidkin.rendering.reports import duplicate_reports

    return {name: form for name, form in duplicate_reports().items() if name not in _ENDINGS}


def _write_csv(groups: Sequence[DuplicateGroup], file: IO[str]) -> None:
    from vidkin.rendering.duplicates import duplicate_cells

    write_csv_rows(file, duplicate_cells(groups))


def _describe_plan(plan: DuplicatePlan) -> str:
    """What a plan removes, in words."""
    if not plan.groups:
        return "nothing is to be done, as no file is proven to be held by one that stays"
    count = sum(len(group.remove) for group in plan.groups)
    belonging = sum(len(file.companions) for group in plan.groups for file in group.remove)
    others = f", and {number(belonging, 'file')} beside them" if belonging else ""
    held = f"{number(count, 'file')} to remove, proven to be held by a file that stays"
    return f"{held}, {file_size(plan.savings)}{others}"


def find_groups(
    collection: Index,
    threshold: float,
    *,
    parts: bool = False,
    mirrored: bool = True,
    prefer: str | Sequence[str] = (),
    prove: bool = False,
    accept: Collection[FindingKind] = (),
    only: Sequence[Path] = (),
    across: Sequence[Path] = (),
    incoming: Sequence[Path] = (),
    workers: int | None = None,
    by: By = "picture",
) -> list[DuplicateGroup]:
    """The groups of copies; shows a progress bar and groups as they are found, or without a terminal a line now and
    then."""
    with meter("comparing and proving" if prove else "comparing") as bar:
        shown = _Progress(bar)
        return collection.duplicates(
            threshold=threshold,
            parts=parts,
            mirrored=mirrored,
            prefer=prefer,
            prove=prove,
            accept=accept,
            only=only,
            across=across,
            incoming=incoming,
            workers=workers,
            by=by,
            on_progress=shown.update,
            on_found=shown.add,
        )


class _Progress:
    """Steps done and groups found: on the bar, or without a terminal in a line on standard error now and then."""

    def __init__(self, bar: Meter) -> None:
        self.groups: set[int] = set()
        self._named: set[int] = set()
        self._bar = bar
        self._begun = self._noted = time.monotonic()
        self._first: int | None = None

    def add(self, found: FoundGroup) -> None:
        """Count a group, and name the first ones on a terminal, each once; the table follows at the end."""
        if found.group is None:
            self.groups.discard(found.id)
            return
        self.groups.add(found.id)
        if found.is_final or not self._bar.is_shown or found.id in self._named or len(self._named) > _MOST_NAMED:
            return
        self._named.add(found.id)
        if len(self._named) > _MOST_NAMED:
            note("and more; all are listed at the end")
            return
        names = [os.path.basename(member.path) for member in found.group.members]
        more = f" and {len(names) - _NAMES_A_LINE} more" if len(names) > _NAMES_A_LINE else ""
        note(f"found: {printable(', '.join(names[:_NAMES_A_LINE]))}{more}")

    def update(self, done: int, total: int) -> None:
        """Tell how far the search is."""
        found = number(len(self.groups), "group") if self.groups else ""
        self._bar.update(done, total, detail=found)
        now = time.monotonic()
        if self._first is None:
            self._first = done  # what earlier runs have done took no time
        if self._bar.is_shown or now - self._noted < _SECONDS_A_NOTE:
            return
        self._noted = now
        rate = (done - self._first) / (now - self._begun)
        parts = [f"comparing: {done} of {total}"]
        if rate > 0 and done < total:
            parts += [f"{rate:.1f}/s", f"{timedelta(seconds=round((total - done) / rate))} left"]
        note(", ".join([*parts, *filter(None, [found])]))


def print_groups(groups: Sequence[DuplicateGroup]) -> None:
    """Print all groups in one table, with an empty line between them."""
    from vidkin.rendering.duplicates import describe_member

    if not groups:
        say("No duplicates found.")
        return
    rows: list[list[str | Text]] = []
    members = [member for group in groups for member in group.members]
    # What both say, where there is sound; in a narrow terminal where the sound decides.
    is_by_ear = any(member.picture is not None and member.picture != member.score for member in members)
    has_sound = any(member.sound is not None for member in members) and (is_by_ear or is_roomy())
    # The score is that of the picture unless the sound decides.
    witnesses = [name for name, is_said in (("picture", is_by_ear), ("sound", has_sound)) if is_said]
    for position, group in enumerate(groups, start=1):
        if rows:
            rows.append([""] * (7 + len(witnesses)))
        for member in group.members:
            # In a narrow terminal their room belongs to the names.
            sizes = [clock(member.duration), file_size(member.size)] if is_roomy() else ["", ""]
            said = [getattr(member, name) for name in witnesses]
            facts = [
                f"{member.score:.2f}",
                *("" if value is None else f"{value:.2f}" for value in said),
                f"{member.width}x{member.height}",
                *sizes,
                describe_member(member, group),
            ]
            rows.append([str(position), *facts, path_text(member.path, style="bold green" if member.best else "")])
    columns = [
        *((name, "right") for name in ("group", "score", *witnesses, "resolution", "length", "file size")),
        ("what it is", "left"),
        ("file", "left"),
    ]
    table(None, columns, rows)
    copies = number(sum(len(group.members) - 1 for group in groups), "copy", "copies")
    say(f"{number(len(groups), 'group')}, {copies} besides the best ones; {_removable(members)}")


def _removable(members: Sequence[DuplicateMember]) -> str:
    """How many files can be removed, in words: those that are proven, or those that a proof has not looked at."""
    proven = [member for member in members if member.is_proven]
    if not proven and any(member.proof is not None for member in members):
        return "none of them is proven to be held by another one"
    if proven:
        return f"{len(proven)} of them can be removed without loss, {file_size(sum(member.size for member in proven))}"
    spare = [member for member in members if member.is_spare]
    if not spare:
        return "none of them looks removable"
    size = file_size(sum(member.size for member in spare))
    return f"{len(spare)} of them may be removable, {size}: --plan FILE decodes them to prove it"
