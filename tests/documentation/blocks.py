"""Code blocks of the documentation, and a shell that runs `vidkin` commands in this process."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cli.conftest import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "research").glob("*.md")),
    ROOT / "research" / "results" / "README.md",
)

# Settings that shorten commands which would take minutes: two training steps, few images, networks without downloads.
_SHORT = {"train": ["schedule.steps=2"], "train-shots": ["shots.steps=2"]}
_SMALL = {
    "frame-encoder": ["schedule.pairs=8", "data.validation=0.25"],
    "two-head": ["model.weights=weights.safetensors", "model.size=64"],
}


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page, section: File name, and the nearest second-level heading above the block.
        language: Language tag after the fence.
        text: Content of the block.
        excuses: Text that marks lines -> reason why they are not executed; "" marks all lines.
    """

    page: str
    section: str
    language: str
    text: str
    excuses: dict[str, str]

    @property
    def lines(self) -> list[str]:
        """The lines to execute."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return [line for line in lines if not any(mark in line for mark in self.excuses)]


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a page.

    A comment ``<!-- not executed: REASON -->`` above a block excludes it,
    ``<!-- not executed ("TEXT"): REASON -->`` excludes the lines that contain TEXT.
    """
    section = ""
    excuses: dict[str, str] = {}
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if excuse := re.fullmatch(r'<!-- not executed(?: \("(.+)"\))?: (.+) -->', line):
            excuses[excuse[1] or ""] = excuse[2]
        elif line.startswith("```"):
            body = "\n".join(iter(lambda: next(lines), "```"))
            yield Block(path.name, section, line[3:], body, excuses)
            excuses = {}
        elif line.startswith("## "):
            section = line[3:]


def execute(line: str, home: Path) -> None:
    """Run a shell line of vidkin commands with globs, ``&&``, ``>`` and ``~``; fail if a command exits with an error.

    Args:
        line: The line.
        home: Folder that ``~`` expands to.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars="&>|;")
    words.whitespace_split = True
    command: list[str] = []
    for word in [*words, "&&"]:
        if word == "&&":
            _run(command)
            command = []
        else:
            command += _expand(word, str(home))


def _expand(word: str, home: str) -> list[str]:
    word = re.sub(r"^~(?=/|$)", lambda _: home, word)
    return sorted(map(str, Path().glob(word))) or [word] if "*" in word and "/" not in word else [word]


def _run(command: list[str]) -> None:
    target = None
    if ">" in command:
        *command, arrow, target = command
        assert arrow == ">", command
    is_ours = command[0] in ("vidkin", ".venv/bin/vidkin")
    assert is_ours, f"{command} is not a command of vidkin; mark the line as not executed"
    is_run = not {"--check", "--show"} & {*command} and len(command) > 2 and command[2] != "review"
    settings = [*_SHORT.get(command[1], ()), *_SMALL.get(command[2], ())] if is_run else []
    outcome = run(*command[1:], *(word for setting in settings for word in ("--set", setting)))
    if target is not None:
        Path(target).write_text(outcome.out, encoding="utf-8")
