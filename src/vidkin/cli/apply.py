"""``vidkin apply`` and ``vidkin decisions``: carry out or undo a plan of ``vidkin duplicates``; list decided pairs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import note, path_text, plain_text, say, table
from vidkin.cli.options import (
    DEFAULT_INDEX,
    IndexOption,
    JsonFormat,
    JsonOption,
    folder_option,
    open_index,
    open_index_for_writing,
)
from vidkin.errors import VidkinError
from vidkin.rendering.text import command_line, file_size, number, print_json, printable

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import FileAction
    from vidkin.index.storage.place import Place


MarkedAs = Literal["not duplicates", "duplicates", "undone"]


class LinkKind(StrEnum):
    """What takes the place of a removed file."""

    HARD = "hard"
    SYMBOLIC = "symbolic"


def apply(
    plan: Annotated[Path, typer.Argument(help="From `vidkin duplicates --plan`.", dir_okay=False)],
    move_to: Annotated[
        Path | None,
        typer.Option("--move-to", metavar="FOLDER", help="Move files below this folder, not to the trash."),
    ] = None,
    link: Annotated[
        LinkKind | None,
        typer.Option("--link", help="Replace each by a link to the kept file.", show_default=False),
    ] = None,
    protect: Annotated[
        list[Path] | None, folder_option("--protect", "Touch no file in this folder.", exists=True)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Undo this plan: every file returns to its folder.")] = False,
    any_file: Annotated[bool, typer.Option("--any-file", hidden=True)] = False,
    made_from: Annotated[str | None, typer.Option("--made-from", hidden=True)] = None,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Move the files of a PLAN from `vidkin duplicates --plan` to the trash; nothing is deleted.

    Files go to the system's trash or, with --move-to, below a folder. All bytes of a file and of the one to keep are
    read first; a file is skipped if either changed since it was proven that the kept file holds everything in it.
    Subtitles and other files that belong to a video go with it, but stay where a link takes its place. Every step is in
    the log beside the plan (PLAN.log), from which --undo takes it back; the same command again ends what was
    interrupted.
    """
    from vidkin.index import Journal, apply_plan, key_of_plan, open_place, place_of_plan, prove_pair, read_plan
    from vidkin.index import undo as take_back

    real = Path(os.path.realpath(plan))
    journal = Journal.of_plan(plan)
    if undo:
        journal.steps()  # without a log that is the error, whatever the plan is
    what = read_plan(plan)
    place = None if any_file else open_place(made_from) if made_from else place_of_plan(what)
    key = None if place is None else key_of_plan(place)
    with nullcontext() if place is None or dry_run else _hold_index(place):
        if undo:
            actions = take_back(journal, plan=what, dry_run=dry_run, key=key)
        else:
            if place is not None and not dry_run:
                _remember(real, place)
            actions = apply_plan(
                what,
                journal,
                folder=move_to,
                link="" if link is None else link.value,
                protected=protect or [],
                dry_run=dry_run,
                key=key,
                prove=prove_pair if any_file else None,
            )
    if format == "json":
        print_json({"plan": plan, "log": journal.path, "dry_run": dry_run, "files": actions})
    else:
        _show(actions, plan, move_to, undone=undo)
    if any(action.outcome == "skipped" for action in actions):
        raise typer.Exit(Status.SOME_FAILED)


def _is_writable(place: Place) -> bool:
    """Whether it is a folder that can be written to; elsewhere no page removes files either."""
    return place.folder is not None and os.access(place.folder, os.W_OK)


def _hold_index(place: Place) -> AbstractContextManager[None]:
    """The lock of the index that signed a plan: two plans at once could each remove what the other one keeps."""
    return place.exclusive() if _is_writable(place) else nullcontext()


def _remember(plan: Path, place: Place) -> None:
    """Name the plan in the history of its index, which the page shows; files are moved even if that fails."""
    from vidkin.index import Removals

    if not _is_writable(place):
        return
    try:
        Removals(place).remember(plan)
    except (OSError, VidkinError) as error:
        note(f"The page will not list this under what was removed: {error}", style="yellow")


def _show(actions: list[FileAction], plan: Path, move_to: Path | None, *, undone: bool) -> None:
    if not actions and not undone:
        say(path_text(plan).append(": nothing is to be done, the plan names no file"))
        return
    for action in actions:
        would = "would be " if action.outcome == "planned" else ""
        line = path_text(action.path).append(": ")
        if action.cause:
            line.append(f"{action.outcome}, {action.cause}")
        elif undone:
            line.append(f"{would}restored from ").append_text(path_text(action.place))
        else:
            line.append(f"{would}moved to ").append_text(path_text(action.place or "the trash"))
        say(line)
    done = [action for action in actions if action.outcome != "skipped" and not action.video]
    belonging = sum(action.outcome != "skipped" and bool(action.video) for action in actions)
    others = f", and {number(belonging, 'file')} beside them" if belonging else ""
    planned = any(action.outcome == "planned" for action in actions)
    if undone:
        say(f"{number(len(done), 'file')} {'would be ' if planned else ''}restored{others}")
        return
    # Nothing is freed: the bytes are still on a disk.
    line = plain_text(f"{number(len(done), 'file')} {'would be ' if planned else ''}moved to ")
    line.append_text(plain_text("the trash") if move_to is None else path_text(move_to))
    say(line.append(f" ({file_size(sum(action.size for action in done))}){others}"))
    if done and not planned:
        command = command_line(["vidkin", "apply", printable(os.fspath(plan)), "--undo"])
        note(f"`{command}` takes it back; `vidkin index PATH` brings the index up to date.")


def decisions(
    videos: Annotated[
        list[Path] | None,
        typer.Argument(help="Videos whose pairs, each with each, to mark.", metavar="VIDEO", show_default=False),
    ] = None,
    not_a_match: Annotated[
        bool, typer.Option("--not-a-match", help="Mark the videos as not duplicates of each other.")
    ] = False,
    is_a_match: Annotated[bool, typer.Option("--is-a-match", help="Mark them as duplicates.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Forget what was decided on them.")] = False,
    index: IndexOption = DEFAULT_INDEX,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Mark pairs of videos as duplicates or not, list what was marked, or undo it.

    Videos that are marked as not duplicates stay out of each other's group, whatever they score.
    """
    chosen: list[MarkedAs] = [
        name for name, is_meant in zip(_VERDICTS, (not_a_match, is_a_match, undo), strict=True) if is_meant
    ]
    if len(chosen) > 1 or bool(chosen) != bool(videos) or len(videos or ()) == 1:
        raise typer.BadParameter("name two videos or more, with one of --not-a-match, --is-a-match and --undo")
    if chosen:
        _decide(index, videos or (), chosen[0], format)
        return
    with open_index(index) as collection:
        decided = collection.decisions()
    if format == "json":
        print_json({"index": index, "decisions": decided})
        return
    if not decided:
        say("No decisions; `vidkin decisions --not-a-match A B` and --is-a-match make some.")
        return
    rows: list[list[str | Text]] = []
    for decision in decided:
        words = "duplicates" if decision.verdict == "match" else "not duplicates"
        rows.append([words, _names(decision.first), _names(decision.second)])
    table(None, [("marked as", "left"), ("file", "left"), ("and file", "left")], rows)


_VERDICTS: tuple[MarkedAs, ...] = ("not duplicates", "duplicates", "undone")


def _decide(index: str, videos: Sequence[Path], verdict: MarkedAs, format: JsonFormat) -> None:
    """Mark each video with each other one, or take that back."""
    pairs = [(os.fspath(one), os.fspath(other)) for one, other in itertools.combinations(videos, 2)]
    with open_index_for_writing(index) as collection:
        decide = {"not duplicates": collection.reject, "duplicates": collection.confirm}
        for pair in pairs:
            decide.get(verdict, collection.forget_decision)(*pair)
    if format == "json":
        print_json({"index": index, "verdict": verdict, "pairs": pairs})
        return
    for one, other in pairs:
        words = "decision undone" if verdict == "undone" else f"marked as {verdict}"
        say(path_text(one).append(" and ").append_text(path_text(other)).append(f": {words}"))


def _names(paths: tuple[str, ...]) -> Text:
    """The files of one content, one a line."""
    return (
        plain_text("\n").join(map(path_text, paths))
        if paths
        else plain_text("(not in the index any more)", style="dim")
    )
