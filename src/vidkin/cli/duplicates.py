"""``vidkin duplicates``: groups of copies in an index."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin._base.outputs import check_outputs, describe_source
from vidkin.cli.console import (
    FormatOption,
    Meter,
    OutputFormat,
    choose_format,
    is_roomy,
    meter,
    note,
    path_text,
    plain_text,
    say,
    table,
    write_tsv,
)
from vidkin.cli.options import (
    DEFAULT_INDEX,
    STANDARD_OUTPUT,
    ByOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    MirrorOption,
    Witness,
    goes_to_output,
    open_index,
    open_index_for_writing,
    write_csv,
)
from vidkin.rendering.text import clock, command_line, file_size, number, print_json, printable
from vidkin.similarity.scale import SURE

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.files.findings import FindingKind
    from vidkin.index import DuplicateGroup, DuplicateMember, FoundGroup, Index
    from vidkin.index.query.sound import By

# Without a terminal, seconds from one line about the progress to the next.
_SECONDS_A_NOTE = 30.0
# On a terminal, groups that are named while pairs are compared, and files of each.
_MOST_NAMED, _NAMES_A_LINE = 20, 4


def duplicates(
    index: IndexOption = DEFAULT_INDEX,
    threshold: Annotated[
        float,
        typer.Option("--threshold", "-t", min=0.0, max=1.0, help="Lowest score of two copies."),
    ] = SURE,
    csv_file: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            help="Also write the groups to this CSV file; - writes them instead of the table.",
            dir_okay=False,
        ),
    ] = None,
    not_a_match: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--not-a-match", metavar="A B", help="Mark these two videos as not duplicates and exit."),
    ] = None,
    is_a_match: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--is-a-match", metavar="A B", help="Mark these two videos as duplicates and exit."),
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
    only: Annotated[
        list[Path] | None,
        typer.Option("--only", metavar="FOLDER", help="Compare only files in this folder; repeatable."),
    ] = None,
    across: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--across", metavar="A B", help="Compare only files of folder A with files of folder B."),
    ] = None,
    incoming: Annotated[
        list[Path] | None,
        typer.Option(
            "--incoming",
            metavar="FOLDER",
            help="Compare only this folder with the rest, the library, of which the plan touches no file; repeatable.",
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
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page with pictures of all copies side by side.", dir_okay=False),
    ] = None,
    protect: Annotated[
        list[Path] | None,
        typer.Option("--protect", metavar="FOLDER", help="The plan touches no file in this folder; repeatable."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            min=1,
            help="Groups whose files are read at the same time.",
            show_default="one per processor",
        ),
    ] = None,
    device: DeviceOption = "auto",
    cluster: str | None = None,
    format: FormatOption = OutputFormat.TABLE,
    json: JsonOption = False,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json-lines",
            help="Print groups as soon as they are found, as JSON on a line each; a later line replaces an earlier one "
            "with its id.",
        ),
    ] = False,
) -> None:
    """List groups of copies in the index; the best copy of each group is marked.

    Pairs in doubt are read again. What was compared is kept in the index, so that the next run is fast.
    """
    form = choose_format(format, json=json)
    if json_lines and (form is not OutputFormat.TABLE or csv_file == STANDARD_OUTPUT):
        raise typer.BadParameter("--json-lines cannot be combined with --json, --format or --csv -")
    if accept and plan is None:
        raise typer.BadParameter("--accept needs --plan: without a proof nothing is found missing")
    if not_a_match is not None or is_a_match is not None:
        _decide(index, not_a_match, is_a_match, json=form is OutputFormat.JSON)
        return
    from vidkin.files.findings import check_accepted

    to_output = goes_to_output(csv_file, form)
    sources = _check_outputs(index, None if to_output else csv_file, plan, html)
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
            on_found=_print_line if json_lines else None,
        )
        place = collection.place
        records = collection.videos() if plan is not None else []
    if csv_file is not None:
        from vidkin.rendering.duplicates import duplicate_cells

        write_csv(csv_file, duplicate_cells(groups), sources["csv"])
    if plan is not None:
        from vidkin.index import plan_removal, sign_plan, write_plan

        planned = sign_plan(plan_removal(groups, protected=protect or [], records=records), place)
        write_plan(planned, plan, source=sources["plan"])
    if html is not None:
        from vidkin.rendering.duplicates import write_duplicate_page

        with meter("pictures") as bar:
            write_duplicate_page(groups, html, source=sources["html"], on_progress=bar.update)
    if form is OutputFormat.JSON:
        print_json(
            {"index": index, "threshold": threshold, "by": by.value, "groups": groups, "plan": plan, "html": html}
        )
    elif form is OutputFormat.TSV:
        from vidkin.rendering.duplicates import duplicate_cells

        for line in duplicate_cells(groups):
            write_tsv(line)
    if to_output or json_lines or form in (OutputFormat.JSON, OutputFormat.TSV):
        return
    if form is OutputFormat.PLAIN:
        from vidkin.rendering.duplicates import describe_member

        for position, group in enumerate(groups, start=1):
            for member in group.members:
                facts = f"{position}  {member.score:.2f}  {describe_member(member, group)}  "
                say(plain_text(facts).append_text(path_text(member.path)))
    else:
        print_groups(groups)
    if csv_file is not None:
        say(path_text(csv_file).append(": the groups as CSV"))
    if html is not None:
        say(path_text(html).append(": the groups with pictures"))
    if plan is not None:
        count = sum(len(group.remove) for group in planned.groups)
        belonging = sum(len(file.companions) for group in planned.groups for file in group.remove)
        others = f", and {number(belonging, 'file')} beside them" if belonging else ""
        say(
            path_text(plan).append(
                f": {number(count, 'file')} to remove, proven to be held by a file that stays, "
                f"{file_size(planned.savings)}{others}"
            )
        )
        words = ["vidkin", "apply", printable(os.fspath(plan))]
        if not planned.index:  # nothing can be written to the index, so that it could not sign the plan
            words.append("--any-file")
        note(f"Look at it, then carry it out: `{command_line(words)}`")
    if groups:
        note("A wrong pair? `vidkin duplicates --not-a-match A B` keeps it out of the groups.")


def _check_outputs(index: str, csv_file: Path | None, plan: Path | None, html: Path | None) -> dict[str, str]:
    """What each output is made of, by the name of its option, once all of them may be written."""
    sources = {name: describe_source(f"duplicates --{name}", index) for name in ("csv", "plan", "html")}
    check_outputs(
        {
            "--csv": (csv_file, sources["csv"]),
            "--plan": (plan, sources["plan"]),
            "--html": (html, sources["html"]),
        }
    )
    if plan is not None:
        from vidkin.index import check_plan_is_settled

        check_plan_is_settled(plan)
    return sources


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
    on_found: Callable[[FoundGroup], None] | None = None,
) -> list[DuplicateGroup]:
    """The groups of copies; shows a progress bar and groups as they are found, or without a terminal a line now and
    then."""
    with meter("comparing and proving" if prove else "comparing") as bar:
        shown = _Progress(bar)

        def show(found: FoundGroup) -> None:
            shown.add(found)
            if on_found is not None:
                on_found(found)

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
            on_found=show,
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


def _print_line(found: FoundGroup) -> None:
    print_json(found, indent=None)


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
    for position, group in enumerate(groups, start=1):
        if rows:
            rows.append([""] * (9 if has_sound else 7))
        for member in group.members:
            # In a narrow terminal their room belongs to the names.
            sizes = [clock(member.duration), file_size(member.size)] if is_roomy() else ["", ""]
            said = [member.picture, member.sound] if has_sound else []
            facts = [
                f"{member.score:.2f}",
                *("" if value is None else f"{value:.2f}" for value in said),
                f"{member.width}x{member.height}",
                *sizes,
                describe_member(member, group),
            ]
            rows.append([str(position), *facts, path_text(member.path, style="bold green" if member.best else "")])
    said_by = ("picture", "sound") if has_sound else ()
    columns = [
        *((name, "right") for name in ("group", "score", *said_by, "resolution", "length", "file size")),
        ("", "left"),
        ("file", "left"),
    ]
    table(None, columns, rows)
    copies = number(sum(len(group.members) - 1 for group in groups), "copy", "copies")
    say(f"{number(len(groups), 'group')}, {copies} besides the best ones; {_removable(members)}")


def _removable(members: Sequence[DuplicateMember]) -> str:
    """How many files can be removed, in words: those that are proven, or those that a proof has not looked at."""
    proven = [member for member in members if member.is_proven]
    if proven or any(member.proof is not None for member in members):
        return f"{len(proven)} of them can be removed without loss, {file_size(sum(member.size for member in proven))}"
    spare = [member for member in members if member.is_spare]
    if not spare:
        return "none of them looks removable"
    size = file_size(sum(member.size for member in spare))
    return f"{len(spare)} of them may be removable, {size}: --plan FILE decodes them to prove it"


def _decide(index: str, rejected: tuple[Path, Path] | None, confirmed: tuple[Path, Path] | None, *, json: bool) -> None:
    with open_index_for_writing(index) as collection:
        if rejected is not None:
            collection.reject(os.fspath(rejected[0]), os.fspath(rejected[1]))
        if confirmed is not None:
            collection.confirm(os.fspath(confirmed[0]), os.fspath(confirmed[1]))
    if json:
        print_json({"index": index, "not_a_match": rejected, "is_a_match": confirmed})
        return
    for pair, words in ((rejected, "not duplicates"), (confirmed, "duplicates")):
        if pair is not None:
            say(path_text(pair[0]).append(" and ").append_text(path_text(pair[1])).append(f": marked as {words}"))
