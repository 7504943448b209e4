"""Apply and undo a plan in processes that are killed before each file operation in turn, and check the remaining files.

Run by ``test_apply_kill.py``. Each process is forked from this one, so that none has to import anything.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.files.test_apply_power import World
from vidkin._base import disk


def kill_at(turn: int, action: Callable[[], object]) -> bool:
    """Run an action in a process that is killed before operation ``turn``; return whether it got that far."""
    child = os.fork()
    if child == 0:
        count = 0

        def before(operation: str, path: str, target: str = "") -> None:
            nonlocal count
            if count == turn:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

        disk.before = before
        try:
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def check(root: Path, away: Path, link: str, *, undoing: bool) -> int:
    """Kill an apply or an undo before each operation in turn; return the number of operations."""
    turn = 0
    while True:
        world = World(root / "world", away, link)
        if undoing:
            world.apply()
        was_killed = kill_at(turn, world.undo if undoing else world.apply)
        world.check_nothing_is_lost()
        if not undoing:
            world.apply()
            world.check_applied()
        world.undo()
        world.check_undone()
        world.remove()
        if not was_killed:
            return turn
        turn += 1


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    os.environ["XDG_DATA_HOME"] = os.fspath(folder / "data")
    for target, kind in ((folder / "away", ""), (folder / "away", "hard"), (folder / "data" / "Trash" / "files", "")):
        sys.stdout.write("".join(f"{check(folder, target, kind, undoing=undoing)}\n" for undoing in (False, True)))
