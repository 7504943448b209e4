"""The README and the guides show commands that work, and refer only to things that exist."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest
import typer
from PIL import Image

from tests.cli.conftest import Library
from tests.support.videos import pan
from vidkin.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "research").rglob("*.md")])


def blocks(language: str, text: str = README) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [body for kind, body in fences if kind == language]


def command_lines() -> list[list[str]]:
    """All `vidkin` command lines of the pages, in blocks and in prose, without the program name."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    lines = [
        line for text in texts for kind in ("sh", "") for block in blocks(kind, text) for line in block.splitlines()
    ]
    lines += [line for text in texts for line in re.findall(r"`(vidkin [^`]+)`", text)]
    # The part after a pipe belongs to another program; in a table, the bar is escaped.
    lines = [re.split(r"#| \\?\| ", line)[0] for line in lines]
    words = [shlex.split(line) for line in lines if re.match(r"\S*vidkin\s", line)]
    return [line[1:] for line in words]


def test_readme_opens_with_the_two_commands() -> None:
    assert [line.split("#")[0].strip() for line in blocks("sh")[0].splitlines()] == ["make demo", "make test"]
    assert [shlex.split(line.split("#")[0])[1:] for line in blocks("sh")[1].splitlines()] == [
        ["index", "~/Videos"],
        ["search", "clip.mp4"],
    ]


def test_every_command_and_option_exists() -> None:
    root = typer.main.get_command(app)
    known: dict[str, set[str]] = {}
    missing = []
    for words in command_lines():
        # In `vidkin benchmark shots`, the second word determines the options.
        command = words[:2] if words[0] in ("benchmark", "labels") and words[1:2] and words[1].islower() else words[:1]
        key = " ".join(command)
        if key not in known:
            found = root
            for word in command:
                found = found if word.startswith("-") else found.commands[word]  # type: ignore[attr-defined]
            # Rarely used options are not in the help.
            known[key] = {name for option in found.params for name in (*option.opts, *option.secondary_opts)}
        options = [word for word in words if word.startswith("-") and word != "-"]
        missing += [(key, word) for word in options if word not in known[key] and word not in ("--help", "-h")]
    assert missing == []
    assert {"index", "search", "benchmark shots", "train-shots"} <= set(known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_command_page_is_current() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "site" / "commands.py"))
    table = script["command_table"]()
    assert script["PAGE"].read_text(encoding="utf-8") == table, "python docs/site/commands.py"
    described = {name.split()[0] for name in re.findall(r"^\| `([\w -]+)` \|", table, re.MULTILINE)}
    assert described == set(typer.main.get_command(app).built_in)  # type: ignore[attr-defined]


def test_the_documentation_stays_short() -> None:
    assert len(README.split()) <= 700
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").glob("*.md")) <= 18_000


def test_python_blocks_run(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Path.cwd()
    monkeypatch.setenv("HOME", str(here))
    (here / "Videos").mkdir()
    shutil.copy(library.folder / "coffee.mp4", here / "Videos" / "one.mp4")
    shutil.copy(library.folder / "coffee.mp4", here / "Videos" / "two.mp4")  # same content: indexed once
    shutil.copy(library.clip, here / "clip.mp4")
    shutil.copy(library.folder / "coffee.mp4", here / "a.mp4")
    shutil.copy(library.folder / "rocket.mp4", here / "b.mp4")
    Image.fromarray(next(pan("coffee", 1))).save(here / "photo.jpg")
    names: dict[str, object] = {}
    (source,) = blocks("python")
    exec(compile(source, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "one.mp4" in shown
    assert "->" in shown
    assert len(names["groups"]) == 1  # type: ignore[arg-type]
    assert names["comparison"].score < 0.3  # type: ignore[attr-defined]
