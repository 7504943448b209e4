"""``vidkin apply`` and ``vidkin decisions``: carry out or undo a plan of ``vidkin duplicates``; list decided pairs."""

from __future__ import annotations

import itertools
import os
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import meter, note, path_text, plain_text, print_data, say, table
from vidkin.cli.options import IndexOption, JsonFormat, JsonOption, folder_option, open_index
from vidkin.errors import VidkinError
from vidkin.rendering.removals import describe_actions
from vidkin.rendering.text import command_line, printable

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.files import FileAction, Proof
    from vidkin.index.storage.place import Place


class LinkKind(StrEnum):
    """What takes the place of a removed file."""

    HARD = "hard"
    SYMBOLIC = "symbolic"


def apply(
    plan: Annotated[Path, typer.Argument(dir_okay=False)],
    move_to: Annotated[Path | None, typer.Option("--move-to", metavar="FOLDER")] = None,
    link: Annotated[LinkKind | None, typer.Option("--link", show_default=False)] = None,
    protect: Annotated[list[Path] | None, folder_option("--protect", exists=True)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    undo: Annotated[bool, typer.Option("--undo")] = False,
    index: IndexOption = DEFAULT_INDEX,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Move the files of a PLAN from `vidkin duplicates --plan` to the trash; nothing is deleted.

    Files go to the system's trash or, with --move-to, below a folder. All bytes of a file and of the one to keep are
    read first, and both are decoded again to prove that the kept file holds everything in it; a file is skipped if
    either changed since the plan was made. Subtitles and other files that belong to a video are moved with it, unless a
    link replaces the video. Every step is recorded in a log next to the plan (PLAN.log); --undo reverses it, and the
    same command again completes what was interrupted.

    Args:
        plan: From `vidkin duplicates --plan`.
        move_to: Move files below this folder, not to the trash.
        link: Replace each by a link to the kept file.
        protect: Touch no file in this folder. Repeatable.
        dry_run: Only show what would be done.
        undo: Undo this plan: every file returns to its folder.
    """
    from vidkin.files import Journal, apply_plan, read_plan, undo_plan
    from vidkin.index import open_place

    journal = Journal.of_plan(plan)
    if undo:
        journal.steps()  # without a log that is the error, whatever the plan is
    what = read_plan(plan)
    place = open_place(index)
    is_missing = place.folder is not None and not place.folder.is_dir()
    # In a folder that cannot be written to, no web page removes files at the same time either.
    writes = not dry_run and place.folder is not None and os.access(place.folder, os.W_OK)
    with place.exclusive() if writes else nullcontext():
        if undo:
            actions = undo_plan(journal, plan=what, dry_run=dry_run)
        else:
            if writes:
                _remember(Path(os.path.realpath(plan)), place)
            with meter("proving and moving") as bar:
                actions = apply_plan(
                    what,
                    journal,
                    folder=move_to,
                    link="" if link is None else link.value,
                    protected=protect or [],
                    dry_run=dry_run,
                    prove=_Prover(None if is_missing and index == DEFAULT_INDEX else index),
                    on_progress=bar.update,
                )
    if not print_data(format, {"plan": plan, "log": journal.path, "dry_run": dry_run, "files": actions}):
        _print_actions(actions, plan, move_to, undone=undo)
    if any(action.outcome == "skipped" for action in actions):
        raise typer.Exit(Status.SOME_FAILED)


class _Prover:
    """Proves pairs by decoding both files; pairs that the user marked as duplicates may lack frames.

    Args:
        index: The index with the user's verdicts; None for no verdicts.
    """

    def __init__(self, index: str | None) -> None:
        self._index = index
        self._confirmed: set[frozenset[str]] | None = set() if index is None else None

    def __call__(self, kept: str, removed: str) -> Proof:
        from vidkin.files.findings import NEVER_ACCEPTED
        from vidkin.index import prove_pair

        proof = prove_pair(kept, removed)
        if proof.holds or frozenset((kept, removed)) not in self._read_confirmed():
            return proof
        return replace(proof, findings=proof.missing(NEVER_ACCEPTED - {"unreadable"}))

    def _read_confirmed(self) -> set[frozenset[str]]:
        """The confirmed pairs, by their paths; read when the first of them matters."""
        if self._confirmed is None:
            with open_index(str(self._index)) as collection:
                decided = [one for one in collection.decisions() if one.verdict == "match"]
            self._confirmed = {frozenset((a, b)) for one in decided for a in one.first for b in one.second}
        return self._confirmed


def _remember(plan: Path, place: Place) -> None:
    """Add the plan to the history of its index, which the web page shows; files are moved even if that fails."""
    from vidkin.index import Removals

    try:
        Removals(place).remember(plan)
    except (OSError, VidkinError) as error:
        note(f"The web page will not list these files as removed: {error}", style="yellow")


def _print_actions(actions: list[FileAction], plan: Path, move_to: Path | None, *, undone: bool) -> None:
    if not actions and not undone:
        say(path_text(plan), ": nothing is to be done, the plan names no file")
        return
    for action in actions:
        would = "would be " if action.outcome == "planned" else ""
        if action.cause:
            say(path_text(action.path), f": {action.outcome}, {action.cause}")
        elif undone:
            say(path_text(action.path), f": {would}restored from ", path_text(action.place))
        else:
            say(path_text(action.path), f": {would}moved to ", path_text(action.place or "the trash"))
    say(describe_actions(actions, "the trash" if move_to is None else path_text(move_to).plain, undone=undone))
    if not undone and any(action.outcome not in ("skipped", "planned") for action in actions):
        command = command_line(["vidkin", "apply", printable(os.fspath(plan)), "--undo"])
        note(f"`{command}` restores the files; `vidkin index PATH` brings the index up to date.")


def decisions(
    videos: Annotated[list[Path] | None, typer.Argument(metavar="VIDEO", show_default=False)] = None,
    not_a_match: Annotated[bool, typer.Option("--not-a-match")] = False,
    is_a_match: Annotated[bool, typer.Option("--is-a-match")] = False,
    undo: Annotated[bool, typer.Option("--undo")] = False,
    index: IndexOption = DEFAULT_INDEX,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Mark pairs of videos as duplicates or not, list what was marked, or undo it.

    Videos that are marked as not duplicates stay out of each other's group, whatever they score.

    Args:
        videos: Videos whose pairs, each with each, to mark.
        not_a_match: Mark the videos as not duplicates of each other.
        is_a_match: Mark them as duplicates.
        undo: Forget what was decided on them.
    """
    verdicts = {"not duplicates": not_a_match, "duplicates": is_a_match, "undone": undo}
    chosen = [name for name, is_chosen in verdicts.items() if is_chosen]
    if len(chosen) > 1 or bool(chosen) != bool(videos) or len(videos or ()) == 1:
        raise typer.BadParameter("name two videos or more, with one of --not-a-match, --is-a-match and --undo")
    if chosen:
        _decide(index, list(map(os.fspath, videos or ())), chosen[0], format)
        return
    with open_index(index) as collection:
        decided = collection.decisions()
    if print_data(format, {"index": index, "decisions": decided}):
        return
    if not decided:
        say("No decisions; `vidkin decisions --not-a-match A B` and --is-a-match make some.")
        return
    words = {True: "duplicates", False: "not duplicates"}
    table(
        None,
        [("marked as", "left"), ("file", "left"), ("and file", "left")],
        [(words[each.verdict == "match"], _list_names(each.first), _list_names(each.second)) for each in decided],
    )


def _decide(index: str, videos: list[str], verdict: str, format: JsonFormat) -> None:
    """Mark each pair of the videos, or undo that."""
    pairs = list(itertools.combinations(videos, 2))
    with open_index(index, writing=True) as collection:
        decide = {"not duplicates": collection.reject, "duplicates": collection.confirm}
        for pair in pairs:
            decide.get(verdict, collection.forget_decision)(*pair)
    if print_data(format, {"index": index, "verdict": verdict, "pairs": pairs}):
        return
    for one, other in pairs:
        words = "decision undone" if verdict == "undone" else f"marked as {verdict}"
        say(path_text(one), " and ", path_text(other), f": {words}")


def _list_names(paths: tuple[str, ...]) -> Text:
    """The files with one content, one per line."""
    if not paths:
        return plain_text("(no longer in the index)", style="dim")
    return plain_text("\n").join(map(path_text, paths))
