"""``vidkin apply`` and ``vidkin decisions``: carry out or undo a plan of ``vidkin duplicates``; list decided pairs."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import note, path_text, plain_text, say, table
from vidkin.cli.options import DEFAULT_INDEX, IndexOption, JsonOption, open_index, open_index_for_writing
from vidkin.errors import VidkinError
from vidkin.rendering.text import command_line, file_size, number, print_json, printable

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.index import FileAction
    from vidkin.index.storage.place import Place


def apply(
    plan: Annotated[Path, typer.Argument(help="From `vidkin duplicates --plan`.", dir_okay=False)],
    move_to: Annotated[
        Path | None,
        typer.Option("--move-to", metavar="FOLDER", help="Move files below this folder, not to the trash."),
    ] = None,
    hard_link: Annotated[
        bool, typer.Option("--hard-link", help="Replace each by a hard link to the kept file.")
    ] = False,
    symlink: Annotated[
        bool, typer.Option("--symlink", help="Replace each by a symbolic link to the kept file.")
    ] = False,
    protect: Annotated[
        list[Path] | None,
        typer.Option("--protect", metavar="FOLDER", help="Touch no file in this folder; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Undo this plan: every file returns to its folder.")] = False,
    any_file: Annotated[
        bool,
        typer.Option(
            "--any-file",
            help="Also do what no index signed: a plan that you changed or wrote. Files are decoded then, to prove "
            "that nothing in them is lost.",
        ),
    ] = False,
    made_from: Annotated[
        str | None,
        typer.Option("--made-from", metavar="INDEX", help="The index that signed the plan, where it is elsewhere now."),
    ] = None,
    json: JsonOption = False,
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

    if hard_link and symlink:
        raise typer.BadParameter("use --hard-link or --symlink, not both")
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
            link: Literal["", "hard", "symbolic"] = "hard" if hard_link else "symbolic" if symlink else ""
            actions = apply_plan(
                what,
                journal,
                folder=move_to,
                link=link,
                protected=protect or [],
                dry_run=dry_run,
                key=key,
                prove=prove_pair if any_file else None,
            )
    if json:
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
        note(f"`{command}` takes it back; `vidkin index PATH --prune` brings the index up to date.")


def decisions(
    index: IndexOption = DEFAULT_INDEX,
    undo: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--undo", metavar="A B", help="Forget what you decided on these two videos."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the pairs that you marked as duplicates or not, or undo one."""
    if undo is not None:
        with open_index_for_writing(index) as collection:
            collection.forget_decision(os.fspath(undo[0]), os.fspath(undo[1]))
        if json:
            print_json({"index": index, "undone": undo})
            return
        say(path_text(undo[0]).append(" and ").append_text(path_text(undo[1])).append(": decision undone"))
        return
    with open_index(index) as collection:
        decided = collection.decisions()
    if json:
        print_json({"index": index, "decisions": decided})
        return
    if not decided:
        say("No decisions; `vidkin duplicates --not-a-match A B` and --is-a-match make some.")
        return
    rows: list[list[str | Text]] = []
    for decision in decided:
        words = "duplicates" if decision.verdict == "match" else "not duplicates"
        rows.append([words, _names(decision.first), _names(decision.second)])
    table(None, [("marked as", "left"), ("file", "left"), ("file", "left")], rows)


def _names(paths: tuple[str, ...]) -> Text:
    """The files of one content, one a line."""
    return (
        plain_text("\n").join(map(path_text, paths))
        if paths
        else plain_text("(not in the index any more)", style="dim")
    )
